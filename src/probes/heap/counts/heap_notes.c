/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/counts/heap_notes.h"

#include <stdlib.h>
#include <string.h>

#include "base/hints.h"
#include "probes/heap/counts/heap_samples.h"

#define PERIOD_USUAL ((uint64_t)512 << 10)

/* "512K"; 0 for any other text. */
static uint64_t read_size(const char *text)
{
    static const char units[] = "KMGT";
    char             *end;
    uint64_t          size = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const char       *unit = size && *end ? strchr(units, *end & ~0x20) : NULL;

    return unit ? size << 10 * (unit - units + 1) : size;
}

/* SONDE_HEAP: full, sampled, or the mean of bytes between samples. */
void snd_heap_notes_init(void)
{
    const char *text = getenv("SONDE_HEAP");
    uint64_t    period = 0;

    if (!text || !getenv("SONDE_TRACE")) {
        snd_heap_mode = SND_HEAP_OFF;
        return;
    }
    if (strcmp(text, "sampled") == 0)
        period = PERIOD_USUAL;
    else
        period = read_size(text);
    snd_heap_walk_init();
    snd_heap_stacks_init(period);
    snd_heap_samples_init(period);
    if (period == 0)
        memset(snd_heap_near, SND_HEAP_ALWAYS, sizeof snd_heap_near);
    snd_heap_mode = period ? SND_HEAP_SAMPLED : SND_HEAP_FULL;
}

/* -------------------------------------------------------------------- full */

/* What interrupts this code, or is the recorder's, is not counted; nor is its free. */
static bool is_inside(const void *block)
{
    struct snd_heap_thread *self = &snd_heap_self;

    if (SND_LIKELY(self->inside == SND_OUTSIDE))
        return false;
    if (self->inside == SND_COUNTING)
        snd_heap_count_unseen(SND_HEAP_MALLOC);
    if (snd_heap_mode == SND_HEAP_FULL)
        snd_heap_block_put(block, (struct snd_heap_block){ SND_HEAP_OWN, 0 });
    return true;
}

/* The stack of the caller; allocations of this thread meanwhile are our own. */
static uint32_t find_stack(const struct snd_heap_caller *caller)
{
    struct snd_heap_stack stack;

    snd_heap_self.inside = SND_PREPARING;
    snd_heap_walk(caller, &stack);
    uint32_t number = snd_heap_stack_of(SND_HEAP_MALLOC, &stack);
    snd_heap_self.inside = SND_OUTSIDE;
    return number;
}

static bool put(const void *block, uint32_t stack, size_t size)
{
    return snd_heap_block_put(block, (struct snd_heap_block){ stack, size });
}

void snd_heap_taken_full(const void *block, size_t size, const struct snd_heap_caller *caller)
{
    struct snd_heap_thread *self = &snd_heap_self;

    if (SND_UNLIKELY(is_inside(block)))
        return;
    uint32_t stack = find_stack(caller);
    self->newest = self->counted = block;
    if (stack == 0 || !put(block, stack, size) || stack == SND_HEAP_OWN)
        return;
    struct snd_heap_change change = { .taken = stack, .taken_weight = { 1, size, 0 } };
    snd_heap_count(&change);
}

static struct snd_heap_moved take_full(const void *block)
{
    struct snd_heap_thread *self = &snd_heap_self;
    struct snd_heap_moved   moved = { .block = snd_heap_block_take(block) };

    moved.weight = (struct snd_heap_weight){ 1, moved.block.size, 0 };
    moved.is_temporary = self->newest == block;
    self->newest = NULL;
    if (SND_UNLIKELY(moved.block.stack == 0 && self->passing != block &&
                     self->inside != SND_PREPARING))
        snd_heap_count_unknown(SND_HEAP_MALLOC);
    return moved;
}

static void count_freed(const struct snd_heap_moved *moved)
{
    struct snd_heap_change change = { .freed = moved->block.stack,
                                      .freed_weight = moved->weight,
                                      .is_temporary = moved->is_temporary };

    if (moved->block.stack > SND_HEAP_OWN)
        snd_heap_count(&change);
}

