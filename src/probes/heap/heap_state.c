/* SPDX-License-Identifier: Apache-2.0 */
/* probes/heap/heap_state.c - what all files of the folder see: the thread's own, the process, the lock of the counters. */
#include "probes/heap/counts/heap_notes.h"
#include "probes/heap/locks.h"

__thread struct snd_heap_thread snd_heap_self __attribute__((tls_model("initial-exec")));
enum snd_heap_mode              snd_heap_mode;
uint32_t                        snd_heap_pid;
uint64_t                        snd_heap_own_low, snd_heap_own_high;
struct snd_heap_lock            snd_heap_counting;
