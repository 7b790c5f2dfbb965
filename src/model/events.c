/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/events.c - every range of a trace, as torch.profiler's events() lists them.
 *
 * One walk by time appends a range when it opens and completes it when it closes. Then only
 * children of the same name are folded, the list is put into torch's order, and each field
 * becomes a column.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/map.h"
#include "format/fields.h"
#include "model/assembly.h"
#include "model/stacks.h"

#define EVENTS_MAX ((uint32_t)INT32_MAX - 1)
#define NOWHERE UINT32_MAX /* -1 in the column */

/* Names of our own, numbered after those of the trace. */
enum own_name { OWN_STEP, OWN_MEMORY, OWN_COUNT };
static const struct sonde_text own_names[OWN_COUNT] = {
    [OWN_STEP] = { "ProfilerStep*", 13 },
    [OWN_MEMORY] = { "[memory]", 8 },
};

/* What few ranges have: memory, FLOPs, a forward operator. */
struct extra {
    int64_t  cpu_bytes, device_bytes, child_cpu_bytes, child_device_bytes;
    double   flops, macs, moved_bytes;
    int64_t  back_sequence;
    uint32_t back_thread;
    bool     is_back;
};

/* A range on its way into the columns: what of struct snd_range they need. */
struct entry {
    int64_t  start_ns, total_ns, child_ns, sequence;
    uint32_t name, shapes, stack, module, strides, arguments, overload, fwd_thread, keywords;
    uint32_t extra;  /* one more than its index; 0: it has none of that */
    uint32_t parent; /* index, or NOWHERE */
    uint32_t above;  /* what it lay in when it opened */
    uint32_t thread, children;
    uint32_t python_id, python_parent; /* of a Python function's call */
    uint8_t  flags, scope;
    bool     is_op;  /* as the range's */
    bool     folded; /* into its parent */
};

struct sonde_events {
    struct sonde_trace         *trace;
    struct sonde_events_options options;
    struct entry               *entries;
    uint32_t                    count, room;
    struct extra               *extras;
    uint32_t                    extra_count, extra_room;
    bool                        has_back;  /* some of them run backward */
    bool                        has_async; /* some of them are asynchronous */
    struct snd_live             live;
    struct snd_assembly         assembly;
    uint32_t         own[OWN_COUNT]; /* names of ours: those of the trace, if it has them */
    uint32_t         empty;          /* the trace's name of no length, or UINT32_MAX */
    struct snd_texts functions;      /* names of Python functions, numbered after our own */
    struct snd_map   function_names; /* (process, frame) to one of them */
    struct sonde_events_columns shown;
    void                       *columns; /* owned: all of them, one after another */
};

static void give_up(struct sonde_events *e)
{
    snd_assembly_stop(&e->assembly);
}

/* -------------------------------------------------------------------- the texts */

/* Each text has one number, so that texts can be compared by it. */
static void number_texts(struct sonde_events *e)
{
    uint32_t count = e->trace->names.count;

    e->empty = UINT32_MAX;
    for (uint32_t k = 0; k < OWN_COUNT; k++)
        e->own[k] = count + k;
    for (uint32_t i = 0; i < count; i++) {
        const struct snd_text *name = &e->trace->names.items[i];
        if (name->length == 0)
            e->empty = i;
        for (uint32_t k = 0; k < OWN_COUNT; k++)
            if (name->length == own_names[k].length &&
                memcmp(name->bytes, own_names[k].bytes, name->length) == 0)
                e->own[k] = i;
    }
}

/* Names of the trace, then our own, then those of Python functions. */
static struct sonde_text name_text(const struct sonde_events *e, uint32_t name)
{
    uint32_t count = e->trace->names.count;

    if (name >= count && name < count + OWN_COUNT)
        return own_names[name - count];
    const struct snd_text *found = name < count ? &e->trace->names.items[name]
                                                : &e->functions.items[name - count - OWN_COUNT];
    return (struct sonde_text){ found->bytes, found->length };
}

static uint32_t text_of_name(const struct sonde_events *e, uint32_t name)
{
    return name == e->empty ? 0 : name + 1;
}

/* -------------------------------------------------------------------- the walk */

