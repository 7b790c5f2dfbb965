/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/render_text.c - a table as text, as torch.profiler prints it; declared in render.h. */
#include "view/render/render.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/plural.h"
#include "base/text/utf8.h"
#include "read/file/scale.h"
#include "read/said/trace_facts.h"
#include "view/render/text_page.h"

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

size_t snd_rows_shown(const struct snd_table *table, const struct sonde_report_options *options)
{
    return options->rows >= 0 && (uint64_t)options->rows < table->row_count ? (size_t)options->rows
                                                                            : table->row_count;
}

/* A row with less of the whole is minor. The first ones are shown whatever they have, and the last if they are few. */
#define MINOR_PERCENT 0.1
#define ALWAYS_SHOWN 10
#define FEW 5

/* The rows are in the table's own order: the greatest shares come first. */
static bool is_by_share(const struct snd_table *table, const struct sonde_report_options *options)
{
    return table->share > 0 && !options->sort;
}

/* As snd_rows_shown(), without the minor rows at the end. */
static size_t rows_in_text(const struct snd_table            *table,
                           const struct sonde_report_options *options)
{
    size_t shown = snd_rows_shown(table, options), major = shown;

    if (!is_by_share(table, options) || options->rows < 0 || options->show_all)
        return shown;
    while (major > ALWAYS_SHOWN &&
           snd_table_cell(table, major - 1, table->share - 1).real < MINOR_PERCENT)
        major--;
    return table->row_count - major > FEW ? major : shown;
}

/* "920 more rows, less than 0.10% each, 1.203ms together: --rows -1 shows all" */
static void put_rest(const struct snd_table *table, const struct sonde_report_options *options,
                     size_t shown, struct snd_out *out)
{
    struct sonde_buffer text = { 0 };
    int64_t             sum_ns = 0;
    size_t              left = table->row_count - shown;

    if (left == 0)
        return;
    snd_buf_format(&text, "%zu more row%s", left, snd_plural(left));
    if (is_by_share(table, options)) {
        double most = snd_table_cell(table, shown, table->share - 1).real;
        for (size_t row = shown; row < table->row_count; row++)
            sum_ns = snd_add(sum_ns, snd_table_cell(table, row, table->time - 1).number);
        snd_buf_text(&text, most < MINOR_PERCENT ? ", less than " : ", at most ");
        snd_format_share(&text, most < MINOR_PERCENT ? MINOR_PERCENT : most);
        snd_buf_text(&text, left > 1 ? " each, " : ", ");
        snd_format_time(&text, (double)sum_ns / 1000.0, options->time_unit);
        snd_buf_text(&text, left > 1 ? " together" : "");
    }
    snd_buf_text(&text, ": --rows -1 shows all\n");
    snd_out_put(out, snd_buf_string(&text), text.length);
    sonde_buffer_release(&text);
}

/* ------------------------------------------------------------------ lines */

static void put_dropped(struct snd_page *page)
{
    if (page->dropped > 0)
        snd_out_format(page->out, "%zu column%s omitted for lack of space; --wide shows all\n",
                       page->dropped, snd_plural(page->dropped));
}

static void put_padded(struct snd_page *page, size_t column, const char *text, size_t length)
{
    enum snd_fit fit = page->table->columns[column].fit;
    bool         left = fit == SND_FIT_SOURCE || fit == SND_FIT_CONTENT;
    size_t       count = snd_utf8_count(text, length);
    size_t       pad = count < page->width[column] ? page->width[column] - count : 0;

    if (!left)
        snd_out_repeat(page->out, ' ', pad);
    snd_out_put(page->out, text, length);
    if (left)
        snd_out_repeat(page->out, ' ', pad);
    snd_out_repeat(page->out, ' ', SND_PAGE_GAP);
}

static void put_begin(struct snd_page *page, size_t column, size_t kept)
{
    const char         *text = snd_buf_string(&page->text);
    struct sonde_buffer cut = { 0 };

    snd_buf_put(&cut, text, snd_utf8_prefix(text, page->text.length, kept));
    snd_buf_text(&cut, "...");
    put_padded(page, column, snd_buf_string(&cut), cut.length);
    sonde_buffer_release(&cut);
}

