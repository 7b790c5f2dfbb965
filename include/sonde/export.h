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
 * Threads: as a trace: one at a time. Numbers do not depend on the locale.
 */
#ifndef SONDE_EXPORT_H
#define SONDE_EXPORT_H

#include "sonde/model.h"
#include "sonde/sink.h"
#include "sonde/trace.h"

SONDE_C_BEGIN_

/* ---------------------------------------------------------------- reports */

enum sonde_report_format {
    SONDE_REPORT_TEXT,
    SONDE_REPORT_JSON,
    SONDE_REPORT_CSV,
    SONDE_REPORT_COLUMNS, /* JSON for what draws the table: docs/REPORT_PAGE.md, "Views" */
};
enum sonde_time_unit { SONDE_TIME_AUTO, SONDE_TIME_US, SONDE_TIME_MS, SONDE_TIME_S };

/* What of a view is shown, where it has several parts. */
enum sonde_report_part {
    SONDE_PART_MAIN,
    SONDE_PART_CALLERS,  /* functions: their callers */
    SONDE_PART_CALLEES,  /* functions: their callees */
    SONDE_PART_TREE,     /* functions: the call tree */
    SONDE_PART_AWAITING, /* functions: resumptions of generators and coroutines, time awaited */
    SONDE_PART_SUMMARY,  /* lines: also one line per function at the end */
};

struct sonde_report_options {
    size_t      struct_size; /* sizeof(struct sonde_report_options): set by the INIT macro */
    const char *view;        /* a name of sonde_view_info(); NULL: "ops" */
    const char *sort;        /* key of a column, greatest first; NULL: as the view orders them */
    int64_t     rows;        /* at most this many; -1: all */
    unsigned    groups;      /* enum sonde_group of model.h, or-ed: of ops all; tree: thread;
                                samples: thread or process */
    uint32_t    stack_depth; /* ops: frames compared when grouping by stack; 0: 5 */
    enum sonde_report_format format;
    enum sonde_time_unit     time_unit;           /* of text */
    bool                     top_level;           /* ops: only ranges without a parent */
    bool                     colour;              /* text with terminal colours */
    uint32_t    max_name, max_shapes, max_source; /* columns' widths in text; 0: no limit */
    const char *header;                           /* ops: a title over the table, or NULL */
    enum sonde_flops_mode  flops;                 /* ops, modules: what is counted */
    enum sonde_report_part part;
    bool                   skip_zero; /* lines: leave out functions that did not run */
    bool                   show_all;  /* samples: hide nothing */
    bool     peak;      /* line-memory: add a column: the peak above what was in use before */
    uint32_t width;     /* text: truncate lines to this many columns; 0: do not */
    bool     ascii;     /* text: trees are drawn in ASCII */
    bool     no_source; /* data: no text of source files; text has them all the same */
    bool     gil;       /* samples, functions: only samples that held the interpreter's lock */
    int64_t  at_ns;     /* heap: also what was held at this time of the trace; 0: no */
};

#define SONDE_REPORT_OPTIONS_INIT                                                             \
    {                                                                                         \
        sizeof(struct sonde_report_options), SONDE_NULL_, SONDE_NULL_, 100, 0, 0,             \
            SONDE_REPORT_TEXT, SONDE_TIME_AUTO, false, false, 55, 80, 75, SONDE_NULL_,        \
            SONDE_FLOPS_FULL, SONDE_PART_MAIN, false, false, false, 0, false, false, false, 0 \
    }

/*
 * Writes one view of `trace`. `options` may be NULL for the defaults.
 * Errors: SONDE_E_ARGUMENT for a view, sort key or group that does not exist (the message
 *         lists those that do; nothing is written); SONDE_E_IO, SONDE_E_NOMEM.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_report(struct sonde_trace                *trace,
                                                       const struct sonde_report_options *options,
                                                       const struct sonde_sink           *sink,
                                                       struct sonde_error                *err);

/*
 * torch.profiler's table of existing averages or events, byte for byte where torch is correct.
 * Of `options`: sort, rows, time_unit, top_level (torch's sense: rows whose first range has a parent
 * are not shown), max_*, header, flops (how the column is scaled). `columns`: enum
 * sonde_table_columns, or-ed.
 * Errors: as sonde_report.
 */
enum sonde_table_columns { SONDE_TABLE_MEMORY = 1, SONDE_TABLE_FLOPS = 2 };
SONDE_API SONDE_CHECKED enum sonde_status
sonde_averages_table(const struct sonde_trace *trace, const struct sonde_averages *averages,
                     const struct sonde_report_options *options, unsigned columns,
                     const struct sonde_sink *sink, struct sonde_error *err);
SONDE_API SONDE_CHECKED enum sonde_status
sonde_events_table(const struct sonde_trace *trace, const struct sonde_events *events,
                   const struct sonde_report_options *options, unsigned columns,
                   const struct sonde_sink *sink, struct sonde_error *err);

