/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples: events about other threads than the one that writes them, and a trace about another
 * process than the one that writes it.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "recorded.h"

struct seen {
    struct sonde_event list[16];
    size_t             count;
};

static bool keep_samples(const struct sonde_event *event, void *user)
{
    struct seen *seen = user;

    if (event->kind == SONDE_EVENT_SAMPLE && seen->count < 16)
        seen->list[seen->count++] = *event;
    return true;
}

static uint32_t one_stack(void)
{
    uint32_t function = sonde_intern("work", 4), file = sonde_intern("w.py", 4);
    uint32_t native = sonde_intern_native(sonde_intern("memcpy", 6), sonde_intern("libc.so", 7));

    return sonde_intern_stack(sonde_intern_stack(0, sonde_intern_frame_in(function, 3, file, 5)),
                              native);
}

/* Frames by address, their symbols, and threads of other processes. */
static void test_native_frames(void **state)
{
    (void)state;
    struct sonde_options        options = recorded_options("native.sonde");
    struct seen                 seen = { .count = 0 };
    struct sonde_process_thread child = {
        .struct_size = sizeof child, .pid = 90, .tid = 91, .parent_pid = 7
    };

    recorded_start(&options);
    uint32_t file = sonde_intern("/lib/libx.so", 12), id = sonde_intern("ab12", 4);
    uint32_t frame = sonde_intern_address(file, id, 0x1234);
    assert_int_equal(sonde_intern_address(file, id, 0x1234), frame);
    assert_int_not_equal(sonde_intern_address(file, id, 0x1235), frame);
    assert_int_not_equal(sonde_intern_native(0, file), frame);
    uint32_t thread = sonde_thread_of_process(&child, "a child");
    assert_int_equal(sonde_thread_of_process(&child, NULL), thread);
    assert_int_not_equal(sonde_thread_of(91, NULL), thread);
    struct sonde_sample sample = {
        sizeof sample, sonde_intern_stack(0, frame), thread, SONDE_SAMPLED_ON_CPU, 1, 1000, 0
    };
    sonde_sample(&sample);
    sonde_thread_end(thread, 0);
    assert_int_not_equal(sonde_thread_of_process(&child, NULL), thread); /* the tid again */
    struct sonde_symbol none = { 0, 0, 0, 0 };
    sonde_symbol(0, &none, 1);
    sonde_symbol(frame, &none, 0); /* neither is written */
    recorded_stop();

    struct sonde_trace *trace = recorded_open("native.sonde");
    recorded_walk(trace, keep_samples, &seen);
    assert_int_equal(seen.count, 1);
    const struct sonde_thread  *at = sonde_trace_thread(trace, seen.list[0].thread);
    const struct sonde_process *process = sonde_trace_process(trace, at->process);
    assert_int_equal(at->tid, 91);
    assert_int_equal(at->process, 1);
    assert_int_equal(process->pid, 90);
    assert_int_equal(process->parent_pid, 7);
    assert_string_equal(process->program, "a child");
    struct sonde_frame shown;
    assert_int_equal(sonde_trace_stack(trace, at->process, seen.list[0].sample.stack, &shown, 1),
                     1);
    assert_string_equal(shown.function.bytes, "libx.so+0x1234");
    assert_string_equal(shown.file.bytes, "/lib/libx.so");
    assert_int_equal(recorded_ledger(trace, "missing_ids"), 0);
    sonde_trace_close(trace);
}

