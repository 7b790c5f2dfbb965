/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/export.h - a trace as a table to read, or as a file for another program.
 *
 *     struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
 *     options.view = "ops";
 *     options.sort = "self_cpu_time_total";
 *     struct sonde_sink out = sonde_sink_file(stdout);
 *     sonde_report(trace, &options, &out, &err);
 *
 * Threads: as a trace: one at a time. Numbers are written alike in every locale.
 */
#ifndef SONDE_EXPORT_H
#define SONDE_EXPORT_H

#include "sonde/sink.h"
#include "sonde/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- reports */

enum sonde_report_format { SONDE_REPORT_TEXT, SONDE_REPORT_JSON, SONDE_REPORT_CSV };
enum sonde_time_unit { SONDE_TIME_AUTO, SONDE_TIME_US, SONDE_TIME_MS, SONDE_TIME_S };

struct sonde_report_options {
    size_t      struct_size; /* sizeof(struct sonde_report_options): set by the INIT macro */
    const char *view;        /* a name of sonde_views(); NULL: "ops" */
    const char *sort;        /* key of a column, greatest first; NULL: as the view orders them */
    int64_t     rows;        /* at most so many; -1: all */
    unsigned    groups;      /* ops: enum sonde_group of model.h, or-ed */
    uint32_t    stack_depth; /* ops: frames that count when grouped by stack; 0: 5 */
    enum sonde_report_format format;
    enum sonde_time_unit     time_unit;           /* of text */
    bool                     top_level;           /* ops: only ranges that lie in no other */
    bool                     colour;              /* text with terminal colours */
    uint32_t    max_name, max_shapes, max_source; /* columns' widths in text; 0: no limit */
    const char *header;                           /* ops: a title over the table, or NULL */
};

#define SONDE_REPORT_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(struct sonde_report_options), NULL, NULL, 100, 0, 0, SONDE_REPORT_TEXT, \
            SONDE_TIME_AUTO, false, false, 55, 80, 75, NULL                            \
    }

/*
 * Writes one view of `trace`. `options` may be NULL for the defaults.
 * Errors: SONDE_E_ARGUMENT for a view, sort key or group that does not exist (the message
 *         lists those that do; nothing is written); SONDE_E_IO, SONDE_E_NOMEM.
 */
SONDE_API enum sonde_status sonde_report(struct sonde_trace                *trace,
                                         const struct sonde_report_options *options,
                                         const struct sonde_sink *sink, struct sonde_error *err);

struct sonde_view_info {
    const char *name, *summary;
};
/* The views, by number; NULL past the last. Static. */
SONDE_API const struct sonde_view_info *sonde_view_info(size_t index);

/* ---------------------------------------------------------------- exports */

struct sonde_exporter_info {
    const char *name;    /* what sonde_export takes */
    const char *suffix;  /* ending of a file of it, with its dot */
    const char *summary; /* one line */
    const char *missing; /* NULL, or why this build cannot do it */
};
/* The exporters, by number; NULL past the last. Static. */
SONDE_API const struct sonde_exporter_info *sonde_exporter_info(size_t index);

struct sonde_export_options {
    size_t struct_size; /* sizeof(struct sonde_export_options): set by the INIT macro */
    bool   gzip;        /* compress what is written */
};
#define SONDE_EXPORT_OPTIONS_INIT                  \
    {                                              \
        sizeof(struct sonde_export_options), false \
    }

/*
 * Writes `trace` in the format named `format`. `options` may be NULL.
 * Errors: SONDE_E_ARGUMENT for a format that does not exist, SONDE_E_UNSUPPORTED for one that
 *         this build lacks (or gzip without zlib); SONDE_E_IO, SONDE_E_NOMEM: then what was
 *         written so far is not complete.
 */
SONDE_API enum sonde_status sonde_export(struct sonde_trace *trace, const char *format,
                                         const struct sonde_export_options *options,
                                         const struct sonde_sink *sink, struct sonde_error *err);

/* The version of the library, "1.2.3". */
SONDE_API const char *sonde_version(void);

#ifdef __cplusplus
}
#endif
#endif
