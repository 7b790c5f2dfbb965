/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that is asked for its stack answers; another one, to which an older signal comes late,
 * does not answer for it. One that blocks the signal is not asked. No Python: a thread state
 * without frames.
 */
#include <stdatomic.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "readable.h"
#include "probes/python/sampler/interrupt.h"
#include "pystack/task.h"
#include "sonde/record.h"

#define ATTEMPTS 20 /* of what must happen within the patience of the one that asks */

/* As if it had blocked the signal only after it was looked at. */
static bool too_late;

bool __real_snd_task_blocks(struct snd_task *task, int number);
bool __wrap_snd_task_blocks(struct snd_task *task, int number);

bool __wrap_snd_task_blocks(struct snd_task *task, int number)
{
    return !too_late && __real_snd_task_blocks(task, number);
}

struct worker {
    pthread_t            thread;
    atomic_bool          deaf; /* wanted: the signal has to wait */
    atomic_bool          is_deaf, pending, end;
    atomic_bool          until_other; /* deaf until the other one has a signal pending */
    uint32_t             tid;
    struct sonde_lane   *lane;
    atomic_uint          rounds;
    atomic_bool          busy;  /* wanted: it only counts */
    atomic_uint          count; /* of what it does then */
    const struct worker *other;
};

static void set_deaf(struct worker *w, bool deaf)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    pthread_sigmask(deaf ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    w->is_deaf = deaf;
}

static void *work(void *user)
{
    struct worker *w = user;
    sigset_t       set;

    w->lane = sonde_lane_own();
    __atomic_store_n(&w->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!w->end) {
        if (w->until_other && w->other->pending) {
            w->until_other = false;
            w->deaf = false;
        }
        if (w->deaf != w->is_deaf)
            set_deaf(w, w->deaf);
        while (w->busy)
            w->count++;
        sigpending(&set);
        w->pending = sigismember(&set, SIGURG) == 1;
        w->rounds++;
        sched_yield();
    }
    return NULL;
}

static void make_deaf(struct worker *w, bool deaf)
{
    w->deaf = deaf;
    while (w->is_deaf != deaf || (!deaf && w->pending))
        sched_yield();
}

static void begin(struct worker *w, const struct worker *other)
{
    *w = (struct worker){ .other = other };
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    while (__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
}

static void end(struct worker *w)
{
    w->end = true;
    pthread_join(w->thread, NULL);
}

static char                thread_state[512]; /* its innermost frame: none */
static struct snd_py_stack stack;

static enum snd_py_read ask(const struct worker *w)
{
    struct sonde_lane   lane = { .epoch = 77 };
    struct snd_py_rider rider = { .last = { (uint64_t)(uintptr_t)w->lane, &lane, sizeof lane } };
    struct snd_py_hint  hint = { 0 };
    struct snd_task     task;
    uint64_t            before = sonde_clock();

    snd_task_open(&task, getpid(), w->tid);
    enum snd_py_read read = snd_interrupt_read(NULL, &task, (uint64_t)(uintptr_t)thread_state,
                                               &hint, &rider, &stack);
    snd_task_close(&task);

    /* The moment is one at which the thread stood still, and so is what it has recorded by then. */
    assert_int_equal(rider.has_last, read == SND_PY_READ);
    if (rider.has_last) {
        assert_true(before <= rider.at && rider.at <= sonde_clock());
        assert_int_equal(lane.epoch, 0);
    }
    return read;
}

static void test_only_who_is_asked_answers(void **state)
{
    struct snd_python python = { .pid = getpid(), .layout = *snd_py_layout(13, false) };
    struct worker     a = { 0 }, b = { 0 };
    int               answers = 0;

    (void)state;
    skip_unless_readable();
    assert_true(snd_interrupt_start(&python, false));
    begin(&a, &b);
    begin(&b, &a);
    for (int i = 0; answers == 0 && i < ATTEMPTS; i++) /* a loaded machine may be late */
        answers += ask(&a) == SND_PY_READ;
    assert_int_equal(answers, 1);
    too_late = true;
    for (int i = 0; i < ATTEMPTS; i++) {
        make_deaf(&a, true);
        make_deaf(&b, true);
        assert_int_equal(ask(&a), SND_PY_UNREAD); /* its signal stays */
        a.until_other = true;                     /* and comes when the other one is asked */
        assert_int_equal(ask(&b), SND_PY_UNREAD);
        while (a.until_other)
            sched_yield();
        make_deaf(&b, false);
    }
    end(&a);
    end(&b);
    snd_interrupt_stop();
}

/* What is read of it twice in one call is the same: it does not go on meanwhile. */
static void test_who_is_asked_stands_still(void **state)
{
    struct snd_python python = { .pid = getpid(), .layout = *snd_py_layout(13, false) };
    struct worker     a = { 0 };
    int               held = 0;

    (void)state;
    skip_unless_readable();
    assert_true(snd_interrupt_start(&python, false));
    begin(&a, NULL);
    a.busy = true;
    for (int i = 0; held < 3 && i < 10 * ATTEMPTS; i++) {
        usleep(1000); /* until they have a processor each */
        uint32_t            first = 0, last = 1;
        uint64_t            at = (uint64_t)(uintptr_t)&a.count;
        char                between[4096];
        struct snd_piece    pieces[] = { { at, &first, 4 },
                                         { (uint64_t)(uintptr_t)thread_state, between, 512 },
                                         { at, &last, 4 } };
        struct snd_py_rider rider = { .pieces = pieces, .count = 3 };
        struct snd_py_hint  hint = { 0 };
        struct snd_task     task;
        snd_task_open(&task, getpid(), a.tid);
        if (snd_interrupt_read(NULL, &task, (uint64_t)(uintptr_t)thread_state, &hint, &rider,
                               &stack) != SND_PY_READ ||
            rider.whole == 0) /* the thread read it itself, as it does on a loaded machine */
            continue;
        held++;
        assert_int_equal(rider.whole, 3);
        assert_int_equal(first, last);
    }
    a.busy = false;
    end(&a);
    snd_interrupt_stop();
    if (held == 0) /* on one processor the thread always reads its stack itself */
        skip();
}

static void test_who_blocks_it_is_not_asked(void **state)
{
    struct snd_python python = { .pid = getpid(), .layout = *snd_py_layout(13, false) };
    struct worker     a;
    int               answers = 0;

    (void)state;
    skip_unless_readable();
    too_late = false;
    assert_true(snd_interrupt_start(&python, false));
    begin(&a, NULL);
    for (int i = 0; i < ATTEMPTS; i++) {
        make_deaf(&a, true);
        assert_int_equal(ask(&a), SND_PY_UNREAD);
        for (uint32_t seen = a.rounds; a.rounds < seen + 2;)
            sched_yield(); /* until it has looked */
        assert_false(a.pending);
        make_deaf(&a, false);
        answers += ask(&a) == SND_PY_READ;
    }
    assert_in_range(answers, 1, ATTEMPTS); /* a loaded machine may be late */
    end(&a);
    snd_interrupt_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_asked_stands_still),
        cmocka_unit_test(test_who_blocks_it_is_not_asked),
        cmocka_unit_test(test_only_who_is_asked_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
