/* SPDX-License-Identifier: Apache-2.0 */
#include "import/text/window.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/text/scan.h"
#include "import/text/unzip.h"

#define ROOM_FIRST ((size_t)256 << 10)
#define ROOM_MOST ((size_t)4 << 20) /* an event that is longer is passed over */
#define RAW_ROOM ((size_t)128 << 10)

bool snd_window_may_be(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    size_t               i = 0;

    if (length >= 2 && at[0] == 0x1f && at[1] == 0x8b)
        return true;
    if (length >= 3 && at[0] == 0xef && at[1] == 0xbb && at[2] == 0xbf)
        i = 3;
    while (i < length && (at[i] == ' ' || at[i] == '\n' || at[i] == '\r' || at[i] == '\t'))
        i++;
    return i < length && (at[i] == '{' || at[i] == '[');
}

/* Bytes of the file, up to `room`; 0 at its end. */
static size_t read_file(struct snd_window *w, void *to, size_t room)
{
    if (w->fd < 0) {
        size_t n = room < w->memory_left ? room : w->memory_left;
        if (n > 0)
            memcpy(to, w->memory, n);
        w->memory += n;
        w->memory_left -= n;
        return n;
    }
    ssize_t got = read(w->fd, to, room);
    return got > 0 ? (size_t)got : 0;
}

/* More text; 0 at the end. */
static size_t take(struct snd_window *w, char *to, size_t room)
{
    if (!w->unzip) {
        size_t n = w->raw_length - w->raw_at;
        if (n == 0)
            return read_file(w, to, room);
        n = n < room ? n : room;
        memcpy(to, w->raw + w->raw_at, n);
        w->raw_at += n;
        return n;
    }
    for (;;) {
        size_t               got = 0;
        enum snd_unzip_state state = snd_unzip_run(w->unzip, w->raw, w->raw_length, &w->raw_at, to,
                                                   room, &got);
        if (got > 0)
            return got;
        if (state == SND_UNZIP_BAD) {
            w->broken = true;
            return 0;
        }
        w->raw_length = read_file(w, w->raw, RAW_ROOM);
        w->raw_at = 0;
        if (w->raw_length == 0) {
            w->broken = state != SND_UNZIP_BETWEEN;
            return 0;
        }
    }
}

static enum sonde_status begin(struct snd_window *w, struct sonde_error *err)
{
    w->raw = malloc(RAW_ROOM);
    w->text = malloc(ROOM_FIRST + SND_SCAN_PAD);
    w->room = ROOM_FIRST;
    if (!w->raw || !w->text) {
        snd_window_close(w);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for reading a trace");
    }
    memset(w->text, 0, SND_SCAN_PAD);
    w->raw_length = read_file(w, w->raw, RAW_ROOM);
    if (w->raw_length >= 2 && w->raw[0] == 0x1f && w->raw[1] == 0x8b) {
        enum sonde_status status = snd_unzip_new(&w->unzip, err);
        if (status != SONDE_OK) {
            snd_window_close(w);
            return status;
        }
    } else if (w->raw_length >= 3 && memcmp(w->raw, "\xef\xbb\xbf", 3) == 0) {
        w->raw_at = 3;
    }
    return SONDE_OK;
}

enum sonde_status snd_window_open(struct snd_window *window, int fd, struct sonde_error *err)
{
    *window = (struct snd_window){ .fd = fd };
    return begin(window, err);
}

enum sonde_status snd_window_over(struct snd_window *window, const void *text, size_t length,
                                  struct sonde_error *err)
{
    *window = (struct snd_window){ .fd = -1, .memory = text, .memory_left = length };
    return begin(window, err);
}

void snd_window_close(struct snd_window *w)
{
    snd_unzip_free(w->unzip);
    free(w->raw);
    free(w->text);
    *w = (struct snd_window){ .fd = -1 };
}

bool snd_window_move(struct snd_window *w, size_t from)
{
    if (w->ended)
        return false;
    if (from > 0) {
        memmove(w->text, w->text + from, w->length - from);
        w->length -= from;
        w->offset += from;
    }
    size_t before = w->length;
    while (w->length < w->room && !w->ended) {
        size_t got = take(w, w->text + w->length, w->room - w->length);
        w->length += got;
        w->ended = got == 0;
    }
    memset(w->text + w->length, 0, SND_SCAN_PAD);
    return w->length > before;
}

bool snd_window_grow(struct snd_window *w)
{
    if (w->room >= ROOM_MOST)
        return false;
    char *text = realloc(w->text, w->room * 2 + SND_SCAN_PAD);
    if (!text)
        return false;
    w->text = text;
    w->room *= 2;
    return true;
}
