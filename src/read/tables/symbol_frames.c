/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/symbol_frames.c - frames of native code as the functions at their address.
 *
 * A frame with a symbol (SYMBOL) becomes the innermost of its functions; the functions that it is
 * inlined into become frames of their own, and every stack that has the frame gets them between it and
 * its caller. Frames and stacks that are made here have ids after those of the file. So no view
 * and no export knows of addresses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/compare.h"
#include "read/reader.h"

/* -------------------------------------------- frames known by their address */

/*
 * Without a symbol such a frame is named after its file: "libm.so.6+0x1c". Code generated at run time without a
 * name is one row, whatever its address.
 */

#define SHOWN_MAX 200u /* bytes of a file's name */

static bool is_address(const struct snd_frame_record *frame)
{
    return frame->function == 0 && frame->flags & SND_FRAME_NATIVE &&
           (frame->file != 0 || frame->address != 0);
}

/* The last part of the path of a frame's file. */
static struct snd_text base_name(const struct sonde_trace *trace, const struct snd_process *process,
                                 uint32_t file)
{
    uint32_t        name = file ? snd_name_of(process, file) : UINT32_MAX;
    struct snd_text text = { "(unknown)", 9 };

    if (name == UINT32_MAX)
        return text;
    text = trace->names.items[name];
    for (size_t i = text.length; i-- > 0;)
        if (text.bytes[i] == '/' && i + 1 < text.length)
            return (struct snd_text){ text.bytes + i + 1, text.length - i - 1 };
    return text;
}

static bool has_ends(struct snd_text text, const char *begin, const char *end)
{
    return text.length >= strlen(begin) + strlen(end) &&
           snd_begins_with_at(text.bytes, text.length, begin) &&
           snd_ends_with_at(text.bytes, text.length, end);
}

/* What the address of a frame says nothing of; NULL: its file and the address name it. */
static const char *find_class(struct snd_text file)
{
    if (has_ends(file, "perf-", ".map") || has_ends(file, "[anon", "]"))
        return "[unnamed JIT code]";
    return has_ends(file, "[unknown]", "") ? "[unknown]" : NULL;
}

bool snd_addresses_name(struct sonde_trace *trace, struct snd_process *process)
{
    struct snd_tables *t = &process->tables;
    char               shown[SHOWN_MAX + 32];

    for (uint32_t i = 0; i < t->symbol_count; i++)
        t->symbols[i].frame = snd_late_replace(t, SND_REC_FRAME, t->symbols[i].frame);
    if (!snd_symbols_expand(process))
        return false;
    for (uint32_t i = 1; i < t->frame_count; i++) {
        if (!is_address(&t->frames[i]))
            continue;
        struct snd_text file = base_name(trace, process, t->frames[i].file);
        const char *class = find_class(file);
        size_t kept = file.length < SHOWN_MAX ? file.length : SHOWN_MAX;
        memcpy(shown, file.bytes, kept);
        int length = class ? snprintf(shown, sizeof shown, "%s", class)
                           : (int)kept + snprintf(shown + kept, sizeof shown - kept, "+0x%" PRIx64,
                                                  t->frames[i].address);
        if (!snd_table_add_string(trace, process, shown, (size_t)length, &t->frames[i].function))
            return false;
    }
    return true;
}

#define MADE_MOST ((uint32_t)1 << 24) /* stacks: beyond, inlined functions stand alone */

/* The first frame that was made for a frame, and how many: from the inner to the outer function. */
struct made {
    uint32_t first, count;
};

static void fill_frame(struct snd_frame_record *frame, const struct snd_symbol_entry *entry,
                       const struct snd_frame_record *at)
{
    *frame = *at;
    frame->reserved = at->file; /* the mapped object file that the address is in */
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