/* A million events are hundreds of megabytes: large pages take a tenth of the time to get. */
static void want_large_pages(void *memory, size_t size)
{
    const uintptr_t page = (uintptr_t)1 << 21;
    uintptr_t       from = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t       to = ((uintptr_t)memory + size) & ~(page - 1);

    if (memory && from < to) {
        int rc = madvise((void *)from, to - from, MADV_HUGEPAGE);
        (void)rc; /* then it takes the small ones */
    }
}

/*
 * Room for as many ranges as the files can hold, unless they are packed or very large: what grows is
 * copied. False: out of memory.
 */
static bool reserve_entries(struct sonde_events *e)
{
    const uint64_t smallest = 16, most = 1u << 22; /* bytes of a range as recorded; entries */
    uint64_t       bytes = 0;

    for (uint32_t i = 0; i < sonde_trace_process_count(e->trace); i++)
        bytes += sonde_trace_process(e->trace, i)->size_bytes;
    uint64_t room = bytes / smallest + 16 < most ? bytes / smallest + 16 : most;
    e->entries = malloc(room * sizeof *e->entries);
    if (!e->entries)
        return false;
    e->room = (uint32_t)room;
    want_large_pages(e->entries, room * sizeof *e->entries);
    return true;
}

static struct entry *add_entry(struct sonde_events *e, const struct snd_lane *lane)
{
    uint32_t before = e->room;

    if (e->count >= EVENTS_MAX || !snd_grow(&e->entries, &e->room, e->count, sizeof *e->entries)) {
        give_up(e);
        return NULL;
    }
    if (e->room != before)
        want_large_pages(e->entries, e->room * sizeof *e->entries);
    struct entry *entry = &e->entries[e->count++];
    *entry = (struct entry){ .parent = NOWHERE, .above = NOWHERE, .thread = lane->thread };
    return entry;
}

static const struct extra *extra_of(const struct sonde_events *e, const struct entry *entry)
{
    static const struct extra none;

    return entry->extra ? &e->extras[entry->extra - 1] : &none;
}

static void add_extra(struct sonde_events *e, struct entry *entry, const struct snd_range *r)
{
    if (r->cpu_bytes == 0 && r->device_bytes == 0 && r->child_cpu_bytes == 0 &&
        r->child_device_bytes == 0 && r->flops == 0 && r->macs == 0 && r->moved_bytes == 0 &&
        !r->is_back)
        return;
    if (!snd_grow(&e->extras, &e->extra_room, e->extra_count, sizeof *e->extras)) {
        give_up(e);
        return;
    }
    e->extras[e->extra_count++] = (struct extra){ .cpu_bytes = r->cpu_bytes,
                                                  .device_bytes = r->device_bytes,
                                                  .child_cpu_bytes = r->child_cpu_bytes,
                                                  .child_device_bytes = r->child_device_bytes,
                                                  .flops = r->flops,
                                                  .macs = r->macs,
                                                  .moved_bytes = r->moved_bytes,
                                                  .back_sequence = r->back_sequence,
                                                  .back_thread = r->back_thread,
                                                  .is_back = r->is_back };
    entry->extra = e->extra_count;
    e->has_back = e->has_back || r->is_back;
}

static void set_range(struct sonde_events *e, struct entry *entry, const struct snd_range *r)
{
    entry->start_ns = r->start_ns;
    entry->total_ns = r->total_ns;
    entry->child_ns = r->child_ns;
    entry->sequence = r->sequence;
    entry->name = r->name;
    entry->shapes = r->shapes;
    entry->stack = r->stack;
    entry->module = r->module;
    entry->strides = r->strides;
    entry->arguments = r->arguments;
    entry->overload = r->overload;
    entry->fwd_thread = r->fwd_thread;
    entry->keywords = r->keywords;
    entry->scope = r->scope;
    entry->is_op = r->is_op;
    add_extra(e, entry, r);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_events *e = user;
    struct entry        *entry = add_entry(e, lane);

    range->range.node = entry ? e->count - 1 : 0;
    if (entry)
        entry->above = parent ? parent->range.node : NOWHERE;
}

