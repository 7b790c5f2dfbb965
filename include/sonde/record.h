/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/record.h - mark what a program does; read it back with `sonde report`.
 *
 *     #include <sonde/record.h>                    cc prog.c $(pkg-config --cflags --libs sonde)
 *
 *     struct sonde_options options = SONDE_OPTIONS_INIT;
 *     options.path = "prog.sonde";
 *     sonde_start(&options, NULL);                 or: sonde run -o prog.sonde -- ./prog
 *
 *     void layer(const float *x, int64_t n)
 *     {
 *         SONDE_RANGE("layer");                    ends with the scope
 *         struct sonde_tensor in = SONDE_TENSOR(SONDE_FLOAT32, n, 64);
 *         sonde_range_shapes(&in, 1);
 *         sonde_flops(2.0 * (double)n * 64);
 *         ...
 *     }
 *     sonde_stop(NULL);
 *
 * A range costs two clock reads and two stores into a mapped file while a recording
 * is on, one load and a branch while none is. What was recorded before the process
 * died, for any reason, is in the file.
 *
 * Threads: every call may be made from any thread at any time, even while another starts or
 *          stops the recording. From a signal handler only marks may be made (not start, stop,
 *          step, pause, resume, metadata, trace_path): marks that interrupt the recorder
 *          itself are dropped and counted. No call is a cancellation point.
 * Errors:  marking never fails: events that cannot be written are counted and reported.
 * Forks:   a new process (fork(), _Fork(), the system call clone) writes its own file from its first
 *          mark on, unless it shares its parent's memory (vfork).
 */
#ifndef SONDE_RECORD_H
#define SONDE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/error.h"

#ifdef __cplusplus
/* In C a function may have the name of a struct; g++ takes it for one that hides a constructor. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#endif

/* ------------------------------------------------------------ start and stop */

#define SONDE_DEFAULT_CHUNK_BYTES ((size_t)1 << 20)

/* What happens when the trace reaches options.max_bytes. */
enum sonde_limit {
    SONDE_LIMIT_STOP = 0,      /* later events are dropped, and counted */
    SONDE_LIMIT_KEEP_LAST = 1, /* the oldest chunks are recycled: a flight recorder */
};

/*
 * torch.profiler's schedule: after skip_first steps, cycles of `wait` steps unrecorded,
 * `warmup` steps recorded but not shown, `active` steps recorded; `repeat` cycles, 0 for
 * no end. skip_first_wait: the first cycle has no wait. active 0: no schedule at all.
 */
struct sonde_schedule {
    uint32_t wait, warmup, active, repeat, skip_first, skip_first_wait;
};

enum sonde_action {
    SONDE_ACTION_NONE = 0,
    SONDE_ACTION_WARMUP = 1,
    SONDE_ACTION_RECORD = 2,
    SONDE_ACTION_RECORD_AND_SAVE = 3, /* the last active step of a cycle */
};

/* What `schedule` does at `step` (from 0); RECORD when it has no active steps. */
SONDE_API enum sonde_action sonde_schedule_action(const struct sonde_schedule *schedule,
                                                  uint64_t                     step);

/* A finished recording, or a finished cycle of a schedule. */
struct sonde_cycle {
    const char *path;  /* of the trace file; borrowed for the call */
    uint32_t    index; /* from 0 */
    uint64_t    step;  /* number of the step that has just ended */
};

struct sonde_options {
    size_t      struct_size; /* sizeof(struct sonde_options): set by SONDE_OPTIONS_INIT */
    const char *path; /* a file; a folder, if it is one or ends in '/'; NULL: sonde-PID.sonde */
    uint64_t    max_bytes; /* of the file; 0: until the disk is full */
    enum sonde_limit      limit;
    size_t                chunk_bytes; /* 0: SONDE_DEFAULT_CHUNK_BYTES. Multiples of 64 KiB */
    struct sonde_schedule schedule;
    /* Called by the thread that is in step or stop. */
    void (*on_cycle)(const struct sonde_cycle *cycle, void *user);
    void    *user;
    uint32_t rank, world_size; /* UINT32_MAX: from $RANK and $WORLD_SIZE, if set */
    bool     overwrite;        /* replace an existing trace instead of failing; never other files */
    uint32_t subject_pid;      /* the process that the recording is about; 0: this one */
};

#define SONDE_OPTIONS_INIT                                                                      \
    {                                                                                           \
        sizeof(struct sonde_options), NULL, 0, SONDE_LIMIT_STOP, 0, { 0, 0, 0, 0, 0, 0 }, NULL, \
            NULL, UINT32_MAX, UINT32_MAX, true, 0                                               \
    }

