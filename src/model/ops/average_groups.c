/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/average_groups.c - which group a range belongs to.
 *
 * By name alone a group is found by indexing an array; with more, by a hash table behind a
 * cache of the latest group of each name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "format/fields.h"
#include "model/ops/averages.h"
#include "model/torch_stacks.h"

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
        snd_average_give_up(a);
        return UINT32_MAX;
    }
    if ((*cache)[id] == 0) {
        if (!format(a, process, id, &text)) {
            snd_average_give_up(a);
            return UINT32_MAX;
        }
        (*cache)[id] = text + 1;
    }
    return (*cache)[id] - 1;
}

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
    struct snd_key key = sequence_key(lane, snd_torch_thread(a->assembly, lane), r->sequence);
    uint32_t       at;
    if (snd_map_get(&a->by_sequence, key, &at)) {
        if (r->start_ns <= a->forwards[at].start_ns)
            a->forwards[at] = (struct snd_average_forward){ r->start_ns, r->stack };
        return;
    }
    if (!snd_grow(&a->forwards, &a->forward_room, a->forward_count, sizeof *a->forwards) ||
        !snd_map_put(&a->by_sequence, key, a->forward_count)) {
        snd_average_give_up(a);
        return;
    }
    a->forwards[a->forward_count++] = (struct snd_average_forward){ r->start_ns, r->stack };
}

/* What runs backward was called from where its forward operator was, a call of a GPU's API from where its was. */
static uint32_t find_stack(const struct sonde_averages *a, const struct snd_lane *lane,
                           const struct snd_range *r)
{
    const struct snd_open_range *owner = r->api != 0 ? snd_torchgpu_owner(lane) : NULL;
    uint32_t                     at;

    if (!r->is_back)
        return owner ? owner->range.stack : r->stack;
    struct snd_key key = sequence_key(lane, r->back_thread, r->back_sequence);
    return snd_map_get(&a->by_sequence, key, &at) ? a->forwards[at].stack : 0;
}

/* ------------------------------------------------------------------- groups */

static const struct snd_average_group no_group = { 0,          SONDE_NONE, SONDE_NONE,
                                                   SONDE_NONE, SONDE_NONE, SONDE_NONE,
                                                   SONDE_NONE, false,      false };

/* Names and threads are fewer than 2^30, so that bits are to be had. */
static struct snd_key make_key(const struct snd_average_group *g)
{
    uint32_t where = g->thread != SONDE_NONE    ? g->thread << 1 | 1
                     : g->process != SONDE_NONE ? g->process << 1
                                                : SONDE_NONE;

    return (struct snd_key){ SND_PAIR(g->name << 2 | (uint32_t)g->on_device << 1 | g->user, where),
                             SND_PAIR(g->shapes, g->stack), SND_PAIR(g->module, g->overload) };
}

