/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/cuda_calls.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/count_of.h"
#include "format/cudacalls.h"
#include "probes/cuda/library.h"
#include "sonde/record.h"

enum { BEGUN = 1 << 16, CONTEXTS = 64 };

static struct cupti_subscriber *subscriber;
static atomic_bool              is_on, is_asked;

/* ------------------------------------------------------------------------ names */

/* By domain (runtime, driver) and id: epoch << 32 | id of the name. */
static _Atomic uint64_t names[2][SND_CUDA_CALLS];

/* "cudaLaunchKernel_v7000" is shown as "cudaLaunchKernel"; the 2 of "cuMemAlloc_v2" stays. */
static size_t without_version(const char *name, size_t length)
{
    size_t end = length;

    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    return end > 2 && length - end >= 4 && name[end - 1] == 'v' && name[end - 2] == '_' ? end - 2
                                                                                        : length;
}

static uint32_t intern_name(uint32_t domain, uint32_t id, const char *function)
{
    const char *name = NULL;

    if (snd_cupti.GetCallbackName(domain, id, &name) != CUPTI_OK || !name)
        name = function ? function : "(unknown CUDA call)";
    return sonde_intern(name, without_version(name, strlen(name)));
}

static uint32_t name_of(uint32_t domain, uint32_t id, const char *function, uint32_t epoch)
{
    _Atomic uint64_t *place = id < SND_CUDA_CALLS ? &names[domain == CUPTI_DRIVER_API][id] : NULL;
    uint64_t          bound = place ? atomic_load_explicit(place, memory_order_relaxed) : 0;

    if (bound >> 32 == epoch && bound)
        return (uint32_t)bound;
    uint32_t name = intern_name(domain, id, function);
    if (place && name)
        atomic_store_explicit(place, (uint64_t)epoch << 32 | name, memory_order_relaxed);
    return name;
}

/* --------------------------------------------------------- when which call began */

/*
 * The latest calls, by the low bits of their correlation: CUPTI counts them. A later call takes the
 * place of the one 65,536 before it, whose work has been handed over long ago.
 */
static struct begun {
    _Atomic uint32_t correlation, epoch;
    _Atomic uint64_t ticks;
} begun[BEGUN];
static _Atomic uint64_t latest; /* call: epoch << 32 | correlation, of which each is met once */
static _Atomic uint32_t first_epoch;
static _Atomic uint64_t first_ticks;

/* Called by the first thread of an epoch; a second one at the same moment records its call earlier. */
static void begin_epoch(uint32_t epoch)
{
    atomic_store(&first_ticks, sonde_clock());
    atomic_store(&first_epoch, epoch);
}

