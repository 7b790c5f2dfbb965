/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/critical.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/ranks/collectives.h"
#include "model/ranks/rank_activity.h"
#include "model/summary/steps.h"

const char *const snd_part_kind_words[SND_PART_KINDS] = { "host",       "operator", "data loading",
                                                          "collective", "call",     "kernel",
                                                          "copy",       "launch" };

#define STEP_MARKS_MAX (1u << 22) /* of all ranks */
#define NEARBY 256u /* works of a GPU that are looked at for the one that ended last */

/* From here to the next one the thread does the same. */
struct stretch {
    int64_t  from_ns;
    uint32_t name;
    uint8_t  kind; /* enum snd_part_kind */
    bool     waits;
};

struct open_part {
    uint64_t order;
    uint32_t name, stretch; /* stretch: the first that is its */
    uint8_t  kind;
};

struct thread_line {
    struct stretch   *stretches;
    struct open_part *open;
    uint32_t          count, room, depth, open_room;
    bool              is_fresh; /* the innermost one is not judged yet */
};

/* A collective that all came to. */
struct met {
    uint32_t first, count; /* of members */
};

struct met_member {
    struct snd_collective_member m;
    uint32_t                     met;
};

struct call {
    uint32_t thread;
    int64_t  start_ns;
};

struct process_line {
    int64_t  begin_ns, end_ns; /* the first step or range; the last range */
    uint64_t steps, changes;
    uint32_t main_thread;
    bool     is_rank;    /* the process that speaks for its rank */
    bool     takes_part; /* in what the path is of: the run, or a step */
};

/* A step of a process, from its mark to the next one. */
struct step_mark {
    uint64_t number;
    uint32_t process;
    int64_t  begin_ns, end_ns;
};

/* What is noted along the path, from its end to its begin. `ns` is how long it took; or how much later it was than the next. */
enum note {
    PART,   /* of a row */
    SHARED, /* the same; it delays all ranks alike */
    JOIN,   /* ranks had waited for the last of them */
    LAUNCH, /* the path goes from a thread to a GPU */
    LIMIT,  /* a work waited for the one before it, which ended so much after its launch */
    SYNC,   /* the path comes back to a thread, which had waited so long */
};

struct path_part {
    enum note note;
    uint32_t  row;
    int64_t   ns;
};

struct path {
    struct sonde_trace       *trace;
    struct snd_critical      *result;
    const struct snd_devices *devices;
    struct thread_line       *threads;
    struct process_line      *processes;
    uint32_t                 *device_from; /* of each process, in devices->by_time; one more */
    struct met               *mets;
    struct met_member        *members;
    uint32_t                 *by_end; /* members, by process and end */
    uint32_t                  met_count, met_room, member_count, member_room;
    struct call              *calls;
    uint32_t                  call_count, call_room;
    struct snd_map            call_index, row_index;
    struct path_part         *parts;
    uint32_t                  part_count, part_room;
    struct step_mark         *marks; /* if the steps were asked for */
    uint32_t                  mark_count, mark_room;
    uint64_t                  step; /* that the path is of */
    bool                      by_step, failed;
    /* Where it is: */
    uint32_t process, thread;
    uint32_t item; /* of devices->items; SONDE_NONE: in a thread */
    int64_t  ns;
};

/* ------------------------------------------------------------------ gathering */

static enum snd_part_kind judge(const struct path *p, const struct snd_range *r)
{
    enum snd_doing by_name = snd_doing_by_name(p->trace->names.items[r->name]);

    if (r->collective || by_name == SND_COMMUNICATES)
        return SND_PART_COLLECTIVE;
    if (by_name == SND_LOADS)
        return SND_PART_LOADING;
    if (r->api)
        return SND_PART_CALL;
    return r->scope == SONDE_SCOPE_FUNCTION || r->scope == SONDE_SCOPE_BACKWARD ? SND_PART_OPERATOR
                                                                                : SND_PART_HOST;
}

