/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling/sampling_inside.h"

#include <stdlib.h>

#include "base/count_of.h"

#define THREADS_FIRST 64u
#define REFRESH_NS 200000000u     /* how often the list is read, if no new thread is seen */
#define REFRESH_MANY_NS 50000000u /* the same, of several interpreters */
#define TORN_NS 50000000u         /* a list that is not whole for so long is not about to be */

void snd_sampling_close_thread_(struct snd_sampling *s, uint32_t at)
{
    snd_sampling_write_run_(s, &s->threads[at]);
    snd_task_close(&s->threads[at].task);
    s->threads[at] = s->threads[--s->thread_count];
    s->states[at] = s->states[s->thread_count];
}

static struct snd_sampling_thread *find_thread(struct snd_sampling        *s,
                                               const struct snd_py_thread *found)
{
    for (uint32_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].python.state == found->state &&
            s->threads[i].python.ident == found->ident && s->threads[i].python.tid == found->tid)
            return &s->threads[i];
    return NULL;
}

/* Until a new thread runs, its thread state has the name and id of the thread that created it. */
static bool has_begun(const struct snd_sampling *s, size_t n, size_t at)
{
    const struct snd_py_thread *t = &s->list[at];

    for (size_t i = at + 1; i < n; i++) /* newest first */
        if (s->list[i].ident == t->ident || (t->tid != 0 && s->list[i].tid == t->tid))
            return false;
    return t->ident != 0;
}

/*
 * After fork() from C code, a child's thread state keeps the parent's thread id unless Python is
 * notified. The child's only thread is its main thread, whose id the C library knows. 0: it has not
 * begun to run, or has ended.
 */
static uint32_t find_number(struct snd_sampling *s, const struct snd_py_thread *found)
{
    uint32_t told = found->tid ? snd_task_number(s->python.pid, found->tid) : 0;

    if (told != 0)
        return told;
    uint32_t number = snd_task_tid(s->python.pid, found->ident, &s->tid_offset);
    return found->tid == 0 || number == (uint32_t)s->python.pid ? number : 0;
}

/* By the recorder's clock; not before this recording has been sampled. */
static uint64_t clock_a_period_ago(const struct snd_sampling *s)
{
    uint64_t ns = s->now_ns - s->first_ns, ticks = s->now_clock - s->first_clock;

    if (ns <= s->period_ns)
        return s->first_clock;
    return s->now_clock - (uint64_t)((double)ticks * (double)s->period_ns / (double)ns);
}

/* *added: NULL if it has ended, or has not begun to run. False, and counted: out of memory. */
static bool add_thread(struct snd_sampling *s, const struct snd_py_thread *found, uint64_t now,
                       struct snd_sampling_thread **added)
{
    uint32_t tid = find_number(s, found);

    *added = NULL;
    if (tid == 0)
        return true;
    if (!snd_grow(&s->threads, &s->thread_room, s->thread_count, sizeof *s->threads) ||
        !snd_grow(&s->states, &s->state_room, s->thread_count, sizeof *s->states)) {
        snd_sampling_count_gap_(s, SND_SAMPLER_GAPS_NO_MEMORY);
        return false;
    }
    s->states[s->thread_count] = found->state;
    struct snd_sampling_thread *t = &s->threads[s->thread_count++];
    *t = (struct snd_sampling_thread){
        .python = *found,
        .seen_ns = now - s->period_ns,
        .seen_clock = clock_a_period_ago(s),
        .free_ns = s->round_ns,
        .stopped_ns = s->stopped_ns,
        .write_ns = SND_WRITE_FIRST_NS,
    };
    snd_task_open(&t->task, s->python.pid, tid);
    t->task.own_table |= s->own_table;
    *added = t;
    return true;
}

uint64_t snd_sampling_sign_(const struct snd_sampling *s)
{
    uint64_t sign = 0;

    for (size_t i = 0; i < s->interp_count; i++)
        sign = (sign * 1000003u + s->interps[i].head) * 1000003u + s->interps[i].made;
    return sign;
}

