/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/averages.c - one row for each group of ranges, in one pass, keeping no event.
 *
 * By name alone a group is found by indexing an array; with more, by a hash table behind a
 * cache of the latest group of each name.
 *
 * A range that is the only child of one of the same name is folded into it, as torch.profiler
 * does. Whether it stays the only one is known when the next child begins or the parent ends:
 * until then its parent holds it (struct snd_open_range).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "format/fields.h"
#include "model/assembly.h"
#include "model/stacks.h"

#define STACK_DEPTH_DEFAULT 5u
#define STACK_DEPTH_MAX 256u

/* Names of our own, numbered after those of the trace. */
enum own_name { OWN_STEP, OWN_MEMORY, OWN_COUNT };
static const struct sonde_text own_names[OWN_COUNT] = {
    [OWN_STEP] = { "ProfilerStep*", 13 },
    [OWN_MEMORY] = { "[memory]", 8 },
};

struct row {
    struct sonde_average shown;
    int64_t              first_ns;     /* start of its earliest range: rows are listed by it, ... */
    int64_t              first_end_ns; /* ... of two that begin together the longer one first */
    uint64_t             first_serial;
    uint32_t             first_thread;
};

struct latest {
    struct snd_key key;
    uint32_t       row; /* plus one */
};

/* Where the forward operator of a sequence number was called from. */
struct forward {
    int64_t  start_ns;
    uint32_t stack;
};

/* Text ids of a process's shapes or stacks, plus one; made when first needed. */
struct text_cache {
    uint32_t *shapes, *stacks;
};

struct sonde_averages {
    struct sonde_trace           *trace;
    struct sonde_averages_options options;
    struct sonde_averages_totals  totals;
    struct row                   *rows;
    uint32_t                      row_count, row_room;
    uint32_t           *by_name;   /* row of a name, plus one; when grouped by nothing else */
    uint32_t           *canonical; /* ProfilerStep#7 is ProfilerStep* */
    uint32_t            name_count;
    struct latest      *latest; /* by name, when grouped by more */
    struct snd_map      groups;
    struct snd_texts    texts;  /* shapes and stacks as shown */
    struct text_cache  *caches; /* by process */
    struct snd_live     live;   /* of what is allocated: only if frees do not tell theirs */
    bool                tracks_live, needs_live;
    struct snd_map      by_sequence; /* (process, torch's thread, sequence) to forwards */
    struct forward     *forwards;
    uint32_t            forward_count, forward_room;
    struct snd_assembly assembly;
};

static void give_up(struct sonde_averages *a)
{
    snd_assembly_stop(&a->assembly);
}

/* ------------------------------------------------------ texts of a group */

static bool format_shapes(struct sonde_averages *a, uint32_t process, uint32_t id, uint32_t *text)
{
    char   small[512], *buffer = small;
    size_t length = snd_trace_shapes(a->trace, process, id, false, small, sizeof small);

    if (length >= sizeof small) {
        buffer = malloc(length + 1);
        if (!buffer)
            return false;
        snd_trace_shapes(a->trace, process, id, false, buffer, length + 1);
    }
    bool added = snd_texts_add(&a->texts, buffer, length, text);
    if (buffer != small)
        free(buffer);
    return added;
}

/* "file(line): function", innermost first, one a line: torch's notation. */
static bool format_stack(struct sonde_averages *a, uint32_t process, uint32_t id, uint32_t *text)
{
    struct sonde_buffer lines = { 0 };

    snd_stack_text(a->trace, process, id, a->options.stack_depth, '\n', &lines);
    bool added = !lines.failed &&
                 snd_texts_add(&a->texts, snd_buf_string(&lines), lines.length, text);
    sonde_buffer_release(&lines);
    return added;
}

typedef bool format_fn(struct sonde_averages *a, uint32_t process, uint32_t id, uint32_t *text);

/* The text id of a shapes or stack id; UINT32_MAX for none. */
static uint32_t find_text(struct sonde_averages *a, uint32_t process, uint32_t id, uint32_t **cache,
                          uint32_t count, format_fn *format)
{
    uint32_t text;

    if (id == 0 || id >= count)
        return UINT32_MAX;
    if (!*cache && !(*cache = calloc(count, sizeof **cache))) {
        give_up(a);
        return UINT32_MAX;
    }
    if ((*cache)[id] == 0) {
        if (!format(a, process, id, &text)) {
            give_up(a);
            return UINT32_MAX;
        }
        (*cache)[id] = text + 1;
    }
    return (*cache)[id] - 1;
}

