/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/sampler/interrupt.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock_ns.h"
#include "pystack/task.h"
#include "pystack/unwind/unwind.h"
#include "sonde/record.h"

#define PATIENCE_NS 20000000 /* how long a thread's answer is waited for */
#define AWAKE_NS 20000u      /* the first part of that, in which the asker does not sleep */
#define OPEN_NS 50000000u /* a thread that answered is taken not to block the signal for so long */
#define HELD_NS 20000u    /* how long a thread stands still for the asker to read its stack */

enum phase { IDLE, ASKED, HELD, READING, DONE };

/*
 * One question at a time. A thread that is asked stands still until the asker, which is awake, has read its
 * stack (HELD): that is one call to the kernel, from memory that the asker has known before. If the asker
 * sleeps, or does not get a processor, and where native frames are wanted, the thread reads its stack itself (READING):
 * then the other members belong to it, else to the asker. ASKED and HELD hold the thread that is asked: a signal
 * may reach a thread that is no longer waited for.
 */
static struct {
    uint32_t            phase;  /* a futex */
    uint32_t            sleeps; /* the asker */
    uint64_t            state;
    enum snd_py_read    read;
    struct snd_py_stack stack;
    struct sonde_lane   lane; /* the thread's */
    uint64_t            at;   /* sonde_clock() */
    struct snd_python   python;
    struct snd_unwind   unwind;
    struct sigaction    before;
    bool                on, native;
    uint32_t            open_tid; /* the thread that answered last; 0: none */
    uint64_t            open_ns;  /* until when that tells that it does not block the signal */
} question;

static uint32_t asked(uint32_t tid)
{
    return tid << 3 | ASKED;
}

