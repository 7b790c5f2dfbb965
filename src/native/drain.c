/* SPDX-License-Identifier: Apache-2.0 */
#include "native/drain.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/clock_ns.h"
#include "native/resolve.h"
#include "native/perf/rests.h"
#include "base/system/recorder_library.h"

#define FINE_FROM_MOST 64u /* threads that live when the finer rate begins */

/* --------------------------------------------------------------------- clocks */

static struct snd_native_moment take_moment(void)
{
    struct snd_native_moment m;

    m.raw = snd_recorder_clock();
    m.ns = snd_clock_ns(CLOCK_MONOTONIC);
    return m;
}

static void count(struct snd_drain *d, unsigned word, uint64_t n)
{
    d->counts[word] += n;
    if (d->tally)
        d->tally[word] += n;
}

static void count_waits(struct snd_drain *d, unsigned word, uint64_t n)
{
    if (d->waits)
        d->waits[word] += n;
}

/* --------------------------------------------------------------------- stacks */

static uint32_t intern_frame(struct snd_drain *d, uint32_t file, uint64_t address)
{
    struct snd_key key = { file, address, 0 };
    uint32_t       id;

    if (snd_map_get(&d->frames, key, &id))
        return id;
    uint32_t name = 0, build_id = 0;
    if (file != UINT32_MAX) {
        struct snd_mapped_file *f = &d->observed.files.list[file];
        if (f->name == 0)
            f->name = d->recorder.intern(f->path, strlen(f->path));
        if (f->id == 0 && f->build_id && f->build_id[0])
            f->id = d->recorder.intern(f->build_id, strlen(f->build_id));
        name = f->name;
        build_id = f->id;
    } else {
        name = d->recorder.intern("[unknown]", 9);
    }
    id = d->recorder.address(name, build_id, address);
    if (id != 0 && snd_map_put(&d->frames, key, id) &&
        snd_grow(&d->known, &d->known_capacity, d->known_count, sizeof *d->known))
        d->known[d->known_count++] = (struct snd_native_frame){ id, file, address };
    return id;
}

static uint32_t intern_stack(struct snd_drain *d, uint32_t parent, uint32_t file, uint64_t address)
{
    uint32_t       frame = intern_frame(d, file, address), id;
    struct snd_key key = { parent, frame, 0 };

    if (snd_map_get(&d->stacks, key, &id))
        return id;
    id = d->recorder.stack(parent, frame);
    if (id != 0)
        snd_map_put(&d->stacks, key, id);
    return id;
}

/* An interpreter that did not load our probes (python -I) has no trace. */
static bool samples_itself(const struct snd_drain *d, struct snd_seen_process *process)
{
    char path[PATH_MAX];

    if (d->beside_python || process->has_trace || !d->traces)
        return d->beside_python || process->has_trace;
    int n = snprintf(path, sizeof path, "%s%" PRIu32 ".sonde", d->traces, process->pid);
    process->has_trace = n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
    return process->has_trace;
}

/*
 * Python processes sample the threads that run Python by themselves. Such a thread is the main one, or has a
 * frame of the interpreter's when it is first seen; later its stack may be deeper than the part that a
 * sample has. The threads of sonde's own recorder in there are none of the program's.
 */
static bool runs_python(const struct snd_drain *d, struct snd_seen_process *process,
                        struct snd_seen_thread *thread, const struct snd_walked_frame *frames,
                        size_t count)
{
    if (!process->is_python || !samples_itself(d, process))
        return false;
    thread->is_python |= thread->tid == process->pid || strncmp(thread->name, "sonde", 5) == 0;
    for (size_t i = 0; i < count && !thread->is_python; i++)
        thread->is_python = frames[i].file != UINT32_MAX &&
                            d->observed.files.list[frames[i].file].is_python;
    return thread->is_python;
}

/* The kernel's frames lie inside those of the program that called it. */
static uint32_t find_stack(struct snd_drain *d, const struct snd_native_sample *s,
                           struct snd_seen_process *process, struct snd_seen_thread *thread)
{
    struct snd_walked_frame frames[SND_WALK_MAX];
    enum snd_walk_end       end = SND_WALK_WHOLE;
    uint32_t                stack = 0;

    if (s->has_user) {
        size_t n = snd_stack_walk(&process->mappings, &d->observed.files, &s->user, frames, &end);
        if (runs_python(d, process, thread, frames, n))
            return 0;
        while (n-- > 0)
            stack = intern_stack(d, stack, frames[n].file, frames[n].address);
    }
    count(d, SND_NATIVE_CUT, end == SND_WALK_CUT);
    count(d, SND_NATIVE_BROKEN, end == SND_WALK_LOST);
    for (size_t i = s->kernel_count; i-- > 0;) {
        uint64_t address;
        memcpy(&address, s->kernel + i * 8, sizeof address);
        stack = intern_stack(d, stack, d->kernel, address);
    }
    return stack;
}

