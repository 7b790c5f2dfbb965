/* SPDX-License-Identifier: Apache-2.0 */
/* Totals, threads, steps, and every key of the ledger. */
#include <errno.h>

#include "format/fields.h"
#include "format/layout.h"
#include "format/limits.h"
#include "model/summary/summary.h"
#include "read/reader.h"
#include "scratch.h"
#include "snd_config.h"
#include "sonde/export.h"

static struct sonde_summary *build(struct sonde_trace *trace)
{
    struct sonde_summary *summary;

    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    return summary;
}

/* Steps at 100, 200, .., of which the first `busy` have a range. */
static void record_steps(const char *name, uint64_t steps, uint64_t busy)
{
    struct synth *s = synth_new(scratch_path(name), NULL);
    uint32_t      t = synth_thread(s, "main", 0), a = synth_string(s, "a");

    for (uint64_t i = 0; i < steps; i++) {
        synth_step(s, t, 100 + i * 100, i);
        if (i < busy) {
            synth_begin(s, t, 110 + i * 100, a, 0);
            synth_end(s, t, 120 + i * 100);
        }
    }
    synth_close(s, true);
}

static void what_follows_the_last_step_is_none(void **state)
{
    static const struct {
        const char *name;
        uint64_t    steps, busy, ran;
    } cases[] = {
        { "whole", 3, 3, 3 }, { "after", 3, 2, 2 }, { "single", 1, 0, 1 }, { "bare", 3, 0, 3 }
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        record_steps(cases[i].name, cases[i].steps, cases[i].busy);
        struct sonde_trace   *trace = scratch_open(scratch_path(cases[i].name));
        struct sonde_summary *m = build(trace);
        uint64_t              ran = 0;
        for (size_t k = 0; k < cases[i].steps; k++)
            ran += sonde_summary_step(m, k)->part == SONDE_STEP_WHOLE;
        assert_int_equal(ran, cases[i].ran);
        sonde_summary_free(m);
        sonde_trace_close(trace);
    }
}

/* Of a program that says that its marks end steps: what follows the last is none, whatever ran in it. */
static void marks_may_end_steps(void **state)
{
    static const enum sonde_step_part parts[] = { SONDE_STEP_FIRST, SONDE_STEP_COMPILES,
                                                  SONDE_STEP_WHOLE, SONDE_STEP_AFTER };
    static const char *const names[] = { "a", "_compile.compile_inner (dynamo_timed)", "a", "a" };

    (void)state;
    for (int ended = 0; ended < 2; ended++) {
        const char   *path = scratch_path(ended ? "ended" : "open");
        struct synth *s = synth_new(path, NULL);
        uint32_t      t = synth_thread(s, "main", 0);
        synth_meta(s, "steps.first", "8");
        if (ended)
            synth_meta(s, "steps.ended", "10");
        for (uint64_t i = 0; i < 4; i++) {
            synth_step(s, t, 100 + i * 100, 7 + i);
            synth_begin(s, t, 110 + i * 100, synth_string(s, names[i]), 0);
            synth_end(s, t, 120 + i * 100);
        }
        synth_close(s, true);
        struct sonde_trace   *trace = scratch_open(path);
        struct sonde_summary *m = build(trace);
        assert_int_equal(sonde_summary_step_count(m), 4);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(sonde_summary_step(m, i)->part,
                             ended && i == 3 ? SONDE_STEP_WHOLE : parts[i]);
        sonde_summary_free(m);
        sonde_trace_close(trace);
    }
}

