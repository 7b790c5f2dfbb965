/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source view: the source of what ran, with what each line cost in the margin: runs and time of
 * counted lines, samples, memory. Of each file that has numbers, the functions that have them, whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "model/samples/sample_lines.h"
#include "read/file/scale.h"
#include "sonde/tensorlines.h"
#include "view/source/line_page.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "hits", "Hits", SND_COUNT, SND_FIT_FIXED },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "sampled_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "sampled_percent", "Self %", SND_SHARE, SND_FIT_FIXED },
    { "sampled_total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "sampled_total_percent", "Total %", SND_SHARE, SND_FIT_FIXED },
    { "added_bytes", "Added", SND_BYTES, SND_FIT_FIXED },
    { "tensor_bytes", "Tensors", SND_BYTES, SND_FIT_FIXED },
    { "source", "Line Contents", SND_TEXT, SND_FIT_CONTENT },
};

/* What a line has numbers of, and the column where each begins. */
enum what { COUNTED = 1, SAMPLED = 2, ADDED = 4, TENSORS = 8 };
static const struct {
    unsigned what;
    size_t   first, count;
} groups[] = { { COUNTED, 2, 3 }, { SAMPLED, 5, 5 }, { ADDED, 10, 1 }, { TENSORS, 11, 1 } };

#define AROUND 2u           /* lines before and after one with numbers, which are shown with it */
#define GAP_MOST 4u         /* lines between two that are shown: so few are shown too */
#define BLOCK_LINES 2000u   /* of a function; of a longer one, what is around its numbers */
#define LINES_MAX 10000000u /* a greater number is no line of a file */

struct line {
    uint32_t          file, line;
    unsigned          has; /* enum what */
    uint64_t          hits, samples;
    int64_t           time_ns, sampled_ns, sampled_total_ns, added_bytes, tensor_bytes;
    struct sonde_text text; /* as recorded; empty: it was not recorded */
};

/* A function that has numbers. */
struct span {
    uint32_t file, from;
    uint32_t to; /* 0: where its block ends in the source */
};

struct file {
    struct sonde_line_function any; /* a function of it: how its source is found */
    int64_t                    time_ns, bytes;
    uint32_t                   number;
    uint32_t                   first_line, line_count, first_span, span_count; /* once sorted */
};

struct source {
    struct snd_texts names; /* of files */
    struct file     *files;
    struct line     *lines;
    struct span     *spans;
    uint32_t         file_room, line_count, line_room, span_count, span_room;
    int64_t          time_ns, sampled_ns; /* that shares are of */
    unsigned         has;
    bool             failed;
};

static void release(struct source *s)
{
    snd_texts_release(&s->names);
    free(s->files);
    free(s->lines);
    free(s->spans);
}

/* ----------------------------------------------------------------- collect */

static uint32_t file_of(struct source *s, const struct sonde_line_function *f)
{
    uint32_t before = s->names.count, number = 0;

    if (!snd_texts_add(&s->names, f->file.bytes, f->file.length, &number) ||
        (number == before && !snd_grow(&s->files, &s->file_room, number, sizeof *s->files))) {
        s->failed = true;
        return 0;
    }
    if (number == before)
        s->files[number] = (struct file){ .any = *f, .number = number };
    return number;
}

static void add_line(struct source *s, const struct line *line)
{
    if (s->failed || line->line == 0 || line->line > LINES_MAX)
        return;
    if (!snd_grow(&s->lines, &s->line_room, s->line_count, sizeof *s->lines)) {
        s->failed = true;
        return;
    }
    s->lines[s->line_count++] = *line;
    s->has |= line->has;
    struct file *file = &s->files[line->file];
    file->time_ns = snd_add(file->time_ns, snd_add(line->time_ns, line->sampled_ns));
    file->bytes = snd_add(file->bytes, snd_add(line->added_bytes, line->tensor_bytes));
}

