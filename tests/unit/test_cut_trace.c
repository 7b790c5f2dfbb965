/* SPDX-License-Identifier: Apache-2.0 */
/* model/file/cut_trace.c: which events and counts of a trace are one session's. */
#include "model/file/cut_trace.h"

#include "base/count_of.h"
#include "format/fields.h"
#include "scratch.h"
#include "sonde/pack.h"

static struct sonde_trace *open_with(const char *key, const char *value)
{
    struct synth *s = synth_new(scratch_path("cut"), NULL);

    synth_string(s, "mine");
    synth_string(s, "other");
    synth_string(s, "min");
    if (key)
        synth_meta(s, key, value);
    synth_close(s, true);
    return scratch_open(scratch_path("cut"));
}

static bool has(struct snd_cut *cut, uint32_t thread, uint8_t kind, uint64_t time)
{
    const uint64_t words[8] = { SND_WORD0(kind, time) };

    return snd_cut_has_event(cut, thread, words);
}

/* Both ends of a span are part of it; spans may lie around the end of the clock's 56 bits. */
static void times(void **state)
{
    const struct sonde_span spans[] = { { 100, 200 },
                                        { 300, 300 },
                                        { SND_TIME_MASK - 5, SND_TIME_MASK + 5 } };
    struct sonde_cut        asked = SONDE_CUT_INIT;
    struct sonde_trace     *trace = open_with(NULL, NULL);
    struct snd_cut          cut;
    static const struct {
        uint64_t time;
        bool     kept;
    } cases[] = { { 99, false },
                  { 100, true },
                  { 150, true },
                  { 200, true },
                  { 201, false },
                  { 299, false },
                  { 300, true },
                  { 301, false },
                  { 0, true },
                  { 4, true },
                  { 5, false },
                  { SND_TIME_MASK - 5, true },
                  { SND_TIME_MASK - 6, false } };

    (void)state;
    asked.spans = spans;
    asked.span_count = SND_COUNT_OF(spans);
    asked.counters = true;
    snd_cut_init(&cut, &asked, trace);
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        if (has(&cut, 0, SND_EV_COUNTER, cases[i].time) != cases[i].kept)
            fail_msg("%llu", (unsigned long long)cases[i].time);
    asked.span_count = 0;
    assert_false(has(&cut, 0, SND_EV_COUNTER, 150));
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

/* What was asked for is kept, of its times; a change of thread and a gap always. */
static void kinds(void **state)
{
    const struct sonde_span span = { 100, 200 };
    struct sonde_trace     *trace = open_with(NULL, NULL);

    (void)state;
    for (unsigned bits = 0; bits < 16; bits++) {
        struct sonde_cut asked = SONDE_CUT_INIT;
        struct snd_cut   cut;
        asked.spans = &span;
        asked.span_count = 1;
        asked.samples = bits & 1;
        asked.counters = bits & 2;
        asked.ranges = bits & 4;
        asked.all = bits & 8;
        snd_cut_init(&cut, &asked, trace);
        assert_true(has(&cut, 0, SND_EV_THREAD, 1) && has(&cut, 0, SND_EV_GAP, 1));
        assert_int_equal(has(&cut, 0, SND_EV_SAMPLE, 150), asked.samples);
        assert_false(has(&cut, 0, SND_EV_SAMPLE, 250));
        assert_int_equal(has(&cut, 0, SND_EV_COUNTER, 150), asked.counters);
        assert_false(has(&cut, 0, SND_EV_COUNTER, 250));
        /* a run of samples is of the time that it stands for, not of that when it was written */
        const uint64_t run[5] = { SND_WORD0(SND_EV_SAMPLE_RUN, 250), 0, 0, 60, 0 };
        const uint64_t before[5] = { SND_WORD0(SND_EV_SAMPLE_RUN, 150), 0, 0, 60, 0 };
        assert_int_equal(snd_cut_has_event(&cut, 0, run), asked.samples);
        assert_false(snd_cut_has_event(&cut, 0, before));
        assert_int_equal(has(&cut, 0, SND_EV_MARK, 150), asked.all);
        assert_false(has(&cut, 0, SND_EV_MARK, 250));
        assert_int_equal(has(&cut, 0, SND_EV_BEGIN, 150), asked.ranges || asked.all);
        snd_cut_release(&cut);
    }
    sonde_trace_close(trace);
}

/* A range is the session's if it began in it: so are its attributes and its end, whenever that is; on its own thread. */
static void ranges(void **state)
{
    const struct sonde_span span = { 100, 200 };
    struct sonde_cut        asked = SONDE_CUT_INIT;
    struct sonde_trace     *trace = open_with(NULL, NULL);
    struct snd_cut          cut;

    (void)state;
    asked.spans = &span;
    asked.span_count = 1;
    asked.ranges = true;
    snd_cut_init(&cut, &asked, trace);
    assert_false(has(&cut, 7, SND_EV_END, 110)); /* of nothing that was seen */
    assert_false(has(&cut, 7, SND_EV_ATTR, 0));
    assert_false(has(&cut, 7, SND_EV_BEGIN, 90));
    assert_false(has(&cut, 7, SND_EV_ATTR, 0));
    assert_true(has(&cut, 7, SND_EV_BEGIN, 110));
    assert_true(has(&cut, 7, SND_EV_ATTR, 0));
    assert_true(has(&cut, 7, SND_EV_ATTR64, 0));
    assert_false(has(&cut, 8, SND_EV_ATTR, 0));
    assert_false(has(&cut, 8, SND_EV_BEGIN, 210));
    assert_true(has(&cut, 7, SND_EV_END, 300));
    assert_false(has(&cut, 7, SND_EV_ATTR64, 0));
    assert_false(has(&cut, 7, SND_EV_END, 310)); /* of the one that began before */
    assert_false(has(&cut, 8, SND_EV_END, 310));
    /* a span that has its end in it is no open range */
    uint64_t whole[3] = { SND_WORD0(SND_EV_SPAN, 120), SND_PAIR(1, 30), 0 };
    assert_true(snd_cut_has_event(&cut, 7, whole));
    assert_false(has(&cut, 7, SND_EV_END, 320));
    whole[0] = SND_WORD0(SND_EV_SPAN, 220);
    assert_false(snd_cut_has_event(&cut, 7, whole));
    assert_true(has(&cut, 7, SND_EV_SPAN, 130)); /* one that is open is */
    assert_true(has(&cut, 7, SND_EV_END, 320));
    assert_false(has(&cut, 7, SND_EV_ALLOC, 150)); /* another probe's */
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

/* Of all events: an attribute is its event's, of its thread. */
static void all_events(void **state)
{
    const struct sonde_span span = { 100, 200 };
    struct sonde_cut        asked = SONDE_CUT_INIT;
    struct sonde_trace     *trace = open_with(NULL, NULL);
    struct snd_cut          cut;

    (void)state;
    asked.spans = &span;
    asked.span_count = 1;
    asked.all = true;
    snd_cut_init(&cut, &asked, trace);
    assert_false(has(&cut, 7, SND_EV_ATTR, 0));
    assert_true(has(&cut, 7, SND_EV_MARK, 150));
    assert_true(has(&cut, 7, SND_EV_ATTR, 0));
    assert_false(has(&cut, 8, SND_EV_ATTR64, 0));
    assert_false(has(&cut, 7, SND_EV_MARK, 250));
    assert_false(has(&cut, 7, SND_EV_ATTR64, 0));
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

struct tally {
    uint64_t                head;
    struct snd_tally_record record;
    uint64_t                words[8];
};

/* The kind that is left of a tally of `session`; 0: it is not kept. */
static uint32_t cut_tally(const struct snd_cut *cut, uint32_t kind, uint32_t session,
                          uint64_t calls, uint64_t resumptions, size_t words)
{
    struct tally           tally = { .record = { kind | session << 16, 1, 2, 8 } };
    struct snd_record_head head = { (uint32_t)(sizeof tally << 8 | SND_REC_TALLY), 1 };
    uint64_t               buffer[sizeof tally / 8];

    tally.words[SND_CALLS_CALLS] = calls;
    tally.words[SND_CALLS_RESUMPTIONS] = resumptions;
    memcpy(&tally.head, &head, sizeof head);
    memcpy(buffer, &tally, sizeof tally);
    snd_cut_record(cut, buffer, words);
    memcpy(&tally, buffer, sizeof tally);
    return tally.record.kind;
}

static void tallies(void **state)
{
    struct sonde_cut    asked = SONDE_CUT_INIT;
    struct sonde_trace *trace = open_with("python.functions.session", "3");
    struct snd_cut      cut;
    const size_t        whole = sizeof(struct tally) / 8;

    (void)state;
    for (uint32_t session = 3; session <= 4; session++) {
        asked.session = session;
        snd_cut_init(&cut, &asked, trace);
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, session, 1, 0, whole), SND_TALLY_CALLS);
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, 9, 1, 0, whole), 0);
        /* without a session: of the one that all are of */
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, 0, 1, 0, whole),
                         session == 3 ? SND_TALLY_CALLS : 0);
        assert_int_equal(cut_tally(&cut, SND_TALLY_LINE, 0, 1, 0, whole), 0);
        assert_int_equal(cut_tally(&cut, SND_TALLY_LINE_MEMORY, session, 1, 0, whole),
                         SND_TALLY_LINE_MEMORY);
        /* neither called nor resumed */
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, session, 0, 0, whole), 0);
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, session, 0, 1, whole), SND_TALLY_CALLS);
        assert_int_equal(cut_tally(&cut, SND_TALLY_LINE, session, 0, 0, whole), SND_TALLY_LINE);
        /* a record that is too short for these words, or for any */
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, session, 0, 0,
                                   4 + SND_CALLS_RESUMPTIONS - 1),
                         SND_TALLY_CALLS);
        assert_int_equal(cut_tally(&cut, SND_TALLY_CALLS, 9, 1, 0, 2), SND_TALLY_CALLS | 9u << 16);
        /* the sampler's go with samples */
        assert_int_equal(cut_tally(&cut, SND_TALLY_SAMPLER, 0, 1, 0, whole), 0);
        asked.samples = true;
        assert_int_equal(cut_tally(&cut, SND_TALLY_SAMPLER, 0, 1, 0, whole), SND_TALLY_SAMPLER);
        asked.samples = false;
        snd_cut_release(&cut);
    }
    sonde_trace_close(trace);
}

