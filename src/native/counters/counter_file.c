/* SPDX-License-Identifier: Apache-2.0 */
/* native/counters/counter_file.c - snd_counter_runs_write(): runs as a file of a trace. */
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/libc.h"
#include "base/system/recorder_library.h"
#include "format/layout.h"
#include "format/metadata.h"
#include "native/counters/counter_runs.h"
#include "sonde/record.h"

static struct {
    enum sonde_status (*start)(const struct sonde_options *options, struct sonde_error *err);
    enum sonde_status (*stop)(struct sonde_error *err);
    void (*metadata)(const char *key, const char *value);
    uint32_t (*intern)(const char *text, size_t length);
    void (*fact)(uint32_t kind, uint32_t subject, uint32_t number,
                 const struct sonde_fact_member *members, size_t count);
} calls;

/* A fact in the making. */
struct members {
    struct sonde_fact_member list[8];
    size_t                   count;
};

static void add_number(struct members *m, unsigned field, uint64_t value)
{
    m->list[m->count++] = (struct sonde_fact_member){ (uint16_t)field, SONDE_FACT_NUMBER, 0,
                                                      value };
}

static void add_text(struct members *m, unsigned field, const char *text)
{
    m->list[m->count++] = (struct sonde_fact_member){ (uint16_t)field, SONDE_FACT_TEXT,
                                                      calls.intern(text, strlen(text)), 0 };
}

static void write_fact(const char *name, uint32_t run, const struct members *m)
{
    calls.fact(SND_FACT_OF_COUNTER, calls.intern(name, strlen(name)), run, m->list, m->count);
}

static uint64_t line_bytes(void)
{
    long bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

    return bytes > 0 ? (uint64_t)bytes : 64;
}

static void write_result(const struct snd_counter_event  *event,
                         const struct snd_counter_result *result, uint32_t run)
{
    struct members m = { .count = 0 };
    char           name[SND_COUNTER_NAME + 2];

    if (result->why[0]) {
        add_text(&m, SND_FIELD_COUNTER_ABSENT, result->why);
    } else {
        add_number(&m, SND_FIELD_COUNTER_VALUE, result->value.value);
        add_number(&m, SND_FIELD_COUNTER_ENABLED_NS, result->value.enabled_ns);
        add_number(&m, SND_FIELD_COUNTER_RUNNING_NS, result->value.running_ns);
    }
    if (event->known && event->known->unit == SND_COUNTER_NS)
        add_text(&m, SND_FIELD_COUNTER_UNIT, "ns");
    if (event->known && event->known->is_lines)
        add_number(&m, SND_FIELD_COUNTER_LINE_BYTES, line_bytes());
    if (result->by_usage)
        add_text(&m, SND_FIELD_COUNTER_NOTE,
                 "from getrusage: of processes that their parents waited for");
    else if (result->user_only)
        add_text(&m, SND_FIELD_COUNTER_NOTE, "user mode only, because of perf_event_paranoid");
    size_t length = strlen(event->name);
    memcpy(name, event->name, length);
    memcpy(name + length, result->user_only && !result->why[0] ? ":u" : "", 3);
    write_fact(name, run, &m);
}

static void write_clock(enum snd_counter_id id, int64_t ns, uint32_t run)
{
    struct members m = { .count = 0 };

    add_number(&m, SND_FIELD_COUNTER_VALUE, (uint64_t)ns);
    add_text(&m, SND_FIELD_COUNTER_UNIT, "ns");
    write_fact(snd_counters[id].name, run, &m);
}

static void write_run(const struct snd_counter_runs *runs, uint32_t index)
{
    const struct snd_counter_run *run = &runs->runs[index];

    for (size_t i = 0; i < runs->list.count; i++)
        write_result(&runs->list.items[i], &run->results[i], index + 1);
    write_clock(SND_COUNTER_OF_DURATION, run->elapsed_ns, index + 1);
    write_clock(SND_COUNTER_OF_USER, run->user_ns, index + 1);
    write_clock(SND_COUNTER_OF_SYSTEM, run->system_ns, index + 1);
}

enum sonde_status snd_counter_runs_write(const struct snd_counter_runs *runs, const char *folder,
                                         const char *program, const char *command,
                                         struct sonde_error *err)
{
    const struct snd_recorder_symbol wanted[] = {
        { "sonde_start", &calls.start },       { "sonde_stop", &calls.stop },
        { "sonde_metadata", &calls.metadata }, { "sonde_intern", &calls.intern },
        { "sonde_fact", &calls.fact },
    };
    struct sonde_options options = SONDE_OPTIONS_INIT;

    enum sonde_status status = snd_recorder_load(wanted, SND_COUNT_OF(wanted), err);
    if (status != SONDE_OK)
        return status;
    options.path = folder;
    options.subject_pid = (uint32_t)runs->first_pid;
    options.subject_program = program;
    status = calls.start(&options, err);
    if (status != SONDE_OK)
        return status;
    calls.metadata(snd_meta_key(SND_META_COMMAND), command);
    for (uint32_t i = 0; i < runs->count; i++)
        write_run(runs, i);
    return calls.stop(err);
}
