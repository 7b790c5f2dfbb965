/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line-memory view: memory in use after each line, and what the line added. As text it is
 * memory_profiler's, to the character; a column more with the peak, where asked for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/buf.h"
#include "view/render/format.h"
#include "view/source/line_page.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "first_line", "First Line", SND_COUNT, SND_FIT_FIXED },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "usage_bytes", "Mem Usage", SND_BYTES, SND_FIT_FIXED },
    { "increment_bytes", "Increment", SND_BYTES, SND_FIT_FIXED },
    { "occurrences", "Occurrences", SND_COUNT, SND_FIT_FIXED },
    { "allocated_bytes", "Allocated", SND_BYTES, SND_FIT_FIXED },
    { "freed_bytes", "Freed", SND_BYTES, SND_FIT_FIXED },
    { "peak_bytes", "Peak", SND_BYTES, SND_FIT_FIXED },
    { "source", "Line Contents", SND_TEXT, SND_FIT_CONTENT },
};

#define MIB (1024.0 * 1024.0)

struct page {
    struct snd_line_page      to;
    const struct sonde_lines *lines;
    bool                      peak;
};

static void put_cells(struct page *page, const char *line, const char *usage, const char *increment,
                      const char *peak, const char *occurrences)
{
    snd_out_format(page->to.out, "%6s %12s %12s", line, usage, increment);
    if (page->peak)
        snd_out_format(page->to.out, " %12s", peak);
    snd_out_format(page->to.out, "  %10s   ", occurrences);
}

static void show_mib(char out[48], double bytes)
{
    char number[SND_NUMBER_MAX];

    snprintf(out, 48, "%5.40s MiB", snd_number_fixed(number, 1, bytes / MIB));
}

static void put_line(struct page *page, uint64_t number, const struct sonde_line *line,
                     struct sonde_text source)
{
    char text[24], usage[48] = "", increment[48] = "", peak[48] = "", occurrences[24] = "";

    snprintf(text, sizeof text, "%" PRIu64, number);
    if (line) {
        show_mib(usage, (double)line->usage_bytes);
        show_mib(increment, (double)line->increment_bytes);
        show_mib(peak, (double)line->peak_bytes);
        snprintf(occurrences, sizeof occurrences, "%" PRIu64, line->hits);
    }
    put_cells(page, text, usage, increment, peak, occurrences);
    snd_line_page_source(&page->to, source);
    snd_out_text(page->to.out, "\n");
}

/* All lines of the function; those counted alone where there is no source. */
static void put_lines(struct page *page, const struct sonde_line_function *f,
                      const struct snd_pysource *source)
{
    size_t   at = 0;
    uint64_t end = (uint64_t)f->line + snd_pysource_block(source, f->line);

    for (uint64_t line = f->line; line < end; line++) {
        while (at < f->count && sonde_lines_line(page->lines, f->first + at)->line < line)
            at++;
        const struct sonde_line *found = at < f->count
                                             ? sonde_lines_line(page->lines, f->first + at)
                                             : NULL;
        put_line(page, line, found && found->line == line ? found : NULL,
                 snd_pysource_line(source, line));
    }
    for (size_t i = 0; !source->bytes && i < f->count; i++) {
        const struct sonde_line *line = sonde_lines_line(page->lines, f->first + i);
        put_line(page, line->line, line, (struct sonde_text){ "", 0 });
    }
}

static void put_function(struct page *page, const struct sonde_line_function *f)
{
    struct snd_pysource *source = &page->to.source;
    bool                 found = snd_pysource_turn(source, f);

    snd_out_text(page->to.out, "Filename: ");
    snd_line_page_name(&page->to, f->file);
    snd_out_text(page->to.out, "\n");
    if (!found)
        snd_out_text(page->to.out,
                     "The file does not exist, or is not source code: its lines are not shown.\n");
    else if (!snd_pysource_fits(source, f))
        snd_out_text(page->to.out,
                     "The file has changed since: its lines may not be those that ran.\n");
    snd_out_text(page->to.out, "\n");
    put_cells(page, "Line #", "Mem usage", "Increment", "Peak", "Occurrences");
    snd_out_text(page->to.out, "Line Contents\n");
    snd_out_repeat(page->to.out, '=', page->peak ? 74 : 61);
    snd_out_text(page->to.out, "\n");
    put_lines(page, f, source);
    snd_out_text(page->to.out, "\n\n");
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct sonde_lines *lines = doc->data;
    struct page               page = { .lines = lines, .to.out = out, .peak = options->peak };

    /* memory_profiler shows no function that did not run. */
    for (size_t i = 0; i < sonde_lines_function_count(lines); i++)
        if (sonde_lines_function(lines, i)->count > 0)
            put_function(&page, sonde_lines_function(lines, i));
    snd_line_page_release(&page.to);
}

static struct snd_cell *put_own_cells(struct snd_cell *cell, const struct sonde_line_function *f,
                                      const struct sonde_line *line)
{
    (void)f;
    *cell++ = snd_cell_number((int64_t)line->usage_bytes);
    *cell++ = snd_cell_number(line->increment_bytes);
    *cell++ = snd_cell_number((int64_t)line->hits);
    *cell++ = snd_cell_number((int64_t)line->allocated_bytes);
    *cell++ = snd_cell_number((int64_t)line->freed_bytes);
    *cell++ = snd_cell_number((int64_t)line->peak_bytes);
    return cell;
}

SND_DOC_RELEASE(free_lines, sonde_lines_free)

SND_VIEW_BUILD(snd_view_line_memory)
{
    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct sonde_lines *lines = NULL;
    enum sonde_status   st = sonde_lines_new(trace, SONDE_LINES_MEMORY, &lines, err);
    snd_doc_keep(doc, lines, free_lines);
    doc->data = lines;
    if (st != SONDE_OK)
        return st;
    struct snd_pysource source = { 0 };
    for (size_t i = 0; i < sonde_lines_function_count(lines); i++)
        snd_line_rows(doc, lines, &source, sonde_lines_function(lines, i), put_own_cells);
    snd_pysource_close(&source);
    doc->text = doc->rows.row_count > 0 ? put_page : NULL;
    snd_doc_total(doc, "functions", NULL, SND_COUNT,
                  snd_cell_number((int64_t)sonde_lines_function_count(lines)));
    return SONDE_OK;
}
