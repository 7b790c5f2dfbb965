/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longest.c - reads a trace: the ranges that took longest, and what the trace lacks.
 *
 *     ./longest TRACE [ROWS]
 *
 * Links libsonde, which reads; the program that was recorded linked libsonde_record.
 */
#include <stdio.h>
#include <stdlib.h>

#include <sonde/sonde.h>

static int by_self_time(const void *left, const void *right)
{
    const struct sonde_average *const *a = left, *const *b = right;

    return ((*a)->self_ns < (*b)->self_ns) - ((*a)->self_ns > (*b)->self_ns);
}

static int print_averages(const struct sonde_averages *averages, size_t rows)
{
    size_t                       count = sonde_averages_count(averages);
    const struct sonde_average **sorted = calloc(count + 1, sizeof *sorted);

    if (!sorted)
        return 1;
    for (size_t i = 0; i < count; i++)
        sorted[i] = sonde_averages_row(averages, i);
    qsort(sorted, count, sizeof *sorted, by_self_time);
    printf("%12s %12s %8s  %s\n", "self ms", "total ms", "calls", "range");
    for (size_t i = 0; i < count && i < rows; i++)
        printf("%12.3f %12.3f %8llu  %.*s\n", (double)sorted[i]->self_ns / 1e6,
               (double)sorted[i]->total_ns / 1e6, (unsigned long long)sorted[i]->count,
               (int)sorted[i]->name.length, sorted[i]->name.bytes);
    free(sorted);
    return 0;
}

/* What was dropped, cut or is uncertain: a table without it may mislead. */
static int print_ledger(struct sonde_trace *trace, struct sonde_error *err)
{
    struct sonde_summary *summary;

    if (sonde_summary_new(trace, &summary, err) != SONDE_OK)
        return 1;
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        printf("missing: %s\n", sonde_summary_ledger(summary, i)->text);
    sonde_summary_free(summary);
    return 0;
}

int main(int argc, char **argv)
{
    size_t                 rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
    struct sonde_error     err = { 0 };
    struct sonde_trace    *trace;
    struct sonde_averages *averages;
    int                    status = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: longest TRACE [ROWS]\n");
        return 2;
    }
    if (sonde_trace_open(argv[1], &trace, &err) == SONDE_OK) {
        if (sonde_averages_new(trace, NULL, &averages, &err) == SONDE_OK) {
            status = print_averages(averages, rows) || print_ledger(trace, &err);
            sonde_averages_free(averages);
        }
        sonde_trace_close(trace);
    }
    if (status != 0)
        fprintf(stderr, "longest: %s: %s\n", argv[1], err.message[0] ? err.message : "no memory");
    return status;
}
