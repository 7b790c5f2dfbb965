/* SPDX-License-Identifier: Apache-2.0 */
/* model/file/cut_trace.c: which events and counts of a trace are one session's.
 */
#include "model/file/cut_trace.h"

#include "format/facts.h"
#include "format/fields.h"
#include "scratch.h"

static const struct sonde_span spans[] = { { 100, 200 }, { 300, 300 } };

/* A trace of the session's process that says `owner` of itself, if that is not
 * NULL. */
static struct sonde_trace *open_trace(const char *key, const char *owner)
{
    struct synth *s = synth_new(scratch_path("cut"), NULL);

    synth_string(s, "mine");
    synth_string(s, "another's");
    if (key)
        synth_meta(s, key, owner);
    synth_close(s, true);
    return scratch_open(scratch_path("cut"));
}

static struct sonde_cut cut_of(uint32_t session)
{
    struct sonde_cut cut = SONDE_CUT_INIT;

    cut.session = session;
    cut.spans = spans;
    cut.span_count = 2;
    return cut;
}

static bool has(struct snd_cut *cut, uint32_t thread, uint8_t kind, uint64_t time, uint64_t word3)
{
    const uint64_t words[8] = { SND_WORD0(kind, time), 1, 0, word3 };

    return snd_cut_has_event(cut, thread, words);
}

static void events_without_ranges(void **state)
{
    struct sonde_trace *trace = open_trace(NULL, NULL);
    struct sonde_cut    asked = cut_of(1);
    struct snd_cut      cut;

    (void)state;
    for (int what = 0; what < 3; what++) {
        asked.samples = what == 1;
        asked.counters = what == 2;
        snd_cut_init(&cut, &asked, trace);
        static const uint64_t inside[] = { 100, 150, 200, 300 },
                              outside[] = { 99, 201, 299, 301, 0 };
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(has(&cut, 0, SND_EV_SAMPLE, inside[i], 0), what == 1);
            assert_int_equal(has(&cut, 0, SND_EV_COUNTER, inside[i], 0), what == 2);
            /* by the time that it stands for, which is earlier */
            assert_int_equal(has(&cut, 0, SND_EV_SAMPLE_RUN, inside[i] + 70, 70), what == 1);
            assert_false(has(&cut, 0, SND_EV_BEGIN, inside[i], 0));
            assert_false(has(&cut, 0, SND_EV_MARK, inside[i], 0));
        }
        for (size_t i = 0; i < 5; i++) {
            assert_false(has(&cut, 0, SND_EV_SAMPLE, outside[i], 0));
            assert_false(has(&cut, 0, SND_EV_COUNTER, outside[i], 0));
            assert_false(has(&cut, 0, SND_EV_SAMPLE_RUN, outside[i] + 70, 70));
        }
        assert_true(has(&cut, 0, SND_EV_THREAD, 0, 0));
        assert_true(has(&cut, 0, SND_EV_GAP, 0, 0));
        snd_cut_release(&cut);
    }
    sonde_trace_close(trace);
}

/* A range that began while the session was on, with all that follows of it, on
 * each thread. */