/*
 * Begins a recording of the whole process; `options` may be NULL. A process has one at a
 * time. Under `sonde run` the recording is the runner's: start and stop then do nothing.
 * Errors: SONDE_E_BUSY, SONDE_E_ARGUMENT, SONDE_E_IO, SONDE_E_NOMEM; the program can continue,
 *         unrecorded.
 */
SONDE_API enum sonde_status sonde_start(const struct sonde_options *options,
                                        struct sonde_error         *err);

/*
 * Ends the recording and closes the file; threads may be in the middle of a range.
 * Errors: SONDE_E_STATE when not recording; SONDE_E_IO.
 */
SONDE_API enum sonde_status sonde_stop(struct sonde_error *err);

/* A new step begins (an iteration of training, a request): marks it, and moves the schedule. */
SONDE_API void sonde_step(void);

/*
 * The same, for a program that numbers its steps itself: `number` is the step that begins. Ignored
 * with a schedule, which counts steps itself.
 */
SONDE_API void sonde_step_number(uint64_t number);

/* Whether `sonde run` started the recording; true even between two cycles of its schedule. */
SONDE_API bool sonde_under_run(void);

/* Stops and resumes marking without closing the file. Ranges open at a pause end there. */
SONDE_API void sonde_pause(void);
SONDE_API void sonde_resume(void);

/* The file being written, or written last; `size` bytes at most. Returns its full length. */
SONDE_API size_t sonde_trace_path(char *buffer, size_t size);

/*
 * Records a key/value pair (text) about the run, in this file and in those of later cycles and of
 * children; the same key replaces it. Values are truncated to 4,096 bytes.
 */
SONDE_API void sonde_metadata(const char *key, const char *value);

/* Names the calling thread in the trace. */
SONDE_API void sonde_thread_name(const char *name);

/* ----------------------------------------------------------------- tensors */

/* torch's ScalarType numbers. */
enum sonde_dtype {
    SONDE_UINT8 = 0,
    SONDE_INT8 = 1,
    SONDE_INT16 = 2,
    SONDE_INT32 = 3,
    SONDE_INT64 = 4,
    SONDE_FLOAT16 = 5,
    SONDE_FLOAT32 = 6,
    SONDE_FLOAT64 = 7,
    SONDE_COMPLEX32 = 8,
    SONDE_COMPLEX64 = 9,
    SONDE_COMPLEX128 = 10,
    SONDE_BOOL = 11,
    SONDE_QINT8 = 12,
    SONDE_QUINT8 = 13,
    SONDE_QINT32 = 14,
    SONDE_BFLOAT16 = 15,
    SONDE_DTYPE_UNKNOWN = 255,
};

enum sonde_tensor_kind {
    SONDE_ARG_NONE = 0,   /* not a tensor: shown as [] */
    SONDE_ARG_TENSOR = 1, /* ndim dims */
    SONDE_ARG_LIST = 2,   /* a list: the next `ndim` entries are its elements */
    SONDE_ARG_SCALAR = 3, /* a number */
};

struct sonde_tensor {
    enum sonde_tensor_kind kind;
    enum sonde_dtype       dtype;
    uint32_t               ndim;
    const int64_t         *dims; /* borrowed for the call */
};

#ifndef __cplusplus
/* SONDE_TENSOR(SONDE_FLOAT32, 8, 3, 224, 224) */
/* clang-format off */ /* it takes the literal's braces for a block's */
#define SONDE_TENSOR(dtype, ...)                                              \
    {                                                                         \
        SONDE_ARG_TENSOR, (dtype),                                            \
            (uint32_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), \
            (int64_t[]){ __VA_ARGS__ }                                        \
    }
/* clang-format on */
#endif

/* ------------------------------------------------------------------ ranges */

/*
 * SONDE_RANGE("name")           from here to the end of the scope
 * sonde_begin("name")           until the matching sonde_end() of the same thread
 *
 * A literal name is looked up once; any other string each time (some 20 ns more).
 *
 * A scope that is left by longjmp, or by a C++ exception through C code, never reaches its end.
 * The next enclosing SONDE_RANGE of the thread that does reach its own ends it too, there, and the
 * report counts it among the ranges without an end. So put a SONDE_RANGE around the setjmp or the
 * catch. Two coroutines of one thread whose scopes overlap end each other early in the same way.
 * A coroutine must not end a scope on another thread than it began: use sonde_end_key().
 */
