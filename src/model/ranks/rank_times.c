/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/rank_times.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "model/ranks/chance.h"
#include "model/ranks/host_clocks.h"
#include "model/ranks/rank_activity.h"
#include "model/ranks/rank_gpu.h"
#include "model/summary/steps.h"

#define STEP_ROWS_MAX (1u << 22) /* of all ranks */

const char *const snd_rank_cause_words[SND_CAUSES] = { "compute", "data loading", "communication",
                                                       "host" };

struct process_state {
    int64_t  first_step_ns;
    bool     has_begun; /* a step has, in the order of collectives */
    uint32_t step;      /* its current one, in step_rows; SONDE_NONE: none */
};

struct step_row {
    struct snd_rank_row row;
    uint32_t            before; /* the process's step before it; SONDE_NONE: none */
};

struct spent {
    uint32_t process, name;
    int64_t  ns;
};

#define SPENT_RECENT 1024u

struct maker {
    struct sonde_trace    *trace;
    struct snd_rank_times *times;
    struct snd_activity    activity;
    struct process_state  *states;
    struct snd_blocks      blocks;
    uint32_t              *row_of; /* of each process, in times->rows; SONDE_NONE: it has none */
    struct snd_map         spent_index;
    struct spent          *spent; /* own time of each name in each process */
    uint32_t               spent_count, spent_room;
    struct {
        uint64_t key; /* process and name */
        uint32_t at;  /* in `spent`, plus one */
    } spent_recent[SPENT_RECENT];
    uint32_t               first_process; /* whose steps are the blocks */
    struct snd_rank_memory memory;
    struct step_row       *step_rows; /* if they were asked for, in the order of their begin */
    uint32_t               step_count, step_room;
    bool                   by_step, has_steps, failed;
    int64_t                counted_until;
};

/* ------------------------------------------------------------ dividing time */

static void charge(struct snd_rank_row *row, const uint32_t threads[SND_DOINGS], int64_t passed)
{
    bool computes = threads[SND_COMPUTES] > 0, communicates = threads[SND_COMMUNICATES] > 0;
    bool loads = threads[SND_LOADS] > 0;

    row->compute_ns += computes ? passed : 0;
    row->communication_ns += communicates ? passed : 0;
    row->exposed_ns += communicates && !computes ? passed : 0;
    row->loading_ns += loads ? passed : 0;
    row->idle_ns += !computes && !communicates && !loads ? passed : 0;
}

static void on_stretch(void *user, uint32_t process, const uint32_t threads[SND_DOINGS],
                       int64_t from_ns, int64_t to_ns)
{
    struct maker        *m = user;
    struct snd_rank_row *row = &m->times->rows[m->row_of[process]];
    uint32_t             step = m->states[process].step;
    int64_t              passed = snd_sub(to_ns, from_ns);

    charge(row, threads, passed);
    if (step != SONDE_NONE)
        charge(&m->step_rows[step].row, threads, passed);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct maker *m = user;

    snd_activity_open(&m->activity, lane, open);
}

/* SONDE_NONE: out of memory. */
static uint32_t look_up_spent(struct maker *m, uint32_t process, uint32_t name)
{
    struct snd_key key = { process, name, 0 };
    uint32_t       at;

    if (snd_map_get(&m->spent_index, key, &at))
        return at;
    at = m->spent_count;
    if (!snd_grow(&m->spent, &m->spent_room, at, sizeof *m->spent) ||
        !snd_map_put(&m->spent_index, key, at)) {
        m->failed = true;
        return SONDE_NONE;
    }
    m->spent[m->spent_count++] = (struct spent){ process, name, 0 };
    return at;
}

/* The entry of a name in a process, made if it is the first; SONDE_NONE: out of memory. */
static inline uint32_t find_spent(struct maker *m, uint32_t process, uint32_t name)
{
    uint64_t key = SND_PAIR(process, name);
    uint32_t recent = (process * 31 + name) % SPENT_RECENT;

    if (m->spent_recent[recent].at == 0 || m->spent_recent[recent].key != key) {
        m->spent_recent[recent].at = look_up_spent(m, process, name) + 1; /* SONDE_NONE: 0 */
        m->spent_recent[recent].key = key;
    }
    return m->spent_recent[recent].at - 1;
}

static void add_spent(struct maker *m, uint32_t at, int64_t ns)
{
    if (at != SONDE_NONE)
        m->spent[at].ns = snd_add(m->spent[at].ns, ns);
}