struct group {
    uint32_t name, process, thread, shapes, stack, module, overload;
    bool     user; /* a range that a person named is not an operator of that name */
};

/* ---------------------------------------------------- stacks of backward ranges */

static struct snd_key sequence_key(const struct snd_lane *lane, uint32_t thread, int64_t sequence)
{
    return (struct snd_key){ SND_PAIR(thread, lane->process), (uint64_t)sequence, 0 };
}

/* A forward operator closes before its backward begins; an outer one closes after an inner one. */
static void note_forward(struct sonde_averages *a, const struct snd_lane *lane,
                         const struct snd_range *r)
{
    if (r->sequence < 0 || r->is_back)
        return;
    struct snd_key key = sequence_key(lane, snd_torch_thread(&a->assembly, lane), r->sequence);
    uint32_t       at;
    if (snd_map_get(&a->by_sequence, key, &at)) {
        if (r->start_ns <= a->forwards[at].start_ns)
            a->forwards[at] = (struct forward){ r->start_ns, r->stack };
        return;
    }
    if (!snd_grow(&a->forwards, &a->forward_room, a->forward_count, sizeof *a->forwards) ||
        !snd_map_put(&a->by_sequence, key, a->forward_count)) {
        give_up(a);
        return;
    }
    a->forwards[a->forward_count++] = (struct forward){ r->start_ns, r->stack };
}

/* What runs backward was called from where its forward operator was. */
static uint32_t find_stack(const struct sonde_averages *a, const struct snd_lane *lane,
                           const struct snd_range *r)
{
    uint32_t at;

    if (!r->is_back)
        return r->stack;
    struct snd_key key = sequence_key(lane, r->back_thread, r->back_sequence);
    return snd_map_get(&a->by_sequence, key, &at) ? a->forwards[at].stack : 0;
}

/* ------------------------------------------------------------------- groups */

static const struct group no_group = { 0,          SONDE_NONE, SONDE_NONE, SONDE_NONE,
                                       SONDE_NONE, SONDE_NONE, SONDE_NONE, false };

/* Names and threads are fewer than 2^31, so that one bit more is to be had. */
static struct snd_key make_key(const struct group *g)
{
    uint32_t where = g->thread != SONDE_NONE    ? g->thread << 1 | 1
                     : g->process != SONDE_NONE ? g->process << 1
                                                : SONDE_NONE;

    return (struct snd_key){ SND_PAIR(g->name << 1 | g->user, where), SND_PAIR(g->shapes, g->stack),
                             SND_PAIR(g->module, g->overload) };
}

static struct group make_group(struct sonde_averages *a, const struct snd_lane *lane,
                               const struct snd_range *r, uint32_t name)
{
    const unsigned           groups = a->options.groups;
    const struct snd_tables *t = &lane->from->tables;
    struct text_cache       *cache = &a->caches[lane->process];
    struct group             g = no_group;

    g.name = name;
    g.user = r->scope == SONDE_SCOPE_USER;
    if (groups & SONDE_GROUP_PROCESS)
        g.process = lane->process;
    if (groups & SONDE_GROUP_THREAD) {
        g.process = lane->process;
        g.thread = lane->thread;
    }
    if (groups & SONDE_GROUP_SHAPE)
        g.shapes = find_text(a, lane->process, r->shapes, &cache->shapes, t->shape_count,
                             format_shapes);
    if (groups & SONDE_GROUP_STACK)
        g.stack = find_text(a, lane->process, find_stack(a, lane, r), &cache->stacks,
                            t->stack_count, format_stack);
    if (groups & SONDE_GROUP_MODULE && r->module != 0)
        g.module = snd_name_of(lane->from, r->module);
    if (groups & SONDE_GROUP_OVERLOAD && r->overload != 0)
        g.overload = snd_name_of(lane->from, r->overload);
    return g;
}

static struct sonde_text text_of(const struct snd_texts *texts, uint32_t id)
{
    if (id == UINT32_MAX)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ texts->items[id].bytes, texts->items[id].length };
}

