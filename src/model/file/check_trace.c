/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/file/check_trace.c - reads every byte of a trace and counts what is wrong with it.
 */
#include <string.h>

#include "read/walk/trace_walk.h"
#include "sonde/model.h"

static void pass_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    (void)user, (void)thread, (void)ns, (void)name, (void)shapes;
}

static void pass_end(void *user, uint32_t thread, int64_t ns)
{
    (void)user, (void)thread, (void)ns;
}

static void pass_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    (void)user, (void)thread, (void)ns, (void)words;
}

enum sonde_status sonde_check(const char *path, struct sonde_check *out, struct sonde_error *err)
{
    struct snd_visitor    visitor = { .begin = pass_begin, .end = pass_end, .other = pass_other };
    struct snd_walk_stats stats = { 0 };
    struct sonde_trace   *trace;

    memset(out, 0, sizeof *out);
    enum sonde_status status = sonde_trace_open(path, &trace, err);
    if (status != SONDE_OK)
        return status;
    status = snd_walk(trace, SONDE_BY_THREAD, &visitor, &stats, err);
    out->closed = true;
    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        if (p->is_guest)
            continue;
        out->files++;
        out->chunks += p->lane_count + p->other_count;
        out->records += p->damage.records;
        out->damaged_chunks += p->damage.chunks;
        out->skipped_bytes += p->damage.skipped_bytes;
        out->unknown_chunks += p->damage.unknown_chunks;
        out->damaged_headers += p->damage.header;
        out->missing_bytes += p->damage.missing_bytes;
        out->closed &= p->shown.closed;
    }
    out->events = stats.events + stats.warmup_events;
    out->damaged_chunks += stats.damaged_chunks;
    out->unknown_events = stats.unknown_events;
    out->missing_events = stats.missing_events;
    out->refused_files = trace->refused;
    sonde_trace_close(trace);
    return status;
}
