/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/named_thread.h - a thread of ours in somebody else's program, with its name from the first moment on.
 *
 * Whoever counts the program's threads leaves ours out by their names ("sonde.."). A thread that names
 * itself has the program's name until it runs, so its creator lends it the name: a new thread has that of
 * the one that creates it.
 *
 * Layer: base (libc only). Threads: any.
 */
#ifndef SND_BASE_SYSTEM_NAMED_THREAD_H
#define SND_BASE_SYSTEM_NAMED_THREAD_H

#include <pthread.h>
#include <sys/prctl.h>

/* As pthread_create(); `name` has at most 15 bytes. */
static inline int snd_named_thread(pthread_t *thread, const pthread_attr_t *attributes,
                                   void *(*start)(void *), void *argument, const char *name)
{
    char own[16] = "";

    prctl(PR_GET_NAME, own);
    prctl(PR_SET_NAME, name);
    int failed = pthread_create(thread, attributes, start, argument);
    prctl(PR_SET_NAME, own);
    return failed;
}

#endif
