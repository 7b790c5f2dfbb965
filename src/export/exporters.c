/* SPDX-License-Identifier: Apache-2.0 */
/* export/exporters.c - sonde_export(): finds the format, checks the options, calls its writer. */
#include "export/common/exporter.h"

#include <string.h>

#include "base/text/buf.h"
#include "base/count_of.h"
#include "base/text/unknown_name.h"
#include "export/encode/gzip.h"
#include "model/counters/stack_counters.h"
#include "model/ranks/host_clocks.h"
#include "model/samples/mixed_stacks.h"
#include "read/reader.h"
#include "snd_config.h"

#if SND_HAVE_PAGE
#define NO_PAGE NULL
#else
#define NO_PAGE                                                                               \
    "built without the report page; install node and npm and build again, or take a release " \
    "archive"
#endif

static const struct snd_exporter exporters[] = {
#define STREAM(function) .write = (function),
#define HEAP(function) .heap = (function),
#define COUNTED(function) .counted = (function),
#define FOLDER(function) .folder = (function),
#define SND_EXPORTER(name, ending, summary, missing, view, writers) \
    { .info = { name, ending, summary, missing, view }, writers },
#include "export/exporters.def"
};

const struct sonde_exporter_info *sonde_exporter_info(size_t index)
{
    return index < SND_COUNT_OF(exporters) ? &exporters[index].info : NULL;
}

static const char *name_at(size_t index)
{
    return index < SND_COUNT_OF(exporters) ? exporters[index].info.name : NULL;
}

static enum sonde_status refuse(const char *format, struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };

    snd_fail(err, SONDE_E_ARGUMENT, "%s",
             snd_unknown_text(&text, "format", format, strlen(format), name_at));
    sonde_buffer_release(&text);
    return SONDE_E_ARGUMENT;
}

static bool has_heap(const struct snd_exporter *exporter)
{
    return exporter->heap != NULL;
}

static bool has_counted(const struct snd_exporter *exporter)
{
    return exporter->counted != NULL;
}

/* "the format X has no WHAT; A, B and C have": those that do, by the table. */
static enum sonde_status refuse_stacks(const char *format, const char *what,
                                       bool (*has)(const struct snd_exporter *),
                                       struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };
    size_t              last = SND_COUNT_OF(exporters);

    while (last > 0 && !has(&exporters[last - 1]))
        last--;
    for (size_t i = 0; i < last; i++)
        if (has(&exporters[i]))
            snd_buf_format(&text, "%s%s",
                           text.length == 0 ? ""
                           : i == last - 1  ? " and "
                                            : ", ",
                           exporters[i].info.name);
    snd_fail(err, SONDE_E_ARGUMENT, "the format %s has no %s; %s have", format, what,
             snd_buf_string(&text));
    sonde_buffer_release(&text);
    return SONDE_E_ARGUMENT;
}

/* Refuses a kind of stacks that was requested and that the format does not have. */
static enum sonde_status check_stacks(const struct snd_exporter         *exporter,
                                      const struct sonde_export_options *options,
                                      struct sonde_error                *err)
{
    if (options->heap != SONDE_HEAP_AUTO && !exporter->heap)
        return refuse_stacks(exporter->info.name, "stacks of allocations", has_heap, err);
    if (options->counter && !exporter->counted)
        return refuse_stacks(exporter->info.name, "stacks of a counter's events", has_counted, err);
    if (options->gil && !exporter->counted)
        return refuse_stacks(exporter->info.name, "samples to choose from", has_counted, err);
    return SONDE_OK;
}

/* Are there stacks of a counter's events, and nothing else that a format of stacks would show? */
static bool has_counted_alone(struct sonde_trace *trace)
{
    const char *view = "counters";

    sonde_views_with_content(trace, &view, 1);
    return strcmp(view, "counters") == 0 && snd_counted_stacks_there(trace);
}

static const struct snd_exporter *find_exporter(const char *format)
{
    for (size_t i = 0; i < SND_COUNT_OF(exporters); i++)
        if (strcmp(exporters[i].info.name, format) == 0)
            return &exporters[i];
    return NULL;
}

bool sonde_exporter_is_folder(const char *format)
{
    const struct snd_exporter *exporter = find_exporter(format);

    return exporter && exporter->folder && !exporter->write;
}

