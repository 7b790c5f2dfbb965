/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/memory_timeline.c - what a device holds over time, by torch's categories.
 *
 * torch follows every tensor through the graph of operators. A trace has no tensors, but it has
 * where each block was allocated, and when and where it was freed. The category follows from that:
 *
 *     allocated in an optimizer's step      OPTIMIZER_STATE if it outlives the step
 *     allocated in a backward function      GRADIENT if it outlives the pass, else AUTOGRAD_DETAIL
 *     allocated in a forward operator       ACTIVATION if it is freed in a backward function
 *                                           or outlives its module's outermost operator
 *     freed in the operator that allocated it, whichever that is    TEMPORARY
 *     allocated outside any operator        INPUT
 *
 * PARAMETER is never given: parameters are usually made before the recording. docs/MEMORY.md.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "format/fields.h"
#include "model/ranges/assembly.h"

#define NOT_LIVE UINT32_MAX

/* A block: when it was allocated and freed, and in what. */
struct block {
    int64_t  taken_ns, given_ns; /* given back: INT64_MAX if it was not */
    int64_t  bytes;
    uint64_t address;
    uint64_t outermost; /* number of the outermost operator that was open on its thread; 0 none */
    uint32_t thread;
    uint32_t step;        /* how many steps of optimizers had begun when it was allocated */
    uint8_t  phase;       /* enum phase, in which it was allocated */
    uint8_t  given_phase; /* in which it was freed */
    bool     same;        /* by the same outermost operator */
    bool     same_step;   /* before another step of an optimizer began */
    uint8_t  category;
};

enum phase { PHASE_OUTSIDE, PHASE_FORWARD, PHASE_BACKWARD, PHASE_OPTIMIZER };

struct change {
    int64_t  time_ns, bytes;
    uint32_t block, order;
};

struct sonde_timeline {
    struct sonde_trace *trace;
    uint32_t            type, index;
    struct block       *blocks;
    uint32_t            block_count, block_room;
    struct change      *changes;
    uint32_t            change_count, change_room;
    struct snd_map      live;      /* (process, device, address) to a block */
    uint64_t           *outermost; /* of each thread: number of its outermost open operator */
    uint8_t            *names;     /* enum phase of each name of the trace */
    uint64_t            numbers;
    uint32_t            steps; /* of optimizers, that have begun */
    int64_t            *times, *bytes;
    uint64_t           *addresses;
    uint8_t            *categories;
    struct sonde_timeline_columns shown;
    struct snd_assembly           assembly;
};

static void give_up(struct sonde_timeline *t)
{
    snd_assembly_stop(&t->assembly);
}

/* ------------------------------------------------------------------- phases */

/* The phase that a range of this name begins; PHASE_OUTSIDE: none. */
static enum phase judge_name(struct snd_text name)
{
    static const char prefix[] = "Optimizer.step#";

    if (name.length >= sizeof prefix - 1 && memcmp(name.bytes, prefix, sizeof prefix - 1) == 0)
        return PHASE_OPTIMIZER;
    return snd_name_judge(name) & SND_NAME_EVALUATE ? PHASE_BACKWARD : PHASE_OUTSIDE;
}

static bool judge_names(struct sonde_timeline *t)
{
    uint32_t count = t->trace->names.count;

    t->names = malloc((size_t)count + 1);
    for (uint32_t i = 0; t->names && i < count; i++)
        t->names[i] = (uint8_t)judge_name(t->trace->names.items[i]);
    return t->names != NULL;
}

/* A person's range around everything is not what took the memory. */
static bool is_operator(const struct snd_range *r)
{
    return r->scope != SONDE_SCOPE_USER;
}

/* The range's `number` holds its phase, for the ranges inside it. */
static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_timeline *t = user;

    range->number = parent ? parent->number : PHASE_OUTSIDE;
    if (t->names[range->range.name] != PHASE_OUTSIDE)
        range->number = t->names[range->range.name];
    if (t->names[range->range.name] == PHASE_OPTIMIZER)
        t->steps++;
    if (lane->depth == 1 || (parent && !is_operator(&parent->range)))
        t->outermost[lane->thread] = ++t->numbers;
}

