/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_rss.c - the resident size of the process, over time.
 *
 * A thread of its own, so that the program's threads are not held up; ten times a second, as
 * mprof does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/system/named_thread.h"
#include "base/files/own_table.h"
#include "format/known.h"
#include "probes/python/memory/memory_counts.h"

#define INTERVAL_NS 100000000L

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  wake;
    pthread_t       thread;
    bool            on, tried, stopping;
} rss = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

uint64_t snd_rss_bytes(void)
{
    char    text[128] = "";
    int     file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : -1;

    if (file >= 0)
        close(file);
    unsigned long long size = 0, resident = 0;
    if (length <= 0 || sscanf(text, "%llu %llu", &size, &resident) != 2)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *watch(void *unused)
{
    struct timespec until;
    bool            apart = false;

    (void)unused;
    snd_memory_mine_.inside = 1; /* what this thread takes is not the program's */
    pthread_mutex_lock(&rss.lock);
    while (!rss.stopping) {
        sonde_counter(snd_known_name(SND_KNOWN_RSS), (double)snd_rss_bytes());
        if (!apart &&
            sonde_lane_own()->cur) /* the trace file exists, with a number for all threads */
            apart = snd_owntable_enter();
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += INTERVAL_NS;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&rss.wake, &rss.lock, &until);
    }
    pthread_mutex_unlock(&rss.lock);
    return NULL;
}

/* With every signal blocked: the program's handlers belong on the program's threads. */
void snd_rss_start(void)
{
    sigset_t all, before;

    if (rss.tried)
        return;
    rss.tried = true;
    rss.stopping = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rss.on = snd_named_thread(&rss.thread, NULL, watch, NULL, "sonde-rss") == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void snd_rss_stop(void)
{
    rss.tried = false;
    if (!rss.on)
        return;
    pthread_mutex_lock(&rss.lock);
    rss.stopping = true;
    pthread_cond_signal(&rss.wake);
    pthread_mutex_unlock(&rss.lock);
    pthread_join(rss.thread, NULL);
    rss.on = false;
    sonde_counter(snd_known_name(SND_KNOWN_RSS), (double)snd_rss_bytes());
}

void snd_rss_forget(void)
{
    rss.on = rss.tried = false;
    pthread_mutex_init(&rss.lock, NULL);
    pthread_cond_init(&rss.wake, NULL);
}