#define SONDE_RANGE(name) SONDE_RANGE_AT_(name, __COUNTER__)
#define SONDE_RANGE_AT_(name, n) SONDE_RANGE_NAMED_(name, SONDE_PASTE_(sonde_scope_, n))
#define SONDE_PASTE_(a, b) SONDE_PASTE2_(a, b)
#define SONDE_PASTE2_(a, b) a##b
#define SONDE_RANGE_NAMED_(name, variable)                                                      \
    __attribute__((cleanup(sonde_scope_end_), unused)) struct sonde_scope_ variable = { 0, 0 }; \
    SONDE_BEGIN_(name, &variable)

#define sonde_begin(name) SONDE_BEGIN_(name, NULL)
#define SONDE_BEGIN_(name, scope)                               \
    __extension__({                                             \
        if (SONDE_IS_LITERAL_(name)) {                          \
            static struct sonde_site sonde_site_ = { NULL, 0 }; \
            sonde_begin_named_(&sonde_site_, (name), (scope));  \
        } else {                                                \
            sonde_begin_text(name);                             \
            sonde_scope_note_(scope);                           \
        }                                                       \
    })

/*
 * An array whose value the compiler knows is a literal. A pointer is never taken for one,
 * even if it folds to a literal: in an inline function that the compiler copies to several
 * callers, the copies share one static site but not one name.
 */
#ifdef __cplusplus
extern "C++" {
template <typename T> struct sonde_is_array_ {
    enum { value = 0 };
};
template <size_t n> struct sonde_is_array_<const char[n]> {
    enum { value = 1 };
};
}
#define SONDE_IS_LITERAL_(name) \
    (sonde_is_array_<__typeof__(name)>::value && __builtin_constant_p(name))
#else
#define SONDE_IS_LITERAL_(name)                                            \
    (__builtin_types_compatible_p(__typeof__(name), char[sizeof(name)]) && \
     __builtin_constant_p(name))
#endif

/* A call site: a name and its cached id. In static storage; `name` must stay valid. */
struct sonde_site {
    const char *name;
    uint64_t    bound; /* epoch << 32 | id */
};

static inline void sonde_begin_site(struct sonde_site *site);
static inline void sonde_end(void);
SONDE_API void     sonde_begin_text(const char *name);

/* These describe the innermost open range of the calling thread. */
SONDE_API void sonde_range_shapes(const struct sonde_tensor *tensors, size_t count);
SONDE_API void sonde_flops(double count);

/* ---------------------------------------------- memory, counters, marks, links */

/* Device types as torch numbers them; an index of -1 is the default device. */
enum sonde_device_type { SONDE_DEVICE_CPU = 0, SONDE_DEVICE_CUDA = 1 };

struct sonde_device {
    uint16_t type;
    int16_t  index;
};
static inline struct sonde_device sonde_device(unsigned type, int index)
{
    struct sonde_device device = { (uint16_t)type, (int16_t)index };
    return device;
}
#define SONDE_CPU sonde_device(SONDE_DEVICE_CPU, -1)

/* An allocation, a free. A free is matched by its address; its `size` may be 0: unknown. */
SONDE_API void sonde_alloc(struct sonde_device device, const void *address, uint64_t size);
SONDE_API void sonde_free(struct sonde_device device, const void *address, uint64_t size);

SONDE_API void sonde_counter(const char *name, double value);
SONDE_API void sonde_mark(const char *name);

/* An arrow between two ranges (or moments) of any threads: both ends have the same `id`. */
SONDE_API void sonde_link_from(uint64_t id);
SONDE_API void sonde_link_to(uint64_t id);

/* ------------------------------------------------------------- for probes
 *
 * A probe turns another program's events into these, and names things by id.
 * Ids belong to one recording: sonde_epoch() identifies it, 0 when nothing records.
 */

static inline uint32_t sonde_epoch(void);
SONDE_API uint32_t     sonde_intern(const char *text, size_t length);
SONDE_API uint32_t     sonde_intern_shapes(const struct sonde_tensor *tensors, size_t count);
SONDE_API uint32_t     sonde_intern_frame(uint32_t function, uint32_t file, uint32_t line);
/* The same with the first line of the function, which torch shows. */
SONDE_API uint32_t sonde_intern_frame_in(uint32_t function, uint32_t first_line, uint32_t file,
                                         uint32_t line);
/* A frame of native code: `file` is the library, and there is no line. */
SONDE_API uint32_t sonde_intern_native(uint32_t function, uint32_t file);
/*
 * A frame of native code that is only known by its address in a file, as the file's symbol table
 * counts addresses. `build_id` is the file's, as a text in hexadecimal; 0 none.
 */