/* Facts on tensors are of one report; others are of all. */
static void facts(void **state)
{
    static const struct {
        uint32_t    kind, subject;
        const char *report;
        bool        kept;
    } cases[] = {
        { SND_FACT_OF_TENSOR, 1, "mine", true },  { SND_FACT_OF_TENSOR, 2, "mine", false },
        { SND_FACT_OF_TENSOR, 3, "mine", false }, { SND_FACT_OF_LINES, 1, "mine", true },
        { SND_FACT_OF_LINES, 2, "mine", false },  { SND_FACT_OF_TENSOR, 2, NULL, true },
        { SND_FACT_OF_RANK, 2, "mine", true },
    };
    struct sonde_cut    asked = SONDE_CUT_INIT;
    struct sonde_trace *trace = open_with(NULL, NULL);
    struct snd_cut      cut;

    (void)state;
    snd_cut_init(&cut, &asked, trace);
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        struct snd_fact_record fact = { .kind = cases[i].kind, .subject = cases[i].subject };
        uint64_t               words[1 + sizeof fact / 8];
        struct snd_record_head head = { (uint32_t)(sizeof words << 8 | SND_REC_FACT), 1 };
        asked.report = cases[i].report;
        memcpy(words, &head, sizeof head);
        memcpy(words + 1, &fact, sizeof fact);
        snd_cut_record(&cut, words, SND_COUNT_OF(words) - 1); /* too short: left as it is */
        memcpy(&fact, words + 1, sizeof fact);
        assert_int_equal(fact.kind, cases[i].kind);
        snd_cut_record(&cut, words, SND_COUNT_OF(words));
        memcpy(&fact, words + 1, sizeof fact);
        if (fact.kind != (cases[i].kept ? cases[i].kind : 0))
            fail_msg("case %zu", i);
    }
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),      cmocka_unit_test(kinds),   cmocka_unit_test(ranges),
        cmocka_unit_test(all_events), cmocka_unit_test(tallies), cmocka_unit_test(facts),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
