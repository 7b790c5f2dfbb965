/* SPDX-License-Identifier: Apache-2.0 */
/* record/thread/mark.c: values at the edges of the fields that events have for them. */
#include "base/count_of.h"
#include "format/fields.h"
#include "format/layout.h"
#include "unit/recorded.h"

struct seen {
    struct sonde_event list[64];
    size_t             count;
};

static bool keep(const struct sonde_event *event, void *user)
{
    struct seen *seen = user;

    assert_true(seen->count < 64);
    seen->list[seen->count++] = *event;
    return true;
}

static struct sonde_trace *stop_and_look(const char *name, struct seen *seen)
{
    recorded_stop();
    struct sonde_trace *trace = recorded_open(name);
    seen->count = 0;
    recorded_walk(trace, keep, seen);
    return trace;
}

/* A value takes one word or two: it is read as it was given. */
static void test_attributes(void **state)
{
    static const uint64_t values[] = {
        0, 1, SND_ATTR_SMALL_MAX - 1, SND_ATTR_SMALL_MAX, SND_ATTR_SMALL_MAX + 1, UINT64_MAX
    };
    struct sonde_options options = recorded_options("attributes.sonde");
    struct seen          seen;

    (void)state;
    recorded_start(&options);
    sonde_begin("range");
    for (size_t i = 0; i < SND_COUNT_OF(values); i++)
        sonde_attr(SONDE_ATTR_BYTES, values[i]);
    sonde_end();
    struct sonde_trace *trace = stop_and_look("attributes.sonde", &seen);
    assert_int_equal(seen.count, SND_COUNT_OF(values) + 2);
    for (size_t i = 0; i < SND_COUNT_OF(values); i++) {
        assert_int_equal(seen.list[i + 1].kind, SONDE_EVENT_ATTR);
        assert_true(seen.list[i + 1].attr.value == values[i]);
    }
    sonde_trace_close(trace);
}

/* Rounded; what is no count of operations is not recorded. */
static void test_flops(void **state)
{
    static const struct {
        double   given;
        bool     is_kept;
        uint64_t read;
    } cases[] = {
        { -1, false, 0 },
        { -0.1, false, 0 },
        { 0, true, 0 },
        { 0.4, true, 0 },
        { 0.5, true, 1 },
        { 1.6, true, 2 },
        { 1.8446744073709548e19, true, 18446744073709547520u },
        { 18446744073709549568.0, false, 0 },
        { 1e30, false, 0 },
    };
    struct sonde_options options = recorded_options("flops.sonde");
    struct seen          seen;
    size_t               at = 1;

    (void)state;
    recorded_start(&options);
    sonde_begin("range");
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        sonde_flops(cases[i].given);
    sonde_end();
    struct sonde_trace *trace = stop_and_look("flops.sonde", &seen);
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        if (cases[i].is_kept)
            assert_true(seen.list[at++].attr.value == cases[i].read);
    assert_int_equal(seen.count, at + 1);
    assert_int_equal(seen.list[at].kind, SONDE_EVENT_END);
    sonde_trace_close(trace);
}

/* A call that found no place is a range all the same, and so is what it calls. */
static void test_call_without_a_place(void **state)
{
    struct sonde_options options = recorded_options("call.sonde");
    struct seen          seen;

    (void)state;
    recorded_start(&options);
    sonde_begin_call(0, 7);
    sonde_begin("inner");
    sonde_end();
    sonde_end();
    sonde_mark("after");
    struct sonde_trace                *trace = stop_and_look("call.sonde", &seen);
    static const enum sonde_event_kind kinds[] = { SONDE_EVENT_BEGIN, SONDE_EVENT_BEGIN,
                                                   SONDE_EVENT_END, SONDE_EVENT_END,
                                                   SONDE_EVENT_MARK };
    size_t                             at = 0;
    for (size_t i = 0; i < seen.count; i++)
        if (seen.list[i].kind != SONDE_EVENT_ATTR)
            assert_int_equal(seen.list[i].kind, kinds[at++]);
    assert_int_equal(at, SND_COUNT_OF(kinds));
    assert_int_equal(recorded_ledger(trace, "ends_without_begin"), 0);
    sonde_trace_close(trace);
}