SONDE_API uint32_t sonde_intern_address(uint32_t file, uint32_t build_id, uint64_t address);
SONDE_API uint32_t sonde_intern_stack(uint32_t parent, uint32_t frame);

/*
 * The functions at the address of a frame: innermost first, inlined ones before the one that they
 * are inlined into; 256 at most. Told once, before the recording ends. Strings; the file is that of
 * the source, 0 none. Lines are 0 where they are not known.
 */
struct sonde_symbol {
    uint32_t function, file, line;
    uint32_t first_line; /* where the function begins */
};
SONDE_API void sonde_symbol(uint32_t frame, const struct sonde_symbol *symbols, size_t count);

/*
 * Counters that live in the trace: `count` words (8 at most), zero at first, found again by kind,
 * key and other (ids of frames). The caller adds to them in place, one thread at a time; what
 * they hold when the process dies is in the file. NULL when nothing records or there is no room;
 * but CALLS that find no room, or have no key, are counted together, as lost.
 * They are valid while sonde_epoch() stays what it was before the call.
 */
/* format/tallies.def */
enum sonde_tally_kind {
    SONDE_TALLY_CALLS = 1,
    SONDE_TALLY_LINE = 2,
    SONDE_TALLY_LINE_MEMORY = 3,
    SONDE_TALLY_SAMPLER = 4,
    SONDE_TALLY_ARGUMENTS = 5,
    SONDE_TALLY_GPU = 6,  /* key, other 0 */
    SONDE_TALLY_HEAP = 7, /* key: a stack; other: 0 malloc's, 1 mapped */
    SONDE_TALLY_HEAP_PROCESS = 8,
    SONDE_TALLY_HEAP_SAMPLED = 9,
    SONDE_TALLY_NATIVE = 12,            /* key, other 0 */
    SONDE_TALLY_NATIVE_WAITS = 13,      /* key, other 0 */
    SONDE_TALLY_FUNCTION_COUNTERS = 14, /* key: a frame; other: a counter's number */
    SONDE_TALLY_COUNTERS_READ = 15,     /* the recorder's own */
    SONDE_TALLY_SAMPLER_GAPS = 16,      /* key, other 0 */
};
/* A kind as counted by one session, 1..65535; readers show those of 0. */
#define SONDE_TALLY_OF(kind, session) \
    ((enum sonde_tally_kind)((uint32_t)(kind) | (uint32_t)(session) << 16))
SONDE_API uint64_t *sonde_tally(enum sonde_tally_kind kind, uint32_t key, uint32_t other,
                                unsigned count);

/*
 * Counters of the calling thread, for who counts functions: how many `sonde run --per-function` asks
 * for (0: none), and what they are at now, in the order of the trace's "counters.functions". Returns
 * how many were read; 0 before the thread's first event or tally. They never fall.
 */
#define SONDE_COUNTERS_MOST 8
SONDE_API uint32_t sonde_function_counters(void);
SONDE_API uint32_t sonde_thread_counters(uint64_t values[SONDE_COUNTERS_MOST]);

/*
 * Something that is said of the run, with typed members: a model, a layer, a batch size. Kinds and
 * fields are format/facts.def's. Further calls with the same kind, subject and number go on with
 * it. It belongs to the file that is being written, not to later ones.
 */
enum sonde_fact_type {
    SONDE_FACT_NUMBER = 1, /* value: signed */
    SONDE_FACT_REAL = 2,   /* value: the bits of a double */
    SONDE_FACT_TEXT = 3,   /* id: of sonde_intern() */
    SONDE_FACT_TENSOR = 4, /* id: of sonde_intern_shapes(), of one tensor; value: bytes */
};
struct sonde_fact_member {
    uint16_t field;
    uint16_t type; /* enum sonde_fact_type */
    uint32_t id;
    uint64_t value;
};
/* `subject`: of sonde_intern(), 0 none; `number`: from 1, 0 none, or as the kind counts. */
SONDE_API void sonde_fact(uint32_t kind, uint32_t subject, uint32_t number,
                          const struct sonde_fact_member *members, size_t count);

/*
 * For probes whose events come late, such as a GPU's: has `call` called before marking ends, by the
 * thread that is in stop, step (the end of a cycle), pause (`closes` is false) or exit. It may mark, and
 * must not call those. Once for each `call`; false: there are too many.
 */
SONDE_API bool sonde_before_end(void (*call)(bool closes));

/*
 * For a library that is loaded with the program, in its constructor: a recording that lasts until the
 * process exits ends after the destructors of all libraries, and `call` is called right before that.
 * False: it ends as it always does, in a destructor.
 */
