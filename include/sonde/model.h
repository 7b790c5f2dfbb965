/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/model.h - what is computed from a trace: averages, events, modules, tree, steps, threads, ledger;
 * and, by its includes, memory, functions, lines, samples.
 *
 * Each is built from a trace in one pass (memory: two) without keeping its events. They may refer to
 * the trace: close it last.
 *
 * Rules of the numbers (docs/ARCHITECTURE.md): self = own time minus direct children's;
 * in averages, a range that is the sole child of a range of the same name is folded into it;
 * memory of a range = bytes allocated less bytes freed on its thread while it was open.
 *
 * Threads: as a trace: one at a time.
 */
#ifndef SONDE_MODEL_H
#define SONDE_MODEL_H

#include "sonde/functions.h"
#include "sonde/memory.h"
#include "sonde/pack.h"
#include "sonde/samples.h"
#include "sonde/trace.h"

SONDE_C_BEGIN_

/* --------------------------------------------------------------- averages */

enum sonde_group {
    SONDE_GROUP_SHAPE = 1,
    SONDE_GROUP_STACK = 2,
    SONDE_GROUP_THREAD = 4,
    SONDE_GROUP_PROCESS = 8,
    SONDE_GROUP_MODULE = 16,
    SONDE_GROUP_OVERLOAD = 32,
    SONDE_GROUP_OPERATOR = 64, /* of kernels: the range that launched them */
    SONDE_GROUP_GRID = 128,    /* of kernels: grid, block, registers, shared memory */
    SONDE_GROUP_DEVICE = 256,  /* of kernels: the GPU */
    SONDE_GROUP_STEP = 512,    /* of ranks */
};

/*
 * How floating-point operations are counted (docs/FLOPS.md). What a program marked itself
 * (sonde_flops) counts in each.
 */
enum sonde_flops_mode {
    SONDE_FLOPS_FULL, /* every operator of model/flops/flops.def; its children are not counted again */
    SONDE_FLOPS_TORCH, /* torch.profiler's seven operators, each by itself, as it shows them */
    SONDE_FLOPS_NONE,
};

/* What kind of range it is: torch's RecordScope. */
enum sonde_scope {
    SONDE_SCOPE_FUNCTION = 0,
    SONDE_SCOPE_BACKWARD = 1,
    SONDE_SCOPE_SCRIPT = 2,
    SONDE_SCOPE_USER = 7,    /* a range named by the user */
    SONDE_SCOPE_PYTHON = 32, /* a call of a Python function: beyond torch's numbers */
};

/* One row. Text is borrowed from the averages it belongs to. */
struct sonde_average {
    struct sonde_text name;            /* "[memory]": memory allocated or freed outside any range */
    uint32_t          process, thread; /* indices, or SONDE_NONE when not grouped by them */
    struct sonde_text shapes;          /* torch's notation; empty when not grouped by shape */
    struct sonde_text stack;           /* frames, innermost first, one per line; or empty */
    struct sonde_text module;          /* path; empty when not grouped by it */
    struct sonde_text overload;        /* empty when not grouped by it */
    uint64_t          count;
    int64_t           total_ns, self_ns;
    int64_t           min_ns, max_ns;            /* of one call's total */
    int64_t           cpu_bytes, self_cpu_bytes; /* net */
    int64_t           device_bytes, self_device_bytes;
    int64_t           device_ns, self_device_ns; /* of GPUs: work given to it, as torch counts it */
    double            flops, macs, moved_bytes;  /* moved: read and written by what has a formula */
    /* Of its first range, as torch has it: */
    uint8_t scope;           /* enum sonde_scope */
    bool    is_async;        /* ended by another thread */
    bool    has_parent;      /* it has a parent */
    bool is_user_annotation; /* of all: a user's range and an operator of one name are two rows */
    bool on_device;          /* of all: what a GPU did, or a person's range as a stream saw it */
    bool uses_gpu;           /* a GPU was recorded: torch's use_device is "cuda" */
};

