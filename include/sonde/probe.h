/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/probe.h - what probes use beyond sonde/record.h, which includes this.
 *
 * A probe turns events of a framework, an interpreter or a device into calls of the recorder, and
 * names things by id. Ids belong to one recording: sonde_epoch() identifies it, 0 when nothing records.
 *
 * Structs that a probe fills begin with struct_size, sizeof of the struct: they may grow at their end. One that
 * states 0, or more than the library knows, is not recorded; a line on stderr says so, once. Elements of arrays
 * (sonde_symbol, sonde_fact_member) have none: they keep their size.
 *
 * Threads, errors: as in record.h.
 */
#ifndef SONDE_PROBE_H
#define SONDE_PROBE_H

#ifndef SONDE_RECORD_H
#error "include <sonde/record.h>, of which this is a part"
#endif

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
    SONDE_TALLY_IMPORT = 20,            /* of imported files, not of recordings */
    SONDE_TALLY_SAMPLER_GAPS = 16,      /* key, other 0 */
    SONDE_TALLY_STACK_COUNTERS = 17,    /* key: a stack; other: a counter's number */
    SONDE_TALLY_NATIVE_RESTS = 18,      /* key, other 0 */
    SONDE_TALLY_HEAP_MOMENT = 21,       /* other: number of a moment * 2 + kind of memory */
    SONDE_TALLY_HEAP_HELD = 22,         /* key: a stack; other: the same */
    SONDE_TALLY_LAST_ = 0x7fffffff,     /* the values of SONDE_TALLY_OF() are the type's, too */
};
/* A kind as counted by one session, 1..65535; readers show those of 0. */
#define SONDE_TALLY_OF(kind, session)  \
    SONDE_CAST_(enum sonde_tally_kind, \
                SONDE_CAST_(uint32_t, kind) | SONDE_CAST_(uint32_t, session) << 16)
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

/* When what is marked now began to be, by start, resume or a step: in ticks of sonde_clock(). For the same probes. */
SONDE_API uint64_t sonde_marking_since(void);

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
    size_t   struct_size;
    uint32_t name, shapes, strides, arguments; /* ids of interned things */
    uint32_t overload, stack, module;
    uint32_t scope;
    uint32_t has_sequence; /* each has an autograd number: given when it begins */
    uint32_t is_async;     /* it waits for work done elsewhere: SONDE_ATTR_ASYNC */
    uint32_t keywords;     /* id of a text: a JSON object */
    uint32_t compiled;     /* id of a text: its module in compiled code (SONDE_ATTR_COMPILED) */
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
    SONDE_ATTR_MODULE_CALL = 22, /* of no range: a call of the module with this path begins */
    SONDE_ATTR_MODULE_RETURN = 23,
    SONDE_ATTR_AWAITED = 24,      /* of a range with FRAME that was resumed: raw ticks it awaited */
    SONDE_ATTR_PYTHON_DEPTH = 25, /* Python frames on the thread's stack when it began */
    SONDE_ATTR_COMPILED = 26, /* "REL|PATH": a module below the one that compiled code runs in */
    SONDE_ATTR_COLLECTIVE_SEQUENCE = 27,
};
SONDE_API void sonde_attr(enum sonde_attr key, uint64_t value);

/*
 * Which process of a job this is, where the environment did not say so or said something else: in this file and in those of
 * later cycles and of children. `source`: who knows it (a literal); `backend` of its communication, or NULL.
 */
SONDE_API void sonde_rank(uint32_t rank, uint32_t world_size, const char *source,
                          const char *backend);

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
 * An event of any kind of format/events.def that has no call of its own: its `count` words after the
 * first, which has the time. Ids among its fields are of sonde_intern(), sonde_intern_stack(), ..
 * False: there is no such kind, it has another number of words, or begins or ends ranges.
 */
SONDE_API bool sonde_put(uint8_t kind, const uint64_t *fields, size_t count);

/*
 * Samplers. sonde_thread_of: the id of a thread of this process (or, by an observer of another
 * process, of that one), by which samples name it; `name` is its new name, NULL: as it was.
 * 0 when nothing records or there is no room.
 */
SONDE_API uint32_t sonde_thread_of(uint32_t tid, const char *name);

/* The same, of a thread of any process; and that it has ended, at sonde_clock() or 0: now. */
struct sonde_process_thread {
    size_t   struct_size;
    uint32_t pid, tid;   /* pid 0: the process that the recording is about */
    uint32_t parent_pid; /* of the process, 0 unknown */
    uint64_t start;      /* sonde_clock() when it began, 0: now */
};
SONDE_API uint32_t sonde_thread_of_process(const struct sonde_process_thread *thread,
                                           const char                        *name);
