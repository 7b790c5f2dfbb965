/* SPDX-License-Identifier: Apache-2.0 */
#include "export/parquet/parquet_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/fd_io.h"
#include "base/system/quiet_thread.h"
#include "export/parquet/parquet_part.h"

#define OUT_OF_MEMORY "out of memory for the tables"
#define APART_LEAST 4096u /* rows that take longer to write than a thread to wake */

/* ------------------------------------------------------------------------- file */

/* Makes the folders of the path that are missing. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = mkdir(path, 0777);
        *slash = '/';
        if (rc != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

enum sonde_status snd_parquet_append(struct snd_parquet_part   *part,
                                     const struct sonde_buffer *bytes, struct sonde_error *err)
{
    int flags = O_WRONLY | O_APPEND | O_CLOEXEC;

    if (!part->has_file && !make_folders(part->path))
        return snd_fail_os(err, SONDE_E_IO, "cannot create the folder of %.300s", part->path);
    int fd = open(part->path, part->has_file ? flags : flags | O_CREAT | O_TRUNC, 0666);
    if (fd < 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot create %.300s", part->path);
    bool good = (part->has_file || snd_write_all(fd, "PAR1", 4)) &&
                snd_write_all(fd, bytes->bytes, bytes->length);
    int os_error = errno;
    if (close(fd) != 0 && good) {
        os_error = errno;
        good = false;
    }
    part->has_file = true;
    part->size += bytes->length;
    errno = os_error;
    return good ? SONDE_OK : snd_fail_os(err, SONDE_E_IO, "cannot write %.300s", part->path);
}

/* ------------------------------------------------------------------------- jobs */

static enum sonde_status write_job(struct snd_parquet_queue *queue, struct snd_parquet_job *job,
                                   struct sonde_error *err)
{
    struct snd_parquet_part      *part = job->part;
    const struct snd_parquet_rows group = { .table = job->of,
                                            .left_out = part->left_out,
                                            .columns = &job->rows,
                                            .texts = &job->texts,
                                            .sorted_by = snd_parquet_sorted_by(part),
                                            .offset = part->size + 4,
                                            .ordinal = (int16_t)(part->group_count & INT16_MAX) };

    if (!snd_parquet_group(&queue->scratch, &group, &part->groups))
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    part->group_count++;
    part->row_count += job->rows.count;
    return snd_parquet_append(part, &queue->scratch.bytes, err);
}

/* Texts are only ever added: those that came since the job's last turn. False: out of memory. */
static bool take_texts(struct snd_texts *own, const struct snd_texts *all)
{
    if (all->count > own->capacity) {
        struct snd_text *items = realloc(own->items, all->capacity * sizeof *items);
        if (!items)
            return false;
        own->items = items;
        own->capacity = all->capacity;
    }
    if (all->count > own->count)
        memcpy(own->items + own->count, all->items + own->count,
               (all->count - own->count) * sizeof *own->items);
    own->count = all->count;
    return true;
}

static bool fill_job(struct snd_parquet_job *job, struct snd_parquet_part *part,
                     const struct snd_columns *rows, const uint32_t *order, size_t count,
                     const struct snd_texts *texts)
{
    const struct snd_sql_table *of = &snd_sql_tables[part->table];

    job->part = part;
    if (job->of != of) {
        snd_columns_release(&job->rows);
        snd_columns_init(&job->rows, of, snd_chosen_but(of, part->left_out));
        job->of = of;
    }
    return snd_columns_pick(&job->rows, rows, order, count) && take_texts(&job->texts, texts);
}

/* ----------------------------------------------------------------------- thread */

static void *write_jobs(void *user)
{
    struct snd_parquet_queue *q = user;
    struct sonde_error        why;

    if (q->begin)
        q->begin(q->user);
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->written_count == q->put_count && !q->is_ending)
            pthread_cond_wait(&q->put, &q->lock);
        if (q->written_count == q->put_count)
            break;
        enum sonde_status st = q->status;
        pthread_mutex_unlock(&q->lock);
        if (st == SONDE_OK)
            st = write_job(q, &q->jobs[q->written_count % SND_PARQUET_JOBS], &why);
        pthread_mutex_lock(&q->lock);
        if (st != SONDE_OK && q->status == SONDE_OK) {
            q->status = st;
            q->why = why;
        }
        q->written_count++;
        pthread_cond_signal(&q->written);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static bool has_thread(struct snd_parquet_queue *q)
{
    if (q->has_thread || !q->apart)
        return q->has_thread;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->put, NULL);
    pthread_cond_init(&q->written, NULL);
    q->has_thread = snd_quiet_thread(&q->thread, write_jobs, q);
    q->apart = q->has_thread;
    return q->has_thread;
}

/* Until so many are not written yet at the most; returns how it went so far. */
static enum sonde_status wait_for(struct snd_parquet_queue *q, size_t most, struct sonde_error *err)
{
    if (!q->has_thread)
        return SONDE_OK;
    pthread_mutex_lock(&q->lock);
    while (q->put_count - q->written_count > most)
        pthread_cond_wait(&q->written, &q->lock);
    enum sonde_status st = q->status;
    if (st != SONDE_OK && err)
        *err = q->why;
    pthread_mutex_unlock(&q->lock);
    return st;
}

enum sonde_status snd_parquet_queue_put(struct snd_parquet_queue *queue,
                                        struct snd_parquet_part  *part,
                                        const struct snd_columns *rows, const uint32_t *order,
                                        size_t count, const struct snd_texts *texts,
                                        struct sonde_error *err)
{
    bool              apart = count >= APART_LEAST && has_thread(queue);
    enum sonde_status st = wait_for(queue, apart ? SND_PARQUET_JOBS - 1 : 0, err);

    if (st != SONDE_OK)
        return st;
    struct snd_parquet_job *job = &queue->jobs[queue->put_count % SND_PARQUET_JOBS];
    if (!fill_job(job, part, rows, order, count, texts))
        return snd_fail(err, SONDE_E_NOMEM, OUT_OF_MEMORY);
    if (!apart)
        return write_job(queue, job, err);
    pthread_mutex_lock(&queue->lock);
    queue->put_count++;
    pthread_cond_signal(&queue->put);
    pthread_mutex_unlock(&queue->lock);
    return SONDE_OK;
}

enum sonde_status snd_parquet_queue_wait(struct snd_parquet_queue *queue, struct sonde_error *err)
{
    return wait_for(queue, 0, err);
}

void snd_parquet_queue_release(struct snd_parquet_queue *queue)
{
    if (queue->has_thread) {
        pthread_mutex_lock(&queue->lock);
        queue->is_ending = true;
        pthread_cond_signal(&queue->put);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->thread, NULL);
        pthread_cond_destroy(&queue->put);
        pthread_cond_destroy(&queue->written);
        pthread_mutex_destroy(&queue->lock);
    }
    for (size_t i = 0; i < SND_PARQUET_JOBS; i++) {
        snd_columns_release(&queue->jobs[i].rows);
        free(queue->jobs[i].texts.items);
    }
    snd_parquet_scratch_release(&queue->scratch);
    *queue = (struct snd_parquet_queue){ 0 };
}
