/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/flusher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/system/named_thread.h"
#include "probes/cuda/cuda_calls.h"
#include "probes/cuda/library.h"
#include "sonde/record.h"

#define FLUSH_PERIOD_MS 250 /* the most finished GPU work that a killed program loses */

static struct {
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  end;
    bool            is_on, is_ending;
} flusher = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *flush_now_and_then(void *unused)
{
    uint64_t call = 0;

    (void)unused;
    pthread_mutex_lock(&flusher.lock);
    while (!flusher.is_ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += FLUSH_PERIOD_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        int      waited = pthread_cond_timedwait(&flusher.end, &flusher.lock, &until);
        uint64_t latest = snd_calls_latest();
        bool     may_have_work = latest != call || !snd_calls_are_on();
        if (waited == ETIMEDOUT && !flusher.is_ending && may_have_work) {
            call = latest;
            pthread_mutex_unlock(&flusher.lock);
            snd_cupti.ActivityFlushAll(0);
            pthread_mutex_lock(&flusher.lock);
        }
    }
    pthread_mutex_unlock(&flusher.lock);
    return NULL;
}

/* If no thread can be created, a killed program's file has only the buffers that CUPTI had filled. */
void snd_flusher_start(void)
{
    pthread_condattr_t attributes;
    sigset_t           all, before;

    if (!sonde_under_run() || flusher.is_on)
        return;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&flusher.end, &attributes);
    pthread_condattr_destroy(&attributes);
    flusher.is_ending = false;
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    flusher.is_on = snd_named_thread(&flusher.thread, NULL, flush_now_and_then, NULL,
                                     "sonde-flusher") == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void snd_flusher_stop(void)
{
    if (!flusher.is_on)
        return;
    pthread_mutex_lock(&flusher.lock);
    flusher.is_ending = true;
    pthread_cond_signal(&flusher.end);
    pthread_mutex_unlock(&flusher.lock);
    pthread_join(flusher.thread, NULL);
    flusher.is_on = false;
}

void snd_flusher_in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    memcpy(&flusher.lock, &fresh, sizeof flusher.lock);
    flusher.is_on = false;
}
