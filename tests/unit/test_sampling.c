/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of samples of a Python that is made up in this process: a runtime with interpreters, one thread
 * state, which stands for the thread that runs the test, its frame and its function. What the recorder gets
 * is kept here.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "readable.h"
#include "pystack/sampling/sampling_inside.h"

#define PERIOD_NS 1000000u
#define INTERPRETERS (SND_INTERPRETERS_MAX + 1)
#define NOWHERE 8u /* an address that nothing has */

/* ------------------------------------------------- memory that cannot be read */

static int read_error; /* 0: the process can be read */

/* What the thread records: so many words while its memory is read. */
static struct sonde_lane lane;
static uint32_t          lane_moves;

static ssize_t copy(long call, pid_t pid, const struct iovec *local, unsigned long local_count,
                    const struct iovec *remote, unsigned long remote_count)
{
    lane.cur += lane_moves;
    if (read_error == 0)
        return syscall(call, pid, local, local_count, remote, remote_count, 0UL);
    errno = read_error;
    return -1;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                         const struct iovec *remote, unsigned long remote_count,
                         unsigned long flags)
{
    (void)flags;
    return copy(SYS_process_vm_readv, pid, local, local_count, remote, remote_count);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                          const struct iovec *remote, unsigned long remote_count,
                          unsigned long flags)
{
    (void)flags;
    return copy(SYS_process_vm_writev, pid, local, local_count, remote, remote_count);
}

/* ------------------------------------------------------- what stands for Python */

static struct {
    struct snd_python python;
    char              runtime[4096], interps[INTERPRETERS][8192], lock[256];
    char              state[SND_PY_THREAD_READ], cframe[64], frames[2][128];
    char              type[64], code[512], name[128], lines[64];
} fake;

