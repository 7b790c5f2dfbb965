/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture (SVG) of ranges that are selected: no script, nothing from elsewhere, light and dark by
 * the reader's choice. Lengths are in tenths of a pixel, as integers: equal traces, equal pictures.
 */
#include <inttypes.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/data/hash.h"
#include "base/text/utf8.h"
#include "export/svg/svg_select.h"
#include "read/file/scale.h"

enum {
    WIDTH = 1200,
    LEFT = 10, /* and right */
    AXIS = 44, /* height of the title and the axis */
    HEAD = 20, /* of a thread's name */
    ROW = 16,  /* of a depth */
    LINE = 16, /* of a line of text below */
    COLOURS = 8,
    /* Tenths of a pixel: */
    GAP = 3,               /* between ranges */
    NARROW = 5,            /* the least width of a range */
    LETTER = 62,           /* the widest of most letters */
    NAME_MAX_LENGTH = 200, /* of names in tooltips */
};

static const char STYLE[] =
    "<style>"
    "svg{background:#fff;font:10px ui-monospace,Menlo,Consolas,monospace}"
    "text{fill:#1c2430;pointer-events:none}.t{font-size:12px}.s{fill:#5b6573}"
    "line{stroke:#dde1e7}.o{stroke:#1c2430;stroke-dasharray:3 2;"
    "fill-opacity:.6}"
    ".c0{fill:#b9d2f5}.c1{fill:#d9cdf2}.c2{fill:#bfe5e1}.c3{fill:#f6dfb3}.c4{fill:#cbe8c6}"
    ".c5{fill:#f2cdd2}.c6{fill:#d5d9e2}.c7{fill:#e3e3b5}"
    "@media (prefers-color-scheme:dark){svg{background:#14181f}text{fill:#e6eaf0}.s{fill:#9aa4b2}"
    "line{stroke:#2b323d}.o{stroke:#e6eaf0}"
    ".c0{fill:#2d4a78}.c1{fill:#4d3f73}.c2{fill:#245b57}.c3{fill:#6b5222}.c4{fill:#375c31}"
    ".c5{fill:#6d3840}.c6{fill:#434a57}.c7{fill:#55552a}}"
    "</style>\n";

struct drawing {
    const struct snd_svg *svg;
    struct snd_out       *out;
    struct sonde_buffer   text; /* a name, spelled out */
    int64_t               start_ns, span_ns;
};

/* ---------------------------------------------------------------- texts */

/* For XML: what its markup is made of, and what it forbids even when escaped. */
static void put_escaped(struct snd_out *out, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        uint32_t point = 0;
        size_t   step = snd_utf8_next(bytes + at, length - at, &point);
        if (step == 0 || point == 0xfffe || point == 0xffff)
            snd_out_text(out, "\xef\xbf\xbd");
        else if (point > 0 && point < 0x80 && strchr("&<>\"'", (int)point))
            snd_out_format(out, "&#%" PRIu32 ";", point);
        else
            snd_out_put(out, bytes + at, step);
        at += step ? step : 1;
    }
}

/* The first characters that fit into `tenths`, and how many bytes they have: ASCII is narrow. */
static size_t fitting(const char *bytes, size_t length, int64_t tenths)
{
    size_t at = 0;

    while (at < length) {
        uint32_t point = 0;
        size_t   step = snd_utf8_next(bytes + at, length - at, &point);
        tenths -= point < 0x80 ? LETTER : 2 * LETTER;
        if (tenths < 0)
            break;
        at += step ? step : 1;
    }
    return at;
}

static void spell(struct drawing *d, struct sonde_text name)
{
    size_t length = snd_utf8_prefix(name.bytes, name.length, NAME_MAX_LENGTH);

    snd_buf_clear(&d->text);
    snd_plain_put(&d->text, SND_PLAIN_TERMINAL, name.bytes, length);
    if (length < name.length)
        snd_buf_text(&d->text, "\xe2\x80\xa6");
}

static void put_spelled(struct drawing *d)
{
    put_escaped(d->out, snd_buf_string(&d->text), d->text.length);
}

