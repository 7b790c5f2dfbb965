/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did in the Chrome trace format, as Kineto writes it: a process for each GPU, a thread for
 * each stream, arrows from calls of CUDA's API to what they asked for.
 *
 * The rule of the host's ranges as streams saw them is torch's (model/gpu/torch_gpu.h).
 */
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/count_of.h"
#include "export/common/exporter.h"
#include "format/known.h"
#include "model/gpu/occupancy.h"
#include "read/said/trace_facts.h"

#define SORT_FIRST 5000000 /* where Kineto lists GPUs: below all processes */

/* The GPU's own number for the first process that uses it; another number for each further process. */
static uint64_t gpu_pid(const struct snd_chrome *chrome, uint32_t process, uint32_t device)
{
    uint32_t first = 0;

    while (first < process && chrome->trace->processes[first].tables.work_count == 0)
        first++;
    return SND_DEVICE_INDEX(device) + (uint64_t)(process - first) * 100;
}

/* ----------------------------------------------------------- names, properties */

static void put_name(struct snd_chrome *chrome, const char *what, uint64_t pid, uint64_t tid,
                     const char *key, const char *text, int64_t number)
{
    struct snd_json *json = &chrome->json;

    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "M");
    snd_json_text(json, "name", what);
    snd_json_uint(json, "pid", pid);
    snd_json_uint(json, "tid", tid);
    snd_json_int(json, "ts", 0);
    snd_json_object(json, "args");
    if (text)
        snd_json_text(json, key, text);
    else
        snd_json_int(json, key, number);
    snd_json_end(json);
    snd_json_end(json);
}

static void put_gpu(struct snd_chrome *chrome, uint32_t process, uint32_t index)
{
    uint64_t pid = gpu_pid(chrome, process, index);
    char     label[32];

    snprintf(label, sizeof label, "GPU %" PRIu32, index);
    snd_export_name(chrome->trace, process, &chrome->text);
    put_name(chrome, "process_name", pid, 0, "name", snd_buf_string(&chrome->text), 0);
    put_name(chrome, "process_labels", pid, 0, "labels", label, 0);
    put_name(chrome, "process_sort_index", pid, 0, "sort_index", NULL, SORT_FIRST + (int64_t)pid);
}

/* GPUs that a process's streams are of, and those that it describes. */
static void put_gpus(struct snd_chrome *chrome, uint32_t process)
{
    const struct snd_tables *t = &chrome->trace->processes[process].tables;
    const struct snd_fact   *fact;
    uint32_t                 at = 0;

    while ((fact = snd_fact_next(chrome->trace, process, SND_FACT_OF_DEVICE, &at)))
        put_gpu(chrome, process, fact->number - 1);
    for (uint32_t i = 1; i < t->queue_count; i++) {
        struct snd_gpu_limits limits;
        bool seen = snd_gpu_limits(chrome->trace, process, t->queues[i].device, &limits);
        for (uint32_t k = 1; k < i && !seen; k++)
            seen = t->queues[k].device == t->queues[i].device;
        if (!seen)
            put_gpu(chrome, process, SND_DEVICE_INDEX(t->queues[i].device));
    }
}

static void put_streams(struct snd_chrome *chrome, uint32_t process)
{
    const struct snd_tables *t = &chrome->trace->processes[process].tables;

    for (uint32_t i = 1; i < t->queue_count; i++) {
        const struct snd_queue_record *q = &t->queues[i];
        uint64_t                       pid = gpu_pid(chrome, process, q->device);
        char                           name[32];
        snprintf(name, sizeof name, "stream %" PRIu32 " ", q->stream); /* Kineto's has the space */
        put_name(chrome, "thread_name", pid, q->stream, "name", name, 0);
        put_name(chrome, "thread_sort_index", pid, q->stream, "sort_index", NULL, q->stream);
    }
}

void snd_chrome_gpu_names(struct snd_chrome *chrome)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        put_gpus(chrome, i);
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        put_streams(chrome, i);
}

