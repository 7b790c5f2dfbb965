/* SPDX-License-Identifier: Apache-2.0 */
#include "record/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "format/metadata.h"
#include "record/file/bus_errors.h"
#include "record/options/environment.h"
#include "record/epoch.h"
#include "record/session/fork.h"
#include "record/thread/lane.h"
#include "record/tables/run_metadata.h"
#include "record/file/trace_paths.h"
#include "record/session/recording.h"
#include "record/say.h"
#include "record/options/step_schedule.h"
#include "record/options/start_options.h"

static uint32_t
    starts; /* counts starts: a callback may stop and restart, and its caller must notice */

/* A thread that is cancelled with a lock held would keep it for ever. Returns the state before. */
static int take_control(void)
{
    int cancel;

    snd_fork_notice();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&snd_control);
    return cancel;
}

static void leave_control(int cancel)
{
    pthread_mutex_unlock(&snd_control);
    pthread_setcancelstate(cancel, NULL);
}

/* A thread in the middle of a mark looks at the phase. Control lock held, the other not. */
static void set_phase(enum snd_phase phase)
{
    snd_lock();
    snd_rec.phase = phase;
    snd_unlock();
}

static void go_idle(void)
{
    set_phase(SND_IDLE);
    snd_place_close();
    snd_bus_release();
}

/* -------------------------------------------------------- callbacks before the end */

static void (*told[4])(bool closes);

bool sonde_before_end(void (*call)(bool closes))
{
    size_t i = 0;
    int    cancel = take_control();

    while (i < SND_COUNT_OF(told) && told[i] && told[i] != call)
        i++;
    bool has_room = i < SND_COUNT_OF(told);
    if (has_room)
        told[i] = call;
    leave_control(cancel);
    return has_room;
}

/* While events are still taken. Control lock held, the other not. */
static void tell_of_end(bool closes)
{
    if (sonde_epoch() == 0)
        return;
    for (size_t i = 0; i < SND_COUNT_OF(told) && told[i]; i++)
        told[i](closes);
}

/* Closes the file and calls the callback for finished cycles. Control lock held, the other not. */
static void finish_cycle(bool discard)
{
    if (snd_rec.phase == SND_OPEN)
        tell_of_end(true);
    snd_lock();
    snd_epoch_off();
    bool open = snd_rec.phase == SND_OPEN;
    if (open)
        snd_recording_close();
    else
        snd_rec.phase = SND_WAITING;
    snd_unlock();
    if (!open)
        return;
    if (discard) {
        snd_place_remove();
    } else if (snd_rec.on_cycle) {
        struct sonde_cycle cycle = { snd_rec.file_path, snd_rec.cycle, snd_rec.step };
        snd_rec.on_cycle(&cycle, snd_rec.user);
    }
}

/* -------------------------------------------------------------------- steps */

static void mark_step(void)
{
    if (snd_lane_enter(2, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        const uint64_t words[2] = { sonde_clock() << 8 | SND_EV_STEP, snd_rec.step };
        snd_lane_write(&sonde_lane_, words, 2);
        snd_lane_leave();
    }
}

/* Control lock held. Does what `action` asks for, from whatever state. */
static enum sonde_status begin_action(enum sonde_action action, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    if (action == SONDE_ACTION_NONE)
        return SONDE_OK;
    snd_lock();
    if (snd_rec.phase != SND_OPEN && snd_rec.phase != SND_FORKED) {
        status = snd_recording_open(err);
        if (status == SONDE_OK) {
            /* Until the warm-up is over nothing counts. */
            if (action == SONDE_ACTION_WARMUP)
                __atomic_store_n(&snd_header->valid_from, UINT64_MAX, __ATOMIC_RELAXED);
            if (!snd_rec.paused)
                snd_epoch_on();
        }
    }
    if (status == SONDE_OK && snd_rec.phase == SND_OPEN && action != SONDE_ACTION_WARMUP &&
        snd_header->valid_from == UINT64_MAX)
        __atomic_store_n(&snd_header->valid_from, sonde_clock(), __ATOMIC_RELEASE);
    snd_unlock();
    return status;
}

/* Each cycle may fail for the same reason: only the first failure is reported. */
static void say_once(const char *message)
{
    if (!snd_rec.said)
        snd_say("%s; this cycle is not recorded", message);
    snd_rec.said = true;
}

/* A cycle ends with a step: the file's last one is whole. */
static void note_ended(uint64_t step)
{
    char number[24];
    int  length = snprintf(number, sizeof number, "%" PRIu64, step);

    snd_lock();
    if (snd_rec.phase == SND_OPEN)
        snd_metadata_write(snd_meta_key(SND_META_STEPS_ENDED), number, (size_t)length);
    snd_unlock();
}

/* The schedule moves from `before` to the action of the next step. */
static void move_schedule(enum sonde_action before)
{
    snd_rec.step++;
    enum sonde_action action = sonde_schedule_action(&snd_rec.schedule, snd_rec.step);
    if (before == SONDE_ACTION_RECORD_AND_SAVE) {
        uint32_t mine = starts;
        note_ended(snd_rec.step - 1);
        finish_cycle(false);
        if (snd_rec.phase == SND_IDLE || starts != mine)
            return; /* the callback stopped it, or began another */
        snd_rec.cycle++;
    }
    struct sonde_error err;
    if (begin_action(action, &err) != SONDE_OK)
        say_once(err.message);
    if (action != SONDE_ACTION_NONE)
        mark_step();
}

/* `number` NULL: the one after the last. */
static void begin_step(const uint64_t *number)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE) {
        if (snd_schedule_is_set()) {
            move_schedule(sonde_schedule_action(&snd_rec.schedule, snd_rec.step));
        } else {
            if (number)
                snd_rec.step = *number;
            mark_step();
            snd_rec.step++;
        }
    }
    leave_control(cancel);
}

