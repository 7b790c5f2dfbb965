/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/guests.c - processes without a file of their own.
 *
 * One file can have the samples of many processes: the record of a thread says which it belongs to.
 * Each of those gets a place among the processes, after those of files. It has no chunks and tells
 * nothing of itself; ids are looked up in the tables of the file that has them.
 */
#include <string.h>

#include "read/reader.h"

static uint32_t thread_pid(const struct snd_process *p, uint32_t index)
{
    uint32_t id = index + 1;
    uint32_t pid = id < p->tables.thread_count ? p->tables.threads[id].pid : 0;

    return pid == p->header.pid ? 0 : pid;
}

/* Only records with an id; everything else in a file is about the file's own process. */
static struct snd_tables share_tables(const struct snd_tables *from)
{
    struct snd_tables t = *from;

    t.metas = NULL;
    t.tallies = NULL;
    t.symbols = NULL;
    t.fact_bytes = NULL;
    t.facts = NULL;
    t.prefixes = NULL;
    t.meta_count = t.tally_count = t.symbol_count = t.fact_bytes_count = t.fact_count = 0;
    t.prefix_count = 0;
    memset(&t.meta_index, 0, sizeof t.meta_index);
    memset(&t.fact_index, 0, sizeof t.fact_index);
    return t;
}

static struct snd_process make_guest(const struct snd_process *host, uint32_t pid)
{
    const struct snd_file_header *h = &host->header;
    struct snd_process            guest = {
                   .shown = host->shown,
                   .source = { .fd = -1 },
                   .tables = share_tables(&host->tables),
                   .scale = host->scale,
                   .first_thread = host->first_thread,
                   .is_guest = true,
    };

    guest.header.clock_kind = h->clock_kind;
    guest.header.boot_id = h->boot_id;
    guest.header.start = h->start;
    guest.header.rank = h->rank;
    guest.header.world_size = h->world_size;
    guest.header.flags = h->flags & SND_FILE_CLOSED;
    memcpy(guest.header.session, h->session, sizeof h->session);
    guest.header.pid = guest.shown.pid = pid;
    guest.shown.parent_pid = 0;
    guest.shown.size_bytes = 0;
    guest.shown.program = "";
    guest.shown.start_ns = INT64_MAX;
    guest.shown.stop_ns = INT64_MIN;
    return guest;
}

static struct snd_process *find_guest(struct sonde_trace *trace, struct snd_map *index,
                                      uint32_t host, uint32_t pid)
{
    struct snd_key key = { host, pid, 0 };
    uint32_t       at;

    if (snd_map_get(index, key, &at))
        return &trace->processes[at];
    at = trace->process_count;
    if (!snd_grow(&trace->processes, &trace->process_room, at, sizeof *trace->processes) ||
        !snd_map_put(index, key, at))
        return NULL;
    trace->processes[at] = make_guest(&trace->processes[host], pid);
    trace->process_count++;
    return &trace->processes[at];
}

/* A process lives as long as its threads, and is called as its main thread is. */
static void add_thread(struct snd_process *guest, const struct sonde_process *host,
                       const struct snd_thread_record *record, const struct sonde_thread *thread)
{
    if (thread->start_ns < guest->shown.start_ns) {
        guest->shown.start_ns = thread->start_ns;
        guest->shown.start_real_ns = snd_add(host->start_real_ns,
                                             snd_sub(thread->start_ns, host->start_ns));
    }
    if (thread->stop_ns > guest->shown.stop_ns)
        guest->shown.stop_ns = thread->stop_ns;
    if (record->parent_pid != 0)
        guest->header.parent_pid = guest->shown.parent_pid = record->parent_pid;
    if (thread->name.length > 0 && (guest->shown.program[0] == '\0' || record->tid == record->pid))
        guest->shown.program = thread->name.bytes;
}

static bool add_guests_of(struct sonde_trace *trace, struct snd_map *index, uint32_t host)
{
    uint32_t first = trace->processes[host].first_thread;
    uint32_t count = trace->processes[host].thread_count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t pid = thread_pid(&trace->processes[host], i);
        if (pid == 0)
            continue;
        struct snd_process *guest = find_guest(trace, index, host, pid);
        if (!guest)
            return false;
        struct sonde_thread *thread = &trace->threads[first + i].shown;
        thread->process = (uint32_t)(guest - trace->processes);
        add_thread(guest, &trace->processes[host].shown,
                   &trace->processes[host].tables.threads[i + 1], thread);
    }
    return true;
}

bool snd_guests_add(struct sonde_trace *trace)
{
    struct snd_map index = { 0 };
    uint32_t       files = trace->process_count;
    bool           good = true;

    for (uint32_t i = 0; i < files && good; i++)
        good = add_guests_of(trace, &index, i);
    snd_map_release(&index);
    return good;
}