static void put_properties(struct snd_json *json, const struct snd_fact *fact)
{
    static const struct {
        const char *key;
        unsigned    field;
    } members[] = {
        { "totalGlobalMem", SND_FIELD_DEVICE_MEMORY_BYTES },
        { "computeMajor", SND_FIELD_DEVICE_CAPABILITY_MAJOR },
        { "computeMinor", SND_FIELD_DEVICE_CAPABILITY_MINOR },
        { "maxThreadsPerBlock", SND_FIELD_DEVICE_THREADS_PER_BLOCK },
        { "maxThreadsPerMultiprocessor", SND_FIELD_DEVICE_THREADS_PER_SM },
        { "regsPerBlock", SND_FIELD_DEVICE_REGISTERS_PER_BLOCK },
        { "warpSize", SND_FIELD_DEVICE_WARP },
        { "sharedMemPerBlock", SND_FIELD_DEVICE_SHARED_PER_BLOCK },
        { "numSms", SND_FIELD_DEVICE_SMS },
        { "regsPerMultiprocessor", SND_FIELD_DEVICE_REGISTERS_PER_SM },
        { "sharedMemPerBlockOptin", SND_FIELD_DEVICE_SHARED_PER_BLOCK_OPTIN },
        { "sharedMemPerMultiprocessor", SND_FIELD_DEVICE_SHARED_PER_SM },
    };
    struct sonde_text name = snd_fact_text(fact, SND_FIELD_DEVICE_NAME);

    snd_json_object(json, NULL);
    snd_json_uint(json, "id", fact->number - 1);
    snd_json_string(json, "name", name.bytes, name.length);
    for (size_t i = 0; i < SND_COUNT_OF(members); i++)
        snd_json_int(json, members[i].key, snd_fact_number(fact, members[i].field, 0));
    snd_json_end(json);
}

/* From the first process that describes a GPU. */
void snd_chrome_gpu_properties(struct snd_chrome *chrome)
{
    static const struct {
        const char *key;
        unsigned    field;
    } versions[] = {
        { "cuda_driver_version", SND_FIELD_CUDA_DRIVER_VERSION },
        { "cuda_runtime_version", SND_FIELD_CUDA_RUNTIME_VERSION },
        { "cupti_version", SND_FIELD_CUDA_CUPTI_VERSION },
    };
    const struct snd_fact *fact = NULL;
    uint32_t               process = 0, count = sonde_trace_process_count(chrome->trace), at = 0;

    while (process < count &&
           !(at = 0, fact = snd_fact_next(chrome->trace, process, SND_FACT_OF_CUDA, &at)))
        process++;
    snd_json_array(&chrome->json, "deviceProperties");
    const struct snd_fact *device;
    at = 0;
    while (fact && (device = snd_fact_next(chrome->trace, process, SND_FACT_OF_DEVICE, &at)))
        put_properties(&chrome->json, device);
    snd_json_end(&chrome->json);
    for (size_t i = 0; fact && i < SND_COUNT_OF(versions); i++) {
        int64_t version = snd_fact_number(fact, versions[i].field, 0);
        if (version != 0)
            snd_json_int(&chrome->json, versions[i].key, version);
    }
}

/* ------------------------------------------------------------- calls and arrows */

static void put_arrow(struct snd_chrome *chrome, bool arrives, uint64_t pid, uint64_t tid,
                      int64_t ns, uint32_t correlation)
{
    struct snd_json *json = &chrome->json;

    snd_json_object(json, NULL);
    snd_json_text(json, "ph", arrives ? "f" : "s");
    snd_json_uint(json, "id", correlation);
    snd_json_uint(json, "pid", pid);
    snd_json_uint(json, "tid", tid);
    snd_json_us(json, "ts", ns);
    snd_json_text(json, "cat", "ac2g");
    snd_json_text(json, "name", "ac2g");
    if (arrives)
        snd_json_text(json, "bp", "e");
    snd_json_end(json);
}

