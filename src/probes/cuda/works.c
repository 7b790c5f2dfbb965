/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/works.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/count_of.h"
#include "base/system/clock_ns.h"
#include "format/layout.h"
#include "probes/cuda/cuda_calls.h"
#include "probes/cuda/cuda_devices.h"
#include "probes/cuda/gpu_clock.h"
#include "probes/cuda/library.h"
#include "probes/cuda/work_names.h"
#include "sonde/record.h"

/* 1 MiB takes some 4,800 kernels. */
enum { BUFFER_BYTES = 1 << 20 };

/* ------------------------------------------------------------------------- pool */

/* Not `reading`: CUPTI asks for buffers while it holds locks that reading may wait for. */
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static struct spare {
    struct spare *next;
} * spares;

void snd_works_requested(uint8_t **buffer, size_t *size, size_t *most_records)
{
    pthread_mutex_lock(&pool);
    struct spare *spare = spares;
    if (spare)
        spares = spare->next;
    pthread_mutex_unlock(&pool);
    *buffer = spare ? (uint8_t *)spare : calloc(1, BUFFER_BYTES);
    if (spare)
        spare->next = NULL;
    *size = *buffer ? BUFFER_BYTES : 0;
    *most_records = 0;
}

/*
 * CUPTI wants buffers of zeros. It would fill them itself, in the thread of the program that happens to need one; told
 * that they are (cuda_session.c), it leaves that to us, in the thread that has read them.
 */
static void give_back(uint8_t *buffer)
{
    struct spare *spare = (struct spare *)(void *)buffer;

    memset(buffer, 0, BUFFER_BYTES);
    pthread_mutex_lock(&pool);
    spare->next = spares;
    spares = spare;
    pthread_mutex_unlock(&pool);
}

/* ---------------------------------------------------------------------- reading */

static pthread_mutex_t  reading = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t buffer_count;
static _Atomic uint64_t flush_ticks = UINT64_MAX; /* when the flush under way began */
static uint64_t         began_ticks;              /* when the probe was turned on */
static uint64_t         first_ticks; /* work that began earlier was launched before this epoch */
static uint32_t         tally_epoch;
static uint64_t        *tally; /* of tally_epoch */
static uint64_t         unnoted[SND_GPU_WORDS];

static void count(unsigned word, uint64_t much)
{
    (tally ? tally : unnoted)[word] += much;
}

/* Checks the clocks: work must begin after the call that launched it. */
static void check_call(const struct sonde_device_run *run)
{
    uint64_t began;

    switch (run->correlation ? snd_call_began(run->correlation, &began) : SND_CALL_UNKNOWN) {
    case SND_CALL_NOT_SEEN:
        count(SND_GPU_UNASKED, 1);
        break;
    case SND_CALL_SEEN:
        if (run->start < began) {
            uint64_t early_ns = snd_gpuclock_ns(began - run->start);
            count(SND_GPU_EARLY, 1);
            if (tally && early_ns > tally[SND_GPU_EARLY_NS])
                tally[SND_GPU_EARLY_NS] = early_ns;
        }
        break;
    case SND_CALL_UNKNOWN:
        break;
    }
}

/* A record's part that all kinds of works have. */
struct times {
    uint64_t start, end, node;
    uint32_t device, context, stream, correlation;
};
#define TIMES_OF(record)                                                                     \
    (struct times)                                                                           \
    {                                                                                        \
        (record)->start, (record)->end, (record)->node, (record)->device, (record)->context, \
            (record)->stream, (record)->correlation                                          \
    }

static void record_run(const struct times *times, uint32_t work)
{
    struct sonde_device_run run = { .struct_size = sizeof run,
                                    .node = times->node,
                                    .work = work,
                                    .correlation = times->correlation };

    if (times->start == 0 || times->end < times->start) {
        count(SND_GPU_DROPPED, 1);
        return;
    }
    run.start = snd_gpuclock_ticks(times->start);
    run.duration = snd_gpuclock_ticks(times->end) - run.start;
    if (run.start < first_ticks)
        return;
    run.queue = snd_queue_id(times->device, times->context, times->stream);
    if (snd_calls_are_asked())
        check_call(&run);
    sonde_device_run(&run);
    count(SND_GPU_RECORDS, 1);
}

static void read_kernel(const void *record)
{
    const struct cupti_kernel *kernel = record;
    const struct times         times = TIMES_OF(kernel);
    struct sonde_work          work = { .struct_size = sizeof work,
                                        .kind = SND_WORK_KERNEL,
                                        .registers = kernel->registers };

    for (int i = 0; i < 3; i++) {
        work.grid[i] = (uint32_t)kernel->grid[i];
        work.block[i] = (uint32_t)kernel->block[i];
    }
    work.shared_static = (uint32_t)kernel->shared_static;
    work.shared_dynamic = (uint32_t)kernel->shared_dynamic;
    work.name = snd_kernel_name(kernel->name);
    record_run(&times, snd_work_id(&work));
}

/* A record of either kind of copy. */
#define COPY_OF(copy)                                                       \
    (struct sonde_work)                                                     \
    {                                                                       \
        .struct_size = sizeof(struct sonde_work), .kind = SND_WORK_COPY,    \
        .copy_kind = (copy)->copy_kind, .source_kind = (copy)->source_kind, \
        .target_kind = (copy)->target_kind, .bytes = (copy)->bytes          \
    }