static void ranges_are_kept_whole(void **state)
{
    struct sonde_trace *trace = open_trace(NULL, NULL);
    struct sonde_cut    asked = cut_of(1);
    struct snd_cut      cut;

    (void)state;
    asked.ranges = true;
    snd_cut_init(&cut, &asked, trace);
    assert_false(has(&cut, 0, SND_EV_ATTR, 150, 0)); /* of none */
    assert_false(has(&cut, 0, SND_EV_END, 150, 0));
    assert_false(has(&cut, 0, SND_EV_BEGIN, 50, 0));
    assert_false(has(&cut, 0, SND_EV_ATTR, 0, 0));
    assert_true(has(&cut, 0, SND_EV_BEGIN, 150, 0));
    assert_true(has(&cut, 0, SND_EV_ATTR, 0, 0));
    assert_true(has(&cut, 0, SND_EV_ATTR64, 0, 0));
    assert_false(has(&cut, 1, SND_EV_ATTR, 0, 0)); /* another thread's */
    assert_false(has(&cut, 0, SND_EV_BEGIN, 250, 0));
    assert_false(has(&cut, 0, SND_EV_ATTR64, 0, 0));
    assert_false(has(&cut, 0, SND_EV_END, 260, 0));
    assert_true(has(&cut, 0, SND_EV_END, 270, 0)); /* after the session */
    assert_false(has(&cut, 0, SND_EV_END, 280, 0));
    assert_false(has(&cut, 0, SND_EV_END, 281, 0));
    assert_true(has(&cut, 1, SND_EV_BEGIN, 300, 0));
    assert_true(has(&cut, 1, SND_EV_END, 900, 0));
    assert_false(has(&cut, 0, SND_EV_MARK, 150, 0)); /* another probe's */
    assert_int_equal(cut.thread_count, 2);
    assert_false(cut.failed);
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

/* All events of its times; what has none goes with the event before it on its
 * thread. */
static void all_events(void **state)
{
    struct sonde_trace *trace = open_trace(NULL, NULL);
    struct sonde_cut    asked = cut_of(1);
    struct snd_cut      cut;

    (void)state;
    asked.all = true;
    snd_cut_init(&cut, &asked, trace);
    assert_false(has(&cut, 0, SND_EV_ATTR, 0, 0));
    assert_true(has(&cut, 0, SND_EV_MARK, 100, 0));
    assert_true(has(&cut, 0, SND_EV_ATTR, 0, 0));
    assert_true(has(&cut, 0, SND_EV_ATTR64, 0, 0));
    assert_false(has(&cut, 1, SND_EV_ATTR64, 0, 0));
    assert_false(has(&cut, 0, SND_EV_MARK, 201, 0));
    assert_false(has(&cut, 0, SND_EV_ATTR, 0, 0));
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

/* -------------------------------------------------------------------------
 * records */

struct tally {
    struct snd_record_head  head;
    struct snd_tally_record tally;
    uint64_t                words[8];
};
static_assert(sizeof(struct tally) == 8 + 16 + 64, "as in a file");

static uint32_t kind_after(const struct snd_cut *cut, uint32_t kind, uint64_t calls,
                           uint64_t resumptions)
{
    struct tally t = { .head = { sizeof t << 8 | SND_REC_TALLY, 1 },
                       .tally = { kind, 5, 6, 8 },
                       .words = {
                           [SND_CALLS_CALLS] = calls, [SND_CALLS_RESUMPTIONS] = resumptions } };
    uint64_t     words[sizeof t / 8];

    memcpy(words, &t, sizeof t);
    snd_cut_record(cut, words, sizeof t / 8);
    memcpy(&t, words, sizeof t);
    assert_int_equal(t.tally.key, 5);
    assert_int_equal(t.tally.other, 6);
    assert_int_equal(t.tally.count, 8);
    assert_int_equal(t.words[SND_CALLS_CALLS], calls);
    return t.tally.kind;
}

static void counts_are_one_sessions(void **state)
{
    struct sonde_trace *trace = open_trace(NULL, NULL);
    struct sonde_cut    asked = cut_of(3);
    struct snd_cut      cut;
    uint64_t            cut_off[2] = { 16 << 8 | SND_REC_TALLY, 7 << 16 | SND_TALLY_LINE };

    (void)state;
    snd_cut_init(&cut, &asked, trace);
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_LINE, 1, 0), SND_TALLY_LINE);
    assert_int_equal(kind_after(&cut, 2 << 16 | SND_TALLY_LINE, 1, 0), 0);
    assert_int_equal(kind_after(&cut, SND_TALLY_LINE, 1, 0), 0); /* nobody's */
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_LINE_MEMORY, 1, 0),
                     SND_TALLY_LINE_MEMORY);
    assert_int_equal(kind_after(&cut, 2 << 16 | SND_TALLY_LINE_MEMORY, 1, 0), 0);
    /* a function that was called or resumed */
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_CALLS, 1, 0), SND_TALLY_CALLS);
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_CALLS, 0, 1), SND_TALLY_CALLS);
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_CALLS, 0, 0), 0);
    assert_int_equal(kind_after(&cut, 3 << 16 | SND_TALLY_LINE, 0, 0), SND_TALLY_LINE);
    /* the sampler's, with the samples */
    assert_int_equal(kind_after(&cut, SND_TALLY_SAMPLER, 1, 0), 0);
    snd_cut_record(&cut, cut_off, 2); /* too short to be one */
    assert_int_equal(cut_off[1], 7 << 16 | SND_TALLY_LINE);
    snd_cut_release(&cut);
    asked.samples = true;
    snd_cut_init(&cut, &asked, trace);
    assert_int_equal(kind_after(&cut, SND_TALLY_SAMPLER, 1, 0), SND_TALLY_SAMPLER);
    assert_int_equal(kind_after(&cut, SND_TALLY_LINE, 1, 0), 0);
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

