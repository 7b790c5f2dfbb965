/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling/sampling_inside.h"

#include <string.h>

#define BUSY_NS \
    200000000u /* older times count half: the share of the CPU that a busy thread gets */
#define CLOCK_PAIRS 3
#define TICK_NS 20000000 /* another process's clocks may lag behind by a tick of the kernel's */

struct snd_sampling_thread *snd_sampling_find_(const struct snd_sampling *s, uint64_t state)
{
    for (uint32_t i = 0; i < s->thread_count; i++)
        if (s->states[i] == state)
            return &s->threads[i];
    return NULL;
}

/*
 * One moment by two clocks, which are read one after the other: if something else ran in between, they are apart, and what one
 * thread had until then and another since would overlap. The recorder's is read on both sides: the pair that is closest counts.
 */
void snd_sampling_set_now_(struct snd_sampling *s)
{
    uint64_t closest = UINT64_MAX;

    for (unsigned i = 0; i < CLOCK_PAIRS; i++) {
        uint64_t before = s->recorder.clock(), ns = snd_clock_ns(CLOCK_MONOTONIC);
        uint64_t apart = s->recorder.clock() - before;
        if (apart >= closest)
            continue;
        closest = apart;
        s->now_ns = ns;
        s->now_clock = before + apart / 2;
    }
    s->tick_ns = snd_clock_ns(CLOCK_MONOTONIC_COARSE);
}

void snd_sampling_write_run_(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    const struct sonde_sample_run run = {
        .struct_size = sizeof run,
        .stack = t->run.stack.id,
        .thread = t->record,
        .state = t->run.state,
        .samples = t->run.samples,
        .begin = t->run.begin,
        .end = t->seen_clock,
        .read = t->run.stack.read,
    };

    if (t->run.samples > 0 && t->record != 0)
        s->recorder.sample(&run);
    t->run = (struct snd_sampling_run){ 0 };
}

/* The recorder's clock at a moment between those up to which the thread is accounted for and now. */
static uint64_t find_clock(const struct snd_sampling *s, const struct snd_sampling_thread *t,
                           uint64_t ns)
{
    __extension__ typedef unsigned __int128 wide;

    if (ns >= s->now_ns || s->now_clock <= t->seen_clock)
        return s->now_clock;
    return t->seen_clock + (uint64_t)((wide)(s->now_clock - t->seen_clock) * (ns - t->seen_ns) /
                                      (s->now_ns - t->seen_ns));
}

static bool is_same(const struct snd_sampling_stack *a, const struct snd_sampling_stack *b)
{
    return a->id == b->id && memcmp(&a->mark, &b->mark, sizeof a->mark) == 0;
}

/*
 * Charges the time from `seen_ns` to `until` to the thread's stack and state: it extends the run of equal
 * samples, which is written when it ends or has become long.
 */
static void account(struct snd_sampling *s, struct snd_sampling_thread *t, uint64_t until)
{
    struct snd_sampling_run *run = &t->run;

    bool is_long = run->covered_ns >= t->write_ns;
    if (run->samples > 0 && (!is_same(&run->stack, &t->stack) || run->state != t->state || is_long))
        snd_sampling_write_run_(s, t);
    if (is_long && t->write_ns < SND_WRITE_NS)
        t->write_ns *= 2;
    if (run->samples == 0)
        run->begin = t->seen_clock;
    run->stack = t->stack;
    run->state = t->state;
    run->samples++;
    run->covered_ns += until - t->seen_ns;
    t->seen_clock = find_clock(s, t, until);
    t->seen_ns = until;
}

/*
 * Elapsed time in which the thread ran for `ran_ns`: more than that where it shares a processor. Estimated from
 * rounds that found it running twice in a row.
 */
static uint64_t stretch(const struct snd_sampling_thread *t, uint64_t ran_ns, uint64_t most)
{
    if (t->busy_ran_ns > 0 && t->busy_ns > t->busy_ran_ns)
        ran_ns = (uint64_t)((double)ran_ns * (double)t->busy_ns / (double)t->busy_ran_ns);
    return ran_ns < most ? ran_ns : most;
}

static void follow_busy(struct snd_sampling_thread *t, uint64_t whole)
{
    t->busy_ns += whole;
    t->busy_ran_ns += t->ran_ns;
    if (t->busy_ns > BUSY_NS) {
        t->busy_ns /= 2;
        t->busy_ran_ns /= 2;
    }
}

