/* SPDX-License-Identifier: Apache-2.0 */
/* view/render_text.c - a table as text, as torch.profiler prints it; declared in render.h. */
#include "view/render.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "view/format.h"

#define GAP 2          /* blanks after a column */
#define FIXED_WIDTH 12 /* torch's width of a number */

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define PLAIN "\033[0m"

/* A table on its way to paper. */
struct page {
    const struct snd_table            *table;
    const struct sonde_report_options *options;
    struct snd_out                    *out;
    size_t                             width[SND_COLUMNS_MAX];
    uint32_t                           max_name;   /* the option's, or less: lines are to fit */
    struct snd_flops_unit              flops_unit; /* in the titles of such columns */
    const struct snd_flops_unit       *flops;      /* of their numbers; NULL: each has its own */
    struct sonde_buffer                text;       /* the cell being written */
    size_t                             dropped;    /* columns that are left out */
};

size_t snd_rows_shown(const struct snd_table *table, const struct sonde_report_options *options)
{
    return options->rows >= 0 && (uint64_t)options->rows < table->row_count ? (size_t)options->rows
                                                                            : table->row_count;
}

/* ------------------------------------------------------------------ cells */

static void format_cell(struct sonde_buffer *buf, enum snd_kind kind, const struct snd_cell *cell,
                        enum sonde_time_unit unit, const struct snd_flops_unit *flops)
{
    char number[SND_NUMBER_MAX];

    if (cell->none)
        return;
    switch (kind) {
    case SND_TEXT:
    case SND_LINES:
        snd_format_text(buf, cell->text.bytes, cell->text.length);
        break;
    case SND_SHAPES:
        if (cell->text.length == 0)
            snd_buf_text(buf, "[]");
        snd_format_text(buf, cell->text.bytes, cell->text.length);
        break;
    case SND_COUNT:
        snd_buf_format(buf, "%" PRId64, cell->number);
        break;
    case SND_FLAG:
        snd_buf_text(buf, cell->number ? "yes" : "no");
        break;
    case SND_TIME:
        snd_format_time(buf, (double)cell->number / 1000.0, unit);
        break;
    case SND_MEAN:
        snd_format_time(buf, cell->real, unit);
        break;
    case SND_REAL:
        snd_buf_text(buf, snd_number_fixed(number, 1, cell->real));
        break;
    case SND_SHARE:
        if (cell->number) /* asynchronous: as torch prints it */
            snd_buf_text(buf, "0");
        else
            snd_format_share(buf, cell->real);
        break;
    case SND_BYTES:
        snd_format_bytes(buf, cell->number);
        break;
    case SND_FLOPS:
        if (!(cell->real > 0))
            snd_buf_text(buf, "--");
        else if (!flops)
            snd_format_count(buf, cell->real);
        else
            snd_buf_format(buf, "%8s", snd_number_fixed(number, 3, cell->real * flops->scale));
        break;
    }
}

/* Line `n` of a cell of several; false past the last. */
static bool find_line(struct sonde_text text, size_t n, struct sonde_text *line)
{
    const char *at = text.bytes, *end = text.length ? text.bytes + text.length : at;

    for (; at < end; n--) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (n == 0) {
            *line = (struct sonde_text){ at, (size_t)((stop ? stop : end) - at) };
            return true;
        }
        if (!stop)
            break;
        at = stop + 1;
    }
    return false;
}

/* ----------------------------------------------------------------- widths */

static size_t measure_cell(struct page *page, size_t column, const struct snd_cell *cell)
{
    const struct snd_column *c = &page->table->columns[column];
    struct sonde_text        line;
    size_t                   longest = 0;

    if (c->kind != SND_LINES) {
        snd_buf_clear(&page->text);
        format_cell(&page->text, c->kind, cell, page->options->time_unit, page->flops);
        return snd_utf8_count(snd_buf_string(&page->text), page->text.length);
    }
    for (size_t n = 0; find_line(cell->text, n, &line); n++) {
        snd_buf_clear(&page->text);
        snd_format_text(&page->text, line.bytes, line.length);
        size_t width = snd_utf8_count(snd_buf_string(&page->text), page->text.length);
        longest = width > longest ? width : longest;
    }
    return longest;
}

static size_t limit_of(const struct page *page, enum snd_fit fit)
{
    uint32_t limit = fit == SND_FIT_NAME || fit == SND_FIT_LIKE_NAME ? page->max_name
                     : fit == SND_FIT_SHAPES                         ? page->options->max_shapes
                                                                     : page->options->max_source;

    return limit == 0 ? SIZE_MAX : limit < 4 ? 4 : limit;
}

