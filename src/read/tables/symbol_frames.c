/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/symbol_frames.c - frames of native code as the functions at their address.
 *
 * A frame with a symbol (SYMBOL) becomes the innermost of its functions; the functions that it is
 * inlined into become frames of their own, and every stack that has the frame gets them between it and
 * its caller. Frames and stacks that are made here have ids after those of the file. So no view
 * and no export knows of addresses.
 */
#include <stdlib.h>

#include "read/reader.h"

#define MADE_MOST ((uint32_t)1 << 24) /* stacks: beyond, inlined functions stand alone */

/* The first frame that was made for a frame, and how many: from the inner to the outer function. */
struct made {
    uint32_t first, count;
};

static void fill_frame(struct snd_frame_record *frame, const struct snd_symbol_entry *entry,
                       const struct snd_frame_record *at)
{
    *frame = *at;
    frame->reserved = at->file; /* what is mapped there: an object file, of which this is a place */
    frame->function = entry->function;
    if (entry->file != 0)
        frame->file = entry->file;
    frame->line = entry->line;
    frame->flags = SND_FRAME_FLAGS(entry->first_line) | SND_FRAME_NATIVE;
}

/* The frames of one symbol. False when memory is out. */
static bool make_frames(struct snd_tables *t, const struct snd_symbol *symbol, struct made *made)
{
    const struct snd_frame_record at = t->frames[symbol->frame];

    fill_frame(&t->frames[symbol->frame], &symbol->entries[0], &at);
    *made = (struct made){ t->frame_count, symbol->count - 1 };
    for (uint32_t i = 1; i < symbol->count; i++) {
        if (t->frame_count >= UINT32_MAX / 2 ||
            !snd_grow(&t->frames, &t->frame_room, t->frame_count, sizeof *t->frames))
            return false;
        fill_frame(&t->frames[t->frame_count++], &symbol->entries[i], &at);
    }
    return true;
}

/* The stack `id` ends in an inlined function: its callers' frames come between it and its parent. */
static bool make_stacks(struct snd_tables *t, uint32_t id, const struct made *made, uint32_t *room)
{
    uint32_t parent = t->stacks[id].parent;

    if (made->count > *room)
        return true;
    *room -= made->count;
    for (uint32_t i = made->count; i-- > 0;) {
        if (!snd_grow(&t->stacks, &t->stack_room, t->stack_count, sizeof *t->stacks))
            return false;
        t->stacks[t->stack_count] = (struct snd_stack_node){ parent, made->first + i };
        parent = t->stack_count++;
    }
    t->stacks[id].parent = parent;
    return true;
}

/* It has an entry: others are refused when they are read. */
static bool is_usable(const struct snd_tables *t, const struct snd_symbol *symbol,
                      uint32_t frame_count)
{
    return symbol->frame != 0 && symbol->frame < frame_count &&
           t->frames[symbol->frame].function == 0 && symbol->entries[0].function != 0;
}

/* The stacks of the file, each once: those that are made here follow them. */
bool snd_symbols_expand(struct snd_process *process)
{
    struct snd_tables *t = &process->tables;
    uint32_t           frame_count = t->frame_count, stack_count = t->stack_count;
    uint32_t           room = MADE_MOST;
    bool               good = true;

    if (t->symbol_count == 0)
        return true;
    struct made *made = calloc((size_t)frame_count + 1, sizeof *made);
    if (!made)
        return false;
    for (uint32_t i = 0; i < t->symbol_count && good; i++) {
        if (is_usable(t, &t->symbols[i], frame_count))
            good = make_frames(t, &t->symbols[i], &made[t->symbols[i].frame]);
        else
            process->damage.bad_ids++;
    }
    for (uint32_t id = 1; id < stack_count && good; id++) {
        uint32_t frame = t->stacks[id].frame;
        if (frame < frame_count && made[frame].count > 0)
            good = make_stacks(t, id, &made[frame], &room);
    }
    free(made);
    return good;
}