static void test_sampled_threads(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("sampled.sonde");
    struct seen          seen = { .count = 0 };

    assert_int_equal(sonde_thread_of(77, "early"), 0); /* nothing records */
    recorded_start(&options);
    uint32_t worker = sonde_thread_of(77, "its first name");
    assert_int_not_equal(worker, 0);
    assert_int_equal(sonde_thread_of(77, NULL), worker);
    assert_int_not_equal(sonde_thread_of(78, NULL), worker);
    struct sonde_sample sample = {
        sizeof sample, one_stack(), worker, SONDE_SAMPLED_ON_CPU, 3, 3000, 0
    };
    sonde_sample(&sample);
    assert_int_equal(sonde_thread_of(77, "worker"), worker);
    sample = (struct sonde_sample){
        sizeof sample, 0, 0, 0, 1, 10000000000u, 0
    }; /* longer than a field */
    sonde_sample(&sample);
    recorded_stop();

    struct sonde_trace *trace = recorded_open("sampled.sonde");
    recorded_walk(trace, keep_samples, &seen);
    assert_int_equal(seen.count, 4);
    const struct sonde_thread *thread = sonde_trace_thread(trace, seen.list[0].thread);
    assert_int_equal(thread->tid, 77);
    assert_string_equal(thread->name.bytes, "worker");
    assert_int_equal(seen.list[0].sample.count, 3);
    assert_int_equal(seen.list[0].sample.covered_ns, 3000);
    assert_int_equal(seen.list[0].sample.state, SONDE_SAMPLE_ON_CPU);
    struct sonde_frame frames[4];
    assert_int_equal(sonde_trace_stack(trace, 0, seen.list[0].sample.stack, frames, 4), 2);
    assert_string_equal(frames[0].function.bytes, "memcpy");
    assert_string_equal(frames[1].function.bytes, "work");
    assert_int_equal(frames[1].first_line, 3);
    assert_int_equal(frames[1].line, 5);
    uint64_t covered = 0;
    for (size_t i = 1; i < 4; i++)
        covered += seen.list[i].sample.covered_ns;
    assert_true(covered == 10000000000u);
    assert_int_equal(sonde_trace_thread(trace, seen.list[1].thread)->tid, getpid());
    sonde_trace_close(trace);
}

/* Both times of a run are read as they were told; one that is too long for an event is several. */
static void test_runs(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("runs.sonde");
    struct seen          seen = { .count = 0 };

    recorded_start(&options);
    uint64_t                now = sonde_clock(), long_ago = now - ((uint64_t)UINT32_MAX + 1000);
    uint32_t                thread = sonde_thread_of(4242, "other");
    struct sonde_sample_run run = { sizeof run, one_stack(), thread,    SONDE_SAMPLED_GIL,
                                    7,          long_ago,    now - 500, now - 90 };
    sonde_sample_run(&run);
    run = (struct sonde_sample_run){ sizeof run, 0, thread, 0, 2, now - 500, now, now - 40 };
    sonde_sample_run(&run);
    recorded_stop();

    struct sonde_trace *trace = recorded_open("runs.sonde");
    recorded_walk(trace, keep_samples, &seen);
    assert_int_equal(seen.count, 3);
    const uint32_t samples[] = { 7, 0, 2 };
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.list[i].sample.count, samples[i]);
        assert_int_equal(sonde_trace_thread(trace, seen.list[i].thread)->tid, 4242);
        if (i > 0) /* they follow each other */
            assert_int_equal(seen.list[i].time_ns - (int64_t)seen.list[i].sample.covered_ns,
                             seen.list[i - 1].time_ns);
    }
    assert_int_equal(seen.list[1].sample.stack, seen.list[0].sample.stack);
    assert_int_equal(seen.list[1].sample.state, SONDE_SAMPLE_GIL);
    sonde_trace_close(trace);
}

static pthread_barrier_t told;

