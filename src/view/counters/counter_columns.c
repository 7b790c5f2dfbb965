/* SPDX-License-Identifier: Apache-2.0 */
#include "view/counters/counter_columns.h"

#include <stdio.h>

/* "page-faults" is page_faults and self_page_faults. */
static const char *make_key(struct snd_doc *doc, const char *before, struct sonde_text name)
{
    char key[64];

    snprintf(key, sizeof key, "%s%.*s", before, (int)name.length, name.bytes);
    for (char *at = key; *at; at++)
        *at = *at == '-' || *at == ':' ? '_' : *at;
    return snd_doc_format(doc, "%s", key);
}

size_t snd_counter_columns(struct snd_doc *doc, const struct snd_counter_names *names,
                           struct snd_column *columns)
{
    static const char *const before[2][2] = { { "", "" }, { "self_", "self " } };
    size_t                   n = 0;

    for (uint32_t i = 0; i < names->count; i++) {
        struct sonde_text name = names->items[i].name;
        bool              is_time = names->items[i].known->unit == SND_COUNTER_NS;
        for (int self = 0; self < 2; self++)
            columns[n++] = (struct snd_column){ make_key(doc, before[self][0], name),
                                                snd_doc_format(doc, "%s%.*s", before[self][1],
                                                               (int)name.length, name.bytes),
                                                is_time ? SND_TIME : SND_COUNT, SND_FIT_CONTENT };
    }
    return n;
}

struct snd_cell *snd_counter_cells(struct snd_cell *cell, uint32_t count, const uint64_t *total,
                                   const uint64_t *self)
{
    for (uint32_t i = 0; i < count; i++) {
        *cell++ = snd_cell_number((int64_t)total[i]);
        *cell++ = snd_cell_number((int64_t)self[i]);
    }
    return cell;
}