/* A stack that begins with what stands for the frames that were left out. */
static void the_ledger_tells_of_deep_stacks_and_compiled_code(void **state)
{
    const char   *path = scratch_path("deep");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), file = synth_string(s, "a.py");
    uint32_t      left_out = synth_string(s, SND_FRAMES_LEFT_OUT), stack = 0;
    uint32_t      compiled = synth_string(s, "## Call CompiledFxGraph abc ##");

    (void)state;
    stack = synth_stack(s, 0, synth_frame(s, left_out, 0, 0));
    for (uint32_t i = 1; i <= SND_PYTHON_FRAMES_MAX; i++)
        stack = synth_stack(s, stack, synth_frame(s, file, file, i));
    synth_begin(s, t, 10, compiled, 0);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "Net"));
    synth_end(s, t, 20);
    synth_begin(s, t, 30, compiled, 0); /* modules were not recorded */
    synth_end(s, t, 40);
    synth_begin(s, t, 50, compiled, 0); /* the compiler said which module it is */
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "Net"));
    synth_begin(s, t, 51, file, 0);
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "Net.a"));
    synth_attr(s, t, SND_ATTR_COMPILED, synth_string(s, "a|Net.a"));
    synth_end(s, t, 52);
    synth_end(s, t, 60);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(path);
    struct sonde_summary *m = build(trace);
    assert_int_equal(ledger_count(m, "deep_stacks"), 1);
    assert_int_equal(ledger_count(m, "compiled_modules"), 1);
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

