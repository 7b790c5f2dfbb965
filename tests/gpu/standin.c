/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/gpu/standin.c - a libcupti and libcuda without a GPU, for tests of the CUDA probe.
 *
 * The probe opens it as SONDE_CUPTI. A test says what happens: by hand (standin_call, standin_kernel,
 * ..), or by a recording of what the real CUPTI did on a GPU (standin_load, standin_play; tests/data/cuda), which is
 * played in its own time. What is refused and dropped is set by standin_set().
 *
 * A recording is a list of items: u32 type, u32 size, payload. 1: u32 version. 2: u64 address of a
 * kernel's name, the name. 3: a buffer: u32 count, u32 size, u32 offset of each record, the bytes. 4: a
 * callback: u32 domain, id, site, correlation; u64 CUPTI's time; u64, u32, u32 unused; the function.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/standin.h"
#include "probes/cuda/cupti.h"
#include "probes/cuda/library.h"

#define EXPORT __attribute__((visibility("default")))

/* The types that the probe takes them to have. */
#define DECLARE_CUPTI(name, ...) uint32_t cupti##name(__VA_ARGS__);
CUPTI_FUNCTIONS(DECLARE_CUPTI)
#define DECLARE_CUDA(name, ...) int name(__VA_ARGS__);
CUDA_FUNCTIONS(DECLARE_CUDA)
int cuInit(unsigned flags);

enum { DOMAINS = 4, IDS = 1024, KINDS = 64, KERNEL_BYTES = 216, COPY_BYTES = 96, FILL_BYTES = 88 };

static struct {
    cupti_callback         *callback;
    void                   *user;
    bool                    enabled[DOMAINS][IDS];
    bool                    kinds[KINDS];
    cupti_buffer_requested *requested;
    cupti_buffer_completed *completed;
    uint8_t                *buffer;
    size_t                  size, used;
    uint32_t                offsets[1 << 16], count, next;
    uint32_t                version, subscribe_result, enable_result;
    size_t                  dropped, zeroed, dirty;
    int64_t                 shift; /* of CUPTI's clock from the host's */
    long                    calls, flushes, waits, subscriptions;
    int                     runtime;
    int devices; /* 2: calls with an odd correlation, and their work, are of the second */
} cupti = { .version = 130001, .runtime = 13000, .devices = 1 };
static char second_context;
static struct cupti_subscriber {
    int unused;
} subscriber;

static bool is_second(uint32_t correlation)
{
    return cupti.devices > 1 && correlation % 2 == 1;
}

/* ---------------------------------------------------------------- the interface */

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

EXPORT uint32_t cuptiGetVersion(uint32_t *version)
{
    *version = cupti.version;
    return 0;
}

EXPORT uint32_t cuptiGetTimestamp(uint64_t *timestamp)
{
    *timestamp = now() + (uint64_t)cupti.shift;
    return 0;
}