static uint64_t at(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

static void put(char *block, uint32_t offset, uint64_t value)
{
    memcpy(block + offset, &value, sizeof value);
}

static void set_code(const struct snd_py_layout *l)
{
    const uint32_t width = 1, compact = 1u << 3, ascii = 1u << 4;

    put(fake.name, l->unicode_length, 4);
    put(fake.name, l->unicode_state, (width | compact | ascii) << l->unicode_kind);
    memcpy(fake.name + l->unicode_ascii, "work", 4);
    put(fake.code, l->object_type, at(fake.type));
    put(fake.code, l->var_size, 100);
    put(fake.code, l->code_file, at(fake.name));
    put(fake.code, l->code_name, at(fake.name));
    put(fake.code, l->code_qualname ? l->code_qualname : l->code_name, at(fake.name));
    put(fake.code, l->code_lines, at(fake.lines));
}

/* The thread is in one function, which C code called. */
static void set_frames(const struct snd_py_layout *l)
{
    put(fake.frames[1], l->frame_code, at(fake.code));
    put(fake.frames[1], l->frame_instr,
        l->code_first_instr ? at(fake.code) + l->code_first_instr : 0);
    if (l->has_entries) {
        put(fake.frames[1], l->frame_previous, at(fake.frames[0]));
        fake.frames[0][l->frame_owner] = SND_PY_OWNED_BY_C;
    }
    if (l->has_cframe)
        put(fake.state, l->thread_frame, at(fake.cframe));
    put(l->has_cframe ? fake.cframe : fake.state, l->has_cframe ? l->cframe_frame : l->thread_frame,
        at(fake.frames[1]));
}

static void set_interpreters(unsigned count)
{
    const struct snd_py_layout *l = &fake.python.layout;

    put(fake.runtime, l->runtime_interpreters, count > 0 ? at(fake.interps[0]) : 0);
    for (unsigned i = 0; i < INTERPRETERS; i++) {
        put(fake.interps[i], l->interp_next, i + 1 < count ? at(fake.interps[i + 1]) : 0);
        if (l->interp_gil)
            put(fake.interps[i], l->interp_gil, at(fake.lock));
    }
}

static void set_thread(const struct snd_py_layout *l)
{
    char *lock = l->interp_gil ? fake.lock : fake.runtime + l->runtime_gil;

    put(fake.interps[0], l->interp_threads, at(fake.state));
    put(fake.state, l->thread_interp, at(fake.interps[0]));
    put(fake.state, l->thread_ident, (uint64_t)pthread_self());
    if (l->thread_native)
        put(fake.state, l->thread_native, (uint64_t)syscall(SYS_gettid));
    put(lock, l->gil_holder, at(fake.state));
    put(lock, l->gil_locked, 1);
}

/* ------------------------------------------------------- what stands for a recorder */

#define SAMPLES_MAX 64

static struct {
    struct sonde_epoch_page epoch;
    uint64_t                clock;
    struct sonde_sample_run samples[SAMPLES_MAX];
    unsigned                count;
    uint64_t                tallies[SONDE_TALLY_SAMPLER_GAPS + 1][8];
    bool                    has_gaps;
} records;

static uint64_t tick(void)
{
    return ++records.clock;
}

static uint32_t intern(const char *text, size_t length)
{
    return length > 0 && memcmp(text, "work", length) == 0 ? 7 : 1;
}

static uint32_t frame(uint32_t function, uint32_t first_line, uint32_t file, uint32_t line)
{
    return function + first_line + file + line;
}

static uint32_t stack(uint32_t parent, uint32_t innermost)
{
    return parent * 100 + innermost;
}

static uint32_t thread(uint32_t tid, const char *name)
{
    (void)name;
    return tid == (uint32_t)syscall(SYS_gettid) ? 3 : 0;
}

static void sample(const struct sonde_sample_run *s)
{
    assert_true(records.count < SAMPLES_MAX);
    records.samples[records.count++] = *s;
}

static uint64_t *tally(enum sonde_tally_kind kind, uint32_t key, uint32_t other, unsigned count)
{
    assert_true(kind <= SONDE_TALLY_SAMPLER_GAPS && key == 0 && other == 0 && count <= 8);
    records.has_gaps |= kind == SONDE_TALLY_SAMPLER_GAPS;
    return records.tallies[kind];
}

static struct snd_recorder recorder = {
    .epoch = &records.epoch,
    .clock = tick,
    .intern = intern,
    .frame = frame,
    .stack = stack,
    .thread = thread,
    .sample = sample,
    .tally = tally,
};

static struct snd_sampling *begin(unsigned minor)
{
    struct snd_sampling *sampling;
    struct sonde_error   err;

    memset(&fake, 0, sizeof fake);
    memset(&records, 0, sizeof records);
    records.epoch.value = 2;
    fake.python = (struct snd_python){ getpid(), at(fake.runtime), at(fake.type),
                                       *snd_py_layout(minor, false) };
    set_code(&fake.python.layout);
    set_frames(&fake.python.layout);
    set_interpreters(1);
    set_thread(&fake.python.layout);
    assert_int_equal(snd_sampling_new(&fake.python, &recorder, PERIOD_NS, &sampling, &err),
                     SONDE_OK);
    return sampling;
}

static uint64_t gaps(enum snd_tally_word word)
{
    return records.tallies[SONDE_TALLY_SAMPLER_GAPS][word];
}

static void rest(unsigned ms)
{
    nanosleep(&(struct timespec){ 0, (long)ms * 1000000 }, NULL);
}

/* Rounds until what is written says that the thread was seen in its function. */
static void expect_samples(struct snd_sampling *sampling)
{
    records.count = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    snd_sampling_flush(sampling);
    assert_true(records.count > 0);
    for (unsigned i = 0; i < records.count; i++)
        assert_int_equal(records.samples[i].stack, stack(0, frame(7, 0, 7, 0)));
}

/* -------------------------------------------------------------------- tests */

static void test_samples(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        struct snd_sampling *sampling = begin(minor);
        expect_samples(sampling);
        assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_ROUNDS], 3);
        assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_UNREAD], 0);
        assert_false(records.has_gaps); /* a trace without gaps has no tally of them */
        snd_sampling_free(sampling);
    }
}

static uint64_t interrupted_clock(void)
{
    static const uint64_t times[] = { 100, 9000, 9010, 9012, 9020, 9500 };
    static unsigned       n;

    return times[n++ % (sizeof times / sizeof times[0])];
}

