/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/layout.h - the bytes of a trace file, shared by recorder and reader.
 *
 *     +-------------+------------+------------+------------+ - -
 *     | file header | chunk      | chunk      | chunk      |
 *     | 4096, then  | 64-byte    | ...        |            |
 *     | zero to 64K | header,    |            |            |
 *     |             | events or  |            |            |
 *     |             | records    |            |            |
 *     +-------------+------------+------------+------------+ - -
 *
 * Everything is little-endian and 8-byte aligned. Structures here are mapped,
 * so their sizes are pinned. Prose, rules and reasons: docs/FORMAT.md.
 *
 * Layer: format (sees base/; no I/O, no state).
 */
#ifndef SND_FORMAT_LAYOUT_H
#define SND_FORMAT_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "traces are mapped as they are on disk: little-endian machines only"
#endif

#define SND_FILE_MAGIC "SONDE\r\n\x1a" /* 8 bytes; a text-mode copy breaks the CR LF */
#define SND_VERSION_MAJOR 1            /* a reader refuses a greater one */
#define SND_VERSION_MINOR 0            /* a reader accepts any */

#define SND_GRAIN ((size_t)65536) /* chunks of a recording begin at multiples of it */
#define SND_HEADER_SIZE ((size_t)4096)
#define SND_CHUNK_MAGIC 0x43444e53u /* "SNDC" */
#define SND_CHUNK_HEADER_SIZE ((size_t)64)
#define SND_CHUNK_SIZE_MAX ((uint64_t)1 << 28) /* nobody writes a larger one */
#define SND_STRING_MAX ((size_t)65535)         /* longer names are cut, and counted */
#define SND_UNKNOWN UINT32_MAX                 /* rank, world size: not told */

enum snd_clock_kind {
    SND_CLOCK_NONE = 0,
    SND_CLOCK_TSC = 1,       /* x86-64 time-stamp counter, invariant */
    SND_CLOCK_CNTVCT = 2,    /* aarch64 virtual counter */
    SND_CLOCK_MONOTONIC = 3, /* clock_gettime, nanoseconds */
    SND_CLOCK_SYNTHETIC = 4, /* a test's own: one tick is one nanosecond */
};

/* One moment on three clocks. */
struct snd_clock_pair {
    uint64_t raw;     /* the clock that stamps events */
    uint64_t mono_ns; /* CLOCK_MONOTONIC */
    uint64_t real_ns; /* CLOCK_REALTIME */
};

enum snd_file_flag {
    SND_FILE_CLOSED = 1,     /* the recording ended in order */
    SND_FILE_PACKED = 2,     /* made by `sonde pack`: chunks follow each other, 8-byte aligned */
    SND_FILE_KEEP_LAST = 4,  /* the oldest chunks were to be recycled at the limit */
    SND_FILE_LIMIT = 8,      /* the size limit was reached */
    SND_FILE_OWN_NAMES = 16, /* chunks have names of their own (NAME) */
    SND_FILE_LATE = 32,      /* lane chunks have records (RECORD) */
};

/*
 * The first 4096 bytes. `fixed` fields are written once, before the first event, and
 * covered by fixed_crc; `live` ones are single words that the recorder stores in place.
 */
