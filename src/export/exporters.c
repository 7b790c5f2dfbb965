/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters, in the order in which help names them. */
#include "export/common/exporter.h"

#include <string.h>

#include "base/buf.h"
#include "base/structsize.h"
#include "base/unknown.h"
#include "export/encode/gzip.h"
#include "model/counters/stack_counters.h"
#include "snd_config.h"

#if SND_HAVE_PAGE
#define NO_PAGE NULL
#else
#define NO_PAGE                                                                               \
    "built without the report page; install node and npm and build again, or take a release " \
    "archive"
#endif

const struct snd_exporter snd_exporters[] = {
    { { "html", ".html", "the report page: one file with all that the trace has, for a browser",
        NO_PAGE, NULL },
      snd_export_html },
    { { "svg", ".svg",
        "a picture of a process's ranges by thread and depth; no samples, memory, counters, GPU "
        "work",
        NULL, NULL },
      snd_export_svg },
    { { "chrome", ".json", "Chrome trace (JSON), for Perfetto, chrome://tracing, TensorBoard", NULL,
        NULL },
      snd_export_chrome },
    { { "perfetto", ".pftrace", "Perfetto's own trace format (protobuf), for ui.perfetto.dev", NULL,
        NULL },
      snd_export_perfetto },
    { { "folded", ".folded",
        "folded stacks with self time in microseconds, bytes or events, for flame graphs", NULL,
        NULL },
      snd_export_folded },
    { { "speedscope", ".speedscope.json",
        "sampled stacks, or ranges, of each thread, or stacks of allocations or of a counter's "
        "events, for www.speedscope.app",
        NULL, NULL },
      snd_export_speedscope },
    { { "pprof", ".pb.gz",
        "sampled stacks, or stacks of allocations or of counters' events, for go tool pprof and "
        "other readers",
        NULL, "samples" },
      snd_export_pprof },
    { { "perf-script", ".perf",
        "sampled stacks, by time or by the events of counters, as perf script prints them, for "
        "FlameGraph",
        NULL, "samples" },
      snd_export_perf_script },
    { { "pstats", ".prof", "Python functions and their callers, for pstats, snakeviz, gprof2dot",
        NULL, "functions" },
      snd_export_pstats },
    { { "callgrind", ".callgrind",
        "functions and their calls, or samples, or events of counters, for KCachegrind", NULL,
        "functions" },
      snd_export_callgrind },
    { { "lprof", ".lprof", "time of lines, for python -m line_profiler", NULL, "lines" },
      snd_export_lprof },
    { { "mprof", ".dat", "memory over time, for mprof plot", NULL, "line-memory" },
      snd_export_mprof },
    { { "json", ".events.json", "every event and table of the trace, as JSON", NULL, NULL },
      snd_export_json },
    { { "csv", ".csv", "one line per range: where, when, how long, what", NULL, NULL },
      snd_export_csv },
    { { "sqlite", ".db",
        "an SQLite database: ranges, samples, memory, counters and their stacks, steps, GPU work; "
        "no links, other tallies",
        NULL, NULL },
      snd_export_sqlite },
    { { "parquet", ".parquet",
        "the tables of sqlite as a folder of Parquet files, by job and process, for DuckDB, Spark, "
        "pandas",
        NULL, NULL },
      snd_export_no_stream },
    { { "benchmark", ".yml", "a model's cost as pytorch-benchmark writes it (YAML)", NULL, NULL },
      snd_export_benchmark },
    { { "benchmark-json", ".json", "the same as JSON", NULL, NULL }, snd_export_benchmark_json },
};
const size_t snd_exporter_count = sizeof snd_exporters / sizeof snd_exporters[0];

const struct sonde_exporter_info *sonde_exporter_info(size_t index)
{
    return index < snd_exporter_count ? &snd_exporters[index].info : NULL;
}

static const char *name_at(size_t index)
{
    return index < snd_exporter_count ? snd_exporters[index].info.name : NULL;
}

static enum sonde_status refuse(const char *format, struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };

    snd_fail(err, SONDE_E_ARGUMENT, "%s",
             snd_unknown_text(&text, "format", format, strlen(format), name_at));
    sonde_buffer_release(&text);
    return SONDE_E_ARGUMENT;
}

enum sonde_status snd_export_functions(struct sonde_trace *trace, snd_functions_write *write,
                                       struct snd_out *out, struct sonde_error *err)
{
    struct sonde_functions *functions;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    if (st != SONDE_OK)
        return st;
    if (sonde_functions_count(functions) == 0)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no Python functions; record them with --functions");
    else
        st = write(trace, functions, out, err);
    sonde_functions_free(functions);
    return st;
}

uint64_t snd_export_pid(const struct sonde_trace *trace, uint32_t process)
{
    const struct sonde_process *own = sonde_trace_process(trace, process);

    for (uint32_t i = 0; i < process; i++) {
        const struct sonde_process *other = sonde_trace_process(trace, i);
        if (other->pid == own->pid && strcmp(other->host, own->host) != 0)
            return own->pid + (uint64_t)process * 10000000;
    }
    return own->pid;
}

/* The formats that have stacks of allocations, or of the events of counters. */
static const struct stack_writers {
    const char       *name;
    snd_export_write *heap, *counted;
} stack_writers[] = { { "folded", snd_heap_folded, snd_counted_folded },
                      { "speedscope", snd_heap_speedscope, snd_counted_speedscope },
                      { "pprof", snd_heap_pprof, snd_counted_pprof },
                      { "perf-script", NULL, snd_counted_perf_script },
                      { "callgrind", NULL, snd_counted_callgrind } };