/* "1.5 ms": three decimals at most, in the largest unit that `of_ns` has one of. */
static void put_time(struct snd_out *out, int64_t ns, int64_t of_ns)
{
    static const struct {
        const char *name;
        int64_t     ns;
    } units[] = { { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 } };
    size_t at = 0;

    while (units[at].ns > 1 && of_ns < units[at].ns)
        at++;
    int64_t  whole = ns / units[at].ns;
    unsigned rest = (unsigned)(ns % units[at].ns / (units[at].ns > 1000 ? units[at].ns / 1000 : 1));
    snd_out_int(out, whole);
    if (rest > 0) {
        char decimals[16];
        snprintf(decimals, sizeof decimals, ".%03u", rest);
        for (size_t end = 3; decimals[end] == '0'; end--)
            decimals[end] = '\0';
        snd_out_text(out, decimals);
    }
    snd_out_format(out, " %s", units[at].name);
}

static void put_tenths(struct snd_out *out, const char *name, int64_t tenths)
{
    snd_out_format(out, " %s=\"%" PRId64, name, tenths / 10);
    if (tenths % 10)
        snd_out_format(out, ".%d", (int)(tenths % 10));
    snd_out_text(out, "\"");
}

static void put_text(struct drawing *d, int64_t x_tenths, uint32_t y, const char *class)
{
    snd_out_text(d->out, "<text");
    put_tenths(d->out, "x", x_tenths);
    snd_out_format(d->out, " y=\"%" PRIu32 "\"", y);
    if (class[0])
        snd_out_format(d->out, " class=\"%s\"", class);
    snd_out_text(d->out, ">");
}

/* ---------------------------------------------------------------- places */

/* Of a moment, in tenths of a pixel. */
static int64_t place(const struct drawing *d, int64_t ns)
{
    __extension__ typedef __int128 wide;
    wide scaled = (wide)snd_sub(ns, d->start_ns) * 10 * (WIDTH - 2 * LEFT) + d->span_ns / 2;

    return 10 * LEFT + (int64_t)(scaled / d->span_ns);
}

static void measure_time(struct drawing *d)
{
    const struct snd_svg *svg = d->svg;
    int64_t               end = 0;

    for (uint32_t i = 0; i < svg->count; i++) {
        const struct snd_svg_range *r = &svg->ranges[i];
        if (i == 0 || r->start_ns < d->start_ns)
            d->start_ns = r->start_ns;
        if (i == 0 || snd_add(r->start_ns, r->duration_ns) > end)
            end = snd_add(r->start_ns, r->duration_ns);
    }
    d->span_ns = snd_sub(end, d->start_ns);
    if (d->span_ns < 1)
        d->span_ns = 1;
}

/* The ranges of a thread are next to each other; the number of the first one of the next thread. */
static uint32_t end_of_thread(const struct snd_svg *svg, uint32_t from)
{
    uint32_t i = from;

    while (i < svg->count && svg->ranges[i].thread == svg->ranges[from].thread)
        i++;
    return i;
}

/* They are in order of depth. */
static uint32_t height_of_thread(const struct snd_svg *svg, uint32_t end)
{
    return HEAD + (svg->ranges[end - 1].depth + 1) * ROW;
}

/* Drops what could not be seen beside its neighbour: the shorter ranges, of which there may be many. */
static void drop_hidden(const struct drawing *d, struct snd_svg *svg)
{
    uint32_t                    count = 0;
    int64_t                     right = 0;
    const struct snd_svg_range *last = NULL;

    for (uint32_t i = 0; i < svg->count; i++) {
        struct snd_svg_range r = svg->ranges[i];
        int64_t              x = place(d, r.start_ns);
        int64_t              end = place(d, snd_add(r.start_ns, r.duration_ns));
        bool                 is_row = last && last->thread == r.thread && last->depth == r.depth;
        if (is_row && end - x < NARROW && x < right) {
            svg->shorter++;
            continue;
        }
        right = end - x < NARROW ? x + NARROW : end;
        svg->ranges[count] = r;
        last = &svg->ranges[count++];
    }
    svg->count = count;
}

