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

bool __real_snd_task_blocks(const struct snd_task *task, int number);
bool __wrap_snd_task_blocks(const struct snd_task *task, int number);

bool __wrap_snd_task_blocks(const struct snd_task *task, int number)
{
    return !too_late && __real_snd_task_blocks(task, number);
}

struct worker {
    pthread_t            thread;
    atomic_bool          deaf; /* wanted: the signal has to wait */
    atomic_bool          is_deaf, pending, end;
    atomic_bool          until_other; /* deaf until the other one has a signal pending */
    uint32_t             tid;
    atomic_uint          rounds;
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

    __atomic_store_n(&w->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    while (!w->end) {
        if (w->until_other && w->other->pending) {
            w->until_other = false;
            w->deaf = false;
        }
        if (w->deaf != w->is_deaf)
            set_deaf(w, w->deaf);
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
    struct snd_py_rider rider = { .last = { 1, &lane, sizeof lane } };
    uint64_t            before = sonde_clock();
    enum snd_py_read    read = snd_interrupt_read(NULL, w->tid, (uint64_t)(uintptr_t)thread_state,
                                                  NULL, &rider, &stack);

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
        cmocka_unit_test(test_who_blocks_it_is_not_asked),
        cmocka_unit_test(test_only_who_is_asked_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
