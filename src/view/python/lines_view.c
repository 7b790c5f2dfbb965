/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines view: runs and time of each line. As text it is line_profiler's, to the character,
 * with the source as it is in the file now; where that is not what ran, it says so. Of a trace
 * without them that has samples, the share of each line in those (sampled_lines.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/sort.h"
#include "base/text/buf.h"
#include "base/text/utf8.h"
#include "view/render/format.h"
#include "view/source/line_page.h"
#include "view/samples/sampled_lines.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "first_line", "First Line", SND_COUNT, SND_FIT_FIXED },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "hits", "Hits", SND_COUNT, SND_FIT_FIXED },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "per_hit_ns", "Per Hit", SND_REAL, SND_FIT_FIXED },
    { "percent", "% Time", SND_REAL, SND_FIT_FIXED },
    { "source", "Line Contents", SND_TEXT, SND_FIT_CONTENT },
};

#define BLANK_MAX 65536u /* lines without source; more is no function's */

/* The four numbers of a line as they are shown, and the columns that hold them. */
enum column { HITS, TIME, PER_HIT, PERCENT, COLUMNS };
static const size_t least_widths[COLUMNS] = { 9, 12, 8, 8 };

struct shown {
    char text[COLUMNS][48];
};

struct order {
    const struct sonde_lines *lines;
    size_t                    count;
    uint32_t                  functions[];
};

/* ----------------------------------------------------------------- numbers */

/* "%5.1f", or "%5.3g" where that is wider than the column. */
static void show_number(char out[48], double value, size_t width)
{
    char text[SND_NUMBER_MAX];

    snprintf(out, 48, "%5.46s", snd_number_fixed(text, 1, value));
    if (strlen(snd_number_fixed(text, 1, value)) > width)
        snprintf(out, 48, "%5.46s", snd_number_general(text, 3, value));
}

static void show_line(struct shown *shown, const struct sonde_line *line, int64_t total_ns,
                      double unit_ns)
{
    char   text[SND_NUMBER_MAX];
    double time = (double)line->time_ns / unit_ns;

    snprintf(shown->text[HITS], 48, "%" PRIu64, line->hits);
    if (strlen(shown->text[HITS]) > least_widths[HITS])
        snprintf(shown->text[HITS], 48, "%.47s", snd_number_general(text, 6, (double)line->hits));
    show_number(shown->text[TIME], time, least_widths[TIME]);
    show_number(shown->text[PER_HIT], time / (double)line->hits, least_widths[PER_HIT]);
    shown->text[PERCENT][0] = '\0';
    if (total_ns != 0)
        snprintf(shown->text[PERCENT], 48, "%5.46s",
                 snd_number_fixed(text, 1, 100 * (double)line->time_ns / (double)total_ns));
}

/* -------------------------------------------------------------------- text */

struct page {
    struct snd_line_page      to;
    const struct sonde_lines *lines;
    double                    unit_ns; /* of times shown */
};

static void put_row(struct page *page, const size_t *widths, const char *line,
                    const struct shown *shown)
{
    snd_out_format(page->to.out, "%6s", line);
    for (size_t i = 0; i < COLUMNS; i++)
        snd_out_format(page->to.out, " %*s", (int)widths[i], shown ? shown->text[i] : "");
    snd_out_text(page->to.out, "  ");
}

static void put_header(struct page *page, const size_t *widths)
{
    static const struct shown titles = { { "Hits", "Time", "Per Hit", "% Time" } };
    size_t                    length = 6 + 2 + strlen("Line Contents");

    put_row(page, widths, "Line #", &titles);
    snd_out_text(page->to.out, "Line Contents\n");
    for (size_t i = 0; i < COLUMNS; i++)
        length += widths[i] + 1;
    snd_out_repeat(page->to.out, '=', length);
    snd_out_text(page->to.out, "\n");
}

/* Of a function whose source is not shown: from the first to the last line that has numbers. */
static size_t blank_count(const struct page *page, const struct sonde_line_function *f)
{
    if (f->count == 0)
        return 1;
    uint32_t least = sonde_lines_line(page->lines, f->first)->line;
    uint32_t most = sonde_lines_line(page->lines, f->first + f->count - 1)->line;
    size_t   count = (size_t)most - (least < f->line ? least : f->line) + 1;
    return count < BLANK_MAX ? count : BLANK_MAX;
}

