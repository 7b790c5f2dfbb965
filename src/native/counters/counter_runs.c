/* SPDX-License-Identifier: Apache-2.0 */
#include "native/counters/counter_runs.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/map.h"
#include "base/system/proc_files.h"

#define BEGINNING_NS 20000000u /* from fork to the program's first instruction, on a busy machine */

/* ------------------------------------------------------------- getrusage's */

static int64_t time_ns(struct timeval time)
{
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* The number after `name` in /proc/PID/status; 0 if it is not there. */
static uint64_t read_status(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static struct snd_counter_base read_base(pid_t pid)
{
    struct snd_counter_base base;
    char                    text[4096];
    unsigned long long      minor = 0, major = 0;

    snd_proc_read(pid, "status", text, sizeof text);
    base.switches = read_status(text, "\nvoluntary_ctxt_switches:") +
                    read_status(text, "\nnonvoluntary_ctxt_switches:");
    snd_proc_read(pid, "stat", text, sizeof text);
    const char *end = strrchr(text, ')');
    if (end)
        (void)sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major);
    snd_proc_read(pid, "schedstat", text, sizeof text);
    base.cpu_ns = strtoull(text, NULL, 10);
    base.minor = minor;
    base.major = major;
    return base;
}

static uint64_t rise(long now, uint64_t before)
{
    return now > 0 && (uint64_t)now > before ? (uint64_t)now - before : 0;
}

/* False: getrusage() does not count it. */
static bool find_usage(const struct snd_counter_event *event, const struct rusage *usage,
                       const struct snd_counter_base *base, uint64_t *value)
{
    if (!event->known || event->user != event->kernel)
        return false;
    switch (event->known->thread) {
    case SND_COUNTER_BY_CLOCK:
        *value = (uint64_t)(time_ns(usage->ru_utime) + time_ns(usage->ru_stime));
        return true;
    case SND_COUNTER_BY_FAULTS:
        *value = rise(usage->ru_minflt, base->minor) + rise(usage->ru_majflt, base->major);
        return true;
    case SND_COUNTER_BY_MINOR:
        *value = rise(usage->ru_minflt, base->minor);
        return true;
    case SND_COUNTER_BY_MAJOR:
        *value = rise(usage->ru_majflt, base->major);
        return true;
    case SND_COUNTER_BY_SWITCHES:
        *value = rise(usage->ru_nvcsw + usage->ru_nivcsw, base->switches);
        return true;
    case SND_COUNTER_BY_EVENT:
        return false;
    }
    return false;
}

/* ---------------------------------------------------------------- one run */

/*
 * Switches and migrations happen in the kernel: counted in user mode alone they would be 0, always,
 * which is not what was asked for.
 */
static bool happens_in_kernel(const struct snd_counter_event *event)
{
    return event->type == SND_COUNTER_SOFTWARE &&
           (event->config == snd_counters[SND_COUNTER_OF_CONTEXT_SWITCHES].config ||
            event->config == snd_counters[SND_COUNTER_OF_CPU_MIGRATIONS].config);
}

/*
 * When a program with more privileges than its caller begins, the kernel takes the events off it. Then
 * they have not even seen the fault of its first instruction.
 *
 * Or the program became such a one later: the events were on for much less time than it ran. What the process
 * did before the program began, which is in its time, may take as long as a short program itself.
 */
static bool was_ended(const struct snd_counter_runs *runs, const struct rusage *usage,
                      const struct snd_counter_value *value)
{
    struct snd_counter_value faults;

    if (runs->witness.fd >= 0 && snd_counter_read(runs->witness.fd, &faults) && faults.value == 0)
        return true;
    uint64_t before = runs->base.cpu_ns + BEGINNING_NS;
    uint64_t ran = (uint64_t)(time_ns(usage->ru_utime) + time_ns(usage->ru_stime));
    return ran > before && value->enabled_ns < (ran - before) / 2;
}

static const struct snd_counter_event user_faults = { .name = "page-faults:u",
                                                      .type = SND_COUNTER_SOFTWARE,
                                                      .config = PERF_COUNT_SW_PAGE_FAULTS,
                                                      .user = true };

void snd_counter_runs_begin(struct snd_counter_runs *runs, pid_t pid)
{
    if (runs->first_pid == 0)
        runs->first_pid = pid;
    for (size_t i = 0; i < runs->list.count; i++)
        snd_counter_open(&runs->list.items[i], pid, SND_COUNT_PROGRAM, -1, &runs->opened[i]);
    snd_counter_open(&user_faults, pid, SND_COUNT_PROGRAM, -1, &runs->witness);
    runs->base = read_base(pid);
}

static void take_result(struct snd_counter_runs *runs, size_t i, const struct rusage *usage,
                        struct snd_counter_result *result)
{
    const struct snd_counter_event  *event = &runs->list.items[i];
    const struct snd_counter_opened *opened = &runs->opened[i];

    *result = (struct snd_counter_result){ .user_only = opened->user_only };
    bool counted = opened->fd >= 0 && !(opened->user_only && happens_in_kernel(event));
    if (counted && !snd_counter_read(opened->fd, &result->value))
        snprintf(result->why, sizeof result->why, "not counted: it cannot be read");
    else if (counted && was_ended(runs, usage, &result->value))
        snprintf(result->why, sizeof result->why,
                 "not counted: the kernel ended the counting (a set-user-id program, or one that "
                 "may not be read)");
    if (counted && !result->why[0])
        return;
    if (find_usage(event, usage, &runs->base, &result->value.value)) {
        result->by_usage = true;
        result->user_only = false;
        result->why[0] = '\0';
        result->value.enabled_ns = result->value.running_ns = 0;
    } else if (!counted) {
        snprintf(result->why, sizeof result->why, "%s",
                 opened->fd < 0 ? opened->why
                                : "not permitted: it is counted in kernel mode, which "
                                  "perf_event_paranoid reserves to root and CAP_PERFMON");
    }
}

void snd_counter_runs_end(struct snd_counter_runs *runs, int64_t elapsed_ns,
                          const struct rusage *usage)
{
    bool room = snd_grow(&runs->runs, &runs->capacity, runs->count, sizeof *runs->runs);

    if (room) {
        struct snd_counter_run *run = &runs->runs[runs->count++];
        run->elapsed_ns = elapsed_ns;
        run->user_ns = time_ns(usage->ru_utime);
        run->system_ns = time_ns(usage->ru_stime);
        for (size_t i = 0; i < runs->list.count; i++)
            take_result(runs, i, usage, &run->results[i]);
    }
    runs->failed |= !room;
    for (size_t i = 0; i < runs->list.count; i++)
        if (runs->opened[i].fd >= 0)
            close(runs->opened[i].fd);
    if (runs->witness.fd >= 0)
        close(runs->witness.fd);
}

void snd_counter_runs_free(struct snd_counter_runs *runs)
{
    if (runs)
        free(runs->runs);
    free(runs);
}