/* Something else runs between the two clocks of the first pair and of the last: the second is the moment. */
static void test_one_moment_by_two_clocks(void **state)
{
    struct snd_sampling s = { .recorder = { .clock = interrupted_clock } };

    (void)state;
    snd_sampling_set_now_(&s);
    assert_int_equal(s.now_clock, 9011);
    assert_true(s.now_ns <= snd_clock_ns(CLOCK_MONOTONIC));
}

/*
 * A session that ends at a flush must not get samples of after: the thread slept, and is found running, which
 * is two runs of samples in the first round.
 */
static void test_flush(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin(13);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    rest(2);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    uint64_t clock = snd_sampling_flush(sampling);
    assert_true(records.count > 0);
    for (unsigned i = 0; i < records.count; i++)
        assert_true(records.samples[i].end <= clock && records.samples[i].read <= clock);
    records.count = 0;
    rest(20);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    assert_true(records.count > 0);
    snd_sampling_free(sampling);
    for (unsigned i = 0; i < records.count; i++)
        assert_true(records.samples[i].begin > clock && records.samples[i].read > clock);
}

/* Whichever allocation fails: it is counted in each round, and the thread is sampled once there is memory. */
static void test_no_memory(void **state)
{
    (void)state;
    skip_unless_readable();
    for (long left = 0; left < 3; left++) { /* two lists of threads, and the threads */
        struct snd_sampling *sampling = begin(12);
        for (unsigned round = 1; round <= 2; round++) {
            allocations_left = round == 1 ? left : 0;
            enum snd_round made = snd_sampling_round(sampling, 0);
            allocations_left = -1;
            assert_int_equal(made, SND_ROUND_MADE);
            assert_int_equal(gaps(SND_SAMPLER_GAPS_NO_MEMORY), round);
        }
        assert_int_equal(records.count, 0);
        expect_samples(sampling);
        assert_int_equal(gaps(SND_SAMPLER_GAPS_NO_MEMORY), 2);
        assert_int_equal(snd_sampling_counts(sampling).gaps[SND_SAMPLER_GAPS_NO_MEMORY], 2);
        snd_sampling_free(sampling);
    }
}

/* Likewise of the code objects of its stack, which nobody changed meanwhile. */
static void test_no_memory_for_code(void **state)
{
    unsigned failed = 0;

    (void)state;
    skip_unless_readable();
    for (long left = 3; left < 64; left++) {
        struct snd_sampling *sampling = begin(12);
        allocations_left = left;
        enum snd_round made = snd_sampling_round(sampling, 0);
        bool           is_reached = allocations_left < 0;
        allocations_left = -1;
        assert_int_equal(made, SND_ROUND_MADE);
        assert_int_equal(snd_sampling_counts(sampling).words[SND_SAMPLER_TORN], 0);
        failed += snd_sampling_counts(sampling).gaps[SND_SAMPLER_GAPS_NO_MEMORY] > 0;
        expect_samples(sampling);
        snd_sampling_free(sampling);
        if (!is_reached)
            break;
    }
    assert_true(failed >= 5); /* the object, its two names, its lines, the list */
}

/* Memory that cannot be read is counted, and sampling goes on once it can be. */
static void test_unreadable(void **state)
{
    static const int errors[] = { EFAULT, EPERM };

    (void)state;
    skip_unless_readable();
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct snd_sampling *sampling = begin(13);
        expect_samples(sampling);
        read_error = errors[i];
        enum snd_round first = snd_sampling_round(sampling, 0);
        enum snd_round second = snd_sampling_round(sampling, 0);
        read_error = 0;
        assert_int_equal(first, SND_ROUND_UNREAD);
        assert_int_equal(second, SND_ROUND_UNREAD);
        assert_int_equal(gaps(SND_SAMPLER_GAPS_UNLISTED), 2);
        expect_samples(sampling);
        assert_int_equal(gaps(SND_SAMPLER_GAPS_UNLISTED), 2);
        snd_sampling_free(sampling);
    }
}

static void test_unreadable_stack(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin(12);
    put(fake.state, fake.python.layout.thread_frame, NOWHERE); /* the thread is ending */
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_UNREAD], 1);
    set_frames(&fake.python.layout);
    expect_samples(sampling);
    snd_sampling_free(sampling);
}