EXPORT uint32_t cuptiGetResultString(uint32_t result, const char **text)
{
    static const struct {
        uint32_t    result;
        const char *name;
    } names[] = {
        { CUPTI_E_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED" },
        { CUPTI_E_NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE" },
        { CUPTI_E_NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED" },
        { CUPTI_E_VIRTUALIZED, "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED" },
        { CUPTI_E_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" },
        { CUPTI_E_MULTIPLE_SUBSCRIBERS, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" },
        { CUPTI_E_VIRTUALIZED_PRIVILEGES,
          "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES" },
        { CUPTI_E_CONFIDENTIAL, "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED" },
        { CUPTI_E_MIG, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED" },
        { CUPTI_E_WSL, "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED" },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].result == result) {
            *text = names[i].name;
            return 0;
        }
    }
    return 1;
}

EXPORT uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name)
{
    static const struct {
        uint32_t    domain, id;
        const char *name;
    } names[] = {
        { 2, 211, "cudaLaunchKernel_v7000" },
        { 2, 41, "cudaMemcpyAsync_v3020" },
        { 2, 51, "cudaMemsetAsync_v3020" },
        { 2, 131, "cudaStreamSynchronize_v3020" },
        { 2, 165, "cudaDeviceSynchronize_v3020" },
        { 2, 311, "cudaGraphLaunch_v10000" },
        { 2, 317, "cudaStreamIsCapturing_v10000" },
        { 2, 430, "cudaLaunchKernelExC_v11060" },
        { 2, 12, "cudaGetErrorString_v3020" },
        { 2, 11, "cudaPeekAtLastError_v3020" },
        { 2, 273, "cudaFuncSetAttribute_v9000" },
        { 1, 307, "cuLaunchKernel" },
        { 1, 652, "cuLaunchKernelEx" },
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].domain == domain && names[i].id == id) {
            *name = names[i].name;
            return 0;
        }
    }
    return 1;
}

EXPORT uint32_t cuptiSubscribe(struct cupti_subscriber **out, cupti_callback *callback, void *user)
{
    if (cupti.subscribe_result)
        return cupti.subscribe_result;
    cupti.callback = callback;
    cupti.user = user;
    cupti.subscriptions++;
    *out = &subscriber;
    return 0;
}

EXPORT uint32_t cuptiUnsubscribe(struct cupti_subscriber *one)
{
    (void)one;
    cupti.callback = NULL;
    cupti.subscriptions--;
    memset(cupti.enabled, 0, sizeof cupti.enabled);
    return 0;
}

EXPORT uint32_t cuptiEnableCallback(uint32_t on, struct cupti_subscriber *one, uint32_t domain,
                                    uint32_t id)
{
    (void)one;
    cupti.enabled[domain][id] = on != 0;
    return 0;
}

EXPORT uint32_t cuptiEnableDomain(uint32_t on, struct cupti_subscriber *one, uint32_t domain)
{
    (void)one;
    memset(cupti.enabled[domain], on != 0, sizeof cupti.enabled[domain]);
    return 0;
}

EXPORT uint32_t cuptiActivityRegisterCallbacks(cupti_buffer_requested *requested,
                                               cupti_buffer_completed *completed)
{
    cupti.requested = requested;
    cupti.completed = completed;
    return 0;
}

EXPORT uint32_t cuptiActivityEnable(uint32_t kind)
{
    if (cupti.enable_result)
        return cupti.enable_result;
    cupti.kinds[kind] = true;
    return 0;
}

EXPORT uint32_t cuptiActivityDisable(uint32_t kind)
{
    cupti.kinds[kind] = false;
    return 0;
}

EXPORT uint32_t cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    if (attribute != CUPTI_ZEROED_BUFFERS || *size != sizeof cupti.zeroed)
        return 1;
    memcpy(&cupti.zeroed, value, sizeof cupti.zeroed);
    return 0;
}

/* As CUPTI does: buffers of zeros, which it fills itself unless it was told that they are. */
static void request_buffer(void)
{
    size_t most;

    cupti.requested(&cupti.buffer, &cupti.size, &most);
    if (!cupti.buffer)
        return;
    if (!cupti.zeroed)
        memset(cupti.buffer, 0, cupti.size);
    for (size_t i = 0; i < cupti.size; i++)
        cupti.dirty += cupti.buffer[i] != 0;
}

EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    (void)valid;
    cupti.next = *record ? cupti.next + 1 : 0;
    if (cupti.next >= cupti.count)
        return CUPTI_E_MAX_LIMIT_REACHED;
    *record = buffer + cupti.offsets[cupti.next];
    return 0;
}

EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    *dropped = cupti.dropped;
    cupti.dropped = 0;
    return 0;
}

