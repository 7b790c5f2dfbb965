/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/rank_activity.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

enum { NOT_JUDGED = SND_DOINGS }; /* mark of a range whose attributes are yet to come */

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

static bool begins_with(struct snd_text text, const char *prefix)
{
    size_t n = strlen(prefix);

    return text.length >= n && memcmp(text.bytes, prefix, n) == 0;
}

/* What the name alone tells; SND_NOTHING: not what it is. */
static enum snd_doing judge_name(const struct snd_activity *a, uint32_t number)
{
    /* FSDP2 waits for its collectives in ranges of its own. */
    static const char *const communicating[] = {
        "c10d::", "gloo:", "nccl:", "ucc:", "mpi:", "record_param_comms", "FSDP::"
    };
    struct snd_text name = a->trace->names.items[number];

    for (size_t i = 0; i < SND_COUNT_OF(communicating); i++)
        if (begins_with(name, communicating[i]))
            return SND_COMMUNICATES;
    return begins_with(name, "enumerate(DataLoader)") ? SND_LOADS : SND_NOTHING;
}

static enum snd_doing judge(const struct snd_activity *a, const struct snd_range *r)
{
    uint8_t *known = &a->by_name[r->name];

    if (*known == 0)
        *known = (uint8_t)(judge_name(a, r->name) + 1);
    if (*known > SND_NOTHING + 1)
        return *known - 1;
    bool is_work = r->scope == SONDE_SCOPE_FUNCTION || r->scope == SONDE_SCOPE_BACKWARD;
    return is_work && !r->api ? SND_COMPUTES : SND_NOTHING;
}

/* What the thread does, by the ranges that are open in it. */
static void change(struct snd_activity *a, uint32_t thread, uint32_t process)
{
    struct snd_thread_activity *t = &a->threads[thread];
    enum snd_doing              now = SND_NOTHING;

    for (enum snd_doing d = SND_COMPUTES; d < SND_DOINGS; d++)
        if (t->open[d] > 0)
            now = d;
    if (t->doing != SND_NOTHING)
        a->processes[process].threads[t->doing]--;
    if (now != SND_NOTHING)
        a->processes[process].threads[now]++;
    t->doing = (uint8_t)now;
}

/* Hands over the time since the process's last change. */
static void hand_over(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    if (!p->began) {
        p->began = true;
        p->first_ns = p->at_ns = ns;
    }
    if (ns <= p->at_ns)
        return;
    a->stretch(a->user, process, p->threads, p->at_ns, ns);
    p->at_ns = ns;
}

/* The leaves under way that end until then end. */
static void end_leaves(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    while (p->ends != SONDE_NONE && a->threads[p->ends].end_ns <= ns) {
        uint32_t                    thread = p->ends;
        struct snd_thread_activity *t = &a->threads[thread];
        p->ends = t->next_end;
        hand_over(a, process, t->end_ns);
        t->open[t->leaf]--;
        change(a, thread, process);
    }
}

/* It was opened, and ends then, whatever other threads of the process do until then. */
static void close_later(struct snd_activity *a, uint32_t thread, uint32_t process,
                        enum snd_doing does, int64_t end_ns)
{
    struct snd_thread_activity *t = &a->threads[thread];
    uint32_t                   *at = &a->processes[process].ends;

    while (*at != SONDE_NONE && a->threads[*at].end_ns <= end_ns)
        at = &a->threads[*at].next_end;
    t->leaf = (uint8_t)does;
    t->end_ns = end_ns;
    t->next_end = *at;
    *at = thread;
}

/* A moment of the process at which nothing changes: the time up to it goes with what follows. */
static inline void pass(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    if (!p->began)
        hand_over(a, process, ns);
    p->last_ns = ns > p->last_ns ? ns : p->last_ns;
}

/* Hands over what pass() has left. */
static void catch_up(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    if (p->began)
        hand_over(a, process, p->last_ns > ns ? p->last_ns : ns);
}

