/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/sampler/interrupt.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pystack/task.h"
#include "pystack/unwind/unwind.h"
#include "sonde/record.h"

#define PATIENCE_NS 20000000 /* how long a thread's answer is waited for */

enum phase { IDLE, ASKED, READING, DONE };

/*
 * One question at a time. The other members belong to the asker, unless the phase is READING. ASKED
 * holds the thread that is asked: a signal may reach a thread that is no longer waited for.
 */
static struct {
    uint32_t            phase; /* a futex */
    uint64_t            state;
    enum snd_py_read    read;
    struct snd_py_stack stack;
    struct sonde_lane   lane; /* the thread's */
    uint64_t            at;   /* sonde_clock() */
    struct snd_python   python;
    struct snd_unwind   unwind;
    struct sigaction    before;
    bool                on, native;
} question;

static uint32_t asked(uint32_t tid)
{
    return tid << 2 | ASKED;
}

static bool move_phase(uint32_t from, uint32_t to)
{
    return __atomic_compare_exchange_n(&question.phase, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static void wait_for(uint32_t seen, const struct timespec *most)
{
    syscall(SYS_futex, &question.phase, FUTEX_WAIT_PRIVATE, seen, most, NULL, 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)number, (void)info;
    if (move_phase(asked((uint32_t)syscall(SYS_gettid)), READING)) {
        question.at = sonde_clock();
        question.lane = *sonde_lane_own();
        question.read = snd_python_frames(&question.python, question.state, &question.stack);
        question.stack.native_count = 0;
        if (question.native)
            snd_unwind(&question.unwind, context, &question.stack);
        __atomic_store_n(&question.phase, DONE, __ATOMIC_RELEASE);
        syscall(SYS_futex, &question.phase, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    errno = saved;
}

static bool is_ours(void)
{
    struct sigaction now;

    return sigaction(SIGURG, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_signal;
}

bool snd_interrupt_start(const struct snd_python *python, bool native)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK }, before;

    action.sa_sigaction = on_signal;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGURG, NULL, &before) != 0 || (before.sa_flags & SA_SIGINFO) ||
        (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN))
        return false;
    question.python = *python;
    question.before = before;
    question.native = question.stack.whole = native;
    question.on = sigaction(SIGURG, &action, NULL) == 0;
    return question.on;
}

void snd_interrupt_stop(void)
{
    if (question.on && is_ours())
        sigaction(SIGURG, &question.before, NULL);
    question.on = false;
}

void snd_interrupt_in_child(void)
{
    __atomic_store_n(&question.phase, IDLE, __ATOMIC_RELEASE);
    snd_interrupt_stop();
}

/* Waits until the thread has answered; false: it did not in time. */
static bool wait_answer(uint32_t tid)
{
    struct timespec most = { 0, PATIENCE_NS };
    uint32_t        phase;

    while ((phase = __atomic_load_n(&question.phase, __ATOMIC_ACQUIRE)) != DONE) {
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        wait_for(phase, phase == asked(tid) ? &most : NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t spent = (now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec;
        most.tv_nsec -= spent < most.tv_nsec ? (long)spent : most.tv_nsec;
        if (most.tv_nsec == 0 && move_phase(asked(tid), IDLE))
            return false;
    }
    return true;
}

enum snd_py_read snd_interrupt_read(void *user, uint32_t tid, uint64_t state,
                                    struct snd_py_hint *hint, struct snd_py_rider *rider,
                                    struct snd_py_stack *stack)
{
    struct snd_task task;

    (void)user, (void)hint;         /* a signal handler should read as little as possible */
    if (!question.on || !is_ours()) /* the program may have taken the signal meanwhile */
        return SND_PY_UNREAD;
    snd_task_open(&task, getpid(), tid);
    if (snd_task_blocks(&task, SIGURG)) /* it would stay pending, for sigwait() to find */
        return SND_PY_UNREAD;
    question.state = state;
    __atomic_store_n(&question.phase, asked(tid), __ATOMIC_RELEASE);
    if (syscall(SYS_tgkill, getpid(), tid, SIGURG) != 0 || !wait_answer(tid)) {
        if (!move_phase(asked(tid), IDLE))
            __atomic_store_n(&question.phase, IDLE, __ATOMIC_RELEASE);
        return SND_PY_UNREAD;
    }
    stack->count = question.stack.count;
    stack->cut = question.stack.cut;
    memcpy(stack->frames, question.stack.frames, stack->count * sizeof stack->frames[0]);
    stack->native_count = question.stack.native_count;
    stack->native_cut = question.stack.native_cut;
    stack->native_broken = question.stack.native_broken;
    memcpy(stack->native, question.stack.native, stack->native_count * sizeof stack->native[0]);
    rider->at = question.at;
    rider->has_last = rider->last.size > 0;
    memcpy(rider->last.out, &question.lane, rider->last.size);
    enum snd_py_read read = question.read;
    __atomic_store_n(&question.phase, IDLE, __ATOMIC_RELEASE);
    return read;
}
