/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/render_columns.c - a document as JSON that describes its columns; declared in render.h.
 *
 * Cells are written by the function that `--json` uses, so that both have the same digits.
 */
#include <string.h>

#include "base/text/json.h"
#include "view/render/render.h"

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
                snd_cell_json(json, NULL, table->columns[i].kind, table->torch_units, &cells[i]);
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
        snd_cell_json(json, "value", doc->totals[i].kind, doc->rows.torch_units,
                      &doc->totals[i].cell);
        snd_json_end(json);
    }
    snd_json_end(json);
}

void snd_render_columns(const struct snd_doc *doc, const struct sonde_report_options *options,
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
