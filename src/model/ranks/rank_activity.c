/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/rank_activity.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"

/* --------------------------------------------------------------------- ranks */

/* A child that a rank forked has its parent's rank. */
static bool is_helper_of(const struct sonde_trace *trace, const struct snd_process *child)
{
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        if (p != child && p->header.pid == child->header.parent_pid &&
            p->shown.rank == child->shown.rank && strcmp(p->shown.host, child->shown.host) == 0)
            return true;
    }
    return false;
}

/* Helpers of a rank (DataLoader's workers) are none. */
static void find_ranks(struct snd_activity *a)
{
    const struct sonde_trace *trace = a->trace;
    bool                      any = false;

    for (uint32_t i = 0; i < trace->process_count; i++)
        any |= trace->processes[i].shown.rank != SONDE_NONE;
    bool is_alone = !any && trace->process_count == 1; /* no job */
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        bool                      is_helper = p->is_guest || is_helper_of(trace, p);
        a->processes[i].is_rank = !is_helper && !is_alone && (!any || p->shown.rank != SONDE_NONE);
    }
}

bool snd_activity_begin(struct snd_activity *a, struct sonde_trace *trace)
{
    a->trace = trace;
    a->threads = calloc((size_t)trace->thread_count + 1, sizeof *a->threads);
    a->processes = calloc((size_t)trace->process_count + 1, sizeof *a->processes);
    a->by_name = calloc((size_t)trace->names.count + 1, sizeof *a->by_name);
    if (!a->threads || !a->processes || !a->by_name)
        return false;
    for (uint32_t i = 0; i < trace->process_count; i++) {
        a->processes[i].ends = SONDE_NONE;
        a->processes[i].last_ns = INT64_MIN;
    }
    for (uint32_t i = 0; i < trace->thread_count; i++)
        a->processes[trace->threads[i].shown.process].threads[SND_NOTHING]++;
    find_ranks(a);
    return true;
}

void snd_activity_release(struct snd_activity *a)
{
    free(a->threads);
    free(a->processes);
    free(a->by_name);
}

uint32_t snd_activity_rank_count(const struct snd_activity *a)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < a->trace->process_count; i++)
        count += a->processes[i].is_rank;
    return count;
}

/* ------------------------------------------------------------ what a range is */

enum snd_doing snd_doing_by_name(struct snd_text name)
{
    /* FSDP2 waits for its collectives in ranges of its own. */
    static const char *const communicating[] = {
        "c10d::", "gloo:", "nccl:", "ucc:", "mpi:", "record_param_comms", "FSDP::"
    };

    for (size_t i = 0; i < SND_COUNT_OF(communicating); i++)
        if (snd_begins_with_at(name.bytes, name.length, communicating[i]))
            return SND_COMMUNICATES;
    return snd_begins_with_at(name.bytes, name.length, "enumerate(DataLoader)") ? SND_LOADS
                                                                                : SND_NOTHING;
}

static inline enum snd_doing judge(const struct snd_activity *a, const struct snd_range *r)
{
    if (a->by_name[r->name] == 0)
        a->by_name[r->name] = (uint8_t)(snd_doing_by_name(a->trace->names.items[r->name]) + 1);
    enum snd_doing by_name = a->by_name[r->name] - 1;
    if (by_name != SND_NOTHING)
        return by_name;
    bool is_work = r->scope == SONDE_SCOPE_FUNCTION || r->scope == SONDE_SCOPE_BACKWARD;
    return is_work && !r->api ? SND_COMPUTES : SND_NOTHING;
}

/* The thread does something else from now on. */
static inline void turn_to(struct snd_process_activity *p, struct snd_thread_activity *t,
                           enum snd_doing now)
{
    p->threads[t->doing]--;
    p->threads[now]++;
    t->doing = (uint8_t)now;
}

/* A range of what it did has closed, the last one of its kind: by what is open yet. */
static void fall_back(struct snd_process_activity *p, struct snd_thread_activity *t)
{
    enum snd_doing now = t->doing;

    while (now > SND_NOTHING && t->open[now] == 0)
        now--;
    turn_to(p, t, now);
}

static inline uint32_t number_of(const struct snd_activity *a, const struct snd_process_activity *p)
{
    return (uint32_t)(p - a->processes);
}

/* Hands over the time since the process's last change. */
static void hand_over(struct snd_activity *a, struct snd_process_activity *p, int64_t ns)
{
    if (!p->began) {
        p->began = true;
        p->first_ns = p->at_ns = ns;
    }
    if (ns <= p->at_ns)
        return;
    a->stretch(a->user, number_of(a, p), p->threads, p->at_ns, ns);
    p->at_ns = ns;
}

/* The leaves under way that end until then end. */
static void end_leaves(struct snd_activity *a, struct snd_process_activity *p, int64_t ns)
{
    while (p->ends != SONDE_NONE && a->threads[p->ends].end_ns <= ns) {
        struct snd_thread_activity *t = &a->threads[p->ends];
        p->ends = t->next_end;
        hand_over(a, p, t->end_ns);
        t->open[t->leaf]--;
        fall_back(p, t);
    }
}

/* It was opened, and ends then, whatever other threads of the process do until then. */
static void close_later(struct snd_activity *a, struct snd_process_activity *p, uint32_t thread,
                        enum snd_doing does, int64_t end_ns)
{
    struct snd_thread_activity *t = &a->threads[thread];
    uint32_t                   *at = &p->ends;