void snd_heap_freed_full(const void *block)
{
    if (SND_UNLIKELY(snd_heap_self.inside == SND_COUNTING)) {
        /* A free by a signal handler that interrupted a count: forgets the block, keeps its count. */
        snd_heap_block_take(block);
        snd_heap_count_unseen(SND_HEAP_MALLOC);
        return;
    }
    struct snd_heap_moved moved = take_full(block);
    count_freed(&moved);
}

/* ------------------------------------------------------------------ sampled */

void snd_heap_taken_sampled(const void *block, size_t size, const struct snd_heap_caller *caller)
{
    struct snd_heap_thread *self = &snd_heap_self;

    if (!snd_heap_sample_begin(size) || SND_UNLIKELY(is_inside(block)))
        return;
    uint32_t stack = find_stack(caller);
    self->counted = block;
    if (stack <= SND_HEAP_OWN)
        return;
    struct snd_heap_change change = { .taken = stack,
                                      .taken_weight = snd_heap_sample_weight(size) };
    if (snd_heap_sample_put(block, stack, change.taken_weight))
        snd_heap_count(&change);
}

static struct snd_heap_moved take_sampled(const void *block)
{
    struct snd_heap_moved moved = { .is_temporary = false };

    if (snd_heap_self.inside == SND_OUTSIDE && snd_heap_filter[snd_heap_filter_at(block)])
        moved.block.stack = snd_heap_sample_take(block, &moved.weight);
    return moved;
}

void snd_heap_freed_sampled(const void *block)
{
    struct snd_heap_moved moved = take_sampled(block);

    count_freed(&moved);
}

/* ------------------------------------------------------------------ realloc */

struct snd_heap_moved snd_heap_moving(const void *block)
{
    struct snd_heap_moved none = { .is_temporary = false };

    if (!block || snd_heap_mode <= SND_HEAP_OFF || snd_heap_self.inside == SND_COUNTING)
        return none;
    return snd_heap_mode == SND_HEAP_FULL ? take_full(block) : take_sampled(block);
}

static void put_back(const void *block, const struct snd_heap_moved *moved)
{
    if (moved->block.stack == 0)
        return;
    if (snd_heap_mode == SND_HEAP_FULL)
        snd_heap_block_put(block, moved->block);
    else
        snd_heap_sample_put(block, moved->block.stack, moved->weight);
}

static void count_moved(const struct snd_heap_moved *moved, const void *to, size_t size,
                        const struct snd_heap_caller *caller)
{
    struct snd_heap_change change = { .freed = moved->block.stack > SND_HEAP_OWN
                                                   ? moved->block.stack
                                                   : 0,
                                      .freed_weight = moved->weight,
                                      .is_temporary = moved->is_temporary };

    change.taken = find_stack(caller);
    change.taken_weight = snd_heap_mode == SND_HEAP_FULL ? (struct snd_heap_weight){ 1, size, 0 }
                                                         : snd_heap_sample_weight(size);
    snd_heap_self.newest = snd_heap_self.counted = to;
    bool kept = change.taken != 0 &&
                (snd_heap_mode == SND_HEAP_FULL
                     ? put(to, change.taken, size)
                     : change.taken > SND_HEAP_OWN &&
                           snd_heap_sample_put(to, change.taken, change.taken_weight));
    if (!kept || change.taken == SND_HEAP_OWN)
        change.taken = 0;
    if (change.taken || change.freed)
        snd_heap_count(&change);
}

void snd_heap_moved(const void *from, struct snd_heap_moved *moved, const void *to, size_t size,
                    bool freed, const struct snd_heap_caller *caller)
{
    if (snd_heap_mode <= SND_HEAP_OFF)
        return;
    if (!to && !freed) {
        put_back(from, moved);
        return;
    }
    bool counts = to && !is_inside(to);
    if (counts && snd_heap_mode == SND_HEAP_SAMPLED)
        counts = !snd_heap_passes(size) && snd_heap_sample_begin(size);
    if (counts)
        count_moved(moved, to, size, caller);
    else
        count_freed(moved);
}