/* Gives a record to the device that its call was made for. */
static void place_record(uint8_t *record)
{
    static const struct {
        uint32_t kind;
        size_t   device, context, correlation;
    } places[] = {
#define PLACES(kind, type)                                                 \
    { kind, offsetof(struct type, device), offsetof(struct type, context), \
      offsetof(struct type, correlation) }
        PLACES(CUPTI_CONCURRENT_KERNEL, cupti_kernel), PLACES(CUPTI_MEMCPY, cupti_memcpy),
        PLACES(CUPTI_MEMCPY2, cupti_memcpy2), PLACES(CUPTI_MEMSET, cupti_memset)
    };
    const uint32_t device = 1, context = 2;
    uint32_t       kind, correlation;

    memcpy(&kind, record, sizeof kind);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        memcpy(&correlation, record + places[i].correlation, sizeof correlation);
        if (places[i].kind == kind && is_second(correlation)) {
            memcpy(record + places[i].device, &device, sizeof device);
            memcpy(record + places[i].context, &context, sizeof context);
        }
    }
}

/* Threads add to one buffer; it is handed over whole. */
static pthread_mutex_t buffer_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock held. */
static void hand_over(void)
{
    uint8_t *buffer = cupti.buffer;

    cupti.buffer = NULL;
    for (uint32_t i = 0; buffer && i < cupti.count; i++)
        place_record(buffer + cupti.offsets[i]);
    if (buffer)
        cupti.completed(NULL, 0, buffer, cupti.size, cupti.used);
    cupti.used = cupti.count = 0;
}

/* CUPTI hands over from a thread of its own. */
static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&buffer_lock);
    hand_over();
    pthread_mutex_unlock(&buffer_lock);
    return NULL;
}

EXPORT uint32_t cuptiActivityFlushAll(uint32_t flags)
{
    pthread_t thread;

    (void)flags;
    cupti.flushes++;
    if (pthread_create(&thread, NULL, worker, NULL) == 0)
        pthread_join(thread, NULL);
    return 0;
}

/* ------------------------------------------------------------------- the driver */

EXPORT int cudaRuntimeGetVersion(int *version);
EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = cupti.runtime;
    return 0;
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

EXPORT int cuInit(unsigned flags)
{
    return (int)flags;
}

EXPORT int cuDeviceGetCount(int *count)
{
    *count = cupti.devices;
    return 0;
}

EXPORT int cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stand-in H200%s", device == 1 ? " of two" : "");
    return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    *bytes = 150109880320u;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int values[128] = {
        [1] = 1024, [8] = 49152, [10] = 32,     [12] = 65536, [16] = 132,    [39] = 2048,
        [75] = 9,   [76] = 0,    [81] = 233472, [82] = 65536, [97] = 232448, [106] = 32
    };

    (void)device;
    *value = values[attribute];
    return 0;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = device < cupti.devices;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = device == 1 ? (void *)&second_context : &cupti;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return device < cupti.devices ? 0 : 101;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    *context = &cupti;
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    return context == &cupti || (context == &second_context && cupti.devices > 1) ? 0 : 201;
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    *context = &cupti;
    return 0;
}

EXPORT int cuCtxSynchronize(void)
{
    cupti.waits++;
    return 0;
}

/* --------------------------------------------------------------------- by hand */

/* For a program that knows nothing of it: STANDIN=enable=35, what standin_set() is told. */
__attribute__((constructor)) static void set_by_environment(void)
{
    const char *text = getenv("STANDIN"), *value = text ? strchr(text, '=') : NULL;
    char        what[32];

    if (value) {
        snprintf(what, sizeof what, "%.*s", (int)(value - text), text);
        standin_set(what, atol(value + 1));
    }
}

EXPORT int standin_set(const char *what, long value)
{
    if (strcmp(what, "version") == 0)
        cupti.version = (uint32_t)value;
    else if (strcmp(what, "runtime") == 0)
        cupti.runtime = (int)value;
    else if (strcmp(what, "subscribe") == 0)
        cupti.subscribe_result = (uint32_t)value;
    else if (strcmp(what, "enable") == 0)
        cupti.enable_result = (uint32_t)value;
    else if (strcmp(what, "dropped") == 0)
        cupti.dropped = (size_t)value;
    else if (strcmp(what, "shift") == 0)
        cupti.shift = value;
    else if (strcmp(what, "devices") == 0)
        cupti.devices = (int)value;
    else
        return -1;
    return 0;
}