static void add_span(struct source *s, uint32_t file, uint32_t from, uint32_t to)
{
    if (s->failed || from == 0 || from > LINES_MAX)
        return;
    if (!snd_grow(&s->spans, &s->span_room, s->span_count, sizeof *s->spans)) {
        s->failed = true;
        return;
    }
    s->spans[s->span_count++] = (struct span){ file, from, to };
}

SND_DOC_RELEASE(free_lines, sonde_lines_free)
SND_DOC_RELEASE(free_tensor_lines, sonde_tensor_lines_free)

static void free_sampled(void *object)
{
    snd_sample_lines_release(object);
    free(object);
}

/* Of counted lines: their times, or what they added to the memory in use. */
static struct line line_of(struct source *s, enum sonde_line_kind kind,
                           const struct sonde_line *line)
{
    if (kind == SONDE_LINES_MEMORY)
        return (struct line){ .has = ADDED, .added_bytes = line->increment_bytes };
    s->time_ns = snd_add(s->time_ns, line->time_ns);
    return (struct line){ .has = COUNTED, .hits = line->hits, .time_ns = line->time_ns };
}

static enum sonde_status add_counted(struct source *s, struct snd_doc *doc,
                                     struct sonde_trace *trace, enum sonde_line_kind kind,
                                     struct sonde_error *err)
{
    struct sonde_lines *lines = NULL;
    enum sonde_status   st = sonde_lines_new(trace, kind, &lines, err);

    snd_doc_keep(doc, lines, free_lines);
    for (size_t i = 0; st == SONDE_OK && i < sonde_lines_function_count(lines); i++) {
        const struct sonde_line_function *f = sonde_lines_function(lines, i);
        if (f->count == 0)
            continue;
        uint32_t file = file_of(s, f);
        add_span(s, file, f->line, 0);
        for (uint32_t k = 0; k < f->count && !s->failed; k++) {
            const struct sonde_line *line = sonde_lines_line(lines, f->first + k);
            struct line              mine = line_of(s, kind, line);
            mine.file = file;
            mine.line = line->line;
            add_line(s, &mine);
        }
    }
    return st;
}

static enum sonde_status add_sampled(struct source *s, struct snd_doc *doc,
                                     struct sonde_trace *trace, struct sonde_error *err)
{
    struct snd_sample_lines *lines = calloc(1, sizeof *lines);

    if (!lines)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    enum sonde_status st = snd_sample_lines_make(lines, trace, err);
    snd_doc_keep(doc, lines, free_sampled);
    for (uint32_t i = 0; st == SONDE_OK && i < lines->count && !s->failed; i++) {
        const struct snd_sample_line *row = &lines->rows[i];
        struct sonde_line_function    f = { .file = row->file, .source = { "", 0 } };
        if (row->file.length == 0)
            continue;
        uint32_t file = file_of(s, &f);
        add_span(s, file, row->first_line, row->is_native ? row->line : 0);
        add_line(s, &(struct line){ .file = file,
                                    .line = row->line,
                                    .has = SAMPLED,
                                    .samples = row->once_samples,
                                    .sampled_ns = row->self_ns,
                                    .sampled_total_ns = row->once_ns });
    }
    s->sampled_ns = lines->whole_ns;
    return st;
}

static enum sonde_status add_tensors(struct source *s, struct snd_doc *doc,
                                     struct sonde_trace *trace, struct sonde_error *err)
{
    struct sonde_tensor_lines *lines = NULL;
    enum sonde_status          st = sonde_tensor_lines_new(trace, &lines, err);

    snd_doc_keep(doc, lines, free_tensor_lines);
    for (size_t i = 0; st == SONDE_OK && i < sonde_tensor_lines_count(lines); i++) {
        const struct sonde_tensor_line *row = sonde_tensor_lines_row(lines, i);
        struct sonde_line_function      f = { .file = row->file, .source = { "", 0 } };
        if (row->file.length == 0)
            continue;
        uint32_t file = file_of(s, &f);
        add_span(s, file, row->line, row->line);
        if (row->allocs > 0)
            add_line(s, &(struct line){ .file = file,
                                        .line = row->line,
                                        .has = TENSORS,
                                        .tensor_bytes = row->taken_bytes,
                                        .text = row->source });
    }
    return st;
}