struct snd_file_header {
    /* fixed */
    uint8_t  magic[8];
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_size; /* SND_HEADER_SIZE */
    uint32_t grain;       /* SND_GRAIN */
    uint32_t clock_kind;  /* enum snd_clock_kind */
    uint8_t  session[16]; /* random; the files of one trace share it */
    uint64_t boot_id;     /* hash of the machine's boot id: equal means one CLOCK_MONOTONIC */
    uint32_t pid;
    uint32_t parent_pid;         /* of a forked child, else 0 */
    uint32_t rank;               /* or SND_UNKNOWN */
    uint32_t world_size;         /* or SND_UNKNOWN */
    uint32_t cycle;              /* of the schedule, from 0 */
    uint32_t started_by;         /* pid of the process's parent; 0: not recorded */
    struct snd_clock_pair early; /* when the library was loaded: a long base line for the rate */
    struct snd_clock_pair start; /* when this file was begun */
    uint64_t              max_bytes; /* limit asked for, 0 none */
    uint64_t range_cost_raw_x256;    /* begin + end as measured at start, in 1/256 of a raw tick */
    char     host[64];               /* NUL-terminated */
    char     program[256];           /* NUL-terminated, UTF-8 as given */
    uint8_t  reserved1[560];
    uint32_t reserved2;
    uint32_t fixed_crc; /* CRC-32C of all bytes before it */
    /* live, at 1024 */
    uint32_t flags; /* enum snd_file_flag */
    uint32_t reserved3;
    uint64_t valid_from;      /* raw clock: what is older was warm-up; 0: all is valid */
    uint64_t stopped_at;      /* raw clock, 0 while open */
    uint64_t lost_events;     /* by threads that could not be given a lane at all */
    uint64_t lost_names;      /* names folded into "(names lost)" */
    uint64_t cut_names;       /* truncated: names, lists of tensors, metadata */
    uint64_t late_chunks;     /* a thread had to reserve its chunk itself */
    uint64_t recycled_chunks; /* keep-last mode */
    uint64_t recycled_events;
    uint64_t failed_reserves; /* no space, quota, file-size limit */
    uint32_t last_os_error;   /* errno of the latest failed reserve */
    uint32_t reserved4;
    uint64_t closed_bytes;  /* length of the file when it was closed; 0: not recorded */
    uint64_t closed_events; /* events in it then (snd_event_weight); 0: none, or not recorded */
    uint8_t  reserved5[152];
    /* at 1280 */
    uint64_t refused_events;    /* marks of signal handlers that interrupted the recorder itself */
    uint64_t lost_children;     /* forked processes that recorded and could not make their file */
    uint32_t lost_children_why; /* errno of the latest of them */
    uint32_t reserved7;
    uint64_t cut_files;     /* the file was truncated while it was being written */
    uint64_t lost_calls[8]; /* CALLS: what tallies that found no room add up to, as one */
    uint8_t  reserved6[2720];
};
static_assert(offsetof(struct snd_file_header, refused_events) == 1280, "where FORMAT.md says");
static_assert(offsetof(struct snd_file_header, fixed_crc) == 1020, "live fields begin at 1024");
static_assert(sizeof(struct snd_file_header) == SND_HEADER_SIZE, "the header is one page");

enum snd_chunk_kind {
    SND_CHUNK_LANE = 1,         /* events of one thread at a time */
    SND_CHUNK_TABLE = 2,        /* records: strings, tensor lists, stacks, threads, ... */
    SND_CHUNK_PACKED_LANE = 3,  /* the same, column-coded and compressed: codec.h */
    SND_CHUNK_PACKED_TABLE = 4, /* the same, compressed */
};

struct snd_chunk_header {
    uint32_t magic;
    uint16_t kind;        /* enum snd_chunk_kind; others are stepped over */
    uint16_t header_size; /* SND_CHUNK_HEADER_SIZE */
    uint64_t size;        /* of the whole chunk; how far the next one is */
    uint64_t seq;         /* order in which chunks came into use, from 1; 0: reserved, never used */
    uint64_t used;        /* bytes in use, header included; 0 while it is being written */
    uint32_t thread;      /* lane: the thread of the first event */
    uint32_t crc;         /* CRC-32C of [header_size, used) once `used` is set and crc_set */
    uint32_t crc_set;     /* 1 once crc holds */
    uint32_t reserved0;
    uint64_t lost; /* live: events dropped while this was the thread's chunk */
    uint64_t reserved1;
};
static_assert(sizeof(struct snd_chunk_header) == SND_CHUNK_HEADER_SIZE, "chunk header is 64 bytes");

/* ------------------------------------------------------------------ events */