static struct snd_average_group make_group(struct sonde_averages *a, const struct snd_lane *lane,
                                           const struct snd_range *r, uint32_t name)
{
    const unsigned            groups = a->options.groups;
    const struct snd_tables  *t = &lane->from->tables;
    struct snd_average_texts *cache = &a->caches[lane->process];
    struct snd_average_group  g = no_group;

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

/* Row number plus one; 0 when memory is out. */
static uint32_t find_group(struct sonde_averages *a, const struct snd_average_group *g)
{
    struct snd_key             key = make_key(g);
    struct snd_average_latest *latest =
        &a->latest[g->name]; /* few names are a person's and an operator's */
    uint32_t row;

    if (latest->row != 0 && memcmp(&latest->key, &key, sizeof key) == 0)
        return latest->row;
    if (snd_map_get(&a->groups, key, &row)) {
        row++;
    } else {
        row = snd_average_add_row(a, g);
        if (row != 0 && !snd_map_put(&a->groups, key, row - 1)) {
            snd_average_give_up(a);
            return 0;
        }
    }
    *latest = (struct snd_average_latest){ key, row };
    return row;
}

/* Row number plus one of a name alone; 0 when memory is out. */
static uint32_t find_name(struct sonde_averages *a, uint32_t name, bool user, bool on_device)
{
    uint32_t *row = &a->by_name[4 * (size_t)name + 2 * on_device + user];

    if (*row == 0) {
        struct snd_average_group g = no_group;
        g.name = name;
        g.user = user;
        g.on_device = on_device;
        *row = snd_average_add_row(a, &g);
    }
    return *row;
}

struct snd_average_row *snd_average_group_row(struct sonde_averages          *a,
                                              const struct snd_average_group *g)
{
    uint32_t row = a->options.groups != 0 ? find_group(a, g)
                                          : find_name(a, g->name, g->user, g->on_device);

    return row != 0 ? &a->rows[row - 1] : NULL;
}

struct snd_average_row *snd_average_find_row(struct sonde_averages *a, const struct snd_lane *lane,
                                             const struct snd_range *r, uint32_t name)
{
    uint32_t row;

    if (a->options.groups != 0) {
        struct snd_average_group g = make_group(a, lane, r, name);
        row = find_group(a, &g);
    } else {
        row = find_name(a, name, r->scope == SONDE_SCOPE_USER, false);
    }
    return row != 0 ? &a->rows[row - 1] : NULL;
}

struct snd_average_row *snd_average_find_gpu_row(struct sonde_averages *a, uint32_t process,
                                                 uint32_t thread, uint32_t name, bool user)
{
    struct snd_average_group g = no_group;

    g.name = name;
    g.user = user;
    g.on_device = true;
    if (a->options.groups & (SONDE_GROUP_PROCESS | SONDE_GROUP_THREAD))
        g.process = process;
    if (a->options.groups & SONDE_GROUP_THREAD && thread != SND_NO_LAUNCH)
        g.thread = thread;
    return snd_average_group_row(a, &g);
}

bool snd_average_begin_groups(struct sonde_averages *a)
{
    a->name_count = a->trace->names.count + SND_AVERAGE_NAMES;
    a->caches = calloc((size_t)a->trace->process_count + 1, sizeof *a->caches);
    a->shown = calloc(1, sizeof *a->shown);
    if (a->options.groups != 0)
        a->latest = calloc(a->name_count, sizeof *a->latest);
    else
        a->by_name = calloc(4 * (size_t)a->name_count, sizeof *a->by_name);
    return a->caches && a->shown && (a->latest || a->by_name);
}

void snd_average_end_groups(struct sonde_averages *a)
{
    for (uint32_t i = 0; a->caches && i < a->trace->process_count; i++) {
        free(a->caches[i].shapes);
        free(a->caches[i].stacks);
    }
    free(a->caches);
    free(a->by_name);
    free(a->latest);
    free(a->forwards);
    free(a->kinds);
    snd_map_release(&a->by_sequence);
    snd_map_release(&a->groups);
    if (a->tracks_live)
        snd_live_release(&a->live);
    a->caches = NULL;
    a->by_name = NULL;
    a->latest = NULL;
    a->forwards = NULL;
    a->kinds = NULL;
}

void snd_average_release_rows(struct sonde_averages *a)
{
    snd_average_end_groups(a);
    snd_texts_release(&a->texts);
    free(a->rows);
    free(a->mores);
    free(a->group_list);
    if (a->shown) {
        snd_arena_release(&a->shown->arena);
        free(a->shown->rows);
        free(a->shown);
    }
}

/* torch's list is by start, then the longer one first. */
bool snd_average_is_first(const struct snd_average_row *row, int64_t first_ns, int64_t first_end_ns,
                          uint32_t thread, uint64_t serial)
{
    if (first_ns != row->first_ns)
        return first_ns < row->first_ns;
    if (first_end_ns != row->first_end_ns)
        return first_end_ns > row->first_end_ns;
    if (thread != row->first_thread)
        return thread < row->first_thread;
    return serial < row->first_serial;
}

static void note_first(struct snd_average_row *row, const struct snd_lane *lane,
                       const struct snd_range *r, bool is_top)
{
    row->first_ns = r->start_ns;
    row->first_end_ns = snd_add(r->start_ns, r->total_ns);
    row->first_thread = lane->thread;
    row->first_serial = r->serial;
    row->scope = r->scope;
    row->is_async = r->is_async;
    row->has_parent = !is_top;
}

/* Most ranges have times alone. */
static bool has_more(const struct snd_range *r)
{
    return (r->cpu_bytes | r->child_cpu_bytes | r->device_bytes | r->child_device_bytes |
            r->launched_ns | r->launched_inside_ns) != 0 ||
           r->flops != 0 || r->macs != 0 || r->moved_bytes != 0;
}

void snd_average_count(struct sonde_averages *a, const struct snd_lane *lane,
                       const struct snd_range *r, bool is_top)
{
    if (a->only_beside) {
        if (!a->beside->row(a->beside->user, 0, lane, r))
            a->assembly->visitor.stop = true;
        return;
    }
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
    struct snd_average_row *row = snd_average_find_row(a, lane, r,
                                                       snd_average_canonical(a, r->name));
    if (!row)
        return;
    if (row->count == 0 || r->total_ns < row->min_ns)
        row->min_ns = r->total_ns;
    if (row->count == 0 || r->total_ns > row->max_ns)
        row->max_ns = r->total_ns;
    if (snd_average_is_first(row, r->start_ns, snd_add(r->start_ns, r->total_ns), lane->thread,
                             r->serial))
        note_first(row, lane, r, is_top);
    if (a->beside && !a->beside->row(a->beside->user, snd_average_id(a, row), lane, r))
        a->assembly->visitor.stop = true;
    row->count++;
    row->total_ns = snd_add(row->total_ns, r->total_ns);
    row->self_ns = snd_add(row->self_ns, self_ns);
    if (!has_more(r))
        return;
    const struct snd_average_more more = {
        .cpu_bytes = r->cpu_bytes,
        .self_cpu_bytes = snd_sub(r->cpu_bytes, r->child_cpu_bytes),
        .device_bytes = r->device_bytes,
        .self_device_bytes = snd_sub(r->device_bytes, r->child_device_bytes),
        .device_ns = r->is_async ? 0 : snd_add(r->launched_ns, r->launched_inside_ns),
        .self_device_ns = r->is_async ? 0 : r->launched_ns,
        .flops = r->flops,
        .macs = r->macs,
        .moved_bytes = r->moved_bytes,
    };
    if (!snd_average_add_more(a, row, &more))
        snd_average_give_up(a);
}

/* -------------------------------------------------------------------- leaves */

/* Else the group of a range is not that of its call record or name, or more than its times is asked. */
bool snd_average_takes_leaves(const struct sonde_averages *a)
{
    return !a->options.top_level && a->gpu.overhead_count == 0 &&
           !(a->options.groups & (SONDE_GROUP_THREAD | SONDE_GROUP_STACK)) &&
           (!a->beside || !a->beside->row || a->only_beside);
}

uint32_t snd_average_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    struct sonde_averages *a = user;

    (void)lane;
    if (!snd_grow(&a->kinds, &a->kind_room, a->kind_count, sizeof *a->kinds))
        return UINT32_MAX;
    a->kinds[a->kind_count] = (struct snd_average_kind){ .flops = shared->flops,
                                                         .macs = shared->macs,
                                                         .moved_bytes = shared->moved_bytes,
                                                         .name = shared->name,
                                                         .shapes = shared->shapes,
                                                         .stack = shared->stack,
                                                         .module = shared->module,
                                                         .overload = shared->overload,
                                                         .scope = shared->scope,
                                                         .is_op = shared->is_op,
                                                         .has_more = has_more(shared) };
    return a->kind_count++;
}

