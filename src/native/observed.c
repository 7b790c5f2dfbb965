/* SPDX-License-Identifier: Apache-2.0 */
#include "native/observed.h"

#include <stdlib.h>
#include <string.h>

static struct snd_key pid_key(uint32_t pid)
{
    return (struct snd_key){ pid, 0, 0 };
}

static struct snd_key tid_key(uint32_t pid, uint32_t tid)
{
    return (struct snd_key){ pid, tid, 0 };
}

struct snd_seen_process *snd_observed_process(struct snd_observed *o, uint32_t pid)
{
    uint32_t at;

    return snd_map_get(&o->by_pid, pid_key(pid), &at) ? &o->processes[at] : NULL;
}

struct snd_seen_process *snd_observed_add_process(struct snd_observed *o, uint32_t pid,
                                                  uint32_t parent)
{
    struct snd_seen_process *known = snd_observed_process(o, pid);

    if (known)
        return known;
    if (!snd_grow(&o->processes, &o->process_capacity, o->process_count, sizeof *o->processes) ||
        !snd_map_put(&o->by_pid, pid_key(pid), o->process_count))
        return NULL;
    known = &o->processes[o->process_count++];
    *known = (struct snd_seen_process){ .pid = pid, .parent = parent };
    o->living++;
    return known;
}

struct snd_seen_thread *snd_observed_thread(struct snd_observed *o, uint32_t pid, uint32_t tid)
{
    uint32_t at;

    if (snd_map_get(&o->by_tid, tid_key(pid, tid), &at))
        return &o->threads[at];
    struct snd_seen_process *process = snd_observed_add_process(o, pid, 0);
    if (!process ||
        !snd_grow(&o->threads, &o->thread_capacity, o->thread_count, sizeof *o->threads) ||
        !snd_map_put(&o->by_tid, tid_key(pid, tid), o->thread_count))
        return NULL;
    process->threads++;
    struct snd_seen_thread *thread = &o->threads[o->thread_count++];
    *thread = (struct snd_seen_thread){ .pid = pid, .tid = tid };
    return thread;
}

void snd_observed_fork(struct snd_observed *o, uint32_t pid, uint32_t tid, uint32_t parent,
                       uint32_t parent_tid, uint64_t ns)
{
    uint32_t at;
    char     name[SND_COMM_MAX] = "";

    if (snd_map_get(&o->by_tid, tid_key(parent, parent_tid), &at))
        memcpy(name, o->threads[at].name, sizeof name);
    if (pid != parent) {
        struct snd_seen_process *child = snd_observed_add_process(o, pid, parent);
        struct snd_seen_process *from = snd_observed_process(o, parent);
        if (child && from) {
            child->is_python = from->is_python; /* it maps no interpreter of its own */
            (void)snd_mappings_copy(&child->mappings, &from->mappings);
        }
    }
    struct snd_seen_thread *thread = snd_observed_thread(o, pid, tid);
    if (thread) {
        memcpy(thread->name, name, sizeof name);
        thread->start_ns = ns;
    }
}

/* Its number may become another's. The places stay: a run has thousands, not millions. */
void snd_observed_exit(struct snd_observed *o, uint32_t pid, uint32_t tid)
{
    struct snd_seen_process *process = snd_observed_process(o, pid);

    if (!snd_map_remove(&o->by_tid, tid_key(pid, tid)) || !process || process->threads == 0 ||
        --process->threads > 0)
        return;
    snd_mappings_clear(&process->mappings);
    snd_map_remove(&o->by_pid, pid_key(pid));
    o->living--;
}

void snd_observed_release(struct snd_observed *o)
{
    for (uint32_t i = 0; i < o->process_count; i++)
        snd_mappings_clear(&o->processes[i].mappings);
    free(o->processes);
    free(o->threads);
    snd_map_release(&o->by_pid);
    snd_map_release(&o->by_tid);
    snd_mapped_files_release(&o->files);
}
