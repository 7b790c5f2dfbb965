/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/prompt_thread.h - a thread that does little, and that at the right time.
 *
 * A sampler that waits for a processor gets one when a thread that it samples goes to sleep: it would see sleeping
 * threads too often.
 *
 * Layer: base (libc only). Threads: sets the calling one.
 */
#ifndef SND_BASE_SYSTEM_PROMPT_THREAD_H
#define SND_BASE_SYSTEM_PROMPT_THREAD_H

#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SND_PROMPT_SLICE_NS 100000u /* the least that the kernel grants */

/* The first version of the kernel's struct sched_attr, which not every libc declares. */
struct snd_sched_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t  nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/*
 * Timers of the calling thread end when they should, and it then runs at once: since Linux 6.12 one whose slice is shorter
 * than that of the thread that runs takes its place. It is given no more time than before. Older kernels ignore the slice.
 */
static inline void snd_thread_prompt(void)
{
    struct snd_sched_attr attr = { .size = sizeof attr };

    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) != 0 || attr.policy != SCHED_OTHER)
        return;
    attr.size = sizeof attr;
    attr.runtime = SND_PROMPT_SLICE_NS;
    syscall(SYS_sched_setattr, 0, &attr, 0);
}

#endif
