/* SPDX-License-Identifier: Apache-2.0 */
/* File names of a Python program: which folder they are shown from, which are libraries. */
#include <stdlib.h>
#include <string.h>

#include "view/sampletree.h"

/* The value of a key of the process; empty when it was not told. */
static struct sonde_text find_metadata(const struct sonde_trace *trace, uint32_t process,
                                       const char *wanted)
{
    struct sonde_text key, value;

    for (uint32_t n = 0; sonde_trace_metadata(trace, process, n, &key, &value); n++)
        if (key.length == strlen(wanted) && memcmp(key.bytes, wanted, key.length) == 0)
            return value;
    return (struct sonde_text){ "", 0 };
}

static size_t count_strings(struct sonde_text json)
{
    size_t quotes = 0;

    for (size_t i = 0; i < json.length; i++)
        quotes += json.bytes[i] == '"';
    return quotes / 2;
}

/* The strings of a JSON list, escapes of quotes and backslashes undone, copied to *at. */
static size_t take_strings(struct sonde_text json, struct sonde_text *list, char **at)
{
    const char *c = json.bytes, *end = json.bytes + json.length;
    size_t      count = 0;

    while ((c = memchr(c, '"', (size_t)(end - c))) != NULL) {
        char *start = *at;
        for (c++; c < end && *c != '"'; c++) {
            c += *c == '\\' && c + 1 < end;
            *(*at)++ = *c;
        }
        list[count++] = (struct sonde_text){ start, (size_t)(*at - start) };
        *(*at)++ = '\0';
        if (c++ >= end)
            break;
    }
    return count;
}

bool snd_pypaths_read(struct snd_pypaths *p, const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text folders = find_metadata(trace, process, "python.sys_path");
    struct sonde_text prefixes = find_metadata(trace, process, "python.sys_prefixes");

    memset(p, 0, sizeof *p);
    if (folders.length == 0)
        folders = find_metadata(trace, process, "python.prefixes");
    p->bytes = malloc(folders.length + prefixes.length + 2);
    p->folders = calloc(count_strings(folders) + 2, sizeof *p->folders);
    p->prefixes = calloc(count_strings(prefixes) + 2, sizeof *p->prefixes);
    if (!p->bytes || !p->folders || !p->prefixes) {
        snd_pypaths_release(p);
        return false;
    }
    char *at = p->bytes;
    p->folder_count = take_strings(folders, p->folders, &at);
    p->prefix_count = take_strings(prefixes, p->prefixes, &at);
    return true;
}

void snd_pypaths_release(struct snd_pypaths *p)
{
    free(p->folders);
    free(p->prefixes);
    free(p->bytes);
    memset(p, 0, sizeof *p);
}

static bool has(struct sonde_text text, const char *part)
{
    return memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

bool snd_pypaths_is_library(const struct snd_pypaths *p, struct sonde_text file)
{
    for (size_t i = 0; i < p->prefix_count; i++)
        if (p->prefixes[i].length > 0 && file.length >= p->prefixes[i].length &&
            memcmp(file.bytes, p->prefixes[i].bytes, p->prefixes[i].length) == 0)
            return true;
    /* Where nobody said: as libraries are installed. */
    return p->prefix_count == 0 && (has(file, "/lib/python3") || has(file, "/site-packages/"));
}

/* ------------------------------------------------------------ short names */

static size_t count_parts(const char *path, size_t length)
{
    size_t parts = 0;

    for (size_t i = 0; i < length; i++)
        parts += path[i] != '/' && (i == 0 || path[i - 1] == '/');
    return parts;
}

/* The next part of a path at *at; false at its end. */
static bool next_part(struct sonde_text path, size_t *at, struct sonde_text *part)
{
    while (*at < path.length && path.bytes[*at] == '/')
        ++*at;
    size_t start = *at;
    while (*at < path.length && path.bytes[*at] != '/')
        ++*at;
    *part = (struct sonde_text){ path.bytes + start, *at - start };
    return part->length > 0;
}

/* How many parts the two begin with alike, and where in `file` these end. */
static size_t count_common(struct sonde_text file, struct sonde_text folder, size_t *end)
{
    struct sonde_text x, y;
    size_t            a = 0, b = 0, common = 0;

    *end = 0;
    while (next_part(file, &a, &x) && next_part(folder, &b, &y) && x.length == y.length &&
           memcmp(x.bytes, y.bytes, x.length) == 0) {
        common++;
        *end = a;
    }
    return common;
}

/* Where nobody said: as libraries are installed. Where in `file` the name of one begins; 0: none. */
static size_t find_installed(struct sonde_text file)
{
    static const char *const folders[] = { "/site-packages/", "/dist-packages/", "/lib/python3" };

    for (size_t i = 0; file.length > 0 && i < sizeof folders / sizeof folders[0]; i++) {
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

void snd_pypaths_shorten(const struct snd_pypaths *p, struct sonde_text file,
                         struct sonde_buffer *out)
{
    size_t least = count_parts(file.bytes, file.length) + 1, up = 0, from = 0, end;
    bool   found = false;

    for (size_t i = 0; file.length > 0 && file.bytes[0] == '/' && i < p->folder_count; i++) {
        struct sonde_text folder = p->folders[i];
        if (folder.length == 0 || folder.bytes[0] != '/')
            continue;
        size_t common = count_common(file, folder, &end);
        size_t above = count_parts(folder.bytes, folder.length) - common;
        size_t parts = above + count_parts(file.bytes + end, file.length - end);
        if (parts < least) {
            least = parts;
            up = above;
            from = end;
            found = true;
        }
    }
    if (p->folder_count == 0) {
        from = find_installed(file);
        found = from > 0;
    }
    while (found && from < file.length && file.bytes[from] == '/')
        from++;
    for (size_t i = 0; i < up; i++)
        snd_buf_text(out, "../");
    snd_buf_put(out, file.bytes + from, file.length - from);
}
