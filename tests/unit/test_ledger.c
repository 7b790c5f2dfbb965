/* SPDX-License-Identifier: Apache-2.0 */
/* model/summary/ledger.c: what is counted where, what is only a note, and what is said of it. */
#include "model/summary/ledger.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/count_of.h"
#include "scratch.h"

/* -------------------------------------------------------------------- notes */

/* A count beside what it is a part of, and whether a healthy run has that, too. */
struct noted {
    enum snd_ledger_key key;
    uint64_t            count;
    bool                is_note;
    struct snd_ledger   beside;
};

static const struct noted noted[] = {
    /* of 200 rounds a tenth may be missed, and a twentieth unread */
    { SND_LEDGER_missed_samples, 20, true, { .rounds = 200 } },
    { SND_LEDGER_missed_samples, 21, false, { .rounds = 200 } },
    { SND_LEDGER_missed_samples, 1, false, { .rounds = 9 } },
    { SND_LEDGER_missed_samples, 1, true, { .rounds = 10 } },
    { SND_LEDGER_torn_samples, 10, true, { .rounds = 200 } },
    { SND_LEDGER_torn_samples, 11, false, { .rounds = 200 } },
    { SND_LEDGER_unread_samples, 10, true, { .rounds = 200 } },
    { SND_LEDGER_unread_samples, 11, false, { .rounds = 200 } },
    { SND_LEDGER_unlisted_rounds, 10, true, { .rounds = 200 } },
    { SND_LEDGER_unlisted_rounds, 11, false, { .rounds = 200 } },
    { SND_LEDGER_torn_samples, 1, false, { .native_samples = 200 } },
    { SND_LEDGER_cut_stacks, 10, true, { .native_samples = 200 } },
    { SND_LEDGER_cut_stacks, 11, false, { .native_samples = 200 } },
    { SND_LEDGER_broken_stacks, 10, true, { .native_samples = 200 } },
    { SND_LEDGER_broken_stacks, 11, false, { .native_samples = 200 } },
    { SND_LEDGER_broken_stacks, 1, false, { .rounds = 200 } },
    { SND_LEDGER_not_closed, 3, true, { .unclosed_roots = 0 } },
    { SND_LEDGER_not_closed, 3, false, { .unclosed_roots = 1 } },
    { SND_LEDGER_not_closed, 3, false, { .counts = { [SND_LEDGER_unfinished_ranges] = 1 } } },
    { SND_LEDGER_scaled_counters, 1, true, { .rounds = 0 } },
    { SND_LEDGER_user_only, 1, true, { .rounds = 0 } },
    { SND_LEDGER_warmup_events, 1, true, { .rounds = 0 } },
    { SND_LEDGER_unmatched_frees, 1, true, { .rounds = 0 } },
    { SND_LEDGER_unasked_gpu_work, 1, true, { .rounds = 0 } },
    { SND_LEDGER_unasked_gpu_calls, 1, true, { .rounds = 0 } },
    { SND_LEDGER_derived_events, 1, true, { .rounds = 0 } },
    { SND_LEDGER_unkept_arguments, 1, true, { .rounds = 0 } },
    { SND_LEDGER_lost_events, 1, false, { .rounds = 200 } },
};

static const struct sonde_ledger_item *find(const struct sonde_ledger_item *items, size_t count,
                                            const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(items[i].key, key) == 0)
            return &items[i];
    fail_msg("no %s", key);
    return NULL;
}

static const char *const keys[] = {
#define SND_LEDGER(key, one, many, advice) #key,
#include "model/summary/ledger.def"
#undef SND_LEDGER
};

static void what_a_healthy_run_has_is_a_note(void **state)
{
    struct sonde_ledger_item items[SND_LEDGER_COUNT];

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(noted); i++) {
        struct snd_ledger l = noted[i].beside;
        l.counts[noted[i].key] = noted[i].count;
        size_t count = snd_ledger_list(&l, items);
        if (find(items, count, keys[noted[i].key])->is_note != noted[i].is_note)
            fail_msg("%s, %u: note or not", keys[noted[i].key], (unsigned)noted[i].count);
    }
}

/* ---------------------------------------------------------------- sentences */