/* The range that the leaf is. */
static struct snd_range make_range(const struct snd_average_kind *kind, const struct snd_lane *lane,
                                   const struct snd_leaf *leaf)
{
    return (struct snd_range){ .start_ns = leaf->start_ns,
                               .total_ns = snd_sub(leaf->end_ns, leaf->start_ns),
                               .flops = kind->flops,
                               .macs = kind->macs,
                               .moved_bytes = kind->moved_bytes,
                               .serial = lane->begins,
                               .name = kind->name,
                               .shapes = kind->shapes,
                               .stack = kind->stack,
                               .module = kind->module,
                               .overload = kind->overload,
                               .node = lane->depth,
                               .scope = kind->scope,
                               .is_op = kind->is_op };
}

/* The first of its kind, or one that may be the first of its row. */
static __attribute__((noinline)) void count_leaf(struct sonde_averages *a, uint32_t number,
                                                 const struct snd_lane *lane,
                                                 const struct snd_leaf *leaf, bool is_top)
{
    struct snd_average_kind *kind = &a->kinds[number];
    struct snd_range         r = make_range(kind, lane, leaf);

    snd_average_count(a, lane, &r, is_top);
    struct snd_average_row *row = snd_average_find_row(a, lane, &r,
                                                       snd_average_canonical(a, r.name));
    kind->row = row ? (uint32_t)(row - a->rows) + 1 : 0;
}

/* What on_open() and on_close() of averages.c come to, where nothing is inside. */
void snd_average_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                      const struct snd_known_leaf *known, uint32_t number,
                      const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct sonde_averages         *a = user;
    const struct snd_average_kind *kind = &a->kinds[number];

    (void)known, (void)above;
    if (parent && parent->holds) { /* not an only child after all */
        snd_average_count(a, lane, &parent->held, false);
        parent->holds = false;
    }
    if (parent && kind->is_op && parent->range.is_op && parent->range.children == 1 &&
        snd_average_canonical(a, parent->range.name) == snd_average_canonical(a, kind->name)) {
        parent->held = make_range(kind, lane, leaf);
        parent->holds = true;
        return;
    }
    if (a->only_beside) {
        struct snd_range r = make_range(kind, lane, leaf);
        snd_average_count(a, lane, &r, parent == NULL);
        return;
    }
    if (kind->row == 0 || leaf->start_ns <= a->rows[kind->row - 1].first_ns) {
        count_leaf(a, number, lane, leaf, parent == NULL);
        return;
    }
    struct snd_average_row *row = &a->rows[kind->row - 1];
    int64_t                 ns = snd_sub(leaf->end_ns, leaf->start_ns);
    a->totals.self_ns = snd_add(a->totals.self_ns, ns);
    row->min_ns = ns < row->min_ns ? ns : row->min_ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->count++;
    row->total_ns = snd_add(row->total_ns, ns);
    row->self_ns = snd_add(row->self_ns, ns);
    if (kind->has_more &&
        !snd_average_add_more(a, row,
                              &(struct snd_average_more){ .flops = kind->flops,
                                                          .macs = kind->macs,
                                                          .moved_bytes = kind->moved_bytes }))
        snd_average_give_up(a);
}
