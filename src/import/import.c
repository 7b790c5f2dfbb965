/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/files/folders.h"
#include "base/text/buf.h"
#include "import/map/importer.h"

bool snd_import_may_be(const void *bytes, size_t length)
{
    return snd_window_may_be(bytes, length);
}

/* Where reading stands: a place of the window. */
struct place {
    struct snd_importer *im;
    size_t               at;
    bool                 in_object; /* of the file: events are a member of it */
    uint64_t             bad;       /* byte of the first thing that is not JSON, plus one */
};

static const char *here(const struct place *p)
{
    return p->im->window.text + p->at;
}

static const char *end_of(const struct place *p)
{
    return p->im->window.text + p->im->window.length;
}

static void note_bad(struct place *p)
{
    if (p->bad == 0)
        p->bad = p->im->window.offset + p->at + 1;
}

/* More text behind what lies here, or room for it. False: there is none. */
static bool need_more(struct place *p)
{
    struct snd_window *w = &p->im->window;

    if (w->ended)
        return false;
    if (p->at == 0 && w->length == w->room && !snd_window_grow(w))
        return false;
    bool more = snd_window_move(w, p->at);
    p->at = 0;
    return more;
}

/* The next byte that is no space; 0 at the end. */
static char next_byte(struct place *p)
{
    for (;;) {
        const char *at = snd_scan_space(here(p));
        p->at = (size_t)(at - p->im->window.text);
        if (at < end_of(p))
            return *at;
        p->at = p->im->window.length;
        if (!need_more(p))
            return 0;
    }
}

/* ------------------------------------------------------------------------- recovery */