/* Where a process says that all its counts are of one session. */
static void a_process_may_be_all_one_sessions(void **state)
{
    static const struct {
        const char *key;
        uint32_t    kind;
    } owners[] = { { "python.functions.session", SND_TALLY_CALLS },
                   { "python.lines.session", SND_TALLY_LINE },
                   { "python.line_memory.session", SND_TALLY_LINE_MEMORY } };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct sonde_trace *trace = open_trace(owners[i].key, "3");
        struct sonde_cut    mine = cut_of(3), other = cut_of(4);
        struct snd_cut      cut;
        snd_cut_init(&cut, &mine, trace);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(kind_after(&cut, owners[k].kind, 1, 0), k == i ? owners[k].kind : 0);
        snd_cut_release(&cut);
        snd_cut_init(&cut, &other, trace);
        assert_int_equal(kind_after(&cut, owners[i].kind, 1, 0), 0);
        snd_cut_release(&cut);
        sonde_trace_close(trace);
    }
}

static uint32_t fact_after(const struct snd_cut *cut, uint32_t kind, uint32_t subject)
{
    struct {
        struct snd_record_head head;
        struct snd_fact_record fact;
    } f = { { sizeof f << 8 | SND_REC_FACT, 1 }, { kind, subject, 8, 9 } };
    uint64_t words[sizeof f / 8];

    memcpy(words, &f, sizeof f);
    snd_cut_record(cut, words, sizeof f / 8);
    memcpy(&f, words, sizeof f);
    assert_int_equal(f.fact.subject, subject);
    assert_int_equal(f.fact.number, 8);
    assert_int_equal(f.fact.count, 9);
    return f.fact.kind;
}

static void reports_on_tensors_are_of_one_subject(void **state)
{
    struct sonde_trace *trace = open_trace(NULL, NULL);
    struct sonde_cut    asked = cut_of(1);
    struct snd_cut      cut;
    uint64_t            cut_off[2] = { 16 << 8 | SND_REC_FACT, SND_FACT_OF_TENSOR };

    (void)state;
    snd_cut_init(&cut, &asked, trace); /* of all subjects */
    assert_int_equal(fact_after(&cut, SND_FACT_OF_TENSOR, 2), SND_FACT_OF_TENSOR);
    asked.report = "mine";
    assert_int_equal(fact_after(&cut, SND_FACT_OF_TENSOR, 1), SND_FACT_OF_TENSOR);
    assert_int_equal(fact_after(&cut, SND_FACT_OF_TENSOR, 2), 0);
    assert_int_equal(fact_after(&cut, SND_FACT_OF_LINES, 1), SND_FACT_OF_LINES);
    assert_int_equal(fact_after(&cut, SND_FACT_OF_LINES, 2), 0);
    assert_int_equal(fact_after(&cut, SND_FACT_OF_LAYER, 2), SND_FACT_OF_LAYER);
    asked.report = "min";
    assert_int_equal(fact_after(&cut, SND_FACT_OF_TENSOR, 1), 0);
    asked.report = "mime";
    assert_int_equal(fact_after(&cut, SND_FACT_OF_TENSOR, 1), 0);
    snd_cut_record(&cut, cut_off, 2); /* too short to be one */
    assert_int_equal(cut_off[1], SND_FACT_OF_TENSOR);
    snd_cut_release(&cut);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_without_ranges),
        cmocka_unit_test(ranges_are_kept_whole),
        cmocka_unit_test(all_events),
        cmocka_unit_test(counts_are_one_sessions),
        cmocka_unit_test(a_process_may_be_all_one_sessions),
        cmocka_unit_test(reports_on_tensors_are_of_one_subject),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