static void on_move(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_events *e = user;

    (void)lane;
    e->entries[range->range.node].above = parent ? parent->range.node : NOWHERE;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_events    *e = user;
    const struct snd_range *r = &range->range;
    struct entry           *entry = &e->entries[r->node];

    (void)lane;
    set_range(e, entry, r);
    if (parent) {
        entry->parent = parent->range.node;
        e->entries[entry->parent].children++;
    }
    e->has_async = e->has_async || r->is_async;
    entry->flags = (uint8_t)((r->is_async ? SONDE_EVENT_IS_ASYNC : 0) |
                             (r->scope == SONDE_SCOPE_USER ? SONDE_EVENT_IS_USER : 0) |
                             (r->unfinished ? SONDE_EVENT_IS_UNFINISHED : 0));
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_events   *e = user;
    bool                   is_cpu = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0;
    struct snd_live_change change = snd_live_event(&e->live, lane->process, words);

    if (!change.known)
        return;
    if (e->live.failed)
        give_up(e);
    if (innermost) {
        snd_range_memory(&innermost->range, words, change.counted);
        return;
    }
    struct entry *entry = add_entry(e, lane);
    if (!entry)
        return;
    set_range(e, entry,
              &(struct snd_range){ .start_ns = ns,
                                   .sequence = SND_NO_SEQUENCE,
                                   .name = e->own[OWN_MEMORY],
                                   .cpu_bytes = is_cpu ? change.counted : 0,
                                   .device_bytes = is_cpu ? 0 : change.counted });
    entry->flags = SONDE_EVENT_IS_MEMORY;
}

/* ----------------------------------------------------------- Python's functions */

/* The number that its text has among the names, or UINT32_MAX when memory is out. */
static uint32_t name_function(struct sonde_events *e, uint32_t process, uint32_t frame)
{
    struct snd_key      key = { process, frame, 0 };
    struct sonde_buffer text = { 0 };
    uint32_t            number;

    if (!snd_map_get(&e->function_names, key, &number)) {
        snd_function_text(e->trace, process, frame, &text);
        bool added = !text.failed &&
                     snd_texts_add(&e->functions, snd_buf_string(&text), text.length, &number) &&
                     snd_map_put(&e->function_names, key, number);
        sonde_buffer_release(&text);
        if (!added)
            return UINT32_MAX;
    }
    return e->trace->names.count + OWN_COUNT + number;
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_events *e = user;

    if (SND_EVENT_KIND(words[0]) != SND_EV_FUNCTION)
        return;
    int64_t       took = snd_scale_ticks(&lane->from->scale, SND_FUNCTION_TICKS(words[2]));
    uint32_t      name = name_function(e, lane->process, SND_LOW(words[1]));
    struct entry *entry = name != UINT32_MAX ? add_entry(e, lane) : NULL;
    if (!entry) {
        give_up(e);
        return;
    }
    entry->thread = snd_subject_thread(e->trace, lane->thread, words);
    entry->start_ns = snd_sub(ns, took);
    entry->total_ns = took;
    entry->sequence = SND_NO_SEQUENCE;
    entry->name = name;
    entry->python_id = SND_LOW(words[3]);
    entry->python_parent = SND_HIGH(words[3]);
    entry->flags = SONDE_EVENT_IS_FUNCTION;
}

static bool is_function(const struct entry *entry)
{
    return entry->flags & SONDE_EVENT_IS_FUNCTION;
}

static struct snd_key key_of_call(const struct sonde_events *e, const struct entry *entry,
                                  uint32_t id)
{
    return (struct snd_key){ e->assembly.lanes[entry->thread].process, id, 0 };
}

/* A call is recorded when it returns, and so after those that it made. False: out of memory. */
static bool link_functions(struct sonde_events *e)
{
    struct snd_map calls = { 0 };
    bool           good = true;

    for (uint32_t i = 0; i < e->count && good && e->functions.count > 0; i++)
        if (is_function(&e->entries[i]))
            good = snd_map_put(&calls, key_of_call(e, &e->entries[i], e->entries[i].python_id), i);
    for (uint32_t i = 0; i < e->count && good && e->functions.count > 0; i++) {
        struct entry *entry = &e->entries[i];
        uint32_t      parent;
        if (!is_function(entry) || entry->python_parent == 0 ||
            entry->python_parent == entry->python_id ||
            !snd_map_get(&calls, key_of_call(e, entry, entry->python_parent), &parent))
            continue;
        struct entry *above = &e->entries[parent];
        above->child_ns = snd_add(above->child_ns, entry->total_ns);
        entry->parent = parent;
    }
    snd_map_release(&calls);
    return good;
}

/* --------------------------------------------------------------------- folding */

static uint32_t canonical(const struct sonde_events *e, uint32_t name)
{
    uint32_t count = e->trace->names.count;

    if (name < count && (e->assembly.name_flags[name] & SND_NAME_STEP))
        return e->own[OWN_STEP];
    return name;
}

