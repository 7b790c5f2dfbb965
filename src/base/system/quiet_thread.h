/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/quiet_thread.h - a thread of the reading side: the program's handlers stay with its own threads.
 *
 * Layer: base (libc only). Threads: any.
 */
#ifndef SND_BASE_SYSTEM_QUIET_THREAD_H
#define SND_BASE_SYSTEM_QUIET_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* False: none to be had. A pipe that nobody reads ends it, and the program, as it would have. */
static inline bool snd_quiet_thread(pthread_t *thread, void *(*start)(void *), void *argument)
{
    sigset_t most, before;

    sigfillset(&most);
    sigdelset(&most, SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    int failed = pthread_create(thread, NULL, start, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

#endif