static size_t column_width(struct page *page, size_t column)
{
    const struct snd_column *c = &page->table->columns[column];
    size_t                   longest = 0;

    if (c->fit == SND_FIT_FIXED)
        return FIXED_WIDTH;
    if (c->fit == SND_FIT_LIKE_NAME)
        return page->width[0];
    for (size_t row = 0; row < page->table->row_count; row++) {
        struct snd_cell cell = snd_table_cell(page->table, row, column);
        size_t          width = measure_cell(page, column, &cell);
        longest = width > longest ? width : longest;
    }
    if (c->fit == SND_FIT_CONTENT)
        return longest > strlen(c->title) ? longest : strlen(c->title);
    size_t limit = limit_of(page, c->fit);
    return longest + 4 < limit ? longest + 4 : limit;
}

/*
 * Counted as torch does, the column has one unit, which follows its smallest number. Counted in
 * full, some operators compute a million times what others do: each number has its own unit.
 */
static void scale_flops(struct page *page)
{
    double least = 0;

    page->flops_unit = (struct snd_flops_unit){ 1, "FLOPs" };
    page->flops = NULL;
    if (page->options->flops != SONDE_FLOPS_TORCH)
        return;

    for (size_t i = 0; i < page->table->column_count; i++) {
        if (page->table->columns[i].kind != SND_FLOPS || page->table->hidden[i])
            continue;
        for (size_t row = 0; row < page->table->row_count; row++) {
            double value = snd_table_cell(page->table, row, i).real;
            if (value > 0 && (least <= 0 || value < least))
                least = value;
        }
    }
    page->flops_unit = snd_flops_unit(least > 0 ? least : 1);
    page->flops = &page->flops_unit;
}

static bool has_flops(const struct page *page, size_t column)
{
    for (size_t row = 0; row < page->table->row_count; row++)
        if (snd_table_cell(page->table, row, column).real > 0)
            return true;
    return false;
}

static size_t set_widths(struct page *page)
{
    size_t total = 0;

    for (size_t i = 0; i < page->table->column_count; i++) {
        const struct snd_column *c = &page->table->columns[i];
        bool                     shown = c->title && !page->table->hidden[i];

        if (shown && c->kind == SND_FLOPS)
            shown = has_flops(page, i);
        page->width[i] = shown ? column_width(page, i) : 0;
        total += shown ? page->width[i] + GAP : 0;
    }
    return total > GAP ? total - GAP : 0;
}

#define LEAST_NAME 24

static size_t total_width(const struct page *page)
{
    size_t total = 0;

    for (size_t i = 0; i < page->table->column_count; i++)
        total += page->width[i] ? page->width[i] + GAP : 0;
    return total > GAP ? total - GAP : 0;
}

/* Leaves columns out, in the table's order, until a line fits. */
static void drop_columns(struct page *page)
{
    const char *const *title = page->table->spare;

    for (; title && *title && total_width(page) > page->options->width; title++) {
        for (size_t i = 0; i < page->table->column_count; i++) {
            const struct snd_column *c = &page->table->columns[i];
            if (!page->width[i] || strcmp(c->title, *title) != 0)
                continue;
            page->width[i] = 0;
            page->dropped++;
        }
    }
}

static void put_dropped(struct page *page)
{
    if (page->dropped > 0)
        snd_out_format(page->out, "%zu column%s omitted for lack of space; --wide shows all\n",
                       page->dropped, page->dropped == 1 ? "" : "s");
}

/* Where a line does not fit, columns that can be spared give way, then the names. */
static void lay_out(struct page *page)
{
    page->max_name = page->options->max_name;
    scale_flops(page);
    size_t total = set_widths(page), most = page->options->width;
    if (most == 0 || total <= most)
        return;
    drop_columns(page);
    total = total_width(page);
    if (total <= most || page->dropped > 0)
        return;
    for (size_t i = 0; i < page->table->column_count; i++) {
        if (page->table->columns[i].fit != SND_FIT_NAME || page->width[i] <= LEAST_NAME)
            continue;
        size_t over = total - most, spare = page->width[i] - LEAST_NAME;
        page->max_name = (uint32_t)(page->width[i] - (over < spare ? over : spare));
        set_widths(page);
        return;
    }
}

/* ------------------------------------------------------------------ lines */

static void put_padded(struct page *page, size_t column, const char *text, size_t length)
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
    snd_out_repeat(page->out, ' ', GAP);
}

