/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory timeline in torch's three forms: points by category, single changes, a page.
 *
 * The page draws an SVG picture itself: it needs neither a plotting library nor a network.
 */
#include <inttypes.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/files/sink.h"
#include "export/encode/gzip.h"
#include "sonde/export.h"

#define POINTS_MAX 1500 /* of the picture, one or two a pixel */

/* In torch's order: _memory_profiler._CATEGORY_TO_COLORS. */
static const struct {
    enum sonde_memory_category category;
    const char                *title, *colour;
} places[] = {
    { SONDE_MEMORY_PARAMETER, "Parameter", "darkgreen" },
    { SONDE_MEMORY_OPTIMIZER_STATE, "Optimizer state", "goldenrod" },
    { SONDE_MEMORY_INPUT, "Input", "black" },
    { SONDE_MEMORY_TEMPORARY, "Temporary", "mediumpurple" },
    { SONDE_MEMORY_ACTIVATION, "Activation", "red" },
    { SONDE_MEMORY_GRADIENT, "Gradient", "mediumblue" },
    { SONDE_MEMORY_AUTOGRAD_DETAIL, "Autograd detail", "royalblue" },
    { SONDE_MEMORY_UNKNOWN, "Unknown", "grey" },
};
#define PLACES SND_COUNT_OF(places)
static_assert(PLACES == SONDE_MEMORY_CATEGORIES, "each category has a place");

static size_t place_of(uint8_t category)
{
    size_t i = 0;

    while ((uint8_t)places[i].category != category)
        i++;
    return i;
}

/* Nanoseconds since 1970 of the trace's zero. */
static int64_t find_base(const struct sonde_trace *trace)
{
    if (sonde_trace_process_count(trace) == 0)
        return 0;
    const struct sonde_process *first = sonde_trace_process(trace, 0);
    return (int64_t)((uint64_t)first->start_real_ns - (uint64_t)first->start_ns);
}

/* ------------------------------------------------------------------ points */

static void put_times(struct snd_out *out, const struct sonde_timeline_columns *c, int64_t base)
{
    int64_t last = INT64_MIN;

    for (size_t i = 0; i < c->count; i++) {
        int64_t us = (base + c->time_ns[i]) / 1000;
        if (us == last)
            continue;
        snd_out_format(out, "%s%" PRId64, last == INT64_MIN ? "" : ", ", us);
        last = us;
    }
}

static void put_sizes(struct snd_out *out, const int64_t sizes[PLACES], bool first)
{
    snd_out_text(out, first ? "[0" : ", [0");
    for (size_t k = 0; k < PLACES; k++)
        snd_out_format(out, ", %" PRId64, sizes[k]);
    snd_out_text(out, "]");
}

/* [[times], [[0, sizes by category], ..]]: what is held after the last change of a microsecond. */
static void put_points(struct snd_out *out, const struct sonde_timeline_columns *c, int64_t base)
{
    int64_t sizes[PLACES] = { 0 };
    bool    first = true;

    snd_out_text(out, "[[");
    put_times(out, c, base);
    snd_out_text(out, "], [");
    for (size_t i = 0; i < c->count; i++) {
        sizes[place_of(c->category[i])] += c->bytes[i];
        if (i + 1 < c->count && (base + c->time_ns[i]) / 1000 == (base + c->time_ns[i + 1]) / 1000)
            continue;
        put_sizes(out, sizes, first);
        first = false;
    }
    snd_out_text(out, "]]");
}

/* [[time, action, bytes, category], ..]; actions are torch's: 2 created, 4 destroyed. */
static void put_changes(struct snd_out *out, const struct sonde_timeline_columns *c, int64_t base)
{
    snd_out_text(out, "[");
    for (size_t i = 0; i < c->count; i++)
        snd_out_format(out, "%s[%" PRId64 ", %d, %" PRId64 ", %zu]", i ? ", " : "",
                       base + c->time_ns[i], c->bytes[i] < 0 ? 4 : 2, c->bytes[i],
                       place_of(c->category[i]));
    snd_out_text(out, "]");
}

/* -------------------------------------------------------------------- the page */

#define WIDTH 1200.0
#define HEIGHT 600.0

struct picture {
    int64_t (*points)[PLACES]; /* the most that was held in each slice of time */
    size_t  count;
    int64_t first_ns, last_ns, most;
};

