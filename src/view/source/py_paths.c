/* SPDX-License-Identifier: Apache-2.0 */
/* File names of a Python program: which folder they are shown from, which are libraries. */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "read/said/trace_metadata.h"
#include "view/samples/sample_tree_text.h"

/* Processes of one program say the same: what the one before said is not read again. */
static bool add_folders(struct snd_pypaths *p, const struct sonde_trace *trace)
{
    const char *before = NULL;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        struct sonde_text folders;
        if (!snd_meta_find(trace, i, SND_META_PYTHON_SYS_PATH, &folders) || folders.length == 0)
            snd_meta_find(trace, i, SND_META_PYTHON_PREFIXES, &folders);
        if (folders.bytes != before &&
            !snd_path_list_add(&p->folders, &p->libraries.arena, folders))
            return false;
        before = folders.bytes;
    }
    return true;
}

void snd_pypaths_release(struct snd_pypaths *p)
{
    free(p->folders.items);
    snd_library_paths_release(&p->libraries);
    memset(p, 0, sizeof *p);
}

bool snd_pypaths_is_library(const struct snd_pypaths *p, struct sonde_text file)
{
    return snd_library_paths_has(&p->libraries, file);
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
    for (uint32_t i = 0; found.length > 0 && i < p->folders.count; i++) {
        struct sonde_text folder = p->folders.items[i];
        bool              same = folder.length == found.length &&
                    memcmp(folder.bytes, found.bytes, found.length) == 0;
        if ((same || snd_path_lies_in(found, folder)) && folder.length > best.length)
            best = folder;
    }
    p->root = best.length > 0 ? best : found;
}

bool snd_pypaths_read(struct snd_pypaths *p, const struct sonde_trace *trace,
                      const struct sonde_samples *samples)
{
    memset(p, 0, sizeof *p);
    if (!snd_library_paths_read(&p->libraries, trace) || !add_folders(p, trace)) {
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

    for (uint32_t i = 0; i < p->folders.count; i++)
        if (p->folders.items[i].length > best && snd_path_lies_in(file, p->folders.items[i]))
            best = p->folders.items[i].length;
    return p->folders.count > 0 ? best : find_installed(file);
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
    else if (snd_path_lies_in(file, p->root))
        from = p->root.length;
    while (from > 0 && from < file.length && file.bytes[from] == '/')
        from++;
    snd_buf_put(out, file.bytes + from, file.length - from);
}
