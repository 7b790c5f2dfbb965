/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "probes/cuda/cuda_calls.h"
#include "probes/cuda/cuda.h"
#include "probes/cuda/cuda_devices.h"
#include "probes/cuda/flusher.h"
#include "probes/cuda/library.h"
#include "probes/cuda/works.h"
#include "sonde/record.h"

static const uint32_t kinds[] = { CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY, CUPTI_MEMCPY2,
                                  CUPTI_MEMSET, CUPTI_OVERHEAD };
#define KINDS SND_COUNT_OF(kinds)

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint     users;
static pid_t           owner; /* the process that started: CUDA is not to be used in its children */
static atomic_bool     has_ended;
static uint64_t        first_buffers; /* snd_works_buffers() at the start */
static uint64_t        flushed_call;  /* snd_calls_latest() when all was last waited for */
static bool            is_shared;     /* another profiler has CUPTI's callbacks */
static char            error_text[512], description[512];

/* ------------------------------------------------------------------------ flush */

static bool is_usable(void)
{
    return users > 0 && owner == getpid() && !atomic_load(&has_ended);
}

/* Waits for all work launched up to now, and has CUPTI hand it over. */
static void flush(void)
{
    uint64_t call = snd_calls_latest();

    if (call == flushed_call && snd_calls_are_on())
        return;
    snd_calls_wait_for_devices();
    snd_works_flushing(true);
    snd_cupti.ActivityFlushAll(CUPTI_FLUSH_FORCED);
    snd_works_flushing(false);
    flushed_call = call;
}

/* ---------------------------------------------------------------- the process's life */

/* The recorder is about to end its file, or to pause. */
static void before_end(bool closes)
{
    if (!is_usable())
        return;
    flush();
    if (closes)
        snd_devices_forget();
}

static void at_exit(void)
{
    if (is_usable()) {
        snd_flusher_stop();
        flush();
    }
    atomic_store(&has_ended, true);
}

static void in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    memcpy(&control, &fresh, sizeof control);
    users = 0;
    snd_flusher_in_child();
    snd_works_in_child();
}

static void watch_process(void)
{
    static bool is_watched;

    if (is_watched)
        return;
    is_watched = true;
    atexit(at_exit);
    pthread_atfork(NULL, NULL, in_child);
    sonde_before_end(before_end);
}

/* --------------------------------------------------------------- start and stop */

/* Versions that do not know this fill every buffer themselves. */
static void tell_zeroed(size_t are_zeroed)
{
    size_t size = sizeof are_zeroed;

    snd_cupti.ActivitySetAttribute(CUPTI_ZEROED_BUFFERS, &size, &are_zeroed);
}

/* Whoever uses CUPTI next has its defaults. */
static void disable_kinds(void)
{
    for (size_t i = 0; i < KINDS; i++)
        snd_cupti.ActivityDisable(kinds[i]);
    tell_zeroed(0);
}

static uint32_t enable_kinds(void)
{
    uint32_t result = snd_cupti.ActivityRegisterCallbacks(snd_works_requested, snd_works_completed);

    tell_zeroed(result == CUPTI_OK);
    for (size_t i = 0; i < KINDS && result == CUPTI_OK; i++)
        result = snd_cupti.ActivityEnable(kinds[i]);
    return result;
}

/* Callbacks first: they fail if another tool uses CUPTI, before its buffers are touched. */
static uint32_t turn_on(const struct sonde_cuda_options *options)
{
    uint32_t result = snd_calls_on(!options->light);

    is_shared = options->share && result == CUPTI_E_MULTIPLE_SUBSCRIBERS;
    if (result != CUPTI_OK && !is_shared)
        return result;
    snd_works_begin();
    result = enable_kinds();
    if (result != CUPTI_OK) {
        disable_kinds();
        snd_calls_off();
        return result;
    }
    return CUPTI_OK;
}

/* Notes in the trace if CUPTI handed over nothing, which happens beside another profiler. */
static void note_nothing(void)
{
    if (is_shared && snd_works_buffers() == first_buffers)
        snd_devices_write_absent(
            "CUPTI, whose callbacks another profiler of this process has, handed "
            "over no GPU work; use a process that has not used it");
}

static void turn_off(void)
{
    snd_flusher_stop();
    flush();
    note_nothing();
    snd_calls_off();
    disable_kinds();
    snd_devices_forget();
}

static int fail(void)
{
    snd_devices_write_absent(error_text);
    return -1;
}

static int start(const struct sonde_cuda_options *options)
{
    char why[400];

    if (!snd_cupti_open(options->cupti, why, sizeof why) ||
        !snd_cupti_suits(snd_devices_ask_runtime(), why, sizeof why)) {
        snprintf(error_text, sizeof error_text, "GPU work is not recorded: %s", why);
        return fail();
    }
    uint32_t result = turn_on(options);
    if (result != CUPTI_OK) {
        snd_cupti_explain(result, why, sizeof why);
        snprintf(error_text, sizeof error_text, "GPU work is not recorded: %s", why);
        return fail();
    }
    snprintf(description, sizeof description, "{\"cupti\": \"%s\", \"version\": %u, \"calls\": %s}",
             snd_cupti_path(), snd_cupti_version(), snd_calls_are_on() ? "true" : "false");
    owner = getpid();
    first_buffers = snd_works_buffers();
    users = 1;
    watch_process();
    snd_flusher_start();
    if (!is_shared || options->light)
        return 0;
    snprintf(
        error_text, sizeof error_text,
        "GPU work is recorded without the operators that launched it: another profiler of this "
        "process, such as torch.profiler, has CUPTI's callbacks; use a process that has not "
        "used it");
    return 1;
}

int sonde_cuda_start(const struct sonde_cuda_options *options)
{
    int result = 0;

    pthread_mutex_lock(&control);
    error_text[0] = '\0';
    if (!options || options->struct_size != sizeof *options) {
        snprintf(error_text, sizeof error_text,
                 "GPU work is not recorded: the probe was given options of another version");
        result = -1;
    } else if (users > 0) {
        users++;
    } else {
        result = start(options);
    }
    pthread_mutex_unlock(&control);
    return result;
}

void sonde_cuda_stop(void)
{
    pthread_mutex_lock(&control);
    if (users > 1) {
        flush();
        users--;
    } else if (users == 1) {
        if (is_usable())
            turn_off();
        users = 0;
    }
    pthread_mutex_unlock(&control);
}

void sonde_cuda_again(void)
{
    pthread_mutex_lock(&control);
    if (is_usable())
        enable_kinds();
    pthread_mutex_unlock(&control);
}

const char *sonde_cuda_error(void)
{
    return error_text;
}

const char *sonde_cuda_describe(void)
{
    return description;
}