/* Past asynchronous ranges, which have no children, and folded ones. */
static uint32_t find_parent(const struct sonde_events *e, uint32_t at)
{
    while (at != NOWHERE) {
        const struct entry *entry = &e->entries[at];
        if (entry->flags & SONDE_EVENT_IS_ASYNC)
            at = entry->above;
        else if (entry->folded)
            at = entry->parent;
        else
            break;
    }
    return at;
}

/* The child's extra is free to be its parent's. */
static void fold_extra(struct sonde_events *e, struct entry *into, const struct entry *child)
{
    struct extra        x = *extra_of(e, into);
    const struct extra *from = extra_of(e, child);

    x.child_cpu_bytes = from->child_cpu_bytes;
    x.child_device_bytes = from->child_device_bytes;
    if (x.flops <= 0 && e->options.flops != SONDE_FLOPS_TORCH) {
        x.flops = from->flops;
        x.macs = from->macs;
        x.moved_bytes = from->moved_bytes;
    }
    if (into->extra == 0)
        into->extra = child->extra;
    if (into->extra != 0)
        e->extras[into->extra - 1] = x;
}

/* Takes the place of the only child: its children become the range's own. */
static void fold(struct sonde_events *e, struct entry *into, struct entry *child)
{
    child->folded = true;
    into->children = child->children;
    into->child_ns = child->child_ns;
    fold_extra(e, into, child);
    if (into->shapes == 0)
        into->shapes = child->shapes;
    if (into->stack == 0)
        into->stack = child->stack;
    if (into->module == 0)
        into->module = child->module;
}

/* Children of asynchronous ranges are not theirs. */
static void count_children_anew(struct sonde_events *e)
{
    for (uint32_t i = 0; i < e->count; i++)
        e->entries[i].children = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        e->entries[i].parent = find_parent(e, e->entries[i].parent);
        if (e->entries[i].parent != NOWHERE)
            e->entries[e->entries[i].parent].children++;
    }
}

static void fold_all(struct sonde_events *e)
{
    if (e->has_async)
        count_children_anew(e);
    for (uint32_t i = 0; i < e->count; i++) { /* a parent comes before its children */
        struct entry *entry = &e->entries[i];
        entry->parent = find_parent(e, entry->parent);
        if (entry->parent == NOWHERE)
            continue;
        struct entry *parent = &e->entries[entry->parent];
        if (parent->children == 1 && parent->is_op && entry->is_op && /* snd_range_folds() */
            canonical(e, parent->name) == canonical(e, entry->name))
            fold(e, parent, entry);
    }
}

/* --------------------------------------------------------------------- order */

struct place {
    int64_t  start_ns, end_ns;
    uint32_t entry;
};

static int compare_places(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return (a->entry > b->entry) - (a->entry < b->entry);
}

/*
 * By start, the longer one first. Entries came by start already, so mostly nothing moves; only
 * a chunk that was read late, as the clock of a damaged file may make it, is out of order.
 */
static void sort_places(struct place *places, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (places[i].start_ns < places[i - 1].start_ns) {
            qsort(places, count, sizeof *places, compare_places);
            return;
        }
    }
    for (uint32_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && places[end].start_ns == places[i].start_ns;)
            end++;
        if (end - i > 1)
            qsort(places + i, end - i, sizeof *places, compare_places);
    }
}

/* ------------------------------------------------------------------- columns */

/* clang-format off */
#define COLUMNS(X)                                                                                      \
    X(int64_t, start_ns) X(int64_t, end_ns) X(int64_t, self_ns) X(int64_t, sequence)                    \
    X(double, flops) X(double, macs) X(double, moved_bytes) X(int64_t, cpu_bytes)                       \
    X(int64_t, self_cpu_bytes) X(int64_t, device_bytes) X(int64_t, self_device_bytes) X(uint32_t, name) \
    X(uint32_t, trace_name) X(uint32_t, overload) X(uint32_t, process) X(uint32_t, thread)              \
    X(uint32_t, torch_thread) X(int32_t, parent) X(uint32_t, shapes) X(uint32_t, strides)               \
    X(uint32_t, arguments) X(uint32_t, keywords) X(uint32_t, stack) X(uint32_t, module)                 \
    X(uint32_t, fwd_thread) X(uint32_t, python_id) X(uint32_t, python_parent) X(int32_t, python_module)  \
    X(uint8_t, scope) X(uint8_t, flags)