void snd_chrome_put_call(struct snd_chrome *chrome, const struct snd_span *span)
{
    uint64_t    api = span->attrs[SND_ATTR_API];
    const char *category = SND_API_IS_DRIVER(api) ? "cuda_driver" : "cuda_runtime";

    if (snd_chrome_hides(chrome, category))
        return;
    snd_chrome_open(chrome, "X", category, span->name, span->process, span->thread);
    snd_json_us(&chrome->json, "ts", span->start_ns);
    snd_json_us(&chrome->json, "dur", snd_sub(span->end_ns, span->start_ns));
    snd_json_object(&chrome->json, "args");
    if (span->owner != 0)
        snd_json_uint(&chrome->json, "External id", span->owner);
    snd_json_uint(&chrome->json, "cbid", SND_API_FUNCTION(api));
    snd_json_uint(&chrome->json, "correlation", SND_API_CORRELATION(api));
    if (span->unfinished)
        snd_json_bool(&chrome->json, "Unfinished", true);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
    if (SND_API_CORRELATION(api) != 0)
        put_arrow(chrome, !sonde_call_asks(snd_api_function(api)),
                  snd_export_pid(chrome->trace, span->process),
                  sonde_trace_thread(chrome->trace, span->thread)->tid, span->start_ns,
                  SND_API_CORRELATION(api));
}

/* ------------------------------------------------------------------------- work */

static void open_work(struct snd_chrome *chrome, const char *category, struct sonde_text name,
                      uint64_t pid, uint64_t tid, int64_t start_ns, int64_t duration_ns)
{
    struct snd_json *json = &chrome->json;

    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "X");
    snd_json_text(json, "cat", category);
    snd_json_string(json, "name", name.bytes, name.length);
    snd_json_uint(json, "pid", pid);
    snd_json_uint(json, "tid", tid);
    snd_json_us(json, "ts", start_ns);
    snd_json_us(json, "dur", duration_ns);
}

static struct sonde_text text_of(const struct snd_chrome *chrome, uint32_t name)
{
    const struct snd_text *text = &chrome->trace->names.items[name];

    return (struct sonde_text){ text->bytes, text->length };
}

static void put_three(struct snd_json *json, const char *key, const uint32_t numbers[3])
{
    snd_json_array(json, key);
    for (int i = 0; i < 3; i++)
        snd_json_uint(json, NULL, numbers[i]);
    snd_json_end(json);
}

/* Kineto counts in floats, and writes six decimals. */
static void put_float(struct snd_json *json, const char *key, float value)
{
    char text[64];
    int  length = snprintf(text, sizeof text, "%.6f", (double)value);

    for (int i = 0; i < length; i++)
        if (text[i] == ',') /* a locale's decimal point */
            text[i] = '.';
    if (isfinite(value))
        snd_json_raw(json, key, text, (size_t)length);
}

/* A grid that does not fill the GPU has no more warps than its blocks have. */
static void put_occupancy(struct snd_json *json, const struct snd_gpu_limits *limits,
                          const struct snd_work_record *work)
{
    struct snd_occupancy found;
    uint32_t             threads = work->block[0] * work->block[1] * work->block[2];
    uint32_t             grid = work->grid[0] * work->grid[1] * work->grid[2];

    if (limits->sms == 0)
        return;
    float blocks = (float)grid / (float)limits->sms;
    put_float(json, "blocks per SM", blocks);
    put_float(json, "warps per SM", blocks * (float)threads / 32);
    if (!snd_occupancy(limits, work, &found))
        return;
    float active = fminf((float)found.blocks, blocks);
    snd_json_int(json, "est. achieved occupancy %",
                 lround((double)(active * (float)threads / (float)limits->threads_per_sm) * 100));
}

static void put_kernel(struct snd_chrome *chrome, const struct snd_device_item *item,
                       const struct snd_work_record *work, const struct snd_queue_record *queue)
{
    struct snd_json      *json = &chrome->json;
    struct snd_gpu_limits limits;

    snd_json_int(json, "queued", 0);
    snd_json_uint(json, "registers per thread", work->registers);
    snd_json_uint(json, "shared memory", (uint64_t)work->shared_static + work->shared_dynamic);
    put_three(json, "grid", work->grid);
    put_three(json, "block", work->block);
    if (snd_gpu_limits(chrome->trace, item->process, queue->device, &limits))
        put_occupancy(json, &limits, work);
}

static void put_moved(struct snd_json *json, const struct snd_device_item *item,
                      const struct snd_work_record *work)
{
    snd_json_uint(json, "bytes", work->bytes);
    if (item->duration_ns > 0)
        snd_json_real(json, "memory bandwidth (GB/s)",
                      (double)work->bytes / (double)item->duration_ns);
}

