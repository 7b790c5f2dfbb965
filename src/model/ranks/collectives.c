/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/collectives.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/buf.h"

#define UNDER_WAY_MAX \
    4096u /* collectives kept while ranks are missing; then the oldest is handed over */
#define FREE UINT32_MAX
#define WAITS_NS ((int64_t)60000000000) /* for one that another host's clock has not come to */

/* What GPU work a call has launched so far, by thread. */
struct launched {
    uint64_t order; /* of the outermost range that is a collective */
    int64_t  start_ns, end_ns;
};

/* A call that is over, or the work of one; or a step that began. */
struct part {
    int64_t         ns;    /* when it came ... */
    uint64_t        order; /* ... and in what order, of those of one process */
    uint32_t        process, thread, name, stack, collective;
    int64_t         start_ns, end_ns, sequence;
    struct launched launched;
    bool            is_step, is_work, has_launched, unfinished;
};

struct snd_collectives {
    struct sonde_trace                  *trace;
    struct snd_groups                   *groups;
    const struct snd_collective_watcher *watcher;
    const struct snd_devices            *devices;
    struct snd_consumer                  consumer;
    struct snd_assembly                 *walk; /* while it lasts */
    struct snd_collective               *open; /* under way; group_number FREE: not in use */
    uint32_t                             open_count, open_room, in_use;
    int64_t                              full_until; /* if it waits: its places stay taken */
    struct snd_map                       index;      /* of `open`, by group, sequence and pair */
    struct snd_map                       orders;   /* calls so far, by process and group, or pair */
    struct launched                     *launched; /* of each thread */
    struct part                         *parts;    /* of the stretch of time under way */
    uint32_t                             part_count, part_room;
    uint64_t                             part_order;
    bool                                 is_settled; /* the walk is over */
    uint32_t                            *absent;
    uint32_t                             absent_room;
    bool                                 is_full; /* the call has no place, and is left out */
    bool                                 failed;
};

/* ------------------------------------------------------------------- ranks */

static uint32_t rank_of(const struct snd_collectives *m, uint32_t process,
                        const struct snd_collective_spec *spec)
{
    uint32_t rank = m->trace->processes[process].shown.rank;

    if (rank == SONDE_NONE)
        rank = snd_group_rank(&m->groups->groups[spec->group], spec->own);
    return rank != SONDE_NONE ? rank : process;
}

static int compare_members(const void *a, const void *b)
{
    const struct snd_collective_member *x = a, *y = b;

    return SND_RISING(x->rank, y->rank);
}

/* Whether a process of this rank was being recorded when the collective began, and could have come. */
static bool was_recorded(const struct snd_collectives *m, uint32_t rank, int64_t ns)
{
    for (uint32_t i = 0; i < m->trace->process_count; i++) {
        const struct snd_process *p = &m->trace->processes[i];
        if (p->shown.rank == rank && !p->is_guest && p->shown.start_ns <= ns &&
            !(p->shown.closed && p->shown.stop_ns < ns))
            return true;
    }
    return false;
}

static bool is_member(const struct snd_collective *c, uint32_t rank)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->members[i].rank == rank)
            return true;
    return false;
}

static void find_absent(struct snd_collectives *m, struct snd_collective *c, int64_t first_ns)
{
    c->absent = m->absent;
    c->absent_count = 0;
    for (uint32_t i = 0; c->group->ranks && i < c->group->size; i++) {
        uint32_t rank = c->group->ranks[i];
        if (is_member(c, rank) || !was_recorded(m, rank, first_ns))
            continue;
        if (!snd_grow(&m->absent, &m->absent_room, c->absent_count, sizeof *m->absent)) {
            m->failed = true;
            return;
        }
        m->absent[c->absent_count++] = rank;
        c->absent = m->absent;
    }
}

/* --------------------------------------------------------------- handing over */

static bool is_pair(enum snd_collective_kind kind)
{
    return kind == SND_COLLECTIVE_SEND || kind == SND_COLLECTIVE_RECV;
}

