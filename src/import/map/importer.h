/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/map/importer.h - what is known while a file is imported.
 *
 * Layer: import. Threads: one at a time.
 */
#ifndef SND_IMPORT_MAP_IMPORTER_H
#define SND_IMPORT_MAP_IMPORTER_H

#include "import/map/trace_event.h"
#include "import/out/lane_writer.h"
#include "import/text/window.h"

#define SND_KINDS_MOST 24    /* kinds of events that have no place, named in the ledger */
#define SND_PIDS_MOST 64     /* processes whose names are kept */
#define SND_NUMBERS_MOST 256 /* threads that torch numbers */
#define SND_SEEN_SEQUENCES 1024

struct snd_importer {
    struct snd_window         window;
    struct snd_argument_index index;
    struct snd_trace_event    event;
    struct snd_trace_out      out;
    struct snd_items          items;
    struct snd_calls          calls;
    struct sonde_buffer       text, more; /* scratch */
    const char               *path;

    /* ---- of the whole */
    bool     is_torch; /* it has operators of torch, or says so */
    bool     has_own;
    uint32_t own_pid;     /* of the first range that is the host's */
    int64_t  first, last; /* of all times, in ns */
    int64_t  window_begin, window_end;
    bool     has_window, any_time;
    int64_t  base_ns; /* baseTimeNanoseconds */
    uint32_t rank, world_size;
    char     host[64];
    struct {
        uint32_t pid;
        char     name[60];
    } pids[SND_PIDS_MOST];
    uint32_t pid_count;
    bool     options[8]; /* record_shapes, ..: file_members.c */
    uint32_t cuda_versions[3];
    uint64_t named_lane; /* it has its name */

    /* ---- which thread torch means by a number: operators forward and backward have one sequence number */
    struct {
        uint64_t sequence; /* plus one */
        uint32_t tid, number;
    } seen[SND_SEEN_SEQUENCES];
    uint32_t tids[SND_NUMBERS_MOST]; /* plus one */

    struct {
        uint64_t lane, reserved;    /* of its latest block */
        uint64_t first_lane, first; /* bytes in use after the block that is the earliest */
        int64_t  first_ns;
        bool     any;
    } held[16];          /* by GPU */
    uint64_t text_bytes; /* of arguments kept as text */

    /* ---- what is not in the trace */
    uint64_t events, lost, repaired, unmapped, derived, rounded, dropped, cut_bytes, too_long,
        dropped_texts;
    struct {
        char     text[40];
        uint64_t count;
    } kinds[SND_KINDS_MOST];
    uint32_t kind_count;

    enum sonde_status status; /* of what failed for want of memory, or of disk */
};

/* ---- map_parts.c: what every kind of event needs */
void snd_map_add(struct snd_importer *im, const struct snd_item *item);
/* A string's id; of a JSON string its characters. */
uint32_t snd_map_string(struct snd_importer *im, struct snd_span value);
/* Arguments without a place of their own, as a JSON object; 0: none, or there is no more room for such. */
uint32_t snd_map_others(struct snd_importer *im);
#define SND_ID_TEXT 0x80000000u
/* A process or thread id, as 32 bits. What is none gets the hash of its text: from SND_ID_TEXT on. */
uint32_t snd_map_id(struct snd_span value);
/* The lane of an event; a text or a large number gets one of its own. */
uint64_t snd_map_lane(struct snd_importer *im, struct snd_span pid, struct snd_span tid);

/* ---- map_event.c: an event becomes items */
void snd_map_event(struct snd_importer *im);

/* ---- torch_call.c */
/* The call record of an operator or a range that a person named. */
uint32_t snd_map_call(struct snd_importer *im, bool is_user);
/* The sequence number of the event, plus one; 0: none. */
uint64_t snd_map_sequence(struct snd_importer *im);

/* ---- gpu_items.c */
void snd_map_work(struct snd_importer *im, enum snd_work_kind kind, int64_t start,
                  int64_t duration);
void snd_map_memory(struct snd_importer *im, uint64_t lane, int64_t start);
/* What is in use after each GPU's first block: from it follows what was before. */
void snd_map_memory_end(struct snd_importer *im);
void snd_map_properties(struct snd_importer *im, struct snd_span list);

/* ---- file_members.c: what stands beside the events */
void snd_map_member(struct snd_importer *im, struct snd_span key, struct snd_span value);
/* Metadata, facts and tallies, once all is read; fills the header. */
void snd_map_finish(struct snd_importer *im, struct snd_lane_writer *lanes,
                    struct snd_file_header *header);

#endif