/* What the thread does from now on: the innermost range that is known. */
static void change(struct path *p, struct snd_lane *lane, int64_t ns)
{
    struct thread_line *line = &p->threads[lane->thread];
    struct stretch      now = { ns, SONDE_NONE, SND_PART_HOST, false };

    for (uint32_t i = line->depth; i-- > 0 && now.kind == SND_PART_HOST;) {
        now.kind = line->open[i].kind;
        now.name = now.kind == SND_PART_HOST ? SONDE_NONE : line->open[i].name;
    }
    struct stretch *last = line->count > 0 ? &line->stretches[line->count - 1] : NULL;
    if (last && last->name == now.name && last->kind == now.kind && !last->waits)
        return;
    if (last && last->from_ns == ns) { /* nothing was done in between */
        *last = now;
        return;
    }
    if (!snd_grow(&line->stretches, &line->room, line->count, sizeof *line->stretches)) {
        p->failed = true;
        return;
    }
    line->stretches[line->count++] = now;
    p->processes[lane->process].changes++;
}

static void see(struct path *p, uint32_t process, int64_t ns)
{
    struct process_line *line = &p->processes[process];

    line->begin_ns = ns < line->begin_ns && line->steps == 0 ? ns : line->begin_ns;
    line->end_ns = ns > line->end_ns ? ns : line->end_ns;
}

/* What a range is, its attributes tell, which follow its begin: it is judged at the next begin or end of its thread. */
static void judge_fresh(struct path *p, struct snd_lane *lane, const struct snd_open_range *open)
{
    struct thread_line *line = &p->threads[lane->thread];

    if (!line->is_fresh)
        return;
    struct open_part *part = &line->open[line->depth - 1];
    for (uint32_t i = lane->depth; open->order != part->order && i > 0; i--)
        open = &lane->open[i - 1];
    line->is_fresh = false;
    part->kind = (uint8_t)judge(p, &open->range);
    change(p, lane, open->range.start_ns);
    part->stretch = line->count > 0 ? line->count - 1 : 0;
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct path        *p = user;
    struct thread_line *line = &p->threads[lane->thread];

    judge_fresh(p, lane, open);
    if (!snd_grow(&line->open, &line->open_room, line->depth, sizeof *line->open)) {
        p->failed = true;
        return;
    }
    line->open[line->depth++] = (struct open_part){ .order = open->order,
                                                    .name = open->range.name };
    line->is_fresh = true;
    see(p, lane->process, open->range.start_ns);
}

/* A call of a GPU's API: what it launched is found by it, and whether it waited. */
static void close_call(struct path *p, struct snd_lane *lane, const struct snd_range *r,
                       const struct open_part *part)
{
    struct thread_line           *line = &p->threads[lane->thread];
    struct snd_text               name = p->trace->names.items[r->name];
    uint32_t                      count = 0;
    int64_t                       end_ns = snd_add(r->start_ns, r->total_ns);
    const struct snd_device_item *items = NULL;
    bool                          waits = memmem(name.bytes, name.length, "ynchronize", 10) != NULL;

    if (p->devices)
        items = snd_devices_of(p->devices, lane->process, SND_API_CORRELATION(r->api), &count);
    for (uint32_t i = 0; i < count; i++)
        waits |= snd_add(items[i].start_ns, items[i].duration_ns) <= end_ns;
    if (part->stretch < line->count && line->stretches[part->stretch].from_ns == r->start_ns) {
        line->stretches[part->stretch].kind = SND_PART_CALL;
        line->stretches[part->stretch].name = r->name;
        line->stretches[part->stretch].waits = waits;
    }
    struct snd_key key = { lane->process, SND_API_CORRELATION(r->api), 0 };
    if (count == 0)
        return;
    if (!snd_grow(&p->calls, &p->call_room, p->call_count, sizeof *p->calls) ||
        !snd_map_put(&p->call_index, key, p->call_count)) {
        p->failed = true;
        return;
    }
    p->calls[p->call_count++] = (struct call){ lane->thread, r->start_ns };
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct path        *p = user;
    struct thread_line *line = &p->threads[lane->thread];
    uint32_t            at = line->depth;
    int64_t             end_ns = snd_add(open->range.start_ns, open->range.total_ns);

    judge_fresh(p, lane, open);
    while (at > 0 && line->open[at - 1].order != open->order)
        at--;
    if (at == 0)
        return;
    struct open_part part = line->open[--at];
    memmove(&line->open[at], &line->open[at + 1], (line->depth - at - 1) * sizeof *line->open);
    line->depth--;
    if (open->range.api)
        close_call(p, lane, &open->range, &part);
    see(p, lane->process, end_ns);
    change(p, lane, end_ns);
}