/* ---------------------------------------------------------------- parts */

/* 1, 2 or 5 times a power of ten, so that there are ten of them at most. */
static int64_t tick_step(int64_t span_ns)
{
    int64_t step = 1;

    for (int i = 0; span_ns / step > 10; i++)
        step = i % 3 == 1 ? step / 2 * 5 : step * 2;
    return step;
}

static void put_axis(struct drawing *d, uint32_t bottom)
{
    int64_t step = tick_step(d->span_ns);

    for (int64_t at = 0; at <= d->span_ns; at += step) {
        int64_t x = place(d, snd_add(d->start_ns, at));
        snd_out_text(d->out, "<line");
        put_tenths(d->out, "x1", x);
        put_tenths(d->out, "x2", x);
        snd_out_format(d->out, " y1=\"%d\" y2=\"%" PRIu32 "\"/>", AXIS - 14, bottom);
        if (x < 10 * (WIDTH - 60)) {
            put_text(d, x + 30, AXIS - 6, "s");
            put_time(d->out, at, at ? step : 1000000000);
            snd_out_text(d->out, "</text>");
        }
        snd_out_text(d->out, "\n");
    }
}

static void put_tooltip(struct drawing *d, const struct snd_svg_range *r)
{
    snd_out_text(d->out, "<title>");
    put_spelled(d);
    snd_out_text(d->out, "\n");
    put_time(d->out, r->duration_ns, r->duration_ns);
    snd_out_format(d->out, "%s%s</title>", r->unfinished ? ", unfinished" : "",
                   r->overlaps ? ", does not nest" : "");
}

/* The bytes before what follows the last "::"; 0: there is none. */
static size_t scope_of(const struct sonde_buffer *text)
{
    for (size_t at = text->length; at >= 2; at--)
        if (text->bytes[at - 1] == ':' && text->bytes[at - 2] == ':')
            return at;
    return 0;
}

/* The name, where it fits; else its last part, truncated, where at least three letters of it do. */
static void put_label(struct drawing *d, int64_t x, int64_t width, uint32_t y)
{
    static const char MORE[] = "\xe2\x80\xa6";
    const char       *bytes = snd_buf_string(&d->text);
    size_t            length = d->text.length, scope = 0, fits = fitting(bytes, length, width - 60);

    if (fits < length) {
        scope = scope_of(&d->text);
        fits = fitting(bytes + scope, length - scope, width - 60 - (scope ? LETTER : 0));
        if (fits < length - scope)
            fits = fitting(bytes + scope, length - scope, width - 60 - (scope ? 2 : 1) * LETTER);
    }
    if (length == 0 || (fits < 3 && scope + fits < length))
        return;
    put_text(d, x + 30, y + ROW - 5, "");
    snd_out_text(d->out, scope ? MORE : "");
    put_escaped(d->out, bytes + scope, fits);
    snd_out_format(d->out, "%s</text>", scope + fits < length ? MORE : "");
}

static void put_range(struct drawing *d, const struct snd_svg_range *r, uint32_t top)
{
    int64_t  x = place(d, r->start_ns);
    int64_t  width = place(d, snd_add(r->start_ns, r->duration_ns)) - x;
    uint32_t y = top + r->depth * ROW;
    uint64_t hash = snd_hash_bytes(r->name.bytes, r->name.length, 0).low;

    spell(d, r->name);
    snd_out_text(d->out, "<rect");
    put_tenths(d->out, "x", x);
    snd_out_format(d->out, " y=\"%" PRIu32 "\"", y);
    put_tenths(d->out, "width", width > 10 ? width - GAP : width < NARROW ? NARROW : width);
    snd_out_format(d->out, " height=\"%d\" class=\"c%u%s\">", ROW - 1, (unsigned)(hash % COLOURS),
                   r->overlaps || r->unfinished ? " o" : "");
    put_tooltip(d, r);
    snd_out_text(d->out, "</rect>");
    put_label(d, x, width, y);
    snd_out_text(d->out, "\n");
}

