/* SPDX-License-Identifier: Apache-2.0 */
#include "read/said/library_paths.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/compare.h"
#include "base/count_of.h"
#include "base/data/map.h"
#include "read/said/trace_metadata.h"

bool snd_path_list_add(struct snd_path_list *list, struct snd_arena *arena, struct sonde_text json)
{
    const char *c = json.bytes, *end = json.bytes + json.length;
    char       *text = snd_arena_take(arena, json.length + 1);

    while (text && (c = memchr(c, '"', (size_t)(end - c))) != NULL) {
        char *start = text;
        if (!snd_grow(&list->items, &list->room, list->count, sizeof *list->items))
            return false;
        for (c++; c < end && *c != '"'; c++) {
            c += *c == '\\' && c + 1 < end;
            *text++ = *c;
        }
        list->items[list->count++] = (struct sonde_text){ start, (size_t)(text - start) };
        if (c++ >= end)
            break;
    }
    return text != NULL;
}

/* Processes of one program say the same: what the one before said is not read again. */
bool snd_library_paths_read(struct snd_library_paths *paths, const struct sonde_trace *trace)
{
    const char *before = NULL;

    memset(paths, 0, sizeof *paths);
    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        struct sonde_text prefixes;
        snd_meta_find(trace, i, SND_META_PYTHON_SYS_PREFIXES, &prefixes);
        if (prefixes.bytes != before &&
            !snd_path_list_add(&paths->prefixes, &paths->arena, prefixes))
            return false;
        before = prefixes.bytes;
    }
    return true;
}

void snd_library_paths_release(struct snd_library_paths *paths)
{
    free(paths->prefixes.items);
    snd_arena_release(&paths->arena);
    memset(paths, 0, sizeof *paths);
}

bool snd_path_lies_in(struct sonde_text file, struct sonde_text folder)
{
    while (folder.length > 1 && folder.bytes[folder.length - 1] == '/')
        folder.length--;
    return folder.length > 0 && file.length > folder.length &&
           memcmp(file.bytes, folder.bytes, folder.length) == 0 &&
           (folder.bytes[folder.length - 1] == '/' || file.bytes[folder.length] == '/');
}

static bool has(struct sonde_text text, const char *part)
{
    return memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

bool snd_library_paths_has(const struct snd_library_paths *paths, struct sonde_text file)
{
    for (uint32_t i = 0; i < paths->prefixes.count; i++)
        if (snd_path_lies_in(file, paths->prefixes.items[i]))
            return true;
    /* Where nobody said: as libraries are installed. */
    return paths->prefixes.count == 0 &&
           (has(file, "/lib/python3") || has(file, "/site-packages/"));
}

bool snd_library_paths_own(const struct snd_library_paths *paths, const struct sonde_frame *frame,
                           bool is_native)
{
    /* Debug information of distributions has paths of the machine that built them, many of them relative. */
    static const char *const foreign[] = { "/usr/", "/lib", "/build/", "./", "../" };

    if (frame->line == 0 || frame->file.length == 0 || snd_library_paths_has(paths, frame->file) ||
        has(frame->file, "/site-packages/"))
        return false;
    if (!is_native)
        return !snd_begins_with_at(frame->file.bytes, frame->file.length, "<frozen ") &&
               frame->file.bytes[0] != '~';
    for (size_t i = 0; i < SND_COUNT_OF(foreign); i++)
        if (snd_begins_with_at(frame->file.bytes, frame->file.length, foreign[i]))
            return false;
    return true;
}