static void on_step(void *user, uint32_t process, int64_t ns, uint64_t number)
{
    struct path *p = user;

    if (p->processes[process].steps++ == 0)
        p->processes[process].begin_ns = ns;
    see(p, process, ns);
    if (!p->by_step || p->mark_count >= STEP_MARKS_MAX)
        return;
    if (!snd_grow(&p->marks, &p->mark_room, p->mark_count, sizeof *p->marks))
        p->failed = true;
    else
        p->marks[p->mark_count++] = (struct step_mark){ number, process, ns, INT64_MIN };
}

static void on_done(void *user, const struct snd_collective *c)
{
    struct path *p = user;

    if (!c->is_whole || !c->is_complete || c->count < 2)
        return;
    if (!snd_grow(&p->mets, &p->met_room, p->met_count, sizeof *p->mets)) {
        p->failed = true;
        return;
    }
    p->mets[p->met_count] = (struct met){ p->member_count, c->count };
    for (uint32_t i = 0; i < c->count; i++) {
        if (!snd_grow(&p->members, &p->member_room, p->member_count, sizeof *p->members)) {
            p->failed = true;
            return;
        }
        p->members[p->member_count++] = (struct met_member){ c->members[i], p->met_count };
    }
    p->met_count++;
}

/* --------------------------------------------------------------------- indexes */

static int compare_ends(const void *a, const void *b, void *members)
{
    const struct snd_collective_member *x = &((struct met_member *)members)[*(const uint32_t *)a].m;
    const struct snd_collective_member *y = &((struct met_member *)members)[*(const uint32_t *)b].m;

    return SND_ORDER(SND_RISING(x->process, y->process), SND_RISING(x->end_ns, y->end_ns));
}

/* Of processes with one rank (a DataLoader's workers have their parent's) the one that did most. */
static void choose_processes(struct path *p)
{
    uint32_t count = p->trace->process_count;

    for (uint32_t i = 0; i < count; i++) {
        const struct snd_process *own = &p->trace->processes[i];
        struct process_line      *line = &p->processes[i];
        line->takes_part = true;
        line->is_rank = !own->is_guest && line->changes > 0;
        for (uint32_t k = 0; k < count && line->is_rank; k++)
            if (k != i && p->trace->processes[k].shown.rank == own->shown.rank &&
                (p->processes[k].changes > line->changes ||
                 (p->processes[k].changes == line->changes && k < i)))
                line->is_rank = false;
        line->main_thread = own->first_thread;
        for (uint32_t t = 0; t < own->thread_count; t++)
            if (p->trace->threads[own->first_thread + t].shown.tid == own->shown.pid)
                line->main_thread = own->first_thread + t;
    }
}

static bool make_indexes(struct path *p)
{
    uint32_t processes = p->trace->process_count;

    p->by_end = calloc((size_t)p->member_count + 1, sizeof *p->by_end);
    p->device_from = calloc((size_t)processes + 1, sizeof *p->device_from);
    if (!p->by_end || !p->device_from)
        return false;
    for (uint32_t i = 0; i < p->member_count; i++)
        p->by_end[i] = i;
    qsort_r(p->by_end, p->member_count, sizeof *p->by_end, compare_ends, p->members);
    for (uint32_t process = 0, at = 0; process <= processes; process++) {
        p->device_from[process] = at;
        while (p->devices && process < processes && at < p->devices->count &&
               p->devices->items[p->devices->by_time[at]].process == process)
            at++;
    }
    choose_processes(p);
    return true;
}

/* ------------------------------------------------------------------------ parts */