bool snd_calls_are_on(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

bool snd_calls_are_asked(void)
{
    return atomic_load_explicit(&is_asked, memory_order_relaxed);
}

uint64_t snd_calls_first(uint32_t epoch)
{
    return atomic_load(&first_epoch) == epoch ? atomic_load(&first_ticks) : UINT64_MAX;
}

/* A call inside another, of the driver in the runtime's, has the same correlation. */
static bool is_inside(uint32_t correlation, uint32_t epoch)
{
    const struct begun *place = &begun[correlation % BEGUN];

    return atomic_load_explicit(&place->correlation, memory_order_relaxed) == correlation &&
           atomic_load_explicit(&place->epoch, memory_order_relaxed) == epoch;
}

enum snd_call_seen snd_call_began(uint32_t correlation, uint64_t *ticks)
{
    struct begun *place = &begun[correlation % BEGUN];
    uint32_t      there = atomic_load_explicit(&place->correlation, memory_order_acquire);

    *ticks = atomic_load_explicit(&place->ticks, memory_order_acquire);
    if (atomic_load_explicit(&place->correlation, memory_order_acquire) != there)
        return SND_CALL_UNKNOWN;
    if (there == correlation)
        return SND_CALL_SEEN;
    return (int32_t)(there - correlation) > 0 ? SND_CALL_UNKNOWN : SND_CALL_NOT_SEEN;
}

uint64_t snd_calls_latest(void)
{
    return atomic_load_explicit(&latest, memory_order_relaxed);
}

/* --------------------------------------------------------------------- contexts */

static _Atomic(void *) contexts[CONTEXTS];

static void note_context(void *context)
{
    for (size_t i = 0; context && i < CONTEXTS; i++) {
        void *none = NULL;
        if (atomic_load_explicit(&contexts[i], memory_order_relaxed) == context)
            return;
        if (atomic_compare_exchange_strong(&contexts[i], &none, context) || none == context)
            return;
    }
}

static void forget_context(void *context)
{
    for (size_t i = 0; i < CONTEXTS; i++) {
        void *expected = context;
        atomic_compare_exchange_strong(&contexts[i], &expected, NULL);
    }
}

/*
 * Contexts that no callback tells of, since they were made before the start: those that CUDA's runtime uses, one of
 * each device. Not at the start: the driver may have called it before it is ready itself.
 */
static void note_primary_contexts(void)
{
    int      count = 0, device, is_active;
    unsigned flags;
    void    *context;

    if (!snd_driver.cuDeviceGetCount || !snd_driver.cuDeviceGet ||
        !snd_driver.cuDevicePrimaryCtxGetState || !snd_driver.cuDevicePrimaryCtxRetain ||
        !snd_driver.cuDevicePrimaryCtxRelease_v2 || snd_driver.cuDeviceGetCount(&count) != 0)
        return;
    for (int i = 0; i < count; i++)
        if (snd_driver.cuDeviceGet(&device, i) == 0 &&
            snd_driver.cuDevicePrimaryCtxGetState(device, &flags, &is_active) == 0 && is_active &&
            snd_driver.cuDevicePrimaryCtxRetain(&context, device) == 0) {
            note_context(context);
            snd_driver.cuDevicePrimaryCtxRelease_v2(device);
        }
}

void snd_calls_wait_for_devices(void)
{
    if (!snd_driver.cuCtxPushCurrent_v2 || !snd_driver.cuCtxPopCurrent_v2 ||
        !snd_driver.cuCtxSynchronize)
        return;
    if (!snd_calls_are_on()) {
        snd_driver.cuCtxSynchronize(); /* of the calling thread */
        note_primary_contexts();
    }
    for (size_t i = 0; i < CONTEXTS; i++) {
        void *context = atomic_load(&contexts[i]), *popped;
        if (context && snd_driver.cuCtxPushCurrent_v2(context) == 0) {
            snd_driver.cuCtxSynchronize();
            snd_driver.cuCtxPopCurrent_v2(&popped);
        }
    }
}

/* -------------------------------------------------------------------- callbacks */

#define IS_OURS \
    (UINT64_C(1) << 32) /* in a call's data, with the epoch: we began a range, and end it */

/* Not inlined into on_call(), which also runs for calls that are not recorded, and at each end. */
static __attribute__((noinline)) void enter(uint32_t domain, uint32_t id,
                                            const struct cupti_call *call, uint32_t epoch)
{
    struct begun *place = &begun[call->correlation % BEGUN];
    uint32_t      name = name_of(domain, id, call->function, epoch);

    if (!name)
        return;
    note_context(call->context);
    if (atomic_load_explicit(&first_epoch, memory_order_relaxed) != epoch)
        begin_epoch(epoch);
    uint64_t began =
        sonde_begin_api(name, SONDE_API_CALL(call->correlation, id, domain == CUPTI_DRIVER_API));
    atomic_store_explicit(&place->correlation, call->correlation - 1, memory_order_release);
    atomic_store_explicit(&place->ticks, began ? began : sonde_clock(), memory_order_release);
    atomic_store_explicit(&place->epoch, epoch, memory_order_release);
    atomic_store_explicit(&place->correlation, call->correlation, memory_order_release);
    atomic_store_explicit(&latest, (uint64_t)epoch << 32 | call->correlation, memory_order_relaxed);
    *call->data = IS_OURS | epoch;
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
    const struct cupti_call *call = data;
    uint32_t                 epoch = sonde_epoch();

    (void)user;
    if (domain == CUPTI_RESOURCE) {
        void *context = ((const struct cupti_resource_data *)data)->context;
        if (id == CUPTI_CONTEXT_DESTROY_STARTING)
            forget_context(context);
        else if (id == CUPTI_CONTEXT_CREATED)
            note_context(context);
    } else if (call->site == CUPTI_ENTER) {
        *call->data = 0;
        if (epoch != 0 && atomic_load_explicit(&is_on, memory_order_relaxed) &&
            !is_inside(call->correlation, epoch))
            enter(domain, id, call, epoch);
    } else if (*call->data == (IS_OURS | epoch)) {
        sonde_end();
    }
}

/* ------------------------------------------------------------------- on and off */

/* The whole runtime, except frequent calls of little interest, and a few functions of the driver. */
static const struct listed {
    enum snd_cuda_api api;
    uint32_t          number;
    bool              is_recorded;
} listed[] = {
#define SND_CUDA_CALL(api, number, name, recorded, arrow) \
    { SND_CUDA_##api, number, SND_CUDA_##recorded },
#include "format/cudacalls.def"
#undef SND_CUDA_CALL
};

static uint32_t enable_calls(uint32_t on)
{
    uint32_t result = snd_cupti.EnableDomain(on, subscriber, CUPTI_RUNTIME_API);

    for (size_t i = 0; i < SND_COUNT_OF(listed); i++) {
        bool is_driver = listed[i].api == SND_CUDA_DRIVER;
        if (is_driver && listed[i].is_recorded)
            snd_cupti.EnableCallback(on, subscriber, CUPTI_DRIVER_API, listed[i].number);
        if (!is_driver && !listed[i].is_recorded && on)
            snd_cupti.EnableCallback(0, subscriber, CUPTI_RUNTIME_API, listed[i].number);
    }
    return result;
}

/* Calls say themselves in which context they are; without them it is told when one comes to be. */
static uint32_t enable(uint32_t on)
{
    bool     calls = snd_calls_are_asked();
    uint32_t result = calls ? enable_calls(on)
                            : snd_cupti.EnableCallback(on, subscriber, CUPTI_RESOURCE,
                                                       CUPTI_CONTEXT_CREATED);

    snd_cupti.EnableCallback(on, subscriber, CUPTI_RESOURCE, CUPTI_CONTEXT_DESTROY_STARTING);
    return result;
}

uint32_t snd_calls_on(bool are_asked)
{
    atomic_store(&is_asked, are_asked);
    uint32_t result = subscriber ? CUPTI_OK : snd_cupti.Subscribe(&subscriber, on_call, NULL);

    if (result != CUPTI_OK) {
        subscriber = NULL;
        return result;
    }
    result = enable(1);
    atomic_store(&is_on, are_asked && result == CUPTI_OK);
    if (result != CUPTI_OK)
        snd_calls_off();
    return result;
}

void snd_calls_off(void)
{
    atomic_store(&is_on, false);
    if (!subscriber)
        return;
    enable(0);
    snd_cupti.Unsubscribe(subscriber);
    subscriber = NULL;
}