struct sonde_averages_options {
    size_t   struct_size; /* sizeof(struct sonde_averages_options), as in the INIT macro */
    unsigned groups;      /* enum sonde_group, or-ed; 0: by name alone */
    uint32_t stack_depth; /* frames compared by SONDE_GROUP_STACK; 0: 5 */
    bool     top_level;   /* only ranges without a parent */
    enum sonde_flops_mode flops;
};
#define SONDE_AVERAGES_OPTIONS_INIT                                          \
    {                                                                        \
        sizeof(struct sonde_averages_options), 0, 0, false, SONDE_FLOPS_FULL \
    }

struct sonde_averages; /* opaque */

/* Owns: the caller, until sonde_averages_free(). `options` may be NULL. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_averages_new(struct sonde_trace *trace, const struct sonde_averages_options *options,
                   struct sonde_averages **out, struct sonde_error *err);
SONDE_API void   sonde_averages_free(struct sonde_averages *averages);
SONDE_API size_t sonde_averages_count(const struct sonde_averages *averages);
/* Rows in the order in which their first ranges began, as torch lists them before sorting. */
SONDE_API struct sonde_average sonde_averages_get(const struct sonde_averages *averages,
                                                  size_t                       index);
/*
 * The same, as an object that stays until sonde_averages_free(): 200 bytes for each row that is
 * read. NULL: no such row, or out of memory. Threads: one at a time.
 */
SONDE_API const struct sonde_average *sonde_averages_row(const struct sonde_averages *averages,
                                                         size_t                       index);
/* What the columns depend on. */
struct sonde_averages_totals {
    int64_t self_ns;   /* the sum that percentages refer to */
    int64_t device_ns; /* of all that GPUs did: the same for theirs */
    bool    uses_gpu;  /* a GPU was recorded */
    bool    has_memory, has_device_memory, has_shapes, has_stacks, has_flops, has_overloads;
    uint64_t
        unmatched_frees; /* of memory allocated before the recording, without a size: not counted */
    uint64_t events;     /* walked */
    uint64_t ranges;
};
SONDE_API const struct sonde_averages_totals *
sonde_averages_totals(const struct sonde_averages *averages);

/*
 * Passes of a benchmark (bench.h) that the averages cover, 0: not a benchmark; and a row for one
 * pass: calls, times, bytes and FLOPs divided by the passes, shortest and longest call unchanged.
 */
SONDE_API uint64_t             sonde_averages_passes(const struct sonde_averages *averages);
SONDE_API struct sonde_average sonde_average_of_pass(const struct sonde_average *row,
                                                     uint64_t                    passes);

/* ----------------------------------------------------------------- events */

/*
 * Every range of the trace as torch.profiler's events() lists them: by start (the longer one
 * first of two that begin together), utility operators left out, only children of the same
 * name folded, memory allocated outside any range as rows "[memory]". One array per column, each of
 * `count` entries, valid until sonde_events_free().
 *
 * A text column holds numbers of texts (sonde_events_text); 0 is the empty text.
 */
enum sonde_event_flag {
    SONDE_EVENT_IS_ASYNC = 1,  /* it waits, or another thread ended it: no children, no self time */
    SONDE_EVENT_IS_USER = 2,   /* scope USER */
    SONDE_EVENT_IS_MEMORY = 4, /* a "[memory]" row */
    SONDE_EVENT_IS_UNFINISHED = 8, /* its end is not in the trace */
    SONDE_EVENT_IS_FUNCTION = 16,  /* a call of a Python function: in no operator's self time */
    SONDE_EVENT_ON_DEVICE =
        32,                  /* what a GPU did; with IS_USER: a person's range as a stream saw it */
    SONDE_EVENT_IS_API = 64, /* a call of a GPU's API */
    SONDE_EVENT_IS_OVERHEAD = 128, /* the host's time that went into profiling a GPU */
};