/* What the members have in common, and what differs. */
static void compare_calls(const struct snd_collectives *m, struct snd_collective *c)
{
    const struct snd_collective_spec *first = &m->groups->specs[c->members[0].spec];

    c->kind = first->kind;
    c->size_bytes = first->size_bytes;
    for (uint32_t i = 1; i < c->count; i++) {
        const struct snd_collective_spec *spec = &m->groups->specs[c->members[i].spec];
        bool same_kind = spec->kind == first->kind || (is_pair(spec->kind) && is_pair(first->kind));
        c->kind_differs |= !same_kind;
        /* Ranks may give and get parts of different sizes in these. */
        bool may_differ = spec->kind == SND_COLLECTIVE_ALL_TO_ALL ||
                          spec->kind == SND_COLLECTIVE_GATHER ||
                          spec->kind == SND_COLLECTIVE_SCATTER;
        c->size_differs |= same_kind && !may_differ && spec->size_bytes != first->size_bytes;
        if (spec->size_bytes > c->size_bytes)
            c->size_bytes = spec->size_bytes;
    }
}

static uint32_t expected(const struct snd_collective *c, const struct snd_collectives *m)
{
    return is_pair(m->groups->specs[c->members[0].spec].kind) ? 2 : c->group->size;
}

static void settle(struct snd_collectives *m, struct snd_collective *c)
{
    int64_t first_ns = INT64_MAX;

    snd_sort(c->members, c->count, sizeof *c->members, compare_members);
    compare_calls(m, c);
    c->is_whole = c->count == expected(c, m) || (expected(c, m) == 0 && c->count > 1);
    c->is_complete = true;
    c->last_start_ns = INT64_MIN;
    for (uint32_t i = 0; i < c->count; i++) {
        struct snd_collective_member *member = &c->members[i];
        c->is_complete &= member->is_complete;
        first_ns = member->start_ns < first_ns ? member->start_ns : first_ns;
        if (member->start_ns > c->last_start_ns) {
            c->last_start_ns = member->start_ns;
            c->last = i;
        }
    }
    if (!c->is_whole && !is_pair(c->kind))
        find_absent(m, c, first_ns);
    if (c->absent_count > 0) /* what a rank never came to cannot have been completed */
        c->is_complete = false;
    for (uint32_t i = 0; i < c->count; i++) {
        struct snd_collective_member *member = &c->members[i];
        int64_t until = c->last_start_ns < member->end_ns ? c->last_start_ns : member->end_ns;
        member->wait_ns = c->is_whole ? snd_sub(until, member->start_ns) : -1;
        member->is_complete &= c->absent_count == 0;
    }
}

static struct snd_key key_of(const struct snd_collective *c, uint64_t pair)
{
    return (struct snd_key){ c->group_number, (uint64_t)c->sequence, pair };
}

static uint64_t pair_of(const struct snd_collectives *m, uint32_t rank,
                        const struct snd_collective_spec *spec)
{
    uint32_t peer = snd_group_rank(&m->groups->groups[spec->group], spec->peer);

    if (!is_pair(spec->kind))
        return 0;
    peer = peer != SONDE_NONE ? peer : spec->peer;
    return spec->kind == SND_COLLECTIVE_SEND ? SND_PAIR(rank + 1, peer + 1)
                                             : SND_PAIR(peer + 1, rank + 1);
}

static void hand_over(struct snd_collectives *m, uint32_t at)
{
    struct snd_collective            *c = &m->open[at];
    const struct snd_collective_spec *spec = &m->groups->specs[c->members[0].spec];

    c->group = &m->groups->groups[c->group_number];
    snd_map_remove(&m->index, key_of(c, pair_of(m, c->members[0].rank, spec)));
    settle(m, c);
    if (m->watcher->done && !m->failed)
        m->watcher->done(m->watcher->user, c);
    c->group_number = FREE;
    c->count = 0;
    m->in_use--;
}