static size_t read_list(struct snd_sampling *s, bool *whole)
{
    struct snd_py_thread *known = s->list;

    s->list = s->known;
    s->known = known;
    s->known_count = s->list_count;
    s->list_count = 0;
    return snd_python_threads(&s->python, s->interps, s->interp_count, s->known, s->known_count,
                              s->list, s->list_room, whole);
}

static bool grow_lists(struct snd_sampling *s, size_t room)
{
    struct snd_py_thread **lists[] = { &s->list, &s->known };

    for (size_t i = 0; i < SND_COUNT_OF(lists); i++) {
        struct snd_py_thread *list = realloc(*lists[i], room * sizeof *list);
        if (!list)
            return false;
        *lists[i] = list;
    }
    s->list_room = room;
    return true;
}

/* Adds those that are new, closes those that are not in the list any more. True: all are known now. */
static bool take_list(struct snd_sampling *s, bool whole, uint64_t now)
{
    bool all = whole;

    for (uint32_t i = 0; i < s->thread_count; i++)
        s->threads[i].listed = false;
    for (size_t i = 0; i < s->list_count; i++) {
        struct snd_sampling_thread *t = find_thread(s, &s->list[i]);
        if (!t && whole && has_begun(s, s->list_count, i))
            all &= add_thread(s, &s->list[i], now, &t);
        else
            all &= t != NULL;
        if (t)
            t->listed = true;
    }
    for (uint32_t i = 0; i < s->thread_count;)
        if (s->threads[i].listed || !whole)
            i++;
        else
            snd_sampling_close_thread_(s, i);
    return all;
}

/*
 * Where threads come and go, a list may end early, at one that was freed meanwhile: the next round reads it
 * again. Only what stays so for long is a gap.
 */
static void note_whole(struct snd_sampling *s, bool whole, uint64_t now)
{
    if (s->whole_ns == 0 || (whole && !s->has_more))
        s->whole_ns = now;
    s->partial = now - s->whole_ns >= TORN_NS;
}

enum snd_round snd_sampling_list_(struct snd_sampling *s, uint64_t now)
{
    bool   whole;
    size_t n = read_list(s, &whole);

    if (n > s->list_room) {
        if (!grow_lists(s, n + THREADS_FIRST)) {
            snd_sampling_count_gap_(s, SND_SAMPLER_GAPS_NO_MEMORY);
            return SND_ROUND_MADE;
        }
        n = read_list(s, &whole);
        n = n < s->list_room ? n : s->list_room;
    }
    if (n == 0 && !whole)
        return SND_ROUND_UNREAD;
    s->list_count = n;
    bool all = take_list(s, whole, now);
    note_whole(s, whole, now);
    /* One that is about to begin is looked for in the next round. */
    s->list_due_ns = !all ? 0 : now + (s->interp_count > 1 ? REFRESH_MANY_NS : REFRESH_NS);
    s->list_sign = snd_sampling_sign_(s);
    return n > 0 ? SND_ROUND_MADE : SND_ROUND_NO_PYTHON;
}

enum snd_round snd_sampling_refresh_(struct snd_sampling *s, uint64_t now)
{
    bool whole;

    s->interp_count = snd_python_interpreters(&s->python, s->interps, SND_INTERPRETERS_MAX, &whole);
    s->has_more = !whole;
    if (s->interp_count == 0)
        return whole ? SND_ROUND_NO_PYTHON : SND_ROUND_UNREAD;
    return snd_python_update(&s->python, s->interps, s->interp_count) ? snd_sampling_list_(s, now)
                                                                      : SND_ROUND_UNREAD;
}

void snd_sampling_start_anew_(const struct snd_sampling *s, struct snd_sampling_thread *t)
{
    t->seen_ns = s->now_ns;
    t->seen_clock = s->now_clock + 1;
    t->stack = (struct snd_sampling_stack){ 0 };
    t->known = false;
}
