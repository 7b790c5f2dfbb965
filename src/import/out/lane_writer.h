/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/out/lane_writer.h - from sorted items to the events of lanes.
 *
 * Ranges of a thread may overlap in part: one that ends while a later one is open is closed around it (END_AT),
 * as torch's own lists have it. A range with nothing inside is one event.
 *
 * Layer: import (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_IMPORT_OUT_LANE_WRITER_H
#define SND_IMPORT_OUT_LANE_WRITER_H

#include "import/out/call_records.h"
#include "import/out/sorted_items.h"

#define SND_OWN_TIDS 200

/* Something of a lane that is open. */
struct snd_lane_open {
    int64_t         end; /* INT64_MAX: it comes by itself */
    uint64_t        serial;
    struct snd_item item;
    uint32_t        call;    /* of a CALL, as written; of a FUNCTION its stack */
    bool            crosses; /* it ends after one that began before it */
};

struct snd_lane_writer {
    struct snd_trace_out *out;
    struct snd_calls     *calls;
    int64_t               origin; /* ns that are the clock's 1 */
    uint32_t              pid;    /* of the file's own process */
    uint64_t              lane;
    bool                  in_lane, named;
    uint32_t              thread, own_thread; /* records; of the devices' */
    uint32_t              name;
    uint32_t              own_tids[SND_OWN_TIDS]; /* of the file's own process, the first of them */
    uint32_t              own_tid_count;
    struct snd_lane_open *open; /* by end, the latest first; owned */
    uint32_t              count, room, begins, crossing;
    uint64_t              serials;
    bool                  holds; /* the innermost is not written yet: it may have nothing inside */
    uint64_t              sequence; /* what the chunk's CALLs have */
    uint64_t              too_deep;
    int64_t               last; /* the latest end */
    bool                  failed;
};

/* Takes items in their order (snd_items_walk). */
void snd_lanes_take(void *writer, const struct snd_item *item);
/* Closes what is open, and the lane. */
void snd_lanes_end(struct snd_lane_writer *writer);
void snd_lanes_release(struct snd_lane_writer *writer);

/* The clock of a time. */
static inline uint64_t snd_lanes_raw(const struct snd_lane_writer *writer, int64_t ns)
{
    return (uint64_t)ns - (uint64_t)writer->origin + 1;
}

/* process << 32 | thread: a process's main thread comes first. */
static inline uint64_t snd_lane_key(uint32_t pid, uint32_t tid)
{
    return (uint64_t)pid << 32 | (uint32_t)(tid - pid);
}

#endif
