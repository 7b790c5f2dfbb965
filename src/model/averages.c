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

#include "base/map.h"
#include "format/fields.h"
#include "model/assembly.h"

#define STACK_DEPTH_DEFAULT 5u
#define STACK_DEPTH_MAX 256u
#define STEP_PREFIX "ProfilerStep#"

/* Names of our own, numbered after those of the trace. */
enum own_name { OWN_STEP, OWN_MEMORY, OWN_COUNT };
static const struct sonde_text own_names[OWN_COUNT] = {
    [OWN_STEP] = { "ProfilerStep*", 13 },
    [OWN_MEMORY] = { "[memory]", 8 },
};

struct row {
    struct sonde_average shown;
    int64_t              first_ns; /* start of its earliest range: rows are listed by it */
    uint32_t             name, order;
};

struct latest {
    struct snd_key key;
    uint32_t       row; /* plus one */
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
    struct snd_map      live;   /* sizes of what is allocated: only if frees do not tell theirs */
    uint64_t           *live_bytes;
    uint32_t            live_room, live_count;
    uint32_t           *live_free;
    uint32_t            live_free_room, live_free_count;
    bool                tracks_live, needs_live;
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
    size_t length = sonde_trace_shapes(a->trace, process, id, small, sizeof small);

    if (length >= sizeof small) {
        buffer = malloc(length + 1);
        if (!buffer)
            return false;
        sonde_trace_shapes(a->trace, process, id, buffer, length + 1);
    }
    bool added = snd_texts_add(&a->texts, buffer, length, text);
    if (buffer != small)
        free(buffer);
    return added;
}

struct growing {
    char    *bytes;
    uint32_t length, room;
    bool     failed;
};

static void append(struct growing *g, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length && !g->failed; i++) {
        g->failed = !snd_grow(&g->bytes, &g->room, g->length, 1);
        if (!g->failed)
            g->bytes[g->length++] = bytes[i];
    }
}

/* "file(line): function", innermost first, one a line: torch's notation. */
static bool format_stack(struct sonde_averages *a, uint32_t process, uint32_t id, uint32_t *text)
{
    struct sonde_frame frames[STACK_DEPTH_MAX];
    struct growing     g = { NULL, 0, 0, false };
    size_t count = snd_stack_frames(a->trace, process, id, frames, a->options.stack_depth,
                                    a->options.stack_depth);

    for (size_t i = 0; i < count; i++) {
        char line[32];
        if (i > 0)
            append(&g, "\n", 1);
        if (frames[i].file.length > 0) {
            append(&g, frames[i].file.bytes, frames[i].file.length);
            append(&g, line, (size_t)snprintf(line, sizeof line, "(%u): ", frames[i].line));
        }
        append(&g, frames[i].function.bytes, frames[i].function.length);
    }
    bool added = !g.failed && snd_texts_add(&a->texts, g.bytes ? g.bytes : "", g.length, text);
    free(g.bytes);
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

/* ------------------------------------------------------------------- groups */

struct group {
    uint32_t name, process, thread, shapes, stack, module;
};

static struct snd_key make_key(const struct group *g)
{
    return (struct snd_key){ SND_PAIR(g->name, g->process), SND_PAIR(g->shapes, g->stack),
                             SND_PAIR(g->module, g->thread) };
}

static struct group make_group(struct sonde_averages *a, const struct snd_lane *lane,
                               const struct snd_range *r, uint32_t name)
{
    const unsigned           groups = a->options.groups;
    const struct snd_tables *t = &lane->from->tables;
    struct text_cache       *cache = &a->caches[lane->process];
    struct group g = { name, SONDE_NONE, SONDE_NONE, SONDE_NONE, SONDE_NONE, SONDE_NONE };

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
        g.stack = find_text(a, lane->process, r->stack, &cache->stacks, t->stack_count,
                            format_stack);
    if (groups & SONDE_GROUP_MODULE && r->module != 0)
        g.module = snd_name_of(lane->from, r->module);
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
    *row = (struct row){ .first_ns = INT64_MAX, .name = g->name, .order = a->row_count };
    row->shown.name = g->name < a->trace->names.count ? text_of(&a->trace->names, g->name)
                                                      : own_names[g->name - a->trace->names.count];
    row->shown.process = g->process;
    row->shown.thread = g->thread;
    row->shown.module = text_of(&a->trace->names, g->module);
    row->shown.shapes = text_of(&a->texts, g->shapes);
    row->shown.stack = text_of(&a->texts, g->stack);
    return a->row_count;
}

/* Row number plus one; 0 when memory is out. */
static uint32_t find_group(struct sonde_averages *a, const struct snd_lane *lane,
                           const struct snd_range *r, uint32_t name)
{
    struct group   g = make_group(a, lane, r, name);
    struct snd_key key = make_key(&g);
    struct latest *latest = &a->latest[name];
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
        row = a->by_name[name];
        if (row == 0) {
            const struct group g = { name,       SONDE_NONE, SONDE_NONE,
                                     SONDE_NONE, SONDE_NONE, SONDE_NONE };
            row = a->by_name[name] = add_row(a, &g);
        }
    }
    return row != 0 ? &a->rows[row - 1] : NULL;
}

/* ------------------------------------------------------------------- ranges */

