/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/trace.h - open a trace and walk its events.
 *
 *     struct sonde_trace *trace;
 *     if (sonde_trace_open("prog.sonde", &trace, &err) == SONDE_OK) {
 *         sonde_trace_walk(trace, SONDE_BY_THREAD, my_function, my_data, &err);
 *         sonde_trace_close(trace);
 *     }
 *
 * A trace is a file, or a folder with one file for each process. It may be complete, packed,
 * truncated, or still being written: what was published is read, what is missing is in the
 * ledger (model.h). Input is untrusted: it cannot make the reader crash, hang, or allocate
 * memory beyond its tables (strings, stacks, threads), which the file must really contain.
 *
 * Threads: a trace is used by one thread at a time; two traces by two threads.
 */
#ifndef SONDE_TRACE_H
#define SONDE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/error.h"

SONDE_C_BEGIN_

#define SONDE_NONE UINT32_MAX /* rank, world size, thread: unknown */

struct sonde_trace; /* opaque */

/* Text of a trace: bytes as recorded (any byte may occur), and a NUL after them. */
struct sonde_text {
    const char *bytes;
    size_t      length;
};

struct sonde_process {
    uint32_t    pid, parent_pid;
    uint32_t    rank, world_size; /* or SONDE_NONE */
    uint32_t    cycle;            /* of the schedule */
    uint32_t    local_rank;       /* among the processes of its host, or SONDE_NONE */
    const char *host, *program, *path;
    int64_t     start_ns, stop_ns; /* on the trace's axis; stop: the latest known moment */
    int64_t     start_real_ns;     /* since 1970, of start_ns */
    double      range_cost_ns;     /* begin + end, as the recorder measured it */
    bool        closed; /* ended in order; otherwise killed, crashed, replaced or running */
    uint64_t    size_bytes;
};

struct sonde_thread {
    uint32_t          process; /* index */
    uint32_t          tid;
    struct sonde_text name;
    int64_t           start_ns, stop_ns;
    uint64_t          lost_events;
};

/*
 * Opens a file or a folder. With a file come the files of its forked children,
 * PATH.PID in the same folder.
 * Owns:   the caller owns *out and closes it with sonde_trace_close().
 * Errors: SONDE_E_IO, SONDE_E_FORMAT, SONDE_E_VERSION, SONDE_E_NOMEM; then *out is NULL.
 */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_trace_open(const char *path, struct sonde_trace **out, struct sonde_error *err);
SONDE_API void sonde_trace_close(struct sonde_trace *trace);

/* Processes and threads of the trace; indices start at 0. Borrowed until the trace is closed. */
SONDE_API uint32_t                    sonde_trace_process_count(const struct sonde_trace *trace);
SONDE_API const struct sonde_process *sonde_trace_process(const struct sonde_trace *trace,
                                                          uint32_t                  index);
SONDE_API uint32_t                    sonde_trace_thread_count(const struct sonde_trace *trace);
SONDE_API const struct sonde_thread  *sonde_trace_thread(const struct sonde_trace *trace,
                                                         uint32_t                  index);

/* Key/value pairs of a process, by index; false past the last. */
SONDE_API bool sonde_trace_metadata(const struct sonde_trace *trace, uint32_t process,
                                    uint32_t index, struct sonde_text *key,
                                    struct sonde_text *value);

/* Ids are per process. An id that the trace does not define gives "(unknown)". */
SONDE_API struct sonde_text sonde_trace_string(const struct sonde_trace *trace, uint32_t process,
                                               uint32_t id);

/* A tensor list in torch's notation, "[[5, 3, 224, 224], [], [[2], [2]]]"; returns its length. */
SONDE_API size_t sonde_trace_shapes(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                                    char *buffer, size_t size);

/* One argument of a tensor list; an element of a list argument follows it like one. */
struct sonde_argument {
    uint8_t        kind;  /* enum sonde_tensor_kind of record.h */
    uint8_t        dtype; /* enum sonde_dtype */
    uint32_t       count; /* tensor: dims; list: how many of the next are its elements */
    const int64_t *dims;  /* of a tensor; borrowed from the trace */
};
/* Stores at most `size`; returns how many there are. */
SONDE_API size_t sonde_trace_arguments(const struct sonde_trace *trace, uint32_t process,
                                       uint32_t id, struct sonde_argument *arguments, size_t size);

/*
 * What torch calls the type of `arguments[index]`: "float", "c10::Half", "TensorList", "Scalar",
 * "ScalarList", or "". Static.
 */
SONDE_API const char *sonde_argument_type(const struct sonde_argument *arguments, size_t count,
                                          size_t index);

struct sonde_frame {
    struct sonde_text function, file;
    uint32_t          line;
    uint32_t          first_line; /* of the function; 0 unknown */
};
/* The frames of a stack, innermost first; returns how many it has, storing at most `size`. */
SONDE_API size_t sonde_trace_stack(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                                   struct sonde_frame *frames, size_t size);

/* A frame by id; false if there is none. */
SONDE_API bool sonde_trace_frame(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                                 struct sonde_frame *frame);

