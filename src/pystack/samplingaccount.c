/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/samplinginside.h"

#define TICK_NS 20000000 /* another process's clocks may lag behind by a tick of the kernel's */

void snd_sampling_write_run_(struct snd_sampling *s, struct snd_sampling_thread *t, uint64_t at)
{
    const struct sonde_sample sample = { t->run.stack,   t->record,         t->run.state,
                                         t->run.samples, t->run.covered_ns, at };

    if (t->run.samples > 0 && t->record != 0)
        s->recorder.sample(&sample);
    t->run = (struct snd_sampling_run){ 0 };
}

/*
 * Charges the time since `seen_ns` to the thread's stack and state: it extends the run of equal
 * samples, which is written when it ends or has become long.
 */
static void account(struct snd_sampling *s, struct snd_sampling_thread *t, uint64_t now)
{
    struct snd_sampling_run *run = &t->run;

    /* All events of a round have the timestamp of the previous round, which is when they end. */
    bool is_long = run->covered_ns >= t->write_ns;
    if (run->samples > 0 && (run->stack != t->stack || run->state != t->state || is_long))
        snd_sampling_write_run_(s, t, s->last_clock);
    if (is_long && t->write_ns < SND_WRITE_NS)
        t->write_ns *= 2;
    run->stack = t->stack;
    run->state = t->state;
    run->samples++;
    run->covered_ns += now - t->seen_ns;
    t->seen_ns = now;
}

/*
 * Time since the previous sample that is charged to the previous state, not to `state`. A thread
 * holds the lock only since the round after the last one in which it did not, so that no time counts
 * for two threads; and it ran no longer than its CPU clock says. Less than a period is deferred, so
 * that a run of equal samples is not split for it.
 */
static uint64_t find_rest(const struct snd_sampling *s, struct snd_sampling_thread *t,
                          uint32_t state, uint64_t now)
{
    uint64_t rest = 0, whole = now - t->seen_ns;
    int64_t  slack = (int64_t)s->period_ns;

    if ((state & SONDE_SAMPLED_GIL) && t->free_ns > t->seen_ns)
        rest = t->free_ns - t->seen_ns;
    if (!t->task.own && slack < TICK_NS)
        slack = TICK_NS;
    if (!(state & SONDE_SAMPLED_ON_CPU))
        return rest;
    t->debt_ns += (int64_t)(whole - rest);
    t->unasked_ns += whole - rest;
    if (t->debt_ns > slack) {
        /* Charges what is owed; all of it if that is no more than one round. */
        int64_t left = (int64_t)(whole - rest),
                paid = left <= slack || left < t->debt_ns ? left : t->debt_ns;
        rest += (uint64_t)paid;
        t->debt_ns -= paid;
    }
    return rest;
}

void snd_sampling_account_(struct snd_sampling *s, struct snd_sampling_thread *t, uint32_t stack,
                           uint32_t state, uint64_t now)
{
    bool held = t->free_ns < t->seen_ns;

    if (t->stack == 0) { /* nothing is known of the time before but what it ran */
        t->stack = stack;
        t->state = 0;
        t->debt_ns = -(int64_t)(t->ran_ns < now - t->seen_ns ? t->ran_ns : now - t->seen_ns);
    }
    uint64_t rest = find_rest(s, t, state, now);
    if (rest > 0) {
        const uint32_t told = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU | SONDE_SAMPLED_GIL_WAIT;
        t->state = (t->state & ~told) | (held ? SONDE_SAMPLED_GIL : t->off);
        account(s, t, t->seen_ns + rest);
    }
    /*
     * A thread that lost the lock, is runnable and has not run is about to request the lock again.
     */
    if (state & SONDE_SAMPLED_GIL)
        t->off = SONDE_SAMPLED_GIL_WAIT;
    else if (!(state & SONDE_SAMPLED_ON_CPU))
        t->off = state & SONDE_SAMPLED_GIL_WAIT;
    t->stack = stack;
    if (t->seen_ns == now) { /* all of it: it is ready to run, and still as it was */
        const uint32_t native = SONDE_SAMPLED_NATIVE;
        t->state = (t->state & ~native) | (state & native); /* but for the stack */
        return;
    }
    t->state = state;
    account(s, t, now);
}
