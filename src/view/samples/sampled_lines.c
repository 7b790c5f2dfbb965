/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sampled_lines.c - see sampled_lines.h
 *
 * As text a block for each function: its source from its first line to the last that was found, with the
 * shares of the lines in the margin.
 */
#include "view/samples/sampled_lines.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "base/text/plural.h"
#include "model/samples/sample_lines.h"
#include "view/source/line_page.h"
#include "view/source/native_names.h"

#define LEAST_SHARE 0.01
#define BLOCK_MAX 2000u /* source lines of one function; beyond, those with samples alone */
#define AFTER 2u        /* source lines that are shown after the last with samples */

static const struct snd_column columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "first_line", "First Line", SND_COUNT, SND_FIT_FIXED },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "self_share", "Self %", SND_SHARE, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "total_share", "Total %", SND_SHARE, SND_FIT_FIXED },
    { "source", "Line Contents", SND_TEXT, SND_FIT_CONTENT },
};

struct page {
    struct snd_line_page           to;
    const struct snd_sample_lines *lines;
};

/* The rows of one function: from `first` to the one before the result. */
static uint32_t end_of(const struct snd_sample_lines *lines, uint32_t first)
{
    uint32_t end = first + 1;

    while (end < lines->count && lines->rows[end].file.bytes == lines->rows[first].file.bytes &&
           lines->rows[end].function.bytes == lines->rows[first].function.bytes &&
           lines->rows[end].first_line == lines->rows[first].first_line)
        end++;
    return end;
}

static int64_t self_of(const struct snd_sample_lines *lines, uint32_t first, uint32_t end)
{
    int64_t sum = 0;

    for (; first < end; first++)
        sum += lines->rows[first].self_ns;
    return sum;
}

static struct sonde_line_function function_of(const struct snd_sample_line *row)
{
    return (struct sonde_line_function){ .file = row->file,
                                         .name = row->function,
                                         .line = row->first_line ? row->first_line : row->line,
                                         .source = { "", 0 } };
}

static void put_share(struct page *page, int64_t ns)
{
    char   number[SND_NUMBER_MAX];
    double whole = page->lines->whole_ns > 0 ? (double)page->lines->whole_ns : 1;

    snd_out_format(page->to.out, "%7s ",
                   ns > 0 ? snd_number_fixed(number, 2, 100 * (double)ns / whole) : "");
}

static void put_line(struct page *page, uint32_t number, const struct snd_sample_line *row)
{
    put_share(page, row ? row->self_ns : 0);
    put_share(page, row ? row->total_ns : 0);
    snd_out_format(page->to.out, "%6" PRIu32 "  ", number);
    snd_line_page_source(&page->to, snd_pysource_line(&page->to.source, number));
    snd_out_text(page->to.out, "\n");
}

static void put_function(struct page *page, uint32_t first, uint32_t end)
{
    const struct snd_sample_line *rows = page->lines->rows;
    struct sonde_line_function    function = function_of(&rows[first]);
    bool                          found = snd_pysource_turn(&page->to.source, &function);
    struct sonde_text name = rows[first].is_native ? snd_native_name(function.name) : function.name;
    char              number[SND_NUMBER_MAX];
    double            whole = page->lines->whole_ns > 0 ? (double)page->lines->whole_ns : 1;

    snd_out_format(page->to.out, "%s %% in ",
                   snd_number_fixed(number, 2,
                                    100 * (double)self_of(page->lines, first, end) / whole));
    snd_line_page_name(&page->to, name);
    snd_out_text(page->to.out, "  ");
    snd_line_page_name(&page->to, function.file);
    snd_out_format(page->to.out, ":%" PRIu32 "\n", function.line);
    if (!found)
        snd_out_text(page->to.out, "The source is not here: lines are shown by number alone.\n");
    snd_out_text(page->to.out, " Self % Total %   Line  Source\n");
    uint32_t from = rows[first].line < function.line ? rows[first].line : function.line;
    uint64_t last = (uint64_t)rows[end - 1].line + AFTER;
    if (!found || last - from > BLOCK_MAX) {
        for (uint32_t i = first; i < end; i++)
            put_line(page, rows[i].line, &rows[i]);
    } else {
        for (uint64_t line = from; line <= last && line <= page->to.source.line_count; line++) {
            while (first < end && rows[first].line < line)
                first++;
            put_line(page, (uint32_t)line,
                     first < end && rows[first].line == line ? &rows[first] : NULL);
        }
    }
    snd_out_text(page->to.out, "\n");
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    struct page page = { .to.out = out, .lines = doc->data };
    uint32_t    hidden = 0;

    for (uint32_t at = 0, end; at < page.lines->count && !out->failed; at = end) {
        end = end_of(page.lines, at);
        bool is_shown = options->show_all || (double)self_of(page.lines, at, end) >=
                                                 LEAST_SHARE * (double)page.lines->whole_ns;
        hidden += !is_shown;
        if (is_shown)
            put_function(&page, at, end);
    }
    if (hidden > 0)
        snd_out_format(out,
                       "%" PRIu32
                       " function%s with less than 1 %% left out; --show-all shows all\n",
                       hidden, snd_plural(hidden));
    snd_line_page_release(&page.to);
}

static void add_rows(struct snd_doc *doc, const struct snd_sample_lines *lines)
{
    struct snd_pysource source;

    for (uint32_t i = 0; i < lines->count; i++) {
        const struct snd_sample_line *row = &lines->rows[i];
        struct sonde_line_function    function = function_of(row);
        struct snd_cell              *cell = snd_table_add(&doc->rows);
        bool                          found = snd_pysource_open(&source, &function);
        *cell++ = snd_cell_text(row->file);
        *cell++ = snd_cell_text(row->function);
        *cell++ = snd_cell_number(row->first_line);
        *cell++ = snd_cell_number(row->line);
        *cell++ = snd_cell_number((int64_t)row->samples);
        *cell++ = snd_cell_number(row->self_ns);
        *cell++ = snd_cell_share(row->self_ns, lines->whole_ns);
        *cell++ = snd_cell_number(row->total_ns);
        *cell++ = snd_cell_share(row->total_ns, lines->whole_ns);
        *cell = found ? snd_cell_text(snd_doc_indent(doc, 0, snd_pysource_line(&source, row->line)))
                      : snd_cell_none();
        snd_pysource_close(&source);
    }
}

static void release(void *object)
{
    snd_sample_lines_release(object);
    free(object);
}

enum sonde_status snd_sampled_lines(struct sonde_trace                *trace,
                                    const struct sonde_report_options *options, struct snd_doc *doc,
                                    bool *found, struct sonde_error *err)
{
    struct snd_sample_lines *lines = calloc(1, sizeof *lines);

    *found = false;
    if (!lines)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    enum sonde_status st = snd_sample_lines_make(lines, trace, err);
    snd_doc_keep(doc, lines, release);
    if (st != SONDE_OK || lines->count == 0)
        return st;
    *found = true;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    if (options->format != SONDE_REPORT_TEXT)
        add_rows(doc, lines);
    else
        snd_table_add(&doc->rows); /* not empty: the text is the page's */
    snd_doc_total(doc, "source", NULL, SND_TEXT, snd_cell_string("samples"));
    snd_doc_total(doc, "time_ns", NULL, SND_TIME, snd_cell_number(lines->whole_ns));
    doc->data = lines;
    doc->text = put_page;
    return SONDE_OK;
}