static uint32_t add_row(struct sonde_averages *a, const struct group *g)
{
    if (!snd_grow(&a->rows, &a->row_room, a->row_count, sizeof *a->rows)) {
        give_up(a);
        return 0;
    }
    struct row *row = &a->rows[a->row_count++];
    *row = (struct row){ .first_ns = INT64_MAX };
    row->shown.name = g->name < a->trace->names.count ? text_of(&a->trace->names, g->name)
                                                      : own_names[g->name - a->trace->names.count];
    row->shown.process = g->process;
    row->shown.thread = g->thread;
    row->shown.module = text_of(&a->trace->names, g->module);
    row->shown.shapes = text_of(&a->texts, g->shapes);
    row->shown.stack = text_of(&a->texts, g->stack);
    row->shown.overload = text_of(&a->trace->names, g->overload);
    row->shown.is_user_annotation = g->user;
    return a->row_count;
}

/* Row number plus one; 0 when memory is out. */
static uint32_t find_group(struct sonde_averages *a, const struct snd_lane *lane,
                           const struct snd_range *r, uint32_t name)
{
    struct group   g = make_group(a, lane, r, name);
    struct snd_key key = make_key(&g);
    struct latest *latest = &a->latest[name]; /* few names are a person's and an operator's */
    uint32_t       row;

    if (latest->row != 0 && memcmp(&latest->key, &key, sizeof key) == 0)
        return latest->row;
    if (snd_map_get(&a->groups, key, &row)) {
        row++;
    } else {
        row = add_row(a, &g);
        if (row != 0 && !snd_map_put(&a->groups, key, row - 1)) {
            give_up(a);
            return 0;
        }
    }
    *latest = (struct latest){ key, row };
    return row;
}

static struct row *find_row(struct sonde_averages *a, const struct snd_lane *lane,
                            const struct snd_range *r, uint32_t name)
{
    uint32_t row;

    if (a->options.groups != 0) {
        row = find_group(a, lane, r, name);
    } else {
        bool user = r->scope == SONDE_SCOPE_USER;
        row = a->by_name[2 * (size_t)name + user];
        if (row == 0) {
            struct group g = no_group;
            g.name = name;
            g.user = user;
            row = a->by_name[2 * (size_t)name + user] = add_row(a, &g);
        }
    }
    return row != 0 ? &a->rows[row - 1] : NULL;
}

/* ------------------------------------------------------------------- ranges */

/* torch's list is by start, then the longer one first. */
static bool is_first(const struct row *row, const struct snd_lane *lane, const struct snd_range *r)
{
    int64_t end_ns = snd_add(r->start_ns, r->total_ns);

    if (r->start_ns != row->first_ns)
        return r->start_ns < row->first_ns;
    if (end_ns != row->first_end_ns)
        return end_ns > row->first_end_ns;
    if (lane->thread != row->first_thread)
        return lane->thread < row->first_thread;
    return r->serial < row->first_serial;
}

static void note_first(struct row *row, const struct snd_lane *lane, const struct snd_range *r,
                       bool is_top)
{
    row->first_ns = r->start_ns;
    row->first_end_ns = snd_add(r->start_ns, r->total_ns);
    row->first_thread = lane->thread;
    row->first_serial = r->serial;
    row->shown.scope = r->scope;
    row->shown.is_async = r->is_async;
    row->shown.has_parent = !is_top;
}