/* Where the function is and what of its source can be shown: returns how many lines. */
static size_t put_place(struct page *page, const struct sonde_line_function *f,
                        const struct snd_pysource *source, bool found)
{
    if (found || access(f->file.bytes, F_OK) == 0) {
        snd_out_text(page->to.out, "File: ");
        snd_line_page_name(&page->to, f->file);
        snd_out_text(page->to.out, "\nFunction: ");
        snd_line_page_name(&page->to, f->name);
        snd_out_format(page->to.out, " at line %" PRIu32 "\n", f->line);
        if (!found) {
            snd_out_text(page->to.out, "The file cannot be read, or is not source code: its lines "
                                       "are not shown.\n");
            return blank_count(page, f);
        }
        if (!snd_pysource_fits(source, f))
            snd_out_text(page->to.out,
                         "The file has changed since: its lines may not be those that "
                         "ran.\n");
        return snd_pysource_block(source, f->line);
    }
    snd_out_text(page->to.out, "\nCould not find file ");
    snd_line_page_name(&page->to, f->file);
    snd_out_text(page->to.out,
                 "\nAre you sure you are running this program from the same directory\n"
                 "that you ran the profiler from?\n"
                 "Continuing without the function's contents.\n");
    return blank_count(page, f);
}

static void put_lines(struct page *page, const struct sonde_line_function *f,
                      const struct shown *shown, const struct snd_pysource *source, size_t count)
{
    size_t widths[COLUMNS], at = 0;
    char   number[24];

    memcpy(widths, least_widths, sizeof widths);
    for (size_t i = 0; i < f->count; i++) {
        for (size_t k = 0; k < PERCENT; k++) {
            size_t width = strlen(shown[i].text[k]);
            widths[k] = width > widths[k] ? width : widths[k];
        }
    }
    snd_out_text(page->to.out, "\n");
    put_header(page, widths);
    for (uint64_t line = f->line; line < (uint64_t)f->line + count; line++) {
        while (at < f->count && sonde_lines_line(page->lines, f->first + at)->line < line)
            at++;
        bool ran = at < f->count && sonde_lines_line(page->lines, f->first + at)->line == line;
        snprintf(number, sizeof number, "%" PRIu64, line);
        put_row(page, widths, number, ran ? &shown[at] : NULL);
        snd_line_page_source(&page->to, snd_pysource_line(source, line));
        snd_out_text(page->to.out, "\n");
        if (page->to.out->failed)
            return;
    }
}

static void put_function(struct page *page, const struct sonde_line_function *f)
{
    struct shown *shown = calloc((size_t)f->count + 1, sizeof *shown);
    char          number[SND_NUMBER_MAX];

    if (!shown) {
        snd_out_fail(page->to.out, ENOMEM);
        return;
    }
    bool found = snd_pysource_turn(&page->to.source, f);
    for (size_t i = 0; i < f->count; i++)
        show_line(&shown[i], sonde_lines_line(page->lines, f->first + i), f->time_ns,
                  page->unit_ns);
    snd_out_format(page->to.out, "Total time: %s s\n",
                   snd_number_general(number, 6, (double)f->time_ns * 1e-9));
    size_t count = put_place(page, f, &page->to.source, found);
    put_lines(page, f, shown, &page->to.source, count);
    snd_out_text(page->to.out, "\n");
    free(shown);
}