/* The samples' count is kept within its field, and given once though the time takes several events. */
static void test_long_samples(void **state)
{
    static const struct {
        uint64_t covered_ns;
        uint32_t samples, events;
    } cases[] = {
        { 0, 1, 1 },
        { UINT32_MAX - 1, 2, 1 },
        { UINT32_MAX, 3, 1 },
        { (uint64_t)UINT32_MAX + 1, 4, 2 },
        { 2 * (uint64_t)UINT32_MAX, 5, 2 },
        { 2 * (uint64_t)UINT32_MAX + 1, 6, 3 },
        { 1, SND_SAMPLE_COUNT_MAX - 1, 1 },
        { 1, SND_SAMPLE_COUNT_MAX, 1 },
        { 1, SND_SAMPLE_COUNT_MAX + 1, 1 },
        { 1, UINT32_MAX, 1 },
    };
    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        for (int is_run = 0; is_run < 2; is_run++) {
            struct sonde_options options = recorded_options("samples.sonde");
            struct seen          seen;
            uint64_t             covered = 0, samples = 0;
            recorded_start(&options);
            uint64_t                now = sonde_clock();
            struct sonde_sample     sample = { .struct_size = sizeof sample,
                                               .state = 0x103,
                                               .samples = cases[i].samples,
                                               .covered_ns = cases[i].covered_ns };
            struct sonde_sample_run run = { .struct_size = sizeof run,
                                            .state =
                                                0x103, /* as much of it as there is a field for */
                                            .samples = cases[i].samples,
                                            .begin = now - cases[i].covered_ns,
                                            .end = now,
                                            .read = now };
            if (is_run)
                sonde_sample_run(&run);
            else
                sonde_sample(&sample);
            struct sonde_trace *trace = stop_and_look("samples.sonde", &seen);
            assert_int_equal(seen.count, cases[i].events);
            for (size_t k = 0; k < seen.count; k++) {
                assert_int_equal(seen.list[k].kind, SONDE_EVENT_SAMPLE);
                assert_int_equal(seen.list[k].sample.state, 3);
                covered += seen.list[k].sample.covered_ns;
                samples += seen.list[k].sample.count;
            }
            if (!is_run) /* a run's are ticks of the clock */
                assert_true(covered == cases[i].covered_ns);
            assert_int_equal(samples, cases[i].samples < SND_SAMPLE_COUNT_MAX
                                          ? cases[i].samples
                                          : SND_SAMPLE_COUNT_MAX);
            sonde_trace_close(trace);
        }
}

/* A run that ends before it begins has no duration. */
static void test_run_backwards(void **state)
{
    struct sonde_options options = recorded_options("backwards.sonde");
    struct seen          seen;

    (void)state;
    recorded_start(&options);
    uint64_t                now = sonde_clock();
    struct sonde_sample_run run = {
        .struct_size = sizeof run, .samples = 2, .begin = now, .end = now - 1000, .read = now
    };
    sonde_sample_run(&run);
    struct sonde_trace *trace = stop_and_look("backwards.sonde", &seen);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.list[0].sample.covered_ns, 0);
    assert_int_equal(seen.list[0].sample.count, 2);
    sonde_trace_close(trace);
}

/* An event by its words is read as if its own call had recorded it; what is none is refused. */
static void test_put(void **state)
{
    static const struct {
        uint8_t kind;
        size_t  words;
    } refused[] = {
        { SND_EV_LINK, 1 },     { SND_EV_LINK, 3 },   { SND_EV_BEGIN, 1 },
        { SND_EV_SPAN, 1 },     { SND_EV_CALL, 1 },   { SND_EV_API, 2 },
        { SND_EV_END, 0 },      { SND_EV_END_AT, 1 }, { SND_EV_GAP, 1 },
        { SND_EV_THREAD, 1 },   { SND_EV_NAME, 7 },   { SND_EV_RECORD, 7 },
        { SND_EV_ATTR, 0 },     { SND_EV_ATTR64, 1 }, { SND_EV_RECORD_SHORT, 3 },
        { SND_KIND(31, 3), 2 },
    };
    const uint64_t       words[8] = { SND_PAIR(2, 1), 77 };
    struct sonde_options options = recorded_options("put.sonde");
    struct seen          seen;

    (void)state;
    assert_true(sonde_put(SND_EV_LINK, words, 2)); /* nothing records */
    recorded_start(&options);
    assert_true(sonde_put(SND_EV_LINK, words, 2));
    sonde_link(2, true, 77);
    for (size_t i = 0; i < SND_COUNT_OF(refused); i++)
        assert_false(sonde_put(refused[i].kind, words, refused[i].words));
    struct sonde_trace *trace = stop_and_look("put.sonde", &seen);
    assert_int_equal(seen.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(seen.list[i].kind, SONDE_EVENT_LINK);
        assert_int_equal(seen.list[i].link.kind, 2);
        assert_true(seen.list[i].link.arrives);
        assert_int_equal(seen.list[i].link.id, 77);
    }
    assert_true(seen.list[0].time_ns <= seen.list[1].time_ns);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes),           cmocka_unit_test(test_flops),
        cmocka_unit_test(test_call_without_a_place), cmocka_unit_test(test_long_samples),
        cmocka_unit_test(test_run_backwards),        cmocka_unit_test(test_put),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