static void totals_threads_and_steps(void **state)
{
    struct synth *s = synth_new(scratch_path("totals"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      a = synth_string(s, "a"), b = synth_string(s, "b");

    (void)state;
    synth_begin(s, u, 5, b, 0); /* before the first step: in none */
    synth_end(s, u, 50);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t at = 100 + i * 100;
        synth_step(s, t, at, i + 7);
        synth_begin(s, t, at + 10, a, 0);
        synth_begin(s, t, at + 20, b, 0);
        synth_end(s, t, at + 30);
        synth_end(s, t, at + 60);
        synth_begin(s, u, at + 15, b, 0);
        synth_end(s, u, at + 90);
    }
    synth_mark(s, t, 400, a, 0);
    synth_counter(s, t, 410, a, 1);
    synth_alloc(s, t, 420, 0, 1, 1);
    synth_free(s, t, 430, 0, 1, 1);
    synth_sample(s, t, 440, 0, 0, 0, 1);
    synth_close(s, true);
    struct sonde_trace                *trace = scratch_open(scratch_path("totals"));
    struct sonde_summary              *m = build(trace);
    const struct sonde_summary_totals *totals = sonde_summary_totals(m);
    assert_int_equal(totals->events, 2 + 3 * 7 + 5);
    assert_int_equal(totals->ranges, 10);
    assert_int_equal(totals->steps, 3);
    assert_int_equal(totals->marks, 1);
    assert_int_equal(totals->counters, 1);
    assert_int_equal(totals->allocs, 1);
    assert_int_equal(totals->frees, 1);
    assert_int_equal(totals->samples, 1);
    assert_int_equal(totals->span_ns, 435);
    assert_int_equal(sonde_summary_thread_count(m), 2);
    assert_int_equal(sonde_summary_thread(m, 0)->busy_ns, 150);
    assert_int_equal(sonde_summary_thread(m, 0)->ranges, 6);
    assert_int_equal(sonde_summary_thread(m, 0)->samples + sonde_summary_thread(m, 1)->samples, 1);
    assert_int_equal(sonde_summary_thread(m, 0)->span_ns, 340);
    assert_int_equal(sonde_summary_thread(m, 1)->busy_ns, 45 + 3 * 75);
    assert_int_equal(sonde_summary_step_count(m), 3);
    for (size_t i = 0; i < 3; i++) {
        const struct sonde_step_row *step = sonde_summary_step(m, i);
        assert_int_equal(step->number, i + 7);
        assert_int_equal(step->start_ns, 100 + i * 100);
        assert_int_equal(step->duration_ns, i < 2 ? 100 : 140);
        assert_int_equal(step->ranges, 3);
    }
    assert_int_equal(sonde_summary_ledger_count(m), 0); /* nothing is missing */
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

/* Steps that two threads mark in turn are the process's: each lasts until the next, whoever marks it. */
static void steps_of_two_threads(void **state)
{
    struct synth *s = synth_new(scratch_path("turns"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);

    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        synth_step(s, t, 1000 + 1000 * i, 2 * i);
    for (uint64_t i = 0; i < 3; i++)
        synth_step(s, u, 1300 + 1000 * i, 2 * i + 1);
    synth_mark(s, t, 5000, synth_string(s, "end"), 0);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(scratch_path("turns"));
    struct sonde_summary *m = build(trace);
    assert_int_equal(sonde_summary_step_count(m), 6);
    for (size_t i = 0; i < 6; i++) {
        const struct sonde_step_row *step = sonde_summary_step(m, i);
        assert_int_equal(step->number, i);
        assert_int_equal(step->start_ns, 1000 + 1000 * (i / 2) + 300 * (i % 2));
        assert_int_equal(step->duration_ns, i == 5 ? 5000 - 3300 : i % 2 ? 700 : 300);
    }
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

/* As a recording begins that is started right before a module is called. */
static void a_module_called_before_any_range_has_the_time_of_its_thread(void **state)
{
    struct synth *s = synth_new(scratch_path("called"), NULL);
    uint32_t      t = synth_thread(s, "main", 40);

    (void)state;
    synth_attr(s, t, SND_ATTR_MODULE_CALL, synth_string(s, "Net"));
    synth_begin(s, t, 100, synth_string(s, "aten::mm"), 0);
    synth_end(s, t, 200);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(scratch_path("called"));
    struct sonde_summary *m = build(trace);
    int64_t               span = 200 - sonde_trace_thread(trace, 0)->start_ns;
    assert_int_equal(sonde_summary_totals(m)->span_ns, span);
    assert_int_equal(sonde_summary_thread(m, 0)->span_ns, span);
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

/* A stack of Python frames that reaches the limit, below the frame that stands for the others. */
static void deep_stacks_are_counted(void **state)
{
    static const struct {
        const char *outermost;
        uint32_t    frames;
        uint64_t    count;
    } cases[] = {
        { SND_FRAMES_LEFT_OUT, SND_PYTHON_FRAMES_MAX - 1, 0 },
        { SND_FRAMES_LEFT_OUT, SND_PYTHON_FRAMES_MAX, 1 },
        { SND_FRAMES_LEFT_OUT, SND_PYTHON_FRAMES_MAX + 1,
          1 }, /* the whole one that is part of it */
        { "(outer frames left over)", SND_PYTHON_FRAMES_MAX, 0 },
        { "main", SND_PYTHON_FRAMES_MAX, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth *s = synth_new(scratch_path("deep"), NULL);
        uint32_t      t = synth_thread(s, "main", 0), file = synth_string(s, "f.py");
        uint32_t      frame = synth_frame(s, synth_string(s, "f"), file, 1);
        uint32_t at = synth_stack(s, 0, synth_frame(s, synth_string(s, cases[i].outermost), 0, 0));
        for (uint32_t k = 0; k < cases[i].frames; k++)
            at = synth_stack(s, at, frame);
        synth_mark(s, t, 10, synth_string(s, "a"), at);
        synth_close(s, true);
        struct sonde_trace   *trace = scratch_open(scratch_path("deep"));
        struct sonde_summary *m = build(trace);
        if (ledger_count(m, "deep_stacks") != cases[i].count)
            fail_msg("%zu: %u", i, (unsigned)ledger_count(m, "deep_stacks"));
        sonde_summary_free(m);
        sonde_trace_close(trace);
    }
}

static void the_ledger_tells_all(void **state)
{
    struct synth_options    options = { .flags = SND_FILE_LIMIT, .grain = 4096 };
    struct synth           *s = synth_new(scratch_path("ledger"), &options);
    uint32_t                t = synth_thread(s, "main", 0), a = synth_string(s, "a");
    const uint64_t          later[2] = { SND_KIND(31, 2), 0 };
    struct snd_file_header *h = synth_header(s);
    static const struct {
        const char *key;
        uint64_t    count;
    } expected[] = {
        { "lost_events", 11 + 6 },  { "limit_reached", 1 },      { "failed_reserves", 3 },
        { "recycled_chunks", 4 },   { "recycled_events", 5 },    { "not_closed", 1 },
        { "unfinished_ranges", 1 }, { "ends_without_begin", 1 }, { "warmup_events", 1 },
        { "lost_names", 7 },        { "cut_names", 8 },          { "missing_ids", 1 },
        { "unmatched_frees", 1 },   { "half_links", 2 },         { "clock_backwards", 1 },
        { "unknown_chunks", 1 },    { "unknown_events", 1 },
    };

    (void)state;
    h->lost_events = 11;
    h->failed_reserves = 3;
    h->last_os_error = EDQUOT;
    h->recycled_chunks = 4;
    h->recycled_events = 5;
    h->lost_names = 7;
    h->cut_names = 8;
    h->valid_from = synth_raw_clock(s, 50);
    synth_mark(s, t, 10, a, 0); /* warm-up */
    synth_end(s, t, 100);
    synth_raw(s, t, later, 2);
    synth_free(s, t, 110, 0, 0x1, 5);
    synth_link(s, t, 120, SND_LINK_FLOW, false, 1);
    synth_link(s, t, 121, SND_LINK_FLOW, true, 1);
    synth_link(s, t, 122, SND_LINK_FLOW, true, 2);
    synth_link(s, t, 123, SND_LINK_FWD_BWD, true, 1); /* another kind: another arrow */
    synth_mark(s, t, 100000000, a, 0);
    synth_mark(s, t, 200, a, 0);           /* backwards */
    synth_begin(s, t, 100000001, 4711, 0); /* a name nobody told, never ended */
    synth_chunk(s, 99, "x", 1);
    synth_thread_done(s, t, 300, 6);
    synth_close(s, false);
    struct sonde_trace   *trace = scratch_open(scratch_path("ledger"));
    struct sonde_summary *m = build(trace);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        if (ledger_count(m, expected[i].key) != expected[i].count)
            fail_msg("%s: %u", expected[i].key, (unsigned)ledger_count(m, expected[i].key));
    assert_int_equal(sonde_summary_ledger_count(m), sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < sonde_summary_ledger_count(m); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(m, i);
        assert_true(strlen(item->text) > 20 && strlen(item->text) < sizeof item->text - 1);
        if (strcmp(item->key, "failed_reserves") == 0)
            assert_non_null(strstr(item->text, strerror(EDQUOT)));
    }
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

static void the_ledger_tells_of_python_calls(void **state)
{
    const char   *path = scratch_path("calls");
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), a = synth_string(s, "a");

    (void)state;
    synth_meta(s, "python.functions.switched", "another tool took the place; calls are missing");
    synth_meta(s, "python.functions.unbalanced", "3");
    synth_meta(s, "python.functions.lost", "4");
    synth_mark(s, t, 10, a, 0);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(path);
    struct sonde_summary *m = build(trace);
    assert_int_equal(sonde_summary_ledger_count(m), 3);
    assert_int_equal(ledger_count(m, "unseen_returns"), 3);
    assert_int_equal(ledger_count(m, "lost_calls"), 4);
    assert_int_equal(ledger_count(m, "switched_calls"), 1);
    assert_non_null(strstr(sonde_summary_ledger(m, 0)->text, "took the place; calls are missing"));
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

static void damage_is_in_the_ledger(void **state)
{
    struct synth_options options = { .grain = 4096 };
    const char          *path = scratch_path("damage");
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0);
    size_t               size;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        synth_end(s, t, 100 + i);
        synth_seal(s, t);
    }
    synth_close(s, true);
    uint8_t *bytes = scratch_load(path, &size);
    bytes[100] ^= 1;                    /* the header */
    bytes[2 * 4096 + 64 + 1] ^= 1;      /* the first lane chunk: its checksum */
    memset(bytes + 3 * 4096, 0xaa, 64); /* the second: gone */
    scratch_save(path, bytes, size);
    free(bytes);
    struct sonde_trace   *trace = scratch_open(path);
    struct sonde_summary *m = build(trace);
    assert_int_equal(ledger_count(m, "damaged_header"), 1);
    assert_int_equal(ledger_count(m, "damaged_chunks"), 1);
    assert_int_equal(ledger_count(m, "skipped_bytes"), 4096);
    sonde_summary_free(m);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------- walks */

/* Memory of a trace: taken; taken and freed, without its size; none. */
enum walked { TAKES, FREES, NO_MEMORY };

/* A trace of steps, ranges, samples and memory. */
static struct sonde_trace *open_walked(enum walked memory)
{
    struct synth *s = synth_new(scratch_path("walks"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t      stack = synth_stack(s, 0,
                                      synth_frame(s, synth_string(s, "f"), synth_string(s, "f.py"), 1));

    for (uint32_t i = 0; i < 10; i++) {
        synth_step(s, t, 100 * i, i);
        synth_begin(s, t, 100 * i + 1, synth_string(s, "a"), 0);
        if (memory != NO_MEMORY)
            synth_alloc(s, t, 100 * i + 2, SND_DEVICE(0, 0), 16 * (i + 1), 64);
        synth_end(s, t, 100 * i + 50);
        synth_sample(s, t, 100 * i + 55, stack, SONDE_SAMPLE_ON_CPU, 0, 100);
        if (memory == FREES)
            synth_free(s, u, 100 * i + 60, SND_DEVICE(0, 0), i == 9 ? 1 : 16 * (i + 1), 0);
    }
    synth_close(s, true);
    return scratch_open(scratch_path("walks"));
}

/* How often a report of the view walks over the trace. */
static uint32_t count_walks(const char *view, enum sonde_report_format format, enum walked memory)
{
    struct sonde_trace         *trace = open_walked(memory);
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    options.view = view;
    options.format = format;
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_null(trace->waiting);
    if (format == SONDE_REPORT_JSON && memory == FREES) /* the ledger is there */
        assert_non_null(strstr(text.bytes, "\"unmatched_frees\":1"));
    uint32_t walks = trace->walks;
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
    return walks;
}

static uint32_t count_export_walks(const char *format, enum walked memory)
{
    struct sonde_trace *trace = open_walked(memory);
    struct sonde_buffer bytes = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&bytes);

    assert_int_equal(sonde_export(trace, format, NULL, &sink, NULL), SONDE_OK);
    assert_null(trace->waiting);
    assert_null(trace->kept);
    uint32_t walks = trace->walks;
    sonde_buffer_release(&bytes);
    sonde_trace_close(trace);
    return walks;
}

/* Tables come from one walk. What views of the page have in common is made once. */
static void exports_walk_seldom(void **state)
{
    (void)state;
    for (enum walked memory = TAKES; memory <= NO_MEMORY; memory++) {
        assert_int_equal(count_export_walks("sqlite", memory), 1);
        if (SND_HAVE_PAGE)
            assert_int_equal(count_export_walks("html", memory), 5);
    }
}

/* The ledger under every view comes from the walk that the view makes itself. */
static void reports_walk_once(void **state)
{
    static const struct {
        const char *view;
        uint32_t    walks;
    } views
        [] = {
            { "ops", 1 },     { "tree", 1 },   { "modules", 1 }, { "threads", 1 },
            { "ledger", 1 },  { "depths", 1 }, { "samples", 1 }, { "functions", 1 },
            { "memory", 1 },  /* its course is kept until its time is known */
            { "steps", 2 },   /* ranges are counted once the steps are known */
            { "summary", 1 }, /* the advice waits for the same walk */
            { "advice", 1 },
        };

    (void)state;
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        for (enum walked m = TAKES; m <= FREES; m++) {
            assert_int_equal(count_walks(views[i].view, SONDE_REPORT_TEXT, m), views[i].walks);
            assert_int_equal(count_walks(views[i].view, SONDE_REPORT_JSON, m), views[i].walks);
            assert_int_equal(count_walks(views[i].view, SONDE_REPORT_CSV, m), views[i].walks);
        }
    assert_int_equal(count_walks("tensors", SONDE_REPORT_CSV, FREES), 0); /* of tables alone, ... */
    assert_int_equal(count_walks("tensors", SONDE_REPORT_TEXT, FREES),
                     1); /* ... and the ledger's */
    assert_int_equal(count_walks("tensor-lines", SONDE_REPORT_CSV, FREES), 0); /* it has no lines */
    assert_int_equal(count_walks("tensor-lines", SONDE_REPORT_TEXT, FREES), 1);
}

/* Whether a frame is Python's is recorded: a script's name need not end in ".py". */
static void advice_finds_the_line_of_a_script_of_any_name(void **state)
{
    struct synth *s = synth_new(scratch_path("script"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      file = synth_string(s, "/usr/local/bin/train"), main = synth_string(s, "main");
    uint32_t libc = synth_frame_in(s, synth_string(s, "poll"), 0, synth_string(s, "/build/io.py"),
                                   9, true);
    uint32_t stack = synth_stack(s, synth_stack(s, 0, synth_frame_in(s, main, 1, file, 33, false)),
                                 libc);
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "enumerate(DataLoader)#_SingleProcessX.__next__"), 0);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_end(s, t, 1100);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("script"));
    options.view = "advice";
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_non_null(strstr(text.bytes, "/usr/local/bin/train:33"));
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

/* Of a trace that has one to lend, nobody makes another; and a report rides with nobody. */
static void a_shared_summary_is_lent(void **state)
{
    struct synth               *s = synth_new(scratch_path("shared"), NULL);
    uint32_t                    t = synth_thread(s, "main", 0);
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);

    (void)state;
    synth_step(s, t, 50, 1);
    synth_begin(s, t, 100, synth_string(s, "a"), 0);
    synth_free(s, t, 110, SND_DEVICE(0, 0), 1, 0);
    synth_close(s, true);
    struct sonde_trace   *trace = scratch_open(scratch_path("shared"));
    struct sonde_summary *first = build(trace);
    snd_summary_share(first);
    uint32_t before = trace->walks;
    for (int i = 0; i < 2; i++) {
        struct sonde_summary *lent = build(trace);
        assert_ptr_equal(lent, first);
        sonde_summary_free(lent);
    }
    options.format = SONDE_REPORT_JSON;
    options.view = "ledger";
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    assert_non_null(strstr(text.bytes, "\"unmatched_frees\":1"));
    assert_int_equal(trace->walks, before);
    sonde_summary_free(first);
    struct sonde_summary *own = build(trace);
    assert_int_not_equal(trace->walks, before);
    sonde_summary_free(own);
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_walk_once),
        cmocka_unit_test(exports_walk_seldom),
        cmocka_unit_test(advice_finds_the_line_of_a_script_of_any_name),
        cmocka_unit_test(a_shared_summary_is_lent),
        cmocka_unit_test(totals_threads_and_steps),
        cmocka_unit_test(what_follows_the_last_step_is_none),
        cmocka_unit_test(marks_may_end_steps),
        cmocka_unit_test(the_ledger_tells_of_deep_stacks_and_compiled_code),
        cmocka_unit_test(steps_of_two_threads),
        cmocka_unit_test(deep_stacks_are_counted),
        cmocka_unit_test(a_module_called_before_any_range_has_the_time_of_its_thread),
        cmocka_unit_test(the_ledger_tells_all),
        cmocka_unit_test(the_ledger_tells_of_python_calls),
        cmocka_unit_test(damage_is_in_the_ledger),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