/* clang-format on */

/* The same, to be written. */
struct columns {
#define COLUMN(type, name) type *name;
    COLUMNS(COLUMN)
#undef COLUMN
};

/* Where each column's address goes, and how wide its elements are; the widest first. */
static const struct {
    size_t written, shown, size;
} places_of[] = {
#define COLUMN(type, name) \
    { offsetof(struct columns, name), offsetof(struct sonde_events_columns, name), sizeof(type) },
    COLUMNS(COLUMN)
#undef COLUMN
};
#define COLUMN_COUNT (sizeof places_of / sizeof places_of[0])

static bool take_columns(struct sonde_events *e, struct columns *c, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        size += places_of[i].size;
    e->columns = calloc(count + 1, size);
    if (!e->columns)
        return false;
    want_large_pages(e->columns, size * count);
    char *at = e->columns; /* the widest first, so that each is aligned */
    for (size_t i = 0; i < COLUMN_COUNT; at += places_of[i++].size * count) {
        memcpy((char *)c + places_of[i].written, &at, sizeof at);
        memcpy((char *)&e->shown + places_of[i].shown, &at, sizeof at);
    }
    e->shown.count = count;
    return true;
}

static uint32_t text_of(const struct sonde_events *e, const struct snd_process *from, uint32_t id)
{
    uint32_t name = id != 0 ? snd_name_of(from, id) : UINT32_MAX;

    return name == UINT32_MAX ? 0 : text_of_name(e, name);
}

/* Most columns of most traces are all 0, as they were made: memory never written is not taken. */
#define PUT(column, value) ((value) != 0 ? (void)(c->column[row] = (value)) : (void)0)

static void fill_numbers(const struct sonde_events *e, struct columns *c, uint32_t row,
                         const struct entry *entry)
{
    const struct extra *x = extra_of(e, entry);

    PUT(start_ns, entry->start_ns);
    PUT(end_ns, snd_add(entry->start_ns, entry->total_ns));
    PUT(self_ns, snd_sub(entry->total_ns, entry->child_ns));
    PUT(sequence, entry->sequence);
    PUT(fwd_thread, entry->sequence >= 0 ? entry->fwd_thread : 0);
    PUT(flops, x->flops);
    PUT(macs, x->macs);
    PUT(moved_bytes, x->moved_bytes);
    PUT(cpu_bytes, x->cpu_bytes);
    PUT(self_cpu_bytes, snd_sub(x->cpu_bytes, x->child_cpu_bytes));
    PUT(device_bytes, x->device_bytes);
    PUT(self_device_bytes, snd_sub(x->device_bytes, x->child_device_bytes));
}

static void fill_texts(const struct sonde_events *e, struct columns *c, uint32_t row,
                       const struct entry *entry)
{
    const struct snd_process *from = e->assembly.lanes[entry->thread].from;

    PUT(name, text_of_name(e, canonical(e, entry->name)));
    PUT(trace_name, entry->flags & SONDE_EVENT_IS_MEMORY ? 0 : text_of_name(e, entry->name));
    PUT(overload, text_of(e, from, entry->overload));
    PUT(arguments, text_of(e, from, entry->arguments));
    PUT(keywords, text_of(e, from, entry->keywords));
    PUT(module, text_of(e, from, entry->module));
}

static void fill_row(const struct sonde_events *e, struct columns *c, uint32_t row,
                     const struct entry *entry)
{
    const struct snd_lane *lane = &e->assembly.lanes[entry->thread];

    fill_numbers(e, c, row, entry);
    fill_texts(e, c, row, entry);
    PUT(process, lane->process);
    PUT(thread, entry->thread);
    PUT(torch_thread, snd_torch_thread(&e->assembly, lane));
    PUT(shapes, entry->shapes);
    PUT(strides, entry->strides);
    PUT(stack, entry->stack);
    PUT(python_id, entry->python_id);
    PUT(python_parent, entry->python_parent);
    PUT(python_module, is_function(entry) ? snd_module_number(name_text(e, entry->name)) : -1);
    PUT(scope, entry->scope);
    PUT(flags, entry->flags);
    PUT(parent, (int32_t)entry->parent);
}
#undef PUT

