/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/kinds.c: which kinds of events a trace has, and the walks that this spares. */
#include "read/walk/kinds.h"

#include <sys/stat.h>

#include "format/fields.h"
#include "scratch.h"
#include "sonde/export.h"

/* A range with an attribute in another, which `ends_first` ends before it. */
static struct sonde_trace *make(const char *name, bool ends_first)
{
    struct synth *s = synth_new(scratch_path(name), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    synth_begin(s, t, 10, synth_string(s, "outer"), 0);
    synth_begin(s, t, 20, synth_string(s, "inner"), 0);
    synth_attr(s, t, SND_ATTR_FLOPS, 7);
    if (ends_first)
        synth_end_at(s, t, 30, 1);
    else
        synth_end(s, t, 30);
    synth_end(s, t, 40);
    synth_close(s, true);
    return scratch_open(scratch_path(name));
}

static void knows_what_is_there(void **state)
{
    struct sonde_trace     *plain = make("plain", false), *crossed = make("crossed", true);
    const struct snd_kinds *kinds, *again;

    (void)state;
    assert_int_equal(snd_trace_kinds(plain, &kinds, NULL), SONDE_OK);
    assert_true(kinds->events[SND_EV_END] && kinds->attrs[SND_ATTR_FLOPS]);
    assert_false(kinds->events[SND_EV_END_AT] || kinds->events[SND_EV_SAMPLE]);
    assert_false(kinds->attrs[SND_ATTR_MACS]);
    assert_int_equal(snd_trace_kinds(plain, &again, NULL), SONDE_OK);
    assert_ptr_equal(again, kinds);
    assert_int_equal(snd_trace_kinds(crossed, &kinds, NULL), SONDE_OK);
    assert_true(kinds->events[SND_EV_END_AT]);
    assert_false(kinds->unsized_free);
    sonde_trace_close(plain);
    sonde_trace_close(crossed);
}

/* Whether sizes of frees must be found is known before memory is added up. */
static void knows_frees_without_a_size(void **state)
{
    (void)state;
    for (uint64_t size = 0; size <= 64; size += 64) {
        struct synth           *s = synth_new(scratch_path("frees"), NULL);
        const struct snd_kinds *kinds;
        uint32_t                t = synth_thread(s, "main", 0);
        synth_alloc(s, t, 10, 0, 0x10, 64);
        synth_free(s, t, 20, 0, 0x10, size);
        synth_free(s, t, 30, 0, 0, 0); /* of nothing */
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("frees"));
        assert_int_equal(snd_trace_kinds(trace, &kinds, NULL), SONDE_OK);
        assert_int_equal(kinds->unsized_free, size == 0);
        sonde_trace_close(trace);
    }
}

/* One range with a key, and what ends it: `by` is a thread, `key` the key that it names. */
struct keyed {
    uint64_t begun_with, ended_with;
    uint32_t by;
    bool     shares; /* the second thread goes on in the first one's chunk */
    bool     crosses;
};

/* Whether ends must be looked up in other threads is known before ranges are put together. */
static void knows_ends_of_other_threads(void **state)
{
    const uint64_t     large = UINT64_C(1) << 60; /* in a word of its own */
    const struct keyed cases[] = {
        { 7, 7, 0, false, false },    { large, large, 0, false, false }, { 7, 7, 1, false, true },
        { 7, 7, 1, true, true },      { large, large, 1, false, true },  { 7, 8, 0, false, true },
        { large, 7, 0, false, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth           *s = synth_new(scratch_path("keyed"), NULL);
        const struct snd_kinds *kinds;
        uint32_t threads[2] = { synth_thread(s, "main", 0), synth_thread(s, "other", 0) };
        synth_begin(s, threads[0], 10, synth_string(s, "range"), 0);
        synth_attr(s, threads[0], SND_ATTR_KEY, cases[i].begun_with);
        if (cases[i].shares)
            synth_share(s, threads[0], threads[1]);
        synth_end_key(s, threads[cases[i].by], 20, cases[i].ended_with);
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("keyed"));
        assert_int_equal(snd_trace_kinds(trace, &kinds, NULL), SONDE_OK);
        assert_true(kinds->attrs[SND_ATTR_KEY] && kinds->events[SND_EV_END_KEY]);
        assert_int_equal(kinds->crossing_end, cases[i].crosses);
        sonde_trace_close(trace);
    }
}

/* A key is the process's own, and done with once it has ended a range. */
static void knows_whose_key_it_is(void **state)
{
    static const struct synth_options other = { .pid = 77 };

    (void)state;
    for (unsigned processes = 1; processes <= 2; processes++) {
        char folder[64];
        snprintf(folder, sizeof folder, "folder%u", processes);
        assert_int_equal(mkdir(scratch_path(folder), 0700), 0);
        for (unsigned i = 0; i < processes; i++) {
            char          path[96];
            struct synth *s;
            snprintf(path, sizeof path, "%s/%u.sonde", folder, i);
            s = synth_new(scratch_path(path), i ? &other : NULL);
            uint32_t t = synth_thread(s, "main", 0), name = synth_string(s, "range");
            for (uint64_t turn = 0; turn < 2 && i == 0; turn++) {
                synth_begin(s, t, 10 + 100 * turn, name, 0);
                synth_attr(s, t, SND_ATTR_KEY, 7);
                if (turn == 0 || processes == 1)
                    synth_end_key(s, t, 20 + 100 * turn, 7);
            }
            if (i == 1)
                synth_end_key(s, t, 300, 7);
            synth_close(s, true);
        }
        const struct snd_kinds *kinds;
        struct sonde_trace     *trace = scratch_open(scratch_path(folder));
        assert_int_equal(snd_trace_kinds(trace, &kinds, NULL), SONDE_OK);
        assert_int_equal(kinds->crossing_end, processes == 2);
        sonde_trace_close(trace);
    }
}

static uint32_t count_walks(struct sonde_trace *trace, const char *format)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    uint32_t            before = trace->walks;

    assert_int_equal(sonde_export(trace, format, NULL, &sink, NULL), SONDE_OK);
    sonde_buffer_release(&text);
    return trace->walks - before;
}

static void spares_walks(void **state)
{
    struct sonde_trace *plain = make("plain", false), *crossed = make("crossed", true);

    (void)state;
    assert_int_equal(count_walks(plain, "perfetto"), 1);
    assert_int_equal(count_walks(crossed, "perfetto"), 2);
    assert_int_equal(count_walks(plain, "speedscope"), 1);
    sonde_trace_close(plain);
    sonde_trace_close(crossed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_is_there),
        cmocka_unit_test(knows_frees_without_a_size),
        cmocka_unit_test(knows_ends_of_other_threads),
        cmocka_unit_test(knows_whose_key_it_is),
        cmocka_unit_test(spares_walks),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