/*
 * Appends a stack as torch writes it, "file(line): function", innermost first, one per line, at
 * most `most` frames; returns how many.
 */
SONDE_API size_t sonde_stack_text(const struct sonde_trace *trace, uint32_t process, uint32_t stack,
                                  size_t most, struct sonde_buffer *text);

/*
 * torch's export_stacks: "root;..;leaf N" for each event with a stack, N its `metric`
 * (self_cpu_time_total, self_cuda_time_total) in whole microseconds.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_events_stacks(const struct sonde_trace *trace, const struct sonde_events *events,
                    const char *metric, const struct sonde_sink *sink, struct sonde_error *err);

/*
 * torch's export_memory_timeline: SONDE_TIMELINE_JSON is [times, sizes by category], _RAW is
 * [[time, action, bytes, category], ..], _HTML a page with a chart. Times in microseconds (RAW:
 * nanoseconds) since 1970, as torch's.
 */
enum sonde_timeline_format { SONDE_TIMELINE_JSON, SONDE_TIMELINE_RAW, SONDE_TIMELINE_HTML };
SONDE_API SONDE_CHECKED enum sonde_status
sonde_timeline_write(const struct sonde_trace *trace, const struct sonde_timeline *timeline,
                     enum sonde_timeline_format format, bool gzip, const struct sonde_sink *sink,
                     struct sonde_error *err);

/* What a stack's weight is in sonde_events_stacks(). */
enum sonde_stack_metric {
    SONDE_METRIC_CPU,
    SONDE_METRIC_CUDA,
    SONDE_METRIC_XPU,
    SONDE_METRIC_PRIVATEUSE1,
};

/* The words for values of options, as the command line and Python take them. */
enum sonde_word_list {
    SONDE_WORDS_FORMAT,    /* enum sonde_report_format */
    SONDE_WORDS_GROUP,     /* enum sonde_group of model.h */
    SONDE_WORDS_FLOPS,     /* enum sonde_flops_mode of model.h */
    SONDE_WORDS_PART,      /* enum sonde_report_part */
    SONDE_WORDS_TIME_UNIT, /* enum sonde_time_unit */
    SONDE_WORDS_METRIC,    /* enum sonde_stack_metric */
    SONDE_WORDS_HEAP,      /* enum sonde_heap_bytes */
};
struct sonde_word {
    const char *name;
    int         value;
};
/* The words of a list, by number; NULL past the last. Static. */
SONDE_API const struct sonde_word *sonde_word(enum sonde_word_list list, size_t index);
/*
 * The value of a word; of groups, of several with commas between them, or-ed.
 * Errors: E_ARGUMENT for a word that is not in the list; the message has those that are.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_word_value(enum sonde_word_list list, const char *text, int *value, struct sonde_error *err);

struct sonde_view_info {
    const char *name, *summary;
    unsigned    groups; /* enum sonde_group of model.h, or-ed: what it can be grouped by */
};
/* The views by index; NULL past the last. Static. */
SONDE_API const struct sonde_view_info *sonde_view_info(size_t index);
/*
 * Of ops, kernels, functions, lines, line-memory, samples, heap and counters, in this order, those that the trace has
 * something for; functions last, where they are computed from samples. Stores at most `size` of
 * their names, which are static, and returns how many there are. Stops reading at the first range.
 */
#define SONDE_CONTENT_VIEWS 9
SONDE_API size_t sonde_views_with_content(struct sonde_trace *trace, const char **views,
                                          size_t size);
/* Of a trace that has nothing for the view: a sentence why, and what to record. Static; NULL: none. */
SONDE_API const char *sonde_view_absence(struct sonde_trace *trace, const char *view);
/* The view to show by default: the first of them, or "ops". Static. */
SONDE_API const char *sonde_default_view(struct sonde_trace *trace);

/* ------------------------------------------------------------------- diff */

struct sonde_diff_options {
    size_t      struct_size; /* sizeof(struct sonde_diff_options): set by the INIT macro */
    const char *by;          /* a name of sonde_diff_source(); NULL: the first that all runs have */
    const char *fail_if;     /* conditions, as man sonde-diff has them; NULL: none */
    double      least_percent; /* smaller changes of time are not called changed */
};
#define SONDE_DIFF_OPTIONS_INIT                                          \
    {                                                                    \
        sizeof(struct sonde_diff_options), SONDE_NULL_, SONDE_NULL_, 2.0 \
    }

/* Names of what can be compared, by index; NULL past the last. Static. */
SONDE_API const char *sonde_diff_source(size_t index);