static uint32_t find_row(struct path *p, uint32_t thread, uint32_t queue, enum snd_part_kind kind,
                         uint32_t name)
{
    struct snd_key key = { SND_PAIR(p->process, kind), SND_PAIR(thread, queue), name };
    uint32_t       at;

    if (snd_map_get(&p->row_index, key, &at))
        return at;
    at = p->result->count;
    if (!snd_grow(&p->result->rows, &p->result->room, at, sizeof *p->result->rows) ||
        !snd_map_put(&p->row_index, key, at))
        return SONDE_NONE;
    p->result->rows[p->result->count++] =
        (struct snd_critical_row){ .process = p->process,
                                   .rank = p->trace->processes[p->process].shown.rank,
                                   .step = p->step,
                                   .thread = thread,
                                   .queue = queue,
                                   .kind = kind,
                                   .name = name };
    return at;
}

static void add_note(struct path *p, enum note note, uint32_t row, int64_t ns)
{
    if (!snd_grow(&p->parts, &p->part_room, p->part_count, sizeof *p->parts))
        p->failed = true;
    else
        p->parts[p->part_count++] = (struct path_part){ note, row, ns > 0 ? ns : 0 };
}

/* The path took what was at `latest`; the next was at `next`. */
static void add_choice(struct path *p, enum note note, int64_t latest, int64_t next)
{
    add_note(p, note, SONDE_NONE, next == INT64_MIN ? INT64_MAX : snd_sub(latest, next));
}

/* The path from `from_ns` to where it is, which is `from_ns` then. */
static void take(struct path *p, int64_t from_ns, uint32_t thread, uint32_t queue,
                 enum snd_part_kind kind, uint32_t name)
{
    int64_t begin = p->processes[p->process].begin_ns;

    from_ns = from_ns < begin ? begin : from_ns;
    if (from_ns >= p->ns)
        return;
    uint32_t row = find_row(p, thread, queue, kind, name);
    if (row == SONDE_NONE) {
        p->failed = true;
        return;
    }
    p->result->rows[row].ns += snd_sub(p->ns, from_ns);
    p->result->rows[row].count++;
    add_note(p, PART, row, snd_sub(p->ns, from_ns));
    p->ns = from_ns;
}

/* -------------------------------------------------------------------- collectives */

