/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/kinds.c: which kinds of events a trace has, and the walks that this spares. */
#include "read/walk/kinds.h"

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
        cmocka_unit_test(spares_walks),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
