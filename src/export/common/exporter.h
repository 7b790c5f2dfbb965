/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/common/exporter.h - the formats a trace can be written in; exporters.c lists them.
 *
 * A new exporter: CONTRIBUTING.md has the list of places; a test fails until all of them are there.
 *
 * Layer: export (sees base/ .. model/). Threads: as a trace.
 */
#ifndef SND_EXPORT_COMMON_EXPORTER_H
#define SND_EXPORT_COMMON_EXPORTER_H

#include "base/sink.h"
#include "sonde/export.h"
#include "sonde/model.h"

typedef enum sonde_status snd_export_write(struct sonde_trace                *trace,
                                           const struct sonde_export_options *options,
                                           struct snd_out *out, struct sonde_error *err);

struct snd_exporter {
    struct sonde_exporter_info info;
    snd_export_write          *write; /* streams: memory must not grow with the events */
};

extern const struct snd_exporter snd_exporters[];
extern const size_t              snd_exporter_count;

/*
 * Has `write` write the Python functions of the trace. Errors: as sonde_functions_new();
 * SONDE_E_STATE: it has none; and its own.
 */
typedef enum sonde_status snd_functions_write(struct sonde_trace           *trace,
                                              const struct sonde_functions *functions,
                                              struct snd_out *out, struct sonde_error *err);
enum sonde_status snd_export_functions(struct sonde_trace *trace, snd_functions_write *write,
                                       struct snd_out *out, struct sonde_error *err);

/*
 * The process's id in a file, which no other process has: two hosts may use one, and a viewer would
 * take them for one process.
 */
uint64_t snd_export_pid(const struct sonde_trace *trace, uint32_t process);

/* A format that is a folder of files: writes `path`, of which a failure leaves nothing. */
typedef enum sonde_status snd_export_folder(struct sonde_trace                *trace,
                                            const struct sonde_export_options *options,
                                            const char *path, struct sonde_error *err);
#define SND_EXPORT_FOLDER(name)                                                                   \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_export_options *options, \
                           const char *path, struct sonde_error *err)
SND_EXPORT_FOLDER(snd_export_parquet);

#define SND_EXPORT_WRITE(name)                                                                    \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_export_options *options, \
                           struct snd_out *out, struct sonde_error *err)
SND_EXPORT_WRITE(snd_export_chrome);
SND_EXPORT_WRITE(snd_export_perfetto);
SND_EXPORT_WRITE(snd_export_folded);
SND_EXPORT_WRITE(snd_heap_folded);
SND_EXPORT_WRITE(snd_counted_folded);
SND_EXPORT_WRITE(snd_export_speedscope);
SND_EXPORT_WRITE(snd_heap_speedscope);
SND_EXPORT_WRITE(snd_counted_speedscope);
SND_EXPORT_WRITE(snd_export_pprof);
SND_EXPORT_WRITE(snd_heap_pprof);
SND_EXPORT_WRITE(snd_counted_pprof);
SND_EXPORT_WRITE(snd_export_perf_script);
SND_EXPORT_WRITE(snd_counted_perf_script);
SND_EXPORT_WRITE(snd_export_pstats);
SND_EXPORT_WRITE(snd_export_callgrind);
SND_EXPORT_WRITE(snd_counted_callgrind);
SND_EXPORT_WRITE(snd_export_lprof);
SND_EXPORT_WRITE(snd_export_mprof);
SND_EXPORT_WRITE(snd_export_json);
SND_EXPORT_WRITE(snd_export_csv);
SND_EXPORT_WRITE(snd_export_html);
SND_EXPORT_WRITE(snd_export_sqlite);
SND_EXPORT_WRITE(snd_export_svg);
SND_EXPORT_WRITE(snd_export_no_stream);
SND_EXPORT_WRITE(snd_export_benchmark);
SND_EXPORT_WRITE(snd_export_benchmark_json);

/* The caller's options, which may be NULL or those of an older header, over the defaults. */
SND_CHECKED enum sonde_status snd_export_options(const struct sonde_export_options *given,
                                                 struct sonde_export_options       *used,
                                                 struct sonde_error                *err);

#endif
