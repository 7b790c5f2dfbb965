/* SPDX-License-Identifier: Apache-2.0 */
#include "native/perf/rests.h"

#include <string.h>

#define LITTLE 32 /* a part of a thread's time that is less than sampling is sure of anyway */

static const char rest_text[] = "(not sampled)";

void snd_rests_exit(struct snd_drain *d, struct snd_seen_thread *thread,
                    const struct snd_seen_process *process, bool samples_itself, uint64_t ns)
{
    uint32_t at = (uint32_t)(thread - d->observed.threads);

    if (samples_itself || d->perf->rate.whole_ns == 0 || thread->is_python)
        return;
    thread->parent = process ? process->parent : 0;
    thread->end_ns = ns;
    (void)snd_map_put(&d->ended, (struct snd_key){ thread->pid, thread->tid, 0 }, at);
}

static uint32_t rest_stack(struct snd_drain *d)
{
    if (d->rest == 0) {
        uint32_t            text = d->recorder.intern(rest_text, sizeof rest_text - 1);
        uint32_t            frame = d->recorder.address(text, 0, 0);
        struct sonde_symbol symbol = { .function = text };
        d->recorder.symbol(frame, &symbol, 1);
        d->rest = d->recorder.stack(0, frame);
    }
    return d->rest;
}

static void write_rest(struct snd_drain *d, struct snd_seen_thread *thread)
{
    if (thread->used_ns <= thread->rate.sampled_ns)
        return;
    uint64_t rest = thread->used_ns - thread->rate.sampled_ns;
    snd_rate_rest(&d->perf->rate, rest);
    if (rest <= thread->used_ns / LITTLE)
        return;
    uint64_t *words = d->recorder.tally(SONDE_TALLY_NATIVE_RESTS, 0, 0, SND_NATIVE_RESTS_WORDS);
    if (words) {
        words[SND_NATIVE_RESTS_UNSEEN] += thread->rate.sampled_ns == 0;
        words[SND_NATIVE_RESTS_NS] += rest;
    }
    snd_drain_write(d, thread, rest_stack(d), thread->end_ns, rest, SONDE_SAMPLED_ON_CPU);
    d->recorder.ended(thread->id, d->last_raw);
}

void snd_rests_read(struct snd_drain *d, const struct perf_event_header *record)
{
    uint32_t ids[2], at;
    uint64_t used;

    if (record->size < sizeof *record + sizeof ids + sizeof used)
        return;
    memcpy(ids, record + 1, sizeof ids);
    memcpy(&used, (const uint8_t *)(record + 1) + sizeof ids, sizeof used);
    struct snd_key key = { ids[0], ids[1], 0 };
    if (!snd_map_get(&d->ended, key, &at))
        return;
    struct snd_seen_thread *thread = &d->observed.threads[at];
    thread->used_ns += used;
    if (++thread->reads < d->perf->ring_count)
        return;
    snd_map_remove(&d->ended, key);
    write_rest(d, thread);
}
