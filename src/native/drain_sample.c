/* SPDX-License-Identifier: Apache-2.0 */
/* native/drain_sample.c - a sample of a thread into the recording: its time, its thread, what it stands for. */
#include "native/drain.h"

uint64_t snd_drain_raw(struct snd_drain *d, uint64_t ns)
{
    double   rate = d->now.ns > d->before.ns
                        ? (double)(d->now.raw - d->before.raw) / (double)(d->now.ns - d->before.ns)
                        : 1;
    double   away = ((double)ns - (double)d->now.ns) * rate;
    uint64_t raw = d->now.raw + (uint64_t)(int64_t)away;

    if (raw < d->last_raw)
        raw = d->last_raw;
    d->last_raw = raw;
    return raw;
}

/* The recording's number of a thread, which it has from `ns` on if it is new. */
static uint32_t number_thread(struct snd_drain *d, struct snd_seen_thread *thread, uint32_t parent,
                              uint64_t ns)
{
    if (thread->id == 0) {
        struct sonde_process_thread sampled = { .struct_size = sizeof sampled,
                                                .pid = thread->pid,
                                                .tid = thread->tid,
                                                .parent_pid = parent };
        sampled.start = snd_drain_raw(d, ns);
        thread->id = d->recorder.thread(&sampled, thread->name[0] ? thread->name : NULL);
    }
    return thread->id;
}

void snd_drain_write(struct snd_drain *d, struct snd_seen_thread *thread, uint32_t stack,
                     uint64_t ns, uint64_t covered, uint32_t state)
{
    const struct snd_seen_process *process = snd_observed_process(&d->observed, thread->pid);
    struct sonde_sample            sample = {
                   .struct_size = sizeof sample,
                   .stack = stack,
                   .thread = number_thread(d, thread, process ? process->parent : thread->parent,
                                ns > covered ? ns - covered : ns),
                   .state = state | SONDE_SAMPLED_NATIVE,
                   .samples = 1,
                   .covered_ns = covered,
                   .at = snd_drain_raw(d, ns),
    };

    d->recorder.sample(&sample);
}