/* Each fit of torch's has its own way of cutting. */
static void put_cut(struct snd_page *page, size_t column)
{
    const char  *text = snd_buf_string(&page->text);
    size_t       length = page->text.length, count = snd_utf8_count(text, length);
    enum snd_fit fit = page->table->columns[column].fit;
    size_t       limit = fit == SND_FIT_NAME ? page->width[column] : snd_page_limit(page, fit);

    if ((fit == SND_FIT_NAME || fit == SND_FIT_LIKE_NAME) && count >= limit - 3) {
        put_begin(page, column, limit - 3);
    } else if (fit == SND_FIT_CONTENT && count > page->width[column]) {
        put_begin(page, column, page->width[column] - 3);
    } else if (fit == SND_FIT_SHAPES) {
        put_padded(page, column, text, snd_utf8_prefix(text, length, page->width[column]));
    } else if (fit == SND_FIT_SOURCE && count > page->width[column]) {
        struct sonde_buffer cut = { 0 };
        size_t              skip = snd_utf8_prefix(text, length, count - page->width[column] + 3);
        snd_buf_text(&cut, "...");
        snd_buf_put(&cut, text + skip, length - skip);
        put_padded(page, column, snd_buf_string(&cut), cut.length);
        sonde_buffer_release(&cut);
    } else {
        put_padded(page, column, text, length);
    }
}

static void put_cell(struct snd_page *page, size_t column, const struct snd_cell *cell, size_t line)
{
    enum snd_kind     kind = page->table->columns[column].kind;
    struct sonde_text text;

    snd_buf_clear(&page->text);
    if (kind == SND_LINES) {
        if (snd_page_line(cell->text, line, &text))
            snd_format_text(&page->text, text.bytes, text.length);
    } else if (line == 0) {
        snd_page_cell(&page->text, kind, cell, page->options->time_unit, page->flops);
    } else {
        put_padded(page, column, "", 0);
        return;
    }
    put_cut(page, column);
}

static void put_rule(struct snd_page *page)
{
    for (size_t i = 0; i < page->table->column_count; i++) {
        if (page->width[i]) {
            snd_out_repeat(page->out, '-', page->width[i]);
            snd_out_repeat(page->out, ' ', SND_PAGE_GAP);
        }
    }
    snd_out_text(page->out, "\n");
}

static void put_titles(struct snd_page *page)
{
    snd_out_text(page->out, page->options->colour ? BOLD : "");
    for (size_t i = 0; i < page->table->column_count; i++) {
        if (!page->width[i])
            continue;
        snd_buf_clear(&page->text);
        snd_buf_text(&page->text, page->table->columns[i].title);
        if (page->table->columns[i].kind == SND_FLOPS)
            snd_buf_text(&page->text, page->flops_unit.name);
        put_padded(page, i, snd_buf_string(&page->text), page->text.length);
    }
    snd_out_text(page->out, page->options->colour ? PLAIN "\n" : "\n");
}

static void put_line(struct snd_page *page, const struct snd_cell *row, size_t line)
{
    for (size_t i = 0; i < page->table->column_count; i++)
        if (page->width[i])
            put_cell(page, i, &row[i], line);
    snd_out_text(page->out, "\n");
}

/* A row with a stack takes a line for each frame, and an empty one after. */
static void put_row(struct snd_page *page, const struct snd_cell *row)
{
    struct sonde_text unused;
    size_t            lines = 0;

    for (size_t i = 0; i < page->table->column_count; i++) {
        if (!page->width[i] || page->table->columns[i].kind != SND_LINES)
            continue;
        size_t here = 1;
        while (snd_page_line(row[i].text, here, &unused))
            here++;
        lines = here + 1;
    }
    for (size_t line = 0; line < (lines ? lines : 1); line++)
        put_line(page, row, line);
}

static void put_banner(struct snd_page *page)
{
    size_t length = 0;

    for (size_t i = 0; i < page->table->column_count; i++)
        length += page->width[i] ? page->width[i] + SND_PAGE_GAP : 0;
    length -= length ? SND_PAGE_GAP : 0;
    if (page->options->header) {
        snd_out_repeat(page->out, '=', length);
        snd_out_format(page->out, "\n");
        snd_out_text(page->out, page->options->header);
        snd_out_text(page->out, "\n");
    }
    if (page->options->top_level) {
        snd_out_repeat(page->out, '=', length);
        snd_out_text(page->out, "\nThis report only display top-level ops statistics\n");
    }
}