/* -------------------------------------------------------------------- threads */

/* Of a counter: which code caused the events, not when. */
static void count_events(void *drain, uint32_t stack, uint32_t counter, uint64_t samples,
                         uint64_t events)
{
    const struct snd_drain *d = drain;
    uint64_t               *words = d->recorder.tally(SONDE_TALLY_STACK_COUNTERS, stack, counter,
                                                      SND_STACK_COUNTERS_WORDS);

    if (words) {
        words[SND_STACK_COUNTERS_SAMPLES] += samples;
        words[SND_STACK_COUNTERS_EVENTS] += events;
    }
}

static void take_events(struct snd_drain *d, const struct snd_native_sample *s, uint32_t stack,
                        uint32_t counter)
{
    struct snd_event_sample sample = {
        .tid = s->tid,
        .counter = counter,
        .stack = stack,
        .event = s->event,
        .period = s->period,
        .count = s->count,
        .has_count = d->perf->has_counts,
    };

    snd_stack_events_sample(&d->events, &sample);
}

/* -------------------------------------------------------------------- records */

static void on_sample(struct snd_drain *d, const struct perf_event_header *record)
{
    struct snd_native_sample s;
    uint32_t                 counter;
    uint64_t                 covered = 0;

    if (!snd_native_sample_read(d->perf, record, &s))
        return;
    struct snd_seen_thread  *thread = snd_observed_thread(&d->observed, s.pid, s.tid);
    struct snd_seen_process *process = snd_observed_process(&d->observed, s.pid);
    if (!thread || !process)
        return;
    bool is_counter = snd_perf_is_counter(d->perf, s.event, &counter);
    bool is_switch = snd_perf_is_switch(d->perf, s.event);
    if (!is_counter && !is_switch && !thread->is_python) {
        covered = snd_rate_sample(&d->perf->rate, &thread->rate, s.period,
                                  snd_perf_is_fine(d->perf, s.event));
        if (covered == 0)
            return;
    }
    uint32_t stack = find_stack(d, &s, process, thread);
    if (is_counter)
        take_events(d, &s, thread->is_python ? SND_STACK_LEFT_OUT : stack, counter);
    if (thread->is_python)
        return;
    if (is_switch) {
        thread->waits_at = stack;
        thread->waits_ns = s.ns;
        return;
    }
    count(d, SND_NATIVE_SAMPLES, 1);
    if (!is_counter)
        snd_drain_write(d, thread, stack, s.ns, covered, SONDE_SAMPLED_ON_CPU);
}

/* From when it left its processor: idle, as the states have it. */
static void end_wait(struct snd_drain *d, struct snd_seen_thread *thread, uint64_t ns)
{
    if (thread->waits_ns == 0 || ns <= thread->waits_ns)
        return;
    count_waits(d, SND_NATIVE_WAITS_COUNT, 1);
    snd_drain_write(d, thread, thread->waits_at, ns, ns - thread->waits_ns, 0);
    thread->waits_ns = 0;
}

