/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/memory_holders.h - what memory_peaks.c follows, memory_points.c has the course of, and memory_result.c makes results of.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_MEMORY_MEMORY_HOLDERS_H
#define SND_MODEL_MEMORY_MEMORY_HOLDERS_H

#include "base/data/map.h"
#include "model/gpu/launches.h"
#include "model/place_texts.h"

#define DEVICES_MAX 256u
#define BUCKETS 256u /* of time, four points each: 1,024 points a device */
#define NO_RANGE UINT32_MAX

struct live { /* an allocation that was not freed */
    int64_t  bytes;
    uint32_t holder, next_free;
};

/* The course of the live bytes within a slice of time. */
struct bucket {
    struct {
        int64_t time_ns, bytes;
    } first, least, most, last;
    bool any;
};

/* What a device held after one of its events. */
struct moment {
    int64_t time_ns, bytes;
};

/* When most was held, and how much of it the trace has the allocations of. */
struct peak {
    int64_t  bytes, now_bytes, time_ns;
    uint64_t event;  /* its number */
    uint32_t height; /* a number that each new peak raises */
};

/*
 * What is held is `now`, of allocations in the trace, and what is left of before the recording. How
 * much that was follows from the allocator's counter, at whichever moment it comes (has_before):
 * until then only its change is known, which is enough to find the peak.
 */
struct device {
    struct sonde_memory_device shown;
    int64_t                    now_bytes;
    int64_t        earlier_bytes; /* change of the memory held before the recording; 0 or less */
    uint64_t       now_count, events;
    struct peak    peak, whole;    /* of `now`; of `now` and `earlier` */
    int64_t        before_at_peak; /* of before_bytes, what was left */
    int64_t        before_at_end;
    int64_t        reserved_bytes; /* -1: not known yet */
    int64_t        first_ns, last_ns;
    bool           has_before;
    struct bucket *buckets;
    struct moment *moments; /* of all its events, if memory->has_moments */
    uint32_t       moment_count, moment_room;
};

/* What a holder had at a peak: what it has now if the peak is newer than `height`, since it has not changed from then on. */
struct held {
    int64_t  bytes;
    uint64_t count;
    uint32_t height;
};

struct holder {
    struct sonde_memory_holder shown;
    int64_t                    now_bytes;
    uint64_t                   now_count;
    struct held                at_peak, at_whole; /* of the device's two peaks */
    uint32_t                   stack;             /* number of its text plus one */
};

struct sonde_memory {
    struct sonde_trace        *trace;
    struct device             *devices;
    struct holder             *holders;
    struct live               *lives;
    struct sonde_memory_point *points;
    uint32_t            device_count, device_room, holder_count, holder_room, live_count, live_room;
    uint32_t            point_count, point_room;
    uint32_t            free_live; /* plus one: a list through next_free */
    struct snd_map      by_device, by_holder, by_address;
    struct snd_key      latest_key; /* of by_device, and what it is there, plus one; 0: none yet */
    uint32_t            latest;
    uint32_t            moment_count; /* of all devices */
    bool                has_moments;
    bool                second;   /* walk */
    bool                is_done;  /* the first is */
    unsigned            groups;   /* enum sonde_group */
    struct snd_launches launches; /* of places, where holders are grouped by them */
    struct snd_place_texts texts;
    struct snd_consumer    consumer; /* of the first walk */
    struct snd_assembly   *assembly; /* while a walk lasts */
};

/* What a device holds, after an event of the first walk: kept if there is room. */
void snd_memory_keep_moment(struct sonde_memory *memory, struct device *device, int64_t ns);
/* Puts what a device holds into the bucket of the time. */
void snd_memory_note_bucket(struct device *device, int64_t ns, int64_t bytes);
/* For all devices; false: memory is out. */
bool snd_memory_make_buckets(struct sonde_memory *memory);
/* Whether buckets can be filled of the moments. */
bool snd_memory_knows_course(const struct sonde_memory *memory);
/* Fills them, of the moments of a memory that has the same devices. */
void snd_memory_fill_buckets(struct sonde_memory *memory, const struct sonde_memory *from);

/* Makes the holders of what was followed, and points of the buckets; false: memory is out. */
bool snd_memory_show_holders(struct sonde_memory *memory);
bool snd_memory_show_points(struct sonde_memory *memory);
/* Takes over the devices and holders of one with more groups, which is finished; false: memory is out. */
bool snd_memory_merge(struct sonde_memory *memory, const struct sonde_memory *from);

#endif
