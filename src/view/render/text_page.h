/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/text_page.h - a table laid out as text: what its cells read, how wide its columns are.
 *
 * Layer: view. Threads: one at a time.
 */
#ifndef SND_VIEW_RENDER_TEXT_PAGE_H
#define SND_VIEW_RENDER_TEXT_PAGE_H

#include "view/render/format.h"
#include "view/render/render.h"

#define SND_PAGE_GAP 2 /* blanks after a column */

/* A table that is being written. */
struct snd_page {
    const struct snd_table            *table;
    const struct sonde_report_options *options;
    struct snd_out                    *out;
    size_t                             width[SND_COLUMNS_MAX];
    uint32_t                           max_name;   /* the option's, or less: lines are to fit */
    struct snd_flops_unit              flops_unit; /* in the titles of such columns */
    const struct snd_flops_unit
                       *flops; /* unit of the numbers of a column; NULL: each number has its own */
    struct sonde_buffer text;  /* the cell being written */
    size_t              dropped; /* columns that are left out */
};

/* Appends the text of a cell to `buf`. */
void snd_page_cell(struct sonde_buffer *buf, enum snd_kind kind, const struct snd_cell *cell,
                   enum sonde_time_unit unit, const struct snd_flops_unit *flops);

/* Line `n` of a cell of several; false past the last. */
bool snd_page_line(struct sonde_text text, size_t n, struct sonde_text *line);

/* How wide a column of this fit may be. */
size_t snd_page_limit(const struct snd_page *page, enum snd_fit fit);

/*
 * Sets the widths of the columns. Where a line does not fit, texts get a third of it at most, columns that
 * can be spared are left out, then names are truncated.
 */
void snd_page_lay_out(struct snd_page *page);

#endif