static void sentences_give_the_reason(void **state)
{
    struct snd_ledger        l = { .os_error = ENOSPC, .child_error = EACCES, .early_ns = 4711 };
    struct sonde_ledger_item items[SND_LEDGER_COUNT];
    static const struct {
        enum snd_ledger_key key;
        const char         *said;
    } said[] = {
        { SND_LEDGER_failed_reserves, "No space left on device; free disk space" },
        { SND_LEDGER_lost_children, "Permission denied; nothing of them is here" },
        { SND_LEDGER_early_gpu_work, " differ by 4711 ns at most" },
        { SND_LEDGER_uncounted_operators, ": UNCOUNTED" },
        { SND_LEDGER_switched_calls, ": SWITCHED" },
        { SND_LEDGER_unmapped_events, ": UNMAPPED" },
        { SND_LEDGER_no_gpu_work, ": ABSENT" },
        { SND_LEDGER_not_closed, "as workers of multiprocessing do" },
    };

    (void)state;
    strcpy(l.uncounted, "UNCOUNTED");
    strcpy(l.switched, "SWITCHED");
    strcpy(l.unmapped, "UNMAPPED");
    strcpy(l.absent, "ABSENT");
    assert_int_equal(snd_ledger_list(&l, items), 0);
    for (uint64_t count = 1; count <= 2; count++) {
        for (size_t i = 0; i < SND_COUNT_OF(said); i++)
            l.counts[said[i].key] = count;
        assert_int_equal(snd_ledger_list(&l, items), SND_COUNT_OF(said));
        for (size_t i = 0; i < SND_COUNT_OF(said); i++) {
            const struct sonde_ledger_item *item = find(items, SND_COUNT_OF(said),
                                                        keys[said[i].key]);
            assert_int_equal(item->count, count);
            assert_int_equal(strtoull(item->text, NULL, 10), count);
            if (!strstr(item->text, said[i].said))
                fail_msg("%s: %s", item->key, item->text);
        }
    }
    l.unclosed_roots = 1; /* no worker, then */
    snd_ledger_list(&l, items);
    assert_null(strstr(find(items, SND_COUNT_OF(said), "not_closed")->text, "multiprocessing"));
    l = (struct snd_ledger){ .counts = { [SND_LEDGER_lost_events] = 1 } };
    snd_ledger_list(&l, items);
    assert_non_null(strstr(items[0].text, "1 event "));
    l.counts[SND_LEDGER_lost_events] = 2;
    snd_ledger_list(&l, items);
    assert_non_null(strstr(items[0].text, "2 events "));
}

/* ------------------------------------------------------------------- counts */

/* A word of a tally that the ledger has a line for. */
static const struct {
    uint32_t            tally, word;
    enum snd_ledger_key key;
} words[] = {
    { SND_TALLY_ARGUMENTS, SND_ARGUMENTS_DROPPED, SND_LEDGER_dropped_arguments },
    { SND_TALLY_SAMPLER, SND_SAMPLER_MISSED, SND_LEDGER_missed_samples },
    { SND_TALLY_SAMPLER, SND_SAMPLER_TORN, SND_LEDGER_torn_samples },
    { SND_TALLY_SAMPLER, SND_SAMPLER_UNREAD, SND_LEDGER_unread_samples },
    { SND_TALLY_SAMPLER, SND_SAMPLER_UNMATCHED, SND_LEDGER_native_unmatched },
    { SND_TALLY_SAMPLER_GAPS, SND_SAMPLER_GAPS_UNLISTED, SND_LEDGER_unlisted_rounds },
    { SND_TALLY_SAMPLER_GAPS, SND_SAMPLER_GAPS_NO_MEMORY, SND_LEDGER_no_memory_samples },
    { SND_TALLY_NATIVE, SND_NATIVE_LOST, SND_LEDGER_lost_samples },
    { SND_TALLY_NATIVE, SND_NATIVE_CUT, SND_LEDGER_cut_stacks },
    { SND_TALLY_NATIVE, SND_NATIVE_BROKEN, SND_LEDGER_broken_stacks },
    { SND_TALLY_NATIVE, SND_NATIVE_USER_ONLY, SND_LEDGER_user_only },
    { SND_TALLY_NATIVE_WAITS, SND_NATIVE_WAITS_ABSENT, SND_LEDGER_no_off_cpu },
    { SND_TALLY_GPU, SND_GPU_DROPPED, SND_LEDGER_dropped_gpu_records },
    { SND_TALLY_GPU, SND_GPU_UNKNOWN, SND_LEDGER_unknown_gpu_records },
    { SND_TALLY_GPU, SND_GPU_EARLY, SND_LEDGER_early_gpu_work },
    { SND_TALLY_GPU, SND_GPU_UNASKED, SND_LEDGER_unasked_gpu_work },
};

static void check_count(const struct snd_ledger *l, enum snd_ledger_key key, uint64_t count)
{
    if (l->counts[key] != count)
        fail_msg("%s: %llu, not %llu", keys[key], (unsigned long long)l->counts[key],
                 (unsigned long long)count);
}

/* Each tally twice: the counts of both are added, of times the larger one is kept. */
static void tallies_are_added(void **state)
{
    struct synth *s = synth_new(scratch_path("tallies"), NULL);

    (void)state;
    for (uint64_t turn = 1; turn <= 2; turn++)
        for (size_t i = 0; i < SND_COUNT_OF(words); i++) {
            uint64_t values[16];
            if (i > 0 && words[i].tally == words[i - 1].tally)
                continue;
            for (uint64_t word = 0; word < SND_COUNT_OF(values); word++)
                values[word] = (words[i].tally * 1000 + word) * turn;
            synth_tally(s, words[i].tally, (uint32_t)turn, 0, values, 8);
        }
    synth_close(s, true);
    struct sonde_trace       *trace = scratch_open(scratch_path("tallies"));
    struct snd_ledger         l = { 0 };
    struct snd_assembly_stats none = { 0 };
    snd_ledger_fill(&l, trace, &none);
    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        check_count(&l, words[i].key, 3ull * (words[i].tally * 1000 + words[i].word));
    assert_int_equal(l.rounds, 3ull * (SND_TALLY_SAMPLER * 1000 + SND_SAMPLER_ROUNDS));
    assert_int_equal(l.native_samples, 3ull * (SND_TALLY_NATIVE * 1000 + SND_NATIVE_SAMPLES));
    assert_int_equal(l.early_ns, 2ull * (SND_TALLY_GPU * 1000 + SND_GPU_EARLY_NS));
    sonde_trace_close(trace);
}