#define SND_KIND(code, words) ((uint8_t)((((words)-1u) << 5) | (code)))
#define SND_KIND_WORDS(kind) ((unsigned)((uint8_t)(kind) >> 5) + 1u)
#define SND_EVENT_WORDS_MAX 8u /* of any kind, known or not */

enum snd_event_kind {
#define SND_EVENT(name, code, words, timed, summary) SND_EV_##name = SND_KIND(code, words),
#include "format/events.def"
};

enum snd_attr_key {
#define SND_ATTR(name, key, value, summary) SND_ATTR_##name = key,
#include "format/attrs.def"
#undef SND_ATTR
};

#define SND_EVENT_KIND(word0) ((uint8_t)(word0))
#define SND_EVENT_TIME56(word0) ((uint64_t)(word0) >> 8)
#define SND_TIME_MASK (UINT64_MAX >> 8)

/* The full raw clock of a 56-bit time, which is never far before `near_raw`. */
static inline uint64_t snd_time_extend(uint64_t time56, uint64_t near_raw)
{
    uint64_t ahead = (time56 - near_raw) & SND_TIME_MASK;

    /* The upper half means "a little before": clocks of two cores may differ by a hair. */
    return ahead < (SND_TIME_MASK >> 1) ? near_raw + ahead : near_raw - (SND_TIME_MASK + 1 - ahead);
}

/*
 * SPAN, API, CALL: the name (the call) in the low half of word 1 and, once the range has closed with
 * nothing recorded in it, its duration in raw ticks in the high half. 0: still open; an END
 * closes it.
 */
static inline int snd_closes_in_place(uint8_t kind)
{
    return kind == SND_EV_SPAN || kind == SND_EV_CALL || kind == SND_EV_API;
}
/* A name id with this bit is the number of a NAME of its chunk, since the last THREAD there. */
#define SND_OWN_NAME 0x80000000u
#define SND_NAME_BYTES 48u /* of a NAME's text in one event */
/* An id with this bit is of a late record, in the lane chunks that use it (RECORD). */
#define SND_LATE_ID 0x40000000u
#define SND_LATE_SIZE_MAX 8192u /* of its payload, in bytes */
#define SND_RECORD_BYTES 48u    /* of its payload in a RECORD, and in a RECORD_SHORT */
#define SND_RECORD_SHORT_BYTES 16u
#define SND_SPAN_NAME(word1) ((uint32_t)(word1))
#define SND_SPAN_TICKS(word1) ((uint32_t)((uint64_t)(word1) >> 32))

/* How many events a stored one stands for: a closed span is a begin and an end. */
static inline unsigned snd_event_weight(const uint64_t *words)
{
    return snd_closes_in_place(SND_EVENT_KIND(words[0])) && SND_SPAN_TICKS(words[1]) != 0 ? 2 : 1;
}

/* ATTR: kind | key << 8 | value << 16. */
#define SND_ATTR_KEY(word0) ((uint8_t)((uint64_t)(word0) >> 8))
#define SND_ATTR_VALUE(word0) ((uint64_t)(word0) >> 16)
#define SND_ATTR_SMALL_MAX (UINT64_MAX >> 16)

/*
 * SAMPLE: in the upper half of word 1 what the thread was doing, and how many samples in a row
 * found it so; in word 2 the record of the thread that was sampled (0: the lane's own), and for
 * how long, up to the event's time. None of the first three: idle, waiting for a lock, a socket, a
 * clock.
 */
enum snd_sample_state {
#define SND_STATE(name, bit, summary) SND_SAMPLE_##name = (bit),
#define SND_SCOPE(name, number, summary)
#define SND_WORK(name, number, summary)
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE
};
/*
 * SAMPLE_RUN: the same, in ticks. Its own time is when it was written: it ended so many ticks before as
 * word 3 says, and its stack was read so many before as word 4 says.
 */
#define SND_SAMPLE_STATE(word1) ((uint32_t)((uint64_t)(word1) >> 32) & 0xffu)
#define SND_SAMPLE_COUNT(word1) ((uint32_t)((uint64_t)(word1) >> 40)) /* 0: snd_sample_count() */
#define SND_SAMPLE_COUNT_MAX (UINT32_MAX >> 8)

