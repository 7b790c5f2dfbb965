/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/fit_lines.h"

#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/text/utf8.h"

/* Columns of a character: two of East Asian ones and pictures, none of accents put on others. */
static size_t columns_of(uint32_t point)
{
    static const struct {
        uint32_t first, last;
        size_t   columns;
    } ranges[] = {
        { 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },   { 0x2e80, 0xa4cf, 2 },
        { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },   { 0xfe30, 0xfe6f, 2 },
        { 0xff00, 0xff60, 2 },   { 0x1f300, 0x1f64f, 2 }, { 0x1f680, 0x1f6ff, 2 },
        { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
    };

    for (size_t i = 0; i < SND_COUNT_OF(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return ranges[i].columns;
    return 1;
}

/* The bytes of an escape sequence (ESC [ .. letter) at the begin of `text`; 0: there is none. */
static size_t escape_length(const char *text, size_t length)
{
    size_t at = 2;

    if (length < 3 || text[0] != '\033' || text[1] != '[')
        return 0;
    while (at < length && (text[at] < '@' || text[at] > '~'))
        at++;
    return at < length ? at + 1 : length;
}

/* Appends what fits in `width` columns, and every escape sequence; returns the columns of all. */
static size_t put_columns(const char *text, size_t length, size_t width, const char *mark,
                          struct sonde_buffer *out)
{
    size_t used = 0;
    bool   marked = false;

    for (size_t at = 0, step; at < length; at += step) {
        uint32_t point = 0;
        step = escape_length(text + at, length - at);
        if (step > 0) {
            snd_buf_put(out, text + at, step);
            continue;
        }
        step = snd_utf8_next(text + at, length - at, &point);
        step = step ? step : 1;
        size_t columns = columns_of(point);
        if (used + columns <= width)
            snd_buf_put(out, text + at, step);
        else if (!marked)
            snd_buf_text(out, mark);
        marked |= used + columns > width;
        used += columns;
    }
    return used;
}

/*
 * The length of a line without the blanks after its last column, which have no ink. They may have an
 * escape sequence after them, that ends a colour: the blanks are taken out before it.
 */
static size_t trim(struct sonde_buffer *line)
{
    char  *text = line->bytes;
    size_t length = line->length, last = length;

    if (length > 0 && text[length - 1] == 'm')
        while (last > 0 && text[--last] != '\033')
            ;
    if (last == length || escape_length(text + last, length - last) != length - last)
        last = length;
    size_t end = last;
    while (end > 0 && text[end - 1] == ' ')
        end--;
    memmove(text + end, text + last, length - last);
    return length - (last - end);
}

static bool put_line(struct snd_line_fit *fit, const char *end)
{
    const char *text = snd_buf_string(&fit->line), *mark = fit->ascii ? "..." : "…";
    size_t      length = fit->line.length, room = fit->width;

    snd_buf_clear(&fit->shown);
    if (put_columns(text, length, room, "", &fit->shown) > room) {
        length = trim(&fit->line);
        snd_buf_clear(&fit->shown);
    }
    if (fit->shown.length == 0 && put_columns(text, length, room, "", &fit->shown) > room) {
        size_t marks = snd_utf8_count(mark, strlen(mark));
        fit->was_cut = true;
        snd_buf_clear(&fit->shown);
        put_columns(text, length, room > marks ? room - marks : 0, mark, &fit->shown);
    }
    snd_buf_text(&fit->shown, end);
    snd_buf_clear(&fit->line);
    return !fit->line.failed && !fit->shown.failed &&
           fit->to->write(fit->to->user, snd_buf_string(&fit->shown), fit->shown.length);
}

static bool write_fitting(void *user, const void *data, size_t length)
{
    struct snd_line_fit *fit = user;
    const char          *at = data, *end = at + length;

    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        snd_buf_put(&fit->line, at, (size_t)((stop ? stop : end) - at));
        if (!stop)
            break;
        if (!put_line(fit, "\n"))
            return false;
        at = stop + 1;
    }
    return !fit->line.failed;
}

void snd_fit_init(struct snd_line_fit *fit, const struct sonde_sink *to, uint32_t width, bool ascii)
{
    *fit = (struct snd_line_fit){ .to = to, .width = width < 20 ? 20 : width, .ascii = ascii };
    fit->sink = (struct sonde_sink){ write_fitting, fit };
}

bool snd_fit_finish(struct snd_line_fit *fit)
{
    bool done = fit->line.length == 0 || put_line(fit, "");

    if (done && fit->was_cut) {
        snd_buf_clear(&fit->shown);
        snd_buf_format(&fit->shown,
                       "Lines are truncated to %u columns; --wide shows all of them.\n",
                       (unsigned)fit->width);
        done = fit->to->write(fit->to->user, snd_buf_string(&fit->shown), fit->shown.length);
    }
    sonde_buffer_release(&fit->line);
    sonde_buffer_release(&fit->shown);
    return done;
}

/* ---------------------------------------------------------------------- paths */

/* Where the end of the path begins that has at most `room` characters: at a slash, if there is one. */
static size_t find_tail(const char *path, size_t length, size_t room)
{
    size_t      left = snd_utf8_count(path, length), at = 0;
    const char *slash = NULL;

    for (uint32_t point; left > room && at < length; left--) {
        size_t step = snd_utf8_next(path + at, length - at, &point);
        at += step ? step : 1;
    }
    if (at < length)
        slash = memchr(path + at, '/', length - at);
    return slash ? (size_t)(slash - path) : at;
}

void snd_fit_path(struct sonde_buffer *text, size_t path, size_t room, const char *mark)
{
    const char         *bytes = snd_buf_string(text);
    size_t              others = snd_utf8_count(bytes + path, text->length - path);
    struct sonde_buffer fitting = { 0 };

    others += snd_utf8_count(mark, strlen(mark));
    size_t tail = find_tail(bytes, path, room > others ? room - others : 0);
    snd_buf_text(&fitting, mark);
    snd_buf_put(&fitting, bytes + tail, text->length - tail);
    sonde_buffer_release(text);
    *text = fitting;
}