/* What the walk found, each in its own line. */
static void the_walk_is_counted(void **state)
{
    struct synth             *s = synth_new(scratch_path("walked"), NULL);
    struct snd_assembly_stats stats = { .unfinished = 1,
                                        .ends_without_begin = 2,
                                        .too_deep = 3,
                                        .missing_names = 4,
                                        .walk = { .lost_threads = 50,
                                                  .missing_events = 6,
                                                  .warmup_events = 7,
                                                  .unknown_events = 8,
                                                  .damaged_chunks = 9,
                                                  .clock_backwards = 10 } };
    struct snd_ledger         l = { 0 };

    (void)state;
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("walked"));
    for (uint64_t times = 1; times <= 2; times++) {
        snd_ledger_fill(&l, trace, &stats);
        check_count(&l, SND_LEDGER_unfinished_ranges, times);
        check_count(&l, SND_LEDGER_ends_without_begin, 2 * times);
        check_count(&l, SND_LEDGER_too_deep, 3 * times);
        check_count(&l, SND_LEDGER_missing_ids, 54 * times);
        check_count(&l, SND_LEDGER_missing_events, 6 * times);
        check_count(&l, SND_LEDGER_warmup_events, 7 * times);
        check_count(&l, SND_LEDGER_unknown_events, 8 * times);
        check_count(&l, SND_LEDGER_damaged_chunks, 9 * times);
        check_count(&l, SND_LEDGER_clock_backwards, 10 * times);
    }
    sonde_trace_close(trace);
}

/* Of two processes, one of which started the other: what their headers count is added. */
static void headers_are_added(void **state)
{
    static const struct synth_options options[2] = {
        { .pid = 10, .parent_pid = 9, .flags = SND_FILE_LIMIT },
        { .pid = 11, .parent_pid = 10, .flags = SND_FILE_LIMIT | SND_FILE_KEEP_LAST },
    };
    struct snd_ledger         l = { 0 };
    struct snd_assembly_stats none = { 0 };

    (void)state;
    assert_int_equal(mkdir(scratch_path("folder"), 0700), 0);
    for (uint64_t i = 1; i <= 2; i++) {
        struct synth *s = synth_new(scratch_path(i == 1 ? "folder/1.sonde" : "folder/2.sonde"),
                                    &options[i - 1]);
        struct snd_file_header *h = synth_header(s);
        h->lost_events = 1 * i;
        h->refused_events = 20 * i;
        h->lost_calls[SND_CALLS_CALLS] = 300 * i;
        h->lost_children = 4000 * i;
        h->lost_children_why = EACCES;
        h->cut_files = (uint32_t)(7 * (i - 1));
        h->lost_names = 50 * i;
        h->cut_names = 6 * i;
        h->recycled_chunks = 7 * i;
        h->recycled_events = 8 * i;
        h->failed_reserves = 9 * i;
        h->last_os_error = ENOSPC;
        synth_close(s, false);
    }
    struct sonde_trace *trace = scratch_open(scratch_path("folder"));
    snd_ledger_fill(&l, trace, &none);
    check_count(&l, SND_LEDGER_lost_events, 3);
    check_count(&l, SND_LEDGER_refused_events, 60);
    check_count(&l, SND_LEDGER_lost_calls, 900);
    check_count(&l, SND_LEDGER_lost_children, 12000);
    check_count(&l, SND_LEDGER_cut_files, 1);
    check_count(&l, SND_LEDGER_lost_names, 150);
    check_count(&l, SND_LEDGER_cut_names, 18);
    check_count(&l, SND_LEDGER_recycled_chunks, 21);
    check_count(&l, SND_LEDGER_recycled_events, 24);
    check_count(&l, SND_LEDGER_failed_reserves, 27);
    check_count(&l, SND_LEDGER_limit_reached,
                1); /* of the one that keeps the last it is expected */
    check_count(&l, SND_LEDGER_not_closed, 2);
    assert_int_equal(l.unclosed_roots, 1);
    assert_int_equal(l.child_error, EACCES);
    assert_int_equal(l.os_error, ENOSPC);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_healthy_run_has_is_a_note),
        cmocka_unit_test(sentences_give_the_reason),
        cmocka_unit_test(tallies_are_added),
        cmocka_unit_test(the_walk_is_counted),
        cmocka_unit_test(headers_are_added),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