static inline int snd_is_sample(uint8_t kind)
{
    return kind == SND_EV_SAMPLE || kind == SND_EV_SAMPLE_RUN;
}

/* How many samples an event of either kind stands for. */
static inline uint32_t snd_sample_count(const uint64_t *words)
{
    uint32_t count = SND_SAMPLE_COUNT(words[1]);

    return count == 0 && SND_EVENT_KIND(words[0]) == SND_EV_SAMPLE ? 1 : count;
}

/* FUNCTION: word 2 is the duration in ticks and, above it, enum snd_function_flag. */
enum snd_function_flag {
    SND_FUNCTION_RESUMED = 1, /* a generator or coroutine went on; it was not called */
};
#define SND_FUNCTION_TICKS(word2) ((uint64_t)(word2)&SND_TIME_MASK)
#define SND_FUNCTION_FLAGS(word2) ((uint32_t)((uint64_t)(word2) >> 56))

/* SCOPE: what kind of range it is. */
enum snd_scope {
#define SND_STATE(name, bit, summary)
#define SND_SCOPE(name, number, summary) SND_SCOPE_##name = (number),
#define SND_WORK(name, number, summary)
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE
};

/* WORK: what a device did. */
enum snd_work_kind {
#define SND_STATE(name, bit, summary)
#define SND_SCOPE(name, number, summary)
#define SND_WORK(name, number, summary) SND_WORK_##name = (number),
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE
};

/* API: which call of a device's API a range is. */
#define SND_API_CORRELATION(value) ((uint32_t)(value))
#define SND_API_FUNCTION(value) ((uint32_t)((uint64_t)(value) >> 32) & 0x7fffu)
#define SND_API_IS_DRIVER(value) (((uint64_t)(value) >> 47 & 1) != 0)

#define SND_GAP_ALL UINT32_MAX /* GAP: every range that was open is to be closed */

enum snd_link_kind {
    SND_LINK_FLOW = 1,    /* the user's own */
    SND_LINK_FWD_BWD = 2, /* forward operator to backward one */
    SND_LINK_LAUNCH = 3,  /* CPU call to device work */
};

/* A device is type << 16 | index; index 0xffff means "the default one". Types are torch's. */
#define SND_DEVICE(type, index) (((uint32_t)(type) << 16) | ((uint32_t)(index)&0xffffu))
#define SND_DEVICE_TYPE(device) ((uint32_t)(device) >> 16)
#define SND_DEVICE_INDEX(device) ((uint32_t)(device)&0xffffu)

/* ----------------------------------------------------------------- records */

enum snd_record_type {
    SND_REC_STRING = 1,  /* u32 length, bytes, no terminator */
    SND_REC_SHAPES = 2,  /* u32 item count, u32 0, items (struct snd_shape_item + i64 dims) */
    SND_REC_FRAME = 3,   /* struct snd_frame_record, to SND_FRAME_PLAIN_SIZE or whole */
    SND_REC_STACK = 4,   /* u32 parent stack (0: root), u32 frame */
    SND_REC_THREAD = 5,  /* struct snd_thread_record */
    SND_REC_CLOCK = 6,   /* struct snd_clock_pair */
    SND_REC_META = 7,    /* u32 key string, u32 value string; a later one of the key replaces */
    SND_REC_TALLY = 8,   /* struct snd_tally_record, then its words */
    SND_REC_CALL = 9,    /* struct snd_call_record; may grow at its end */
    SND_REC_FACT = 10,   /* struct snd_fact_record, then its members */
    SND_REC_QUEUE = 11,  /* struct snd_queue_record; may grow at its end */
    SND_REC_WORK = 12,   /* struct snd_work_record; may grow at its end */
    SND_REC_SYMBOL = 13, /* struct snd_symbol_record, then its entries */
    SND_REC_TYPES
};