SONDE_API bool sonde_end_late(void (*call)(void));

/* A range by ids; `shapes` 0 for none. */
static inline void sonde_begin_id(uint32_t name, uint32_t shapes);

/*
 * The constant part of an operator's calls, recorded once. A range then refers to it by id, in
 * 16 bytes. Zero what does not apply; `fwd_thread` is SONDE_ATTR_FWD_THREAD's.
 */
struct sonde_op_call {
    uint32_t name, shapes, strides, arguments; /* ids of interned things */
    uint32_t overload, stack, module;
    uint32_t scope;
    uint32_t has_sequence; /* each has an autograd number: given when it begins */
    uint32_t is_async;     /* it waits for work done elsewhere: SONDE_ATTR_ASYNC */
    uint32_t keywords;     /* id of a text: a JSON object */
    uint32_t reserved;
    uint64_t fwd_thread;
};
SONDE_API uint32_t sonde_intern_call(const struct sonde_op_call *call);

/* `sequence` is ignored unless the call has one. */
SONDE_API void sonde_begin_call(uint32_t call, uint64_t sequence);

/* Attributes of the innermost open range: keys of format/attrs.def. */
enum sonde_attr {
    SONDE_ATTR_FLOPS = 1,
    SONDE_ATTR_SHAPES = 2,
    SONDE_ATTR_STACK = 3,
    SONDE_ATTR_SEQUENCE = 4,
    SONDE_ATTR_FWD_THREAD = 5,
    SONDE_ATTR_SCOPE = 6,
    SONDE_ATTR_OVERLOAD = 7,
    SONDE_ATTR_ARGUMENTS = 8,
    SONDE_ATTR_STRIDES = 9,
    SONDE_ATTR_MODULE = 10,
    SONDE_ATTR_MACS = 11,
    SONDE_ATTR_BYTES = 12,
    SONDE_ATTR_KEY = 13,
    SONDE_ATTR_FRAME = 14, /* a Python function's range: frame id, bit 32: resumed, not called */
    SONDE_ATTR_CALLS_SEQUENCE = 15,
    SONDE_ATTR_ASYNC = 16, /* 1: it waits for work done elsewhere: neither children nor self time */
    SONDE_ATTR_RECORD_FUNCTION = 17,
    SONDE_ATTR_KEYWORDS = 18,
    SONDE_ATTR_API = 19, /* SONDE_API_CALL() */
    SONDE_ATTR_COLLECTIVE = 20,
    SONDE_ATTR_COUNTED = 21,
};
SONDE_API void sonde_attr(enum sonde_attr key, uint64_t value);

/*
 * Ends out of order. sonde_end_at: of the range inside which `inner` others of the thread are
 * open, and stay so. sonde_end_key: of the range that was given this SONDE_ATTR_KEY (48 bits),
 * by any thread.
 */
SONDE_API void sonde_end_at(uint32_t inner);
SONDE_API void sonde_end_key(uint64_t key);

/* One end of an arrow of a kind: 1 the user's, 2 forward to backward, 3 launch to device work. */
SONDE_API void sonde_link(uint32_t kind, bool arrives, uint64_t id);

/*
 * Samplers. sonde_thread_of: the id of a thread of this process (or, by an observer of another
 * process, of that one), by which samples name it; `name` is its new name, NULL: as it was.
 * 0 when nothing records or there is no room.
 */
SONDE_API uint32_t sonde_thread_of(uint32_t tid, const char *name);

/* The same, of a thread of any process; and that it has ended, at sonde_clock() or 0: now. */
struct sonde_thread_place {
    uint32_t pid, tid;   /* pid 0: the process that the recording is about */
    uint32_t parent_pid; /* of the process, 0 unknown */
    uint32_t reserved;
    uint64_t start; /* sonde_clock() when it began, 0: now */
};
SONDE_API uint32_t sonde_thread_of_process(const struct sonde_thread_place *place,
                                           const char                      *name);
SONDE_API void     sonde_thread_ended(uint32_t thread, uint64_t at);

/* What a sampled thread was doing; none of the first three: idle. As in sonde/trace.h. */
enum sonde_sampled_state {
    SONDE_SAMPLED_GIL = 1,      /* it held the interpreter's lock */
    SONDE_SAMPLED_ON_CPU = 2,   /* it ran */
    SONDE_SAMPLED_GIL_WAIT = 4, /* it waited for the interpreter's lock */
    SONDE_SAMPLED_NATIVE = 8,   /* the stack has native frames */
};
/* Consecutive samples of a thread with the same stack and state, up to now. */
struct sonde_sample {
    uint32_t stack;      /* of sonde_intern_stack(); 0 none */
    uint32_t thread;     /* of sonde_thread_of(); 0: the caller */
    uint32_t state;      /* enum sonde_sampled_state */
    uint32_t samples;    /* how many */
    uint64_t covered_ns; /* how long */
    uint64_t at;         /* sonde_clock() when that ended; 0: now. Never before the last sample's */
};
SONDE_API void sonde_sample(const struct sonde_sample *sample);