static bool is_over(const struct snd_collectives *m, const struct snd_collective *c)
{
    const struct snd_group *group = &m->groups->groups[c->group_number];
    uint32_t wanted = is_pair(m->groups->specs[c->members[0].spec].kind) ? 2 : group->size;

    if (wanted == 0 || c->count < wanted)
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        if (!c->members[i].has_call || (group->is_async && !c->members[i].has_work))
            return false;
    return true;
}

/* The one that began first, so that what will never be whole does not stay. */
static uint32_t find_oldest(const struct snd_collectives *m)
{
    uint32_t best = FREE;

    for (uint32_t i = 0; i < m->open_count; i++)
        if (m->open[i].group_number != FREE &&
            (best == FREE || m->open[i].members[0].start_ns < m->open[best].members[0].start_ns))
            best = i;
    return best;
}

static int compare_open(const void *a, const void *b)
{
    const struct snd_collective *x = *(struct snd_collective *const *)a,
                                *y = *(struct snd_collective *const *)b;

    return SND_ORDER(SND_RISING(x->group_number, y->group_number),
                     SND_RISING(x->sequence, y->sequence),
                     SND_RISING(x->members[0].start_ns, y->members[0].start_ns));
}

/* What is left at the end, in order. */
static void hand_over_rest(struct snd_collectives *m)
{
    struct snd_collective **list = calloc((size_t)m->in_use + 1, sizeof *list);
    uint32_t                count = 0;

    if (!list) {
        m->failed = true;
        return;
    }
    for (uint32_t i = 0; i < m->open_count; i++)
        if (m->open[i].group_number != FREE)
            list[count++] = &m->open[i];
    snd_sort(list, count, sizeof *list, compare_open);
    for (uint32_t i = 0; i < count && !m->failed; i++)
        hand_over(m, (uint32_t)(list[i] - m->open));
    free(list);
}

/* ------------------------------------------------------------------ matching */

static uint32_t take_place(struct snd_collectives *m, int64_t ns)
{
    if (m->in_use >= UNDER_WAY_MAX) {
        uint32_t oldest = m->watcher->waits && ns < m->full_until ? FREE : find_oldest(m);
        if (oldest != FREE)
            m->full_until = snd_add(m->open[oldest].members[0].start_ns, WAITS_NS);
        m->is_full = m->watcher->waits && ns < m->full_until;
        if (m->is_full)
            return FREE;
        hand_over(m, oldest);
    }
    for (uint32_t i = 0; m->in_use < m->open_count && i < m->open_count; i++)
        if (m->open[i].group_number == FREE)
            return i;
    if (!snd_grow(&m->open, &m->open_room, m->open_count, sizeof *m->open))
        return FREE;
    m->open[m->open_count] = (struct snd_collective){ .group_number = FREE };
    return m->open_count++;
}

/* The collective that a call is a part of, made if it is the first. */
static struct snd_collective *find_collective(struct snd_collectives *m, struct snd_key key,
                                              int64_t ns)
{
    uint32_t at;

    if (snd_map_get(&m->index, key, &at))
        return &m->open[at];
    at = take_place(m, ns);
    if (at == FREE || !snd_map_put(&m->index, key, at))
        return NULL;
    struct snd_collective_member *members = m->open[at].members;
    uint32_t                      room = m->open[at].room;
    m->open[at] = (struct snd_collective){ .group_number = (uint32_t)key.a,
                                           .sequence = (int64_t)key.b,
                                           .members = members,
                                           .room = room };
    m->in_use++;
    return &m->open[at];
}

static struct snd_collective_member *find_member(struct snd_collective *c, uint32_t process,
                                                 uint32_t rank, uint32_t spec)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->members[i].rank == rank)
            return &c->members[i];
    if (!snd_grow(&c->members, &c->room, c->count, sizeof *c->members))
        return NULL;
    c->members[c->count] = (struct snd_collective_member){ .process = process,
                                                           .rank = rank,
                                                           .spec = spec,
                                                           .thread = SONDE_NONE,
                                                           .name = SONDE_NONE,
                                                           .start_ns = INT64_MAX,
                                                           .end_ns = INT64_MIN,
                                                           .arrive_ns = INT64_MIN,
                                                           .enter_ns = INT64_MIN };
    return &c->members[c->count++];
}