/* Of samples, those of threads that held the interpreter's lock. */
static enum sonde_status write_held(const struct snd_exporter *exporter, struct sonde_trace *trace,
                                    const struct sonde_export_options *options, struct snd_out *out,
                                    struct sonde_error *err)
{
    struct snd_only_gil only = { 0 };
    enum sonde_status   st = snd_only_gil_find(trace, err); /* before anything is written */

    if (st != SONDE_OK)
        return st;
    trace->only_gil = &only;
    st = exporter->write(trace, options, out, err);
    trace->only_gil = NULL;
    return st;
}

static enum sonde_status write_any(const struct snd_exporter *exporter, struct sonde_trace *trace,
                                   const struct sonde_export_options *options, struct snd_out *out,
                                   struct sonde_error *err)
{
    enum sonde_status st = check_stacks(exporter, options, err);
    snd_export_write *write = exporter->write;

    if (st != SONDE_OK)
        return st;
    if (options->gil)
        return write_held(exporter, trace, options, out, err);
    if (options->heap != SONDE_HEAP_AUTO)
        write = exporter->heap;
    else if (options->counter || (exporter->counted && has_counted_alone(trace)))
        write = exporter->counted;
    else if (exporter->heap && strcmp(sonde_default_view(trace), "heap") == 0)
        write = exporter->heap;
    if (!write)
        return snd_fail(
            err, SONDE_E_ARGUMENT,
            "the format is a folder of files and cannot be written to a stream; give the name "
            "of a folder");
    return write(trace, options, out, err);
}

/* `apart`: a thread of its own may write to the sink. */
static enum sonde_status run(const struct snd_exporter *exporter, struct sonde_trace *trace,
                             const struct sonde_export_options *options,
                             const struct sonde_sink *sink, bool apart, struct sonde_error *err)
{
    struct snd_out out;

    snd_out_init(&out, sink);
    snd_out_apart(&out, apart ? SND_AHEAD_FEW : 0);
    return snd_out_end(&out, write_any(exporter, trace, options, &out, err), err);
}

static enum sonde_status run_gzip(const struct snd_exporter *exporter, struct sonde_trace *trace,
                                  const struct sonde_export_options *options,
                                  const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_gzip  *gzip;
    enum sonde_status st = snd_gzip_new(sink, SND_GZIP_TEXT, &gzip, err);

    if (st != SONDE_OK)
        return st;
    struct sonde_sink inner = snd_gzip_sink(gzip);
    st = run(exporter, trace, options, &inner, snd_sink_is_fd(sink), err);
    if (st == SONDE_OK)
        st = snd_gzip_finish(gzip, err);
    snd_gzip_free(gzip);
    return st;
}

enum sonde_status sonde_export_folder(struct sonde_trace *trace, const char *format,
                                      const struct sonde_export_options *options, const char *path,
                                      struct sonde_error *err)
{
    struct sonde_export_options used;
    const struct snd_exporter  *exporter = find_exporter(format);
    enum sonde_status           st = snd_export_options(options, &used, err);

    if (st == SONDE_OK && (!exporter || !exporter->folder))
        st = snd_fail(err, SONDE_E_ARGUMENT, "the format '%.60s' is not a folder", format);
    if (st == SONDE_OK)
        st = check_stacks(exporter, &used, err);
    if (st == SONDE_OK)
        st = snd_host_clocks_align(trace, err);
    return st == SONDE_OK ? exporter->folder(trace, &used, path, err) : st;
}

enum sonde_status sonde_export(struct sonde_trace *trace, const char *format,
                               const struct sonde_export_options *options,
                               const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_export_options used;
    const struct snd_exporter  *exporter = find_exporter(format);
    enum sonde_status           st = snd_export_options(options, &used, err);

    if (st != SONDE_OK)
        return st;
    if (!exporter)
        return refuse(format, err);
    if (exporter->info.missing)
        return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot write %s: %s", format,
                        exporter->info.missing);
    st = snd_host_clocks_align(trace, err);
    if (st != SONDE_OK)
        return st;
    return used.gzip ? run_gzip(exporter, trace, &used, sink, err)
                     : run(exporter, trace, &used, sink, snd_sink_is_fd(sink), err);
}
