/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/outside/observe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/prompt_thread.h"
#include "base/system/recorder_library.h"
#include "format/metadata.h"
#include "pystack/outside/halt.h"
#include "pystack/sampling/pace.h"
#include "pystack/sampling/sampling.h"

/* ------------------------------------------------------------- the recorder */

static struct {
    enum sonde_status (*start)(const struct sonde_options *options, struct sonde_error *err);
    enum sonde_status (*stop)(struct sonde_error *err);
    void (*metadata)(const char *key, const char *value);
} calls;

static enum sonde_status load(struct snd_recorder *recorder, struct sonde_error *err)
{
    const struct snd_recorder_symbol wanted[] = {
        { "sonde_start", &calls.start },
        { "sonde_stop", &calls.stop },
        { "sonde_metadata", &calls.metadata },
        { "sonde_epoch_", &recorder->epoch },
        { "sonde_intern", &recorder->intern },
        { "sonde_intern_frame_in", &recorder->frame },
        { "sonde_intern_stack", &recorder->stack },
        { "sonde_thread_of", &recorder->thread },
        { "sonde_sample_run", &recorder->sample },
        { "sonde_tally", &recorder->tally },
    };

    recorder->clock = snd_recorder_clock;
    return snd_recorder_load(wanted, SND_COUNT_OF(wanted), err);
}

enum sonde_status snd_observe_check(struct sonde_error *err)
{
    struct snd_recorder recorder;

    return load(&recorder, err);
}

/* ----------------------------------------------------------------- sampling */

static void say_what_it_is(const struct snd_python *python, uint64_t period_ns)
{
    char text[32];

    snprintf(text, sizeof text, "3.%u", python->layout.minor);
    calls.metadata(snd_meta_key(SND_META_PYTHON_VERSION), text);
    snprintf(text, sizeof text, "%g", 1e9 / (double)period_ns);
    calls.metadata(snd_meta_key(SND_META_PYTHON_SAMPLE_HZ), text);
    calls.metadata(snd_meta_key(SND_META_PYTHON_SAMPLE), "on, by sonde attach");
    calls.metadata(snd_meta_key(SND_META_PYTHON_SAMPLE_NATIVE), "no");
}

/* In pieces, to notice the end. */
static void wait_until(uint64_t ns, const volatile int *quit)
{
    const uint64_t most = 100000000, second = 1000000000;
    uint64_t       now;

    while (!*quit && (now = snd_clock_ns(CLOCK_MONOTONIC)) < ns) {
        uint64_t        until = ns - now < most ? ns : now + most;
        struct timespec at = { (time_t)(until / second), (long)(until % second) };
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    }
}

static void sample(struct snd_sampling *sampling, const struct snd_observation *o)
{
    struct snd_pace pace = snd_pace_begin(o->period_ns);
    uint64_t        missed = 0;

    snd_thread_prompt();
    while (!*o->quit && snd_sampling_round(sampling, missed) == SND_ROUND_MADE) {
        missed = snd_pace_next(&pace);
        wait_until(pace.due_ns, o->quit);
    }
    snd_sampling_count_own(sampling);
}

enum sonde_status snd_observe(const struct snd_observation *o, struct sonde_error *err)
{
    struct snd_python    python;
    struct snd_recorder  recorder = { 0 };
    struct snd_sampling *sampling;
    struct sonde_options options = SONDE_OPTIONS_INIT;
    enum sonde_status    status = snd_python_find(&python, o->pid, err);

    if (status != SONDE_OK)
        return status;
    status = load(&recorder, err);
    if (status != SONDE_OK)
        return status;
    status = snd_sampling_new(&python, &recorder, o->period_ns, &sampling, err);
    if (status != SONDE_OK)
        return status;
    if (!o->nonblocking)
        snd_sampling_on_running(sampling, snd_halt_read, &python);
    options.path = o->path;
    options.subject_pid = (uint32_t)o->pid;
    status = calls.start(&options, err);
    if (status == SONDE_OK) {
        say_what_it_is(&python, o->period_ns);
        sample(sampling, o);
    }
    snd_sampling_free(sampling);
    return status == SONDE_OK ? calls.stop(err) : status;
}