static uint32_t on_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared)
{
    const struct sonde_timeline *t = user;

    (void)lane;
    return t->names[shared->name];
}

/* Nothing is taken in a range that has nothing inside; it counts as a step, and as an outermost one. */
static void on_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                    const struct snd_known_leaf *known, uint32_t phase,
                    const struct snd_open_range *above, struct snd_open_range *parent)
{
    struct sonde_timeline *t = user;

    (void)leaf, (void)known, (void)above;
    t->steps += phase == PHASE_OPTIMIZER;
    if (lane->depth == 0 || (parent && !is_operator(&parent->range)))
        t->outermost[lane->thread] = ++t->numbers;
}

static enum phase find_phase(const struct snd_open_range *innermost)
{
    if (!innermost)
        return PHASE_OUTSIDE;
    if (innermost->number != PHASE_OUTSIDE)
        return (enum phase)innermost->number;
    if (innermost->range.is_back || innermost->range.scope == SONDE_SCOPE_BACKWARD)
        return PHASE_BACKWARD;
    return is_operator(&innermost->range) ? PHASE_FORWARD : PHASE_OUTSIDE;
}

/* ------------------------------------------------------------------- blocks */

static void add_change(struct sonde_timeline *t, int64_t ns, int64_t bytes, uint32_t block)
{
    if (!snd_grow(&t->changes, &t->change_room, t->change_count, sizeof *t->changes)) {
        give_up(t);
        return;
    }
    t->changes[t->change_count] = (struct change){ ns, bytes, block, t->change_count };
    t->change_count++;
}

static void give_back(struct sonde_timeline *t, struct snd_key key, const struct snd_lane *lane,
                      int64_t ns, const struct snd_open_range *innermost)
{
    uint32_t at;

    if (!snd_map_take(&t->live, key, &at))
        return; /* taken before the recording: not ours to count */
    struct block *b = &t->blocks[at];
    b->given_ns = ns;
    b->given_phase = (uint8_t)find_phase(innermost);
    b->same = innermost && b->outermost != 0 && b->thread == lane->thread &&
              b->outermost == t->outermost[lane->thread];
    b->same_step = b->step == t->steps;
    add_change(t, ns, -b->bytes, at);
}

static void take(struct sonde_timeline *t, struct snd_key key, const struct snd_lane *lane,
                 int64_t ns, int64_t bytes, const struct snd_open_range *innermost)
{
    if (!snd_grow(&t->blocks, &t->block_room, t->block_count, sizeof *t->blocks) ||
        t->block_count >= NOT_LIVE - 1 || !snd_map_put(&t->live, key, t->block_count)) {
        give_up(t);
        return;
    }
    struct block *b = &t->blocks[t->block_count];
    *b = (struct block){ .taken_ns = ns,
                         .given_ns = INT64_MAX,
                         .bytes = bytes,
                         .address = key.b,
                         .thread = lane->thread,
                         .step = t->steps };
    b->outermost = innermost ? t->outermost[lane->thread] : 0;
    b->phase = (uint8_t)find_phase(innermost);
    add_change(t, ns, bytes, t->block_count++);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_timeline *t = user;
    uint32_t               device = SND_LOW(words[1]);
    struct snd_key         key = { SND_PAIR(device, lane->process), words[2], 0 };

    if (SND_DEVICE_TYPE(device) != t->type ||
        (t->index != SONDE_NONE && SND_DEVICE_INDEX(device) != t->index))
        return;
    if (SND_EVENT_KIND(words[0]) == SND_EV_FREE) {
        give_back(t, key, lane, ns, innermost);
        return;
    }
    give_back(t, key, lane, ns, innermost); /* an address that was live: its free was not seen */
    take(t, key, lane, ns, snd_net_bytes(words), innermost);
}

/* --------------------------------------------------------------- categories */

static enum sonde_memory_category find_category(const struct block *b)
{
    bool kept = b->given_ns == INT64_MAX;

