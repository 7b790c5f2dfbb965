/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/dump.c - gen --dump: prints what the library tells programs and the Python package, and no command prints: golden cases compare it.
 *
 *     gen --dump events FILE             every column of sonde_events_columns(), a line an event
 *     gen --dump tables FILE [TABLE..]   the tables of docs/SCHEMA.md, as sonde/tables.h has them
 *     gen --dump report FILE VIEW WIDTH [WORD..]
 *                                  sonde_report() as a terminal of that many columns has it; words: ascii, colour, no_source,
 *                                  show_all, top_level, json
 *     gen --dump export FILE FORMAT NAME [KEY JSON]..
 *                                  sonde_export() with a name and members of the file's own, as chrome has them
 *     gen --dump timeline FILE FORMAT    memory over time: json, raw or html
 *     gen --dump cut FILE OUT SESSION WHAT [BEGIN END]..
 *                                  sonde_cut_session(): WHAT has letters of samples, counters, ranges, all, ended;
 *                                  times are nanoseconds after the start of a synthetic trace
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "sonde/export.h"
#include "sonde/model.h"
#include "sonde/tables.h"
#include "synth.h"

static struct sonde_error err;

static int fail(void)
{
    printf("error: %s\n", err.message);
    return 1;
}

/* ------------------------------------------------------------------ events */

static void put_text(const struct sonde_events *events, const char *name, const uint32_t *column,
                     size_t i)
{
    struct sonde_text text = sonde_events_text(events, column[i]);

    if (text.length > 0)
        printf(" %s=%.*s", name, (int)text.length, text.bytes);
}

#define TEXT(column) put_text(events, #column, c->column, i)
#define NUMBER(column, none)                                        \
    do {                                                            \
        if ((int64_t)c->column[i] != (int64_t)(none))               \
            printf(" " #column "=%" PRId64, (int64_t)c->column[i]); \
    } while (0)

static void put_event(const struct sonde_events *events, const struct sonde_events_columns *c,
                      size_t i)
{
    printf("%zu:", i);
    TEXT(name);
    if (c->trace_name[i] != c->name[i])
        TEXT(trace_name);
    TEXT(overload);
    NUMBER(process, 0);
    NUMBER(thread, -1);
    NUMBER(torch_thread, -1);
    NUMBER(start_ns, -1);
    NUMBER(end_ns, -1);
    NUMBER(self_ns, -1);
    NUMBER(parent, -1);
    NUMBER(shapes, 0);
    NUMBER(strides, 0);
    TEXT(arguments);
    TEXT(keywords);
    NUMBER(stack, 0);
    TEXT(module);
    NUMBER(sequence, -1);
    NUMBER(fwd_thread, 0);
    NUMBER(python_id, 0);
    NUMBER(python_parent, 0);
    NUMBER(python_module, -1);
    NUMBER(scope, 0);
    NUMBER(flags, 0);
    NUMBER(flops, 0);
    NUMBER(macs, 0);
    NUMBER(moved_bytes, 0);
    NUMBER(cpu_bytes, 0);
    NUMBER(self_cpu_bytes, 0);
    NUMBER(device_bytes, 0);
    NUMBER(self_device_bytes, 0);
    NUMBER(device_ns, 0);
    NUMBER(self_device_ns, 0);
    NUMBER(device, 0);
    NUMBER(stream, 0);
    NUMBER(correlation, 0);
    NUMBER(function, 0);
    NUMBER(owner, -1);
    NUMBER(work, 0);
    NUMBER(work_kind, 0);
    printf("\n");
}

static int dump_events(struct sonde_trace *trace, int argc, char **argv)
{
    struct sonde_events *events;

    (void)argc;
    (void)argv;
    if (sonde_events_new(trace, NULL, &events, &err) != SONDE_OK)
        return fail();
    const struct sonde_events_columns *c = sonde_events_columns(events);
    printf("%zu events%s\n", c->count, c->uses_gpu ? ", with a GPU" : "");
    for (size_t i = 0; i < c->count; i++)
        put_event(events, c, i);
    sonde_events_free(events);
    return 0;
}

/* ------------------------------------------------------------------ tables */

static void put_value(const struct sonde_table *table, const struct sonde_table_column *column,
                      size_t row)
{
    if (column->valid && !(column->valid[row / 8] >> row % 8 & 1)) {
        printf("|null");
    } else if (column->type == SONDE_COLUMN_INTEGER) {
        printf("|%" PRId64, ((const int64_t *)column->data)[row]);
    } else if (column->type == SONDE_COLUMN_REAL) {
        printf("|%.17g", ((const double *)column->data)[row]);
    } else {
        struct sonde_text text = sonde_table_text(table, ((const uint32_t *)column->data)[row]);
        printf("|%.*s", (int)text.length, text.bytes);
    }
}

static int dump_table(struct sonde_trace *trace, const char *name)
{
    const struct sonde_table_column *column;
    struct sonde_table              *table;

    if (sonde_table_new(trace, name, &table, &err) != SONDE_OK)
        return fail();
    printf("table %s: %zu rows\n", name, sonde_table_row_count(table));
    for (size_t i = 0; (column = sonde_table_column(table, i)); i++) {
        printf("|%s", column->name);
        if (column->null_count > 0)
            printf(" (%zu null)", column->null_count);
    }
    printf("\n");
    for (size_t row = 0; row < sonde_table_row_count(table); row++) {
        for (size_t i = 0; (column = sonde_table_column(table, i)); i++)
            put_value(table, column, row);
        printf("\n");
    }
    sonde_table_free(table);
    return 0;
}

static int dump_tables(struct sonde_trace *trace, int argc, char **argv)
{
    const char *name;
    int         status = 0;

    for (int i = 0; i < argc; i++)
        status |= dump_table(trace, argv[i]);
    for (size_t i = 0; argc == 0 && (name = sonde_table_name(i)); i++)
        status |= dump_table(trace, name);
    return status;
}

/* ------------------------------------------------------------------ report */

static int dump_report(struct sonde_trace *trace, int argc, char **argv)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_sink           sink = sonde_sink_file(stdout);

    if (argc < 2)
        return 2;
    options.view = argv[0];
    options.width = (uint32_t)strtoul(argv[1], NULL, 10);
    for (int i = 2; i < argc; i++) {
        options.ascii |= strcmp(argv[i], "ascii") == 0;
        options.colour |= strcmp(argv[i], "colour") == 0;
        options.no_source |= strcmp(argv[i], "no_source") == 0;
        options.show_all |= strcmp(argv[i], "show_all") == 0;
        options.top_level |= strcmp(argv[i], "top_level") == 0;
        if (strcmp(argv[i], "json") == 0)
            options.format = SONDE_REPORT_JSON;
    }
    return sonde_report(trace, &options, &sink, &err) == SONDE_OK ? 0 : fail();
}