/*
 * Every record begins with this word, which is stored last (release) and so publishes it:
 * size in bytes (head included, a multiple of 8) << 8 | type, then the id.
 * Ids count from 1 within their type, in file order; 0 is "none".
 */
struct snd_record_head {
    uint32_t size_type;
    uint32_t id;
};
#define SND_RECORD_SIZE(head) ((size_t)((head).size_type >> 8))
#define SND_RECORD_TYPE(head) ((uint8_t)(head).size_type)
#define SND_RECORD_SIZE_MAX ((size_t)1 << 20)

enum snd_shape_kind {
    SND_SHAPE_NONE = 0,   /* an argument that is not a tensor; count 0 */
    SND_SHAPE_TENSOR = 1, /* count dims follow, 8 bytes each */
    SND_SHAPE_LIST = 2,   /* a list argument: the next `count` items are its elements */
    SND_SHAPE_SCALAR = 3, /* a number argument: dtype says which; count 0 */
};

struct snd_shape_item {
    uint8_t  kind;  /* enum snd_shape_kind */
    uint8_t  dtype; /* enum sonde_dtype, torch's ScalarType numbers; 255 unknown */
    uint16_t reserved;
    uint32_t count;
};

struct snd_frame_record {
    uint32_t function; /* string */
    uint32_t file;     /* string, 0 none */
    uint32_t line;
    uint32_t flags; /* bit 0: native; above: line where the function begins, 0 unknown */
    /* Only of a frame that is known by its address alone (function 0): */
    uint64_t address;  /* in the file, as its symbol table has it */
    uint32_t build_id; /* string: of the file, in hexadecimal; 0 none */
    uint32_t reserved; /* 0; readers keep the mapped file here, where `file` is the source */
};
static_assert(sizeof(struct snd_frame_record) == 32, "no holes");
#define SND_FRAME_PLAIN_SIZE offsetof(struct snd_frame_record, address) /* of all other frames */
#define SND_FRAME_NATIVE 1u
#define SND_FRAME_FLAGS(first_line) ((uint32_t)(first_line) << 1)
#define SND_FRAME_FIRST_LINE(flags) ((uint32_t)(flags) >> 1)

/* Which functions are at the address of a frame: innermost first, inlined ones before their caller. */
struct snd_symbol_record {
    uint32_t frame;
    uint32_t count; /* of entries that follow */
};
struct snd_symbol_entry {
    uint32_t function, file; /* strings; the file is that of the source, 0 none */
    uint32_t line;
    uint32_t first_line; /* where the function begins, 0 unknown */
};
static_assert(sizeof(struct snd_symbol_entry) == 16, "no holes");
#define SND_SYMBOL_ENTRIES_MAX 256u /* of one address */

/* Counters that the program adds to in place: found by kind, key and other. */
struct snd_tally_record {
    uint32_t kind;  /* enum snd_tally_kind */
    uint32_t key;   /* what is counted: a frame */
    uint32_t other; /* in which relation: a frame, or 0 */
    uint32_t count; /* of 64-bit words that follow, live */
};
#define SND_TALLY_WORDS_MAX 8u
#define SND_TALLY_HOW_OFTEN 0u /* the first word of every kind: how often it happened */

enum snd_tally_kind {
#define SND_TALLY(name, kind, words, summary) SND_TALLY_##name = (kind),
#define SND_TALLY_WORD(tally, name, place, unit, summary)
#include "format/tallies.def"
#undef SND_TALLY_WORD
#undef SND_TALLY
};

/* Places of words, and how many a kind has: SND_CALLS_TOTAL_TICKS, SND_CALLS_WORDS. */
enum snd_tally_word {
#define SND_TALLY(name, kind, words, summary) SND_##name##_WORDS = (words),
#define SND_TALLY_WORD(tally, name, place, unit, summary) SND_##tally##_##name = (place),
#include "format/tallies.def"
#undef SND_TALLY_WORD
#undef SND_TALLY
};
#define SND_TALLY(name, kind, words, summary) \
    static_assert((words) <= SND_TALLY_WORDS_MAX, "a tally has room for them");