    if (b->phase == PHASE_OUTSIDE)
        return SONDE_MEMORY_INPUT;
    if (b->same)
        return SONDE_MEMORY_TEMPORARY;
    switch (b->phase) {
    case PHASE_OPTIMIZER:
        return kept || b->given_phase != PHASE_OPTIMIZER || !b->same_step
                   ? SONDE_MEMORY_OPTIMIZER_STATE
                   : SONDE_MEMORY_TEMPORARY;
    case PHASE_BACKWARD:
        return kept || b->given_phase != PHASE_BACKWARD ? SONDE_MEMORY_GRADIENT
                                                        : SONDE_MEMORY_AUTOGRAD_DETAIL;
    default:
        return SONDE_MEMORY_ACTIVATION;
    }
}

static int compare_changes(const void *x, const void *y)
{
    const struct change *a = x, *b = y;

    return SND_ORDER(SND_RISING(a->time_ns, b->time_ns), SND_RISING(a->order, b->order));
}

/* They come in the order of time, but for what a thread wrote into a chunk that waited for its last one. */
static void sort_changes(struct sonde_timeline *t)
{
    uint32_t i = 1;

    while (i < t->change_count && t->changes[i - 1].time_ns <= t->changes[i].time_ns)
        i++;
    if (i < t->change_count)
        snd_sort(t->changes, t->change_count, sizeof *t->changes, compare_changes);
}

static bool build_columns(struct sonde_timeline *t)
{
    size_t count = t->change_count;

    t->times = malloc((count + 1) * sizeof *t->times);
    t->bytes = malloc((count + 1) * sizeof *t->bytes);
    t->addresses = malloc((count + 1) * sizeof *t->addresses);
    t->categories = malloc(count + 1);
    if (!t->times || !t->bytes || !t->addresses || !t->categories)
        return false;
    for (uint32_t i = 0; i < t->block_count; i++)
        t->blocks[i].category = (uint8_t)find_category(&t->blocks[i]);
    sort_changes(t);
    for (size_t i = 0; i < count; i++) {
        const struct block *b = &t->blocks[t->changes[i].block];
        t->times[i] = t->changes[i].time_ns;
        t->bytes[i] = t->changes[i].bytes;
        t->addresses[i] = b->address;
        t->categories[i] = b->category;
    }
    t->shown = (struct sonde_timeline_columns){ count, t->times, t->bytes, t->categories,
                                                t->addresses };
    return true;
}

/* ---------------------------------------------------------------- the whole */

/* What only the walk needs. */
static void release_walk(struct sonde_timeline *t)
{
    free(t->blocks);
    free(t->changes);
    free(t->outermost);
    free(t->names);
    snd_map_release(&t->live);
    t->blocks = NULL;
    t->changes = NULL;
    t->outermost = NULL;
    t->names = NULL;
}

enum sonde_status sonde_timeline_new(struct sonde_trace *trace, uint32_t type, uint32_t index,
                                     struct sonde_timeline **out, struct sonde_error *err)
{
    *out = NULL;
    struct sonde_timeline *t = calloc(1, sizeof *t);
    if (t) {
        t->trace = trace;
        t->outermost = calloc((size_t)trace->thread_count + 1, sizeof *t->outermost);
    }
    if (!t || !t->outermost || !judge_names(t)) {
        sonde_timeline_free(t);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory timeline");
    }
    t->type = type;
    t->index = index;
    const struct snd_consumer consumer = { .user = t,
                                           .flops = SONDE_FLOPS_NONE,
                                           .any_flops = true,
                                           .open = on_open,
                                           .memory = on_memory,
                                           .kind = on_kind,
                                           .leaf = on_leaf };
    enum sonde_status status = snd_assemble(&t->assembly, trace, SONDE_BY_TIME, &consumer, 1, err);
    snd_assembly_release(&t->assembly);
    if (status == SONDE_OK && !build_columns(t))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory timeline");
    release_walk(t);
    if (status == SONDE_OK)
        *out = t;
    else
        sonde_timeline_free(t);
    return status;
}

void sonde_timeline_free(struct sonde_timeline *t)
{
    if (!t)
        return;
    release_walk(t);
    free(t->times);
    free(t->bytes);
    free(t->addresses);
    free(t->categories);
    free(t);
}

const struct sonde_timeline_columns *sonde_timeline_columns(const struct sonde_timeline *timeline)
{
    return &timeline->shown;
}
