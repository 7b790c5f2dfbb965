/* SPDX-License-Identifier: Apache-2.0 */
#include "native/perf/stack_events.h"

#include <stdlib.h>

struct stack_events {
    uint32_t stack;
    uint64_t events;
};

/* An event of one counter and processor, in one thread. */
struct event_state {
    uint64_t             event;
    uint32_t             counter;
    uint32_t             stack_count, stack_capacity;
    uint64_t             counted; /* up to the last sample */
    uint64_t             ahead;   /* the length of the interval since then */
    struct stack_events *stacks;  /* owned */
    struct snd_map       by_stack;
};

struct snd_thread_events {
    uint32_t            tid;
    uint32_t            state_count, state_capacity;
    struct event_state *states; /* owned; few: one for each processor that it ran on */
};

struct snd_rest_share {
    uint32_t counter, stack;
    double   weight; /* events that may have come after the last sample */
};

void snd_stack_events_init(struct snd_stack_events *e, snd_stack_events_add *add, void *user)
{
    *e = (struct snd_stack_events){ .add = add, .user = user };
}

static void add(const struct snd_stack_events *e, uint32_t stack, uint32_t counter,
                uint64_t samples, uint64_t events)
{
    if (stack != SND_STACK_LEFT_OUT)
        e->add(e->user, stack, counter, samples, events);
}

/* -------------------------------------------------------------------- samples */

static struct snd_key tid_key(uint32_t tid)
{
    return (struct snd_key){ tid, 0, 0 };
}

static struct snd_thread_events *find_thread(struct snd_stack_events *e, uint32_t tid)
{
    uint32_t at;

    if (snd_map_get(&e->by_tid, tid_key(tid), &at))
        return &e->threads[at];
    if (!snd_grow(&e->threads, &e->thread_capacity, e->thread_count, sizeof *e->threads) ||
        !snd_map_put(&e->by_tid, tid_key(tid), e->thread_count))
        return NULL;
    e->threads[e->thread_count] = (struct snd_thread_events){ .tid = tid };
    return &e->threads[e->thread_count++];
}

static struct event_state *find_state(struct snd_stack_events       *e,
                                      const struct snd_event_sample *sample)
{
    struct snd_thread_events *thread = find_thread(e, sample->tid);

    for (uint32_t i = 0; thread && i < thread->state_count; i++)
        if (thread->states[i].event == sample->event)
            return &thread->states[i];
    if (!thread || !snd_grow(&thread->states, &thread->state_capacity, thread->state_count,
                             sizeof *thread->states))
        return NULL;
    thread->states[thread->state_count] = (struct event_state){ .event = sample->event,
                                                                .counter = sample->counter };
    return &thread->states[thread->state_count++];
}

/* Where memory is out the thread's rest goes to its other stacks. */
static void keep_stack(struct event_state *state, uint32_t stack, uint64_t events)
{
    struct snd_key key = { stack, 0, 0 };
    uint32_t       at;

    if (!snd_map_get(&state->by_stack, key, &at)) {
        at = state->stack_count;
        if (!snd_grow(&state->stacks, &state->stack_capacity, at, sizeof *state->stacks) ||
            !snd_map_put(&state->by_stack, key, at))
            return;
        state->stacks[state->stack_count++] = (struct stack_events){ .stack = stack };
    }
    state->stacks[at].events += events;
}

/* A count that fell is that of another thread: the end of the one before was not seen. */
static uint64_t events_since(const struct event_state *state, const struct snd_event_sample *sample)
{
    if (!state || !sample->has_count)
        return sample->period;
    return sample->count >= state->counted ? sample->count - state->counted : sample->count;
}

void snd_stack_events_sample(struct snd_stack_events *e, const struct snd_event_sample *sample)
{
    struct event_state *state = find_state(e, sample);
    uint64_t            events = events_since(state, sample);

    if (state) {
        keep_stack(state, sample->stack, events);
        state->counted = sample->count;
        state->ahead = sample->period;
    }
    e->sampled[sample->counter] += events;
    e->period[sample->counter] = sample->period;
    e->samples[sample->counter]++;
    add(e, sample->stack, sample->counter, 1, events);
}

