/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/calls/call_sessions.c - calls counted for sessions that are nested or overlap.
 *
 * Each session on each thread has a stack of its own, which follows the process's:
 *
 *     process   main  work  f  g          open when the session began: main, work
 *     session               f  g          below = 2
 *
 * A session's innermost entry is the process's innermost one exactly when below + depth is the
 * process's depth. So a session counts what it would count alone: calls that were open before it
 * are not in it, and what they call has no caller. Its tallies have its number.
 */
#include "probes/python/calls/call_inside.h"

#include <stdlib.h>
#include <string.h>

static struct snd_calls_session *sessions;

static struct snd_calls_session *find(uint32_t number)
{
    struct snd_calls_session *session = sessions;

    while (session && session->number != number)
        session = session->next;
    return session;
}

static struct snd_calls_session *find_or_make(uint32_t number)
{
    struct snd_calls_session *session = find(number);

    if (session)
        return session;
    session = calloc(1, sizeof *session);
    if (session) {
        session->number = number;
        session->next = sessions;
        sessions = session;
    }
    return session;
}

/* --------------------------------------------------------------------- threads */

/* The session's stack of the thread `t`, on which `below` calls are open; NULL: no memory. */
static struct snd_calls_thread *stack_of(struct snd_calls_thread  *t,
                                         struct snd_calls_session *session, uint32_t below)
{
    struct snd_calls_thread *own = t->sessions;

    while (own && own->owner != session)
        own = own->next;
    if (!own) {
        own = snd_calls_new_thread_(session);
        if (!own) {
            snd_calls.lost++;
            return NULL;
        }
        own->next = t->sessions;
        t->sessions = own;
    }
    if (own->session != session->session) {
        snd_calls_reset_(own);
        own->below = below;
    }
    return own;
}

void snd_calls_sessions_enter_(struct snd_calls_thread *t, uint32_t function, const void *key,
                               bool resumed)
{
    uint32_t before = t->depth - 1; /* the process has pushed the call already */

    for (struct snd_calls_session *s = snd_calls.sessions_on; s; s = s->next_on) {
        struct snd_calls_thread *own = stack_of(t, s, before);
        if (own && own->below + own->depth == before)
            snd_calls_push_(own, function, key, resumed, true);
    }
}

void snd_calls_sessions_leave_(struct snd_calls_thread *t)
{
    for (struct snd_calls_session *s = snd_calls.sessions_on; s; s = s->next_on) {
        struct snd_calls_thread *own = stack_of(t, s, t->depth);
        if (!own)
            continue;
        if (own->depth > 0 && own->below + own->depth == t->depth)
            snd_calls_pop_(own, true);
        else if (own->below >= t->depth)
            own->below = t->depth - 1;
    }
}

/* A coroutine that was suspended before the session began does not count for it. */
void snd_calls_sessions_resume_(struct snd_calls_thread *t, uint64_t since)
{
    for (struct snd_calls_session *s = snd_calls.sessions_on; s; s = s->next_on) {
        struct snd_calls_thread *own = stack_of(t, s, t->depth);
        if (!own || since < s->since || own->depth == 0 || own->below + own->depth != t->depth)
            continue;
        struct snd_calls_entry *entry = &own->stack[own->depth];
        if (entry->start > since)
            entry->edge->words[SND_CALLS_AWAITING_TICKS] += entry->start - since;
    }
}

void snd_calls_sessions_in_child_(struct snd_calls_thread *t)
{
    for (struct snd_calls_thread *own = t->sessions; own; own = own->next)
        own->session = own->owner->session - 1;
}

void snd_calls_sessions_ended_(struct snd_calls_thread *t)
{
    for (struct snd_calls_thread *own = t->sessions; own; own = own->next) {
        if (own->owner->on && own->session == own->owner->session)
            snd_calls_close_all_(own);
        own->below = 0;
    }
}

/* ------------------------------------------------------------------ on and off */

static void turn_on(struct snd_calls_session *session)
{
    session->session++;
    session->since = sonde_clock();
    session->on = true;
    session->next_on = snd_calls.sessions_on;
    snd_calls.sessions_on = session;
    snd_calls_set_more_();
}