/* ------------------------------------------------------------------ export */

static int dump_export(struct sonde_trace *trace, int argc, char **argv)
{
    struct sonde_export_options options = SONDE_EXPORT_OPTIONS_INIT;
    struct sonde_sink           sink = sonde_sink_file(stdout);

    if (argc < 2)
        return 2;
    options.name = argv[1];
    options.off_cpu = strcmp(argv[0], "folded") == 0;
    options.metadata = (const char *const *)argv + 2; /* ends with the NULL of argv */
    return sonde_export(trace, argv[0], &options, &sink, &err) == SONDE_OK ? 0 : fail();
}

/* ---------------------------------------------------------------- timeline */

static int dump_timeline(struct sonde_trace *trace, int argc, char **argv)
{
    struct sonde_sink          sink = sonde_sink_file(stdout);
    const char                *format = argc > 0 ? argv[0] : "json";
    enum sonde_timeline_format written = strcmp(format, "raw") == 0    ? SONDE_TIMELINE_RAW
                                         : strcmp(format, "html") == 0 ? SONDE_TIMELINE_HTML
                                                                       : SONDE_TIMELINE_JSON;
    struct sonde_timeline     *timeline;

    if (sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, &err) != SONDE_OK)
        return fail();
    enum sonde_status status = sonde_timeline_write(trace, timeline, written, false, &sink, &err);
    sonde_timeline_free(timeline);
    printf("\n");
    return status == SONDE_OK ? 0 : fail();
}

/* --------------------------------------------------------------------- cut */

static int cut(int argc, char **argv)
{
    struct sonde_span spans[8];
    struct sonde_cut  asked = { .struct_size = sizeof asked, .spans = spans };

    if (argc < 4)
        return 2;
    asked.session = (uint32_t)strtoul(argv[2], NULL, 10);
    asked.samples = strstr(argv[3], "samples");
    asked.counters = strstr(argv[3], "counters");
    asked.ranges = strstr(argv[3], "ranges");
    asked.all = strstr(argv[3], "all");
    asked.ended = strstr(argv[3], "ended");
    for (int i = 4; i + 1 < argc && asked.span_count < 8; i += 2)
        spans[asked.span_count++] =
            (struct sonde_span){ SYNTH_START_MONO_NS + strtoull(argv[i], NULL, 10),
                                 SYNTH_START_MONO_NS + strtoull(argv[i + 1], NULL, 10) };
    return sonde_cut_session(argv[0], argv[1], &asked, &err) == SONDE_OK ? 0 : fail();
}

int dump(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*print)(struct sonde_trace *trace, int argc, char **argv);
    } dumps[] = { { "events", dump_events },
                  { "export", dump_export },
                  { "report", dump_report },
                  { "tables", dump_tables },
                  { "timeline", dump_timeline } };
    struct sonde_trace *trace;

    if (argc > 2 && strcmp(argv[1], "cut") == 0)
        return cut(argc - 2, argv + 2);
    for (size_t i = 0; argc > 2 && i < sizeof dumps / sizeof dumps[0]; i++) {
        if (strcmp(dumps[i].name, argv[1]) != 0)
            continue;
        if (sonde_trace_open(argv[2], &trace, &err) != SONDE_OK)
            return fail();
        int status = dumps[i].print(trace, argc - 3, argv + 3);
        sonde_trace_close(trace);
        return status;
    }
    fprintf(stderr, "usage: gen --dump events|export|report|tables|timeline|cut FILE ..\n");
    return 2;
}
