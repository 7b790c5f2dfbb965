/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/text_page.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/utf8.h"

#define FIXED_WIDTH 12 /* torch's width of a number */

/* ------------------------------------------------------------------ cells */

void snd_page_cell(struct sonde_buffer *buf, enum snd_kind kind, const struct snd_cell *cell,
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

bool snd_page_line(struct sonde_text text, size_t n, struct sonde_text *line)
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

static size_t measure_cell(struct snd_page *page, size_t column, const struct snd_cell *cell)
{
    const struct snd_column *c = &page->table->columns[column];
    struct sonde_text        line;
    size_t                   longest = 0;

    if (c->kind != SND_LINES) {
        snd_buf_clear(&page->text);
        snd_page_cell(&page->text, c->kind, cell, page->options->time_unit, page->flops);
        return snd_utf8_count(snd_buf_string(&page->text), page->text.length);
    }
    for (size_t n = 0; snd_page_line(cell->text, n, &line); n++) {
        snd_buf_clear(&page->text);
        snd_format_text(&page->text, line.bytes, line.length);
        size_t width = snd_utf8_count(snd_buf_string(&page->text), page->text.length);
        longest = width > longest ? width : longest;
    }
    return longest;
}

size_t snd_page_limit(const struct snd_page *page, enum snd_fit fit)
{
    uint32_t limit = fit == SND_FIT_NAME || fit == SND_FIT_LIKE_NAME ? page->max_name
                     : fit == SND_FIT_SHAPES                         ? page->options->max_shapes
                                                                     : page->options->max_source;

    return limit == 0 ? SIZE_MAX : limit < 4 ? 4 : limit;
}

static size_t column_width(struct snd_page *page, size_t column)
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
    size_t limit = snd_page_limit(page, c->fit);
    return longest + 4 < limit ? longest + 4 : limit;
}

/*
 * Counted as torch does, the column has one unit, which follows its smallest number. Counted in
 * full, some operators compute a million times what others do: each number has its own unit.
 */
static void scale_flops(struct snd_page *page)
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

static bool has_flops(const struct snd_page *page, size_t column)
{
    for (size_t row = 0; row < page->table->row_count; row++)
        if (snd_table_cell(page->table, row, column).real > 0)
            return true;
    return false;
}

static size_t set_widths(struct snd_page *page)
{
    size_t total = 0;

    for (size_t i = 0; i < page->table->column_count; i++) {
        const struct snd_column *c = &page->table->columns[i];
        bool                     shown = c->title && !page->table->hidden[i];

        if (shown && c->kind == SND_FLOPS)
            shown = has_flops(page, i);
        page->width[i] = shown ? column_width(page, i) : 0;
        total += shown ? page->width[i] + SND_PAGE_GAP : 0;
    }
    return total > SND_PAGE_GAP ? total - SND_PAGE_GAP : 0;
}

#define LEAST_NAME 24

static size_t total_width(const struct snd_page *page)
{
    size_t total = 0;

    for (size_t i = 0; i < page->table->column_count; i++)
        total += page->width[i] ? page->width[i] + SND_PAGE_GAP : 0;
    return total > SND_PAGE_GAP ? total - SND_PAGE_GAP : 0;
}

/* Leaves columns out, in the table's order, until a line fits. */
static void drop_columns(struct snd_page *page)
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

static size_t last_shown(const struct snd_page *page)
{
    size_t last = page->table->column_count;

    while (last > 0 && !page->width[last - 1])
        last--;
    return last;
}

/*
 * Cuts names, and texts that are as wide as their content, to `least` columns or to what is missing. The
 * last column stays: the end of a line is cut later, and that is said.
 */
static void narrow_texts(struct snd_page *page, size_t least)
{
    size_t total = total_width(page), most = page->options->width;

    for (size_t i = 0; i + 1 < last_shown(page) && total > most; i++) {
        enum snd_fit fit = page->table->columns[i].fit;
        if ((fit != SND_FIT_CONTENT && fit != SND_FIT_NAME) || page->width[i] <= least)
            continue;
        size_t over = total - most, spare = page->width[i] - least;
        page->width[i] -= over < spare ? over : spare;
        total = total_width(page);
    }
}

/* Gives texts back what is left of the line. */
static void widen_texts(struct snd_page *page, const size_t whole[SND_COLUMNS_MAX])
{
    for (size_t i = 0; i < page->table->column_count; i++) {
        size_t total = total_width(page), most = page->options->width;
        if (!page->width[i] || total >= most || page->width[i] >= whole[i])
            continue;
        size_t lost = whole[i] - page->width[i];
        page->width[i] += lost < most - total ? lost : most - total;
    }
}

/* Names are cut where their column ends. */
static void limit_names(struct snd_page *page)
{
    for (size_t i = page->table->column_count; i-- > 0;)
        if (page->width[i] && page->table->columns[i].fit == SND_FIT_NAME)
            page->max_name = (uint32_t)page->width[i];
    for (size_t i = 0; i < page->table->column_count; i++)
        if (page->width[i] && page->table->columns[i].fit == SND_FIT_LIKE_NAME)
            page->width[i] = page->width[0];
}

void snd_page_lay_out(struct snd_page *page)
{
    size_t whole[SND_COLUMNS_MAX];

    page->max_name = page->options->max_name;
    scale_flops(page);
    size_t total = set_widths(page), most = page->options->width;
    if (most == 0 || total <= most)
        return;
    memcpy(whole, page->width, sizeof whole);
    narrow_texts(page, most / 3 > LEAST_NAME ? most / 3 : LEAST_NAME);
    drop_columns(page);
    narrow_texts(page, LEAST_NAME);
    widen_texts(page, whole);
    limit_names(page);
}
