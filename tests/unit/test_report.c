/* SPDX-License-Identifier: Apache-2.0 */
/* sonde_report and sonde_export as a C program calls them; the texts are in tests/golden. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/layout.h"
#include "sonde/sonde.h"
#include "synth.h"

static struct sonde_trace *trace;

static int open_trace(void **state)
{
    char path[] = "/tmp/sonde-test-XXXXXX";
    int  fd = mkstemp(path);

    (void)state;
    close(fd);
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    for (uint64_t i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "range %u", (unsigned)i);
        synth_begin(s, t, 100 * i, synth_string(s, name), 0);
        synth_end(s, t, 100 * i + 50);
    }
    synth_close(s, true);
    int rc = sonde_trace_open(path, &trace, NULL) == SONDE_OK ? 0 : -1;
    unlink(path);
    return rc;
}

static int close_trace(void **state)
{
    (void)state;
    sonde_trace_close(trace);
    return 0;
}

static bool write_nothing(void *user, const void *data, size_t length)
{
    (void)user;
    (void)data;
    (void)length;
    errno = ENOSPC;
    return false;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void has_defaults(void **state)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);

    (void)state;
    assert_int_equal(sonde_report(trace, NULL, &sink, NULL), SONDE_OK);
    assert_int_equal(count_lines(text.bytes), 3 + 100 + 1 + 1);
    assert_non_null(strstr(text.bytes, "# of Calls"));
    sonde_buffer_release(&text);
}

/* Formats of samples, Python functions or benchmarks, of which the trace has none. */
static bool needs_more(const char *format)
{
    static const char *const formats[] = { "perf-script", "pstats",    "lprof",
                                           "mprof",       "benchmark", "benchmark-json" };

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(format, formats[i]) == 0)
            return true;
    return false;
}

/* Of an export to a full disk. */
static enum sonde_status expected_status(const struct sonde_exporter_info *info)
{
    if (info->missing)
        return SONDE_E_UNSUPPORTED;
    if (sonde_exporter_is_folder(info->name))
        return SONDE_E_ARGUMENT;
    return needs_more(info->name) ? SONDE_E_STATE : SONDE_E_IO;
}

static void reports_a_full_disk(void **state)
{
    struct sonde_sink                 sink = { write_nothing, NULL };
    struct sonde_error                err;
    const struct sonde_exporter_info *info;

    (void)state;
    for (int format = SONDE_REPORT_TEXT; format <= SONDE_REPORT_CSV; format++) {
        struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
        options.rows = -1;
        options.format = (enum sonde_report_format)format;
        assert_int_equal(sonde_report(trace, &options, &sink, &err), SONDE_E_IO);
        assert_int_equal(err.os_error, ENOSPC);
    }
    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++) {
        /* Self times are under a microsecond, so there is nothing to fold. */
        if (strcmp(info->name, "folded") == 0)
            continue;
        enum sonde_status expected = expected_status(info);
        assert_int_equal(sonde_export(trace, info->name, NULL, &sink, &err), expected);
        if (expected == SONDE_E_IO)
            assert_int_equal(err.os_error, ENOSPC);
    }
}

