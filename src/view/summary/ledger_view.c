/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger view: what is missing, in words. */
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "key", "What", SND_TEXT, SND_FIT_CONTENT },
    { "count", "Count", SND_COUNT, SND_FIT_FIXED },
    { "text", "Meaning", SND_TEXT, SND_FIT_CONTENT },
    { "is_note", NULL, SND_FLAG, SND_FIT_FIXED },
};

SND_VIEW_BUILD(snd_view_ledger)
{
    enum sonde_status st = snd_doc_summary(doc, err);

    (void)trace;
    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    for (size_t i = 0; st == SONDE_OK && i < sonde_summary_ledger_count(doc->summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(doc->summary, i);
        struct snd_cell                *cell = snd_table_add(&doc->rows);

        *cell++ = snd_cell_string(item->key);
        *cell++ = snd_cell_number((int64_t)item->count);
        *cell++ = snd_cell_string(item->text);
        *cell++ = snd_cell_number(item->is_note);
    }
    doc->empty = "Nothing is missing: the ledger is empty.";
    return st;
}
