/* SPDX-License-Identifier: Apache-2.0 */
#include "record/counts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "format/counters.h"
#include "format/metadata.h"
#include "record/metadata.h"
#include "record/thread.h"

uint32_t snd_counts_asked;

static enum snd_counter_thread ways[SND_COUNTS_MOST];
static bool                    uses_clock, uses_usage;
static char                    names[256]; /* with commas, as they are numbered */

static void add(const struct snd_counter *counter)
{
    size_t used = strlen(names), length = strlen(counter->name);

    if (snd_counts_asked == SND_COUNTS_MOST || used + length + 2 > sizeof names)
        return;
    if (used > 0)
        names[used++] = ',';
    memcpy(names + used, counter->name, length + 1);
    uses_clock |= counter->thread == SND_COUNTER_BY_CLOCK;
    uses_usage |= counter->thread != SND_COUNTER_BY_CLOCK;
    ways[snd_counts_asked++] = counter->thread;
}

/* Once: `sonde run` sets it. */
static void read_environment(void)
{
    static bool done;
    const char *at = done ? NULL : secure_getenv("SONDE_RANGE_COUNTERS");

    done = true;
    while (at && *at) {
        size_t                    length = strcspn(at, ",");
        const struct snd_counter *counter = snd_counter_find(at, length);
        if (counter && counter->thread != SND_COUNTER_BY_EVENT)
            add(counter);
        at += length + (at[length] == ',');
    }
}

void snd_counts_begin(void)
{
    read_environment();
    if (snd_counts_asked > 0)
        snd_metadata_write(snd_meta_key(SND_META_COUNTERS_RANGES), names, strlen(names));
}

/* ------------------------------------------------------------------ reading */

static uint64_t pick(enum snd_counter_thread way, const struct rusage *usage, uint64_t clock_ns)
{
    switch (way) {
    case SND_COUNTER_BY_CLOCK:
        return clock_ns;
    case SND_COUNTER_BY_FAULTS:
        return (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt;
    case SND_COUNTER_BY_MINOR:
        return (uint64_t)usage->ru_minflt;
    case SND_COUNTER_BY_MAJOR:
        return (uint64_t)usage->ru_majflt;
    case SND_COUNTER_BY_SWITCHES:
        return (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw;
    case SND_COUNTER_BY_EVENT:
        break;
    }
    return 0;
}

static void read_all(uint64_t now[SND_COUNTS_MOST])
{
    struct rusage   usage = { .ru_minflt = 0 };
    struct timespec clock = { 0, 0 };

    if (uses_clock)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock);
    if (uses_usage)
        getrusage(RUSAGE_THREAD, &usage);
    for (uint32_t i = 0; i < snd_counts_asked; i++)
        now[i] = pick(ways[i], &usage,
                      (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec);
}

static void put(uint32_t number, uint64_t rise)
{
    uint64_t       value = rise << 8 | number;
    const uint64_t small = value << 16 | (uint64_t)SND_ATTR_COUNTED << 8 | SND_EV_ATTR;
    const uint64_t large[2] = { (uint64_t)SND_ATTR_COUNTED << 8 | SND_EV_ATTR64, value };

    if (value <= SND_ATTR_SMALL_MAX)
        snd_lane_write(&sonde_lane_, &small, 1);
    else
        snd_lane_write(&sonde_lane_, large, 2);
}

void snd_counts_write(struct snd_thread *thread)
{
    uint64_t now[SND_COUNTS_MOST];
    bool     known = thread->counts_serial == thread->serial;

    read_all(now);
    for (uint32_t i = 0; i < snd_counts_asked; i++) {
        if (known && now[i] > thread->counts[i])
            put(i, now[i] - thread->counts[i]);
        thread->counts[i] = now[i];
    }
    thread->counts_serial = thread->serial;
}