static const struct stack_writers *find_stack_writers(const char *format)
{
    static const struct stack_writers none = { 0 };

    for (size_t i = 0; i < sizeof stack_writers / sizeof stack_writers[0]; i++)
        if (strcmp(stack_writers[i].name, format) == 0)
            return &stack_writers[i];
    return &none;
}

static enum sonde_status refuse_heap(const char *format, struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_ARGUMENT,
                    "the format %s has no stacks of allocations; folded, speedscope and pprof have",
                    format);
}

static enum sonde_status refuse_counter(const char *format, struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_ARGUMENT,
                    "the format %s has no stacks of a counter's events; folded, speedscope, pprof, "
                    "perf-script and callgrind have",
                    format);
}

/* Are there stacks of a counter's events, and nothing else that a format of stacks would show? */
static bool has_counted_alone(struct sonde_trace *trace)
{
    const char *view = "counters";

    sonde_views_with_content(trace, &view, 1);
    return strcmp(view, "counters") == 0 && snd_counted_stacks_there(trace);
}

/* The formats that are folders. */
static const struct {
    const char        *name;
    snd_export_folder *write;
} folder_writers[] = { { "parquet", snd_export_parquet } };

static snd_export_folder *find_folder_writer(const char *format)
{
    for (size_t i = 0; i < sizeof folder_writers / sizeof folder_writers[0]; i++)
        if (strcmp(folder_writers[i].name, format) == 0)
            return folder_writers[i].write;
    return NULL;
}

bool sonde_exporter_is_folder(const char *format)
{
    return find_folder_writer(format) != NULL;
}

SND_EXPORT_WRITE(snd_export_no_stream)
{
    (void)trace, (void)options, (void)out;
    return snd_fail(
        err, SONDE_E_ARGUMENT,
        "the format is a folder of files and cannot be written to a stream; give the name "
        "of a folder");
}

static enum sonde_status write_any(const struct snd_exporter *exporter, struct sonde_trace *trace,
                                   const struct sonde_export_options *options, struct snd_out *out,
                                   struct sonde_error *err)
{
    const struct stack_writers *of_stacks = find_stack_writers(exporter->info.name);
    snd_export_write           *write = exporter->write;

    if (options->heap != SONDE_HEAP_AUTO && !of_stacks->heap)
        return refuse_heap(exporter->info.name, err);
    if (options->counter && !of_stacks->counted)
        return refuse_counter(exporter->info.name, err);
    if (options->heap != SONDE_HEAP_AUTO)
        write = of_stacks->heap;
    else if (options->counter || (of_stacks->counted && has_counted_alone(trace)))
        write = of_stacks->counted;
    else if (of_stacks->heap && strcmp(sonde_default_view(trace), "heap") == 0)
        write = of_stacks->heap;
    return write(trace, options, out, err);
}

/* `apart`: a thread of its own may write to the sink. */
static enum sonde_status run(const struct snd_exporter *exporter, struct sonde_trace *trace,
                             const struct sonde_export_options *options,
                             const struct sonde_sink *sink, bool apart, struct sonde_error *err)
{
    struct snd_out out;

    snd_out_init(&out, sink);
    snd_out_apart(&out, apart);
    return snd_out_end(&out, write_any(exporter, trace, options, &out, err), err);
}

static enum sonde_status run_gzip(const struct snd_exporter *exporter, struct sonde_trace *trace,
                                  const struct sonde_export_options *options,
                                  const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_gzip  *gzip;
    enum sonde_status st = snd_gzip_new(sink, &gzip, err);

    if (st != SONDE_OK)
        return st;
    struct sonde_sink inner = snd_gzip_sink(gzip);
    st = run(exporter, trace, options, &inner, snd_sink_is_fd(sink), err);
    if (st == SONDE_OK)
        st = snd_gzip_finish(gzip, err);
    snd_gzip_free(gzip);
    return st;
}

enum sonde_status snd_export_options(const struct sonde_export_options *given,
                                     struct sonde_export_options *used, struct sonde_error *err)
{
    static const struct sonde_export_options unset = SONDE_EXPORT_OPTIONS_INIT;

    *used = unset;
    return snd_struct_take(given, used, sizeof *used, "SONDE_EXPORT_OPTIONS_INIT", err);
}

enum sonde_status sonde_export_folder(struct sonde_trace *trace, const char *format,
                                      const struct sonde_export_options *options, const char *path,
                                      struct sonde_error *err)
{
    struct sonde_export_options used;
    enum sonde_status           st = snd_export_options(options, &used, err);
    snd_export_folder          *write = find_folder_writer(format);

    if (st != SONDE_OK)
        return st;
    if (!write)
        return snd_fail(err, SONDE_E_ARGUMENT, "the format '%.60s' is not a folder", format);
    if (used.heap != SONDE_HEAP_AUTO)
        return refuse_heap(format, err);
    if (used.counter)
        return refuse_counter(format, err);
    return write(trace, &used, path, err);
}

enum sonde_status sonde_export(struct sonde_trace *trace, const char *format,
                               const struct sonde_export_options *options,
                               const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_export_options used;
    enum sonde_status           st = snd_export_options(options, &used, err);

    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < snd_exporter_count; i++) {
        const struct snd_exporter *exporter = &snd_exporters[i];
        if (strcmp(exporter->info.name, format) != 0)
            continue;
        if (exporter->info.missing)
            return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot write %s: %s", format,
                            exporter->info.missing);
        return used.gzip ? run_gzip(exporter, trace, &used, sink, err)
                         : run(exporter, trace, &used, sink, snd_sink_is_fd(sink), err);
    }
    return refuse(format, err);
}
