/* SPDX-License-Identifier: Apache-2.0 */
#include "native/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/clock_ns.h"
#include "base/system/proc_files.h"
#include "base/system/prompt_thread.h"
#include "base/system/recorder_library.h"
#include "format/metadata.h"
#include "native/drain.h"

#define ROUND_MS 100
#define LAST_MS 200 /* after the program has ended, if it left processes */
#define LAST_ROUND_MS 10
#define LOOKS_MOST 8 /* for threads that begin while others are looked at */

static enum sonde_status load(struct snd_native_recorder *r, struct sonde_error *err)
{
    const struct snd_recorder_symbol wanted[] = {
        { "sonde_start", &r->start },
        { "sonde_stop", &r->stop },
        { "sonde_metadata", &r->metadata },
        { "sonde_intern", &r->intern },
        { "sonde_intern_address", &r->address },
        { "sonde_intern_stack", &r->stack },
        { "sonde_symbol", &r->symbol },
        { "sonde_thread_of_process", &r->thread },
        { "sonde_thread_end", &r->ended },
        { "sonde_sample", &r->sample },
        { "sonde_tally", &r->tally },
    };

    return snd_recorder_load(wanted, SND_COUNT_OF(wanted), err);
}

/* -------------------------------------------------- processes that are there */

static void read_name(struct snd_seen_thread *thread)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", thread->pid, thread->tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(thread->name, sizeof thread->name, file))
        thread->name[strcspn(thread->name, "\n")] = '\0';
    fclose(file);
}

/* The threads of a process that are not known yet. How many there were. */
static uint32_t add_threads(struct snd_drain *d, uint32_t pid)
{
    char     path[64];
    uint32_t found = 0, at;

    snprintf(path, sizeof path, "/proc/%u/task", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            snd_map_get(&d->observed.by_tid, (struct snd_key){ pid, tid, 0 }, &at))
            continue;
        /* The first event is that of the process's main thread, which is open. */
        bool is_first = d->observed.thread_count == 0 && tid == pid;
        if (!is_first && !snd_perf_add(d->perf, (pid_t)tid))
            continue;
        struct snd_seen_thread *thread = snd_observed_thread(&d->observed, pid, tid);
        if (thread)
            read_name(thread);
        found++;
    }
    if (dir)
        closedir(dir);
    return found;
}

static uint32_t add_children(struct snd_drain *d)
{
    DIR     *dir = opendir("/proc");
    uint32_t found = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (!isdigit((unsigned char)entry->d_name[0]) || pid == (uint32_t)getpid() ||
            snd_observed_process(&d->observed, pid))
            continue;
        uint32_t parent = (uint32_t)snd_proc_parent((pid_t)pid);
        if (parent == 0 || !snd_observed_process(&d->observed, parent) ||
            !snd_observed_add_process(&d->observed, pid, parent))
            continue;
        found += add_threads(d, pid);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* Threads that a known one starts meanwhile are in by themselves. */
static void add_family(struct snd_drain *d, uint32_t pid)
{
    snd_observed_add_process(&d->observed, pid, (uint32_t)snd_proc_parent((pid_t)pid));
    for (int i = 0; i < LOOKS_MOST; i++) {
        uint32_t found = add_threads(d, pid) + add_children(d);
        for (uint32_t k = 0; k < d->observed.process_count; k++)
            found += add_threads(d, d->observed.processes[k].pid);
        snd_perf_enable(d->perf);
        if (found == 0)
            break;
    }
    for (uint32_t i = 0; i < d->observed.process_count; i++)
        snd_mappings_read(&d->observed.processes[i].mappings, &d->observed.files,
                          d->observed.processes[i].pid);
}

/* ---------------------------------------------------------------------- whole */

/* "page-faults,context-switches"; who may not see the kernel has those of user mode: "page-faults:u". */
static void say_counters(const struct snd_native_recorder *r, const struct snd_perf *perf)
{
    char   text[SND_COUNTERS_MOST * (SND_COUNTER_NAME + 3)];
    size_t length = 0;

    for (size_t i = 0; i < perf->counters.count; i++) {
        const struct snd_counter_event *event = &perf->counters.items[i];
        bool has_modes = !event->known || event->known->thread != SND_COUNTER_BY_CLOCK;
        bool user_only = !perf->has_kernel && has_modes && !event->user && !event->kernel;
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", i ? "," : "",
                                   event->name, user_only ? ":u" : "");
    }
    r->metadata(snd_meta_key(SND_META_COUNTERS_FUNCTIONS), text);
}

static void say_what_it_is(const struct snd_native_recorder *r, const struct snd_watch *w,
                           const struct snd_perf *perf)
{
    char text[128];

    if (w->command)
        r->metadata(snd_meta_key(SND_META_COMMAND), w->command);
    if (w->period_ns) {
        snprintf(text, sizeof text, "%g", 1e9 / (double)w->period_ns);
        r->metadata(snd_meta_key(SND_META_PYTHON_SAMPLE_HZ), text);
    }
    if (w->counters)
        say_counters(r, perf);
    snprintf(text, sizeof text, "%s, %s, %s", w->period_ns ? "cpu-clock" : "counters", w->way,
             perf->has_kernel ? "with the kernel" : "user only");
    r->metadata(snd_meta_key(SND_META_NATIVE_SAMPLE), text);
    if (w->off_cpu)
        r->metadata(snd_meta_key(SND_META_NATIVE_OFF_CPU), perf->has_switches ? "yes" : "no");
}