/* Counts calls (and, apart, work) of a process in a group, or between two ranks of it. */
static int64_t next_in_order(struct snd_collectives *m, uint32_t process, uint32_t group,
                             uint64_t pair, bool is_work)
{
    struct snd_key key = { SND_PAIR(process, group), pair, is_work };
    uint32_t       count = 0;

    (void)snd_map_get(&m->orders, key, &count);
    m->failed |= !snd_map_put(&m->orders, key, count + 1);
    return count;
}

/* A call, or the work of one, that is over; or that was still under way at the end of the trace. */
static void add_part(struct snd_collectives *m, const struct part *part)
{
    uint32_t number = snd_groups_spec(m->groups, part->process, part->collective);
    int64_t  end_ns = part->end_ns;

    if (number == SONDE_NONE) {
        m->failed = true;
        return;
    }
    const struct snd_collective_spec *spec = &m->groups->specs[number];
    uint32_t                          rank = rank_of(m, part->process, spec);
    uint64_t                          pair = pair_of(m, rank, spec);
    int64_t sequence = part->sequence >= 0 ? part->sequence : spec->sequence;
    int64_t order = next_in_order(m, part->process, spec->group, pair, part->is_work);
    struct snd_collective *c = find_collective(
        m,
        (struct snd_key){ spec->group, (uint64_t)(pair || sequence < 0 ? order : sequence), pair },
        part->start_ns);
    if (m->is_full) {
        m->is_full = false;
        return;
    }
    struct snd_collective_member *member = c ? find_member(c, part->process, rank, number) : NULL;
    if (!member) {
        m->failed = true;
        return;
    }
    if (!part->is_work || part->start_ns < member->start_ns)
        member->start_ns = part->is_work && member->has_call ? member->start_ns : part->start_ns;
    bool is_async = m->groups->groups[spec->group].is_async;
    if (part->start_ns > member->arrive_ns)
        member->arrive_ns = part->start_ns;
    if (part->start_ns > member->enter_ns)
        member->enter_ns = part->start_ns;
    if (part->has_launched) {
        member->enter_ns = part->launched.start_ns > member->enter_ns ? part->launched.start_ns
                                                                      : member->enter_ns;
        member->has_launched = true;
        end_ns = part->launched.end_ns > end_ns ? part->launched.end_ns : end_ns;
    }
    if (end_ns > member->end_ns || part->is_work)
        member->end_ns = end_ns;
    if (part->is_work || !is_async)
        member->is_complete = !part->unfinished;
    member->has_call |= !part->is_work;
    if (!part->is_work) {
        member->thread = part->thread;
        member->name = part->name;
        member->stack = part->stack;
    } else {
        member->work_thread = part->thread;
        member->work_ns = part->start_ns;
    }
    member->has_work |= part->is_work;
    if (is_over(m, c))
        hand_over(m, (uint32_t)(c - m->open));
}

/* --------------------------------------------------------- in the order of time */

static void apply(struct snd_collectives *m, const struct part *part)
{
    if (m->failed)
        return;
    if (!part->is_step)
        add_part(m, part);
    else if (m->watcher->began)
        m->watcher->began(m->watcher->user, part->process);
}

/* Processes take turns: what they share waits until all have come to the end of the stretch. */
static void add_in_order(struct snd_collectives *m, struct part part)
{
    if (!m->walk->by_process || m->is_settled) {
        apply(m, &part);
        return;
    }
    if (!snd_grow(&m->parts, &m->part_room, m->part_count, sizeof *m->parts)) {
        m->failed = true;
        return;
    }
    part.order = m->part_order++;
    m->parts[m->part_count++] = part;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->ns, y->ns), SND_RISING(x->order, y->order));
}