static inline void settle(struct snd_activity *a, uint32_t process, int64_t ns)
{
    if (a->processes[process].ends != SONDE_NONE)
        end_leaves(a, process, ns);
}

static void open_range(struct snd_activity *a, uint32_t thread, uint32_t process,
                       enum snd_doing does, int64_t ns)
{
    struct snd_thread_activity *t = &a->threads[thread];

    settle(a, process, ns);
    t->open[does]++;
    if (does <= (enum snd_doing)t->doing) { /* most lie in one that does the same */
        pass(a, process, ns);
        return;
    }
    hand_over(a, process, ns);
    change(a, thread, process);
}

static void close_range(struct snd_activity *a, uint32_t thread, uint32_t process,
                        enum snd_doing does, int64_t ns)
{
    struct snd_thread_activity *t = &a->threads[thread];

    settle(a, process, ns);
    if (does < (enum snd_doing)t->doing || t->open[does] > 1) {
        t->open[does]--;
        pass(a, process, ns);
        return;
    }
    hand_over(a, process, ns);
    t->open[does]--;
    change(a, thread, process);
}

static void judge_range(struct snd_activity *a, struct snd_lane *lane, struct snd_open_range *open)
{
    a->processes[lane->process].fresh.lane = NULL;
    open->mark = judge(a, &open->range);
    open_range(a, lane->thread, lane->process, open->mark, open->range.start_ns);
}

/* What a range is, its attributes tell, which follow its begin: it is judged at the next event of its process. */
static void judge_fresh(struct snd_activity *a, const struct snd_process_activity *p)
{
    struct snd_lane *lane = p->fresh.lane;

    if (!lane)
        return;
    uint32_t place = p->fresh.place;
    while (lane->open[place].order != p->fresh.order)
        place--; /* another thread has ended one around it */
    judge_range(a, lane, &lane->open[place]);
}

/* ---------------------------------------------------------------------- the walk */

void snd_activity_open(struct snd_activity *a, struct snd_lane *lane, struct snd_open_range *open)
{
    struct snd_process_activity *p = &a->processes[lane->process];

    open->mark = SND_NOTHING;
    if (!p->is_rank)
        return;
    judge_fresh(a, p);
    open->mark = NOT_JUDGED;
    p->fresh.lane = lane;
    p->fresh.place = (uint32_t)(open - lane->open);
    p->fresh.order = open->order;
}

enum snd_doing snd_activity_close(struct snd_activity *a, struct snd_lane *lane,
                                  struct snd_open_range *open)
{
    const struct snd_range *r = &open->range;

    if (!a->processes[lane->process].is_rank)
        return SND_NOTHING;
    if (open->mark == NOT_JUDGED)
        judge_range(a, lane, open);
    else
        judge_fresh(a, &a->processes[lane->process]);
    int64_t end_ns = snd_add(r->start_ns, r->total_ns);
    if (r->unfinished) /* its end may be earlier than that of one that ended before it */
        catch_up(a, lane->process, end_ns);
    close_range(a, lane->thread, lane->process, open->mark, end_ns);
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
    settle(a, lane->process, leaf->start_ns);
    pass(a, lane->process, leaf->start_ns);
    if (does <= (enum snd_doing)a->threads[lane->thread].doing) {
        pass(a, lane->process, leaf->end_ns);
        return;
    }
    open_range(a, lane->thread, lane->process, does, leaf->start_ns);
    close_later(a, lane->thread, lane->process, does, leaf->end_ns);
}

void snd_activity_step(struct snd_activity *a, uint32_t process, int64_t ns)
{
    struct snd_process_activity *p = &a->processes[process];

    if (!p->is_rank)
        return;
    judge_fresh(a, p);
    settle(a, process, ns);
    hand_over(a, process, ns);
}

void snd_activity_end(struct snd_activity *a)
{
    for (uint32_t i = 0; i < a->trace->process_count; i++) {
        settle(a, i, INT64_MAX);
        catch_up(a, i, INT64_MIN);
    }
}