/* The collective of this process that ended last in (from, until]; SONDE_NONE: none. */
static uint32_t find_met(const struct path *p, int64_t from_ns, int64_t until_ns)
{
    uint32_t low = 0, high = p->member_count;

    while (low < high) { /* the first after them */
        uint32_t                            middle = low + (high - low) / 2;
        const struct snd_collective_member *m = &p->members[p->by_end[middle]].m;
        if (m->process < p->process || (m->process == p->process && m->end_ns <= until_ns))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return SONDE_NONE;
    const struct snd_collective_member *m = &p->members[p->by_end[low - 1]].m;
    return m->process == p->process && m->end_ns > from_ns ? p->by_end[low - 1] : SONDE_NONE;
}

/* When a member's work began, which is when it came. */
static int64_t arrival(const struct snd_collective_member *m)
{
    return m->enter_ns > m->arrive_ns ? m->enter_ns : m->arrive_ns;
}

/* ------------------------------------------------------------------------- GPU */

static int64_t item_end(const struct snd_device_item *item)
{
    return snd_add(item->start_ns, item->duration_ns);
}

/* Among those that began before `ns`, nearest first: the one that ended last, not after it; of a queue, or (0) of any. */
static uint32_t find_item(const struct path *p, int64_t ns, uint32_t queue, int64_t after_ns)
{
    uint32_t low = p->device_from[p->process], first = low, best = SONDE_NONE;
    uint32_t high = p->device_from[p->process + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->devices->items[p->devices->by_time[middle]].start_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t n = 0; low > first && n < NEARBY; n++) {
        uint32_t                      at = p->devices->by_time[--low];
        const struct snd_device_item *item = &p->devices->items[at];
        if ((queue != 0 && item->queue != queue) || item_end(item) > ns ||
            item_end(item) <= after_ns || !snd_work_counts(snd_device_work(p->trace, item)))
            continue;
        if (best == SONDE_NONE || item_end(item) > item_end(&p->devices->items[best]))
            best = at;
    }
    return best;
}

/* The collective whose work ended with this one. */
static uint32_t find_met_of(const struct path *p, const struct snd_device_item *item)
{
    uint32_t member = find_met(p, snd_sub(item_end(item), 1), item_end(item));

    return member != SONDE_NONE && p->members[member].m.has_launched ? member : SONDE_NONE;
}

/* From the begin of a work to what it waited for: its launch, the one before it on its stream, or another stream's. */
static void leave_item(struct path *p, const struct snd_device_item *item)
{
    uint32_t call, before = find_item(p, item->start_ns, item->queue, INT64_MIN);
    uint32_t other = find_item(p, item->start_ns, 0, INT64_MIN);
    bool     has_call = snd_map_get(&p->call_index,
                                    (struct snd_key){ p->process, item->correlation, 0 }, &call);
    int64_t  called = has_call ? p->calls[call].start_ns : INT64_MIN;
    int64_t  ended = before != SONDE_NONE ? item_end(&p->devices->items[before]) : INT64_MIN;

    /* Another stream's, if this one stood still although it had been asked. */
    if (other != SONDE_NONE && item_end(&p->devices->items[other]) > ended &&
        item_end(&p->devices->items[other]) > called) {
        before = other;
        ended = item_end(&p->devices->items[other]);
    }
    p->item = SONDE_NONE;
    p->thread = has_call ? p->calls[call].thread : p->processes[p->process].main_thread;
    if (!has_call && before == SONDE_NONE)
        return;
    bool is_launch = called >= ended;
    take(p, is_launch ? called : ended, SONDE_NONE, item->queue, SND_PART_LAUNCH, SONDE_NONE);
    if (is_launch) {
        add_note(p, LAUNCH, SONDE_NONE, 0);
    } else {
        add_choice(p, LIMIT, ended, called);
        p->item = before;
    }
}

/* The work of this process that began then. */
static uint32_t find_begun(const struct path *p, int64_t ns)
{
    uint32_t low = p->device_from[p->process], high = p->device_from[p->process + 1];

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->devices->items[p->devices->by_time[middle]].start_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    bool is_there = low < p->device_from[p->process + 1] &&
                    p->devices->items[p->devices->by_time[low]].start_ns == ns;
    return is_there ? p->devices->by_time[low] : SONDE_NONE;
}

/* From the end of a collective to the rank that came last: to the call by which it did, or what its GPU did before. */
static void go_through(struct path *p, uint32_t member)
{
    const struct snd_collective_member *own = &p->members[member].m, *last = NULL;
    const struct met                   *met = &p->mets[p->members[member].met];
    int64_t                             next = INT64_MIN;

    for (uint32_t i = met->first; i < met->first + met->count; i++)
        if (!last || arrival(&p->members[i].m) > arrival(last))
            last = &p->members[i].m;
    for (uint32_t i = met->first; i < met->first + met->count; i++)
        if (&p->members[i].m != last && arrival(&p->members[i].m) > next)
            next = arrival(&p->members[i].m);
    int64_t  came = arrival(last);
    uint32_t noted = p->part_count;
    take(p, came, own->thread, 0, SND_PART_COLLECTIVE, own->name);
    if (p->part_count > noted)
        p->parts[noted].note = SHARED;
    add_choice(p, JOIN, came, next);
    p->process = last->process;
    p->thread = last->thread != SONDE_NONE ? last->thread : p->processes[p->process].main_thread;
    p->item = SONDE_NONE;
    p->ns = came < p->ns ? came : p->ns;
    uint32_t begun = last->has_launched ? find_begun(p, came) : SONDE_NONE;
    if (begun != SONDE_NONE)
        leave_item(p, &p->devices->items[begun]);
    else
        take(p, last->start_ns, p->thread, 0, SND_PART_COLLECTIVE, last->name);
}

static void walk_item(struct path *p)
{
    const struct snd_device_item *item = &p->devices->items[p->item];
    bool     is_kernel = snd_device_work(p->trace, item)->kind == SND_WORK_KERNEL;
    uint32_t met = find_met_of(p, item);

    if (met != SONDE_NONE) {
        go_through(p, met);
        return;
    }
    take(p, item->start_ns, SONDE_NONE, item->queue, is_kernel ? SND_PART_KERNEL : SND_PART_COPY,
         snd_device_name(p->trace, item));
    leave_item(p, item);
}

/* ---------------------------------------------------------------------- threads */

/* What the thread did just before now: a number of its stretches; SONDE_NONE: nothing yet. */
static uint32_t find_stretch(const struct thread_line *line, int64_t ns)
{
    uint32_t low = 0, high = line->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (line->stretches[middle].from_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? SONDE_NONE : low - 1;
}

/* Another thread of the process, idle now, whose operator ended last in (from, until]. */
static uint32_t find_worker(const struct path *p, int64_t from_ns, int64_t until_ns,
                            int64_t *end_ns)
{
    const struct snd_process *own = &p->trace->processes[p->process];
    uint32_t                  best = SONDE_NONE;

    for (uint32_t t = own->first_thread; t < own->first_thread + own->thread_count; t++) {
        const struct thread_line *line = &p->threads[t];
        uint32_t at = t != p->thread ? find_stretch(line, snd_add(until_ns, 1)) : SONDE_NONE;
        if (at == SONDE_NONE || at == 0 || line->stretches[at].kind != SND_PART_HOST ||
            line->stretches[at - 1].kind != SND_PART_OPERATOR ||
            line->stretches[at].from_ns <= from_ns || line->stretches[at].from_ns <= *end_ns)
            continue;
        best = t;
        *end_ns = line->stretches[at].from_ns;
    }
    return best;
}

/* Nothing known runs in the thread, or a collective is called: what did it wait for? */
static void walk_idle(struct path *p, const struct stretch *now)
{
    uint32_t member = find_met(p, now->from_ns, p->ns);
    int64_t  worked = INT64_MIN;
    uint32_t worker = find_worker(p, now->from_ns, p->ns, &worked);
    uint32_t thread = p->thread;

    if (member != SONDE_NONE && p->members[member].m.end_ns >= worked) {
        take(p, p->members[member].m.end_ns, thread, 0, (enum snd_part_kind)now->kind, now->name);
        go_through(p, member);
    } else if (worker != SONDE_NONE) {
        take(p, worked, thread, 0, (enum snd_part_kind)now->kind, now->name);
        p->thread = worker;
    } else {
        take(p, now->from_ns, thread, 0, (enum snd_part_kind)now->kind, now->name);
    }
}

static void walk_thread(struct path *p)
{
    const struct thread_line *line = &p->threads[p->thread];
    uint32_t                  at = find_stretch(line, p->ns);
    const struct stretch      before = { INT64_MIN, SONDE_NONE, SND_PART_HOST, false };
    const struct stretch     *now = at != SONDE_NONE ? &line->stretches[at] : &before;
    uint32_t item = now->waits && p->devices ? find_item(p, p->ns, 0, now->from_ns) : SONDE_NONE;

    if (now->kind == SND_PART_HOST || now->kind == SND_PART_COLLECTIVE) {
        walk_idle(p, now);
    } else if (item != SONDE_NONE) {
        int64_t ended = item_end(&p->devices->items[item]);
        take(p, ended, p->thread, 0, SND_PART_CALL, now->name);
        add_choice(p, SYNC, ended, now->from_ns);
        p->item = item;
    } else {
        take(p, now->from_ns, p->thread, 0, (enum snd_part_kind)now->kind, now->name);
    }
}

/* ------------------------------------------------------------------------- all */

static bool can_be_last(const struct path *p, uint32_t process)
{
    return p->processes[process].is_rank && p->processes[process].takes_part;
}

static bool find_last(struct path *p)
{
    int64_t next = INT64_MIN;

    p->process = SONDE_NONE;
    for (uint32_t i = 0; i < p->trace->process_count; i++)
        if (can_be_last(p, i) &&
            (p->process == SONDE_NONE || p->processes[i].end_ns > p->processes[p->process].end_ns))
            p->process = i;
    if (p->process == SONDE_NONE)
        return false;
    for (uint32_t i = 0; i < p->trace->process_count; i++)
        if (i != p->process && can_be_last(p, i) && p->processes[i].end_ns > next)
            next = p->processes[i].end_ns;
    p->ns = p->processes[p->process].end_ns;
    p->thread = p->processes[p->process].main_thread;
    p->item = SONDE_NONE;
    add_choice(p, JOIN, p->ns, next);
    return true;
}

static void walk_back(struct path *p)
{
    while (!p->failed && p->ns > p->processes[p->process].begin_ns) {
        int64_t  before_ns = p->ns;
        uint32_t before_item = p->item, before_thread = p->thread;
        if (p->item != SONDE_NONE)
            walk_item(p);
        else
            walk_thread(p);
        /* Times of a damaged trace may lead nowhere. */
        if (p->ns >= before_ns && p->item == before_item && p->thread == before_thread)
            break;
        if (p->ns > before_ns)
            break;
    }
}

/* What a row wins since ranks last waited for each other, and since the path last went to a GPU. */
struct gain {
    int64_t since_join, on_gpu;
};

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void follow_note(const struct path_part *part, struct gain *gain,
                        struct snd_critical_row *row)
{
    switch (part->note) {
    case JOIN:
        row->win_ns += lesser(gain->since_join + gain->on_gpu, part->ns);
        *gain = (struct gain){ 0, 0 };
        break;
    case LIMIT:
        gain->on_gpu = lesser(gain->on_gpu, part->ns);
        break;
    case SYNC:
        gain->since_join += lesser(gain->on_gpu, part->ns);
        gain->on_gpu = 0;
        break;
    default: /* LAUNCH: of the GPU nothing is won yet, as SYNC or JOIN came before */
        break;
    }
}

/* Of the rows from `first` on, in the order of time, which is from the path's last note to its first. */
static bool find_wins(struct path *p, uint32_t first)
{
    struct snd_critical *c = p->result;
    struct gain         *gains = calloc((size_t)(c->count - first) + 1, sizeof *gains);
    bool                 on_gpu = false;

    for (uint32_t i = p->part_count; gains && i-- > 0;) {
        const struct path_part *part = &p->parts[i];
        if (part->note == SHARED) {
            c->rows[part->row].win_ns += part->ns;
        } else if (part->note == PART) {
            struct gain *gain = &gains[part->row - first];
            *(on_gpu ? &gain->on_gpu : &gain->since_join) += part->ns;
        } else {
            on_gpu = part->note == LAUNCH || part->note == LIMIT;
            for (uint32_t row = first; row < c->count; row++)
                follow_note(part, &gains[row - first], &c->rows[row]);
        }
    }
    free(gains);
    return gains != NULL;
}

static int compare_rows(const void *a, const void *b)
{
    const struct snd_critical_row *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->step, y->step), SND_FALLING(x->ns, y->ns),
                     SND_RISING(x->process, y->process), SND_RISING(x->name, y->name));
}

