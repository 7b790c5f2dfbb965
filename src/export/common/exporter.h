/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/common/exporter.h - the formats a trace can be written in; exporters.def lists them.
 *
 * A new exporter: CONTRIBUTING.md has the list of places; a test fails until all of them are there.
 *
 * Layer: export (sees base/ .. model/). Threads: as a trace.
 */
#ifndef SND_EXPORT_COMMON_EXPORTER_H
#define SND_EXPORT_COMMON_EXPORTER_H

#include "base/files/sink.h"
#include "sonde/export.h"
#include "sonde/model.h"

typedef enum sonde_status snd_export_write(struct sonde_trace                *trace,
                                           const struct sonde_export_options *options,
                                           struct snd_out *out, struct sonde_error *err);

/* A format that is a folder of files: writes `path`, of which a failure leaves nothing. */
typedef enum sonde_status snd_export_folder(struct sonde_trace                *trace,
                                            const struct sonde_export_options *options,
                                            const char *path, struct sonde_error *err);

struct snd_exporter { /* a line of exporters.def, which says what each writer writes */
    struct sonde_exporter_info info;
    snd_export_write          *write, *heap, *counted;
    snd_export_folder         *folder;
};

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

/* What a process is called in a file: its program; of a rank, "PROGRAM, rank 3 on HOST". Replaces what `name` has. */
void snd_export_name(const struct sonde_trace *trace, uint32_t process, struct sonde_buffer *name);
/* What goes before the name of a thread or stream, if need be: "rank 3 on HOST, process 4242, ". Appends. */
void snd_export_owner(const struct sonde_trace *trace, uint32_t process, struct sonde_buffer *name);

/* Whether torch's probe recorded the process. */
bool snd_export_is_torch(const struct sonde_trace *trace, uint32_t process);

#define SND_EXPORT_FOLDER(name)                                                                   \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_export_options *options, \
                           const char *path, struct sonde_error *err)
#define SND_EXPORT_WRITE(name)                                                                    \
    enum sonde_status name(struct sonde_trace *trace, const struct sonde_export_options *options, \
                           struct snd_out *out, struct sonde_error *err)

#define STREAM(function) SND_EXPORT_WRITE(function);
#define HEAP(function) SND_EXPORT_WRITE(function);
#define COUNTED(function) SND_EXPORT_WRITE(function);
#define FOLDER(function) SND_EXPORT_FOLDER(function);
#define SND_EXPORTER(name, ending, summary, missing, view, writers) writers
#include "export/exporters.def"
#undef STREAM
#undef HEAP
#undef COUNTED
#undef FOLDER
#undef SND_EXPORTER

/* The caller's options, which may be NULL or those of an older header, over the defaults. */
SND_CHECKED enum sonde_status snd_export_options(const struct sonde_export_options *given,
                                                 struct sonde_export_options       *used,
                                                 struct sonde_error                *err);

#endif