EXPORT long standin_get(const char *what)
{
    return strcmp(what, "calls") == 0           ? cupti.calls
           : strcmp(what, "flushes") == 0       ? cupti.flushes
           : strcmp(what, "waits") == 0         ? cupti.waits
           : strcmp(what, "subscriptions") == 0 ? cupti.subscriptions
           : strcmp(what, "zeroed") == 0        ? (long)cupti.zeroed
           : strcmp(what, "dirty") == 0         ? (long)cupti.dirty
           : strcmp(what, "kinds") == 0         ? (long)cupti.kinds[CUPTI_CONCURRENT_KERNEL]
                                                : -1;
}

EXPORT uint64_t standin_time(void)
{
    return now() + (uint64_t)cupti.shift;
}

/* CUPTI has one for each call; a thread is in one call of a domain at a time. */
static _Thread_local uint64_t data_of[8];

EXPORT void standin_call(uint32_t domain, uint32_t id, uint32_t site, uint32_t correlation)
{
    struct cupti_call call = { .site = site,
                               .function = "cudaSomething",
                               .context = is_second(correlation) ? (void *)&second_context : &cupti,
                               .data = &data_of[domain],
                               .correlation = correlation };

    if (!cupti.callback || !cupti.enabled[domain][id])
        return;
    cupti.calls++;
    cupti.callback(cupti.user, domain, id, &call);
}

static void add_record(uint32_t kind, const void *record, size_t known, size_t bytes)
{
    if (!cupti.kinds[kind])
        return;
    pthread_mutex_lock(&buffer_lock);
    if (cupti.buffer && cupti.used + bytes > cupti.size)
        hand_over();
    if (!cupti.buffer)
        request_buffer();
    if (cupti.buffer) {
        memset(cupti.buffer + cupti.used, 0, bytes);
        memcpy(cupti.buffer + cupti.used, record, known);
        cupti.offsets[cupti.count++] = (uint32_t)cupti.used;
        cupti.used += bytes;
    }
    pthread_mutex_unlock(&buffer_lock);
}

EXPORT void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t correlation,
                           uint32_t stream, uint64_t node)
{
    struct cupti_kernel kernel = { .kind = CUPTI_CONCURRENT_KERNEL,
                                   .registers = 16,
                                   .start = start,
                                   .end = end,
                                   .context = 1,
                                   .stream = stream,
                                   .grid = { 4, 2, 1 },
                                   .block = { 128, 1, 1 },
                                   .shared_dynamic = 1024,
                                   .correlation = correlation,
                                   .name = name,
                                   .node = node };

    add_record(CUPTI_CONCURRENT_KERNEL, &kernel, sizeof kernel, KERNEL_BYTES);
}

EXPORT void standin_copy(uint32_t kind, uint64_t bytes, uint64_t start, uint64_t end,
                         uint32_t correlation)
{
    struct cupti_memcpy copy = { .kind = CUPTI_MEMCPY,
                                 .copy_kind = (uint8_t)kind,
                                 .source_kind = 2,
                                 .target_kind = 3,
                                 .bytes = bytes,
                                 .start = start,
                                 .end = end,
                                 .context = 1,
                                 .stream = 7,
                                 .correlation = correlation };

    add_record(CUPTI_MEMCPY, &copy, sizeof copy, COPY_BYTES);
}

EXPORT void standin_unknown(void)
{
    uint32_t kind = 9999;

    add_record(CUPTI_CONCURRENT_KERNEL, &kind, sizeof kind, FILL_BYTES);
}

/* ----------------------------------------------------------------- a recording */

struct item {
    uint32_t type, size;
};
struct call_item {
    uint32_t domain, id, site, correlation;
    uint64_t time, ticks;
    uint32_t thread, unused;
};

static struct {
    uint64_t    address;
    const char *name;
} names[512];
static size_t name_count;

static void name_kernel(struct cupti_kernel *kernel)
{
    for (size_t i = 0; i < name_count; i++)
        if (names[i].address == (uintptr_t)kernel->name) {
            kernel->name = names[i].name;
            return;
        }
    kernel->name = "(name not in the recording)";
}

