/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_c.c - the open calls of functions in C, asked for by the torch probe (c_calls.h). */
#include "base/data/hash.h"
#include "probes/python/calls/call_inside.h"

/* Which function, in which of the open calls, after those that are open already. Never 0. */
static void know(struct snd_calls_entry *entry, uint32_t depth)
{
    entry->c.frame = snd_calls_frame_(entry->function);
    entry->c_known = snd_hash_mix(entry[-1].c_known ^ 0x9e3779b97f4a7c15u,
                                  (uint64_t)depth << 32 | entry->c.frame) |
                     1;
}

void snd_calls_set_c_(struct snd_calls_thread *t, const void *caller)
{
    struct snd_calls_entry *entry = &t->stack[t->depth];

    entry->c.caller = caller;
    know(entry, t->depth);
}

/* Frames have other ids in another recording. */
void snd_calls_renew_c_(struct snd_calls_thread *t)
{
    for (uint32_t i = 1; i <= t->depth; i++) {
        if (t->stack[i].c.caller)
            know(&t->stack[i], i);
        else
            t->stack[i].c_known = t->stack[i - 1].c_known;
    }
}

/*
 * Without the interpreter lock: the thread's own entries stand still meanwhile, and memory of entries is never freed. Who
 * stops the recording takes them away from above, which leaves what lies there.
 */
static uint32_t depth_of(const struct snd_calls_thread *t)
{
    return __atomic_load_n(&t->depth, __ATOMIC_RELAXED);
}

static bool is_known(const struct snd_calls_thread *t)
{
    return t && t->session == snd_calls.session && t->epoch == sonde_epoch() &&
           snd_calls.mode == SND_CALLS_EVENTS;
}

static uint64_t known(void)
{
    const struct snd_calls_thread *t = snd_calls_self_;

    return is_known(t) ? t->stack[depth_of(t)].c_known : 0;
}

static size_t list(struct snd_c_call *calls, size_t room)
{
    const struct snd_calls_thread *t = snd_calls_self_;
    size_t                         count = 0;

    for (uint32_t i = is_known(t) ? depth_of(t) : 0; i > 0 && count < room; i--)
        if (t->stack[i].c.caller)
            calls[count++] = t->stack[i].c;
    return count;
}

const struct snd_c_calls snd_calls_c = { known, list };
