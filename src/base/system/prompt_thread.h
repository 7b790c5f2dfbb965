/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/prompt_thread.h - a thread that does little, and that at the right time.
 *
 * A sampler that waits for a processor gets one when a thread that it samples goes to sleep: it would see sleeping
 * threads too often. One that empties a buffer of the kernel's comes when it has run over.
 *
 * Layer: base (libc only). Threads: sets the calling one.
 */
#ifndef SND_BASE_SYSTEM_PROMPT_THREAD_H
#define SND_BASE_SYSTEM_PROMPT_THREAD_H

#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SND_PROMPT_SLICE_NS 100000u /* the least that the kernel grants */
#define SND_PROMPT_NICE (-20)

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

/*
 * Of many threads that are ready the calling one is the first, and has more than an equal part of the time: for root, and
 * who else may. Returns the nice value of before, for snd_thread_unprefer(); threads that it starts meanwhile have it too.
 */
static inline int snd_thread_prefer(void)
{
    int before = getpriority(PRIO_PROCESS, 0);

    setpriority(PRIO_PROCESS, 0, SND_PROMPT_NICE);
    return before;
}

static inline void snd_thread_unprefer(int before)
{
    setpriority(PRIO_PROCESS, 0, before);
}

#endif
