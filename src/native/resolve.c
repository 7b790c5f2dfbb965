/* SPDX-License-Identifier: Apache-2.0 */
/* native/resolve.c - the functions at the addresses of a recording, found once, at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/resolve.h"
#include "symbols/symbols.h"

#define ENTRIES_MOST 64u

/* Texts are interned again each time: the recorder has them, so the call is cheap. */
static uint32_t intern(const struct snd_resolver *r, const char *text)
{
    return text && *text ? r->intern(text, strlen(text)) : 0;
}

static void tell(const struct snd_resolver *r, uint32_t frame, const struct snd_symbol_query *query)
{
    struct sonde_symbol symbols[ENTRIES_MOST];
    uint32_t            count = query->count < ENTRIES_MOST ? query->count : ENTRIES_MOST;

    for (uint32_t i = 0; i < count; i++)
        symbols[i] = (struct sonde_symbol){ intern(r, query->entries[i].function),
                                            intern(r, query->entries[i].file),
                                            query->entries[i].line, query->entries[i].first_line };
    if (count > 0)
        r->symbol(frame, symbols, count);
}

void snd_resolve(const struct snd_resolver *r, const struct snd_resolve_item *items, size_t count)
{
    struct snd_symbols      *symbols = snd_symbols_new();
    struct snd_symbol_query *queries = calloc(count + 1, sizeof *queries);

    for (size_t i = 0; symbols && queries && i < count; i++)
        queries[i] = (struct snd_symbol_query){ .file = items[i].file,
                                                .opened = items[i].opened,
                                                .build_id = items[i].build_id,
                                                .address = items[i].address };
    enum sonde_status status = symbols && queries ? snd_symbols_find(symbols, queries, count, NULL)
                                                  : SONDE_E_NOMEM;
    (void)status; /* answers from before memory ran out remain valid */
    for (size_t i = 0; symbols && queries && i < count; i++)
        tell(r, items[i].frame, &queries[i]);
    free(queries);
    snd_symbols_free(symbols);
}