/* ------------------------------------------------------------------- order */

static int compare_lines(const void *left, const void *right)
{
    const struct line *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->file, y->file), SND_RISING(x->line, y->line));
}

static int compare_spans(const void *left, const void *right)
{
    const struct span *x = left, *y = right;

    return SND_RISING(x->file, y->file);
}

/* The file with most time first, then with most bytes. */
static int compare_files(const void *left, const void *right)
{
    const struct file *x = left, *y = right;

    return SND_ORDER(SND_FALLING(x->time_ns, y->time_ns), SND_FALLING(x->bytes, y->bytes),
                     SND_RISING(x->number, y->number));
}

/* Lines of several sources, or of several functions, that are one line of a file. */
static void merge_lines(struct source *s)
{
    uint32_t to = 0;

    for (uint32_t i = 0; i < s->line_count; i++) {
        struct line *line = &s->lines[i], *last = to ? &s->lines[to - 1] : NULL;
        if (!last || compare_lines(last, line) != 0) {
            s->lines[to++] = *line;
            continue;
        }
        last->has |= line->has;
        last->hits = snd_count_add(last->hits, line->hits);
        last->samples = snd_count_add(last->samples, line->samples);
        last->time_ns = snd_add(last->time_ns, line->time_ns);
        last->sampled_ns = snd_add(last->sampled_ns, line->sampled_ns);
        last->sampled_total_ns = snd_add(last->sampled_total_ns, line->sampled_total_ns);
        last->added_bytes = snd_add(last->added_bytes, line->added_bytes);
        last->tensor_bytes = snd_add(last->tensor_bytes, line->tensor_bytes);
    }
    s->line_count = to;
}

static void sort_all(struct source *s)
{
    if (s->line_count == 0)
        return;
    snd_sort(s->lines, s->line_count, sizeof *s->lines, compare_lines);
    snd_sort(s->spans, s->span_count, sizeof *s->spans, compare_spans);
    merge_lines(s);
    for (uint32_t i = s->line_count; i-- > 0;) {
        s->files[s->lines[i].file].first_line = i;
        s->files[s->lines[i].file].line_count++;
    }
    for (uint32_t i = s->span_count; i-- > 0;) {
        s->files[s->spans[i].file].first_span = i;
        s->files[s->spans[i].file].span_count++;
    }
    snd_sort(s->files, s->names.count, sizeof *s->files, compare_files);
}

/* -------------------------------------------------------------------- rows */

static struct snd_cell known(const struct line *line, unsigned what, struct snd_cell cell)
{
    return line && line->has & what ? cell : snd_cell_none();
}

static void add_row(const struct source *s, struct snd_doc *doc, const struct file *file,
                    const struct line *line, uint64_t number, const struct snd_pysource *source)
{
    static const struct line nothing = { 0 };
    struct snd_cell         *cell = snd_table_add(&doc->rows);
    const struct line       *l = line ? line : &nothing;

    *cell++ = snd_cell_text(file->any.file);
    *cell++ = snd_cell_number((int64_t)number);
    *cell++ = known(line, COUNTED, snd_cell_number(snd_count_shown(l->hits)));
    *cell++ = known(line, COUNTED, snd_cell_number(l->time_ns));
    *cell++ = known(line, COUNTED, snd_cell_share(l->time_ns, s->time_ns));
    *cell++ = known(line, SAMPLED, snd_cell_number(snd_count_shown(l->samples)));
    *cell++ = known(line, SAMPLED, snd_cell_number(l->sampled_ns));
    *cell++ = known(line, SAMPLED, snd_cell_share(l->sampled_ns, s->sampled_ns));
    *cell++ = known(line, SAMPLED, snd_cell_number(l->sampled_total_ns));
    *cell++ = known(line, SAMPLED, snd_cell_share(l->sampled_total_ns, s->sampled_ns));
    *cell++ = known(line, ADDED, snd_cell_number(l->added_bytes));
    *cell++ = known(line, TENSORS, snd_cell_number(l->tensor_bytes));
    struct sonde_text text = source ? snd_pysource_line(source, number) : l->text;
    *cell = source || text.length ? snd_cell_text(snd_doc_indent(doc, 0, text)) : snd_cell_none();
}