/* By the kernel's list: a record of an exit may be lost, or be on its way. */
static bool has_living(const struct snd_drain *d)
{
    for (uint32_t i = 0; i < d->observed.process_count; i++) {
        const struct snd_seen_process *p = &d->observed.processes[i];
        if (p->threads > 0 && snd_proc_parent((pid_t)p->pid) != 0)
            return true;
    }
    return false;
}

/* What a program leaves to end by itself, as multiprocessing does the process that tracks its resources, mostly has by then. */
static void sample_last(struct snd_drain *d, const struct snd_watch *w)
{
    uint64_t end = snd_clock_ns(CLOCK_MONOTONIC) + LAST_MS * 1000000ull;

    while (has_living(d) && snd_clock_ns(CLOCK_MONOTONIC) < end && !(w->quit && *w->quit)) {
        (void)snd_perf_wait(d->perf, -1, LAST_ROUND_MS);
        snd_drain_round(d, false);
    }
}

static void sample(struct snd_drain *d, const struct snd_watch *w)
{
    uint64_t begin = snd_clock_ns(CLOCK_MONOTONIC),
             end = w->duration_ns ? begin + w->duration_ns : UINT64_MAX;
    bool stop = false;
    char text[32];

    while (!stop && !(w->quit && *w->quit)) {
        uint64_t now = snd_clock_ns(CLOCK_MONOTONIC);
        if (now >= end)
            break;
        uint64_t left = (end - now) / 1000000;
        stop = snd_perf_wait(d->perf, w->stop, left < ROUND_MS ? (int)left + 1 : ROUND_MS);
        snd_drain_round(d, false);
        if (!w->on_exec && d->observed.living == 0)
            break;
    }
    if (stop)
        sample_last(d, w);
    snd_perf_disable(d->perf);
    snprintf(text, sizeof text, "%" PRIu64, snd_clock_ns(CLOCK_MONOTONIC) - begin);
    d->recorder.metadata(snd_meta_key(SND_META_NATIVE_DURATION), text);
    snd_drain_round(d, true);
}

enum sonde_status snd_watch(const struct snd_watch *w, struct sonde_error *err)
{
    struct snd_native_recorder recorder;
    struct snd_perf            perf;
    struct snd_drain           drain;
    struct snd_counter_list    counters;
    struct snd_perf_wanted     wanted = { w->period_ns, w->on_exec, w->off_cpu,
                                      w->counters ? &counters : NULL };
    struct sonde_options       options = SONDE_OPTIONS_INIT;

    enum sonde_status status = load(&recorder, err);
    if (status == SONDE_OK && w->counters)
        status = snd_counters_parse(w->counters, &counters, err);
    if (status == SONDE_OK)
        status = snd_perf_open(&perf, w->pid, &wanted, err);
    if (status != SONDE_OK)
        return status;
    /* The kernel's rings have two seconds of samples at most: of a thousand threads it may not be the last one to run. */
    snd_thread_prompt();
    int nice = snd_thread_prefer();
    options.path = w->path;
    options.subject_pid = (uint32_t)w->pid;
    options.subject_program = w->program;
    options.max_bytes = w->max_bytes;
    options.limit = w->keep_last ? SONDE_LIMIT_KEEP_LAST : SONDE_LIMIT_STOP;
    status = recorder.start(&options, err);
    if (status == SONDE_OK) {
        say_what_it_is(&recorder, w, &perf);
        snd_drain_init(&drain, &perf, &recorder, w->off_cpu);
        drain.beside_python = w->beside_python;
        drain.traces = w->traces;
        if (!w->on_exec)
            add_family(&drain, (uint32_t)w->pid);
        if (w->ready)
            w->ready(w->user);
        sample(&drain, w);
        snd_thread_unprefer(nice);
        if (w->lives)
            *w->lives = has_living(&drain);
        snd_drain_resolve(&drain);
        /* Beside Python, whose processes have traces, time of what they start that is in no sample is no reason for one. */
        bool is_empty = drain.counts[SND_NATIVE_SAMPLES] == 0 &&
                        (drain.rest == 0 || w->beside_python) &&
                        !(drain.waits && drain.waits[SND_NATIVE_WAITS_COUNT] > 0);
        bool refused = drain.counts[SND_NATIVE_OTHER_RIGHTS] > 0;
        snd_drain_release(&drain);
        status = recorder.stop(err);
        if (is_empty)
            unlink(w->path);
        if (is_empty && refused && status == SONDE_OK)
            status = snd_fail(err, SONDE_E_UNSUPPORTED, "process %d runs with other rights",
                              (int)w->pid);
    } else {
        snd_thread_unprefer(nice);
    }
    snd_perf_close(&perf);
    return status;
}

enum sonde_status snd_watch_check(pid_t pid, struct sonde_error *err)
{
    struct snd_native_recorder recorder;
    struct snd_perf            perf;
    struct snd_perf_wanted     wanted = { .period_ns = 1000000000u };

    enum sonde_status status = load(&recorder, err);
    if (status == SONDE_OK)
        status = snd_perf_open(&perf, pid, &wanted, err);
    if (status == SONDE_OK)
        snd_perf_close(&perf);
    return status;
}