static bool has_spent(enum snd_doing does)
{
    return does == SND_COMPUTES || does == SND_LOADS;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *open)
{
    struct maker           *m = user;
    const struct snd_range *r = &open->range;

    if (has_spent(snd_activity_close(&m->activity, lane, open)))
        add_spent(m, find_spent(m, lane->process, r->name), snd_sub(r->total_ns, r->child_ns));
}

/* A kind of leaves is what they do, in so many bits, and where the time of their name is added. */
enum { LEAF_BITS = 2, LEAF_DOES = (1 << LEAF_BITS) - 1 };

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct maker  *m = user;
    enum snd_doing does = snd_activity_kind(&m->activity, lane, shared);
    uint32_t       at = has_spent(does) ? find_spent(m, lane->process, shared->name) : 0;

    return at == SONDE_NONE ? SONDE_NONE : at << LEAF_BITS | does;
}

static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t kind,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct maker  *m = user;
    enum snd_doing does = kind & LEAF_DOES;

    (void)known, (void)above, (void)parent;
    snd_activity_leaf(&m->activity, lane, leaf, does);
    if (has_spent(does))
        add_spent(m, kind >> LEAF_BITS, snd_sub(leaf->end_ns, leaf->start_ns));
}

/* What is held when it begins belongs to it. */
static void begin_row(const struct maker *m, struct snd_rank_row *row, uint32_t process)
{
    *row = (struct snd_rank_row){ .process = process,
                                  .rank = m->trace->processes[process].shown.rank };
    for (int kind = 0; kind < SND_HELD_KINDS; kind++)
        row->peaks[kind] = INT64_MIN;
    snd_rank_memory_raise(&m->memory, process, row->peaks);
}

static void end_step_row(struct maker *m, const struct process_state *p, int64_t ns)
{
    if (p->step == SONDE_NONE)
        return;
    struct snd_rank_row *row = &m->step_rows[p->step].row;
    row->span_ns = snd_sub(ns, row->start_ns);
}

static void begin_step_row(struct maker *m, uint32_t process, int64_t ns, uint64_t number)
{
    struct process_state *p = &m->states[process];

    if (m->step_count >= STEP_ROWS_MAX)
        return;
    if (!snd_grow(&m->step_rows, &m->step_room, m->step_count, sizeof *m->step_rows)) {
        m->failed = true;
        return;
    }
    struct step_row *made = &m->step_rows[m->step_count];
    begin_row(m, &made->row, process);
    made->row.step = number;
    made->row.steps = 1;
    made->row.start_ns = ns;
    made->before = p->step;
    p->step = m->step_count++;
}

/* The row of the step in which the process was then; NULL: none. */
static struct snd_rank_row *find_step_row(const struct maker *m, uint32_t process, int64_t ns)
{
    uint32_t at = m->states[process].step;

    while (at != SONDE_NONE && m->step_rows[at].row.start_ns > ns)
        at = m->step_rows[at].before;
    return at != SONDE_NONE ? &m->step_rows[at].row : NULL;
}

static void copy_collectives(struct snd_rank_row *row, const struct snd_rank_row *from)
{
    row->collectives = from->collectives;
    row->wait_ns = from->wait_ns;
    row->last = from->last;
    row->late_work_ns = from->late_work_ns;
}

/* Where a program has steps, what came before the first is start-up: imports, the model, its first broadcast. */
static void on_step(void *user, uint32_t process, int64_t ns, uint64_t number)
{
    struct maker *m = user;

    if (m->row_of[process] == SONDE_NONE)
        return;
    snd_activity_step(&m->activity, process, ns);
    struct snd_rank_row *row = &m->times->rows[m->row_of[process]];
    if (row->steps == 0) {
        struct snd_rank_row before = *row;
        begin_row(m, row, process);
        copy_collectives(row, &before); /* on_began() has its turn */
        m->states[process].first_step_ns = m->activity.processes[process].at_ns;
    }
    row->steps++;
    if (m->by_step) {
        end_step_row(m, &m->states[process], ns);
        begin_step_row(m, process, ns, number);
    }
}

/* The same among the collectives. */
static void on_began(void *user, uint32_t process)
{
    static const struct snd_rank_row none;
    struct maker                    *m = user;

    if (m->row_of[process] == SONDE_NONE)
        return;
    if (!m->states[process].has_begun)
        copy_collectives(&m->times->rows[m->row_of[process]], &none);
    m->states[process].has_begun = true;
    if (process == m->first_process) {
        if (!m->has_steps)
            snd_blocks_clear(&m->blocks);
        m->has_steps = true;
        snd_blocks_next(&m->blocks);
    }
}