/* A thread left its processor, or is on one again. One that was made to leave does not wait. */
static void on_switch(struct snd_drain *d, const struct perf_event_header *record)
{
    uint32_t ids[2], at;
    uint64_t ns;

    if (record->size < sizeof *record + sizeof ids + sizeof ns)
        return;
    memcpy(ids, record + 1, sizeof ids);
    memcpy(&ns, (const uint8_t *)(record + 1) + sizeof ids, sizeof ns);
    if (!snd_map_get(&d->observed.by_tid, (struct snd_key){ ids[0], ids[1], 0 }, &at))
        return;
    if (!(record->misc & PERF_RECORD_MISC_SWITCH_OUT))
        end_wait(d, &d->observed.threads[at], ns);
    else if (record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
        d->observed.threads[at].waits_ns = 0;
}

static void on_map(struct snd_drain *d, const struct perf_event_header *record)
{
    struct {
        uint32_t pid, tid;
        uint64_t start, size, offset;
        uint32_t major, minor;
        uint64_t inode, generation;
        uint32_t rights, flags;
    } it;
    size_t fixed = sizeof *record + sizeof it;

    if (record->size <= fixed + 24 || record->misc & PERF_RECORD_MISC_MMAP_DATA)
        return;
    memcpy(&it, record + 1, sizeof it);
    const char *path = (const char *)record + fixed;
    if (!memchr(path, '\0', record->size - fixed))
        return;
    struct snd_seen_process *process = snd_observed_add_process(&d->observed, it.pid, 0);
    struct snd_map_record    r = { it.pid,   it.start, it.size,  it.offset,
                                   it.inode, it.major, it.minor, path };
    if (!process || !snd_mappings_add(&process->mappings, &d->observed.files, &r))
        return;
    const struct snd_mapping *mapping = snd_mappings_find(&process->mappings, r.start);
    process->is_begun = false;
    process->is_python |= mapping && d->observed.files.list[mapping->file].is_python;
}

static void begin_program(struct snd_seen_process *process)
{
    snd_mappings_clear(&process->mappings);
    process->is_begun = true;
    process->is_python = false;
}

static void on_name(struct snd_drain *d, const struct perf_event_header *record)
{
    uint32_t ids[2];

    if (record->size < sizeof *record + sizeof ids + 8)
        return;
    memcpy(ids, record + 1, sizeof ids);
    struct snd_seen_thread  *thread = snd_observed_thread(&d->observed, ids[0], ids[1]);
    struct snd_seen_process *process = snd_observed_process(&d->observed, ids[0]);
    if (!thread || !process)
        return;
    memcpy(thread->name, (const uint8_t *)(record + 1) + sizeof ids, 8);
    size_t room = record->size - sizeof *record - sizeof ids;
    memcpy(thread->name, (const uint8_t *)(record + 1) + sizeof ids,
           room < SND_COMM_MAX ? room : SND_COMM_MAX);
    thread->name[SND_COMM_MAX - 1] = '\0';
    if (record->misc & PERF_RECORD_MISC_COMM_EXEC)
        begin_program(process);
    if (thread->id != 0) {
        struct sonde_process_thread sampled = { .struct_size = sizeof sampled,
                                                .pid = ids[0],
                                                .tid = ids[1] };
        d->recorder.thread(&sampled, thread->name);
    }
}

/*
 * Where a program gets other rights (setuid), the kernel takes the events off it before it is mapped. Root
 * may sample it all the same. False: it cannot be, or has ended.
 */
static bool follow_rights(struct snd_drain *d, struct snd_seen_process *process)
{
    process->is_begun = false;
    if (!snd_perf_add(d->perf, (pid_t)process->pid))
        return false;
    snd_perf_enable(d->perf);
    return snd_mappings_read(&process->mappings, &d->observed.files, process->pid);
}

static void on_task(struct snd_drain *d, const struct perf_event_header *record)
{
    uint32_t ids[4]; /* pid, parent, tid, the parent's */
    uint64_t ns;

    if (record->size < sizeof *record + sizeof ids + sizeof ns)
        return;
    memcpy(ids, record + 1, sizeof ids);
    memcpy(&ns, (const uint8_t *)(record + 1) + sizeof ids, sizeof ns);
    if (record->type == PERF_RECORD_FORK) {
        snd_observed_fork(&d->observed, ids[0], ids[2], ids[1], ids[3], ns);
        return;
    }
    struct snd_seen_process *process = snd_observed_process(&d->observed, ids[0]);
    if (process && process->is_begun) {
        if (follow_rights(d, process))
            return;
        count(d, SND_NATIVE_OTHER_RIGHTS, 1);
    }
    uint32_t at;
    if (snd_map_get(&d->observed.by_tid, (struct snd_key){ ids[0], ids[2], 0 }, &at)) {
        struct snd_seen_thread *thread = &d->observed.threads[at];
        if (thread->id != 0)
            d->recorder.ended(thread->id, snd_drain_raw(d, ns));
        snd_rests_exit(d, thread, process,
                       process && process->is_python && samples_itself(d, process), ns);
    }
    snd_observed_exit(&d->observed, ids[0], ids[2]);
    snd_stack_events_exit(&d->events, ids[2]);
}

static void on_lost(struct snd_drain *d, const struct perf_event_header *record)
{
    uint64_t lost;

    if (record->size < sizeof *record + 16)
        return;
    memcpy(&lost, (const uint8_t *)(record + 1) + 8, sizeof lost);
    count(d, SND_NATIVE_LOST, lost);
}

static void take(void *user, const struct perf_event_header *record, uint64_t ns)
{
    static const struct {
        uint32_t type;
        void (*on)(struct snd_drain *d, const struct perf_event_header *record);
    } kinds[] = {
        { PERF_RECORD_SAMPLE, on_sample }, { PERF_RECORD_MMAP2, on_map },
        { PERF_RECORD_COMM, on_name },     { PERF_RECORD_FORK, on_task },
        { PERF_RECORD_EXIT, on_task },     { PERF_RECORD_LOST, on_lost },
        { PERF_RECORD_SWITCH, on_switch }, { PERF_RECORD_READ, snd_rests_read },
    };

    (void)ns;
    for (size_t i = 0; i < SND_COUNT_OF(kinds); i++)
        if (kinds[i].type == record->type)
            kinds[i].on(user, record);
}

/* ---------------------------------------------------------------------- whole */

void snd_drain_init(struct snd_drain *d, struct snd_perf *perf,
                    const struct snd_native_recorder *recorder, bool off_cpu)
{
    *d = (struct snd_drain){ .perf = perf, .recorder = *recorder };
    snd_stack_events_init(&d->events, count_events, d);
    d->kernel = snd_mapped_kernel(&d->observed.files);
    d->tally = recorder->tally(SONDE_TALLY_NATIVE, 0, 0, SND_NATIVE_WORDS);
    count(d, SND_NATIVE_USER_ONLY, !perf->has_kernel);
    count(d, SND_NATIVE_PERIOD_NS, perf->rate.whole_ns);
    if (off_cpu)
        d->waits = recorder->tally(SONDE_TALLY_NATIVE_WAITS, 0, 0, SND_NATIVE_WAITS_WORDS);
    count_waits(d, SND_NATIVE_WAITS_ABSENT, !perf->has_switches);
    d->before = take_moment();
}

static bool is_living(const struct snd_drain *d, uint32_t i)
{
    const struct snd_seen_thread *thread = &d->observed.threads[i];
    uint32_t                      at;

    return snd_map_get(&d->observed.by_tid, (struct snd_key){ thread->pid, thread->tid, 0 }, &at) &&
           at == i;
}

/* The threads that wait when the recording ends. */
static void end_waits(struct snd_drain *d)
{
    for (uint32_t i = 0; i < d->observed.thread_count; i++)
        if (is_living(d, i))
            end_wait(d, &d->observed.threads[i], d->now.ns);
}

static uint32_t count_living(const struct snd_drain *d)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < d->observed.thread_count; i++)
        count += is_living(d, i);
    return count;
}

