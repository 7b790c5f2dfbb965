/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/life.c - what happens to the counts when the process is loaded, forks, unloads code, ends.
 *
 * exec:  what was counted stays in the file. The new program has the library again, by LD_PRELOAD.
 * fork:  a child counts from 0, in a file of its own (stack_tallies.h). What it frees of its parent's blocks
 *        counts for neither.
 * exit:  the recording ends after the destructors of all libraries, which free memory, too.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "probes/heap/hooks/heap_calls.h"
#include "probes/heap/locks.h"
#include "probes/heap/hooks/mappings.h"
#include "probes/heap/counts/heap_notes.h"
#include "probes/heap/counts/heap_samples.h"
#include "sonde/record.h"

static enum snd_heap_inside before_fork;

static void prepare(void)
{
    enum snd_heap_inside before = snd_heap_self.inside;

    snd_heap_self.inside = SND_PREPARING; /* other handlers may allocate */
    snd_heap_mappings_lock();
    snd_heap_stacks_lock();
    snd_heap_samples_lock();
    snd_heap_walk_lock();
    snd_heap_lock(&snd_heap_counting);
    before_fork = before;
}

static void release(void)
{
    snd_heap_unlock(&snd_heap_counting);
    snd_heap_walk_unlock();
    snd_heap_samples_unlock();
    snd_heap_stacks_unlock();
    snd_heap_mappings_unlock();
}

static void in_parent(void)
{
    enum snd_heap_inside before = before_fork;

    release();
    snd_heap_self.inside = before;
}

static void in_child(void)
{
    release();
    snd_heap_stacks_in_child();
    snd_heap_self.inside = before_fork;
}

void snd_heap_forget_code(void)
{
    enum snd_heap_inside before = snd_heap_self.inside;

    snd_heap_self.inside = SND_PREPARING;
    snd_heap_walk_forget();
    snd_heap_stacks_forget();
    snd_heap_self.inside = before;
}

static void write_child(bool even_empty)
{
    enum snd_heap_inside before = snd_heap_self.inside;

    if (before != SND_OUTSIDE)
        return; /* _exit() or setuid() in a signal handler that interrupted us */
    snd_heap_self.inside = SND_PREPARING;
    snd_heap_stacks_flush(even_empty);
    snd_heap_self.inside = before;
}

void snd_heap_flush(void)
{
    write_child(false);
}

void snd_heap_open_file(void)
{
    write_child(true);
}

__attribute__((constructor)) static void load(void)
{
    snd_heap_ready();
    snd_heap_operators_init();
    if (snd_heap_mode <= SND_HEAP_OFF)
        return;
    if (dlsym(RTLD_DEFAULT, "malloc") != (void *)malloc)
        fprintf(stderr,
                "sonde: allocations are not recorded: the program's own file defines malloc, "
                "and calls it directly\n");
    snd_heap_walk_threads();
    pthread_atfork(prepare, in_parent, in_child);
    sonde_end_late(snd_heap_flush);
    snd_heap_flush(); /* what libraries that were loaded before allocated: the recording has begun */
}
