/* SPDX-License-Identifier: Apache-2.0 */
/* File names of a Python program: which folder they are shown from, which are libraries. */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "read/said/trace_metadata.h"
#include "view/samples/sample_tree_text.h"

/* Adds the strings of a JSON list, escapes of quotes and backslashes undone. False: no memory. */
static bool add_strings(struct snd_pypaths *p, struct sonde_text json, struct sonde_text **list,
                        uint32_t *count, uint32_t *room)
{
    const char *c = json.bytes, *end = json.bytes + json.length;
    char       *text = snd_arena_take(&p->arena, json.length + 1);

    while (text && (c = memchr(c, '"', (size_t)(end - c))) != NULL) {
        char *start = text;
        if (!snd_grow(list, room, *count, sizeof **list))
            return false;
        for (c++; c < end && *c != '"'; c++) {
            c += *c == '\\' && c + 1 < end;
            *text++ = *c;
        }
        (*list)[(*count)++] = (struct sonde_text){ start, (size_t)(text - start) };
        if (c++ >= end)
            break;
    }
    return text != NULL;
}

/* Processes of one program say the same: what the one before said is not read again. */
static bool add_metadata(struct snd_pypaths *p, const struct sonde_trace *trace)
{
    const char *folders_before = NULL, *prefixes_before = NULL;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        struct sonde_text folders, prefixes;
        snd_meta_find(trace, i, SND_META_PYTHON_SYS_PREFIXES, &prefixes);
        if (!snd_meta_find(trace, i, SND_META_PYTHON_SYS_PATH, &folders) || folders.length == 0)
            snd_meta_find(trace, i, SND_META_PYTHON_PREFIXES, &folders);
        if (folders.bytes != folders_before &&
            !add_strings(p, folders, &p->folders, &p->folder_count, &p->folder_room))
            return false;
        if (prefixes.bytes != prefixes_before &&
            !add_strings(p, prefixes, &p->prefixes, &p->prefix_count, &p->prefix_room))
            return false;
        folders_before = folders.bytes;
        prefixes_before = prefixes.bytes;
    }
    return true;
}

void snd_pypaths_release(struct snd_pypaths *p)
{
    free(p->folders);
    free(p->prefixes);
    snd_arena_release(&p->arena);
    memset(p, 0, sizeof *p);
}

/* Whether `file` is in `folder`, or in one below it. */
static bool lies_in(struct sonde_text file, struct sonde_text folder)
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

bool snd_pypaths_is_library(const struct snd_pypaths *p, struct sonde_text file)
{
    for (uint32_t i = 0; i < p->prefix_count; i++)
        if (lies_in(file, p->prefixes[i]))
            return true;
    /* Where nobody said: as libraries are installed. */
    return p->prefix_count == 0 && (has(file, "/lib/python3") || has(file, "/site-packages/"));
}

/* ------------------------------------------------------------------ the root */

static size_t folder_length(struct sonde_text file)
{
    const char *slash = memrchr(file.bytes, '/', file.length);

    return slash ? (size_t)(slash - file.bytes) : 0;
}

/* The folder that two have in common. */
static struct sonde_text find_common(struct sonde_text x, struct sonde_text y)
{
    size_t at = 0, end = 0;

    for (; at < x.length && at < y.length && x.bytes[at] == y.bytes[at]; at++)
        if (x.bytes[at] == '/')
            end = at;
    if ((at == x.length && (at == y.length || y.bytes[at] == '/')) ||
        (at == y.length && x.bytes[at] == '/'))
        end = at;
    return (struct sonde_text){ x.bytes, end };
}

/*
 * The folder that all files of the program itself lie in; the folder of sys.path around it, where
 * there is one, so that names are those by which they are imported.
 */
static void find_root(struct snd_pypaths *p, const struct sonde_samples *samples)
{
    const struct sonde_sample_node *n;
    struct sonde_text               found = { NULL, 0 }, best = { NULL, 0 };

    for (size_t i = 1; (n = sonde_samples_node(samples, i)) != NULL; i++) {
        if (n->is_native || n->file.length == 0 || n->file.bytes[0] != '/' ||
            snd_pypaths_is_library(p, n->file))
            continue;
        struct sonde_text folder = { n->file.bytes, folder_length(n->file) };
        found = found.bytes ? find_common(found, folder) : folder;
    }
    for (uint32_t i = 0; found.length > 0 && i < p->folder_count; i++) {
        struct sonde_text folder = p->folders[i];
        bool              same = folder.length == found.length &&
                    memcmp(folder.bytes, found.bytes, found.length) == 0;
        if ((same || lies_in(found, folder)) && folder.length > best.length)
            best = folder;
    }
    p->root = best.length > 0 ? best : found;
}

bool snd_pypaths_read(struct snd_pypaths *p, const struct sonde_trace *trace,
                      const struct sonde_samples *samples)
{
    memset(p, 0, sizeof *p);
    if (!add_metadata(p, trace)) {
        snd_pypaths_release(p);
        return false;
    }
    find_root(p, samples);
    return true;
}

/* -------------------------------------------------------------- short names */

/* Where nobody said: as libraries are installed. Where in `file` the name of one begins; 0: none. */
static size_t find_installed(struct sonde_text file)
{
    static const char *const folders[] = { "/site-packages/", "/dist-packages/", "/lib/python3" };

    for (size_t i = 0; file.length > 0 && i < SND_COUNT_OF(folders); i++) {
        const char *at = memmem(file.bytes, file.length, folders[i], strlen(folders[i]));
        const char *end = file.bytes + file.length;
        at = at ? memchr(at + strlen(folders[i]) - 1, '/',
                         (size_t)(end - at) - strlen(folders[i]) + 1)
                : NULL;
        if (at)
            return (size_t)(at - file.bytes);
    }
    return 0;
}

/* Where in `file` the name begins by which a library is imported; 0: it is shown whole. */
static size_t find_import(const struct snd_pypaths *p, struct sonde_text file)
{
    size_t best = 0;

    for (uint32_t i = 0; i < p->folder_count; i++)
        if (p->folders[i].length > best && lies_in(file, p->folders[i]))
            best = p->folders[i].length;
    return p->folder_count > 0 ? best : find_installed(file);
}

void snd_pypaths_shorten(const struct snd_pypaths *p, struct sonde_text file,
                         struct sonde_buffer *out)
{
    size_t from = 0;

    if (file.length == 0)
        return; /* it may have no bytes to point to */
    if (file.bytes[0] != '/')
        from = 0;
    else if (snd_pypaths_is_library(p, file))
        from = find_import(p, file);
    else if (lies_in(file, p->root))
        from = p->root.length;
    while (from > 0 && from < file.length && file.bytes[from] == '/')
        from++;
    snd_buf_put(out, file.bytes + from, file.length - from);
}