/* A tally (sonde_tally); docs/FORMAT.md lists kinds and words. */
struct sonde_tally_row {
    uint32_t kind;
    uint32_t key, other; /* frames; 0 none */
    uint32_t count;      /* words that were recorded; those beyond are 0 */
    uint64_t words[8];   /* times in ticks of the trace's clock */
};
/* Of a process, by index; false past the last. An unused place has kind 0. */
SONDE_API bool sonde_trace_tally(const struct sonde_trace *trace, uint32_t process, uint32_t index,
                                 struct sonde_tally_row *row);

enum sonde_event_kind {
    SONDE_EVENT_BEGIN,
    SONDE_EVENT_END,
    SONDE_EVENT_MARK,
    SONDE_EVENT_STEP,
    SONDE_EVENT_GAP,
    SONDE_EVENT_COUNTER,
    SONDE_EVENT_LINK,
    SONDE_EVENT_SAMPLE,
    SONDE_EVENT_ALLOC,
    SONDE_EVENT_FREE,
    SONDE_EVENT_ATTR,
    SONDE_EVENT_END_AT,
    SONDE_EVENT_END_KEY,
    SONDE_EVENT_FUNCTION, /* a call of a Python function returned; not a range */
    SONDE_EVENT_DEVICE, /* a GPU did some work, which began then; in no order, whatever was asked */
};

/* What the kinds have besides. Ids are of the event's process: strings, stacks, frames, .. */
struct sonde_event_begin {
    uint32_t name;   /* string */
    uint32_t shapes; /* tensor list; 0: none */
};
struct sonde_event_mark {
    uint32_t name;  /* string */
    uint32_t stack; /* 0: none */
};
struct sonde_event_step {
    uint64_t number;
};
struct sonde_event_gap {
    uint32_t events; /* lost */
    uint32_t ends;   /* of recorded ranges, among them */
};
struct sonde_event_counter {
    double   value;
    uint32_t name; /* string */
};
struct sonde_event_link {
    uint64_t id;
    uint32_t kind;    /* as sonde_link() of probe.h has it */
    bool     arrives; /* an arrow ends here; otherwise it begins */
};
struct sonde_event_sample {
    uint64_t covered_ns; /* up to the event's time */
    uint32_t stack;      /* 0: none */
    uint32_t count;      /* samples in a row */
    uint32_t state;      /* enum sonde_sample_state, or-ed */
};
struct sonde_event_memory {
    uint64_t address, size_bytes;
    uint32_t device; /* type << 16 | index; 0xffff: the default one */
    uint32_t tag;
};
struct sonde_event_attr {
    uint64_t value;
    uint32_t key; /* enum sonde_attr of probe.h */
};
/* The range inside which `inner` others of the thread are open ends. */
struct sonde_event_end_at {
    uint32_t inner;
};
/* The range of the process that has this as its KEY attribute ends. */
struct sonde_event_end_key {
    uint64_t key;
};
struct sonde_event_function {
    uint64_t duration_ns; /* up to the event's time */
    uint32_t frame;
    uint32_t id, parent; /* of this call and of the calling one; 0: unknown */
    bool     resumed;    /* a generator or coroutine was resumed, not called */
};
struct sonde_event_device {
    uint64_t duration_ns;
    uint32_t work, queue; /* queue 0: none */
    uint32_t correlation; /* of the call that asked for it; 0: none */
};

struct sonde_event {
    enum sonde_event_kind kind;
    uint32_t              process, thread; /* indices; sample: the thread that was sampled */
    int64_t               time_ns;         /* since the trace began */
    union {                                /* the member of the kind's name; END has none */
        struct sonde_event_begin    begin;
        struct sonde_event_mark     mark;
        struct sonde_event_step     step;
        struct sonde_event_gap      gap;
        struct sonde_event_counter  counter;
        struct sonde_event_link     link;
        struct sonde_event_sample   sample;
        struct sonde_event_memory   memory; /* ALLOC, FREE */
        struct sonde_event_attr     attr;
        struct sonde_event_end_at   end_at;
        struct sonde_event_end_key  end_key;
        struct sonde_event_function function;
        struct sonde_event_device   device;
    };
};

/* What a sampled thread was doing; none of the first three: idle. */
enum sonde_sample_state {
    SONDE_SAMPLE_GIL = 1,      /* it held the interpreter's lock */
    SONDE_SAMPLE_ON_CPU = 2,   /* it ran or was runnable */
    SONDE_SAMPLE_GIL_WAIT = 4, /* it waited for the interpreter's lock */
    SONDE_SAMPLE_NATIVE = 8,   /* the stack has native frames */
};

enum sonde_order {
    SONDE_BY_THREAD, /* fastest: each thread's events in order, threads interleaved by chunk */
    SONDE_BY_TIME,   /* all threads and processes merged on one axis */
};

/* Return false to end the walk early. The event is borrowed for the call. */
typedef bool sonde_event_fn(const struct sonde_event *event, void *user);

/* Errors: none for damaged parts, which are skipped and counted; SONDE_E_IO, SONDE_E_NOMEM. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_trace_walk(struct sonde_trace *trace,
                                                           enum sonde_order    order,
                                                           sonde_event_fn *function, void *user,
                                                           struct sonde_error *err);

SONDE_C_END_
#endif