void sonde_step(void)
{
    begin_step(NULL);
}

void sonde_step_number(uint64_t number)
{
    begin_step(&number);
}

/* ----------------------------------------------------------- start and stop */

static enum sonde_status start(const struct sonde_options *options, struct sonde_error *err)
{
    if (snd_rec.phase != SND_IDLE)
        return snd_rec.from_run ? SONDE_OK
                                : snd_fail(err, SONDE_E_BUSY,
                                           "already recording to %s; a process has one recording "
                                           "at a time: stop it first",
                                           snd_rec.file_path);
    if (!snd_rec.usable)
        return snd_fail(err, SONDE_E_NOMEM,
                        "no thread-specific key (pthread_key_create) is available");
    enum sonde_status status = snd_options_take(options, err);
    if (status != SONDE_OK)
        return status;
    enum sonde_action action = sonde_schedule_action(&snd_rec.schedule, 0);
    starts++;
    snd_rec.said = snd_rec.barred = false;
    snd_place_open();
    snd_rec.file_path[0] = '\0';
    snd_rec.note_bytes = snd_rec.notes_lost = 0;
    set_phase(SND_WAITING);
    status = begin_action(action, err);
    if (status != SONDE_OK)
        go_idle();
    else if (snd_schedule_is_set() && action != SONDE_ACTION_NONE)
        mark_step();
    return status;
}

enum sonde_status sonde_start(const struct sonde_options *options, struct sonde_error *err)
{
    int               cancel = take_control();
    enum sonde_status status = start(options, err);
    leave_control(cancel);
    return status;
}

static void end_recording(void)
{
    uint32_t mine = starts;

    finish_cycle(snd_schedule_is_warming_up());
    if (starts != mine)
        return; /* the callback began another */
    go_idle();
    snd_rec.from_run = false;
}

enum sonde_status sonde_stop(struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    int cancel = take_control();
    if (snd_rec.phase == SND_IDLE)
        status = snd_fail(err, SONDE_E_STATE, "not recording");
    else if (!snd_rec.from_run)
        end_recording();
    leave_control(cancel);
    return status;
}

/* A program that has changed its user and executed this one may not write where it could. */
static enum sonde_status start_from_run(struct sonde_options options, struct sonde_error *err)
{
    enum sonde_status status = sonde_start(&options, err);
    bool              may_not = err->os_error == EACCES || err->os_error == EPERM;

    options.path = snd_environment_others();
    if (status == SONDE_OK || !may_not || !options.path)
        return status;
    struct sonde_error again;
    return sonde_start(&options, &again) == SONDE_OK ? SONDE_OK : status;
}

void snd_session_from_run(const struct sonde_options *options)
{
    struct sonde_error err = { .os_error = 0 };

    snd_rec.is_alone = snd_environment_is_heap();
    if (start_from_run(*options, &err) == SONDE_OK)
        snd_rec.from_run = true;
    else
        snd_say("%s; the program runs unrecorded", err.message);
}

void snd_session_tell(void)
{
    int cancel = take_control();
    tell_of_end(true);
    memset(told, 0, sizeof told);
    leave_control(cancel);
}

void snd_session_end(void)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE)
        end_recording();
    leave_control(cancel);
}

void sonde_pause(void)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE && !snd_rec.paused) {
        uint32_t epoch = sonde_epoch();
        size_t   i = epoch % SND_COUNT_OF(snd_rec.pauses);
        tell_of_end(false);
        snd_lock();
        snd_rec.paused = true;
        snd_epoch_off();
        snd_rec.pauses[i].epoch = epoch;
        snd_rec.pauses[i].at = sonde_clock();
        snd_unlock();
    }
    leave_control(cancel);
}

void sonde_resume(void)
{
    int cancel = take_control();
    if (snd_rec.paused) {
        snd_rec.paused = false;
        if (snd_rec.phase == SND_OPEN || snd_rec.phase == SND_FORKED)
            snd_epoch_on();
    }
    leave_control(cancel);
}

size_t sonde_trace_path(char *buffer, size_t size)
{
    int    cancel = take_control();
    size_t length = strlen(snd_rec.file_path);
    if (size > 0)
        snprintf(buffer, size, "%s", snd_rec.file_path);
    leave_control(cancel);
    return length;
}

bool sonde_under_run(void)
{
    int  cancel = take_control();
    bool result = snd_rec.from_run && snd_rec.phase != SND_IDLE;
    leave_control(cancel);
    return result;
}

void sonde_rank(uint32_t rank, uint32_t world_size, const char *source, const char *backend)
{
    struct snd_job *job = &snd_rec.job;

    snd_fork_notice();
    snd_lock();
    if (snd_rec.phase != SND_IDLE) {
        job->rank = rank;
        job->world_size = world_size;
        job->source = source;
        job->backend[0] = '\0';
        snd_plain_append(job->backend, sizeof job->backend, backend);
    }
    if (snd_rec.phase == SND_OPEN)
        snd_metadata_rank();
    snd_unlock();
}

void sonde_metadata(const char *key, const char *value)
{
    snd_fork_notice();
    snd_lock();
    if (snd_rec.phase != SND_IDLE)
        snd_metadata_keep(key, value);
    if (snd_rec.phase == SND_OPEN)
        snd_metadata_write(key, value, strlen(value));
    snd_unlock();
}