static void count_range(struct sonde_averages *a, const struct snd_lane *lane,
                        const struct snd_range *r, bool is_top)
{
    int64_t self_ns = snd_sub(r->total_ns, r->child_ns);

    a->totals.self_ns = snd_add(a->totals.self_ns, self_ns);
    a->totals.has_shapes |= r->shapes != 0;
    a->totals.has_stacks |= r->stack != 0;
    a->totals.has_flops |= r->flops > 0;
    a->totals.has_overloads |= r->overload != 0;
    if (a->options.groups & SONDE_GROUP_STACK)
        note_forward(a, lane, r);
    if (a->options.top_level && !is_top)
        return;
    struct row *row = find_row(a, lane, r, a->canonical[r->name]);
    if (!row)
        return;
    struct sonde_average *s = &row->shown;
    if (s->count == 0 || r->total_ns < s->min_ns)
        s->min_ns = r->total_ns;
    if (s->count == 0 || r->total_ns > s->max_ns)
        s->max_ns = r->total_ns;
    if (is_first(row, lane, r))
        note_first(row, lane, r, is_top);
    s->count++;
    s->total_ns = snd_add(s->total_ns, r->total_ns);
    s->self_ns = snd_add(s->self_ns, self_ns);
    s->cpu_bytes = snd_add(s->cpu_bytes, r->cpu_bytes);
    s->self_cpu_bytes = snd_add(s->self_cpu_bytes, snd_sub(r->cpu_bytes, r->child_cpu_bytes));
    s->device_bytes = snd_add(s->device_bytes, r->device_bytes);
    s->self_device_bytes = snd_add(s->self_device_bytes,
                                   snd_sub(r->device_bytes, r->child_device_bytes));
    s->flops += r->flops;
    s->macs += r->macs;
    s->moved_bytes += r->moved_bytes;
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    (void)range;
    if (parent && parent->holds) { /* not an only child after all */
        count_range(user, lane, &parent->held, false);
        parent->holds = false;
    }
}

/* Takes the place of the only child: its children become the range's own. */
static void fold(struct snd_range *into, const struct snd_range *child, bool is_torch)
{
    into->child_ns = child->child_ns;
    into->child_cpu_bytes = child->child_cpu_bytes;
    into->child_device_bytes = child->child_device_bytes;
    if (into->flops <= 0 && !is_torch) {
        into->flops = child->flops;
        into->macs = child->macs;
        into->moved_bytes = child->moved_bytes;
    }
    if (into->shapes == 0)
        into->shapes = child->shapes;
    if (into->stack == 0)
        into->stack = child->stack;
    if (into->module == 0)
        into->module = child->module;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_averages *a = user;

    if (range->holds && range->range.is_async)
        count_range(a, lane, &range->held, true); /* it has no children */
    else if (range->holds)
        fold(&range->range, &range->held, a->options.flops == SONDE_FLOPS_TORCH);
    if (parent && parent->range.children == 1 && snd_range_folds(&parent->range, &range->range) &&
        a->canonical[parent->range.name] == a->canonical[range->range.name]) {
        parent->held = range->range;
        parent->holds = true;
        return;
    }
    count_range(a, lane, &range->range, parent == NULL);
}

/* ------------------------------------------------------------------- memory */

/* Memory that belongs to no range has a row of its own, as torch's unclaimed records. */
static void count_unclaimed(struct sonde_averages *a, struct snd_lane *lane, int64_t ns,
                            int64_t bytes, bool is_cpu)
{
    const struct snd_range none = { 0 };
    struct row            *row = find_row(a, lane, &none, a->trace->names.count + OWN_MEMORY);

    if (!row)
        return;
    struct sonde_average *s = &row->shown;
    s->count++;
    if (ns < row->first_ns) {
        row->first_ns = row->first_end_ns = ns;
        row->first_thread = lane->thread;
    }
    int64_t *total = is_cpu ? &s->cpu_bytes : &s->device_bytes;
    int64_t *self = is_cpu ? &s->self_cpu_bytes : &s->self_device_bytes;
    *total = snd_add(*total, bytes);
    *self = snd_add(*self, bytes);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_averages *a = user;
    bool                   is_cpu = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0;
    int64_t                bytes = snd_net_bytes(words);

    a->totals.has_memory = true;
    a->totals.has_device_memory |= !is_cpu;
    if (a->tracks_live) {
        struct snd_live_change change = snd_live_event(&a->live, lane->process, words);
        if (!change.known)
            return;
        bytes = change.counted;
        if (a->live.failed)
            give_up(a);
    } else if (words[3] == 0 && SND_EVENT_KIND(words[0]) == SND_EV_FREE && words[2] != 0) {
        a->needs_live = true; /* start over, with the sizes */
        a->assembly.visitor.stop = true;
        return;
    }
    if (!innermost)
        count_unclaimed(a, lane, ns, bytes, is_cpu);
    else
        snd_range_memory(&innermost->range, words, bytes);
}

/* ---------------------------------------------------------------- the whole */

