/* SPDX-License-Identifier: Apache-2.0 */
/* export/svg/svg_select.c: of more than a picture has room for, the longest ranges, the busiest threads, the outer depths. */
#include "export/svg/svg_select.h"

#include <sys/stat.h>

#include "scratch.h"
#include "sonde/export.h"

static struct sonde_buffer draw(const char *path)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct sonde_trace *trace = scratch_open(path);

    assert_int_equal(sonde_export(trace, "svg", NULL, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return text;
}

static unsigned count(const struct sonde_buffer *text, const char *what)
{
    unsigned n = 0;

    for (const char *at = text->bytes; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static bool has(const struct sonde_buffer *text, const char *what)
{
    return strstr(text->bytes, what) != NULL;
}

/*
 * Ranges of all lengths in a row that changes places at random: 1200 pixels for 3500, so that neighbours hide
 * each other; each tenth thread has few, so that those which are dropped are seen to be the shortest.
 */
static void the_longest_ranges_are_drawn(void **state)
{
    enum { MORE = 500, ALL = SND_SVG_RANGES + MORE };
    struct synth *s = synth_new(scratch_path("many"), NULL);
    uint32_t      threads[20];
    uint64_t      ns[20] = { 0 };

    (void)state;
    for (size_t i = 0; i < 20; i++)
        threads[i] = synth_thread(s, "t", 0);
    /* 37 and ALL have no common factor: every length from 1 to ALL us once, in no order */
    for (uint64_t i = 0; i < ALL; i++) {
        uint64_t length = 1 + i * 37 % ALL;
        char     name[32];
        snprintf(name, sizeof name, "takes%04u_", (unsigned)length);
        synth_span(s, threads[i % 20], ns[i % 20], synth_string(s, name), length * 1000);
        ns[i % 20] += length * 1000 + 100;
    }
    synth_close(s, true);
    struct sonde_buffer text = draw(scratch_path("many"));
    /* the longest that was left out is seen nowhere, the shortest that was kept unless a neighbour hides it */
    for (unsigned length = 1; length <= MORE; length++) {
        char name[32];
        snprintf(name, sizeof name, "takes%04u_", length);
        if (has(&text, name))
            fail_msg("%s is drawn", name);
    }
    for (unsigned length = MORE + 1; length <= ALL; length++) {
        char name[32];
        snprintf(name, sizeof name, "takes%04u_", length);
        if (length > 2000 && !has(&text, name)) /* more than a pixel wide */
            fail_msg("%s is not drawn", name);
    }
    char     note[64];
    unsigned drawn = count(&text, "<rect");
    snprintf(note, sizeof note, "not drawn: shorter ranges: %u", ALL - drawn);
    assert_in_range(drawn, 1500, SND_SVG_RANGES);
    if (!has(&text, note))
        fail_msg("no '%s': %s", note, strstr(text.bytes, "not drawn"));
    sonde_buffer_release(&text);
}

static void the_busiest_threads_are_drawn(void **state)
{
    enum { MORE = 3 };
    struct synth *s = synth_new(scratch_path("threads"), NULL);

    (void)state;
    for (uint32_t i = 0; i < SND_SVG_THREADS + MORE; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread%02u_", i);
        uint32_t t = synth_thread(s, name, 0);
        /* two of a top range, one inside; those with the least time are in the middle */
        uint64_t length = i >= 10 && i < 10 + MORE ? 1000 : 2000 + i;
        synth_span(s, t, 1000, synth_string(s, "first"), length * 1000);
        synth_begin(s, t, 10000000, synth_string(s, "second"), 0);
        synth_span(s, t, 10000100, synth_string(s, "inside"), 500 * 1000);
        synth_end(s, t, 10000000 + length * 1000);
    }
    synth_close(s, true);
    struct sonde_buffer text = draw(scratch_path("threads"));
    assert_int_equal(count(&text, "<rect"), 3 * SND_SVG_THREADS);
    for (uint32_t i = 0; i < SND_SVG_THREADS + MORE; i++) {
        char name[32];
        snprintf(name, sizeof name, "thread%02u_", i);
        assert_int_equal(has(&text, name), i < 10 || i >= 10 + MORE);
    }
    assert_true(has(&text, "not drawn: ranges of threads with less time: 9"));
    sonde_buffer_release(&text);
}

static void the_outer_depths_are_drawn(void **state)
{
    enum { DEEP = SND_SVG_DEPTH + 5 };
    struct synth *s = synth_new(scratch_path("deep"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "nested");

    (void)state;
    for (uint64_t i = 0; i < DEEP; i++)
        synth_begin(s, t, 1000 + i, name, 0);
    for (uint64_t i = 0; i < DEEP; i++)
        synth_end(s, t, 1000000 + i);
    synth_close(s, true);
    struct sonde_buffer text = draw(scratch_path("deep"));
    assert_int_equal(count(&text, "<rect"), SND_SVG_DEPTH);
    assert_true(has(&text, "not drawn: ranges nested deeper: 5"));
    sonde_buffer_release(&text);
}

/* That with most time; of equal ones the first that has ranges. */
static void one_process_is_drawn(void **state)
{
    (void)state;
    for (unsigned longer = 0; longer < 3; longer++) {
        char folder[256], file[280];
        snprintf(folder, sizeof folder, "%s%u", scratch_path("processes"), longer);
        assert_int_equal(mkdir(folder, 0700), 0);
        for (uint32_t i = 0; i < 3; i++) {
            struct synth_options options = { .pid = 100 + i };
            snprintf(file, sizeof file, "%s/%u", folder, i);
            struct synth *s = synth_new(file, &options);
            uint32_t      t = synth_thread(s, "main", 0);
            char          name[16];
            snprintf(name, sizeof name, "of%u_", i);
            if (i > 0 || longer == 0) /* else the first has none */
                synth_span(s, t, 1000, synth_string(s, name), i == longer ? 2000000 : 1000000);
            synth_close(s, true);
        }
        struct sonde_buffer text = draw(folder);
        for (unsigned i = 0; i < 3; i++) {
            char name[16];
            snprintf(name, sizeof name, "of%u_", i);
            assert_int_equal(has(&text, name), i == longer);
        }
        sonde_buffer_release(&text);
    }
}

/* Ranges that took no time are drawn all the same, rather than a process without any. */
static void ranges_without_length_are_ranges(void **state)
{
    const char *folder = scratch_path("no length");

    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 100 + i };
        struct synth *s = synth_new(scratch_path(i ? "no length/1" : "no length/0"), &options);
        uint32_t      t = synth_thread(s, "main", 0);
        if (i == 1)
            synth_span(s, t, 1000, synth_string(s, "instant"), 0);
        synth_close(s, true);
    }
    struct sonde_buffer text = draw(folder);
    assert_true(has(&text, "instant"));
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_ranges_are_drawn),
        cmocka_unit_test(the_busiest_threads_are_drawn),
        cmocka_unit_test(the_outer_depths_are_drawn),
        cmocka_unit_test(one_process_is_drawn),
        cmocka_unit_test(ranges_without_length_are_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