static void on_memory(void *user, struct snd_lane *lane, const uint64_t *words)
{
    struct maker *m = user;

    if (m->row_of[lane->process] == SONDE_NONE)
        return;
    uint32_t step = m->states[lane->process].step;
    snd_rank_memory_event(&m->memory, lane->process, words);
    snd_rank_memory_raise(&m->memory, lane->process,
                          m->times->rows[m->row_of[lane->process]].peaks);
    if (step != SONDE_NONE)
        snd_rank_memory_raise(&m->memory, lane->process, m->step_rows[step].row.peaks);
}

/* ----------------------------------------------------------------- lateness */

/* The member that came last, and the one before it, when all others had come. */
static uint32_t find_latest(const struct snd_collective *c, uint32_t *before)
{
    uint32_t latest = 0;

    for (uint32_t i = 1; i < c->count; i++)
        if (c->members[i].arrive_ns > c->members[latest].arrive_ns)
            latest = i;
    *before = latest == 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (i != latest && c->members[i].arrive_ns > c->members[*before].arrive_ns)
            *before = i;
    return latest;
}

/* How long after their calls the work of the others began at most. */
static int64_t find_usual_delay(const struct snd_collective *c, uint32_t latest)
{
    int64_t most = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        int64_t delay = snd_sub(c->members[i].arrive_ns, c->members[i].start_ns);
        if (i != latest && delay > most)
            most = delay;
    }
    return most;
}

static void add_collective(struct snd_rank_row *row, const struct snd_collective_member *member)
{
    if (!row)
        return;
    row->collectives++;
    row->wait_ns += member->wait_ns > 0 ? member->wait_ns : 0;
}

static void on_done(void *user, const struct snd_collective *c)
{
    struct maker *m = user;
    uint32_t      before;

    for (uint32_t i = 0; i < c->count; i++) {
        const struct snd_collective_member *member = &c->members[i];
        uint32_t                            row = m->row_of[member->process];
        if (row == SONDE_NONE)
            continue;
        add_collective(&m->times->rows[row], member);
        add_collective(find_step_row(m, member->process, member->start_ns), member);
    }
    if (!c->is_whole || !c->is_complete || c->count < 2 || c->kind_differs)
        return;
    if (!m->has_steps)
        snd_blocks_next(&m->blocks);
    uint32_t latest = find_latest(c, &before);
    int64_t  others_ns = c->members[before].arrive_ns;
    uint32_t row = m->row_of[c->members[latest].process];
    int64_t  last_ns = c->members[latest].arrive_ns;
    int64_t  from_ns = others_ns > m->counted_until ? others_ns : m->counted_until;
    if (row == SONDE_NONE)
        return;
    struct snd_rank_row *step = find_step_row(m, c->members[latest].process,
                                              c->members[latest].start_ns);
    m->times->rows[row].last++;
    if (step)
        step->last++;
    /* Within the error of two hosts' clocks it is not known who came last. */
    if (last_ns <= from_ns ||
        snd_sub(last_ns, others_ns) <=
            snd_host_clocks_error(m->trace, c->members[latest].process, c->members[before].process))
        return;
    int64_t late = snd_sub(last_ns, from_ns);
    int64_t own = snd_sub(snd_sub(last_ns, c->members[latest].start_ns),
                          find_usual_delay(c, latest));
    m->counted_until = last_ns;
    m->times->rows[row].late_work_ns += own > late ? late : own > 0 ? own : 0;
    snd_blocks_add(&m->blocks, row, late);
    if (step)
        step->caused_ns += late;
}

/* -------------------------------------------------------------- stragglers */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return SND_RISING(x, y);
}

/* What a rank spent on a cause. What it spends communicating is that without waiting for others. */
static int64_t spent_on(const struct snd_rank_row *row, enum snd_rank_cause cause)
{
    switch (cause) {
    case SND_CAUSE_COMPUTE:
        return row->compute_ns;
    case SND_CAUSE_LOADING:
        return row->loading_ns;
    case SND_CAUSE_COMMUNICATION:
        return row->late_work_ns;
    default:
        return row->idle_ns;
    }
}