/* An interpreter, or a process, that has ended is no gap. */
static void test_ordinary_ends(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin(13);
    expect_samples(sampling);
    read_error = ESRCH; /* as of a zombie */
    enum snd_round round = snd_sampling_round(sampling, 0);
    read_error = 0;
    assert_int_equal(round, SND_ROUND_NO_PYTHON);
    put(fake.interps[0], fake.python.layout.interp_threads, 0);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_NO_PYTHON);
    set_interpreters(0);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_NO_PYTHON);
    set_interpreters(1); /* as in a child, a moment after the fork */
    set_thread(&fake.python.layout);
    expect_samples(sampling);
    assert_false(records.has_gaps);
    snd_sampling_free(sampling);
}

/* Threads of interpreters that there is no room for are not sampled: that is counted, the others are. */
static void test_too_many_interpreters(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin(13);
    set_interpreters(SND_INTERPRETERS_MAX);
    expect_samples(sampling);
    rest(60);
    expect_samples(sampling);
    assert_false(records.has_gaps);
    set_interpreters(INTERPRETERS);
    for (int i = 0; i < 3; i++) {
        rest(60);
        assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    }
    assert_true(gaps(SND_SAMPLER_GAPS_UNLISTED) >= 2);
    expect_samples(sampling);
    snd_sampling_free(sampling);
}

static struct snd_sampling *begin_recording(void)
{
    static uint64_t words[4096];

    recorder.lane_offset = (int64_t)(at(&lane) - (uint64_t)pthread_self());
    lane = (struct sonde_lane){ .cur = words, .end = words + 4096, .epoch = 1, .chunks = 1 };
    lane_moves = 0;
    return begin(13);
}

/* Samples are one run while the thread records nothing; the runs' times follow each other. */
static void test_runs_end_where_the_thread_records(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin_recording();
    for (int i = 0; i < 6; i++) {
        if (i == 2)
            lane.cur += 2; /* a range begins */
        if (i == 4)
            lane.leaf = lane.cur; /* and another, which ends in place: the same room */
        if (i == 5)
            lane.leaf = NULL;
        assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    }
    snd_sampling_free(sampling);
    recorder.lane_offset = 0;
    uint32_t samples = 0;
    uint64_t reads = 0;
    for (unsigned i = 0; i < records.count; i++) {
        const struct sonde_sample_run *run = &records.samples[i];
        assert_true(run->begin < run->end && run->read > 0);
        assert_true(i == 0 || run->begin == records.samples[i - 1].end);
        reads += i == 0 || run->read != records.samples[i - 1].read;
        samples += run->samples;
    }
    assert_true(samples >= 6);
    assert_true(reads >= 4);
    assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_TORN], 0);
}

static enum snd_py_read halt(void *user, struct snd_task *task, uint64_t py_state,
                             struct snd_py_hint *hint, struct snd_py_rider *rider,
                             struct snd_py_stack *py_stack)
{
    uint32_t moves = lane_moves;

    (void)task;
    lane_moves = 0;
    rider->at = 1000000 + tick();
    enum snd_py_read read = snd_python_halted(user, py_state, hint, rider, py_stack);
    lane_moves = moves;
    return read;
}

/* Whose ranges a stack has cannot be told while its thread records: it is left out, or the thread stopped. */
static void test_a_thread_that_records_is_stopped(void **state)
{
    (void)state;
    skip_unless_readable();
    struct snd_sampling *sampling = begin_recording();
    lane_moves = 1;
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_TORN], 1);
    snd_sampling_on_running(sampling, halt, &fake.python);
    assert_int_equal(snd_sampling_round(sampling, 0), SND_ROUND_MADE);
    lane_moves = 0;
    snd_sampling_free(sampling);
    recorder.lane_offset = 0;
    assert_int_equal(records.tallies[SONDE_TALLY_SAMPLER][SND_SAMPLER_TORN], 1);
    assert_true(records.count > 0);
    for (unsigned i = 0; i < records.count; i++)
        assert_true(records.samples[i].read > 1000000); /* when it stood still */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_one_moment_by_two_clocks),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_for_code),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_unreadable_stack),
        cmocka_unit_test(test_ordinary_ends),
        cmocka_unit_test(test_too_many_interpreters),
        cmocka_unit_test(test_runs_end_where_the_thread_records),
        cmocka_unit_test(test_a_thread_that_records_is_stopped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