struct sonde_events_columns {
    size_t          count;
    bool            uses_gpu;     /* a GPU was recorded: torch's use_device is "cuda" */
    const uint32_t *name;         /* text; ProfilerStep#N is ProfilerStep* here ... */
    const uint32_t *trace_name;   /* ... and itself here */
    const uint32_t *overload;     /* text */
    const uint32_t *process;      /* index of the trace */
    const uint32_t *thread;       /* index of the trace */
    const uint32_t *torch_thread; /* as at::RecordFunction numbers it; its own tid if unknown */
    const int64_t  *start_ns, *end_ns, *self_ns; /* on the trace's axis */
    const int32_t *parent; /* index of the parent event, or -1; a function's parent is a function */
    const uint32_t *shapes, *strides; /* tensor list ids of its process, 0 none */
    const uint32_t *arguments;        /* text: JSON list of strings, torch's "Concrete Inputs" */
    const uint32_t *keywords;         /* text: JSON object of its keyword arguments */
    const uint32_t *stack;  /* stack id of its process, 0 none; a backward one's is its forward's */
    const uint32_t *module; /* text: "Net.layer1.0.conv" */
    const int64_t  *sequence;                  /* -1: none */
    const uint32_t *fwd_thread;                /* 0: none */
    const uint32_t *python_id, *python_parent; /* of calls of Python functions; 0: none */
    const int32_t  *python_module; /* of a module's call: its number within its class; else -1 */
    const uint8_t  *scope;         /* enum sonde_scope */
    const uint8_t  *flags;         /* enum sonde_event_flag */
    const double   *flops, *macs, *moved_bytes;
    const int64_t  *cpu_bytes, *self_cpu_bytes, *device_bytes, *self_device_bytes;
    const int64_t  *device_ns, *self_device_ns; /* of GPUs, as torch counts it */
    const uint32_t *device, *stream;            /* ON_DEVICE: type << 16 | index, and its stream */
    const uint32_t *correlation;                /* ON_DEVICE, IS_API: of the call; 0: none */
    const uint32_t *function; /* IS_API: CUPTI's number of it, | 0x8000: of the driver */
    const int32_t
        *owner; /* ON_DEVICE, IS_API: operator that it is given to (IS_USER: that it is), or -1 */
    const uint32_t *work;      /* ON_DEVICE: what was done, a record of its process; 0: none */
    const uint32_t *work_kind; /* enum sonde_work_kind; 0: none */
};

/*
 * Whether Kineto draws an arrow from calls of this function (`function` of an event): launches, copies
 * and fills, and what waits. It gives every other call the end of one, which begins nowhere.
 */
SONDE_API bool sonde_call_asks(uint32_t function);

struct sonde_events_options {
    size_t struct_size; /* sizeof(struct sonde_events_options), as in the INIT macro */
    enum sonde_flops_mode flops;
    bool                  on_demand; /* columns are NULL until sonde_events_fill() has made them */
};
#define SONDE_EVENTS_OPTIONS_INIT                                    \
    {                                                                \
        sizeof(struct sonde_events_options), SONDE_FLOPS_FULL, false \
    }

struct sonde_events; /* opaque */
/* Owns: the caller, until sonde_events_free(). `options` may be NULL. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_events_new(struct sonde_trace *trace, const struct sonde_events_options *options,
                 struct sonde_events **out, struct sonde_error *err);
SONDE_API void sonde_events_free(struct sonde_events *events);
/*
 * Makes the column of that name (a member of struct sonde_events_columns), or all of them for NULL,
 * unless it is there already. Errors: SONDE_E_NOMEM, SONDE_E_ARGUMENT: there is no such column.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_events_fill(struct sonde_events *events, const char *column, struct sonde_error *err);
SONDE_API const struct sonde_events_columns                             *
sonde_events_columns(const struct sonde_events *events);
SONDE_API size_t            sonde_events_text_count(const struct sonde_events *events);
SONDE_API struct sonde_text sonde_events_text(const struct sonde_events *events, uint32_t text);

/* ---------------------------------------------------------------- modules */

