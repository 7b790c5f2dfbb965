/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/reader.h - an open trace, as the reading side sees it.
 *
 *     struct sonde_trace                      one file, or the files of a folder
 *       processes[]  struct snd_process       header, tables, index of lane chunks; after those of
 *                                             files, the others that a file tells of (guests.c)
 *       threads[]    struct snd_reader_thread of all processes, one after another
 *       names        every different string, numbered over all processes
 *
 * Only tables are kept. Events stay in the file and are walked (trace_walk.h).
 *
 * Layer: read (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_READ_READER_H
#define SND_READ_READER_H

#include "base/data/arena.h"
#include "base/data/map.h"
#include "format/layout.h"
#include "format/limits.h"
#include "read/file/scale.h"
#include "read/file/source.h"
#include "sonde/trace.h"

/* A chunk of the file, as its header says. */
struct snd_chunk_ref {
    uint64_t offset, size, seq, used;
    uint64_t lost;
    uint32_t thread, crc;
    uint32_t first_own; /* string id of the first of its own names (NAME) */
    uint16_t kind, header_size;
    bool     crc_set;
    uint64_t
        *unpacked; /* its events, if it is packed and they are kept (read/file/cursor.c); or NULL */
    size_t unpacked_words;
};

struct snd_shape_record {
    const uint8_t *bytes; /* items, after the count; NULL: not defined */
    uint32_t       size, items;
};

struct snd_stack_node {
    uint32_t parent, frame; /* parents have lesser ids, or were made here: no cycles; frame 0:
                               not defined */
};

/* A call record, and which attributes (enum snd_attr_key) it has besides its sequence number. */
struct snd_table_call {
    struct snd_call_record record;
    uint32_t               attr_mask;
};

/* What a call record says of its range, as attributes (enum snd_attr_key); returns how many. */
struct snd_call_attr {
    uint8_t  key;
    uint64_t value;
};
#define SND_CALL_ATTRS 10
size_t snd_call_attrs(const struct snd_call_record *call,
                      struct snd_call_attr          attrs[SND_CALL_ATTRS]);

/* Tables of one process by id; entry 0 is not used. */
struct snd_tables {
    uint32_t                 *names; /* string id to number in trace->names, plus one; 0: none */
    struct snd_shape_record  *shapes;
    struct snd_frame_record  *frames;
    struct snd_stack_node    *stacks;
    struct snd_thread_record *threads; /* tid and start 0: not defined */
    struct {
        uint32_t key, value;
    } * metas;
    struct snd_tally {
        struct snd_tally_record head;
        uint64_t                words[SND_TALLY_WORDS_MAX]; /* those it does not have are 0 */
    } * tallies;
    struct snd_table_call   *calls;
    struct snd_queue_record *queues;
    struct snd_work_record  *works; /* kind 0: not defined */
    struct snd_symbol {
        uint32_t                       frame, count;
        const struct snd_symbol_entry *entries;
    } * symbols;
    struct snd_fact_bytes {
        const uint8_t *bytes; /* struct snd_fact_record and its members */
        size_t         size;
    } * fact_bytes;
    struct snd_fact *facts;      /* made of them: trace_facts.h */
    struct snd_map   fact_index; /* kind, subject and number to a place in facts */
    struct snd_map   meta_index; /* key's string id to its place in metas */
    struct snd_map   late;       /* type and late id to the id here: late_records.c */
    struct snd_text
            *prefixes; /* folders that torch leaves out of file names: the first that fits */
    uint32_t prefix_count, prefix_room;
    uint32_t file_names; /* the ids of names in the file are below; the reader's own follow */
    uint32_t name_count, shape_count, frame_count, stack_count, thread_count, meta_count,
        tally_count, call_count, queue_count, work_count, symbol_count, fact_bytes_count,
        fact_count;
    uint32_t name_room, shape_room, frame_room, stack_room, thread_room, meta_room, tally_room,
        call_room, queue_room, work_room, symbol_room, fact_bytes_room, fact_room;
    struct snd_arena arena;
};

/* A function of native code, not of Python; false of a frame that the table does not have. */
static inline bool snd_frame_is_native(const struct snd_tables *t, uint32_t frame)
{
    return frame < t->frame_count && (t->frames[frame].flags & SND_FRAME_NATIVE) != 0;
}

/* What opening found wrong; what walking finds is in struct snd_walk_stats. */
struct snd_damage {
    uint64_t chunks;        /* structure of a table chunk, or its checksum */
    uint64_t skipped_bytes; /* no readable chunk covers them */
    uint64_t unknown_chunks, unknown_records;
    uint64_t bad_ids; /* records whose id or references cannot be */
    uint64_t records;
    uint64_t missing_bytes; /* of a closed file, which was longer when it was closed */
    bool     header, clock;
};

struct snd_process {
    struct sonde_process   shown;
    struct snd_source      source;
    struct snd_file_header header;
    struct snd_chunk_ref  *lanes;  /* by seq */
    struct snd_chunk_ref  *others; /* tables, by seq */
    uint32_t               lane_count, other_count, lane_room, other_room;
    _Atomic size_t        *keeps_words; /* the trace's: of unpacked chunks that may still be kept */
    struct snd_tables      tables;
    struct snd_baseline    baseline;
    struct snd_scale       scale;
    struct snd_damage      damage;
    uint32_t               first_thread; /* index in trace->threads */
    uint32_t               thread_count; /* with the one for undefined ids, if needed */
    uint64_t               valid_from;   /* raw clock; 0: everything */
    uint64_t               steps_from;   /* raw clock; a STEP before it does not count */
    uint64_t               chunk_lost;   /* lost events counted in chunk headers */
    bool is_guest; /* no file of its own: uses the tables of the file that mentions it */
};

struct snd_reader_thread {
    struct sonde_thread shown;
};

struct snd_kept;
struct snd_kinds;
struct snd_consumer;
struct snd_only_gil;
struct snd_host_clocks;

struct sonde_trace {
    struct snd_process       *processes;
    struct snd_reader_thread *threads;
    uint32_t                  process_count, process_room;
    uint32_t                  thread_count, thread_room;
    struct snd_texts          names;
    uint32_t                  unknown_name; /* "(unknown)", in names */
    struct snd_arena          arena;
    uint32_t                  refused; /* files of the folder that could not be read */
    bool                      is_folder;
    struct snd_devices       *devices; /* read when asked for (read/walk/device_work.h), or NULL */
    struct snd_kinds         *kinds;   /* likewise (read/walk/kinds.h) */
    struct snd_consumer
        *waiting; /* for the next walk of a model: a list (model/ranges/assembly.h), or NULL */
    struct snd_only_gil *only_gil; /* of samples, those alone that held the lock; or NULL */
    struct sonde_summary
        *summary; /* finished, for all that ask for one (model/summary/summary.h), or NULL */
    struct snd_host_clocks
        *host_clocks;      /* how they were aligned (model/ranks/host_clocks.h); NULL: not yet */
    struct snd_kept *kept; /* models to be lent (model/kept.h) */
    bool             keeps;
    _Atomic size_t   keeps_words; /* of unpacked chunks: a small trace is unpacked once */
    uint32_t         walks;       /* over all events that went to the end: tests count them */
    uint32_t         divided;     /* of these, walks that several threads made: likewise */
    uint32_t         workers;     /* threads that read it; 0: as many as pay. Tests set it */
};

/* Opens a trace whose bytes are in memory, which must stay. As sonde_trace_open otherwise. */
SND_CHECKED enum sonde_status snd_trace_open_memory(const void *data, size_t size,
                                                    struct sonde_trace **out,
                                                    struct sonde_error  *err);

/* Opens one file, without those of forked children beside it. */
SND_CHECKED enum sonde_status snd_trace_open_file(const char *path, struct sonde_trace **out,
                                                  struct sonde_error *err);

/* The name of a string id of `process`: a number in trace->names; UINT32_MAX if not defined. */
static inline uint32_t snd_name_of(const struct snd_process *process, uint32_t id)
{
    return id < process->tables.name_count ? process->tables.names[id] - 1 : UINT32_MAX;
}

/* As sonde_trace_shapes(); not `nested`: a list of tensors is [], as torch's input_shapes has it. */
size_t snd_trace_shapes(const struct sonde_trace *trace, uint32_t process, uint32_t id, bool nested,
                        char *buffer, size_t size);

/* Takes the innermost frame off a stack: *id is the rest of it then; false: it was empty. */
bool snd_stack_next(const struct sonde_trace *trace, uint32_t process, uint32_t *id,
                    struct sonde_frame *frame);

/*
 * Bends the axis of a process, once: its events, threads, begin and end. `bends` are copied; where they turn by more than
 * 1/500 they are made to turn less, so that times stay in order. False: memory is out.
 */
SND_CHECKED bool snd_axis_bend(struct sonde_trace *trace, uint32_t process,
                               const struct snd_scale_bend *bends, uint32_t count);
/* Moves the axis of all so that the first process begins at 0 again, and forgets what was read by the old one. */
void snd_axis_begin_again(struct sonde_trace *trace);

/* ------------------------------------------------ steps of opening, in this order */

/* Reads and judges the header. Errors: SONDE_E_FORMAT, SONDE_E_VERSION. */
SND_CHECKED enum sonde_status snd_header_read(struct snd_process *process, struct sonde_error *err);
/* Finds the chunks and sorts them by seq. */
SND_CHECKED enum sonde_status snd_chunks_find(struct snd_process *process, struct sonde_error *err);
/* Reads the tables; strings go to trace->names. */
SND_CHECKED enum sonde_status snd_tables_read(struct sonde_trace *trace,
                                              struct snd_process *process, struct sonde_error *err);
void                          snd_tables_release(struct snd_tables *tables);
/* The same for the records in lane chunks. */
struct snd_codec;
SND_CHECKED enum sonde_status snd_late_read(struct sonde_trace *trace, struct snd_process *process,
                                            struct snd_codec **codec, struct sonde_error *err);
/* Names that lane chunks have of their own get the string ids after those of the tables. */
SND_CHECKED enum sonde_status snd_own_names_read(struct sonde_trace *trace,
                                                 struct snd_process *process,
                                                 struct snd_codec **codec, struct sonde_error *err);
/* The tables' id for one of a type that events or records have, which may be a late one. */
uint32_t snd_late_replace(const struct snd_tables *tables, uint8_t type, uint32_t id);
/* Adds a record to the tables, or counts that its type is not known; false when memory is out. */
SND_CHECKED bool snd_record_parse(struct sonde_trace *trace, struct snd_process *process,
                                  uint8_t type, uint32_t id, const uint8_t *payload, size_t size);
/* The id that a further record of the type would have; 0: a type that cannot be late. */
uint32_t snd_table_next_id(const struct snd_tables *tables, uint8_t type);
/* Names the frames that are known by their address alone: "libm.so.6+0x1c". False: out of memory. */
SND_CHECKED bool snd_addresses_name(struct sonde_trace *trace, struct snd_process *process);
/* Puts the functions of symbols in the place of frames that have them. False: out of memory. */
SND_CHECKED bool snd_symbols_expand(struct snd_process *process);
/* Adds processes that have no file of their own, from the threads in other files. */
SND_CHECKED bool snd_guests_add(struct sonde_trace *trace);
/* Adds a string to the tables, and gives it an id there. False: out of memory. */
SND_CHECKED bool snd_table_add_string(struct sonde_trace *trace, struct snd_process *process,
                                      const char *text, size_t length, uint32_t *id);
/* Whether GPUs did any work, so that there is more to read than the host's events. */
bool snd_trace_has_works(const struct sonde_trace *trace);
/* Applies the metadata "python.prefixes" of the tables to file names. */
SND_CHECKED bool snd_prefixes_read(const struct sonde_trace *trace, struct snd_process *process);

/* A file name without the folder that every reader knows, as torch shows it. */
struct sonde_text snd_file_shown(const struct sonde_trace *trace, uint32_t process,
                                 struct sonde_text file);

#endif