static void on_settled(void *user, int64_t ns)
{
    struct snd_collectives *m = user;

    snd_sort(m->parts, m->part_count, sizeof *m->parts, compare_parts);
    for (uint32_t i = 0; i < m->part_count; i++)
        apply(m, &m->parts[i]);
    m->part_count = 0;
    m->is_settled = ns == INT64_MAX;
    if (m->failed)
        snd_assembly_stop(m->walk);
}

/* ---------------------------------------------------------------- the walk */

/* The outermost range of the thread, this one apart, that is a collective's call. */
static struct snd_open_range *find_outer(struct snd_lane *lane, const struct snd_open_range *self)
{
    for (uint32_t i = 0; i < lane->depth; i++)
        if (lane->open[i].range.collective && !lane->open[i].range.is_async &&
            &lane->open[i] != self)
            return &lane->open[i];
    return NULL;
}

/* GPU work that a call of the API inside a collective launched. */
static void add_launched(struct snd_collectives *m, struct snd_lane *lane,
                         const struct snd_range *r, const struct snd_open_range *outer)
{
    struct launched              *l = &m->launched[lane->thread];
    uint32_t                      count = 0;
    const struct snd_device_item *items = snd_devices_of(m->devices, lane->process,
                                                         SND_API_CORRELATION(r->api), &count);

    if (l->order != outer->order)
        *l = (struct launched){ outer->order, INT64_MAX, INT64_MIN };
    for (uint32_t i = 0; i < count; i++) {
        int64_t end_ns = snd_add(items[i].start_ns, items[i].duration_ns);
        l->start_ns = items[i].start_ns < l->start_ns ? items[i].start_ns : l->start_ns;
        l->end_ns = end_ns > l->end_ns ? end_ns : l->end_ns;
    }
}

/* A call, or the work, of a collective has ended, or a call of a GPU's API. */
static void add_closed(struct snd_collectives *m, struct snd_lane *lane,
                       const struct snd_open_range *open)
{
    const struct snd_range *r = &open->range;

    if (r->api && m->devices) {
        struct snd_open_range *outer = find_outer(lane, open);
        if (outer)
            add_launched(m, lane, r, outer);
    }
    if (!r->collective || (!r->is_async && find_outer(lane, open)))
        return;
    const struct launched *l = &m->launched[lane->thread];
    int64_t                end_ns = snd_add(r->start_ns, r->total_ns);
    add_in_order(m, (struct part){ .ns = end_ns,
                                   .process = lane->process,
                                   .thread = lane->thread,
                                   .name = r->name,
                                   .stack = r->stack,
                                   .collective = r->collective,
                                   .start_ns = r->start_ns,
                                   .end_ns = end_ns,
                                   .sequence = r->collective_sequence,
                                   .launched = *l,
                                   .is_work = r->is_async,
                                   .has_launched = !r->is_async && l->order == open->order &&
                                                   l->end_ns > INT64_MIN,
                                   .unfinished = r->unfinished });
    if (m->failed)
        snd_assembly_stop(m->walk);
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open,
                     struct snd_open_range *parent)
{
    struct snd_collectives *m = user;
    const struct snd_range *r = &open->range;

    (void)parent;
    if (m->watcher->close)
        m->watcher->close(m->watcher->user, lane, open);
    if (r->collective || (r->api && m->devices))
        add_closed(m, lane, open);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct snd_collectives *m = user;

    (void)parent;
    m->watcher->open(m->watcher->user, lane, range);
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct snd_collectives *m = user;

    return m->watcher->kind(m->watcher->user, lane, shared);
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct snd_collectives *m = user;

    m->watcher->leaf(m->watcher->user, lane, leaf, known, kind, above, parent);
}