/* Marks the lines from `from` to `to` as shown. */
static void mark(bool *shown, size_t line_count, uint64_t from, uint64_t to)
{
    for (uint64_t i = from > 0 ? from : 1; i <= to && i <= line_count; i++)
        shown[i] = true;
}

/* Short gaps: a reader would look for what is missing there. */
static void mark_gaps(bool *shown, size_t line_count)
{
    size_t last = 0;

    for (size_t i = 1; i <= line_count; i++) {
        if (!shown[i])
            continue;
        if (last > 0 && i - last - 1 <= GAP_MOST)
            mark(shown, line_count, last + 1, i - 1);
        last = i;
    }
}

static void mark_all(const struct source *s, const struct file *file,
                     const struct snd_pysource *source, bool *shown)
{
    for (uint32_t i = 0; i < file->span_count; i++) {
        const struct span *span = &s->spans[file->first_span + i];
        uint64_t           to = span->to;
        if (shown[span->from <= source->line_count ? span->from : 0] && to == 0)
            continue; /* the same function, of another line or source */
        if (to == 0)
            to = span->from + snd_pysource_block(source, span->from);
        if (to >= span->from && to - span->from <= BLOCK_LINES)
            mark(shown, source->line_count, span->from, to - (span->to == 0));
    }
    for (uint32_t i = 0; i < file->line_count; i++) {
        uint64_t at = s->lines[file->first_line + i].line;
        mark(shown, source->line_count, at > AROUND ? at - AROUND : 1, at + AROUND);
    }
    mark_gaps(shown, source->line_count);
}

static void add_file(struct source *s, struct snd_doc *doc, const struct file *file)
{
    struct snd_pysource source = { 0 };
    bool                found = snd_pysource_open(&source, &file->any);

    found = found && snd_pysource_fits(&source, &file->any);
    bool *shown = found ? calloc(source.line_count + 1, sizeof *shown) : NULL;
    if (shown)
        mark_all(s, file, &source, shown);
    s->failed |= found && !shown;
    uint64_t next = 1;
    for (uint32_t i = 0; i < file->line_count; i++) {
        const struct line *line = &s->lines[file->first_line + i];
        for (; shown && next < line->line && next <= source.line_count; next++)
            if (shown[next])
                add_row(s, doc, file, NULL, next, &source);
        add_row(s, doc, file, line, line->line, found ? &source : NULL);
        next = (uint64_t)line->line + 1;
    }
    for (; shown && next <= source.line_count; next++)
        if (shown[next])
            add_row(s, doc, file, NULL, next, &source);
    free(shown);
    snd_pysource_close(&source);
}

SND_VIEW_BUILD(snd_view_source)
{
    struct source s = { 0 };

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = add_counted(&s, doc, trace, SONDE_LINES_TIME, err);
    if (st == SONDE_OK)
        st = add_counted(&s, doc, trace, SONDE_LINES_MEMORY, err);
    if (st == SONDE_OK)
        st = add_sampled(&s, doc, trace, err);
    if (st == SONDE_OK)
        st = add_tensors(&s, doc, trace, err);
    if (st == SONDE_OK && !s.failed) {
        sort_all(&s);
        for (uint32_t i = 0; i < s.names.count; i++)
            if (s.files[i].line_count > 0)
                add_file(&s, doc, &s.files[i]);
    }
    if (st == SONDE_OK && s.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    for (size_t i = 0; i < SND_COUNT_OF(groups); i++)
        for (size_t k = 0; k < groups[i].count; k++)
            doc->rows.hidden[groups[i].first + k] = !(s.has & groups[i].what);
    snd_doc_total(doc, "files", NULL, SND_COUNT, snd_cell_number(s.names.count));
    release(&s);
    return st;
}
