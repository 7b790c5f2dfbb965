/* SPDX-License-Identifier: Apache-2.0 */
/* The advice view: patterns of slow programs that the trace has, with numbers, a place, and what to try. */
#include "view/summary/advice_view.h"

#include "base/text/buf.h"
#include "view/render/format.h"

#define BOLD "\033[1m"
#define PLAIN "\033[0m"

enum { COLUMN_NAME, COLUMN_TEXT, COLUMN_PLACE, COLUMN_TRIES };
const struct snd_column snd_advice_columns[] = {
    { "name", "Pattern", SND_TEXT, SND_FIT_CONTENT },
    { "text", "Found", SND_TEXT, SND_FIT_CONTENT },
    { "place", "Place", SND_TEXT, SND_FIT_CONTENT },
    { "try", "What to try", SND_TEXT, SND_FIT_CONTENT },
    { "share", NULL, SND_SHARE, SND_FIT_FIXED },
    { "link", NULL, SND_TEXT, SND_FIT_CONTENT },
};
const size_t snd_advice_column_count = SND_COUNT_OF(snd_advice_columns);

SND_DOC_RELEASE(free_advisor, snd_advisor_free)

enum sonde_status snd_advice_begin(struct snd_doc *doc, struct sonde_trace *trace,
                                   struct snd_advisor **out, struct sonde_error *err)
{
    enum sonde_status st = snd_advisor_new(trace, out, err);

    snd_doc_keep(doc, *out, free_advisor);
    return st;
}

enum sonde_status snd_advice_rows(struct snd_doc *doc, struct snd_advisor *advisor,
                                  struct snd_table *table, struct sonde_error *err)
{
    const struct snd_advices *advices;
    enum sonde_status         st = snd_advice_find(advisor, doc->summary, &advices, err);

    for (size_t i = 0; st == SONDE_OK && i < advices->count; i++) {
        const struct snd_advice *advice = &advices->items[i];
        struct snd_cell         *cell = snd_table_add(table);
        *cell++ = snd_cell_string(advice->name);
        *cell++ = snd_cell_string(snd_doc_format(doc, "%s", advice->text));
        *cell++ = *advice->place ? snd_cell_string(snd_doc_format(doc, "%s", advice->place))
                                 : snd_cell_none();
        *cell++ = snd_cell_string(advice->tries);
        *cell++ = advice->share > 0 ? snd_cell_real(advice->share) : snd_cell_none();
        *cell = snd_cell_string(snd_doc_format(doc, "%s", advice->link));
    }
    return st;
}

static void put_text(const struct snd_cell *cell, const char *before, struct snd_out *out)
{
    struct sonde_buffer text = { 0 };

    snd_format_text(&text, cell->text.bytes, cell->text.length);
    snd_out_text(out, before);
    snd_out_put(out, snd_buf_string(&text), text.length);
    snd_out_text(out, "\n");
    sonde_buffer_release(&text);
}

void snd_advice_text(const struct snd_table *table, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct snd_cell *row = snd_table_row(table, i);
        snd_out_text(out, options->colour ? BOLD "* " : "* ");
        put_text(&row[COLUMN_TEXT], "", out);
        snd_out_text(out, options->colour ? PLAIN : "");
        if (!row[COLUMN_PLACE].none)
            put_text(&row[COLUMN_PLACE], "  ", out);
        put_text(&row[COLUMN_TRIES], "  ", out);
    }
}

static void put_all(const struct snd_doc *doc, const struct sonde_report_options *options,
                    struct snd_out *out)
{
    if (doc->rows.row_count > 0)
        snd_out_text(out, SND_ADVICE_TITLE "\n");
    snd_advice_text(&doc->rows, options, out);
    if (doc->rows.row_count == 0 && doc->empty)
        snd_out_format(out, "%s\n", doc->empty);
}

SND_VIEW_BUILD(snd_view_advice)
{
    (void)options;
    snd_table_init(&doc->rows, snd_advice_columns, snd_advice_column_count);
    struct snd_advisor *advisor;
    enum sonde_status   st = snd_advice_begin(doc, trace, &advisor, err);
    if (st == SONDE_OK)
        st = snd_doc_summary(doc, err);
    if (st == SONDE_OK)
        st = snd_advice_rows(doc, advisor, &doc->rows, err);
    doc->text = put_all;
    return st;
}