static bool runs(uint32_t state)
{
    return state & SONDE_SAMPLED_ON_CPU;
}

/* Until when a thread that had the lock, and has lost it, had it. */
struct handover {
    uint64_t at; /* not later than this: who has it now took it then */
    bool
        sure; /* not earlier either: the thread that took the lock had waited for it, so it was never free */
};

/* Who has the lock now is accounted for first, so that it is never two threads' at a time. Never, if the thread has not lost it. */
static struct handover find_handover(const struct snd_sampling        *s,
                                     const struct snd_sampling_thread *t, uint32_t state)
{
    if (!(t->state & SONDE_SAMPLED_GIL) || state & SONDE_SAMPLED_GIL)
        return (struct handover){ UINT64_MAX, false };
    uint64_t                          holder = snd_sampling_interp_(s, t)->holder;
    const struct snd_sampling_thread *now = holder != 0 ? snd_sampling_find_(s, holder) : NULL;

    if (holder == 0)
        return (struct handover){ s->now_ns, false };
    if (!now || now->seen_ns != s->now_ns) /* it could not be read: it will have all of this time */
        return (struct handover){ t->seen_ns, false };
    return (struct handover){ now->held_ns, now->awaited };
}

/* It was until then as it was found, but for the lock: that it had until another took it. */
static void charge_found(struct snd_sampling *s, struct snd_sampling_thread *t, uint64_t until,
                         uint64_t lost_ns)
{
    if (lost_ns < until) {
        if (lost_ns > t->seen_ns)
            account(s, t, lost_ns);
        t->state &= ~(uint32_t)SONDE_SAMPLED_GIL;
    }
    account(s, t, until);
}

/* It had the lock until then: as far as its clock says it ran, and then it was ready to. */
static void charge_hold(struct snd_sampling *s, struct snd_sampling_thread *t, uint64_t until)
{
    if (until <= t->seen_ns)
        return;
    uint64_t whole = until - t->seen_ns;
    uint64_t ran = runs(t->state) && t->debt_ns < 0 ? (uint64_t)-t->debt_ns : 0;

    ran = ran < whole ? ran : whole;
    t->debt_ns += (int64_t)ran;
    if (ran > 0)
        account(s, t, t->seen_ns + ran);
    uint32_t before = t->state;
    t->state &= ~(uint32_t)SONDE_SAMPLED_ON_CPU;
    if (ran < whole)
        account(s, t, until);
    t->state = before; /* state as found: the time that follows is charged to it */
}

/*
 * What it ran up to now, by its clock, from when it was found running until it was found waiting. Another process's
 * clock is exact now, and was late when it was read before.
 */
static uint64_t find_run(const struct snd_sampling *s, const struct snd_sampling_thread *t,
                         uint32_t state)
{
    uint64_t whole = s->now_ns - t->seen_ns;
    uint64_t before = t->seen_ns > t->known_ns ? t->seen_ns - t->known_ns : 0;

    if (runs(state) || !runs(t->state))
        return 0;
    return stretch(t, t->ran_ns > before ? t->ran_ns - before : 0, whole);
}

/*
 * A thread that waits now ran first, as long as its CPU clock says: in the stack in which it was found running. Else
 * each wait would have, on average, half a period of what came before it, and none of what comes after. One that has
 * lost the lock had it until another took it.
 */
static void charge_before(struct snd_sampling *s, struct snd_sampling_thread *t, uint32_t state)
{
    struct handover handover = find_handover(s, t, state);
    uint64_t        ran = find_run(s, t, state);

    t->debt_ns += (int64_t)ran;
    if (ran > 0)
        charge_found(s, t, t->seen_ns + ran, handover.at);
    if (handover.sure)
        charge_hold(s, t, handover.at);
}

/*
 * Time since the previous sample that is charged to the previous state, not to `state`. A thread
 * holds the lock only since the round after the last one in which it did not, so that no time counts
 * for two threads; and it ran no longer than its CPU clock says. Less than a period is deferred, so
 * that a run of equal samples is not split for it.
 */