static void *mark_late(void *tid)
{
    *(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
    pthread_barrier_wait(&told);
    pthread_barrier_wait(&told); /* by now it has been sampled */
    sonde_mark("its own");
    return NULL;
}

/* A thread that is sampled first and marks later is one thread, and so is one that marked first. */
static void test_one_thread_each(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("claimed.sonde");
    pthread_t            thread;
    uint32_t             tid = 0, before, after;

    pthread_barrier_init(&told, NULL, 2);
    recorded_start(&options);
    sonde_mark("main's own");
    assert_int_equal(sonde_thread_of((uint32_t)getpid(), "main"), 1);
    assert_int_equal(pthread_create(&thread, NULL, mark_late, &tid), 0);
    pthread_barrier_wait(&told);
    before = sonde_thread_of(tid, "late");
    pthread_barrier_wait(&told);
    pthread_join(thread, NULL);
    after = sonde_thread_of(tid, "next of that number");
    assert_int_not_equal(before, after); /* it ended: a thread of the same number is another */
    recorded_stop();

    struct sonde_trace *trace = recorded_open("claimed.sonde");
    assert_int_equal(sonde_trace_thread_count(trace), 3);
    sonde_trace_close(trace);
}

/* What an observer records is about whom it observes. */
static void test_subject(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("subject.sonde");

    options.subject_pid = (uint32_t)getppid();
    recorded_start(&options);
    sonde_mark("seen");
    recorded_stop();
    struct sonde_trace *trace = recorded_open("subject.sonde");
    assert_int_equal(sonde_trace_process(trace, 0)->pid, getppid());
    sonde_trace_close(trace);
}

/* What the sampler says of itself is in the ledger. */
static void test_ledger(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("ledger.sonde");

    recorded_start(&options);
    uint64_t *words = sonde_tally(SONDE_TALLY_SAMPLER, 0, 0, 7);
    assert_non_null(words);
    words[0] = 100, words[1] = 5, words[2] = 7, words[3] = 2, words[6] = 3;
    words = sonde_tally(SONDE_TALLY_SAMPLER_GAPS, 0, 0, 2);
    assert_non_null(words);
    words[0] = 6, words[1] = 4;
    recorded_stop();
    struct sonde_trace *trace = recorded_open("ledger.sonde");
    assert_int_equal(recorded_ledger(trace, "missed_samples"), 5);
    assert_int_equal(recorded_ledger(trace, "torn_samples"), 7);
    assert_int_equal(recorded_ledger(trace, "unread_samples"), 2);
    assert_int_equal(recorded_ledger(trace, "native_unmatched"), 3);
    assert_int_equal(recorded_ledger(trace, "unlisted_rounds"), 6);
    assert_int_equal(recorded_ledger(trace, "no_memory_samples"), 4);
    sonde_trace_close(trace);
}

/* A thread that an observer saw end has ended there; the others last as long as the recording. */
static void test_ends(void **state)
{
    (void)state;
    struct sonde_options        options = recorded_options("ends.sonde");
    struct sonde_process_thread threads[4];
    uint32_t                    ids[4];
    uint64_t                    at;

    recorded_start(&options);
    at = sonde_clock();
    for (size_t i = 0; i < 4; i++) {
        threads[i] = (struct sonde_process_thread){
            .struct_size = sizeof threads[i], .pid = 90, .tid = 90 + (uint32_t)i, .start = at
        };
        ids[i] = sonde_thread_of_process(&threads[i], i == 0 ? "child" : NULL);
    }
    uint64_t end = sonde_clock();
    usleep(2000);
    sonde_thread_end(ids[1], end);
    sonde_thread_end(ids[3], 0); /* now */
    sonde_thread_end(4000, at);  /* nobody */
    assert_int_equal(sonde_thread_of_process(&threads[0], NULL),
                     ids[0]); /* those that run are known still */
    assert_int_equal(sonde_thread_of_process(&threads[2], NULL), ids[2]);
    usleep(2000);
    sonde_mark("later");
    recorded_stop();

    struct sonde_trace *trace = recorded_open("ends.sonde");
    int64_t             last = sonde_trace_process(trace, 0)->stop_ns, lives[4] = { 0 };
    for (uint32_t i = 0; i < sonde_trace_thread_count(trace); i++) {
        const struct sonde_thread *t = sonde_trace_thread(trace, i);
        if (t->tid >= 90 && t->tid <= 93)
            lives[t->tid - 90] = t->stop_ns - t->start_ns;
        if (t->tid == 90 || t->tid == 92)
            assert_true(t->stop_ns == last);
    }
    assert_true(lives[1] > 0 && lives[1] < lives[3] - 1900000);
    assert_true(lives[3] > 0 && lives[3] < lives[0] - 1900000);
    assert_true(lives[0] > 1900000 && lives[2] == lives[0]);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampled_threads),
        cmocka_unit_test(test_native_frames),
        cmocka_unit_test(test_one_thread_each),
        cmocka_unit_test(test_subject),
        cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
