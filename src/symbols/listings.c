/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/listings.c - see listings.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/listings.h"

#define SIZE_MOST ((size_t)1 << 28)
#define NAME_MOST 4096u

struct line {
    const char *at, *end;
};

/* False: no line is left. */
static bool next_line(struct line *line, const char **text, const char *end)
{
    if (*text == end)
        return false;
    const char *stop = memchr(*text, '\n', (size_t)(end - *text));
    line->at = *text;
    line->end = stop ? stop : end;
    *text = stop ? stop + 1 : end;
    return true;
}

/* A hexadecimal number, with or without 0x, and a space after it. */
static bool take_hex(struct line *line, uint64_t *number)
{
    const char *at = line->at;
    unsigned    digits = 0;

    *number = 0;
    if (line->end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    for (; at < line->end && digits <= 16; at++, digits++) {
        char c = *at;
        if (c >= '0' && c <= '9')
            *number = *number << 4 | (uint64_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *number = *number << 4 | (uint64_t)((c | 32) - 'a' + 10);
        else
            break;
    }
    if (digits == 0 || digits > 16 || at == line->end || (*at != ' ' && *at != '\t'))
        return false;
    line->at = at + 1;
    return true;
}

static const char *keep_name(struct snd_symtab *symtab, const struct line *line)
{
    size_t length = (size_t)(line->end - line->at);

    return snd_arena_copy(&symtab->arena, line->at, length < NAME_MOST ? length : NAME_MOST);
}

bool snd_perfmap_parse(struct snd_symtab *symtab, const char *text, size_t size)
{
    const char *end = text + size;
    struct line line;
    uint64_t    start, length;

    while (next_line(&line, &text, end)) {
        if (!take_hex(&line, &start) || !take_hex(&line, &length) || line.at == line.end ||
            length == 0 || length > UINT64_MAX - start)
            continue;
        struct snd_symtab_entry entry = { keep_name(symtab, &line), start, start + length, true,
                                          0 };
        if (!entry.name || !snd_symtab_put(symtab, entry))
            return false;
    }
    return snd_symtab_sort_latest(symtab);
}

/* Functions alone; "t" and "w" are local and weak ones. */
bool snd_kallsyms_parse(struct snd_symtab *symtab, const char *text, size_t size)
{
    const char *end = text + size;
    struct line line;
    uint64_t    start;

    while (next_line(&line, &text, end)) {
        if (!take_hex(&line, &start) || start == 0 || line.end - line.at < 3 || line.at[1] != ' ' ||
            !strchr("tTwW", line.at[0]))
            continue;
        uint8_t preference = line.at[0] == 'T' ? 2 : line.at[0] == 't' ? 0 : 1;
        line.at += 2;
        const char *tab = memchr(line.at, '\t', (size_t)(line.end - line.at));
        line.end = tab ? tab : line.end;
        struct snd_symtab_entry entry = { keep_name(symtab, &line), start, UINT64_MAX, false,
                                          preference };
        if (!entry.name || !snd_symtab_put(symtab, entry))
            return false;
    }
    return snd_symtab_sort(symtab);
}

/* The size of a file of /proc is not known before it is read. */
bool snd_listing_read(struct snd_symtab *symtab, const char *path,
                      bool (*parse)(struct snd_symtab *, const char *, size_t))
{
    int    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    size_t size = 0, room = 0;
    char  *text = NULL;
    bool   ok = true;

    while (fd >= 0 && size < SIZE_MOST) {
        if (size == room) {
            room = room ? room * 2 : 1 << 16;
            char *larger = realloc(text, room);
            ok = larger != NULL;
            if (!ok)
                break;
            text = larger;
        }
        ssize_t n = read(fd, text + size, room - size);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        size += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    ok = ok && parse(symtab, text ? text : "", size);
    free(text);
    return ok;
}
