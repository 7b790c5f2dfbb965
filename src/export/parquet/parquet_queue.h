/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/parquet/parquet_queue.h - row groups on their way into files, by a thread of its own where that pays.
 *
 * What is written is a copy of a group's rows, in their order: whoever collects rows goes on with the others meanwhile. Small
 * groups are written at once, after those before them.
 *
 * Layer: export. Threads: one puts and waits. A part's members for its file belong to the queue between a put and a wait.
 */
#ifndef SND_EXPORT_PARQUET_PARQUET_QUEUE_H
#define SND_EXPORT_PARQUET_PARQUET_QUEUE_H

#include <pthread.h>

#include "base/error.h"
#include "export/parquet/parquet_group.h"

#define SND_PARQUET_JOBS \
    1u /* it is written long before the next is to be filled; another is memory alone */

struct snd_parquet_part;

/* A row group: its rows alone, and the texts that they refer to. */
struct snd_parquet_job {
    struct snd_parquet_part    *part;
    const struct snd_sql_table *of; /* what `rows` are set up for */
    struct snd_columns          rows;
    struct snd_texts            texts; /* items alone, whose bytes are elsewhere */
};

/* Zero it. */
struct snd_parquet_queue {
    bool apart; /* a thread may be started */
    bool has_thread;
    void (*begin)(void *user); /* what its thread does before the first row group; NULL: nothing */
    void                      *user;
    struct snd_parquet_scratch scratch; /* of who writes */
    struct snd_parquet_job     jobs[SND_PARQUET_JOBS];
    pthread_t                  thread;
    pthread_mutex_t            lock; /* for what follows */
    pthread_cond_t             put, written;
    size_t                     put_count, written_count;
    bool                       is_ending;
    enum sonde_status          status;
    struct sonde_error         why;
};

/*
 * Puts rows order[0..count) of `rows`, which are settled, as the next row group of the part. Errors: SONDE_E_IO, SONDE_E_NOMEM, of this
 * one or one before.
 */
SND_CHECKED enum sonde_status
snd_parquet_queue_put(struct snd_parquet_queue *queue, struct snd_parquet_part *part,
                      const struct snd_columns *rows, const uint32_t *order, size_t count,
                      const struct snd_texts *texts, struct sonde_error *err);
/* Waits until all is written. Errors: the same. */
SND_CHECKED enum sonde_status snd_parquet_queue_wait(struct snd_parquet_queue *queue,
                                                     struct sonde_error       *err);
/* Waits, whatever came of it, and frees. */
void snd_parquet_queue_release(struct snd_parquet_queue *queue);

/* Bytes at the end of the part's file, which is made with its folders if there is none. */
SND_CHECKED enum sonde_status snd_parquet_append(struct snd_parquet_part   *part,
                                                 const struct sonde_buffer *bytes,
                                                 struct sonde_error        *err);

#endif
