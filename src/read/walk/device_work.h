/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/device_work.h - what GPUs did in a trace: kernels, copies, fills, found by the call that asked for it.
 *
 * Such work is written after it was done, by whichever thread is told of it, so that who walks the
 * trace cannot know it when it meets the call. It is therefore read once, before, and kept: 48 bytes
 * each, of more than some 90,000 in a temporary file (base/files/paged.h). A trace without any is not walked for it.
 *
 * Layer: read (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_READ_WALK_DEVICE_WORK_H
#define SND_READ_WALK_DEVICE_WORK_H

#include "base/files/paged.h"
#include "read/reader.h"

/* One piece of work. Ids are the process's, and defined in its tables; queue 0: none. */
struct snd_device_item {
    int64_t  start_ns, duration_ns;
    uint64_t node; /* of a CUDA graph; 0 none */
    uint32_t process;
    uint32_t work, queue;
    uint32_t correlation; /* of the call that asked for it; 0 none */
};

struct snd_devices {
    struct snd_device_item *items; /* by process, correlation, start */
    uint32_t *by_time; /* the same as numbers, by process and start; NULL: nobody has asked */
    uint32_t  count;
    struct snd_paged pages;   /* of items */
    struct snd_devices_look { /* two threads may look: a walk has one of its own */
        uint32_t at, passed;  /* what was found last; items passed since pages were let go */
    } * look;
};

/*
 * The work of the trace's GPUs, which belongs to the trace; NULL: there is none.
 * Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED, SONDE_E_IO.
 */
SND_CHECKED enum sonde_status snd_trace_devices(struct sonde_trace        *trace,
                                                const struct snd_devices **devices,
                                                struct sonde_error        *err);
/* The same with by_time. */
SND_CHECKED enum sonde_status snd_trace_devices_by_time(struct sonde_trace        *trace,
                                                        const struct snd_devices **devices,
                                                        struct sonde_error        *err);
void                          snd_devices_free(struct snd_devices *devices);
/* Puts numbers of items in the order of by_time. */
void snd_devices_order(const struct snd_devices *devices, uint32_t *numbers, uint32_t count);
/* Who goes through all items calls it with each number: what lies behind leaves memory, and so does what is `beside` them (or NULL). */
static inline void snd_devices_pass(const struct snd_devices *devices, uint32_t number,
                                    const struct snd_paged *beside)
{
    if (number % (1u << 15) != 0)
        return;
    snd_paged_let_go(&devices->pages);
    if (beside)
        snd_paged_let_go(beside);
}

/* What one call launched: `*count` items, beginning with the one that is returned. */
const struct snd_device_item *snd_devices_of(const struct snd_devices *devices, uint32_t process,
                                             uint32_t correlation, uint32_t *count);

/* Total duration of the kernels, copies and fills that one call launched; snd_trace_devices() was
 * called before. */
int64_t snd_devices_sum(const struct sonde_trace *trace, uint32_t process, uint32_t correlation);

/* What the item did and where; the queue is NULL for none. */
const struct snd_work_record  *snd_device_work(const struct sonde_trace     *trace,
                                               const struct snd_device_item *item);
const struct snd_queue_record *snd_device_queue(const struct sonde_trace     *trace,
                                                const struct snd_device_item *item);

/* Its name: a number in trace->names. */
uint32_t snd_device_name(const struct sonde_trace *trace, const struct snd_device_item *item);

/* Whether the time of such work is counted as a device's: a kernel, a copy, a fill. */
static inline bool snd_work_counts(const struct snd_work_record *work)
{
    return work->kind == SND_WORK_KERNEL || work->kind == SND_WORK_COPY ||
           work->kind == SND_WORK_FILL;
}

#endif
