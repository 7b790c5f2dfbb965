/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread/thread_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "format/run/named_counters.h"
#include "format/metadata.h"
#include "record/thread/thread_events.h"
#include "record/tables/intern.h"
#include "record/tables/run_metadata.h"
#include "record/thread/thread.h"

uint32_t snd_counts_asked;

static struct {
    enum snd_counter_thread way;
    uint32_t                event; /* BY_EVENT: its number in thread_events.h */
} counters[SND_COUNTS_MOST];
static uint32_t counter_count;
static bool     uses_clock, uses_usage;
static bool     for_ranges, for_functions;
static char     names[256]; /* with commas, as they are numbered */

/* "cycles:u": the modes behind the colon. */
static bool ask_event(const struct snd_counter *counter, const char *modes, size_t length)
{
    struct snd_event_asked event = { .type = counter->type,
                                     .config = counter->config,
                                     .user = memchr(modes, 'u', length) != NULL,
                                     .kernel = memchr(modes, 'k', length) != NULL };

    counters[counter_count].event = snd_events_ask(&event);
    return counters[counter_count].event != UINT32_MAX;
}

static void add(const char *name, size_t length)
{
    const char               *colon = memchr(name, ':', length);
    size_t                    used = strlen(names), bare = colon ? (size_t)(colon - name) : length;
    const struct snd_counter *counter = snd_counter_find(name, bare);
    enum snd_counter_thread   way = colon || !counter ? SND_COUNTER_BY_EVENT : counter->thread;

    if (!counter || counter_count == SND_COUNTS_MOST || used + length + 2 > sizeof names ||
        (way == SND_COUNTER_BY_EVENT && !ask_event(counter, name + bare, length - bare)))
        return;
    if (used > 0)
        names[used++] = ',';
    memcpy(names + used, name, length);
    names[used + length] = '\0';
    uses_clock |= way == SND_COUNTER_BY_CLOCK;
    uses_usage |= way != SND_COUNTER_BY_CLOCK && way != SND_COUNTER_BY_EVENT;
    counters[counter_count++].way = way;
}

/* Once: `sonde run` sets them; both are the same list. */
static void read_environment(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    const char *ranges = secure_getenv("SONDE_RANGE_COUNTERS");
    const char *functions = secure_getenv("SONDE_FUNCTION_COUNTERS");
    for (const char *at = ranges ? ranges : functions; at && *at;) {
        size_t length = strcspn(at, ",");
        add(at, length);
        at += length + (at[length] == ',');
    }
    for_ranges = ranges != NULL;
    for_functions = functions != NULL;
    snd_counts_asked = for_ranges ? counter_count : 0;
}

void snd_counts_begin(void)
{
    struct snd_tally_record tally = { SND_TALLY_COUNTERS_READ, 0, 0, SND_COUNTERS_READ_WORDS };

    read_environment();
    if (counter_count > 0 && for_ranges)
        snd_metadata_write(snd_meta_key(SND_META_COUNTERS_RANGES), names, strlen(names));
    if (counter_count > 0 && for_functions)
        snd_metadata_write(snd_meta_key(SND_META_COUNTERS_FUNCTIONS), names, strlen(names));
    if (snd_events_count() > 0)
        snd_events_tell(snd_table_tally(&tally));
}

/* ------------------------------------------------------------------ reading */

/* What getrusage(2) says. */
static uint64_t pick(enum snd_counter_thread way, const struct rusage *usage)
{
    switch (way) {
    case SND_COUNTER_BY_FAULTS:
        return (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt;
    case SND_COUNTER_BY_MINOR:
        return (uint64_t)usage->ru_minflt;
    case SND_COUNTER_BY_MAJOR:
        return (uint64_t)usage->ru_majflt;
    case SND_COUNTER_BY_SWITCHES:
        return (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw;
    case SND_COUNTER_BY_CLOCK:
    case SND_COUNTER_BY_EVENT:
        break;
    }
    return 0;
}

static void read_all(uint64_t now[SND_COUNTS_MOST])
{
    struct rusage   usage = { .ru_minflt = 0 };
    struct timespec clock = { 0, 0 };
    uint64_t        events[SND_EVENTS_MOST];

    if (uses_clock)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock);
    if (uses_usage)
        getrusage(RUSAGE_THREAD, &usage);
    if (snd_events_count() > 0)
        snd_events_read(events);
    for (uint32_t i = 0; i < counter_count; i++) {
        if (counters[i].way == SND_COUNTER_BY_EVENT)
            now[i] = events[counters[i].event];
        else if (counters[i].way == SND_COUNTER_BY_CLOCK)
            now[i] = (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec;
        else
            now[i] = pick(counters[i].way, &usage);
    }
}

uint32_t sonde_thread_counters(uint64_t values[SONDE_COUNTERS_MOST])
{
    static_assert(SONDE_COUNTERS_MOST == SND_COUNTS_MOST, "as many as ranges have");

    if (!for_functions || !snd_thread_self()) /* what is opened for a thread ends with it */
        return 0;
    read_all(values);
    return counter_count;
}

uint32_t sonde_function_counters(void)
{
    snd_lock();
    read_environment();
    snd_unlock();
    return for_functions ? counter_count : 0;
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