/* Of the run, or of the step that the processes are set to. False: no memory. */
static bool walk_path(struct path *p)
{
    struct snd_critical *c = p->result;
    uint32_t             first = c->count;
    int64_t              span_ns = 0;

    p->part_count = 0;
    snd_map_release(&p->row_index);
    p->row_index = (struct snd_map){ 0 };
    if (!find_last(p))
        return true;
    c->steps += p->by_step ? 1 : p->processes[p->process].steps;
    walk_back(p);
    for (uint32_t i = first; i < c->count; i++)
        span_ns = snd_add(span_ns, c->rows[i].ns);
    for (uint32_t i = first; i < c->count; i++)
        c->rows[i].path_ns = span_ns;
    c->span_ns = snd_add(c->span_ns, span_ns);
    return !p->failed && find_wins(p, first);
}

static int compare_times(const void *a, const void *b)
{
    const struct step_mark *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->process, y->process), SND_RISING(x->begin_ns, y->begin_ns));
}

static int compare_numbers(const void *a, const void *b)
{
    const struct step_mark *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->number, y->number), SND_RISING(x->process, y->process),
                     SND_RISING(x->begin_ns, y->begin_ns));
}

/* What follows the last step of a process is none. */
static void end_marks(struct path *p)
{
    snd_sort(p->marks, p->mark_count, sizeof *p->marks, compare_times);
    for (uint32_t i = 0; i < p->mark_count; i++) {
        struct step_mark *mark = &p->marks[i];
        bool is_last = i + 1 == p->mark_count || p->marks[i + 1].process != mark->process;
        if (!is_last)
            mark->end_ns = p->marks[i + 1].begin_ns;
        else if (!snd_steps_is_open(p->trace, mark->process, mark->number))
            mark->end_ns = p->processes[mark->process].end_ns;
    }
    snd_sort(p->marks, p->mark_count, sizeof *p->marks, compare_numbers);
}

