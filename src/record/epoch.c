/* SPDX-License-Identifier: Apache-2.0 */
#include "record/epoch.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t last_epoch;
static uint32_t marking; /* the epoch that is on, or 0: a new process finds the other wiped */
static uint64_t since;   /* when the latest was put on */

bool snd_epoch_is_on(void)
{
    return marking != 0;
}

static void set_epoch(uint32_t epoch)
{
    marking = epoch;
    __atomic_store_n(&sonde_epoch_.value, epoch + 1, __ATOMIC_RELEASE);
}

void snd_epoch_on(void)
{
    if (++last_epoch >= SND_EPOCH_WIPED - 1)
        last_epoch = 1;
    __atomic_store_n(&since, sonde_clock(), __ATOMIC_RELAXED);
    set_epoch(last_epoch);
}

uint64_t sonde_marking_since(void)
{
    return __atomic_load_n(&since, __ATOMIC_RELAXED);
}

void snd_epoch_off(void)
{
    set_epoch(0);
}

void snd_epoch_init(void)
{
    snd_epoch_off();
    if (sizeof sonde_epoch_ % (size_t)sysconf(_SC_PAGESIZE) == 0 &&
        (uintptr_t)&sonde_epoch_ % (size_t)sysconf(_SC_PAGESIZE) == 0) {
        int rc = madvise(&sonde_epoch_, sizeof sonde_epoch_, MADV_WIPEONFORK);
        (void)rc; /* before Linux 4.14: fork() is noticed all the same, by its handlers */
    }
}