/*
 * The modules of a network, as a tree by path. Node 0 is the root, of no name; children come in
 * the order in which they first ran. Times are of operators, backward ones through the forward
 * operator that they belong to; `self_` excludes child modules.
 */
struct sonde_module {
    struct sonde_text name; /* last part of its path: "conv1" */
    struct sonde_text path; /* "net.layer1.0.conv1" */
    struct sonde_text kind; /* class: "Conv2d"; empty if not recorded */
    uint32_t          parent, first_child, next_sibling; /* 0: none */
    uint32_t          depth;
    uint64_t          calls; /* forward */
    int64_t           forward_ns, self_forward_ns, backward_ns, self_backward_ns;
    double            flops, self_flops, backward_flops, macs, backward_macs;
    int64_t           parameters; /* -1: not recorded */
    int64_t           parameter_bytes;
    int64_t           activation_bytes; /* allocated in its forward pass and not freed in it */
    int64_t           peak_bytes; /* peak of a forward pass above what was live when it began */
    struct sonde_text input_shapes, output_shapes; /* of its first call; "" if not recorded */
    int64_t           output_bytes;                /* likewise; -1 */
    /* On a GPU: of one forward pass, between two events on its stream. -1: not measured; then,
       and there, the times above are those of handing work over. */
    int64_t device_forward_ns;
    bool    on_device;               /* the model is on a GPU */
    int64_t cpu_bytes, device_bytes; /* net, forward and backward */
    /* Work of GPUs that its operators asked for. */
    int64_t  gpu_forward_ns, gpu_backward_ns, self_gpu_forward_ns, self_gpu_backward_ns;
    uint64_t idle_calls; /* of its calls: in which no operator ran */
    bool calls_inferred; /* from its operators: TorchScript, or a trace without records of calls */
};
struct sonde_modules; /* opaque */
SONDE_API SONDE_CHECKED enum sonde_status sonde_modules_new(struct sonde_trace    *trace,
                                                            enum sonde_flops_mode  flops,
                                                            struct sonde_modules **out,
                                                            struct sonde_error    *err);
SONDE_API void                            sonde_modules_free(struct sonde_modules *modules);
SONDE_API size_t                          sonde_modules_count(const struct sonde_modules *modules);
/* Passes of a benchmark (bench.h) that this is the sum of; 0: not a benchmark. */
SONDE_API uint64_t                   sonde_modules_passes(const struct sonde_modules *modules);
SONDE_API const struct sonde_module *sonde_modules_node(const struct sonde_modules *modules,
                                                        size_t                      index);

/* -------------------------------------------------------------------- roof */

/* What a machine can do at most, with all the processors that the caller may use. */
struct sonde_roof {
    double   flops_per_second; /* multiply-adds of 32-bit numbers; each counts as two */
    double   bytes_per_second; /* read and written, of arrays that no cache holds */
    uint32_t threads;          /* that measured it; 0: not told */
};
/* Measures this machine, in about 0.2 s. Errors: SONDE_E_NOMEM. Threads: one at a time. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_roof_measure(struct sonde_roof  *out,
                                                             struct sonde_error *err);
/* As JSON: the value of the metadata machine.roof, by which the view roofline knows it. */
#define SONDE_ROOF_TEXT 160
SONDE_API void sonde_roof_text(const struct sonde_roof *roof, char out[SONDE_ROOF_TEXT]);

/* ------------------------------------------------------------------- tree */