/*
 * A call of a Python function, recorded when it returns. It is shown on the timeline, but is not
 * a range: ranges that begin in it may outlive it.
 */
struct sonde_function_call {
    uint32_t frame;      /* of sonde_intern_frame_in() */
    uint32_t thread;     /* of sonde_thread_of(); 0: the caller */
    uint64_t start, end; /* sonde_clock() */
    uint32_t id, parent; /* of this call and of the calling one; unique in the process, from 1 */
    bool     resumed;    /* a generator or coroutine was resumed, not called */
};
SONDE_API void sonde_function_called(const struct sonde_function_call *call);

/*
 * Work of a device (GPU), told after it was done. A queue is where it ran, a CUDA stream; the work is
 * all that is the same each time. What does not apply is 0. `correlation` is that of the range of the
 * call which asked for it: sonde_begin_api().
 */
enum sonde_work_kind {
    SONDE_WORK_KERNEL = 1,
    SONDE_WORK_COPY = 2,
    SONDE_WORK_FILL = 3,
    SONDE_WORK_SYNCHRONIZE = 4,
    SONDE_WORK_OVERHEAD = 5,
};
struct sonde_queue {
    uint32_t device; /* type << 16 | index */
    uint32_t context, stream, flags;
};
struct sonde_work {
    uint32_t name, kind; /* of sonde_intern(); enum sonde_work_kind */
    uint32_t grid[3], block[3];
    uint32_t registers;                           /* of a thread */
    uint32_t shared_static, shared_dynamic;       /* bytes of a block */
    uint32_t copy_kind, source_kind, target_kind; /* CUPTI's numbers; of a fill: target_kind */
    uint64_t bytes;                               /* copied or filled */
};
struct sonde_device_run {
    uint64_t start, duration; /* of sonde_clock() */
    uint64_t node;            /* of a CUDA graph; 0 none */
    uint32_t work, queue;     /* ids; queue 0: none */
    uint32_t correlation;     /* 0 none */
};
SONDE_API uint32_t sonde_intern_queue(const struct sonde_queue *queue);
SONDE_API uint32_t sonde_intern_work(const struct sonde_work *work);
SONDE_API void     sonde_device_ran(const struct sonde_device_run *run);
#define SONDE_API_CALL(correlation, function, is_driver)                        \
    ((uint64_t)(uint32_t)(correlation) | (uint64_t)((function)&0x7fffu) << 32 | \
     (uint64_t) !!(is_driver) << 47)
/*
 * Begins the range of a call of the device's API; sonde_end() ends it. `name` is of sonde_intern(), `call`
 * is SONDE_API_CALL(). Returns when it began, of sonde_clock(); 0: it is not recorded.
 */
static inline uint64_t sonde_begin_api(uint32_t name, uint64_t call);

/* The clock that stamps events, as recorded. */
static inline uint64_t sonde_clock(void);

/* --------------------------------------------- the fast path: not for direct use */

#define SONDE_LIKELY_(x) __builtin_expect(!!(x), 1)
#define SONDE_UNLIKELY_(x) __builtin_expect(!!(x), 0)

/*
 * A thread's place in the trace: the free part of its chunk. `busy` is set while an event
 * is written, so that a signal handler that records cannot tear it. An event counts once
 * its first word is stored (release); until then that word is zero.
 */
struct sonde_lane {
    uint64_t *cur, *end;
    uint64_t *leaf;  /* the range begun last, which can close in place until more is written */
    uint32_t  epoch; /* of the recording that gave the chunk */
    uint32_t  busy;
    uint32_t  chunks; /* counts its chunks: records needed once per chunk are then repeated */
    uint32_t  depth;  /* ranges open; only differences mean something (SONDE_DEPTH_BREAK_) */
};

/*
 * What a scope knows of its range: the epoch and the lane's depth just after it began. At its end
 * the depth is the same again, unless ranges inside it were left by a jump.
 */
struct sonde_scope_ {
    uint32_t epoch, depth;
};

/*
 * Added to the depth when ranges begin to end out of order (sonde_end_at, keys): what is open above
 * a scope that began before is then not known, and its end is an ordinary one.
 */