static uint64_t find_rest(const struct snd_sampling *s, struct snd_sampling_thread *t,
                          uint32_t state)
{
    uint64_t rest = 0, whole = s->now_ns - t->seen_ns;
    int64_t  slack = (int64_t)s->period_ns;

    if ((state & SONDE_SAMPLED_GIL) && t->free_ns > t->seen_ns)
        rest = t->free_ns - t->seen_ns;
    if (!t->task.own && slack < TICK_NS)
        slack = TICK_NS;
    if (!runs(state))
        return rest;
    if (t->task.own && !runs(t->state)) { /* it waited, and has run since */
        uint64_t waited = whole - stretch(t, t->ran_ns, whole);
        rest = waited > rest ? waited : rest;
        t->debt_ns += (int64_t)(whole - rest);
        return rest;
    }
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

/*
 * A thread that waited and waits, now in another stack, ran in between, as long as its clock says: after half of what
 * it waited, since it is not known when, and in the stack that it had waited in. Who waits for the lock in the midst of what
 * it does, gets it, ends that and goes to sleep, would have slept all that time.
 */
static void charge_waits(struct snd_sampling *s, struct snd_sampling_thread *t, uint32_t state,
                         uint32_t stack)
{
    uint64_t whole = s->now_ns - t->seen_ns;
    uint64_t ran = stretch(t, t->ran_ns, whole);

    if (runs(state) || runs(t->state) || t->stack.id == stack || ran == 0)
        return;
    uint64_t waited = (whole - ran) / 2;
    uint32_t before = t->state;
    if (waited > 0)
        charge_found(s, t, t->seen_ns + waited, find_handover(s, t, state).at);
    t->state = (before & SONDE_SAMPLED_NATIVE) | SONDE_SAMPLED_ON_CPU;
    t->debt_ns += (int64_t)ran;
    account(s, t, t->seen_ns + ran);
    t->state = before;
}

/* While the process was stopped the thread was idle, in the stack and with the lock that it had. */
static void charge_stop(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    uint64_t stopped = s->stopped_ns - t->stopped_ns, whole = s->now_ns - t->seen_ns;

    t->stopped_ns = s->stopped_ns;
    whole = whole > t->ran_ns ? whole - t->ran_ns : 0;
    if (stopped == 0 || whole == 0)
        return;
    uint32_t before = t->state;
    t->state &= SONDE_SAMPLED_NATIVE;
    account(s, t, t->seen_ns + (stopped < whole ? stopped : whole));
    t->state = before;
}

void snd_sampling_account_(struct snd_sampling *s, struct snd_sampling_thread *t,
                           const struct snd_sampling_stack *found, uint32_t state)
{
    const struct snd_sampling_stack stack = *found; /* it may be the thread's own */

    bool     held = t->free_ns < t->seen_ns;
    uint64_t now = s->now_ns;

    if (t->stack.id == 0) { /* nothing is known of the time before but what it ran */
        t->stack = stack;
        t->state = 0;
        t->debt_ns = -(int64_t)(t->ran_ns < now - t->seen_ns ? t->ran_ns : now - t->seen_ns);
    }
    charge_stop(s, t);
    if (runs(t->state) && runs(state) && t->task.own)
        follow_busy(t, now - t->seen_ns);
    charge_waits(s, t, state, stack.id);
    charge_before(s, t, state);
    uint64_t rest = find_rest(s, t, state);
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
    if ((state & SONDE_SAMPLED_GIL) && !(t->state & SONDE_SAMPLED_GIL)) {
        t->held_ns = t->seen_ns;
        t->awaited = t->state & SONDE_SAMPLED_GIL_WAIT;
    }
    if (t->seen_ns == now) { /* all of it: it is ready to run, and still as it was */
        const uint32_t native = SONDE_SAMPLED_NATIVE;
        if ((state ^ t->state) &
            SONDE_SAMPLED_GIL) /* but that it has the lock by now, or has lost it */
            t->state = state & SONDE_SAMPLED_GIL ? SONDE_SAMPLED_GIL : t->off;
        t->state = (t->state & ~native) | (state & native); /* and for the stack */
        return;
    }
    t->state = state;
    account(s, t, now);
}

void snd_sampling_count_gap_(struct snd_sampling *s, enum snd_tally_word word)
{
    s->counts.gaps[word]++;
    if (!s->gaps && s->epoch != 0)
        s->gaps = s->recorder.tally(SONDE_TALLY_SAMPLER_GAPS, 0, 0, SND_SAMPLER_GAPS_WORDS);
    if (s->gaps)
        s->gaps[word]++;
}
