/* SPDX-License-Identifier: Apache-2.0 */
/* A trace whose frames are addresses gets their functions, once, and stays whole. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/after/trace_symbols.h"
#include "gen/synth.h"
#include "read/reader.h"
#include "sonde/model.h"

/* Known to the dynamic symbols of no file, so found by .symtab or DWARF. */
__attribute__((noinline)) static int known_function(int n)
{
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

static uint64_t own_address(char path[4096])
{
    Dl_info info;

    assert_true(readlink("/proc/self/exe", path, 4095) > 0);
    assert_true(dladdr((void *)(uintptr_t)known_function, &info) != 0);
    return (uint64_t)(uintptr_t)known_function - (uint64_t)(uintptr_t)info.dli_fbase;
}

static void write_trace(const char *path, bool closed)
{
    struct synth_options options = { .pid = 5000 };
    char                 own[4096] = "";
    uint64_t             address = own_address(own);
    struct synth        *s = synth_new(path, &options);
    uint32_t             sampler = synth_thread_of(s, "sonde", 4998, 0);
    uint32_t             t = synth_thread_of(s, "prog", 5000, 0);
    uint32_t             frame = synth_address(s, synth_string(s, own), 0, address);
    uint32_t             nowhere = synth_address(s, synth_string(s, "/not/there"), 0, 0x10);
    uint32_t             stack = synth_stack(s, synth_stack(s, 0, nowhere), frame);

    synth_sample(s, sampler, 30000000, stack, 10, t, 30000000);
    synth_close(s, closed);
}

static void check_frames(const char *path, const char *inner, const char *outer)
{
    struct sonde_trace *trace;
    struct sonde_error  err;
    struct sonde_frame  frames[4];
    struct sonde_check  check;

    assert_int_equal(sonde_trace_open(path, &trace, &err), SONDE_OK);
    assert_int_equal(sonde_trace_stack(trace, 0, 2, frames, 4), 2);
    assert_non_null(
        memmem(frames[0].function.bytes, frames[0].function.length, inner, strlen(inner)));
    assert_string_equal(frames[1].function.bytes, outer);
    sonde_trace_close(trace);
    assert_int_equal(sonde_check(path, &check, &err), SONDE_OK);
    assert_int_equal(check.damaged_chunks + check.missing_bytes + check.skipped_bytes, 0);
}

static void test_symbols_are_written_once(void **state)
{
    char                    path[] = "/tmp/sonde-symbols-XXXXXX";
    struct snd_symbol_stats stats;
    struct sonde_error      err;
    struct stat             first, second;

    (void)state;
    close(mkstemp(path));
    unlink(path);
    write_trace(path, true);
    assert_int_equal(known_function(1), 2);
    check_frames(path, "test_tracesymbols+0x", "there+0x10");
    assert_int_equal(snd_trace_symbolize(path, false, &stats, &err), SONDE_OK);
    assert_int_equal(stats.addresses, 2);
    assert_int_equal(stats.unnamed, 1);
    assert_int_equal(stats.unreadable, 1);
    check_frames(path, "known_function", "there+0x10");
    stat(path, &first);
    assert_int_equal(snd_trace_symbolize(path, false, &stats, &err), SONDE_OK);
    assert_int_equal(stats.addresses, 1); /* what is known is not looked up again */
    stat(path, &second);
    assert_int_equal(first.st_size, second.st_size);
    check_frames(path, "known_function", "there+0x10");
    unlink(path);
}

/* The room that its process never used is at the end of the file. */
static void write_unfinished(char *path, off_t room)
{
    struct stat st;

    close(mkstemp(path));
    unlink(path);
    write_trace(path, false);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size + room), 0);
}

/* Ids of its names follow those of the file, not those that a reader makes of addresses without a name. */
static void test_many_addresses_without_a_name(void **state)
{
    char                 path[] = "/tmp/sonde-symbols-XXXXXX", own[4096] = "";
    struct synth_options options = { .pid = 5000 };
    struct sonde_error   err;

    (void)state;
    close(mkstemp(path));
    unlink(path);
    uint64_t      address = own_address(own);
    struct synth *s = synth_new(path, &options);
    uint32_t      file = synth_string(s, "/not/there"), nowhere = 0;
    for (uint32_t i = 70000; i-- > 0;)
        nowhere = synth_address(s, file, 0, 0x10 + i);
    uint32_t frame = synth_address(s, synth_string(s, own), 0, address);
    synth_stack(s, synth_stack(s, 0, nowhere), frame);
    synth_close(s, true);
    assert_int_equal(snd_trace_symbolize(path, false, NULL, &err), SONDE_OK);
    check_frames(path, "known_function", "there+0x10");
    unlink(path);
}

static void test_a_file_that_is_being_written_stays_as_it_is(void **state)
{
    char               path[] = "/tmp/sonde-symbols-XXXXXX";
    struct sonde_error err;
    struct stat        before, after;

    (void)state;
    write_unfinished(path, 0);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(snd_trace_symbolize(path, false, NULL, &err), SONDE_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    check_frames(path, "test_tracesymbols+0x", "there+0x10");
    unlink(path);
}

static void test_a_file_whose_process_was_killed_gets_symbols(void **state)
{
    static const off_t rooms[] = { 0, 1, 3 * SND_GRAIN };
    struct sonde_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        char                    path[] = "/tmp/sonde-symbols-XXXXXX";
        struct snd_symbol_stats stats;
        write_unfinished(path, rooms[i]);
        assert_int_equal(snd_trace_symbolize(path, true, &stats, &err), SONDE_OK);
        assert_int_equal(stats.addresses, 2);
        check_frames(path, "known_function", "there+0x10");
        assert_int_equal(snd_trace_symbolize(path, true, &stats, &err), SONDE_OK);
        assert_int_equal(stats.addresses, 1);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols_are_written_once),
        cmocka_unit_test(test_many_addresses_without_a_name),
        cmocka_unit_test(test_a_file_that_is_being_written_stays_as_it_is),
        cmocka_unit_test(test_a_file_whose_process_was_killed_gets_symbols),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
