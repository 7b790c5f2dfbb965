/* SPDX-License-Identifier: Apache-2.0 */
#include "view/source/line_page.h"

#include "view/render/format.h"

void snd_line_page_release(struct snd_line_page *page)
{
    sonde_buffer_release(&page->text);
    snd_pysource_close(&page->source);
}

void snd_line_page_name(struct snd_line_page *page, struct sonde_text name)
{
    snd_buf_clear(&page->text);
    snd_format_text(&page->text, name.bytes, name.length);
    snd_out_put(page->out, snd_buf_string(&page->text), page->text.length);
}

void snd_line_page_source(struct snd_line_page *page, struct sonde_text line)
{
    snd_buf_clear(&page->text);
    snd_format_source(&page->text, line.bytes, line.length);
    snd_out_put(page->out, snd_buf_string(&page->text), page->text.length);
}

void snd_line_rows(struct snd_doc *doc, const struct sonde_lines *lines,
                   struct snd_pysource *source, const struct sonde_line_function *f,
                   snd_line_cells *put)
{
    snd_pysource_turn(source, f);
    bool fits = snd_pysource_fits(source, f);
    for (uint32_t i = 0; i < f->count; i++) {
        const struct sonde_line *line = sonde_lines_line(lines, f->first + i);
        struct snd_cell         *cell = snd_table_add(&doc->rows);
        struct sonde_text        text = snd_pysource_line(source, line->line);
        *cell++ = snd_cell_text(f->file);
        *cell++ = snd_cell_text(f->name);
        *cell++ = snd_cell_number(f->line);
        *cell++ = snd_cell_number(line->line);
        cell = put(cell, f, line);
        *cell = source->bytes && fits ? snd_cell_text(snd_doc_indent(doc, 0, text))
                                      : snd_cell_none();
    }
}