static void put_work(struct snd_chrome *chrome, uint32_t number)
{
    static const char *const categories[] = {
        [SND_WORK_KERNEL] = "kernel", [SND_WORK_COPY] = "gpu_memcpy", [SND_WORK_FILL] = "gpu_memset"
    };
    static const struct snd_queue_record none;
    const struct snd_device_item        *item = &chrome->gpu.devices->items[number];
    const struct snd_work_record        *work = snd_device_work(chrome->trace, item);
    const struct snd_queue_record       *queue = snd_device_queue(chrome->trace, item);
    const struct snd_torch_launch       *launch = &chrome->gpu.launches[number];
    struct snd_json                     *json = &chrome->json;

    if (snd_chrome_hides(chrome, categories[work->kind]))
        return;
    queue = queue ? queue : &none;
    uint64_t pid = gpu_pid(chrome, item->process, queue->device);
    open_work(chrome, categories[work->kind],
              text_of(chrome, snd_device_name(chrome->gpu.trace, item)), pid, queue->stream,
              item->start_ns, item->duration_ns);
    snd_json_object(json, "args");
    if (launch->owner != SND_NO_LAUNCH)
        snd_json_uint(json, "External id", launch->owner);
    snd_json_uint(json, "device", SND_DEVICE_INDEX(queue->device));
    snd_json_uint(json, "context", queue->context);
    snd_json_uint(json, "stream", queue->stream);
    snd_json_uint(json, "correlation", item->correlation);
    if (work->kind == SND_WORK_KERNEL)
        put_kernel(chrome, item, work, queue);
    else
        put_moved(json, item, work);
    if (item->node != 0)
        snd_json_uint(json, "graph node id", item->node);
    snd_json_end(json);
    snd_json_end(json);
    if (item->correlation != 0)
        put_arrow(chrome, true, pid, queue->stream, item->start_ns, item->correlation);
}

/* Kineto has a process -1 for it. */
static void put_overhead(struct snd_chrome *chrome, const struct snd_device_item *item)
{
    struct snd_json  *json = &chrome->json;
    struct sonde_text name = text_of(chrome, snd_device_name(chrome->gpu.trace, item));

    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "X");
    snd_json_text(json, "cat", "overhead");
    snd_json_string(json, "name", name.bytes, name.length);
    snd_json_int(json, "pid", -1);
    snd_json_int(json, "tid", 0);
    snd_json_us(json, "ts", item->start_ns);
    snd_json_us(json, "dur", item->duration_ns);
    snd_json_end(json);
}

/* A nanosecond longer on either side than what it is around, as Kineto makes it for viewers. */
static void put_annotation(struct snd_chrome *chrome, const struct snd_annotation *a)
{
    static const struct snd_queue_record none;
    const struct snd_tables             *t = &chrome->trace->processes[a->process].tables;
    const struct snd_queue_record       *queue = a->queue != 0 ? &t->queues[a->queue] : &none;

    open_work(chrome, "gpu_user_annotation", text_of(chrome, a->name),
              gpu_pid(chrome, a->process, queue->device), queue->stream, snd_sub(a->start_ns, 1),
              snd_add(snd_sub(a->end_ns, a->start_ns), 2));
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "External id", a->node);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

bool snd_chrome_gpu_works(struct snd_chrome *chrome)
{
    const struct snd_devices *d = chrome->gpu.devices;

    for (uint32_t i = 0; d && i < d->count && !chrome->out->failed; i++) {
        const struct snd_device_item *item = &d->items[d->by_time[i]];
        const struct snd_work_record *work = snd_device_work(chrome->trace, item);
        if (snd_work_counts(work))
            put_work(chrome, d->by_time[i]);
        else if (work->kind == SND_WORK_OVERHEAD)
            put_overhead(chrome, item);
    }
    for (uint32_t i = 0; i < chrome->gpu.annotation_count && !chrome->out->failed; i++)
        put_annotation(chrome, &chrome->gpu.annotations[i]);
    return !chrome->gpu.failed;
}