/* Whether an event may begin with the brace at `at`: a key of one follows, and no colon is before it. */
static bool looks_like_event(const char *text, const char *at)
{
    static const char *const keys[] = { "\"ph\"",  "\"name\"", "\"cat\"",  "\"pid\"",
                                        "\"tid\"", "\"ts\"",   "\"args\"", "\"id\"" };
    const char              *before = at, *key = snd_scan_space(at + 1);

    while (before > text &&
           (before[-1] == ' ' || before[-1] == '\n' || before[-1] == '\r' || before[-1] == '\t'))
        before--;
    if (before > text && before[-1] == ':')
        return false;
    for (size_t i = 0; i < SND_COUNT_OF(keys); i++)
        if (strncmp(key, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

/* Goes on to what may be the next event. False: there is none. */
static bool find_event(struct place *p)
{
    struct snd_window *w = &p->im->window;

    for (size_t at = p->at + 1;;) {
        const char *brace = at < w->length ? memchr(w->text + at, '{', w->length - at) : NULL;
        if (brace && end_of(p) - brace < 64 && !w->ended) {
            p->at = (size_t)(brace - w->text); /* what follows it is not there yet */
            if (need_more(p)) {
                at = 0;
                continue;
            }
            brace = here(p);
        }
        if (brace && looks_like_event(w->text, brace)) {
            p->at = (size_t)(brace - w->text);
            return true;
        }
        if (brace) {
            at = (size_t)(brace - w->text) + 1;
            continue;
        }
        p->at = w->length;
        if (!need_more(p))
            return false;
        at = 0;
    }
}

/* --------------------------------------------------------------------------- events */

/* What came of an event whose text is damaged: it counts if its name and time are known. */
static void save_event(struct snd_importer *im)
{
    struct snd_trace_event *e = &im->event;

    if (e->phase != 0 && e->ts.length > 0 && e->name.length > 0 &&
        (e->phase != 'X' || e->duration.length > 0)) {
        e->odd = true;
        snd_map_event(im);
    } else {
        im->events++;
        im->lost++;
    }
}

/* An event whose brace is here. False: the file ends in it. */
static bool read_event(struct place *p)
{
    struct snd_importer *im = p->im;

    for (;;) {
        const char *after = snd_event_parse(&im->event, &im->index, here(p) + 1, end_of(p));
        if (after && after != SND_SCAN_BAD) {
            snd_map_event(im);
            p->at = (size_t)(after - im->window.text);
            return true;
        }
        if (!after && need_more(p))
            continue;
        if (!after && im->window.ended) {
            im->cut_bytes += im->window.length - p->at;
            save_event(im);
            return false;
        }
        note_bad(p);
        save_event(im);
        return find_event(p);
    }
}

/* The list of events, behind its bracket. False: the file ends in it. */
static bool read_events(struct place *p)
{
    struct snd_importer *im = p->im;

    while (im->status == SONDE_OK && im->out.status == SONDE_OK) {
        char c = next_byte(p);
        if (c == '{') {
            if (!read_event(p))
                return false;
        } else if (c == ',') {
            p->at++;
        } else if (c == ']') {
            p->at++;
            return true;
        } else if (c == 0 && here(p) >= end_of(p)) {
            return false;
        } else {
            note_bad(p);
            im->lost++;
            if (!find_event(p))
                return false;
        }
    }
    return false;
}

/* ----------------------------------------------------------------------------- file */

/* A member whose value is longer than the window: passed over, string by string. */
static bool pass_over(struct place *p)
{
    unsigned depth = 0;
    bool     in_string = false;

    p->im->dropped++;
    for (;; p->at++) {
        if (p->at >= p->im->window.length && !need_more(p))
            return false;
        char c = *here(p);
        if (in_string) {
            if (c == '\\')
                p->at++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']' || c == ',') && depth == 0) {
            return true;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
}

/* A member of the file. False: the file ends, or goes on with what is not JSON. */
static bool read_member(struct place *p, bool *found)
{
    struct snd_importer *im = p->im;
    struct snd_span      key, value;
    bool                 odd = false;

    for (;;) {
        const char *at = here(p) + 1, *end = end_of(p);
        const char *quote = snd_scan_string(at, end, &odd);
        const char *colon = quote ? snd_scan_space(quote + 1) : NULL;
        const char *begin = colon && colon < end ? snd_scan_space(colon + 1) : NULL;
        if (begin && begin < end && *colon == ':' && *begin == '[' && quote - at == 11 &&
            memcmp(at, "traceEvents", 11) == 0) {
            *found = true;
            p->at = (size_t)(begin + 1 - im->window.text);
            return read_events(p);
        }
        const char *after = begin ? snd_scan_member(here(p), end, &key, &value, &odd) : NULL;
        if (after == SND_SCAN_BAD) {
            note_bad(p);
            return false;
        }
        if (after) {
            snd_map_member(im, key, value);
            p->at = (size_t)(after - im->window.text);
            return true;
        }
        if (need_more(p))
            continue;
        if (im->window.ended || !begin)
            return false;
        p->at = (size_t)(begin - im->window.text);
        return pass_over(p);
    }
}

/* The whole text. `*found`: there is a list of events. */
static void read_file(struct place *p, bool *found)
{
    struct snd_importer *im = p->im;
    char                 c = next_byte(p);

    if (c == '[') {
        *found = true;
        p->at++;
        if (!read_events(p))
            return;
        return;
    }
    if (c != '{') {
        note_bad(p);
        return;
    }
    p->at++;
    for (;;) {
        c = next_byte(p);
        if (c == ',') {
            p->at++;
        } else if (c == '"') {
            if (!read_member(p, found))
                break;
        } else {
            if (c != '}')
                note_bad(p);
            break;
        }
    }
    /* Damage before the events: they are looked for all the same. */
    if (!*found && p->bad != 0 && im->out.status == SONDE_OK && find_event(p))
        read_events(p);
}

/* ---------------------------------------------------------------------------- whole */

/* The line of a byte: the file is read once more, since few need it. */
static uint64_t find_line(int from, uint64_t byte)
{
    struct snd_window window;
    uint64_t          line = 1;

    if (from < 0 || lseek(from, 0, SEEK_SET) < 0 ||
        snd_window_open(&window, from, NULL) != SONDE_OK)
        return 0;
    while (window.offset <= byte && snd_window_move(&window, window.length))
        for (size_t i = 0; i < window.length && window.offset + i < byte; i++)
            line += window.text[i] == '\n';
    snd_window_close(&window);
    return line;
}

static enum sonde_status refuse(const struct place *p, int from, bool found,
                                struct sonde_error *err)
{
    const struct snd_importer *im = p->im;
    uint64_t byte = p->bad != 0 ? p->bad - 1 : im->window.offset + im->window.length;

    if (im->window.broken && im->window.offset + im->window.length == 0)
        return snd_fail(err, SONDE_E_FORMAT, "%s is not a trace of sonde, and no gzip file either",
                        im->path);
    if (p->bad != 0 || im->cut_bytes > 0)
        return snd_fail(err, SONDE_E_FORMAT,
                        "%s is not a trace of sonde, and no JSON trace with an event that can be "
                        "read: line %" PRIu64 ", byte %" PRIu64 " is not JSON",
                        im->path, find_line(from, byte), byte + 1);
    return snd_fail(err, SONDE_E_FORMAT, "%s is not a trace of sonde, and has %s", im->path,
                    found ? "no events" : "no list traceEvents of a JSON trace");
}

static enum sonde_status write_trace(struct snd_importer *im, struct sonde_error *err)
{
    struct snd_lane_writer lanes = {
        .out = &im->out, .calls = &im->calls, .pid = im->own_pid, .lane = SND_ITEM_DEVICES - 1
    };
    struct snd_file_header header = { 0 };

    if (im->has_window && (!im->any_time || im->window_begin < im->first))
        im->first = im->window_begin;
    if (im->has_window && (!im->any_time || im->window_end > im->last))
        im->last = im->window_end;
    lanes.origin = im->first;
    snd_map_memory_end(im);
    if (!snd_items_walk(&im->items, snd_lanes_take, &lanes))
        im->status = im->items.failed_memory ? SONDE_E_NOMEM : SONDE_E_IO;
    snd_lanes_end(&lanes);
    snd_map_finish(im, &lanes, &header);
    if (lanes.failed || im->calls.failed)
        im->status = SONDE_E_NOMEM;
    snd_lanes_release(&lanes);
    if (im->status == SONDE_E_IO)
        return snd_fail_os(err, SONDE_E_IO,
                           "cannot write temporary files; give room in another folder by TMPDIR");
    if (im->status != SONDE_OK)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", im->path);
    return snd_trace_out_end(&im->out, &header, err);
}

static enum sonde_status import(struct snd_importer *im, int from, int to, int level,
                                struct sonde_error *err)
{
    struct place p = { .im = im };
    bool         found = false;

    im->rank = im->world_size = SND_UNKNOWN;
    im->calls.out = &im->out;
    snd_argument_index_make(&im->index);
    enum sonde_status status = snd_trace_out_begin(&im->out, to, level, err);
    if (status == SONDE_OK && !snd_items_begin(&im->items))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", im->path);
    if (status == SONDE_OK) {
        read_file(&p, &found);
        if (im->items.next_index == 0 && im->status == SONDE_OK && im->out.status == SONDE_OK)
            status = refuse(&p, from, found, err);
        else
            status = write_trace(im, err);
    }
    snd_items_release(&im->items);
    snd_calls_release(&im->calls);
    snd_trace_out_release(&im->out);
    sonde_buffer_release(&im->text);
    sonde_buffer_release(&im->more);
    snd_window_close(&im->window);
    free(im);
    return status;
}

enum sonde_status snd_import(int from, const char *path, int to, int level, struct sonde_error *err)
{
    struct snd_importer *im = calloc(1, sizeof *im);

    if (!im)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", path);
    im->path = path;
    enum sonde_status status = snd_window_open(&im->window, from, err);
    if (status == SONDE_OK)
        return import(im, from, to, level, err);
    free(im);
    return status;
}

enum sonde_status snd_import_text(const void *text, size_t length, const char *path, int to,
                                  int level, struct sonde_error *err)
{
    struct snd_importer *im = calloc(1, sizeof *im);

    if (!im)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", path);
    im->path = path;
    enum sonde_status status = snd_window_over(&im->window, text, length, err);
    if (status == SONDE_OK)
        return import(im, -1, to, level, err);
    free(im);
    return status;
}

enum sonde_status snd_import_aside(const char *path, int *fd, struct sonde_error *err)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);

    *fd = -1;
    if (from < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open %s", path);
    *fd = snd_temporary_file();
    enum sonde_status status =
        *fd < 0 ? snd_fail_os(err, SONDE_E_IO,
                              "cannot create a temporary file; give a folder by TMPDIR")
                : snd_import(from, path, *fd, -1, err);
    close(from);
    if (status != SONDE_OK && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return status;
}
