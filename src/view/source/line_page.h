/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/source/line_page.h - what the views of Python lines share: times and memory.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_SOURCE_LINE_PAGE_H
#define SND_VIEW_SOURCE_LINE_PAGE_H

#include "view/render/doc.h"
#include "view/source/py_source.h"

/* Where the text goes, and what is needed on the way. Zeros but for `out`. */
struct snd_line_page {
    struct snd_out     *out;
    struct sonde_buffer text;
    struct snd_pysource source; /* of the latest function */
};

void snd_line_page_release(struct snd_line_page *page);

/* A name; a line of source, without its end. */
void snd_line_page_name(struct snd_line_page *page, struct sonde_text name);
void snd_line_page_source(struct snd_line_page *page, struct sonde_text line);

/* Puts a line's own cells; returns the place after them. */
typedef struct snd_cell *snd_line_cells(struct snd_cell *cell, const struct sonde_line_function *f,
                                        const struct sonde_line *line);

/* Adds the rows of a function: file, function, first line, line, `put`'s cells, source. */
void snd_line_rows(struct snd_doc *doc, const struct sonde_lines *lines,
                   struct snd_pysource *source, const struct sonde_line_function *f,
                   snd_line_cells *put);

#endif