static void count_range(struct sonde_averages *a, const struct snd_lane *lane,
                        const struct snd_range *r, bool is_top)
{
    int64_t self_ns = snd_sub(r->total_ns, r->child_ns);

    a->totals.self_ns = snd_add(a->totals.self_ns, self_ns);
    a->totals.has_shapes |= r->shapes != 0;
    a->totals.has_stacks |= r->stack != 0;
    a->totals.has_flops |= r->flops > 0;
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
    if (r->start_ns < row->first_ns)
        row->first_ns = r->start_ns;
    s->count++;
    s->total_ns = snd_add(s->total_ns, r->total_ns);
    s->self_ns = snd_add(s->self_ns, self_ns);
    s->cpu_bytes = snd_add(s->cpu_bytes, r->cpu_bytes);
    s->self_cpu_bytes = snd_add(s->self_cpu_bytes, snd_sub(r->cpu_bytes, r->child_cpu_bytes));
    s->device_bytes = snd_add(s->device_bytes, r->device_bytes);
    s->self_device_bytes = snd_add(s->self_device_bytes,
                                   snd_sub(r->device_bytes, r->child_device_bytes));
    s->flops += r->flops;
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
static void fold(struct snd_range *into, const struct snd_range *child)
{
    into->child_ns = child->child_ns;
    into->child_cpu_bytes = child->child_cpu_bytes;
    into->child_device_bytes = child->child_device_bytes;
    if (into->flops <= 0)
        into->flops = child->flops;
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
    if (range->holds)
        fold(&range->range, &range->held);
    if (parent && parent->range.name == range->range.name && parent->range.children == 1) {
        parent->held = range->range;
        parent->holds = true;
        return;
    }
    count_range(user, lane, &range->range, parent == NULL);
}

/* ------------------------------------------------------------------- memory */

/* Remembers sizes, for frees that do not tell theirs. */
static void track(struct sonde_averages *a, const struct snd_lane *lane, const uint64_t *words,
                  int64_t *bytes)
{
    struct snd_key key = { SND_PAIR(SND_LOW(words[1]), lane->process), words[2], 0 };
    uint32_t       slot;

    if (SND_EVENT_KIND(words[0]) == SND_EV_FREE) {
        if (!snd_map_get(&a->live, key, &slot))
            return;
        if (*bytes == 0)
            *bytes = -(int64_t)a->live_bytes[slot];
        snd_map_remove(&a->live, key);
        a->live_free[a->live_free_count++] = slot;
        return;
    }
    if (snd_map_get(&a->live, key, &slot)) {
        a->live_bytes[slot] = (uint64_t)*bytes;
        return;
    }
    if (a->live_free_count > 0) {
        slot = a->live_free[--a->live_free_count];
    } else {
        slot = a->live_count;
        /* Both grow alike, so that giving a slot back never needs memory. */
        if (!snd_grow(&a->live_bytes, &a->live_room, slot, sizeof *a->live_bytes) ||
            !snd_grow(&a->live_free, &a->live_free_room, slot, sizeof *a->live_free)) {
            give_up(a);
            return;
        }
        a->live_count++;
    }
    a->live_bytes[slot] = (uint64_t)*bytes;
    if (!snd_map_put(&a->live, key, slot))
        give_up(a);
}

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
    if (ns < row->first_ns)
        row->first_ns = ns;
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
    int64_t                told = snd_net_bytes(words), bytes = told;

    a->totals.has_memory = true;
    a->totals.has_device_memory |= !is_cpu;
    if (a->tracks_live) {
        track(a, lane, words, &bytes);
    } else if (words[3] == 0 && SND_EVENT_KIND(words[0]) == SND_EV_FREE && words[2] != 0) {
        a->needs_live = true; /* start over, with the sizes */
        a->assembly.visitor.stop = true;
        return;
    }
    if (!innermost) {
        count_unclaimed(a, lane, ns, bytes, is_cpu);
    } else if (bytes != told) { /* the assembly has added what the event told */
        int64_t *sum = is_cpu ? &innermost->range.cpu_bytes : &innermost->range.device_bytes;
        *sum = snd_add(*sum, bytes);
    }
}

/* ---------------------------------------------------------------- the whole */

static bool is_step(struct snd_text name)
{
    size_t prefix = sizeof STEP_PREFIX - 1;

    if (name.length <= prefix || memcmp(name.bytes, STEP_PREFIX, prefix) != 0)
        return false;
    for (size_t i = prefix; i < name.length; i++)
        if (name.bytes[i] < '0' || name.bytes[i] > '9')
            return false;
    return true;
}

static bool prepare(struct sonde_averages *a)
{
    uint32_t count = a->trace->names.count;

    a->name_count = count + OWN_COUNT;
    a->by_name = calloc(a->name_count, sizeof *a->by_name);
    a->canonical = calloc(a->name_count, sizeof *a->canonical);
    a->caches = calloc((size_t)a->trace->process_count + 1, sizeof *a->caches);
    if (a->options.groups != 0)
        a->latest = calloc(a->name_count, sizeof *a->latest);
    if (!a->by_name || !a->canonical || !a->caches || (a->options.groups != 0 && !a->latest))
        return false;
    for (uint32_t i = 0; i < count; i++)
        a->canonical[i] = is_step(a->trace->names.items[i]) ? count + OWN_STEP : i;
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
    free(a->live_bytes);
    free(a->live_free);
    snd_map_release(&a->groups);
    snd_map_release(&a->live);
    snd_texts_release(&a->texts);
    free(a->rows);
}

static int compare_rows(const void *x, const void *y)
{
    const struct row *a = x, *b = y;

    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

static enum sonde_status walk(struct sonde_averages *a, struct sonde_error *err)
{
    const struct snd_consumer consumer = { a, on_open, on_close, on_memory, NULL };

    if (!prepare(a))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the averages");
    enum sonde_status status = snd_assemble(&a->assembly, a->trace,
                                            a->tracks_live ? SONDE_BY_TIME : SONDE_BY_THREAD,
                                            &consumer, err);
    a->totals.events = a->assembly.stats.walk.events;
    a->totals.ranges = a->assembly.stats.ranges;
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