/* Of the other ranks. */
static int64_t find_median(const struct maker *m, uint32_t but, enum snd_rank_cause cause,
                           int64_t *scratch)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->times->count; i++)
        if (i != but)
            scratch[count++] = spent_on(&m->times->rows[i], cause);
    if (count == 0)
        return 0;
    snd_sort(scratch, count, sizeof *scratch, compare_numbers);
    return scratch[count / 2];
}

static int64_t spent_in(const struct maker *m, uint32_t process, uint32_t name)
{
    uint32_t at;

    return snd_map_get(&m->spent_index, (struct snd_key){ process, name, 0 }, &at) ? m->spent[at].ns
                                                                                   : 0;
}

/* The name in which it spends most more than the median of the others. */
static struct sonde_text find_where(const struct maker *m, uint32_t row, int64_t *scratch)
{
    uint32_t best = SONDE_NONE;
    int64_t  most = 0;

    for (uint32_t i = 0; i < m->spent_count; i++) {
        uint32_t count = 0;
        if (m->spent[i].process != m->times->rows[row].process || m->spent[i].ns <= most)
            continue;
        for (uint32_t k = 0; k < m->times->count; k++)
            if (k != row)
                scratch[count++] = spent_in(m, m->times->rows[k].process, m->spent[i].name);
        snd_sort(scratch, count, sizeof *scratch, compare_numbers);
        int64_t more = snd_sub(m->spent[i].ns, count ? scratch[count / 2] : 0);
        if (more > most) {
            most = more;
            best = m->spent[i].name;
        }
    }
    if (best == SONDE_NONE)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ m->trace->names.items[best].bytes,
                                m->trace->names.items[best].length };
}

static struct snd_straggler describe(const struct maker *m, uint32_t row, double chance,
                                     int64_t *scratch)
{
    struct snd_straggler one = { .row = row, .more_ns = INT64_MIN, .chance = chance };
    uint32_t             any, with = snd_blocks_with(&m->blocks, row, &any);

    for (enum snd_rank_cause cause = 0; cause < SND_CAUSES; cause++) {
        int64_t more = snd_sub(spent_on(&m->times->rows[row], cause),
                               find_median(m, row, cause, scratch));
        if (more > one.more_ns) {
            one.more_ns = more;
            one.cause = cause;
        }
    }
    one.is_persistent = 2 * with >= any;
    one.where = (struct sonde_text){ "", 0 };
    if (one.cause == SND_CAUSE_COMPUTE || one.cause == SND_CAUSE_LOADING)
        one.where = find_where(m, row, scratch);
    return one;
}

static int64_t find_span(const struct maker *m)
{
    int64_t span = 0;

    for (uint32_t i = 0; i < m->times->count; i++)
        if (m->times->rows[i].span_ns > span)
            span = m->times->rows[i].span_ns;
    return span;
}

static bool find_stragglers(struct maker *m)
{
    struct snd_rank_times *t = m->times;
    int64_t               *scratch = calloc((size_t)t->count + 1, sizeof *scratch);

    t->stragglers = calloc((size_t)t->count + 1, sizeof *t->stragglers);
    for (uint32_t i = 0; scratch && t->stragglers && i < t->count; i++) {
        int64_t caused = t->rows[i].caused_ns;
        if (caused <= 0 || caused / SND_STRAGGLER_PERCENT < find_span(m) / 100)
            continue;
        double chance = snd_blocks_chance(&m->blocks, caused);
        if (chance <= SND_STRAGGLER_CHANCE)
            t->stragglers[t->straggler_count++] = describe(m, i, chance, scratch);
    }
    bool good = scratch && t->stragglers;
    free(scratch);
    return good;
}

/* -------------------------------------------------------------------- making */

static bool make_rows(struct maker *m)
{
    struct snd_rank_times *t = m->times;

    t->rows = calloc((size_t)m->trace->process_count + 1, sizeof *t->rows);
    m->row_of = calloc((size_t)m->trace->process_count + 1, sizeof *m->row_of);
    if (!t->rows || !m->row_of)
        return false;
    m->first_process = SONDE_NONE;
    for (uint32_t i = 0; i < m->trace->process_count; i++) {
        m->row_of[i] = SONDE_NONE;
        if (!m->activity.processes[i].is_rank)
            continue;
        if (m->first_process == SONDE_NONE)
            m->first_process = i;
        m->row_of[i] = t->count;
        begin_row(m, &t->rows[t->count++], i);
    }
    return snd_blocks_init(&m->blocks, t->count);
}

