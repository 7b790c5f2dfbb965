/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/addresses.c - frames of native code that are known by their address alone.
 *
 * Without a symbol such a frame is named after its file: "libm.so.6+0x1c". Code that a compiler made
 * at run time and told nobody of is one thing, wherever it lies.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/compare.h"
#include "read/reader.h"

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
