/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tables/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "export/tables/row_parts.h"
#include "format/fields.h"
#include "model/counters/stack_counters.h"
#include "model/ops/averages.h"
#include "model/ranges/live_memory.h"
#include "model/ranks/host_clocks.h"
#include "model/summary/steps.h"
#include "model/summary/summary.h"
#include "read/walk/trace_walk.h"
#include "sonde/export.h"

#define OUT_OF_MEMORY "out of memory for the tables"

/* clang-format off */
#define TABLE(name_) [SND_TABLE_##name_] = { #name_, {
#define COLUMN(name_, type_) { #name_, SND_SQL_##type_ },
#define END } },
const struct snd_sql_table snd_sql_tables[SND_SQL_TABLES] = {
#include "export/tables/tables.def"
};
#undef TABLE
#undef COLUMN
#undef END
/* clang-format on */

size_t snd_sql_column_count(const struct snd_sql_table *table)
{
    size_t count = 0;

    while (count < SND_SQL_COLUMNS_MAX && table->columns[count].name)
        count++;
    return count;
}

size_t snd_sql_column_find(const struct snd_sql_table *table, const char *name)
{
    for (size_t i = 0; i < snd_sql_column_count(table); i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* Steps of a process that have begun, by time. */
struct steps {
    struct step {
        int64_t  start_ns;
        uint64_t number, ranges;
        bool     compiles;
    } * items;
    uint32_t count, room;
};

struct writer {
    struct sonde_trace         *trace;
    unsigned                    wanted;
    enum snd_sql_order          order;
    const struct snd_sql_parts *to;
    struct steps               *steps; /* by process */
    struct snd_live             live;
    struct snd_sql_line         line;
    bool                        stopped, out_of_memory;
};

/* ---------------------------------------------------------------------- ranges */

/* Walks go by time: a range's step has begun when the range ends. */
static void note_step(struct writer *w, uint32_t process, int64_t ns, uint64_t number)
{
    struct steps *steps = &w->steps[process];
    uint32_t      at = steps->count;

    if (!snd_grow(&steps->items, &steps->room, steps->count, sizeof *steps->items)) {
        w->stopped = w->out_of_memory = true;
        return;
    }
    for (; at > 0; at--) { /* threads may be at odds by a little */
        const struct step *before = &steps->items[at - 1];
        if (before->start_ns < ns || (before->start_ns == ns && before->number <= number))
            break;
        steps->items[at] = *before;
    }
    steps->items[at] = (struct step){ .start_ns = ns, .number = number };
    steps->count++;
}

/* The step in which a range of the process began: most often the latest. NULL: before all. */
static struct step *find_step(const struct writer *w, uint32_t process, int64_t ns)
{
    const struct steps *steps = &w->steps[process];
    uint32_t            low = 0, high = steps->count;

    if (high > 0 && steps->items[high - 1].start_ns <= ns)
        low = high;
    while (low < high) { /* the first step after it */
        uint32_t middle = low + (high - low) / 2;
        if (steps->items[middle].start_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &steps->items[low - 1] : NULL;
}

/* What the summary says of steps, by the ranges that this walk met. */
static void judge_steps(const struct writer *w, struct sonde_summary *summary)
{
    struct snd_steps *steps = snd_summary_steps(summary);

    for (uint32_t i = 0; i < steps->count; i++) {
        struct sonde_step_row *row = &steps->rows[i];
        const struct step     *step = find_step(w, row->process, row->start_ns);
        if (!step || step->start_ns != row->start_ns || step->number != row->number)
            continue;
        row->ranges = step->ranges;
        row->part = step->compiles ? SONDE_STEP_COMPILES : SONDE_STEP_WHOLE;
    }
    snd_steps_judge(steps, w->trace);
}

static void note_range(const struct writer *w, struct step *step, const struct snd_range *r)
{
    const struct snd_text *name = &w->trace->names.items[r->name];

    step->ranges++;
    step->compiles |= snd_steps_is_compilation(name->bytes, name->length);
}

static bool on_range(void *user, uint32_t id, const struct snd_lane *lane,
                     const struct snd_range *r)
{
    struct writer *w = user;

    (void)id;
    if (w->stopped)
        return false;
    struct step *step = find_step(w, lane->process, r->start_ns);
    if (step && w->wanted & SND_SQL_ONLY(steps))
        note_range(w, step, r);
    if (!(w->wanted & SND_SQL_ONLY(ranges)) && r->stack == 0)
        return true;
    struct snd_sql_range *range = w->to->range_place(w->to->user);
    if (!range) {
        w->stopped = true;
        return false;
    }
    *range = (struct snd_sql_range){
        .start_ns = r->start_ns,
        .total_ns = r->total_ns,
        .self_ns = snd_sub(r->total_ns, r->child_ns),
        .cpu_bytes = r->cpu_bytes,
        .self_cpu_bytes = snd_sub(r->cpu_bytes, r->child_cpu_bytes),
        .device_bytes = r->device_bytes,
        .self_device_bytes = snd_sub(r->device_bytes, r->child_device_bytes),
        .step = step ? step->number : 0,
        .flops = r->flops,
        .process = lane->process,
        .thread = lane->thread,
        .name = r->name,
        .depth = r->node,
        .shapes = r->shapes,
        .module = r->module,
        .stack = r->stack,
        .has_step = step != NULL,
        .is_user = r->scope == SONDE_SCOPE_USER,
        .is_async = r->is_async,
    };
    w->stopped = !w->to->range(w->to->user, range);
    return !w->stopped;
}

/* ---------------------------------------------------------------------- events */

/* A free without a size, as torch has it of the CPU, frees what was allocated there. */
static void write_memory(struct writer *w, struct snd_sql_memory *memory, uint64_t told_bytes,
                         int64_t net_bytes)
{
    memory->size_bytes = memory->is_free && told_bytes == 0 ? -net_bytes : (int64_t)told_bytes;
    w->stopped |= !w->to->memory(w->to->user, memory);
}

/* Where nobody else keeps what is held. */
static void write_told_memory(struct writer *w, const struct sonde_event *e)
{
    bool                   is_free = e->kind == SONDE_EVENT_FREE;
    const uint64_t         words[4] = { is_free ? SND_EV_FREE : SND_EV_ALLOC, e->memory.device,
                                e->memory.address, e->memory.size_bytes };
    struct snd_live_change change = snd_live_event(&w->live, e->process, words);
    struct snd_sql_memory  memory = { .time_ns = e->time_ns,
                                      .address = e->memory.address,
                                      .process = e->process,
                                      .thread = e->thread,
                                      .device = e->memory.device,
                                      .is_free = is_free };

    w->out_of_memory |= w->live.failed;
    write_memory(w, &memory, e->memory.size_bytes, change.counted);
}

static bool write_event(const struct sonde_event *event, void *user)
{
    static const unsigned tables[] = {
        [SONDE_EVENT_SAMPLE] = SND_SQL_ONLY(samples) | SND_SQL_ONLY(stacks),
        [SONDE_EVENT_ALLOC] = SND_SQL_ONLY(memory),
        [SONDE_EVENT_FREE] = SND_SQL_ONLY(memory),
        [SONDE_EVENT_MARK] = SND_SQL_ONLY(marks) | SND_SQL_ONLY(stacks),
        [SONDE_EVENT_COUNTER] = SND_SQL_ONLY(counters),
    };
    struct writer *w = user;

    if ((size_t)event->kind >= SND_COUNT_OF(tables) || !(tables[event->kind] & w->wanted))
        return !w->stopped;
    if (event->kind == SONDE_EVENT_ALLOC || event->kind == SONDE_EVENT_FREE)
        write_told_memory(w, event);
    else
        w->stopped |= !w->to->event(w->to->user, event);
    return !w->stopped;
}

/* ------------------------------------------------------------------------- walk */

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct writer     *w = user;
    struct sonde_event event;

    if (w->stopped)
        return;
    if (SND_EVENT_KIND(words[0]) == SND_EV_STEP)
        note_step(w, lane->process, ns, words[1]);
    else if (snd_event_show(w->trace, lane->thread, ns, words, &event))
        write_event(&event, w);
}

static void on_sized(void *user, const struct snd_lane *lane, int64_t ns, const uint64_t *words,
                     int64_t net_bytes)
{
    struct writer        *w = user;
    struct snd_sql_memory memory = { .time_ns = ns,
                                     .address = words[2],
                                     .process = lane->process,
                                     .thread = lane->thread,
                                     .device = SND_LOW(words[1]),
                                     .is_free = SND_EVENT_KIND(words[0]) == SND_EV_FREE };

    if (!w->stopped)
        write_memory(w, &memory, words[3], net_bytes);
}

/* Ranges, and on the same walk all other events. */
static enum sonde_status walk_ranges(struct writer *w, struct sonde_error *err)
{
    const struct snd_consumer beside = {
        .user = w,
        .any_flops = true,
        .by_process = w->order == SND_SQL_BY_PROCESS,
        .early_rows = w->order == SND_SQL_BY_PROCESS,
        .sized = w->wanted & SND_SQL_ONLY(memory) ? on_sized : NULL,
        .other = on_other,
        .row = on_range,
    };

    w->steps = calloc((size_t)w->trace->process_count + 1, sizeof *w->steps);
    if (!w->steps)
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    return snd_averages_beside(w->trace, NULL, &beside, NULL, err);
}

/* --------------------------------------------------------------------- the rest */

static void end_row(struct writer *w, enum snd_sql_table_id table)
{
    w->line.count = 0;
    if (!w->stopped && w->wanted & 1u << table)
        w->stopped = !w->to->row(w->to->user, table, w->line.values, SND_SQL_COLUMNS_MAX);
}

static void add_number(struct writer *w, int64_t number)
{
    snd_line_number(&w->line, number);
}

static void add_text(struct writer *w, struct sonde_text text)
{
    snd_line_text(&w->line, text);
}

static void add_string(struct writer *w, const char *text)
{
    add_text(w, (struct sonde_text){ text, strlen(text) });
}

/* A number, or null: unknown. */
static void add_known(struct writer *w, uint32_t number)
{
    if (number == SONDE_NONE)
        snd_line_null(&w->line);
    else
        add_number(w, number);
}

static void write_processes(struct writer *w)
{
    add_string(w, "version");
    add_string(w, sonde_version());
    end_row(w, SND_TABLE_trace);
    add_string(w, "schema");
    add_string(w, "1");
    end_row(w, SND_TABLE_trace);
    for (uint32_t i = 0; i < sonde_trace_process_count(w->trace); i++) {
        const struct sonde_process *p = sonde_trace_process(w->trace, i);
        struct sonde_text           key, value;
        add_number(w, i);
        add_number(w, p->pid);
        add_number(w, p->parent_pid);
        add_string(w, p->host);
        add_string(w, p->program);
        add_number(w, p->start_ns);
        add_number(w, p->stop_ns);
        add_number(w, p->start_real_ns);
        add_number(w, p->closed);
        add_known(w, p->rank);
        add_known(w, p->local_rank);
        add_known(w, p->world_size);
        end_row(w, SND_TABLE_processes);
        for (uint32_t n = 0; sonde_trace_metadata(w->trace, i, n, &key, &value); n++) {
            add_number(w, i);
            add_text(w, key);
            add_text(w, value);
            end_row(w, SND_TABLE_metadata);
        }
    }
}

static void write_threads(struct writer *w)
{
    for (uint32_t i = 0; i < sonde_trace_thread_count(w->trace); i++) {
        const struct sonde_thread *t = sonde_trace_thread(w->trace, i);
        add_number(w, i);
        add_number(w, t->process);
        add_number(w, t->tid);
        add_text(w, t->name);
        add_number(w, (int64_t)t->lost_events);
        end_row(w, SND_TABLE_threads);
    }
}

static void write_counted(struct writer *w, const struct snd_counted_stack *stack,
                          const struct snd_counter_names *names)
{
    w->stopped |= !w->to->stack(w->to->user, stack->process, stack->stack);
    for (uint32_t n = 0; n < names->count; n++) {
        if (stack->samples[n] == 0 && stack->events[n] == 0)
            continue;
        add_number(w, stack->process);
        add_text(w, names->items[n].name);
        if (stack->stack)
            add_number(w, stack->stack);
        else
            snd_line_null(&w->line);
        add_number(w, (int64_t)stack->samples[n]);
        add_number(w, (int64_t)stack->events[n]);
        end_row(w, SND_TABLE_stack_counters);
    }
}

static enum sonde_status write_stack_counters(struct writer *w, struct sonde_error *err)
{
    struct snd_counter_names  names = { .count = 0 };
    struct snd_counted_stacks stacks;
    enum sonde_status         st = snd_counted_stacks_fill(&stacks, w->trace, &names, err);

    for (uint32_t i = 0; st == SONDE_OK && i < stacks.count && !w->stopped; i++)
        write_counted(w, &stacks.rows[i], &names);
    if (st == SONDE_OK && w->out_of_memory)
        st = snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    snd_counted_stacks_release(&stacks);
    return st;
}

static void write_summary(struct writer *w, const struct sonde_summary *summary)
{
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        add_string(w, item->key);
        add_number(w, (int64_t)item->count);
        add_string(w, item->text);
        add_number(w, item->is_note);
        end_row(w, SND_TABLE_ledger);
    }
    for (size_t i = 0; i < sonde_summary_step_count(summary); i++) {
        const struct sonde_step_row *step = sonde_summary_step(summary, i);
        add_number(w, step->process);
        add_number(w, (int64_t)step->number);
        add_number(w, step->start_ns);
        add_number(w, step->duration_ns);
        add_string(w, sonde_step_part_name(step->part));
        end_row(w, SND_TABLE_steps);
    }
}

/* Tables whose rows come from walking events, from ranges, from what a job did, from the summary. */
#define OF_EVENTS                                                                                  \
    (SND_SQL_ONLY(samples) | SND_SQL_ONLY(memory) | SND_SQL_ONLY(counters) | SND_SQL_ONLY(marks) | \
     SND_SQL_ONLY(stacks))
#define OF_RANGES (SND_SQL_ONLY(ranges) | SND_SQL_ONLY(stacks))
#define OF_STACK_COUNTERS (SND_SQL_ONLY(stack_counters) | SND_SQL_ONLY(stacks))
#define OF_RANKS (SND_SQL_ONLY(collectives) | SND_SQL_ONLY(activity))
#define OF_SUMMARY (SND_SQL_ONLY(ledger) | SND_SQL_ONLY(steps))

static enum sonde_status walk(struct writer *w, struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;

    if (w->wanted & OF_RANGES)
        st = walk_ranges(w, err);
    else if (w->wanted & OF_EVENTS)
        st = sonde_trace_walk(w->trace, SONDE_BY_TIME, write_event, w, err);
    if (st == SONDE_OK && w->out_of_memory)
        st = snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    return st;
}

/* The tables of jobs on a walk of their own. */
static enum sonde_status walk_ranks(struct writer *w, struct sonde_error *err)
{
    struct snd_sql_ranks *ranks;
    enum sonde_status     st = SONDE_OK;

    if (!(w->wanted & OF_RANKS))
        return st;
    st = snd_sql_ranks_begin(w->trace, w->wanted, w->to->row, w->to->user, &w->stopped, &ranks,
                             err);
    if (st == SONDE_OK)
        st = snd_sql_ranks_walk(ranks, err);
    return snd_sql_ranks_end(ranks, st, err);
}

enum sonde_status snd_sql_parts_walk(struct sonde_trace *trace, unsigned wanted,
                                     enum snd_sql_order order, const struct snd_sql_parts *to,
                                     struct sonde_error *err)
{
    struct writer         w = { .trace = trace, .wanted = wanted, .order = order, .to = to };
    bool                  rides = order == SND_SQL_BY_PROCESS && wanted & OF_RANGES;
    struct snd_sql_ranks *ranks = NULL;
    struct sonde_summary *summary = NULL;
    enum sonde_status     st = snd_host_clocks_align(trace, err);

    if (st == SONDE_OK && wanted & OF_SUMMARY) /* it rides along with the walk of ranges */
        st = snd_summary_begin(trace, &summary, err);
    if (st == SONDE_OK && rides)
        st = snd_sql_ranks_begin(trace, wanted, to->row, to->user, &w.stopped, &ranks, err);
    if (st == SONDE_OK)
        st = walk(&w, err);
    st = snd_sql_ranks_end(ranks, st, err);
    if (st == SONDE_OK && !w.stopped && wanted & SND_SQL_ONLY(gpu_work))
        st = snd_sql_gpu_rows(trace, to->row, to->user, &w.stopped, err);
    if (st == SONDE_OK && !w.stopped && !rides)
        st = walk_ranks(&w, err);
    if (st == SONDE_OK && !w.stopped && wanted & OF_STACK_COUNTERS)
        st = write_stack_counters(&w, err);
    if (st == SONDE_OK && !w.stopped) {
        write_processes(&w);
        write_threads(&w);
    }
    if (st == SONDE_OK && !w.stopped && summary) {
        /* One more walk for the steps, unless that of the ranges has met theirs. */
        st = snd_summary_finish(summary, wanted & SND_SQL_ONLY(steps) && !w.steps, err);
        if (st == SONDE_OK && w.steps)
            judge_steps(&w, summary);
        if (st == SONDE_OK)
            write_summary(&w, summary);
    }
    for (uint32_t i = 0; w.steps && i < trace->process_count; i++)
        free(w.steps[i].items);
    free(w.steps);
    sonde_summary_free(summary);
    snd_live_release(&w.live);
    return st;
}

static enum sonde_status make_rows(struct sonde_trace *trace, unsigned wanted, uint32_t columns,
                                   enum snd_sql_order order, const struct snd_sql_taker *to,
                                   struct sonde_error *err)
{
    struct snd_sql_maker maker;

    snd_sqlmaker_begin(&maker, trace, wanted, columns, to);
    const struct snd_sql_parts parts = snd_sqlmaker_parts(&maker);
    return snd_sqlmaker_end(&maker, snd_sql_parts_walk(trace, wanted, order, &parts, err), err);
}

/* Copies of ranges, which stay until they are settled. */
#define LASTING 256u
struct lasting {
    const struct snd_sql_taker *to;
    struct snd_sql_range       *ranges;
    size_t                      count;
    bool                        is_refused; /* nothing is taken any more */
};

static bool pass_row(void *user, enum snd_sql_table_id table, const struct snd_sql_value *values,
                     size_t given)
{
    struct lasting *lasting = user;

    lasting->is_refused = !lasting->to->row(lasting->to->user, table, values, given);
    return !lasting->is_refused;
}

static bool keep_range(void *user, struct snd_sql_maker *maker, const struct snd_sql_range *range)
{
    struct lasting *lasting = user;

    if (lasting->count == LASTING) {
        lasting->is_refused = !lasting->to->settle(lasting->to->user);
        lasting->count = 0;
    }
    if (lasting->is_refused)
        return false;
    lasting->ranges[lasting->count] = *range;
    lasting->is_refused = !lasting->to->range(lasting->to->user, maker,
                                              &lasting->ranges[lasting->count++]);
    return !lasting->is_refused;
}

enum sonde_status snd_sql_rows_here(struct sonde_trace *trace, unsigned wanted,
                                    enum snd_sql_order order, const struct snd_sql_taker *to,
                                    struct sonde_error *err)
{
    struct lasting             lasting = { .to = to };
    const struct snd_sql_taker by_lasting = { pass_row, keep_range, NULL, &lasting };
    enum sonde_status          st;

    if (!to->settle)
        return make_rows(trace, wanted, UINT32_MAX, order, to, err);
    lasting.ranges = malloc(LASTING * sizeof *lasting.ranges);
    if (!lasting.ranges)
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    st = make_rows(trace, wanted, UINT32_MAX, order, &by_lasting, err);
    if (st == SONDE_OK && !lasting.is_refused)
        (void)!to->settle(to->user); /* who fails knows it */
    free(lasting.ranges);
    return st;
}

enum sonde_status snd_sql_table_rows(struct sonde_trace *trace, enum snd_sql_table_id table,
                                     uint32_t columns, enum snd_sql_order order,
                                     snd_sql_row_fn *row, void *user, struct sonde_error *err)
{
    const struct snd_sql_taker to = { .row = row, .user = user };

    return make_rows(trace, 1u << table, columns, order, &to, err);
}