static void read_copy(const struct times *times, struct sonde_work work)
{
    work.name = snd_copy_name(work.copy_kind, work.source_kind, work.target_kind);
    record_run(times, snd_work_id(&work));
}

static void read_memcpy(const void *record)
{
    const struct cupti_memcpy *copy = record;
    const struct times         times = TIMES_OF(copy);

    read_copy(&times, COPY_OF(copy));
}

static void read_memcpy2(const void *record)
{
    const struct cupti_memcpy2 *copy = record;
    const struct times          times = TIMES_OF(copy);

    read_copy(&times, COPY_OF(copy));
}

static void read_memset(const void *record)
{
    const struct cupti_memset *fill = record;
    const struct times         times = TIMES_OF(fill);
    struct sonde_work          work = { .struct_size = sizeof work,
                                        .kind = SND_WORK_FILL,
                                        .target_kind = fill->memory_kind,
                                        .bytes = fill->bytes };

    work.name = snd_fill_name(fill->memory_kind);
    record_run(&times, snd_work_id(&work));
}

static void read_overhead(const void *record)
{
    const struct cupti_overhead *overhead = record;
    struct sonde_work            work = { .struct_size = sizeof work, .kind = SND_WORK_OVERHEAD };
    struct sonde_device_run      run = { .struct_size = sizeof run,
                                         .start = snd_gpuclock_ticks(overhead->start) };

    work.name = snd_overhead_name(overhead->overhead_kind);
    run.duration = snd_gpuclock_ticks(overhead->end) - run.start;
    run.work = snd_work_id(&work);
    if (run.start >= first_ticks && run.start < atomic_load(&flush_ticks) &&
        overhead->end >= overhead->start)
        sonde_device_run(&run);
}

static const struct {
    uint32_t kind;
    void (*read)(const void *record);
} readers[] = {
    { CUPTI_CONCURRENT_KERNEL, read_kernel },
    { CUPTI_MEMCPY, read_memcpy },
    { CUPTI_MEMSET, read_memset },
    { CUPTI_MEMCPY2, read_memcpy2 },
    { CUPTI_OVERHEAD, read_overhead },
};

static void read_record(const uint8_t *record)
{
    uint32_t kind;

    memcpy(&kind, record, sizeof kind);
    for (size_t i = 0; i < SND_COUNT_OF(readers); i++) {
        if (readers[i].kind == kind) {
            readers[i].read(record);
            return;
        }
    }
    count(SND_GPU_UNKNOWN, 1);
}

/* Ids and tallies are of one epoch; each file says which devices it is about. */
static void renew(uint32_t epoch)
{
    if (tally_epoch == epoch)
        return;
    tally_epoch = epoch;
    tally = sonde_tally(SONDE_TALLY_GPU, 0, 0, SND_GPU_WORDS);
    for (int i = 0; tally && i < SND_GPU_WORDS; i++) {
        tally[i] += unnoted[i];
        unnoted[i] = 0;
    }
    snd_worknames_renew();
    snd_devices_write();
}

/* Without calls it is not known what was launched when: then it is what began on the GPU since. */
static uint64_t find_first(void)
{
    uint64_t since = sonde_marking_since();

    if (snd_calls_are_on())
        return snd_calls_first(tally_epoch);
    return since > began_ticks ? since : began_ticks;
}

static void read_buffer(uint8_t *buffer, size_t valid, const struct snd_gpuclock_pair *pair)
{
    uint8_t *record = NULL;
    uint64_t began = snd_clock_ns(CLOCK_MONOTONIC);

    if (pair)
        snd_gpuclock_add(pair);
    renew(sonde_epoch());
    first_ticks = find_first();
    while (snd_cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_OK)
        read_record(record);
    count(SND_GPU_BUFFERS, 1);
    atomic_fetch_add(&buffer_count, 1);
    count(SND_GPU_PARSE_NS, snd_clock_ns(CLOCK_MONOTONIC) - began);
}

void snd_works_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    struct snd_gpuclock_pair pair;
    size_t                   dropped = 0;
    bool                     is_read = snd_gpuclock_read(&pair);

    (void)size;
    if (!buffer)
        return;
    snd_cupti.ActivityGetNumDroppedRecords(context, stream, &dropped);
    pthread_mutex_lock(&reading);
    if (sonde_epoch() != tally_epoch)
        tally = NULL; /* belongs to another recording: counts from here on go to the next one */
    if (sonde_epoch() != 0 && valid > 0)
        read_buffer(buffer, valid, is_read ? &pair : NULL);
    count(SND_GPU_DROPPED, dropped);
    pthread_mutex_unlock(&reading);
    give_back(buffer);
}

void snd_works_begin(void)
{
    struct snd_gpuclock_pair pair;
    bool                     is_read = snd_gpuclock_read(&pair);

    pthread_mutex_lock(&reading);
    snd_gpuclock_reset();
    began_ticks = sonde_clock();
    if (is_read)
        snd_gpuclock_add(&pair);
    pthread_mutex_unlock(&reading);
}

uint64_t snd_works_buffers(void)
{
    return atomic_load(&buffer_count);
}

void snd_works_flushing(bool is_flushing)
{
    atomic_store(&flush_ticks, is_flushing ? sonde_clock() : UINT64_MAX);
}

void snd_works_in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    memcpy(&pool, &fresh, sizeof pool);
    memcpy(&reading, &fresh, sizeof reading);
    tally_epoch = 0;
}