/*
 * A busy machine is late: then all that follows comes so much later too, the work of each call as well,
 * and nothing begins before it was asked for.
 */
static uint64_t late;
static struct {
    uint32_t correlation;
    uint64_t late;
} lateness[1 << 16];

static void play_call(const uint8_t *payload)
{
    struct call_item call;

    memcpy(&call, payload, sizeof call);
    while (standin_time() < call.time + late)
        ;
    late = standin_time() - call.time;
    lateness[call.correlation % (1 << 16)].correlation = call.correlation;
    lateness[call.correlation % (1 << 16)].late = late;
    standin_call(call.domain, call.id, call.site, call.correlation);
}

static void delay(uint8_t *record, uint32_t kind)
{
    size_t   at = kind == CUPTI_CONCURRENT_KERNEL ? offsetof(struct cupti_kernel, correlation)
                  : kind == CUPTI_MEMCPY2         ? offsetof(struct cupti_memcpy2, correlation)
                                                  : offsetof(struct cupti_memcpy, correlation);
    uint32_t correlation;
    uint64_t times[2]; /* start and end, at the same place in all of them */

    memcpy(&correlation, record + at, sizeof correlation);
    memcpy(times, record + offsetof(struct cupti_kernel, start), sizeof times);
    if (lateness[correlation % (1 << 16)].correlation == correlation) {
        times[0] += lateness[correlation % (1 << 16)].late;
        times[1] += lateness[correlation % (1 << 16)].late;
    }
    memcpy(record + offsetof(struct cupti_kernel, start), times, sizeof times);
}

static void play_buffer(const uint8_t *payload)
{
    uint32_t       count, size;
    const uint8_t *bytes;

    memcpy(&count, payload, 4);
    memcpy(&size, payload + 4, 4);
    bytes = payload + 8 + 4 * (size_t)count;
    cuptiActivityFlushAll(0);
    request_buffer();
    memcpy(cupti.buffer, bytes, size);
    memcpy(cupti.offsets, payload + 8, 4 * (size_t)count);
    cupti.count = count;
    cupti.used = size;
    for (uint32_t i = 0; i < count; i++) {
        struct cupti_kernel *kernel = (void *)(cupti.buffer + cupti.offsets[i]);
        if (kernel->kind == CUPTI_CONCURRENT_KERNEL)
            name_kernel(kernel);
        if (kernel->kind != CUPTI_OVERHEAD)
            delay(cupti.buffer + cupti.offsets[i], kernel->kind);
    }
}

static uint8_t *recording;
static size_t   recording_size;

/* Calls `play` with each item of this type. */
static void for_each(uint32_t type, void (*play)(const uint8_t *payload))
{
    struct item item;

    for (size_t at = 0; at + 8 <= recording_size; at += 8 + item.size) {
        memcpy(&item, recording + at, 8);
        if (item.type == type)
            play(recording + at + 8);
    }
}

static void note_name(const uint8_t *payload)
{
    if (name_count == sizeof names / sizeof names[0])
        return;
    memcpy(&names[name_count].address, payload, 8);
    names[name_count++].name = (const char *)payload + 8;
}

static bool is_placed;

/* The first call of the recording comes in a few milliseconds, by its clock. */
static void place_clock(const uint8_t *payload)
{
    struct call_item call;

    memcpy(&call, payload, sizeof call);
    if (!is_placed)
        cupti.shift = (int64_t)(call.time - now()) - 5000000;
    is_placed = true;
}

/* Before the probe starts: CUPTI's clock is the recording's from here on. */
EXPORT int standin_load(const char *path)
{
    FILE *file = fopen(path, "rb");

    recording = malloc(1 << 24);
    recording_size = file && recording ? fread(recording, 1, 1 << 24, file) : 0;
    if (file)
        fclose(file);
    name_count = 0;
    is_placed = false;
    late = 0;
    for_each(2, note_name);
    for_each(4, place_clock);
    return is_placed ? 0 : -1;
}

/* In its own time; the buffers come last, as at a flush. */
EXPORT void standin_play(void)
{
    for_each(4, play_call);
    for_each(3, play_buffer);
}