/* Each fit has torch's own way of cutting. */
static void put_cut(struct page *page, size_t column)
{
    const char  *text = snd_buf_string(&page->text);
    size_t       length = page->text.length, count = snd_utf8_count(text, length);
    enum snd_fit fit = page->table->columns[column].fit;
    size_t       limit = limit_of(page, fit);

    if ((fit == SND_FIT_NAME || fit == SND_FIT_LIKE_NAME) && count >= limit - 3) {
        struct sonde_buffer cut = { 0 };
        snd_buf_put(&cut, text, snd_utf8_prefix(text, length, limit - 3));
        snd_buf_text(&cut, "...");
        put_padded(page, column, snd_buf_string(&cut), cut.length);
        sonde_buffer_release(&cut);
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

static void put_cell(struct page *page, size_t column, const struct snd_cell *cell, size_t line)
{
    enum snd_kind     kind = page->table->columns[column].kind;
    struct sonde_text text;

    snd_buf_clear(&page->text);
    if (kind == SND_LINES) {
        if (find_line(cell->text, line, &text))
            snd_format_text(&page->text, text.bytes, text.length);
    } else if (line == 0) {
        format_cell(&page->text, kind, cell, page->options->time_unit, page->flops);
    } else {
        put_padded(page, column, "", 0);
        return;
    }
    put_cut(page, column);
}

static void put_rule(struct page *page)
{
    for (size_t i = 0; i < page->table->column_count; i++) {
        if (page->width[i]) {
            snd_out_repeat(page->out, '-', page->width[i]);
            snd_out_repeat(page->out, ' ', GAP);
        }
    }
    snd_out_text(page->out, "\n");
}

static void put_titles(struct page *page)
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

static void put_line(struct page *page, const struct snd_cell *row, size_t line)
{
    for (size_t i = 0; i < page->table->column_count; i++)
        if (page->width[i])
            put_cell(page, i, &row[i], line);
    snd_out_text(page->out, "\n");
}

/* A row with a stack takes a line for each frame, and an empty one after. */
static void put_row(struct page *page, const struct snd_cell *row)
{
    struct sonde_text unused;
    size_t            lines = 0;

    for (size_t i = 0; i < page->table->column_count; i++) {
        if (!page->width[i] || page->table->columns[i].kind != SND_LINES)
            continue;
        size_t here = 1;
        while (find_line(row[i].text, here, &unused))
            here++;
        lines = here + 1;
    }
    for (size_t line = 0; line < (lines ? lines : 1); line++)
        put_line(page, row, line);
}

static void put_banner(struct page *page)
{
    size_t length = 0;

    for (size_t i = 0; i < page->table->column_count; i++)
        length += page->width[i] ? page->width[i] + GAP : 0;
    length -= length ? GAP : 0;
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

static void put_table(const struct snd_table *table, const struct sonde_report_options *options,
                      bool banner, struct snd_out *out)
{
    struct page page = { .table = table, .options = options, .out = out };

    lay_out(&page);
    if (banner)
        put_banner(&page);
    put_rule(&page);
    put_titles(&page);
    put_rule(&page);
    for (size_t row = 0, shown = 0; row < table->row_count; row++) {
        const struct snd_cell *cells = snd_table_row(table, row);
        if (table->filter && !cells[table->filter - 1].number)
            continue;
        if (shown++ == snd_rows_shown(table, options))
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
        format_cell(&text, total->kind, &total->cell, options->time_unit, NULL);
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
        snd_out_format(out, "%s %" PRIu64 " ", said > 1 ? "," : "", item->count);
        for (const char *at = item->key; *at; at++)
            snd_out_put(out, *at == '_' ? " " : at, 1);
    }
    if (said == 0)
        return;
    snd_out_text(out, "; see --view ledger");
    snd_out_text(out, options->colour ? PLAIN "\n" : "\n");
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
        put_title(doc->sections[i].title, out);
        put_table(&doc->sections[i].table, &all, false, out);
    }
}

void snd_render_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    size_t shown = snd_rows_shown(&doc->rows, options);

    if (doc->text) {
        doc->text(doc, options, out);
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
        put_table(&doc->rows, options, doc->unsaid_cut, out);
        if (shown < doc->rows.row_count && !doc->unsaid_cut)
            snd_out_format(out, "%zu more rows: --rows -1 shows all\n",
                           doc->rows.row_count - shown);
        if (!doc->totals_first)
            put_totals(doc, options, out);
    } else if (doc->empty) {
        snd_out_text(out, doc->empty);
        snd_out_text(out, "\n");
    }
    put_ledger_note(doc, options, out);
}