static void finish_rows(struct maker *m)
{
    snd_activity_end(&m->activity);
    for (uint32_t i = 0; i < m->times->count; i++) {
        struct snd_rank_row               *row = &m->times->rows[i];
        const struct process_state        *p = &m->states[row->process];
        const struct snd_process_activity *a = &m->activity.processes[row->process];
        row->caused_ns = snd_blocks_sum(&m->blocks, i);
        row->start_ns = row->steps > 0 ? p->first_step_ns : a->first_ns;
        row->span_ns = a->began ? snd_sub(a->at_ns, row->start_ns) : 0;
        row->peak_bytes = snd_rank_memory_peak(&m->memory, row->process, row->peaks);
        end_step_row(m, p, a->at_ns);
    }
}

static int compare_times(const void *a, const void *b)
{
    const struct snd_rank_row *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->process, y->process), SND_RISING(x->start_ns, y->start_ns));
}

static int compare_steps(const void *a, const void *b)
{
    const struct snd_rank_row *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return compare_times(a, b);
}

/* By process and time, without what followed the last step of each. False: no memory. */
static bool finish_steps(struct maker *m)
{
    struct snd_rank_times *t = m->times;

    t->steps = calloc((size_t)m->step_count + 1, sizeof *t->steps);
    for (uint32_t i = 0; t->steps && i < m->step_count; i++) {
        struct snd_rank_row *row = &m->step_rows[i].row;
        bool                 is_last = m->states[row->process].step == i;
        if (row->span_ns <= 0 || (is_last && snd_steps_is_open(m->trace, row->process, row->step)))
            continue;
        row->peak_bytes = snd_rank_memory_peak(&m->memory, row->process, row->peaks);
        t->steps[t->step_count++] = *row;
    }
    if (t->steps)
        snd_sort(t->steps, t->step_count, sizeof *t->steps, compare_times);
    return t->steps != NULL;
}

static void release(struct maker *m)
{
    snd_activity_release(&m->activity);
    free(m->states);
    free(m->row_of);
    free(m->spent);
    free(m->step_rows);
    snd_rank_memory_release(&m->memory);
    snd_map_release(&m->spent_index);
    snd_blocks_release(&m->blocks);
}

enum sonde_status snd_rank_times_make(struct sonde_trace *trace, bool by_step,
                                      struct snd_rank_times **out, struct sonde_error *err)
{
    struct maker m = { .trace = trace, .counted_until = INT64_MIN, .by_step = by_step };
    struct snd_collective_watcher watcher = { .user = &m,
                                              .done = on_done,
                                              .open = on_open,
                                              .close = on_close,
                                              .kind = on_kind,
                                              .leaf = on_leaf,
                                              .step = on_step,
                                              .began = on_began,
                                              .memory = on_memory };
    enum sonde_status             status = SONDE_OK;

    *out = NULL;
    m.times = calloc(1, sizeof *m.times);
    m.activity = (struct snd_activity){ .user = &m, .stretch = on_stretch };
    m.states = calloc((size_t)trace->process_count + 1, sizeof *m.states);
    m.failed = !snd_rank_memory_init(&m.memory, trace) || !m.times || !m.states ||
               !snd_activity_begin(&m.activity, trace) || !make_rows(&m);
    for (uint32_t i = 0; m.states && i < trace->process_count; i++)
        m.states[i].step = SONDE_NONE;
    if (!m.failed && m.times->count > 0) /* a process alone is no job: not walked for it */
        status = snd_collectives_walk(trace, &m.times->groups, &watcher, err);
    m.failed |= m.memory.failed;
    if (status == SONDE_OK && !m.failed) {
        finish_rows(&m);
        m.failed = !finish_steps(&m);
    }
    if (status == SONDE_OK && !m.failed)
        status = snd_rank_gpu_divide(trace, m.times, m.row_of, err);
    if (status == SONDE_OK && (m.failed || !find_stragglers(&m)))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranks of the trace");
    if (status == SONDE_OK)
        snd_sort(m.times->steps, m.times->step_count, sizeof *m.times->steps, compare_steps);
    release(&m);
    if (status == SONDE_OK)
        *out = m.times;
    else
        snd_rank_times_free(m.times);
    return status;
}

void snd_rank_times_free(struct snd_rank_times *times)
{
    if (!times)
        return;
    snd_groups_release(&times->groups);
    free(times->rows);
    free(times->steps);
    free(times->stragglers);
    free(times);
}