#define SONDE_DEPTH_BREAK_ (1u << 20)

#define SONDE_THREAD_LOCAL_ __thread __attribute__((tls_model("initial-exec")))
SONDE_API extern SONDE_THREAD_LOCAL_ struct sonde_lane sonde_lane_;

/*
 * The epoch, and one more: 1 while nothing records. It is alone on its page, which the kernel
 * wipes in a new process: 0 there sends the first mark to the slow path, however the process was
 * created.
 */
#if defined(__x86_64__)
#define SONDE_PAGE_ 4096
#else
#define SONDE_PAGE_ 65536
#endif
struct sonde_epoch_page_ {
    uint32_t value, noticing;
    char     alone[SONDE_PAGE_ - 8];
} __attribute__((aligned(SONDE_PAGE_)));
SONDE_API extern struct sonde_epoch_page_ sonde_epoch_;
SONDE_API extern uint32_t sonde_clock_trust_; /* 1: the processor's counter is the clock */

SONDE_API uint64_t sonde_clock_fallback_(void);
SONDE_API void     sonde_begin_slow_(struct sonde_site *site, const char *name);
SONDE_API void     sonde_begin_id_slow_(uint32_t name, uint32_t shapes);
SONDE_API uint64_t sonde_begin_api_slow_(uint32_t name, uint64_t call);
SONDE_API void     sonde_end_slow_(uint64_t now); /* 0: at the time when it has the lane */
SONDE_API void     sonde_scope_end_slow_(struct sonde_scope_ scope);

/*
 * An id of this bit is described in each chunk that uses it (docs/FORMAT.md, RECORD): the slow way.
 * No chunk has room for so many words more.
 */
#define SONDE_LATE_ID_ 0x40000000u

#define SONDE_KIND_BEGIN_ 0x21u
#define SONDE_KIND_SPAN_ 0x27u
#define SONDE_KIND_FUNCTION_ 0x63u
#define SONDE_KIND_CALL_ 0x2au
#define SONDE_KIND_API_ 0x44u
#define SONDE_KIND_END_ 0x01u
#define SONDE_KIND_ATTR_ 0x02u

static inline uint32_t sonde_epoch(void)
{
    return __atomic_load_n(&sonde_epoch_.value, __ATOMIC_RELAXED) - 1;
}

static inline uint64_t sonde_clock(void)
{
#if defined(__x86_64__)
    if (SONDE_LIKELY_(sonde_clock_trust_))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (SONDE_LIKELY_(sonde_clock_trust_)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return sonde_clock_fallback_();
}

/*
 * Takes the lane for one event of `words` words; false: take the slow path. It is taken before
 * it is inspected, or a signal handler could use up the room in between; and before the clock is
 * read, or the handler's events would be older than the one written after them.
 */
static inline bool sonde_lane_take_(struct sonde_lane *lane, uint32_t epoch, size_t words)
{
    if (SONDE_UNLIKELY_(lane->busy))
        return false;
    lane->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SONDE_LIKELY_(lane->epoch == epoch && (size_t)(lane->end - lane->cur) >= words))
        return true;
    lane->busy = 0;
    return false;
}

static inline void sonde_lane_leave_(struct sonde_lane *lane)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->busy = 0;
}

/* A range with a tensor list (payload's upper half) is a BEGIN, a bare one a SPAN. */
static inline void sonde_begin_at_(struct sonde_lane *lane, uint64_t payload)
{
    uint64_t *at = lane->cur;
    bool      bare = payload >> 32 == 0;

    lane->cur = at + 2;
    lane->depth++;
    lane->leaf = bare ? at : NULL;
    at[1] = payload;
    __atomic_store_n(at, sonde_clock() << 8 | (bare ? SONDE_KIND_SPAN_ : SONDE_KIND_BEGIN_),
                     __ATOMIC_RELEASE);
}

static inline void sonde_function_at_(struct sonde_lane                *lane,
                                      const struct sonde_function_call *call)
{
    uint64_t *at = lane->cur, ticks = (call->end - call->start) & (UINT64_MAX >> 8);

    lane->cur = at + 4;
    lane->leaf = NULL;
    at[1] = (uint64_t)call->thread << 32 | call->frame;
    at[2] = ticks | (uint64_t)call->resumed << 56;
    at[3] = (uint64_t)call->parent << 32 | call->id;
    __atomic_store_n(at, call->end << 8 | SONDE_KIND_FUNCTION_, __ATOMIC_RELEASE);
}

