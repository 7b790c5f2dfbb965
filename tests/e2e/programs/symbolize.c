/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbolize FILE [BUILD_ID [OPENED]] - names of addresses, read from stdin in hexadecimal, one a line:
 *
 *     0x1139 2
 *     inner TAB /src/x.c TAB 7 TAB 5
 *     main TAB /src/x.c TAB 12 TAB 9
 *
 * then one line with what went wrong. For tests, which compare it with addr2line and nm.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbols/symbols.h"

static struct snd_symbol_query *read_queries(char **argv, int argc, size_t *count)
{
    struct snd_symbol_query *queries = NULL;
    size_t                   room = 0;
    uint64_t                 address;

    for (*count = 0; scanf("%" SCNx64, &address) == 1; (*count)++) {
        if (*count == room) {
            room = room ? 2 * room : 1024;
            queries = realloc(queries, room * sizeof *queries);
            if (!queries)
                exit(1);
        }
        queries[*count] = (struct snd_symbol_query){ .file = argv[1],
                                                     .build_id = argc > 2 ? argv[2] : NULL,
                                                     .opened = argc > 3 ? argv[3] : NULL,
                                                     .address = address };
    }
    return queries;
}

int main(int argc, char **argv)
{
    struct snd_symbols *symbols = snd_symbols_new();
    struct sonde_error  err;
    size_t              count;

    if (argc < 2 || !symbols)
        return 2;
    struct snd_symbol_query *queries = read_queries(argv, argc, &count);
    if (snd_symbols_find(symbols, queries, count, &err) != SONDE_OK)
        return 1;
    for (size_t i = 0; i < count; i++) {
        printf("0x%" PRIx64 " %u\n", queries[i].address, (unsigned)queries[i].count);
        for (uint32_t k = 0; k < queries[i].count; k++)
            printf("%s\t%s\t%u\t%u\n", queries[i].entries[k].function, queries[i].entries[k].file,
                   (unsigned)queries[i].entries[k].line,
                   (unsigned)queries[i].entries[k].first_line);
    }
    const struct snd_symbol_stats *stats = snd_symbols_stats(symbols);
    printf("unnamed %" PRIu64 " unreadable %u changed %u failed %u without_libdw %u\n",
           stats->unnamed, (unsigned)stats->unreadable, (unsigned)stats->changed,
           (unsigned)stats->failed, (unsigned)stats->without_libdw);
    snd_symbols_free(symbols);
    free(queries);
    return 0;
}
