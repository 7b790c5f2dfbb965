/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling/sampling_inside.h"

/* Running time that is taken from samples alone; beyond it another process's clock is read. */
#define ASK_NS 4000000u

/*
 * A stop is the whole process's, so that one thread of it tells for all that are looked at in a round; our own process's
 * is ours, too: while it is stopped nothing is looked at.
 */
static bool is_stopped(struct snd_sampling *s, const struct snd_sampling_thread *t)
{
    if (t->task.own)
        return false;
    if (s->stop_asked_ns != s->now_ns) {
        s->stop_asked_ns = s->now_ns;
        s->is_stopped = snd_task_is_stopped(&t->task);
    }
    return s->is_stopped;
}

static uint32_t tell_state(struct snd_sampling *s, struct snd_sampling_thread *t, bool holds)
{
    uint64_t futex;

    t->blocked = !snd_task_is_running(&t->task, &futex);
    if (!t->blocked)
        return SONDE_SAMPLED_ON_CPU | (holds ? SONDE_SAMPLED_GIL : 0u);
    if ((holds || futex != 0) && is_stopped(s, t))
        return 0; /* it neither uses the lock nor waits for it */
    if (holds)
        return SONDE_SAMPLED_GIL;
    return futex != 0 && snd_python_is_gil(&s->python, snd_sampling_interp_(s, t), futex)
               ? SONDE_SAMPLED_GIL_WAIT
               : 0u;
}

/*
 * Another process's clock is as of the last tick while its thread runs, or of when it began to run since; of a thread that
 * waits it is exact.
 */
static uint64_t find_lag(const struct snd_sampling *s, const struct snd_sampling_thread *t)
{
    uint64_t since = s->tick_ns;

    if (t->task.own)
        return 0;
    if (!(t->state & SONDE_SAMPLED_ON_CPU) && t->seen_ns > since)
        since = t->seen_ns;
    return s->now_ns > since ? s->now_ns - since : 0;
}

bool snd_sampling_ask_clock_(const struct snd_sampling *s, struct snd_sampling_thread *t,
                             bool *moved)
{
    uint64_t cpu_ns;

    if (!snd_task_cpu_ns(&t->task, &cpu_ns))
        return false;
    *moved = cpu_ns != t->cpu_ns;
    t->ran_ns = cpu_ns - t->cpu_ns;
    t->debt_ns -= (int64_t)t->ran_ns;
    if (t->debt_ns < -(int64_t)SND_WRITE_NS)
        t->debt_ns = -(int64_t)SND_WRITE_NS;
    t->cpu_ns = cpu_ns;
    t->known_ns = t->asked_ns - t->lag_ns;
    t->lag_ns = find_lag(s, t);
    t->asked_ns = s->now_ns;
    t->unasked_ns = 0;
    return true;
}

/*
 * Another process's clocks are read through files, and move with the kernel's tick. A thread has run if
 * it took the lock, or let go of it; and one that keeps it, if its innermost frame is at another instruction.
 */
static bool need_not_ask(const struct snd_sampling_thread *t, bool holds, bool switched)
{
    const uint32_t running = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU;

    return !t->task.own && t->stack.id != 0 && t->unasked_ns < ASK_NS &&
           (switched || (holds && (t->state & running) == running));
}

/* The stack that was read last is this thread's. True: it has gone on since the one before. */
static bool follow_top(const struct snd_sampling *s, struct snd_sampling_thread *t)
{
    struct snd_py_frame        none = { 0 };
    const struct snd_py_frame *top = s->stack.count > 0 ? &s->stack.frames[0] : &none;
    bool                       went_on = top->address != t->top_at || top->instr != t->top_instr;

    t->top_at = top->address;
    t->top_instr = top->instr;
    return went_on;
}

/* A thread that did not hold the lock in the round before, and does now, got it since. */
static void note_look(const struct snd_sampling *s, struct snd_sampling_thread *t, bool holds,
                      uint64_t now)
{
    if (!holds)
        t->free_ns = now;
    else if (!t->held)
        t->free_ns = s->round_ns;
    t->held = holds;
    t->looked_ns = now;
}

static void count_left_out(struct snd_sampling *s, enum snd_py_read read)
{
    if (read == SND_PY_NO_MEMORY)
        snd_sampling_count_gap_(s, SND_SAMPLER_GAPS_NO_MEMORY);
    else
        snd_sampling_count_(s, read == SND_PY_TORN ? SND_SAMPLER_TORN : SND_SAMPLER_UNREAD, 1);
}

/* Whether the stack that was read last is in sonde's own code, which starts or stops a recording. */
static bool is_own(const struct snd_sampling *s)
{
    for (size_t k = 0; s->own_code_count > 0 && k < s->stack.count; k++) {
        uint64_t code = s->stack.frames[k].code, bit = snd_sampling_own_bit_(code);
        if (SND_LIKELY(!(s->own_filter[bit / 64] >> bit % 64 & 1)))
            continue;
        for (size_t i = 0; i < s->own_code_count; i++)
            if (s->own_codes[i] == code)
                return true;
    }
    return false;
}

/* The thread counts as it was found last until now; what it does now is not the program's. */
static void leave_out(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    if (t->stack.id != 0)
        snd_sampling_account_(s, t, &t->stack, t->state);
    snd_sampling_write_run_(s, t);
    snd_sampling_start_anew_(s, t);
}

bool snd_sampling_look_(struct snd_sampling *s, struct snd_sampling_thread *t, bool holds,
                        uint64_t now)
{
    bool switched = holds != t->held;
    bool assumed = need_not_ask(t, holds, switched), moved = true;

    note_look(s, t, holds, now);
    if (!assumed && !snd_sampling_ask_clock_(s, t, &moved))
        return false;
    bool                      ran = moved || !t->known;
    uint32_t                  state = t->state & ~(uint32_t)SONDE_SAMPLED_NATIVE;
    struct snd_sampling_stack found = t->stack; /* one that has not run has the stack that it had */
    if (holds && moved)
        state = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU;
    else if (ran || holds || !t->blocked)
        state = tell_state(s, t, holds);
    if (assumed && !(state & SONDE_SAMPLED_ON_CPU)) {
        if (!snd_sampling_ask_clock_(s, t, &moved))
            return false;
        assumed = false;
    }
    if (ran || (holds && (state & SONDE_SAMPLED_ON_CPU))) {
        bool             on_cpu = state & SONDE_SAMPLED_ON_CPU, running = holds && on_cpu;
        enum snd_py_read read = snd_sampling_read_stack_(s, t, running, on_cpu, &found);
        t->known = read == SND_PY_READ && !running;
        if (read != SND_PY_READ) {
            count_left_out(s, read);
            return true;
        }
        if (is_own(s)) {
            leave_out(s, t);
            return true;
        }
        if (!follow_top(s, t) && assumed && !switched) {
            if (!snd_sampling_ask_clock_(s, t, &moved))
                return false;
            state = moved ? state : tell_state(s, t, holds);
        }
    }
    snd_sampling_account_(s, t, &found, state | (t->native ? SONDE_SAMPLED_NATIVE : 0u));
    return true;
}
