/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/render.c - see render.h: a document in the format that the options name. */
#include "view/render/render.h"

#include <math.h>
#include <string.h>

#include "base/count_of.h"
#include "base/struct_size.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "view/render/fit_lines.h"

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

/* One cell, the same in every format that has JSON. */
static void put_cell_json(struct snd_json *json, const char *key, enum snd_kind kind,
                          bool torch_units, const struct snd_cell *cell)
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
                put_cell_json(json, table->columns[i].key, table->columns[i].kind,
                              table->torch_units, &cells[i]);
        snd_json_end(json);
    }
    snd_json_end(json);
}

static void render_json(const struct snd_doc *doc, const struct sonde_report_options *options,
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
        put_cell_json(&json, doc->totals[i].key, doc->totals[i].kind, doc->rows.torch_units,
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

static void render_csv(const struct snd_doc *doc, const struct sonde_report_options *options,
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

/* ----------------------------------------------------- columns for the page */

/* Cells are written by the function that `--json` uses, so that both have the same digits. */

static const char *const kind_words[] = {
    [SND_TEXT] = "text",   [SND_COUNT] = "count", [SND_TIME] = "time",   [SND_MEAN] = "mean",
    [SND_SHARE] = "share", [SND_BYTES] = "bytes", [SND_FLOPS] = "flops", [SND_SHAPES] = "shapes",
    [SND_LINES] = "lines", [SND_FLAG] = "flag",   [SND_REAL] = "real",
};

static void put_name(struct snd_json *json, const char *key, const char *title, enum snd_kind kind)
{
    snd_json_text(json, "key", key);
    if (title)
        snd_json_text(json, "title", title);
    snd_json_text(json, "kind", kind_words[kind]);
}

static bool is_told(const struct snd_table *table, size_t column)
{
    return table->columns[column].key && !table->absent[column];
}

/* Columns that text leaves out have no title, but for those of `own`, which may be NULL. */
static const char *find_title(const struct snd_table *table, size_t column,
                              const struct snd_column_title *own)
{
    for (; own && own->key; own++)
        if (strcmp(own->key, table->columns[column].key) == 0)
            return own->title;
    return table->hidden[column] ? NULL : table->columns[column].title;
}

static void put_columns(struct snd_json *json, const struct snd_table *table,
                        const struct snd_column_title *titles)
{
    snd_json_array(json, "columns");
    for (size_t i = 0; i < table->column_count; i++) {
        if (!is_told(table, i))
            continue;
        snd_json_object(json, NULL);
        put_name(json, table->columns[i].key, find_title(table, i, titles), table->columns[i].kind);
        snd_json_end(json);
    }
    snd_json_end(json);
}

static void put_table(struct snd_json *json, const struct snd_table *table, size_t rows,
                      const struct snd_column_title *titles)
{
    put_columns(json, table, titles);
    snd_json_bool(json, "microseconds", table->torch_units);
    snd_json_uint(json, "row_count", table->row_count);
    snd_json_array(json, "rows");
    for (size_t row = 0; row < rows; row++) {
        const struct snd_cell *cells = snd_table_row(table, row);
        snd_json_array(json, NULL);
        for (size_t i = 0; i < table->column_count; i++)
            if (is_told(table, i))
                put_cell_json(json, NULL, table->columns[i].kind, table->torch_units, &cells[i]);
        snd_json_end(json);
    }
    snd_json_end(json);
}

static void put_totals(struct snd_json *json, const struct snd_doc *doc)
{
    snd_json_array(json, "totals");
    for (size_t i = 0; i < doc->total_count; i++) {
        snd_json_object(json, NULL);
        put_name(json, doc->totals[i].key, doc->totals[i].title, doc->totals[i].kind);
        put_cell_json(json, "value", doc->totals[i].kind, doc->rows.torch_units,
                      &doc->totals[i].cell);
        snd_json_end(json);
    }
    snd_json_end(json);
}

static void render_columns(const struct snd_doc *doc, const struct sonde_report_options *options,
                           struct snd_out *out)
{
    struct snd_json json;

    snd_json_init(&json, out);
    snd_json_object(&json, NULL);
    snd_json_text(&json, "view", doc->view);
    if (doc->empty)
        snd_json_text(&json, "empty", doc->empty);
    if (doc->rows_title)
        snd_json_text(&json, "title", doc->rows_title);
    put_totals(&json, doc);
    snd_json_array(&json, "sections");
    for (size_t i = 0; i < doc->section_count; i++) {
        snd_json_object(&json, NULL);
        snd_json_text(&json, "key", doc->sections[i].key);
        if (doc->sections[i].title)
            snd_json_text(&json, "title", doc->sections[i].title);
        put_table(&json, &doc->sections[i].table, doc->sections[i].table.row_count, NULL);
        snd_json_end(&json);
    }
    snd_json_end(&json);
    put_table(&json, &doc->rows, snd_rows_shown(&doc->rows, options), doc->page_titles);
    snd_json_end(&json);
}

/* ------------------------------------------------------------------- a document */

static void (*const renderers[])(const struct snd_doc *, const struct sonde_report_options *,
                                 struct snd_out *) = {
    [SONDE_REPORT_TEXT] = snd_render_text,
    [SONDE_REPORT_JSON] = render_json,
    [SONDE_REPORT_CSV] = render_csv,
    [SONDE_REPORT_COLUMNS] = render_columns,
};

/* A caller built against an older header knows fewer members. */
enum sonde_status snd_report_options(const struct sonde_report_options *given,
                                     struct sonde_report_options *used, struct sonde_error *err)
{
    static const struct sonde_report_options unset = SONDE_REPORT_OPTIONS_INIT;

    *used = unset;
    enum sonde_status st = snd_struct_take(given, used, sizeof *used, "SONDE_REPORT_OPTIONS_INIT",
                                           err);
    if (st != SONDE_OK)
        return st;
    if ((unsigned)used->format >= SND_COUNT_OF(renderers))
        return snd_fail(err, SONDE_E_ARGUMENT, "unknown report format %d", (int)used->format);
    return SONDE_OK;
}

enum sonde_status snd_render(const struct snd_doc *doc, const struct sonde_report_options *options,
                             const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_line_fit fit;
    struct snd_out      out;
    bool                fits = options->format == SONDE_REPORT_TEXT && options->width > 0;

    if (fits)
        snd_fit_init(&fit, sink, options->width, options->ascii);
    snd_out_init(&out, fits ? &fit.sink : sink);
    renderers[options->format](doc, options, &out);
    enum sonde_status st = snd_out_finish(&out, err);
    if (fits && !snd_fit_finish(&fit) && st == SONDE_OK)
        st = snd_fail_os(err, SONDE_E_IO, "cannot write the output");
    return st;
}