/* What runs backward was called from where its forward operator was. */
static bool lend_stacks(const struct sonde_events *e, struct columns *c, const struct place *places)
{
    struct snd_map forwards = { 0 };
    bool           good = true;
    uint32_t       count = (uint32_t)e->shown.count, at;

    for (uint32_t row = 0; row < count && good; row++) {
        const struct entry *r = &e->entries[places[row].entry];
        struct snd_key      key = { SND_PAIR(c->torch_thread[row], c->process[row]),
                                    (uint64_t)r->sequence, 0 };
        if (r->sequence >= 0 && !extra_of(e, r)->is_back && !snd_map_get(&forwards, key, &at))
            good = snd_map_put(&forwards, key, row);
    }
    for (uint32_t row = 0; row < count && good; row++) {
        const struct extra *r = extra_of(e, &e->entries[places[row].entry]);
        struct snd_key      key = { SND_PAIR(r->back_thread, c->process[row]),
                                    (uint64_t)r->back_sequence, 0 };
        if (r->is_back) /* forward rows are not written here */
            c->stack[row] = snd_map_get(&forwards, key, &at) ? c->stack[at] : 0;
    }
    snd_map_release(&forwards);
    return good;
}

static bool build_columns(struct sonde_events *e)
{
    struct columns c;
    struct place  *places = malloc(((size_t)e->count + 1) * sizeof *places);
    uint32_t      *rows = calloc((size_t)e->count + 1, sizeof *rows), count = 0;
    bool           good = false;

    if (!places || !rows)
        goto done;
    want_large_pages(places, e->count * sizeof *places);
    for (uint32_t i = 0; i < e->count; i++) {
        const struct entry *r = &e->entries[i];
        if (!e->entries[i].folded)
            places[count++] = (struct place){ r->start_ns, snd_add(r->start_ns, r->total_ns), i };
    }
    sort_places(places, count);
    if (!take_columns(e, &c, count))
        goto done;
    for (uint32_t row = 0; row < count; row++) {
        rows[places[row].entry] = row;
        fill_row(e, &c, row, &e->entries[places[row].entry]);
    }
    for (uint32_t row = 0; row < count; row++) { /* NOWHERE is -1 */
        if (c.parent[row] != -1)
            c.parent[row] = (int32_t)rows[c.parent[row]];
    }
    good = !e->has_back || lend_stacks(e, &c, places);
done:
    free(places);
    free(rows);
    return good;
}

/* ---------------------------------------------------------------- the whole */

static enum sonde_status build(struct sonde_events *e, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = e,
                                           .flops = e->options.flops,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory,
                                           .other = on_other,
                                           .move = on_move };
    if (!reserve_entries(e))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the events");
    enum sonde_status status = snd_assemble(&e->assembly, e->trace, SONDE_BY_TIME, &consumer, err);

    if (status == SONDE_OK) {
        fold_all(e);
        if (!link_functions(e) || !build_columns(e))
            status = snd_fail(err, SONDE_E_NOMEM, "out of memory for %u events", e->count);
    }
    snd_assembly_release(&e->assembly);
    snd_live_release(&e->live);
    snd_map_release(&e->function_names);
    free(e->entries);
    free(e->extras);
    e->entries = NULL;
    e->extras = NULL;
    return status;
}

enum sonde_status sonde_events_new(struct sonde_trace                *trace,
                                   const struct sonde_events_options *options,
                                   struct sonde_events **out, struct sonde_error *err)
{
    *out = NULL;
    struct sonde_events *e = calloc(1, sizeof *e);
    if (!e)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the events");
    e->trace = trace;
    if (options)
        e->options = *options;
    number_texts(e);
    enum sonde_status status = build(e, err);
    if (status == SONDE_OK)
        *out = e;
    else
        sonde_events_free(e);
    return status;
}

void sonde_events_free(struct sonde_events *e)
{
    if (!e)
        return;
    snd_texts_release(&e->functions);
    free(e->columns);
    free(e);
}

const struct sonde_events_columns *sonde_events_columns(const struct sonde_events *events)
{
    return &events->shown;
}

size_t sonde_events_text_count(const struct sonde_events *e)
{
    return (size_t)e->trace->names.count + OWN_COUNT + e->functions.count + 1;
}

struct sonde_text sonde_events_text(const struct sonde_events *e, uint32_t text)
{
    if (text == 0 || text >= sonde_events_text_count(e))
        return (struct sonde_text){ "", 0 };
    return name_text(e, text - 1);
}