/* The call tree with equal paths merged. Node 0 is the root, of no name. */
struct sonde_node {
    struct sonde_text name;
    uint32_t          parent, first_child, next_sibling; /* node indices; 0: none */
    uint32_t          depth;                             /* root 0 */
    uint64_t          count;
    int64_t           total_ns, self_ns;
    int64_t           waiting_ns; /* of asynchronous ranges; not part of the other times */
    int64_t           cpu_bytes;  /* net, children included */
    double            flops;      /* children included */
    int64_t           device_ns;  /* work of GPUs that it asked for, children included */
};
struct sonde_tree; /* opaque */
/* `per_thread`: the first level are the threads. Children are sorted by total time, longest first. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_tree_new(struct sonde_trace *trace, bool per_thread,
                                                         struct sonde_tree **out,
                                                         struct sonde_error *err);
SONDE_API void                            sonde_tree_free(struct sonde_tree *tree);
SONDE_API size_t                          sonde_tree_count(const struct sonde_tree *tree);
SONDE_API const struct sonde_node *sonde_tree_node(const struct sonde_tree *tree, size_t index);

/* ------------------------------------------- summary: threads, steps, ledger */

struct sonde_thread_row {
    uint32_t thread; /* index */
    uint64_t events, ranges;
    int64_t  busy_ns;    /* inside at least one range that is not asynchronous */
    int64_t  waiting_ns; /* of asynchronous ranges that began on it, each counted in full */
    int64_t  span_ns;    /* from its first event, or sample of it, to its last */
    uint64_t lost_events;
    uint64_t samples; /* of its stack, by whichever thread */
};
/* What of a step a row has. Only whole ones are compared and averaged. */
enum sonde_step_part {
    SONDE_STEP_WHOLE = 0,
    SONDE_STEP_FIRST = 1,    /* recording began in it: with `sonde run`, imports and start-up */
    SONDE_STEP_COMPILES = 2, /* torch.compile compiled code in it */
    SONDE_STEP_AFTER = 3,    /* no step: what followed the last one */
};
struct sonde_step_row {
    uint32_t process;
    uint64_t number;
    int64_t  start_ns, duration_ns; /* to the next step, or to the end of the recording */
    uint64_t ranges;                /* that began in it, in its process */
    int64_t  device_ns;             /* work of GPUs that was asked for in it */
    enum sonde_step_part part;
};
/* "whole", "first", "compiles", "after". */
SONDE_API const char *sonde_step_part_name(enum sonde_step_part part);

/*
 * What is missing, truncated or uncertain. Every key that applies is listed with a count;
 * an empty ledger means that nothing is missing. Keys are stable: docs/FORMAT.md lists them.
 */
struct sonde_ledger_item {
    const char *key; /* "lost_events", "unfinished_ranges", "not_closed", ... */
    uint64_t    count;
    char        text[256]; /* a sentence that says what it means and what to do */
    bool        is_note;   /* informational: normal, or as requested */
};

struct sonde_summary_totals {
    uint64_t events, ranges, marks, counters, allocs, frees, links, samples, steps;
    int64_t  span_ns; /* first event to last */
    uint64_t size_bytes;
};

struct sonde_summary; /* opaque */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_summary_new(struct sonde_trace *trace, struct sonde_summary **out, struct sonde_error *err);
SONDE_API void sonde_summary_free(struct sonde_summary *summary);
SONDE_API const struct sonde_summary_totals                  *
sonde_summary_totals(const struct sonde_summary *summary);
SONDE_API size_t sonde_summary_thread_count(const struct sonde_summary *summary);
SONDE_API const struct sonde_thread_row *sonde_summary_thread(const struct sonde_summary *summary,
                                                              size_t                      index);
SONDE_API size_t sonde_summary_step_count(const struct sonde_summary *summary);
SONDE_API const struct sonde_step_row *sonde_summary_step(const struct sonde_summary *summary,
                                                          size_t                      index);
SONDE_API size_t sonde_summary_ledger_count(const struct sonde_summary *summary);
SONDE_API const struct sonde_ledger_item *sonde_summary_ledger(const struct sonde_summary *summary,
                                                               size_t                      index);

SONDE_C_END_
#endif