/* Reduces the timeline to slices; each shows the moment at which most was held. */
static bool make_picture(struct picture *p, const struct sonde_timeline_columns *c)
{
    int64_t now[PLACES] = { 0 }, held = 0;

    p->count = c->count < POINTS_MAX ? c->count : POINTS_MAX;
    p->points = calloc(p->count + 1, sizeof *p->points);
    if (!p->points)
        return false;
    if (c->count == 0)
        return true;
    p->first_ns = c->time_ns[0];
    p->last_ns = c->time_ns[c->count - 1];
    size_t  slice = 0;
    int64_t best = -1;
    double  span = (double)(p->last_ns - p->first_ns);
    for (size_t i = 0; i < c->count; i++) {
        double at = span > 0 ? (double)(c->time_ns[i] - p->first_ns) / span : 0;
        size_t here = (size_t)(at * (double)(p->count - 1));
        for (; slice < here; best = -1) { /* nothing changed in between */
            slice++;
            memcpy(p->points[slice], now, sizeof now);
        }
        now[place_of(c->category[i])] += c->bytes[i];
        held += c->bytes[i];
        if (held > best) {
            best = held;
            memcpy(p->points[slice], now, sizeof now);
        }
        p->most = held > p->most ? held : p->most;
    }
    return true;
}

/* The area of each category is stacked on those before it. */
static void put_area(struct snd_out *out, const struct picture *p, size_t place)
{
    double scale = p->most > 0 ? HEIGHT / (double)p->most : 0;

    snd_out_format(out, "<polygon fill=\"%s\" fill-opacity=\"0.7\" points=\"",
                   places[place].colour);
    for (size_t turn = 0; turn < 2; turn++) { /* along the top, and back along the bottom */
        for (size_t n = 0; n < p->count; n++) {
            size_t  i = turn ? p->count - 1 - n : n;
            int64_t sum = 0;
            for (size_t k = 0; k < place + (turn ? 0 : 1); k++)
                sum += p->points[i][k];
            double x = p->count > 1 ? WIDTH * (double)i / (double)(p->count - 1) : 0;
            double y = HEIGHT - (double)sum * scale;
            snd_out_format(out, "%d.%d,%d.%d ", (int)x, (int)(x * 10) % 10, (int)y,
                           abs((int)(y * 10)) % 10);
        }
    }
    snd_out_text(out, "\"/>\n");
}

static void put_page(struct snd_out *out, const struct picture *p)
{
    int64_t us = (p->last_ns - p->first_ns) / 1000;

    snd_out_format(out,
                   "<!DOCTYPE html>\n<html>\n<head><meta charset=\"utf-8\"/>"
                   "<title>Memory Timeline</title></head>\n"
                   "<body style=\"font-family: sans-serif\">\n<h1>Memory timeline</h1>\n"
                   "<p>%" PRId64 ".%03d ms; at most %" PRId64 " bytes (%" PRId64 " KiB) held.</p>\n"
                   "<svg viewBox=\"-10 -10 1220 620\" width=\"100%%\">\n"
                   "<rect width=\"1200\" height=\"600\" fill=\"none\" stroke=\"silver\"/>\n",
                   us / 1000, (int)(us % 1000), p->most, p->most / 1024);
    for (size_t k = 0; k < PLACES; k++)
        put_area(out, p, k);
    snd_out_text(out, "</svg>\n<ul>\n");
    for (size_t k = 0; k < PLACES; k++)
        snd_out_format(out, "<li style=\"color: %s\">%s</li>\n", places[k].colour, places[k].title);
    snd_out_text(out, "</ul>\n</body>\n</html>\n");
}

/* ------------------------------------------------------------------- whole */

static enum sonde_status write_plain(const struct sonde_trace    *trace,
                                     const struct sonde_timeline *timeline,
                                     enum sonde_timeline_format   format,
                                     const struct sonde_sink *sink, struct sonde_error *err)
{
    const struct sonde_timeline_columns *c = sonde_timeline_columns(timeline);
    struct picture                       picture = { 0 };
    struct snd_out                       out;

    snd_out_init(&out, sink);
    if (format == SONDE_TIMELINE_JSON) {
        put_points(&out, c, find_base(trace));
    } else if (format == SONDE_TIMELINE_RAW) {
        put_changes(&out, c, find_base(trace));
    } else {
        if (!make_picture(&picture, c))
            return snd_fail(err, SONDE_E_NOMEM, "out of memory for the picture");
        put_page(&out, &picture);
        free(picture.points);
    }
    return snd_out_finish(&out, err);
}

enum sonde_status sonde_timeline_write(const struct sonde_trace    *trace,
                                       const struct sonde_timeline *timeline,
                                       enum sonde_timeline_format format, bool gzip,
                                       const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_gzip *packed;

    if (!gzip)
        return write_plain(trace, timeline, format, sink, err);
    enum sonde_status st = snd_gzip_new(sink, SND_GZIP_TEXT, &packed, err);
    if (st != SONDE_OK)
        return st;
    struct sonde_sink inner = snd_gzip_sink(packed);
    st = write_plain(trace, timeline, format, &inner, err);
    if (st == SONDE_OK)
        st = snd_gzip_finish(packed, err);
    snd_gzip_free(packed);
    return st;
}
