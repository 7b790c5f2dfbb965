/* SPDX-License-Identifier: Apache-2.0 */
/* export/python/mprof_file.c: values that are no memory, children, names of more than one word. */
#include <math.h>

#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

#define MIB (1024.0 * 1024.0)
#define SECOND 1000000000u

/* Two files of a folder: a program and its child. */
static void write_process(const char *path, uint32_t pid, const double *values, size_t count)
{
    struct synth_options options = { .pid = pid };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0), rss = synth_string(s, "process.rss");
    static const char   *names[] = { "a b\tc", "", "plain" };

    for (size_t i = 0; i < count; i++)
        synth_counter(s, t, (i + 1) * SECOND, rss, values[i]);
    synth_counter(s, t, 90u * (uint64_t)SECOND, synth_string(s, "process.rsS"), 5 * MIB);
    for (size_t i = 0; i < 3; i++) {
        synth_begin(s, t, (100 + i) * (uint64_t)SECOND, synth_string(s, names[i]), 0);
        if (i < 2)
            synth_attr(s, t, SND_ATTR_SCOPE, SONDE_SCOPE_USER + 1);
    }
    for (size_t i = 0; i < 3; i++)
        synth_end(s, t, (110 + i) * (uint64_t)SECOND);
    synth_close(s, true);
}

static void what_is_memory(void **state)
{
    const double        values[] = { 0, -1, MIB, NAN, 1e18, 3 * MIB, INFINITY };
    const double        child[] = { 2 * MIB };
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    char                command[300];

    (void)state;
    snprintf(command, sizeof command, "mkdir %s", scratch_path("folder"));
    assert_int_equal(system(command), 0);
    write_process(scratch_path("folder/10.sonde"), 10, values, sizeof values / sizeof values[0]);
    write_process(scratch_path("folder/11.sonde"), 11, child, 1);
    struct sonde_trace *trace = scratch_open(scratch_path("folder"));
    assert_int_equal(sonde_export(trace, "mprof", NULL, &sink, NULL), SONDE_OK);
    const char *lines = strchr(text.bytes, '\n') + 1;
    assert_string_equal(lines, "MEM 0.000000 1700000001.0000\n"
                               "CHLD 0 2.000000 1700000001.0000\n"
                               "MEM 1.000000 1700000003.0000\n"
                               "MEM 3.000000 1700000006.0000\n"
                               "FUNC _ 3.0000 1700000101.0000 3.0000 1700000111.0000 2\n"
                               "FUNC _ 2.0000 1700000101.0000 2.0000 1700000111.0000 2\n"
                               "FUNC a_b_c 3.0000 1700000100.0000 3.0000 1700000112.0000 1\n"
                               "FUNC a_b_c 2.0000 1700000100.0000 2.0000 1700000112.0000 1\n");
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_memory) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