/*
 * Threads that begin from now on are sampled at another rate. They inherit it from those that live: of hundreds, all of which
 * run, the first would fill the rings before the last has its events.
 */
static void change_rate(struct snd_drain *d)
{
    if (d->perf->rate.is_fine && count_living(d) > FINE_FROM_MOST)
        (void)snd_rate_judge(&d->perf->rate, true);
    if (!d->perf->rate.is_fine)
        snd_perf_end_fine(d->perf);
    for (uint32_t i = 0; d->perf->rate.is_fine && i < d->observed.thread_count; i++)
        if (is_living(d, i) && !d->observed.threads[i].is_python)
            (void)snd_perf_add_fine(d->perf, (pid_t)d->observed.threads[i].tid);
}

/* Facts that are known only after sampling has ended. */
static void settle(struct snd_drain *d)
{
    uint64_t counted[SND_COUNTERS_MOST];
    uint64_t lost = snd_perf_lost(d->perf), said = d->counts[SND_NATIVE_LOST];

    end_waits(d);
    snd_perf_counted(d->perf, counted);
    snd_stack_events_settle(&d->events, counted, d->perf->counters.count);
    /* What was lost last has no record after it that would say so. */
    count(d, SND_NATIVE_LOST, lost > said ? lost - said : 0);
}

void snd_drain_round(struct snd_drain *d, bool all)
{
    uint64_t own = snd_clock_ns(CLOCK_PROCESS_CPUTIME_ID);

    if (d->now.ns > d->before.ns + 1000000000u)
        d->before = d->now;
    d->now = take_moment();
    snd_perf_drain(d->perf, all ? UINT64_MAX : d->now.ns, take, d);
    if (all)
        settle(d);
    else if (snd_rate_judge(&d->perf->rate, d->perf->is_late))
        change_rate(d);
    count(d, SND_NATIVE_CPU_NS, snd_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own);
}

void snd_drain_release(struct snd_drain *d)
{
    snd_observed_release(&d->observed);
    snd_stack_events_release(&d->events);
    snd_map_release(&d->frames);
    snd_map_release(&d->stacks);
    snd_map_release(&d->ended);
    free(d->known);
}

void snd_drain_resolve(struct snd_drain *d)
{
    struct snd_resolver      resolver = { d->recorder.intern, d->recorder.symbol };
    struct snd_resolve_item *items = calloc((size_t)d->known_count + 1, sizeof *items);
    char(*opened)[32] = calloc((size_t)d->observed.files.count + 1, sizeof *opened);
    size_t count = 0;

    for (uint32_t i = 0; items && opened && i < d->known_count; i++) {
        uint32_t file = d->known[i].file;
        if (file == UINT32_MAX)
            continue;
        const struct snd_mapped_file *f = &d->observed.files.list[file];
        if (f->fd >= 0)
            snprintf(opened[file], sizeof opened[file], "/proc/self/fd/%d", f->fd);
        items[count++] = (struct snd_resolve_item){ d->known[i].id, f->path,
                                                    f->fd >= 0 ? opened[file] : NULL, f->build_id,
                                                    d->known[i].address };
    }
    if (items && opened)
        snd_resolve(&resolver, items, count);
    free(items);
    free(opened);
}