    while (*at != SONDE_NONE && a->threads[*at].end_ns <= end_ns)
        at = &a->threads[*at].next_end;
    t->leaf = (uint8_t)does;
    t->end_ns = end_ns;
    t->next_end = *at;
    *at = thread;
}

/* A moment of the process at which nothing changes: the time up to it goes with what follows. */
static inline void pass(struct snd_activity *a, struct snd_process_activity *p, int64_t ns)
{
    if (!p->began)
        hand_over(a, p, ns);
    p->last_ns = ns > p->last_ns ? ns : p->last_ns;
}

/* Hands over what pass() has left. */
static void catch_up(struct snd_activity *a, struct snd_process_activity *p, int64_t ns)
{
    if (p->began)
        hand_over(a, p, p->last_ns > ns ? p->last_ns : ns);
}

static inline void settle(struct snd_activity *a, struct snd_process_activity *p, int64_t ns)
{
    if (p->ends != SONDE_NONE)
        end_leaves(a, p, ns);
}

static inline void open_range(struct snd_activity *a, struct snd_process_activity *p,
                              struct snd_thread_activity *t, enum snd_doing does, int64_t ns)
{
    settle(a, p, ns);
    t->open[does]++;
    if (does <= (enum snd_doing)t->doing) { /* most lie in one that does the same */
        pass(a, p, ns);
        return;
    }
    hand_over(a, p, ns);
    turn_to(p, t, does);
}

static inline void close_range(struct snd_activity *a, struct snd_process_activity *p,
                               struct snd_thread_activity *t, enum snd_doing does, int64_t ns)
{
    settle(a, p, ns);
    if (does < (enum snd_doing)t->doing || t->open[does] > 1) {
        t->open[does]--;
        pass(a, p, ns);
        return;
    }
    hand_over(a, p, ns);
    t->open[does]--;
    fall_back(p, t);
}

/* What a range is, its attributes tell, which follow its begin: it is judged at the next event of its process. */
static inline void judge_fresh(struct snd_activity *a, struct snd_process_activity *p)
{
    const struct snd_lane *lane = p->fresh.lane;

    if (!lane)
        return;
    struct snd_open_range *open = &lane->open[p->fresh.place];
    while (open->order != p->fresh.order)
        open--; /* another thread has ended one around it */
    p->fresh.lane = NULL;
    open->mark = judge(a, &open->range);
    open_range(a, p, &a->threads[lane->thread], open->mark, open->range.start_ns);
}

/* ---------------------------------------------------------------------- the walk */

void snd_activity_open(struct snd_activity *a, struct snd_lane *lane, struct snd_open_range *open)
{
    struct snd_process_activity *p = &a->processes[lane->process];

    open->mark = SND_NOTHING;
    if (!p->is_rank)
        return;
    judge_fresh(a, p);
    p->fresh.lane = lane;
    p->fresh.place = lane->depth - 1;
    p->fresh.order = open->order;
}

enum snd_doing snd_activity_close(struct snd_activity *a, struct snd_lane *lane,
                                  struct snd_open_range *open)
{
    struct snd_process_activity *p = &a->processes[lane->process];
    struct snd_thread_activity  *t = &a->threads[lane->thread];
    const struct snd_range      *r = &open->range;

    if (!p->is_rank)
        return SND_NOTHING;
    if (p->fresh.lane && p->fresh.order == open->order) {
        p->fresh.lane = NULL;
        open->mark = judge(a, r);
        open_range(a, p, t, open->mark, r->start_ns);
    } else {
        judge_fresh(a, p);
    }
    int64_t end_ns = snd_add(r->start_ns, r->total_ns);
    if (r->unfinished) /* its end may be earlier than that of one that ended before it */
        catch_up(a, p, end_ns);
    close_range(a, p, t, open->mark, end_ns);
    return open->mark;
}

enum snd_doing snd_activity_kind(struct snd_activity *a, const struct snd_lane *lane,
                                 const struct snd_range *shared)
{
    return a->processes[lane->process].is_rank ? judge(a, shared) : SND_NOTHING;
}

void snd_activity_leaf(struct snd_activity *a, const struct snd_lane *lane,
                       const struct snd_leaf *leaf, enum snd_doing does)
{
    struct snd_process_activity *p = &a->processes[lane->process];

    if (!p->is_rank)
        return;
    judge_fresh(a, p);
    settle(a, p, leaf->start_ns);
    pass(a, p, leaf->start_ns);
    struct snd_thread_activity *t = &a->threads[lane->thread];
    if (does <= (enum snd_doing)t->doing) {
        pass(a, p, leaf->end_ns);
        return;
    }
    open_range(a, p, t, does, leaf->start_ns);
    close_later(a, p, lane->thread, does, leaf->end_ns);
}

void snd_activity_step(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    if (!p->is_rank)
        return;
    judge_fresh(a, p);
    settle(a, p, ns);
    hand_over(a, p, ns);
}

void snd_activity_end(struct snd_activity *a)
{
    for (uint32_t i = 0; i < a->trace->process_count; i++) {
        settle(a, &a->processes[i], INT64_MAX);
        catch_up(a, &a->processes[i], INT64_MIN);
    }
}
