/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/crew.h - one piece of work by several threads, the caller's among them.
 *
 * Layer: base (libc only). Threads: any.
 */
#ifndef SND_BASE_SYSTEM_CREW_H
#define SND_BASE_SYSTEM_CREW_H

#include <stddef.h>
#include <stdint.h>

#include "base/system/quiet_thread.h"

#define SND_CREW_MAX 16u

/*
 * Calls work() with each of `count` users, which are `size` bytes each, and returns when all have returned. The first is the
 * caller's; one for which no thread is to be had is not called: they take what there is to do from one list, so the others do it.
 */
static inline void snd_crew_work(void *(*work)(void *), void *users, size_t size, uint32_t count)
{
    pthread_t threads[SND_CREW_MAX];
    uint32_t  made = 1;

    while (made < count && made < SND_CREW_MAX &&
           snd_quiet_thread(&threads[made], work, (char *)users + made * size))
        made++;
    work(users);
    while (--made > 0)
        pthread_join(threads[made], NULL);
}

#endif