static void put_threads(struct drawing *d)
{
    const struct snd_svg *svg = d->svg;
    uint32_t              top = AXIS;

    for (uint32_t i = 0, end; i < svg->count; i = end) {
        const struct sonde_thread *thread = sonde_trace_thread(svg->trace, svg->ranges[i].thread);
        end = end_of_thread(svg, i);
        spell(d, thread->name);
        put_text(d, 10 * LEFT, top + HEAD - 6, "");
        put_spelled(d);
        snd_out_format(d->out, "%s%" PRIu32 "</text>\n", thread->name.length ? " " : "thread ",
                       thread->tid);
        for (uint32_t n = i; n < end; n++)
            put_range(d, &svg->ranges[n], top + HEAD);
        top += height_of_thread(svg, end);
    }
}

struct note {
    uint64_t    count;
    const char *text;
};

/* What the picture does not have. */
static uint32_t list_notes(const struct snd_svg *svg, struct note notes[6])
{
    uint64_t lost = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < sonde_trace_thread_count(svg->trace); i++)
        lost += sonde_trace_thread(svg->trace, i)->lost_events;
    const struct note all[] = {
        { svg->count == 0, "the trace has no ranges" },
        { svg->shorter, "not drawn: shorter ranges: " },
        { svg->deeper, "not drawn: ranges nested deeper: " },
        { svg->of_threads, "not drawn: ranges of threads with less time: " },
        { svg->of_processes, "not drawn: ranges of other processes: " },
        { lost, "events lost while recording (sonde report --view ledger): " },
    };
    for (size_t i = 0; i < SND_COUNT_OF(all); i++)
        if (all[i].count > 0)
            notes[count++] = all[i];
    return count;
}

static void put_notes(struct drawing *d, const struct note *notes, uint32_t count, uint32_t top)
{
    for (uint32_t i = 0; i < count; i++) {
        put_text(d, 10 * LEFT, top + (i + 1) * LINE, "s");
        snd_out_text(d->out, notes[i].text);
        if (notes[i].text[strlen(notes[i].text) - 1] == ' ')
            snd_out_uint(d->out, notes[i].count);
        snd_out_text(d->out, "</text>\n");
    }
}

static void put_title(struct drawing *d)
{
    const struct sonde_process *process = sonde_trace_process(d->svg->trace, d->svg->process);
    const char                 *slash = strrchr(process->program, '/');
    const char                 *name = slash ? slash + 1 : process->program;

    spell(d, (struct sonde_text){ name, strlen(name) });
    put_text(d, 10 * LEFT, 18, "t");
    put_spelled(d);
    snd_out_format(d->out, " %" PRIu32, process->pid);
    if (d->svg->count > 0) {
        snd_out_text(d->out, ": ");
        put_time(d->out, d->span_ns, d->span_ns);
    }
    snd_out_text(d->out, "</text>\n");
}

enum sonde_status snd_svg_draw(struct snd_svg *svg, struct snd_out *out, struct sonde_error *err)
{
    struct drawing d = { .svg = svg, .out = out };
    struct note    notes[6];
    uint32_t       bottom = AXIS;

    measure_time(&d);
    drop_hidden(&d, svg);
    uint32_t note_count = list_notes(svg, notes);
    for (uint32_t i = 0, end; i < svg->count; i = end) {
        end = end_of_thread(svg, i);
        bottom += height_of_thread(svg, end);
    }
    uint32_t height = bottom + note_count * LINE + 10;
    snd_out_format(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %" PRIu32
                   "\" width=\"%d\" height=\"%" PRIu32 "\" role=\"img\">\n",
                   WIDTH, height, WIDTH, height);
    snd_out_text(out, STYLE);
    put_title(&d);
    if (svg->count > 0)
        put_axis(&d, bottom);
    put_threads(&d);
    put_notes(&d, notes, note_count, bottom);
    snd_out_text(out, "</svg>\n");
    bool failed = d.text.failed;
    sonde_buffer_release(&d.text);
    return failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for a name") : SONDE_OK;
}