static void on_step(struct snd_collectives *m, uint32_t process, int64_t ns, uint64_t number)
{
    m->watcher->step(m->watcher->user, process, ns, number);
    add_in_order(m, (struct part){ .ns = ns, .process = process, .is_step = true });
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct snd_collectives *m = user;

    if (SND_EVENT_KIND(words[0]) == SND_EV_STEP)
        on_step(m, lane->process, ns, words[1]);
    else if (SND_EVENT_KIND(words[0]) == SND_EV_COUNTER && m->watcher->memory)
        m->watcher->memory(m->watcher->user, lane, words);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct snd_collectives *m = user;

    (void)ns, (void)innermost;
    m->watcher->memory(m->watcher->user, lane, words);
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct snd_collectives *m = user;

    m->walk = assembly;
}

static struct snd_consumer make_consumer(struct snd_collectives              *m,
                                         const struct snd_collective_watcher *watcher)
{
    return (struct snd_consumer){ .user = m,
                                  .any_flops = true,
                                  .by_process = true,
                                  .no_leaves = !watcher->open && !watcher->close,
                                  .begin = on_begin,
                                  .open = watcher->open ? on_open : NULL,
                                  .close = on_close,
                                  .kind = watcher->leaf ? on_kind : NULL,
                                  .leaf = watcher->leaf ? on_leaf : NULL,
                                  .settled = on_settled,
                                  .memory = watcher->memory ? on_memory : NULL,
                                  .other = watcher->step ? on_other : NULL };
}

static void free_collectives(struct snd_collectives *m)
{
    for (uint32_t i = 0; i < m->open_count; i++)
        free(m->open[i].members);
    free(m->open);
    free(m->launched);
    free(m->parts);
    free(m->absent);
    snd_map_release(&m->index);
    snd_map_release(&m->orders);
    free(m);
}

enum sonde_status snd_collectives_begin(struct sonde_trace *trace, struct snd_groups *groups,
                                        const struct snd_collective_watcher *watcher,
                                        struct snd_collectives **out, struct sonde_error *err)
{
    *out = NULL;
    snd_groups_begin(groups, trace);
    if (!watcher->open && !watcher->close && !watcher->step && !snd_groups_any(trace))
        return SONDE_OK;
    struct snd_collectives *m = calloc(1, sizeof *m);
    if (m)
        m->launched = calloc((size_t)trace->thread_count + 1, sizeof *m->launched);
    if (!m || !m->launched) {
        free(m);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory");
    }
    m->trace = trace;
    m->groups = groups;
    m->watcher = watcher;
    m->consumer = make_consumer(m, watcher);
    enum sonde_status status = snd_trace_devices(trace, &m->devices, err);
    if (status == SONDE_OK)
        *out = m;
    else
        free_collectives(m);
    return status;
}

void snd_collectives_wait(struct snd_collectives *m)
{
    if (m)
        snd_wait(m->trace, &m->consumer);
}

enum sonde_status snd_collectives_end(struct snd_collectives *m, enum sonde_status status,
                                      struct sonde_error *err)
{
    if (!m)
        return status;
    snd_wait_end(m->trace, &m->consumer);
    if (status == SONDE_OK)
        hand_over_rest(m);
    if (status == SONDE_OK && m->failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the collectives of the trace");
    free_collectives(m);
    return status;
}

enum sonde_status snd_collectives_walk(struct sonde_trace *trace, struct snd_groups *groups,
                                       const struct snd_collective_watcher *watcher,
                                       struct sonde_error                  *err)
{
    struct snd_collectives *m;
    struct snd_assembly     assembly;
    enum sonde_status       status = snd_collectives_begin(trace, groups, watcher, &m, err);

    if (!m)
        return status;
    status = snd_assemble(&assembly, trace, SONDE_BY_TIME, &m->consumer, 1, err);
    status = snd_collectives_end(m, status, err);
    snd_assembly_release(&assembly);
    return status;
}

void snd_ranks_text(struct sonde_buffer *out, const uint32_t *ranks, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t last = i;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        snd_buf_format(out, "%s%u", i > 0 ? "," : "", ranks[i]);
        if (last > i)
            snd_buf_format(out, "-%u", ranks[last]);
        i = last + 1;
    }
}