/* Even one operation is; none is a dash. */
static void one_operation_is_shown(void **state)
{
    char                path[] = "/tmp/sonde-test-XXXXXX";
    int                 fd = mkstemp(path);
    struct synth       *s = synth_new(path, NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct sonde_trace *own;

    (void)state;
    synth_begin(s, t, 1000, synth_string(s, "has_one"), 0);
    synth_attr(s, t, SND_ATTR_FLOPS, 1);
    synth_end(s, t, 2000);
    synth_begin(s, t, 3000, synth_string(s, "has_none"), 0);
    synth_end(s, t, 4000);
    synth_close(s, true);
    assert_int_equal(sonde_trace_open(path, &own, NULL), SONDE_OK);
    assert_int_equal(sonde_report(own, NULL, &sink, NULL), SONDE_OK);
    const char *one = strstr(text.bytes, "has_one"), *none = strstr(text.bytes, "has_none");
    assert_non_null(one);
    assert_non_null(none);
    assert_null(memmem(one, strcspn(one, "\n"), "--", 2));
    assert_non_null(memmem(none, strcspn(none, "\n"), "--", 2));
    sonde_buffer_release(&text);
    sonde_trace_close(own);
    unlink(path);
    close(fd);
}

static void refuses_what_is_not_there(void **state)
{
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_error          err;
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;

    (void)state;
    options.view = "nonsense";
    assert_int_equal(sonde_report(trace, &options, &sink, &err), SONDE_E_ARGUMENT);
    assert_non_null(
        strstr(err.message,
               "summary, advice, ops, tree, roofline, model, modules, depths, graph, layers, "
               "functions, lines, "
               "line-memory, source, samples, asm, counters, range-counters, function-counters, "
               "kernels, gpu, memory, heap, heap-functions, heap-moments, tensors, "
               "tensor-lines, threads, steps, ranks, stragglers, collectives, critical, ledger"));
    options.view = NULL;
    options.format = (enum sonde_report_format)77;
    assert_int_equal(sonde_report(trace, &options, &sink, &err), SONDE_E_ARGUMENT);
    assert_int_equal(sonde_export(trace, "nonsense", NULL, &sink, &err), SONDE_E_ARGUMENT);
    assert_non_null(strstr(err.message,
                           "chrome, perfetto, folded, speedscope, pprof, perf-script, pstats, "
                           "callgrind, lprof, mprof, json, csv"));
    assert_int_equal(text.length, 0);
    sonde_buffer_release(&text);
}

/* A program built against a header with fewer members must not have its stack read past them. */
static void an_older_caller_gets_the_defaults(void **state)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    (void)state;
    options.struct_size = offsetof(struct sonde_report_options, rows);
    options.rows = 1;
    options.header = (const char *)8; /* not its own: must not be looked at */
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_int_equal(count_lines(text.bytes), 3 + 100 + 1 + 1);
    sonde_buffer_release(&text);
}

static void refuses(enum sonde_status status, const struct sonde_error *err, const char *init)
{
    assert_int_equal(status, SONDE_E_ARGUMENT);
    assert_non_null(strstr(err->message, "struct_size"));
    assert_non_null(strstr(err->message, init));
}

/* Options that state no size, or more than there is, were filled without their INIT macro. */
static void refuses_options_without_their_size(void **state)
{
    const size_t              wrong[] = { 0, 1, 1 << 20 };
    struct sonde_trace *const pair[] = { trace, trace };
    struct sonde_averages    *averages;
    struct sonde_buffer       text = { 0 };
    struct sonde_sink         sink = sonde_sink_buffer(&text);
    struct sonde_error        err;
    double                    margin;

    (void)state;
    assert_int_equal(sonde_averages_new(trace, NULL, &averages, &err), SONDE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct sonde_report_options report = { .struct_size = wrong[i], .rows = 1 };
        struct sonde_export_options exported = { .struct_size = wrong[i], .no_source = true };
        struct sonde_diff_options   diff = { .struct_size = wrong[i], .fail_if = "time>+5%" };
        refuses(sonde_report(trace, &report, &sink, &err), &err, "SONDE_REPORT_OPTIONS_INIT");
        refuses(sonde_averages_table(trace, averages, &report, 0, &sink, &err), &err,
                "SONDE_REPORT_OPTIONS_INIT");
        refuses(sonde_diff(pair, 1, 1, NULL, &report, &sink, NULL, &err), &err,
                "SONDE_REPORT_OPTIONS_INIT");
        refuses(sonde_diff(pair, 1, 1, &diff, NULL, &sink, NULL, &err), &err,
                "SONDE_DIFF_OPTIONS_INIT");
        refuses(sonde_diff_margin(pair, 1, 1, &diff, &margin, &err), &err,
                "SONDE_DIFF_OPTIONS_INIT");
        refuses(sonde_export(trace, "csv", &exported, &sink, &err), &err,
                "SONDE_EXPORT_OPTIONS_INIT");
        refuses(sonde_export_folder(trace, "parquet", &exported, "x", &err), &err,
                "SONDE_EXPORT_OPTIONS_INIT");
        refuses(sonde_diff_page(pair, 1, 1, &exported, &sink, &err), &err,
                "SONDE_EXPORT_OPTIONS_INIT");
    }
    assert_int_equal(text.length, 0);
    sonde_averages_free(averages);
    sonde_buffer_release(&text);
}