/* ---------------------------------------------------------------- what remains */

static void add_share(struct snd_stack_events *e, uint32_t counter, uint32_t stack, double weight)
{
    struct snd_key key = { counter, stack, 0 };
    uint32_t       at;

    if (!snd_map_get(&e->by_stack, key, &at)) {
        at = e->share_count;
        if (!snd_grow(&e->shares, &e->share_capacity, at, sizeof *e->shares) ||
            !snd_map_put(&e->by_stack, key, at))
            return;
        e->shares[e->share_count++] = (struct snd_rest_share){ counter, stack, 0 };
    }
    e->shares[at].weight += weight;
}

static void end_state(struct snd_stack_events *e, struct event_state *state)
{
    uint64_t whole = 0;

    for (uint32_t i = 0; i < state->stack_count; i++)
        whole += state->stacks[i].events;
    for (uint32_t i = 0; whole > 0 && i < state->stack_count; i++)
        add_share(e, state->counter, state->stacks[i].stack,
                  (double)state->ahead * (double)state->stacks[i].events / (double)whole);
    free(state->stacks);
    snd_map_release(&state->by_stack);
}

static bool has_counter(const struct snd_thread_events *thread, uint32_t counter)
{
    for (uint32_t i = 0; i < thread->state_count; i++)
        if (thread->states[i].counter == counter)
            return true;
    return false;
}

static void end_thread(struct snd_stack_events *e, struct snd_thread_events *thread)
{
    for (uint32_t i = 0; i < thread->state_count; i++)
        end_state(e, &thread->states[i]);
    free(thread->states);
}

void snd_stack_events_exit(struct snd_stack_events *e, uint32_t tid)
{
    static const struct snd_thread_events none = { 0 };
    uint32_t                              at;
    bool                                  is_known = snd_map_take(&e->by_tid, tid_key(tid), &at);

    /* A thread that ended before its first sample: the stacks of its events are unknown. */
    for (uint32_t n = 0; n < SND_COUNTERS_MOST; n++)
        if (e->samples[n] > 0 && !has_counter(is_known ? &e->threads[at] : &none, n))
            add_share(e, n, 0, (double)e->period[n]);
    if (!is_known)
        return;
    end_thread(e, &e->threads[at]);
    e->threads[at] = e->threads[--e->thread_count];
    if (at < e->thread_count) /* replaces a value: no memory is needed */
        (void)snd_map_put(&e->by_tid, tid_key(e->threads[at].tid), at);
}

/* In whole events, so that they add up. */
static void share_out(struct snd_stack_events *e, uint32_t counter, uint64_t rest)
{
    double   whole = 0, before = 0;
    uint64_t given = 0;

    for (uint32_t i = 0; i < e->share_count; i++)
        whole += e->shares[i].counter == counter ? e->shares[i].weight : 0;
    for (uint32_t i = 0; whole > 0 && i < e->share_count; i++) {
        if (e->shares[i].counter != counter)
            continue;
        before += e->shares[i].weight;
        double   part = before < whole ? before / whole : 1;
        uint64_t until = (uint64_t)((double)rest * part + 0.5);
        if (until > given)
            add(e, e->shares[i].stack, counter, 0, until - given);
        given = until;
    }
}

void snd_stack_events_settle(struct snd_stack_events *e, const uint64_t *counted, size_t counters)
{
    for (uint32_t i = 0; i < e->thread_count; i++)
        end_thread(e, &e->threads[i]);
    e->thread_count = 0;
    snd_map_release(&e->by_tid);
    for (uint32_t n = 0; n < counters; n++)
        if (counted[n] > e->sampled[n])
            share_out(e, n, counted[n] - e->sampled[n]);
}

void snd_stack_events_release(struct snd_stack_events *e)
{
    for (uint32_t i = 0; i < e->thread_count; i++)
        end_thread(e, &e->threads[i]);
    free(e->threads);
    free(e->shares);
    snd_map_release(&e->by_tid);
    snd_map_release(&e->by_stack);
    *e = (struct snd_stack_events){ 0 };
}