SONDE_API void     sonde_thread_end(uint32_t thread, uint64_t at);

/* What a sampled thread was doing; none of the first three: idle. As in sonde/trace.h. */
enum sonde_sampled_state {
    SONDE_SAMPLED_GIL = 1,      /* it held the interpreter's lock */
    SONDE_SAMPLED_ON_CPU = 2,   /* it ran */
    SONDE_SAMPLED_GIL_WAIT = 4, /* it waited for the interpreter's lock */
    SONDE_SAMPLED_NATIVE = 8,   /* the stack has native frames */
};
/* Consecutive samples of a thread with the same stack and state, up to now. */
struct sonde_sample {
    size_t   struct_size;
    uint32_t stack;      /* of sonde_intern_stack(); 0 none */
    uint32_t thread;     /* of sonde_thread_of(); 0: the caller */
    uint32_t state;      /* enum sonde_sampled_state */
    uint32_t samples;    /* how many */
    uint64_t covered_ns; /* how long */
    uint64_t at;         /* sonde_clock() when that ended; 0: now. Never before the last sample's */
};
SONDE_API void sonde_sample(const struct sonde_sample *sample);
/*
 * Likewise, with the moment at which the stack was read: the ranges that were open then are the stack's
 * own. What the samples stand for is another matter: the time between `begin` and `end`. All of them are
 * of sonde_clock(). The thread must not have recorded an event between the first and the last of them.
 */
struct sonde_sample_run {
    size_t   struct_size;
    uint32_t stack, thread, state, samples; /* as above */
    uint64_t begin, end;
    uint64_t read;
};
SONDE_API void sonde_sample_run(const struct sonde_sample_run *run);

/*
 * A call of a Python function, recorded when it returns. It is shown on the timeline, but is not
 * a range: ranges that begin in it may outlive it.
 */
struct sonde_function_call {
    size_t   struct_size;
    uint32_t frame;      /* of sonde_intern_frame_in() */
    uint32_t thread;     /* of sonde_thread_of(); 0: the caller */
    uint64_t start, end; /* sonde_clock() */
    uint32_t id, parent; /* of this call and of the calling one; unique in the process, from 1 */
    bool     resumed;    /* a generator or coroutine was resumed, not called */
};
SONDE_API void sonde_function_call(const struct sonde_function_call *call);

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
    size_t   struct_size;
    uint32_t device; /* type << 16 | index */
    uint32_t context, stream, flags;
};
struct sonde_work {
    size_t   struct_size;
    uint32_t name, kind; /* of sonde_intern(); enum sonde_work_kind */
    uint32_t grid[3], block[3];
    uint32_t registers;                           /* of a thread */
    uint32_t shared_static, shared_dynamic;       /* bytes of a block */
    uint32_t copy_kind, source_kind, target_kind; /* CUPTI's numbers; of a fill: target_kind */
    uint64_t bytes;                               /* copied or filled */
};
struct sonde_device_run {
    size_t   struct_size;
    uint64_t start, duration; /* of sonde_clock() */
    uint64_t node;            /* of a CUDA graph; 0 none */
    uint32_t work, queue;     /* ids; queue 0: none */
    uint32_t correlation;     /* 0 none */
};
SONDE_API uint32_t sonde_intern_queue(const struct sonde_queue *queue);
SONDE_API uint32_t sonde_intern_work(const struct sonde_work *work);
SONDE_API void     sonde_device_run(const struct sonde_device_run *run);
#define SONDE_API_CALL(correlation, function, is_driver)         \
    (SONDE_CAST_(uint64_t, SONDE_CAST_(uint32_t, correlation)) | \
     SONDE_CAST_(uint64_t, (function)&0x7fffu) << 32 | SONDE_CAST_(uint64_t, !!(is_driver)) << 47)
/*
 * Begins the range of a call of the device's API; sonde_end() ends it. `name` is of sonde_intern(), `call`
 * is SONDE_API_CALL(). Returns when it began, of sonde_clock(); 0: it is not recorded.
 */
static inline uint64_t sonde_begin_api(uint32_t name, uint64_t call);

/* The clock that stamps events, as recorded; and whether that is the processor's counter. */
static inline uint64_t sonde_clock(void);
static inline bool     sonde_clock_is_counter(void);

#endif