/* ------------------------------------------------------- what a trace has to show */

enum content {
    RANGE = 1,
    CALL = 2,
    WORK = 4,
    SAMPLE = 8,
};

/* Tallies of one kind, each of `often`; no kind: none. */
static void check_views(unsigned content, uint32_t kind, uint64_t often, const char *expected)
{
    static const struct snd_work_record work = { .name = 1, .kind = SND_WORK_KERNEL };
    const uint64_t                      words[SND_HEAP_WORDS] = { often, often, often, often };
    char                                path[] = "/tmp/sonde-test-XXXXXX", found[200] = "";
    const char                         *views[SONDE_CONTENT_VIEWS];
    struct sonde_trace                 *own;

    close(mkstemp(path));
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "name");
    uint32_t      frame = synth_frame_in(s, name, 1, name, 1, false);
    if (content & WORK)
        synth_work(s, &work);
    if (kind)
        synth_tally(s, kind, frame, 0, words, kind == SND_TALLY_HEAP_PROCESS ? 4 : 2);
    if (content & CALL) {
        synth_begin(s, t, 100, name, 0);
        synth_attr(s, t, SND_ATTR_FRAME, frame);
        synth_end(s, t, 200);
    }
    if (content & SAMPLE)
        synth_sample(s, t, 300, synth_stack(s, 0, frame), 3 | 1 << 8, t, 100);
    if (content & RANGE) {
        synth_begin(s, t, 400, name, 0);
        synth_end(s, t, 500);
    }
    synth_close(s, true);
    assert_int_equal(sonde_trace_open(path, &own, NULL), SONDE_OK);
    unlink(path);
    size_t count = sonde_views_with_content(own, views, SONDE_CONTENT_VIEWS);
    for (size_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "",
                 views[i]);
    if (strcmp(found, expected) != 0)
        fail_msg("%u, %u: '%s', not '%s'", content, kind, found, expected);
    const char *first = "none";
    assert_int_equal(sonde_views_with_content(own, &first, 1), count);
    assert_string_equal(first, count ? views[0] : "none");
    assert_string_equal(sonde_default_view(own), count ? views[0] : "ops");
    sonde_trace_close(own);
}

static void views_of_what_is_there(void **state)
{
    (void)state;
    check_views(0, 0, 0, "");
    check_views(RANGE, 0, 0, "ops");
    check_views(WORK, 0, 0, "kernels");
    check_views(RANGE | WORK, 0, 0, "ops kernels");
    check_views(CALL, 0, 0, "functions ops");
    check_views(CALL | RANGE, 0, 0, "ops functions");
    check_views(SAMPLE, 0, 0, "samples functions");
    check_views(SAMPLE | RANGE, 0, 0, "ops samples functions");
    check_views(0, SND_TALLY_CALLS, 0, "functions");
    check_views(SAMPLE, SND_TALLY_CALLS, 1, "functions samples");
    check_views(0, SND_TALLY_LINE, 0, "lines");
    check_views(0, SND_TALLY_LINE_MEMORY, 0, "line-memory");
    check_views(0, SND_TALLY_HEAP_PROCESS, 0, "heap");
    check_views(RANGE, SND_TALLY_SAMPLER, 0, "ops"); /* it sampled nothing */
    check_views(RANGE, SND_TALLY_SAMPLER, 1, "ops samples functions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(reports_a_full_disk),
        cmocka_unit_test(one_operation_is_shown),
        cmocka_unit_test(refuses_what_is_not_there),
        cmocka_unit_test(an_older_caller_gets_the_defaults),
        cmocka_unit_test(refuses_options_without_their_size),
        cmocka_unit_test(views_of_what_is_there),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