static void put_summary(struct page *page, const struct sonde_line_function *f)
{
    char number[SND_NUMBER_MAX];

    snd_out_format(page->to.out, "%6s seconds - ",
                   snd_number_fixed(number, 2, (double)f->time_ns * 1e-9));
    snd_line_page_name(&page->to, f->file);
    snd_out_format(page->to.out, ":%" PRIu32 " - ", f->line);
    snd_line_page_name(&page->to, f->name);
    snd_out_text(page->to.out, "\n");
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    static const double units_ns[] = {
        [SONDE_TIME_AUTO] = 1, [SONDE_TIME_US] = 1e3, [SONDE_TIME_MS] = 1e6, [SONDE_TIME_S] = 1e9
    };
    const struct order *order = doc->data;
    struct page         page = { .lines = order->lines,
                                 .to.out = out,
                                 .unit_ns = units_ns[options->time_unit] };
    char                number[SND_NUMBER_MAX];

    snd_out_format(out, "Timer unit: %s s\n\n", snd_number_general(number, 6, page.unit_ns * 1e-9));
    for (size_t i = 0; i < order->count; i++) {
        const struct sonde_line_function *f = sonde_lines_function(order->lines,
                                                                   order->functions[i]);
        if (!options->skip_zero || f->hits > 0)
            put_function(&page, f);
    }
    for (size_t i = 0; options->part == SONDE_PART_SUMMARY && i < order->count; i++) {
        const struct sonde_line_function *f = sonde_lines_function(order->lines,
                                                                   order->functions[i]);
        if (!options->skip_zero || f->time_ns != 0)
            put_summary(&page, f);
    }
    snd_line_page_release(&page.to);
}

/* -------------------------------------------------------------------- rows */

static struct snd_cell *put_own_cells(struct snd_cell *cell, const struct sonde_line_function *f,
                                      const struct sonde_line *line)
{
    *cell++ = snd_cell_number((int64_t)line->hits);
    *cell++ = snd_cell_number(line->time_ns);
    *cell++ = snd_cell_real((double)line->time_ns / (double)line->hits);
    *cell++ = f->time_ns == 0 ? snd_cell_none()
                              : snd_cell_real(100 * (double)line->time_ns / (double)f->time_ns);
    return cell;
}

struct by_time {
    int64_t  time_ns;
    uint32_t function;
};

static int compare_time(const void *left, const void *right)
{
    const struct by_time *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->time_ns, y->time_ns), SND_RISING(x->function, y->function));
}

/* As registered, or the longest last, as line_profiler sorts. */
static struct order *make_order(const struct sonde_lines *lines, bool sorted)
{
    size_t          count = sonde_lines_function_count(lines);
    struct order   *order = calloc(1, sizeof *order + count * sizeof order->functions[0]);
    struct by_time *times = calloc(count + 1, sizeof *times);

    if (order && times) {
        for (uint32_t i = 0; i < count; i++)
            times[i] = (struct by_time){ sonde_lines_function(lines, i)->time_ns, i };
        if (sorted)
            snd_sort(times, count, sizeof *times, compare_time);
        for (size_t i = 0; i < count; i++)
            order->functions[i] = times[i].function;
        order->count = count;
        order->lines = lines;
    } else {
        free(order);
        order = NULL;
    }
    free(times);
    return order;
}

SND_DOC_RELEASE(free_lines, sonde_lines_free)

SND_VIEW_BUILD(snd_view_lines)
{
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    if (options->sort && strcmp(options->sort, "time") != 0)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "cannot sort functions by '%.60s'; keys: time (longest last)",
                        options->sort);
    struct sonde_lines *lines = NULL;
    enum sonde_status   st = sonde_lines_new(trace, SONDE_LINES_TIME, &lines, err);
    snd_doc_keep(doc, lines, free_lines);
    if (st != SONDE_OK)
        return st;
    bool found = false;
    if (sonde_lines_function_count(lines) == 0)
        st = snd_sampled_lines(trace, options, doc, &found, err);
    if (st != SONDE_OK || found)
        return st;
    struct order *order = make_order(lines, options->sort != NULL);
    if (!order)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    snd_doc_keep(doc, order, free);
    doc->data = order;
    doc->text = order->count > 0 ? put_page : NULL;
    struct snd_pysource source = { 0 };
    for (size_t i = 0; i < order->count; i++)
        snd_line_rows(doc, lines, &source, sonde_lines_function(lines, order->functions[i]),
                      put_own_cells);
    snd_pysource_close(&source);
    snd_doc_total(doc, "functions", NULL, SND_COUNT, snd_cell_number((int64_t)order->count));
    return SONDE_OK;
}
