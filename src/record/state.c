/* SPDX-License-Identifier: Apache-2.0 */
#include "record/state.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/libc.h"

struct snd_recording snd_rec = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .settled = PTHREAD_COND_INITIALIZER,
    .folder = SND_OWNFD_NONE,
    .file = SND_OWNFD_NONE,
    .table_chunk = SND_NO_CHUNK,
};
pthread_mutex_t         snd_control = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
struct snd_file_header *snd_header;

uint32_t snd_subject(void)
{
    return snd_rec.subject_pid ? snd_rec.subject_pid : (uint32_t)getpid();
}

/* ------------------------------------------------------------------- locks */

static SONDE_THREAD_LOCAL_ struct {
    uint32_t busy;
    int      cancel;
} held; /* as they were before snd_lock() */

void snd_lock(void)
{
    uint32_t busy = sonde_lane_.busy;
    int      cancel;

    sonde_lane_.busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&snd_rec.lock);
    held.busy = busy;
    held.cancel = cancel;
}

void snd_lock_forget(void)
{
    uint32_t busy = held.busy;

    pthread_setcancelstate(held.cancel, NULL);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sonde_lane_.busy = busy;
}

void snd_unlock(void)
{
    pthread_mutex_unlock(&snd_rec.lock);
    snd_lock_forget();
}

void snd_wake_init(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&snd_rec.wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

void snd_locks_remake(void)
{
    const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

    memcpy(&snd_control, &fresh, sizeof snd_control);
    pthread_mutex_init(&snd_rec.lock, NULL);
    pthread_cond_init(&snd_rec.settled, NULL);
    snd_wake_init();
}
