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
 * Parts:   this file is for programs that mark; it includes probe.h, for probes, and lane.h, the fast
 *          path that is compiled into the caller.
 * Other languages: the library exports sonde_begin, sonde_end and all else that is inline here as plain
 *          functions too, for programs that do not compile C (examples/rust, go, fortran).
 * Forks:   a new process (fork(), _Fork(), the system call clone) writes its own file from its first
 *          mark on, unless it shares its parent's memory (vfork).
 */
#ifndef SONDE_RECORD_H
#define SONDE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/dtypes.h"
#include "sonde/error.h"

SONDE_C_BEGIN_

/* ------------------------------------------------------------ start and stop */

#define SONDE_DEFAULT_CHUNK_BYTES (SONDE_CAST_(size_t, 1) << 20)

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
    void       *user;
    uint32_t    rank, world_size; /* UINT32_MAX: from $RANK and $WORLD_SIZE, if set */
    bool        overwrite;   /* replace an existing trace instead of failing; never other files */
    uint32_t    subject_pid; /* the process that the recording is about; 0: this one */
    const char *subject_program; /* what it runs, if not yet or no longer; NULL: /proc says */
};

#define SONDE_OPTIONS_INIT                                                                       \
    {                                                                                            \
        sizeof(struct sonde_options), SONDE_NULL_, 0, SONDE_LIMIT_STOP, 0, { 0, 0, 0, 0, 0, 0 }, \
            SONDE_NULL_, SONDE_NULL_, UINT32_MAX, UINT32_MAX, true, 0, SONDE_NULL_               \
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

#define sonde_begin(name) SONDE_BEGIN_(name, SONDE_NULL_)
#define SONDE_BEGIN_(name, scope)                                      \
    __extension__({                                                    \
        if (SONDE_IS_LITERAL_(name)) {                                 \
            static struct sonde_site sonde_site_ = { SONDE_NULL_, 0 }; \
            sonde_begin_named_(&sonde_site_, (name), (scope));         \
        } else {                                                       \
            sonde_begin_text(name);                                    \
            sonde_scope_note_(scope);                                  \
        }                                                              \
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
/* The macro as a function, which looks its name up each time. */
SONDE_API void(sonde_begin)(const char *name);

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
    struct sonde_device device = { SONDE_CAST_(uint16_t, type), SONDE_CAST_(int16_t, index) };
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

#include "sonde/probe.h"

#include "sonde/lane.h"

SONDE_C_END_
#endif