bool snd_calls_session_start(uint32_t number)
{
    struct snd_calls_session *session = find_or_make(number);

    if (session && !session->on)
        turn_on(session);
    return session != NULL;
}

void snd_calls_session_stop(uint32_t number)
{
    struct snd_calls_session *session = find(number);

    if (!session || !session->on)
        return;
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next)
        for (struct snd_calls_thread *own = t->sessions; own; own = own->next)
            if (own->owner == session && own->session == session->session) {
                snd_calls_close_all_(own);
                snd_calls_reset_(own);
            }
    session->on = false;
    struct snd_calls_session **link = &snd_calls.sessions_on;
    while (*link != session)
        link = &(*link)->next_on;
    *link = session->next_on;
    snd_calls_set_more_();
}

/* ------------------------------------------------------------------- splitting */

/* Copies the process's open calls to the session, with their start times. */
static bool copy_stack(struct snd_calls_thread *t, struct snd_calls_session *session)
{
    struct snd_calls_thread *own = stack_of(t, session, 0);

    for (uint32_t i = 1; own && i <= t->depth; i++) {
        struct snd_calls_entry *from = &t->stack[i];
        if ((own->depth + 1 >= own->room || from->function >= own->function_room) &&
            !snd_calls_room_(own, from->function))
            return false;
        struct snd_calls_edge *edge = snd_calls_edge_(own, own->stack[own->depth].function,
                                                      from->function);
        if (!edge)
            return false;
        struct snd_calls_entry *entry = &own->stack[++own->depth];
        *entry = *from;
        entry->edge = edge;
        entry->counted = edge->words;
        edge->open |= entry->edge_outermost;
        own->functions[entry->function].open |= entry->outermost;
    }
    return own != NULL;
}

static bool copy_counts(struct snd_calls_session *session)
{
    struct snd_key pair;

    for (size_t at = 0; snd_map_next(&snd_calls_process_.pairs, &at, &pair);) {
        uint64_t *from = snd_calls_words_(0, (uint32_t)pair.a, (uint32_t)pair.b);
        uint64_t *to = snd_calls_words_(session->number, (uint32_t)pair.a, (uint32_t)pair.b);
        if (!snd_map_put(&session->pairs, pair, 0))
            return false;
        if (from && to)
            memcpy(to, from, SND_CALLS_WORDS * sizeof *to);
    }
    return true;
}

bool snd_calls_session_split(uint32_t number, bool on)
{
    struct snd_calls_session *session = find_or_make(number);

    if (!session || !copy_counts(session))
        return false;
    if (!on)
        return true;
    turn_on(session);
    session->since = 0;
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next)
        if (t->session == snd_calls.session && !copy_stack(t, session))
            return false;
    return true;
}

/* ------------------------------------------------------------------ forgetting */

static void drop_stacks(const struct snd_calls_session *session)
{
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next)
        for (struct snd_calls_thread **link = &t->sessions, *own; (own = *link);) {
            if (own->owner == session) {
                *link = own->next;
                snd_calls_free_thread_(own);
            } else {
                link = &own->next;
            }
        }
}

void snd_calls_session_forget(uint32_t number, bool has)
{
    struct snd_calls_session **link = &sessions, *session = find(number);
    struct snd_key             pair;

    if (!session)
        return;
    snd_calls_session_stop(number);
    for (size_t at = 0; has && snd_map_next(&session->pairs, &at, &pair);) {
        uint64_t *words = snd_calls_words_(number, (uint32_t)pair.a, (uint32_t)pair.b);
        if (words)
            memset(words, 0, SND_CALLS_WORDS * sizeof *words);
    }
    drop_stacks(session);
    snd_map_release(&session->pairs);
    while (*link != session)
        link = &(*link)->next;
    *link = session->next;
    free(session);
}

void snd_calls_sessions_renew(void)
{
    while (sessions)
        snd_calls_session_forget(sessions->number, false);
}
