/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde sql: the tables of traces in DuckDB.
 *
 * The Python package (sonde/sql) hands libsonde's tables to DuckDB, in a Python that has it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "cli/commands.h"
#include "cli/path_kind.h"
#include "cli/process/find_python.h"

struct sql_args {
    const char *query;
    bool        json, csv, list;
};

#define AT(member) offsetof(struct sql_args, member)
static const struct snd_option options[] = {
    { 'q', "query", "NAME", "run a ready query; all operands are traces then", SND_OPTION_TEXT,
      AT(query), 0 },
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, AT(json), 0 },
    { 0, "csv", NULL, "write CSV", SND_OPTION_FLAG, AT(csv), 0 },
    { 'l', "list", NULL, "list the ready queries", SND_OPTION_FLAG, AT(list), 0 },
};

/* A word alone is no SQL: it is the name of a ready query. */
static bool is_name(const char *text)
{
    return *text &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               strlen(text);
}

static int run_query(const struct snd_command *self, const struct sql_args *args, char **traces,
                     int count, const char *query)
{
    size_t n = 0;
    char **list = calloc((size_t)count + 6, sizeof *list);

    if (!list)
        return snd_failure("%s: out of memory", self->name);
    const char *const head[] = { args->json  ? "json"
                                 : args->csv ? "csv"
                                             : "text",
                                 is_name(query) ? "name" : "sql", query };
    for (size_t i = 0; i < SND_COUNT_OF(head); i++)
        list[n++] = (char *)(uintptr_t)head[i];
    memcpy(list + n, traces, (size_t)count * sizeof *list);
    int status = snd_python_run(self, "sql._command", "duckdb", list);
    free(list);
    return status;
}

static int list_queries(const struct snd_command *self)
{
    char *const list[] = { (char *)(uintptr_t) "list", NULL };

    return snd_python_run(self, "sql._command", "duckdb", list);
}

/* A trace where the query is expected. */
static int refuse_trace(const struct snd_command *self, const char *trace, bool is_swapped)
{
    return is_swapped
               ? snd_usage_error(self, "QUERY comes after the traces, got the trace '%s' there",
                                 trace)
               : snd_usage_error(
                     self,
                     "missing QUERY after the trace '%s': expected SQL such as 'select * from "
                     "ranges', or a name of 'sonde sql --list'",
                     trace);
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct sql_args args = { 0 };
    int             operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (args.json && args.csv)
        return snd_usage_error(self, "give --json or --csv, not both");
    if (args.list)
        return operands == 0 ? list_queries(self)
                             : snd_usage_error(self, "--list takes no operand, got '%s'", argv[0]);
    const char *query = args.query;
    if (!query) {
        if (operands == 0)
            return snd_usage_error(self, "missing QUERY: expected SQL such as 'select * from "
                                         "ranges', or a name of 'sonde sql --list'");
        query = argv[--operands];
        if (snd_path_kind(query) == SND_PATH_TRACE)
            return refuse_trace(self, query,
                                operands > 0 && snd_path_kind(argv[0]) == SND_PATH_NONE);
    }
    if (operands == 0 && (status = snd_take_trace(self, 0, argv)) >= 0)
        return status;
    return run_query(self, &args, argv, operands ? operands : 1, query);
}

const struct snd_command snd_command_sql = {
    .name = "sql",
    .operands = "[TRACE..] QUERY",
    .summary = "query traces with SQL, on DuckDB",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
