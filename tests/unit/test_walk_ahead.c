/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/common/walk_ahead.c: exports whose walk has a thread of its own write what they write on one processor, to the byte;
 * and end when their reader does.
 *
 * A thread is for large traces. These are small ones of every kind, which a megabyte of nothing makes large.
 */
#include <sched.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "cases.h"
#include "export/common/walk_ahead.h"
#include "full_disk.h"
#include "scratch.h"
#include "sonde/export.h"
#include "turns.h"

static const struct {
    const char *name;
    uint32_t    from, to; /* N */
} given[] = {
    { "chance", 1, 24 },       { "chance_job", 1, 4 }, { "variety", 1, 16 },
    { "threads", 0, 0 },       { "losses", 0, 1 },     { "async", 0, 0 },
    { "two_processes", 0, 0 }, { "left_open", 0, 0 },  { "links", 0, 0 },
    { "memory", 0, 0 },        { "op_details", 0, 1 }, { "torch", 0, 0 },
    { "stacks", 0, 0 },        { "calls", 0, 0 },      { "python", 0, 0 },
    { "samples", 0, 0 },       { "job_gpu", 0, 1 },    { "gpu", 0, 0 },
    { "gpu_memory", 0, 0 },    { "job", 31, 32 },      { "steps", 0, 0 },
    { "counters", 0, 0 },      { "tensors", 0, 0 },    { "stack_counters", 0, 0 },
};
static const char *const formats[] = { "csv", "chrome", "perfetto", "sqlite", "html" };
#define LARGE_FILES 4 /* the first: a page is compressed */

/* ------------------------------------------------------------------- processors */

static cpu_set_t all;

/* The first that the process may use, or all of them. */
static void use_processors(bool one)
{
    cpu_set_t first;
    int       number = 0;

    CPU_ZERO(&first);
    while (!CPU_ISSET(number, &all))
        number++;
    CPU_SET(number, &first);
    assert_int_equal(sched_setaffinity(0, sizeof all, one ? &first : &all), 0);
}

/* ----------------------------------------------------------------------- traces */

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Of a folder, each file. */
static void grow_files(const char *path)
{
    char command[600];

    snprintf(command, sizeof command, "find '%s' -type f -exec truncate -s +1M '{}' +", path);
    assert_int_equal(system(command), 0);
}

/* A file, or a folder of processes. */
static void remove_trace(void)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", scratch_path("t"));
    assert_int_equal(system(command), 0);
}

static void make_trace(const char *name, uint32_t n)
{
    remove_trace();
    assert_true(make_case(name, scratch_path("t"), n == 0 ? USUAL_N : n));
    grow_files(scratch_path("t"));
}

/* ---------------------------------------------------------------------- exports */

/* Opens it anew: what one export has made and left there is not the next one's. */
static enum sonde_status export_to(const char *format, const struct sonde_sink *sink, bool one)
{
    struct sonde_error err;

    use_processors(one);
    struct sonde_trace *trace = scratch_open(scratch_path("t"));
    assert_int_equal(snd_ahead_pays(trace), !one);
    enum sonde_status status = sonde_export(trace, format, NULL, sink, &err);
    sonde_trace_close(trace);
    use_processors(false);
    return status;
}

static void compare_format(const char *name, uint32_t n, const char *format)
{
    struct sonde_buffer here = { 0 }, ahead = { 0 };
    struct sonde_sink   to_here = sonde_sink_buffer(&here), to_ahead = sonde_sink_buffer(&ahead);
    enum sonde_status   expected = export_to(format, &to_here, true);

    if (export_to(format, &to_ahead, false) != expected || here.length != ahead.length ||
        memcmp(here.bytes, ahead.bytes, here.length) != 0)
        fail_msg("%s %u as %s is another file with a thread", name, (unsigned)n, format);
    sonde_buffer_release(&here);
    sonde_buffer_release(&ahead);
}

static void export_folder(const char *to, bool one)
{
    use_processors(one);
    struct sonde_trace *trace = scratch_open(scratch_path("t"));
    assert_int_equal(sonde_export_folder(trace, "parquet", NULL, to, NULL), SONDE_OK);
    sonde_trace_close(trace);
    use_processors(false);
}

static void compare_folders(void)
{
    char command[600];

    export_folder(scratch_path("one"), true);
    export_folder(scratch_path("all"), false);
    snprintf(command, sizeof command, "diff -r '%s' '%s' && rm -rf '%s' '%s'", scratch_path("one"),
             scratch_path("all"), scratch_path("one"), scratch_path("all"));
    assert_int_equal(system(command), 0);
}

static void files_are_the_same(void **state)
{
    uint32_t number = 0;

    (void)state;
    if (CPU_COUNT(&all) < 2)
        skip();
    for (size_t i = 0; i < SND_COUNT_OF(given); i++)
        for (uint32_t n = given[i].from; n <= given[i].to; n++) {
            if (turns_leave_out(number++, 2))
                continue;
            make_trace(given[i].name, n);
            for (size_t k = 0; k < SND_COUNT_OF(formats); k++)
                compare_format(given[i].name, n, formats[k]);
            compare_folders();
        }
}

/*
 * Chrome's file has a range that starts with its parent after that: X waits for A, which ends before B inside it. So B, and Y
 * that waits for it, come to be where X was among those that wait.
 */
