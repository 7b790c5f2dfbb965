/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session/lifecycle.c - what happens to a recording when its process is loaded, forks, ends.
 *
 * exec:   published events stay in the file; the new program, if it records, writes another.
 * _exit,
 * signal: published events stay in the file, which says that it was not closed.
 * fork:   the child leaves its parent's file alone and makes its own at its first event, so
 *         that fork + exec costs nothing. Where the handlers of fork() do not run (_Fork(), a
 *         system call clone) the child's first call finds its epoch wiped (snd_fork_notice).
 * dlclose: the library stays (linked with -z nodelete): threads hold pointers into it. A plugin that
 *         the static library is part of goes: the recording ends, and nothing is left that would call
 *         into it.
 */
#include <pthread.h>

#include "record/clock.h"
#include "record/options/environment.h"
#include "record/epoch.h"
#include "record/session/fork.h"
#include "record/thread/lane.h"
#include "record/session/recording.h"
#include "record/say.h"
#include "record/session/session.h"
#include "record/unload.h"

/*
 * What marks that are inlined use (sonde/record.h). Here, so that a static program that marks has
 * this file, with its constructor.
 */
SONDE_THREAD_LOCAL_ struct sonde_lane sonde_lane_;
struct sonde_epoch_page               sonde_epoch_;

/* fork() in a signal handler that interrupted the recorder would wait for itself for ever. */
static SONDE_THREAD_LOCAL_ bool holds_locks;

static void before_fork(void)
{
    if (sonde_lane_.busy)
        return;
    snd_fork_lock();
    holds_locks = true;
}

static void after_fork_in_parent(void)
{
    if (holds_locks)
        snd_fork_unlock();
    holds_locks = false;
}

static void after_fork_in_child(void)
{
    snd_fork_in_child(holds_locks ? SND_SURVIVOR_CALLER : SND_SURVIVOR_UNKNOWN);
    if (holds_locks)
        snd_lock_forget();
    holds_locks = false;
}

/*
 * Before the constructors of a program that has this library in it, and after its destructors, as it is
 * where the library is shared: what they mark is recorded.
 */
#define FIRST_AND_LAST 101 /* of those that are not the compiler's own */

__attribute__((constructor(FIRST_AND_LAST))) static void load(void)
{
    struct sonde_options options;

    snd_say_init();
    snd_clock_init();
    if (!snd_lanes_init())
        return; /* no key to be had: threads could not be detached, so none is attached */
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    snd_epoch_init();
    snd_wake_init();
    snd_unload_init();
    snd_rec.usable = true;
    if (snd_environment_options(&options))
        snd_session_from_run(&options);
}

/* exit() in a signal handler that interrupted the recorder: it would wait for itself. */
static void end(void)
{
    if (!sonde_lane_.busy)
        snd_session_end();
}

/* ---- after all destructors */

static void (*before_late_end)(void);

extern int __cxa_atexit(void (*call)(void *), void *argument, void *library);

static void end_late(void *unused)
{
    (void)unused;
    before_late_end();
    end();
}

/*
 * What is registered while libraries are being loaded is called after the loader's own destructor, which calls
 * those of libraries. No library is named (NULL): with one, it would be called when that is unloaded.
 */
bool sonde_end_late(void (*call)(void))
{
    if (!before_late_end && __cxa_atexit(end_late, NULL, NULL) == 0)
        before_late_end = call;
    return before_late_end == call;
}

/* The program promises not to call the plugin any more: threads that end are all that may come. */
static void leave_plugin(void)
{
    bool for_good = snd_unload_is_now();

    snd_rec.usable = false;
    snd_lanes_uninit();
    if (for_good) {
        snd_threads_release();
        snd_recording_release();
    }
}

__attribute__((destructor(FIRST_AND_LAST))) static void unload(void)
{
    if (!before_late_end)
        end();
    else if (!sonde_lane_.busy)
        snd_session_tell();
    if (snd_rec.usable && snd_unload_is_possible() && !sonde_lane_.busy)
        leave_plugin();
}