static uint32_t held(uint32_t tid)
{
    return tid << 3 | HELD;
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

/*
 * In the thread that is asked, until the asker has read its stack. True: it has not, and the thread is to read
 * it itself.
 */
static bool stand_still(uint32_t tid)
{
    if (question.native || __atomic_load_n(&question.sleeps, __ATOMIC_ACQUIRE))
        return move_phase(asked(tid), READING);
    if (!move_phase(asked(tid), held(tid)))
        return false;
    uint64_t end = snd_clock_ns(CLOCK_MONOTONIC) + HELD_NS;
    while (__atomic_load_n(&question.phase, __ATOMIC_ACQUIRE) == held(tid))
        if (snd_clock_ns(CLOCK_MONOTONIC) >= end)
            return move_phase(held(tid), READING);
    return false;
}

static void read_own(void *context)
{
    question.at = sonde_clock();
    question.lane = *sonde_lane_own();
    question.read = snd_python_frames(&question.python, question.state, &question.stack);
    question.stack.native_count = 0;
    if (question.native)
        snd_unwind(&question.unwind, context, &question.stack);
    __atomic_store_n(&question.phase, DONE, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&question.sleeps, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &question.phase, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)number, (void)info;
    if (stand_still((uint32_t)syscall(SYS_gettid)))
        read_own(context);
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
    question.open_tid = 0;
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

static bool has_answered(uint32_t tid, uint32_t *phase)
{
    *phase = __atomic_load_n(&question.phase, __ATOMIC_ACQUIRE);
    return *phase == DONE || *phase == held(tid);
}

/* To sleep costs as much as most answers take. */
static bool wait_awake(uint32_t tid)
{
    uint64_t end = snd_clock_ns(CLOCK_MONOTONIC) + AWAKE_NS;
    uint32_t phase;

    while (!has_answered(tid, &phase))
        if (snd_clock_ns(CLOCK_MONOTONIC) >= end)
            return false;
    return true;
}

/* Waits until the thread has answered; false: it did not in time. */
static bool wait_asleep(uint32_t tid)
{
    struct timespec most = { 0, PATIENCE_NS };
    uint64_t        begin;
    uint32_t        phase;

    __atomic_store_n(&question.sleeps, 1, __ATOMIC_SEQ_CST);
    while (!has_answered(tid, &phase)) {
        begin = snd_clock_ns(CLOCK_MONOTONIC);
        wait_for(phase, phase == asked(tid) ? &most : NULL);
        uint64_t spent = snd_clock_ns(CLOCK_MONOTONIC) - begin;
        most.tv_nsec -= spent < (uint64_t)most.tv_nsec ? (long)spent : most.tv_nsec;
        if (most.tv_nsec == 0 && move_phase(asked(tid), IDLE))
            return false;
    }
    return true;
}

/*
 * The thread blocks the signal that it was sent: it has done so since it last answered. A signal that becomes one to be
 * ignored is no longer pending anywhere; nor is one that the program waits for, if it came at this very moment.
 */
static void take_back(void)
{
    struct sigaction ours, now;

    if (!is_ours() || sigaction(SIGURG, &question.before, &ours) != 0)
        return;
    if (sigaction(SIGURG, &ours, &now) == 0 && now.sa_handler != question.before.sa_handler)
        sigaction(SIGURG, &now, NULL); /* the program has a handler since */
}

/*
 * Whether a thread blocks the signal, which would then stay pending, for sigwait() to find, is a file to read: a good part of
 * what an interruption costs. One that has just answered is sent it, and looked at if it does not answer at once.
 */
static bool ask(struct snd_task *task)
{
    const uint32_t tid = task->tid;
    bool is_open = tid == question.open_tid && snd_clock_ns(CLOCK_MONOTONIC) < question.open_ns;

    question.open_tid = 0;
    if (!is_open && snd_task_blocks(task, SIGURG))
        return false;
    __atomic_store_n(&question.sleeps, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&question.phase, asked(tid), __ATOMIC_RELEASE);
    if (syscall(SYS_tgkill, question.python.pid, tid, SIGURG) != 0) {
        __atomic_store_n(&question.phase, IDLE, __ATOMIC_RELEASE);
        return false;
    }
    if (!wait_awake(tid)) {
        if (is_open && snd_task_blocks(task, SIGURG) && move_phase(asked(tid), IDLE)) {
            take_back();
            return false;
        }
        if (!wait_asleep(tid))
            return false;
    }
    question.open_tid = tid;
    question.open_ns = snd_clock_ns(CLOCK_MONOTONIC) + OPEN_NS;
    return true;
}

/* While the thread stands still. False: it did not as long as that took. */
static bool read_held(uint32_t tid, struct snd_py_hint *hint, struct snd_py_rider *rider,
                      struct snd_py_stack *stack, enum snd_py_read *read)
{
    if (__atomic_load_n(&question.phase, __ATOMIC_ACQUIRE) != held(tid))
        return false;
    rider->at = sonde_clock();
    *read = snd_python_halted(&question.python, question.state, hint, rider, stack);
    return move_phase(held(tid), IDLE);
}

/* What the thread has read. */
static enum snd_py_read take_answer(struct snd_py_rider *rider, struct snd_py_stack *stack)
{
    stack->count = question.stack.count;
    stack->cut = question.stack.cut;
    memcpy(stack->frames, question.stack.frames, stack->count * sizeof stack->frames[0]);
    stack->native_count = question.stack.native_count;
    stack->native_cut = question.stack.native_cut;
    stack->native_broken = question.stack.native_broken;
    memcpy(stack->native, question.stack.native, stack->native_count * sizeof stack->native[0]);
    rider->at = question.at;
    rider->whole = 0;
    rider->has_last = rider->last.size > 0;
    if (rider->has_last)
        memcpy(rider->last.out, &question.lane, rider->last.size);
    enum snd_py_read read = question.read;
    __atomic_store_n(&question.phase, IDLE, __ATOMIC_RELEASE);
    return read;
}

enum snd_py_read snd_interrupt_read(void *user, struct snd_task *task, uint64_t state,
                                    struct snd_py_hint *hint, struct snd_py_rider *rider,
                                    struct snd_py_stack *stack)
{
    enum snd_py_read read;

    (void)user;
    if (!question.on || !is_ours()) /* the program may have taken the signal meanwhile */
        return SND_PY_UNREAD;
    question.state = state;
    if (!ask(task))
        return SND_PY_UNREAD;
    if (read_held(task->tid, hint, rider, stack, &read))
        return read;
    if (!wait_awake(task->tid))
        wait_asleep(task->tid);
    return take_answer(rider, stack);
}