#define SND_TALLY_WORD(tally, name, place, unit, summary) \
    static_assert((place) < SND_##tally##_WORDS, "its tally has this word");
#include "format/tallies.def"
#undef SND_TALLY_WORD
#undef SND_TALLY

/* All that is the same each time an operator is called in the same way. Ids; 0: none. */
struct snd_call_record {
    uint32_t name, shapes, strides, arguments;
    uint32_t overload, stack, module;
    uint32_t scope; /* SCOPE's value */
    uint32_t flags; /* enum snd_call_flag */
    uint32_t keywords;
    uint64_t fwd_thread; /* FWD_THREAD's value */
    uint32_t compiled;   /* COMPILED's value; records of other code end before it */
    uint32_t reserved;   /* 0 */
};
static_assert(sizeof(struct snd_call_record) == 56, "no holes");
#define SND_CALL_PLAIN offsetof(struct snd_call_record, compiled) /* bytes of a record without it */

enum snd_call_flag {
    SND_CALL_SEQUENCE = 1, /* its sequence number is what CALLS_SEQUENCE said last */
    SND_CALL_ASYNC = 2,    /* ASYNC */
};

/* Where a device works in order: a CUDA stream. */
struct snd_queue_record {
    uint32_t device; /* SND_DEVICE */
    uint32_t context, stream;
    uint32_t flags; /* 0 */
};
static_assert(sizeof(struct snd_queue_record) == 16, "no holes");

/* All that is the same each time a device does the same work. What does not apply is 0. */
struct snd_work_record {
    uint32_t name; /* string */
    uint32_t kind; /* enum snd_work_kind */
    uint32_t grid[3], block[3];
    uint32_t registers;                           /* of a thread */
    uint32_t shared_static, shared_dynamic;       /* bytes of a block */
    uint32_t copy_kind, source_kind, target_kind; /* CUPTI's numbers; of a fill: target_kind */
    uint64_t bytes;
};
static_assert(sizeof(struct snd_work_record) == 64, "no holes");

/*
 * Something that is said of the run with typed members (facts.def). Records of one kind, subject
 * and number are one fact: a long one is written in parts.
 */
struct snd_fact_record {
    uint32_t kind;    /* enum snd_fact_kind */
    uint32_t subject; /* string: a path; 0 none */
    uint32_t number;  /* of a layer, a node; 0 none */
    uint32_t count;   /* of members that follow */
};

struct snd_fact_member {
    uint16_t field; /* of the kind */
    uint16_t type;  /* enum snd_fact_type */
    uint32_t id;    /* TEXT: string; TENSOR: its shape, a tensor list of one */
    uint64_t value; /* NUMBER: signed; REAL: a double; TENSOR: bytes */
};
static_assert(sizeof(struct snd_fact_record) == 16, "no holes");
static_assert(sizeof(struct snd_fact_member) == 16, "no holes");

enum snd_fact_type {
    SND_FACT_NUMBER = 1,
    SND_FACT_REAL = 2,
    SND_FACT_TEXT = 3,
    SND_FACT_TENSOR = 4,
};

enum snd_fact_kind {
#define SND_FACT(name, kind, word, text, summary) SND_FACT_OF_##name = (kind),
#define SND_FIELD(fact, name, field, type, word, summary)
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};

enum snd_fact_field {
#define SND_FACT(name, kind, word, text, summary)
#define SND_FIELD(fact, name, field, type, word, summary) SND_FIELD_##fact##_##name = (field),
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};

struct snd_thread_record {
    uint32_t tid;
    uint32_t name;       /* string, 0 none */
    uint64_t start;      /* raw clock at attach */
    uint64_t end;        /* live: raw clock at detach, 0 while attached */
    uint64_t lost;       /* live: events dropped by this thread */
    uint32_t pid;        /* of the process that it belongs to; 0: the file's own */
    uint32_t parent_pid; /* of that process, if it is not the file's own; 0 unknown */
};
static_assert(sizeof(struct snd_thread_record) == 40, "mapped");

#endif