/* Where it leads to a rank that has no such step, it goes back to the first begin of the others'. */
static bool walk_step(struct path *p, uint32_t from, uint32_t to)
{
    int64_t first_ns = INT64_MAX;

    for (uint32_t i = from; i < to; i++)
        first_ns = p->marks[i].begin_ns < first_ns ? p->marks[i].begin_ns : first_ns;
    for (uint32_t i = 0; i < p->trace->process_count; i++) {
        p->processes[i].takes_part = false;
        p->processes[i].begin_ns = first_ns;
    }
    for (uint32_t i = from; i < to; i++) {
        struct process_line *line = &p->processes[p->marks[i].process];
        if (line->takes_part || p->marks[i].end_ns <= p->marks[i].begin_ns)
            continue;
        line->takes_part = true;
        line->begin_ns = p->marks[i].begin_ns;
        line->end_ns = p->marks[i].end_ns;
    }
    p->step = p->marks[from].number;
    return walk_path(p);
}

static bool make_path(struct path *p)
{
    bool good = make_indexes(p);

    if (p->by_step)
        end_marks(p);
    else
        good = good && walk_path(p);
    for (uint32_t from = 0, to; good && from < p->mark_count; from = to) {
        for (to = from; to < p->mark_count && p->marks[to].number == p->marks[from].number;)
            to++;
        good = walk_step(p, from, to);
    }
    snd_sort(p->result->rows, p->result->count, sizeof *p->result->rows, compare_rows);
    return good;
}