static void ranges_that_end_early_are_the_same(void **state)
{
    (void)state;
    if (CPU_COUNT(&all) < 2)
        skip();
    remove_trace();
    struct synth *s = synth_new(scratch_path("t"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    synth_begin(s, t, 10, synth_string(s, "A"), 0);
    synth_begin(s, t, 10, synth_string(s, "X"), 0);
    synth_end(s, t, 12);
    synth_begin(s, t, 20, synth_string(s, "B"), 0);
    synth_begin(s, t, 20, synth_string(s, "Y"), 0);
    synth_end_at(s, t, 30, 2);
    synth_end(s, t, 40);
    synth_end(s, t, 50);
    synth_close(s, true);
    grow_files(scratch_path("t"));
    for (size_t k = 0; k < SND_COUNT_OF(formats); k++)
        compare_format("ranges that end early", 0, formats[k]);
}

/* -------------------------------------------------------------------- early ends */

/* More than all blocks hold: the walk waits for a reader that goes away. */
static void a_full_disk_ends_it(void **state)
{
    (void)state;
    if (CPU_COUNT(&all) < 2)
        skip();
    remove_trace();
    struct synth *s = synth_new(scratch_path("t"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "range");
    for (uint32_t i = 0; i < 100000; i++) {
        synth_begin(s, t, 100 + 10 * i, name, 0);
        synth_end(s, t, 105 + 10 * i);
    }
    synth_close(s, true);
    grow_files(scratch_path("t"));
    for (size_t k = 0; k < LARGE_FILES; k++)
        for (size_t bytes = 0; bytes < 300000; bytes += 99999) {
            size_t            room = bytes;
            struct sonde_sink sink = { full_disk_write, &room };
            assert_int_equal(export_to(formats[k], &sink, false), SONDE_E_IO);
        }
}

#define RECORDS 100000u

struct records {
    uint32_t          count, put;
    enum sonde_status status;
};

/* Of 8 bytes and their number; every 10,000th is larger than a block. */
static size_t size_of(uint32_t number)
{
    return number % 10000 == 9999 ? SND_BLOCK_BYTES + 8 * (number / 1000)
                                  : 8 + 8 * ((size_t)number % 50);
}

static enum sonde_status put_records(void *user, struct snd_ahead_writer *writer,
                                     struct sonde_error *err)
{
    struct records *records = user;

    for (; records->put < records->count; records->put++) {
        uint64_t *room = snd_ahead_room(writer, size_of(records->put) + 64);
        if (!room)
            break;
        memset(room, 'x', size_of(records->put));
        room[0] = records->put;
        snd_ahead_put(writer, size_of(records->put));
    }
    if (records->status != SONDE_OK && err) {
        err->status = records->status;
        strcpy(err->message, "the walk failed");
    }
    return records->status;
}

/* Takes records until number `last` has come; returns how many came. */
static uint32_t take_records(struct snd_ahead *ahead, uint32_t last)
{
    const struct snd_block *block;
    uint32_t                number = 0;

    while (number <= last && (block = snd_ahead_next(ahead)) != NULL)
        for (size_t at = 0; at < block->length; at += size_of(number++)) {
            uint64_t got;
            memcpy(&got, block->bytes + at, sizeof got);
            assert_int_equal(got, number);
        }
    return number;
}

static void records_come_in_order(void **state)
{
    struct records     records = { .count = RECORDS };
    struct snd_ahead   ahead;
    struct sonde_error err;

    (void)state;
    assert_true(snd_ahead_begin(&ahead, put_records, &records));
    assert_int_equal(take_records(&ahead, UINT32_MAX), RECORDS);
    assert_int_equal(snd_ahead_end(&ahead, &err), SONDE_OK);
}

static void what_the_walk_says_arrives(void **state)
{
    struct records     records = { .count = 3, .status = SONDE_E_FORMAT };
    struct snd_ahead   ahead;
    struct sonde_error err;

    (void)state;
    assert_true(snd_ahead_begin(&ahead, put_records, &records));
    assert_int_equal(take_records(&ahead, UINT32_MAX), 3);
    assert_int_equal(snd_ahead_end(&ahead, &err), SONDE_E_FORMAT);
    assert_string_equal(err.message, "the walk failed");
    assert_true(snd_ahead_begin(&ahead, put_records, &records));
    assert_int_equal(snd_ahead_end(&ahead, NULL), SONDE_E_FORMAT);
}

static void a_reader_may_stop(void **state)
{
    struct records   records = { .count = UINT32_MAX };
    struct snd_ahead ahead;

    (void)state;
    assert_true(snd_ahead_begin(&ahead, put_records, &records));
    uint32_t taken = take_records(&ahead, 1000);
    assert_true(taken > 1000);
    snd_ahead_stop(&ahead);
    assert_int_equal(snd_ahead_end(&ahead, NULL), SONDE_OK);
    assert_true(records.put >= taken && records.put < RECORDS);
}

/* A small trace is read where it is; so is a large one on one processor (compare_format()). */
static void it_does_not_always_pay(void **state)
{
    (void)state;
    assert_true(make_case("threads", scratch_path("small"), USUAL_N));
    assert_true(is_file(scratch_path("small")));
    struct sonde_trace *trace = scratch_open(scratch_path("small"));
    assert_false(snd_ahead_pays(trace));
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_the_same),
        cmocka_unit_test(ranges_that_end_early_are_the_same),
        cmocka_unit_test(a_full_disk_ends_it),
        cmocka_unit_test(records_come_in_order),
        cmocka_unit_test(what_the_walk_says_arrives),
        cmocka_unit_test(a_reader_may_stop),
        cmocka_unit_test(it_does_not_always_pay),
    };

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
