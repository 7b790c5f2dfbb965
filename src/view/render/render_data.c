/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/render_data.c - a table as JSON or CSV; declared in render.h. */
#include "view/render/render.h"

#include <math.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/json.h"

/* ------------------------------------------------------------------- JSON */

static void put_lines_json(struct snd_json *json, const char *key, struct sonde_text text)
{
    const char *at = text.bytes, *end = text.length ? text.bytes + text.length : at;

    snd_json_array(json, key);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        snd_json_string(json, NULL, at, (size_t)((stop ? stop : end) - at));
        at = stop ? stop + 1 : end;
    }
    snd_json_end(json);
}

void snd_cell_json(struct snd_json *json, const char *key, enum snd_kind kind, bool torch_units,
                   const struct snd_cell *cell)
{
    if (cell->none) {
        snd_json_null(json, key);
        return;
    }
    switch (kind) {
    case SND_TEXT:
        snd_json_string(json, key, cell->text.bytes, cell->text.length);
        break;
    case SND_LINES:
        put_lines_json(json, key, cell->text);
        break;
    case SND_SHAPES:
        if (cell->text.length == 0)
            snd_json_raw(json, key, "[]", 2);
        else if (snd_json_is_int_lists(cell->text.bytes, cell->text.length))
            snd_json_raw(json, key, cell->text.bytes, cell->text.length);
        else
            snd_json_string(json, key, cell->text.bytes, cell->text.length);
        break;
    case SND_TIME:
        if (torch_units)
            snd_json_us(json, key, cell->number);
        else
            snd_json_int(json, key, cell->number);
        break;
    case SND_COUNT:
    case SND_BYTES:
        snd_json_int(json, key, cell->number);
        break;
    case SND_FLAG:
        snd_json_bool(json, key, cell->number != 0);
        break;
    case SND_MEAN:
    case SND_SHARE:
    case SND_FLOPS:
    case SND_REAL:
        snd_json_real(json, key, cell->real);
        break;
    }
}

static void put_rows_json(struct snd_json *json, const char *key, const struct snd_table *table,
                          size_t rows)
{
    snd_json_array(json, key);
    for (size_t row = 0; row < rows; row++) {
        const struct snd_cell *cells = snd_table_row(table, row);
        snd_json_object(json, NULL);
        for (size_t i = 0; i < table->column_count; i++)
            if (table->columns[i].key && !table->absent[i])
                snd_cell_json(json, table->columns[i].key, table->columns[i].kind,
                              table->torch_units, &cells[i]);
        snd_json_end(json);
    }
    snd_json_end(json);
}

void snd_render_json(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    struct snd_json json;

    snd_json_init(&json, out);
    snd_json_break_at(&json, 2);
    snd_json_object(&json, NULL);
    snd_json_text(&json, "view", doc->view);
    put_rows_json(&json, "rows", &doc->rows, snd_rows_shown(&doc->rows, options));

    snd_json_object(&json, "totals");
    for (size_t i = 0; i < doc->total_count; i++)
        snd_cell_json(&json, doc->totals[i].key, doc->totals[i].kind, doc->rows.torch_units,
                      &doc->totals[i].cell);
    for (size_t i = 0; i < doc->section_count; i++)
        put_rows_json(&json, doc->sections[i].key, &doc->sections[i].table,
                      doc->sections[i].table.row_count);
    snd_json_end(&json);

    snd_json_object(&json, "ledger");
    for (size_t i = 0; doc->summary && i < sonde_summary_ledger_count(doc->summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(doc->summary, i);
        snd_json_uint(&json, item->key, item->count);
    }
    snd_json_end(&json);
    snd_json_end(&json);
}

/* -------------------------------------------------------------------- CSV */

static void put_cell_csv(struct snd_out *out, const struct snd_column *column, bool torch_units,
                         const struct snd_cell *cell)
{
    char text[SND_NUMBER_MAX];

    if (cell->none)
        return;
    switch (column->kind) {
    case SND_LINES:
        snd_out_csv_lines(out, cell->text.bytes, cell->text.length);
        break;
    case SND_TEXT:
    case SND_SHAPES:
        snd_out_csv(out, cell->text.bytes, cell->text.length);
        break;
    case SND_TIME:
        if (torch_units) {
            snd_out_us(out, cell->number);
            break;
        }
        snd_out_int(out, cell->number);
        break;
    case SND_COUNT:
    case SND_BYTES:
    case SND_FLAG:
        snd_out_int(out, cell->number);
        break;
    case SND_MEAN:
    case SND_SHARE:
    case SND_FLOPS:
    case SND_REAL:
        if (isfinite(cell->real))
            snd_out_text(out, snd_number_shortest(text, cell->real));
        break;
    }
}

void snd_render_csv(const struct snd_doc *doc, const struct sonde_report_options *options,
                    struct snd_out *out)
{
    const struct snd_table *table = &doc->rows;
    const char             *comma = "";

    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].key && !table->absent[i]) {
            snd_out_format(out, "%s%s", comma, table->columns[i].key);
            comma = ",";
        }
    }
    snd_out_text(out, "\n");
    for (size_t row = 0; row < snd_rows_shown(table, options); row++) {
        comma = "";
        for (size_t i = 0; i < table->column_count; i++) {
            if (!table->columns[i].key || table->absent[i])
                continue;
            snd_out_text(out, comma);
            put_cell_csv(out, &table->columns[i], table->torch_units,
                         &snd_table_row(table, row)[i]);
            comma = ",";
        }
        snd_out_text(out, "\n");
    }
}
