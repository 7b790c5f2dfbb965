/* SPDX-License-Identifier: Apache-2.0 */
#include "record/session/recording.h"

#include <errno.h>

#include "record/file/chunk.h"
#include "record/thread/thread_counts.h"
#include "record/file/trace_file.h"
#include "record/tables/intern.h"
#include "record/tables/late_table.h"
#include "record/tables/run_metadata.h"
#include "record/own_pages.h"
#include "record/file/trace_paths.h"
#include "record/tables/sampled_threads.h"
#include "record/file/supply.h"
#include "record/thread/thread.h"

enum sonde_status snd_recording_open(struct sonde_error *err)
{
    enum sonde_status status = snd_file_create(err);

    if (status != SONDE_OK)
        return status;
    snd_rec.serial++;
    snd_rec.seq = 0;
    snd_rec.exhausted = false;
    snd_rec.retry_at = 0;
    snd_rec.in_flight = 0;
    snd_rec.table_growing = false;
    if (!snd_table_start()) {
        int os_error = (int)snd_header->last_os_error;
        snd_sampled_clear();
        snd_late_clear();
        snd_table_stop();
        snd_chunks_clear();
        snd_file_close(0);
        snd_place_remove();
        errno = os_error ? os_error : ENOSPC;
        return snd_fail_os(err, SONDE_E_IO,
                           "cannot reserve space for the trace %s; choose another "
                           "place with -o or options.path, or a larger limit",
                           snd_rec.file_path);
    }
    snd_metadata_begin();
    snd_counts_begin();
    snd_rec.phase = SND_OPEN;
    snd_supply_start();
    return SONDE_OK;
}

/* Seals the chunks of a list: those that ended threads left, or the tables. */
static void seal_list(struct snd_chunk_list *list)
{
    uint32_t chunk;

    while ((chunk = snd_list_pop(list)) != SND_NO_CHUNK) {
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        if (it->map) { /* else it could not be mapped again: unsealed, but all there */
            snd_chunk_count(chunk, snd_chunk_seal(it->map, it->used, true));
            snd_file_punch(it->offset + it->used, it->offset + it->size);
        }
    }
}

/* Chunks in stock were never used: those at the end of the file are cut off. */
static uint64_t end_of_use(void)
{
    uint64_t end = snd_rec.file_end;

    for (bool again = true; again;) {
        again = false;
        uint32_t chunk = snd_rec.ready.count ? snd_rec.ready.head : SND_NO_CHUNK;
        for (uint32_t i = 0; i < snd_rec.ready.count; i++, chunk = snd_rec.chunks[chunk].next) {
            if (snd_rec.chunks[chunk].offset + snd_rec.chunks[chunk].size == end) {
                end = snd_rec.chunks[chunk].offset;
                again = true;
            }
        }
    }
    return end;
}

static void punch_ready(uint64_t end)
{
    uint32_t chunk = snd_rec.ready.count ? snd_rec.ready.head : SND_NO_CHUNK;

    for (uint32_t i = 0; i < snd_rec.ready.count; i++, chunk = snd_rec.chunks[chunk].next) {
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        if (it->offset < end) /* its header stays, so that the next chunk is found */
            snd_file_punch(it->offset + SND_CHUNK_HEADER_SIZE, it->offset + it->size);
    }
}

void snd_recording_close(void)
{
    /* First: these may let go of the lock, after them nobody does. */
    snd_metadata_clock(SND_CLOCK_AT_END);
    snd_table_clock();
    snd_supply_stop();
    uint64_t now = sonde_clock();
    while (snd_rec.retired.count > 0) {
        uint32_t          chunk = snd_list_pop(&snd_rec.retired);
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        snd_chunk_count(chunk, snd_chunk_seal(it->map, it->used, true));
    }
    snd_threads_park(now);
    if (snd_rec.table_chunk != SND_NO_CHUNK)
        snd_rec.chunks[snd_rec.table_chunk].used = snd_rec.table_used;
    snd_tallies_park();
    seal_list(&snd_rec.partial);
    seal_list(&snd_rec.tables);
    uint64_t end = end_of_use();
    punch_ready(end);
    snd_header->stopped_at = now;
    snd_header->closed_bytes = end; /* so that a reader knows when some of it is missing */
    snd_header->closed_events = snd_rec.events;
    __atomic_fetch_or(&snd_header->flags, SND_FILE_CLOSED, __ATOMIC_RELEASE);
    snd_sampled_clear();
    snd_late_clear();
    snd_table_stop();
    snd_chunks_clear();
    snd_file_close(end);
    snd_rec.phase = SND_WAITING;
}

void snd_recording_release(void)
{
    snd_tallies_release();
    snd_ownpages_free(snd_rec.chunks, snd_rec.chunk_capacity * sizeof *snd_rec.chunks);
    snd_rec.chunks = NULL;
    snd_rec.chunk_count = snd_rec.chunk_capacity = 0;
    snd_ownpages_free(snd_rec.notes, SND_NOTES_SIZE);
    snd_rec.notes = NULL;
    if (snd_header)
        snd_file_unmap(snd_header, SND_HEADER_SIZE);
    snd_header = NULL;
}