static inline void sonde_begin_call_at_(struct sonde_lane *lane, uint32_t call)
{
    uint64_t *at = lane->cur;

    lane->cur = at + 2;
    lane->depth++;
    lane->leaf = at;
    at[1] = call;
    __atomic_store_n(at, sonde_clock() << 8 | SONDE_KIND_CALL_, __ATOMIC_RELEASE);
}

static inline uint64_t sonde_begin_api_at_(struct sonde_lane *lane, uint32_t name, uint64_t call)
{
    uint64_t *at = lane->cur, now = sonde_clock();

    lane->cur = at + 3;
    lane->depth++;
    lane->leaf = at;
    at[1] = name;
    at[2] = call;
    __atomic_store_n(at, now << 8 | SONDE_KIND_API_, __ATOMIC_RELEASE);
    return now;
}

/* Half a word of the file, which is little-endian. */
typedef uint32_t __attribute__((may_alias)) sonde_half_;

/*
 * A range without tensor list in which nothing was recorded ends in place: its duration goes into
 * the upper half of its second word, so that a leaf takes 16 bytes and no further event.
 */
static inline bool sonde_end_leaf_(struct sonde_lane *lane, uint64_t now)
{
    uint64_t *leaf = lane->leaf;

    if (!leaf)
        return false;
    lane->leaf = NULL;
    uint64_t ticks = ((now << 8) - leaf[0]) >> 8; /* one less, for the kind that is borrowed from */
    if (SONDE_UNLIKELY_(ticks >= UINT32_MAX))
        return false;
    __atomic_store_n((sonde_half_ *)&leaf[1] + 1, (uint32_t)ticks + 1, __ATOMIC_RELEASE);
    return true;
}

static inline void sonde_end_at_(struct sonde_lane *lane, uint64_t now)
{
    lane->depth--;
    if (SONDE_LIKELY_(sonde_end_leaf_(lane, now)))
        return;
    uint64_t *at = lane->cur;
    lane->cur = at + 1;
    __atomic_store_n(at, now << 8 | SONDE_KIND_END_, __ATOMIC_RELEASE);
}

/* Fills in the scope, if any, of a range that began in the slow path. */
static inline void sonde_scope_note_(struct sonde_scope_ *scope)
{
    if (scope && sonde_epoch() != 0) {
        scope->epoch = sonde_lane_.epoch;
        scope->depth = sonde_lane_.depth;
    }
}

static inline void sonde_begin_named_(struct sonde_site *site, const char *name,
                                      struct sonde_scope_ *scope)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    uint64_t           bound = __atomic_load_n(&site->bound, __ATOMIC_RELAXED);
    if (SONDE_LIKELY_((uint32_t)(bound >> 32) == epoch && sonde_lane_take_(lane, epoch, 2))) {
        sonde_begin_at_(lane, (uint32_t)bound);
        if (scope) {
            scope->epoch = epoch;
            scope->depth = lane->depth;
        }
        sonde_lane_leave_(lane);
    } else {
        sonde_begin_slow_(site, name);
        sonde_scope_note_(scope);
    }
}

static inline void sonde_begin_site(struct sonde_site *site)
{
    sonde_begin_named_(site, site->name, NULL);
}

static inline void sonde_begin_id(uint32_t name, uint32_t shapes)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(sonde_lane_take_(lane, epoch, 2 | ((name | shapes) & SONDE_LATE_ID_)))) {
        sonde_begin_at_(lane, (uint64_t)shapes << 32 | name);
        sonde_lane_leave_(lane);
    } else {
        sonde_begin_id_slow_(name, shapes);
    }
}

static inline uint64_t sonde_begin_api(uint32_t name, uint64_t call)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return 0;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_UNLIKELY_(!sonde_lane_take_(lane, epoch, 3 | (name & SONDE_LATE_ID_))))
        return sonde_begin_api_slow_(name, call);
    uint64_t began = sonde_begin_api_at_(lane, name, call);
    sonde_lane_leave_(lane);
    return began;
}

static inline void sonde_end(void)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(sonde_lane_take_(lane, epoch, 1))) {
        sonde_end_at_(lane, sonde_clock());
        sonde_lane_leave_(lane);
    } else {
        sonde_end_slow_(0);
    }
}

static inline void sonde_scope_end_(struct sonde_scope_ *scope)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(scope->epoch == epoch && scope->depth == lane->depth &&
                      sonde_lane_take_(lane, epoch, 1))) {
        sonde_end_at_(lane, sonde_clock());
        sonde_lane_leave_(lane);
    } else {
        sonde_scope_end_slow_(*scope);
    }
}

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif
#endif
