/* SPDX-License-Identifier: Apache-2.0 */
#include "export/common/walk_ahead.h"

#include "base/system/processors.h"
#include "base/system/quiet_thread.h"
#include "read/reader.h"

#define BYTES_LEAST ((uint64_t)1 << 20) /* of a trace: some ten milliseconds of an export */

bool snd_ahead_pays(const struct sonde_trace *trace)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < trace->process_count; i++)
        bytes += trace->processes[i].source.size;
    return bytes >= BYTES_LEAST && snd_processors() > 1;
}

static void hand_on(struct snd_ahead_writer *writer)
{
    if (!writer->block)
        return;
    writer->block->length = (size_t)(writer->at - writer->block->bytes);
    if (writer->block->length > 0)
        snd_ring_hand_on(writer->ring);
}

static void *run(void *user)
{
    struct snd_ahead       *ahead = user;
    struct snd_ahead_writer writer = { .ring = ahead->ring };
    struct sonde_error      why = { 0 };
    enum sonde_status       st = ahead->walk(ahead->user, &writer, &why);

    hand_on(&writer);
    if (st == SONDE_OK && writer.out_of_memory)
        st = snd_fail(&why, SONDE_E_NOMEM, "out of memory for what was read ahead");
    ahead->status = st;
    ahead->why = why;
    snd_ring_end(ahead->ring);
    return NULL;
}

bool snd_ahead_begin(struct snd_ahead *ahead, snd_ahead_walk *walk, void *user)
{
    *ahead = (struct snd_ahead){ .ring = snd_ring_new(), .walk = walk, .user = user };
    if (ahead->ring && snd_quiet_thread(&ahead->thread, run, ahead))
        return true;
    snd_ring_free(ahead->ring);
    return false;
}

bool snd_ahead_more(struct snd_ahead_writer *writer, size_t size)
{
    hand_on(writer);
    writer->at = writer->end = NULL;
    writer->block = snd_ring_empty(writer->ring);
    if (!writer->block)
        return false;
    writer->at = writer->block->bytes;
    writer->end = writer->at + writer->block->capacity;
    if (size <= writer->block->capacity)
        return true;
    if (!snd_ring_grow(writer->block, size)) {
        writer->out_of_memory = true;
        return false;
    }
    writer->at = writer->block->bytes;
    writer->end = writer->at + writer->block->capacity;
    return true;
}

static void give_back(struct snd_ahead *ahead)
{
    if (ahead->takes)
        snd_ring_done(ahead->ring);
    ahead->takes = false;
}

const struct snd_block *snd_ahead_next(struct snd_ahead *ahead)
{
    give_back(ahead);
    const struct snd_block *block = snd_ring_full(ahead->ring);
    ahead->takes = block != NULL;
    return block;
}

void snd_ahead_stop(struct snd_ahead *ahead)
{
    snd_ring_stop(ahead->ring);
}

enum sonde_status snd_ahead_end(struct snd_ahead *ahead, struct sonde_error *err)
{
    pthread_join(ahead->thread, NULL);
    snd_ring_free(ahead->ring);
    if (ahead->status != SONDE_OK && err)
        *err = ahead->why;
    return ahead->status;
}