static bool prepare(struct sonde_averages *a)
{
    uint32_t count = a->trace->names.count;

    a->name_count = count + OWN_COUNT;
    a->by_name = calloc(2 * (size_t)a->name_count, sizeof *a->by_name);
    a->canonical = calloc(a->name_count, sizeof *a->canonical);
    a->caches = calloc((size_t)a->trace->process_count + 1, sizeof *a->caches);
    if (a->options.groups != 0)
        a->latest = calloc(a->name_count, sizeof *a->latest);
    if (!a->by_name || !a->canonical || !a->caches || (a->options.groups != 0 && !a->latest))
        return false;
    for (uint32_t i = 0; i < count; i++)
        a->canonical[i] = snd_name_judge(a->trace->names.items[i]) & SND_NAME_STEP
                              ? count + OWN_STEP
                              : i;
    return true;
}

static void clear(struct sonde_averages *a)
{
    for (uint32_t i = 0; a->caches && i < a->trace->process_count; i++) {
        free(a->caches[i].shapes);
        free(a->caches[i].stacks);
    }
    free(a->caches);
    free(a->by_name);
    free(a->canonical);
    free(a->latest);
    free(a->forwards);
    snd_map_release(&a->by_sequence);
    snd_map_release(&a->groups);
    snd_live_release(&a->live);
    snd_texts_release(&a->texts);
    free(a->rows);
}

static int compare_rows(const void *x, const void *y)
{
    const struct row *a = x, *b = y;

    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    if (a->first_end_ns != b->first_end_ns)
        return a->first_end_ns > b->first_end_ns ? -1 : 1;
    if (a->first_thread != b->first_thread)
        return a->first_thread < b->first_thread ? -1 : 1;
    return (a->first_serial > b->first_serial) - (a->first_serial < b->first_serial);
}

static enum sonde_status walk(struct sonde_averages *a, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = a,
                                           .flops = a->options.flops,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory };
    /* A free may be of what another thread took, a backward range of another thread's forward. */
    bool by_time = a->tracks_live || (a->options.groups & SONDE_GROUP_STACK);

    if (!prepare(a))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the averages");
    enum sonde_status status = snd_assemble(&a->assembly, a->trace,
                                            by_time ? SONDE_BY_TIME : SONDE_BY_THREAD, &consumer,
                                            err);
    a->totals.events = a->assembly.stats.walk.events;
    a->totals.ranges = a->assembly.stats.ranges;
    a->totals.unmatched_frees = a->live.unmatched;
    snd_assembly_release(&a->assembly);
    return status;
}

enum sonde_status sonde_averages_new(struct sonde_trace                  *trace,
                                     const struct sonde_averages_options *options,
                                     struct sonde_averages **out, struct sonde_error *err)
{
    static const struct sonde_averages_options by_name;
    struct sonde_averages fresh = { .trace = trace, .options = options ? *options : by_name };

    *out = NULL;
    if (fresh.options.stack_depth == 0)
        fresh.options.stack_depth = STACK_DEPTH_DEFAULT;
    if (fresh.options.stack_depth > STACK_DEPTH_MAX)
        fresh.options.stack_depth = STACK_DEPTH_MAX;
    struct sonde_averages *a = malloc(sizeof *a);
    if (!a)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the averages");
    enum sonde_status status;
    for (;;) { /* what the walk meets may ask for another: at most twice */
        bool keyed = trace->is_keyed;
        *a = fresh;
        status = walk(a, err);
        if (status != SONDE_OK || (!a->needs_live && trace->is_keyed == keyed))
            break;
        fresh.tracks_live |= a->needs_live;
        clear(a);
    }
    if (status != SONDE_OK) {
        sonde_averages_free(a);
        return status;
    }
    if (a->row_count > 0)
        qsort(a->rows, a->row_count, sizeof *a->rows, compare_rows);
    *out = a;
    return SONDE_OK;
}

void sonde_averages_free(struct sonde_averages *averages)
{
    if (!averages)
        return;
    clear(averages);
    free(averages);
}

size_t sonde_averages_count(const struct sonde_averages *averages)
{
    return averages->row_count;
}

const struct sonde_average *sonde_averages_row(const struct sonde_averages *averages, size_t index)
{
    return index < averages->row_count ? &averages->rows[index].shown : NULL;
}

const struct sonde_averages_totals *sonde_averages_totals(const struct sonde_averages *averages)
{
    return &averages->totals;
}