/*
 * Writes what differs between two sides: `traces` are `a_runs` runs of A, then `b_runs` of B. Of `report`:
 * format, sort, rows, width and time_unit. *failed: how many rows a condition
 * of fail_if holds for, the step being one. docs/DIFF.md has
 * the method. Errors: SONDE_E_ARGUMENT for an unknown `by`, sort key or condition; SONDE_E_STATE
 * where a side has nothing to compare; as sonde_report.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_diff(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
           const struct sonde_diff_options *options, const struct sonde_report_options *report,
           const struct sonde_sink *sink, size_t *failed, struct sonde_error *err);

/*
 * How closely the time of B over that of A is known, of the whole, which is a step or, without steps, a run: the 95 %
 * interval ends *margin_percent above and below it, as a factor. INFINITY where a side has too few samples.
 * Of `options`: by, and fail_if for what its limits need. Errors: as sonde_diff.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_diff_margin(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                  const struct sonde_diff_options *options, double *margin_percent,
                  struct sonde_error *err);

/* ---------------------------------------------------------------- exports */

struct sonde_exporter_info {
    const char *name;    /* the format's name for sonde_export() */
    const char *suffix;  /* file extension, with its dot */
    const char *summary; /* one line */
    const char *missing; /* NULL, or why this build cannot do it */
    const char *view;    /* the view of the same data; NULL: whatever is in the trace */
};
/* The exporters by index; NULL past the last. Static. */
SONDE_API const struct sonde_exporter_info *sonde_exporter_info(size_t index);

enum sonde_level {
    SONDE_LEVEL_MODEL = 1,
    SONDE_LEVEL_LAYER = 2,
    SONDE_LEVEL_OP = 4,
    SONDE_LEVEL_GRAPH = 8 /* node by node: only where the trace has a graph */
};

/* Which bytes of a heap: held at its peak, allocated in all, never freed. */
enum sonde_heap_bytes { SONDE_HEAP_AUTO, SONDE_HEAP_PEAK, SONDE_HEAP_ALLOCATED, SONDE_HEAP_LEAKED };

struct sonde_export_options {
    size_t struct_size; /* sizeof(struct sonde_export_options): set by the INIT macro */
    bool   gzip;        /* compress what is written */
    /* chrome: members added at the top level, key and JSON text in turn, then NULL; or NULL */
    const char *const *metadata;
    const char        *name;    /* chrome: traceName; NULL: that of the trace's own file */
    unsigned           levels;  /* benchmark: enum sonde_level, or-ed; 0: all */
    bool               off_cpu; /* folded: of samples, the time off the CPU alone */
    /*
     * folded, speedscope, pprof: stacks of allocations with these bytes. SONDE_HEAP_AUTO: PEAK, of a
     * trace that has nothing else to show
     */
    enum sonde_heap_bytes heap;
    bool                  no_source; /* html: no text of source files */
    /* folded, speedscope, pprof, perf-script, callgrind: only samples that held the interpreter's lock */
    bool gil;
    /*
     * folded, speedscope, pprof, perf-script, callgrind: the events of this counter by call stack, or of "all" that
     * sampled. NULL: all, of a trace that has no stacks of anything else
     */
    const char *counter;
    /* chrome: categories of events that are left out ("cpu_op"), then NULL; or NULL */
    const char *const *left_out;
};
#define SONDE_EXPORT_OPTIONS_INIT                                                       \
    {                                                                                   \
        sizeof(struct sonde_export_options), false, SONDE_NULL_, SONDE_NULL_, 0, false, \
            SONDE_HEAP_AUTO, false, false, SONDE_NULL_, SONDE_NULL_                     \
    }

/*
 * The report page of the first run of B, with what differs from A: the rows of sonde_diff() and flame
 * graphs coloured by change. `options` may be NULL; of it, no_source counts.
 * Errors: SONDE_E_ARGUMENT, SONDE_E_UNSUPPORTED (built without the page).
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_diff_page(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                const struct sonde_export_options *options, const struct sonde_sink *sink,
                struct sonde_error *err);

/*
 * Writes `trace` in the format named `format`. `options` may be NULL.
 * Errors: SONDE_E_ARGUMENT for a format that does not exist, SONDE_E_UNSUPPORTED for one that
 *         this build lacks (or gzip without zlib); SONDE_E_IO, SONDE_E_NOMEM: then what was
 *         written so far is not complete.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_export(struct sonde_trace                *trace,
                                                       const char                        *format,
                                                       const struct sonde_export_options *options,
                                                       const struct sonde_sink           *sink,
                                                       struct sonde_error                *err);

/*
 * Whether the format is a folder of files: then sonde_export() refuses it, and sonde_export_folder() writes it. That
 * writes chrome, too: a file for each rank of a job. A folder that has such files already gets those of this trace
 * besides; of the same recording (chrome: of the same rank) they are replaced.
 * Errors: SONDE_E_ARGUMENT for a format that is no folder; SONDE_E_STATE where `path` has something else in it;
 *         SONDE_E_IO, SONDE_E_NOMEM.
 */
SONDE_API bool sonde_exporter_is_folder(const char *format);
SONDE_API SONDE_CHECKED enum sonde_status
sonde_export_folder(struct sonde_trace *trace, const char *format,
                    const struct sonde_export_options *options, const char *path,
                    struct sonde_error *err);

/* The version of the library, "1.2.3". */
SONDE_API const char *sonde_version(void);

SONDE_C_END_
#endif