static void release(struct path *p)
{
    for (uint32_t i = 0; p->threads && i < p->trace->thread_count; i++) {
        free(p->threads[i].stretches);
        free(p->threads[i].open);
    }
    free(p->threads);
    free(p->processes);
    free(p->device_from);
    free(p->mets);
    free(p->members);
    free(p->by_end);
    free(p->calls);
    free(p->parts);
    free(p->marks);
    snd_map_release(&p->call_index);
    snd_map_release(&p->row_index);
}

enum sonde_status snd_critical_make(struct sonde_trace *trace, bool by_step,
                                    struct snd_critical **out, struct sonde_error *err)
{
    struct path                   p = { .trace = trace, .by_step = by_step };
    struct snd_groups             groups = { 0 };
    struct snd_collective_watcher watcher = {
        .user = &p, .done = on_done, .open = on_open, .close = on_close, .step = on_step
    };
    enum sonde_status status = SONDE_OK;

    *out = NULL;
    p.result = calloc(1, sizeof *p.result);
    p.threads = calloc((size_t)trace->thread_count + 1, sizeof *p.threads);
    p.processes = calloc((size_t)trace->process_count + 1, sizeof *p.processes);
    p.failed = !p.result || !p.threads || !p.processes;
    for (uint32_t i = 0; !p.failed && i < trace->process_count; i++)
        p.processes[i] = (struct process_line){ .begin_ns = INT64_MAX, .end_ns = INT64_MIN };
    if (!p.failed)
        status = snd_trace_devices_by_time(trace, &p.devices, err);
    if (!p.failed && status == SONDE_OK)
        status = snd_collectives_walk(trace, &groups, &watcher, err);
    if (status == SONDE_OK && (p.failed || !make_path(&p)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the critical path of the trace");
    snd_groups_release(&groups);
    release(&p);
    if (status == SONDE_OK)
        *out = p.result;
    else
        snd_critical_free(p.result);
    return status;
}

void snd_critical_free(struct snd_critical *critical)
{
    if (!critical)
        return;
    free(critical->rows);
    free(critical);
}