/* `most` rows at most */
static void put_table(const struct snd_table *table, const struct sonde_report_options *options,
                      size_t most, bool banner, struct snd_out *out)
{
    struct snd_page page = { .table = table, .options = options, .out = out };

    snd_page_lay_out(&page);
    if (banner)
        put_banner(&page);
    put_rule(&page);
    put_titles(&page);
    put_rule(&page);
    for (size_t row = 0, shown = 0; row < table->row_count; row++) {
        const struct snd_cell *cells = snd_table_row(table, row);
        if (table->filter && !cells[table->filter - 1].number)
            continue;
        if (shown++ == most)
            break;
        put_row(&page, cells);
    }
    put_rule(&page);
    put_dropped(&page);
    sonde_buffer_release(&page.text);
}

/* --------------------------------------------------------------- document */

static void put_totals(const struct snd_doc *doc, const struct sonde_report_options *options,
                       struct snd_out *out)
{
    struct sonde_buffer text = { 0 };

    for (size_t i = 0; i < doc->total_count; i++) {
        const struct snd_total *total = &doc->totals[i];
        if (!total->title)
            continue;
        snd_buf_clear(&text);
        snd_page_cell(&text, total->kind, &total->cell, options->time_unit, NULL);
        snd_out_text(out, total->title);
        snd_out_text(out, ": ");
        snd_out_put(out, snd_buf_string(&text), text.length);
        snd_out_text(out, "\n");
    }
    sonde_buffer_release(&text);
}

static void put_ledger_note(const struct snd_doc *doc, const struct sonde_report_options *options,
                            struct snd_out *out)
{
    size_t count = doc->has_summary ? sonde_summary_ledger_count(doc->summary) : 0, said = 0;

    for (size_t i = 0; i < count && strcmp(doc->view, "ledger") != 0; i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(doc->summary, i);
        if (item->is_note)
            continue;
        if (said++ == 0)
            snd_out_text(out, options->colour ? DIM "ledger:" : "ledger:");
        snd_out_text(out, said > 1 ? ", " : " ");
        for (const char *at = item->key; *at; at++)
            snd_out_put(out, *at == '_' ? " " : at, 1);
        snd_out_format(out, " %" PRIu64, item->count);
    }
    if (said == 0)
        return;
    snd_out_text(out, "; see --view ledger");
    snd_out_text(out, options->colour ? PLAIN "\n" : "\n");
}

/* Zeros and gaps that are no finding: whoever recorded asked for less, and another may read it. */
static void put_light_note(const struct snd_doc *doc, struct snd_out *out)
{
    if (doc->trace && strcmp(doc->view, "ledger") != 0 && snd_gpus_are_light(doc->trace))
        snd_out_text(out,
                     "GPU work was recorded without CUDA's calls (--gpu=light): which operator "
                     "asked for it, and why a GPU was idle, is not known\n");
}

static void put_title(const char *title, struct snd_out *out)
{
    if (title)
        snd_out_format(out, "\n%s\n", title);
}

static void put_sections(const struct snd_doc *doc, const struct sonde_report_options *options,
                         struct snd_out *out)
{
    struct sonde_report_options all = *options;

    all.rows = -1;
    for (size_t i = 0; i < doc->section_count; i++) {
        if (doc->sections[i].table.row_count == 0)
            continue;
        const struct snd_table *table = &doc->sections[i].table;
        size_t                  most = table->most;
        if (most == 0 || options->rows < 0 || most > table->row_count)
            most = table->row_count;
        put_title(doc->sections[i].title, out);
        if (doc->sections[i].text) {
            doc->sections[i].text(table, &all, out);
            continue;
        }
        put_table(table, &all, most, false, out);
        put_rest(table, &all, most, out);
    }
}

void snd_render_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    size_t shown = rows_in_text(&doc->rows, options);

    if (doc->text) {
        doc->text(doc, options, out);
        put_light_note(doc, out);
        put_ledger_note(doc, options, out);
        return;
    }
    if (doc->head)
        doc->head(doc, options, out);
    if (doc->totals_first)
        put_totals(doc, options, out);
    put_sections(doc, options, out);
    if (doc->rows.row_count > 0) {
        put_title(doc->rows_title, out);
        put_table(&doc->rows, options, shown, doc->unsaid_cut, out);
        if (!doc->unsaid_cut)
            put_rest(&doc->rows, options, shown, out);
        if (!doc->totals_first)
            put_totals(doc, options, out);
    } else if (doc->empty) {
        snd_out_text(out, doc->empty);
        snd_out_text(out, "\n");
    }
    put_light_note(doc, out);
    put_ledger_note(doc, options, out);
}
