/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tables/table_scan.c - sonde/tables.h: a table in batches, which a thread makes while the last ones are read.
 *
 * The reader pulls, a walk of the trace pushes: so it has a thread, which waits when enough batches are there. Batches
 * that the reader has freed are filled again; those that it keeps are its own, and others are made.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/quiet_thread.h"
#include "base/text/buf.h"
#include "export/tables/table_rows.h"

#define BATCH_ROWS 16384u /* a megabyte or two: a reader has one for each of its threads */
#define READY_MAX 4u      /* batches that wait for the reader */

/* Outlives the scan while the reader has batches. */
struct batches {
    pthread_mutex_t     lock; /* for all below, and what of a scan says so */
    struct sonde_table *unused;
    size_t              handed_out;
    bool                scan_is_gone;
};

struct sonde_table_scan {
    struct sonde_trace       *trace; /* the thread's, once there is one */
    enum snd_sql_table_id     table;
    struct snd_chosen         chosen;
    struct sonde_table_column columns[SND_SQL_COLUMNS_MAX]; /* without data */
    struct batches           *batches;
    pthread_t                 thread;
    bool                      has_thread;
    struct sonde_table       *filling; /* the thread's */
    bool                      out_of_memory;
    pthread_cond_t            made, taken; /* these and what follows: with batches->lock */
    struct sonde_table       *ready[READY_MAX];
    size_t                    made_count, taken_count;
    bool                      is_unwanted, is_done;
    enum sonde_status         status;
    struct sonde_error        why;
};

/* -------------------------------------------------------------------- batches */

/* With the lock, which is released. */
static void leave_batches(struct batches *b)
{
    struct sonde_table *unused = b->scan_is_gone ? b->unused : NULL;
    bool                is_last = b->scan_is_gone && b->handed_out == 0;

    if (b->scan_is_gone)
        b->unused = NULL;
    pthread_mutex_unlock(&b->lock);
    while (unused) {
        struct sonde_table *next = unused->next;
        snd_sqltable_release(unused);
        unused = next;
    }
    if (is_last) {
        pthread_mutex_destroy(&b->lock);
        free(b);
    }
}

static void give_back(struct sonde_table *batch)
{
    struct batches *b = batch->owner;

    snd_sqltable_clear(batch);
    pthread_mutex_lock(&b->lock);
    b->handed_out--;
    batch->next = b->unused;
    b->unused = batch;
    leave_batches(b);
}

/* NULL: out of memory. */
static struct sonde_table *next_batch(struct sonde_table_scan *scan)
{
    struct batches *b = scan->batches;

    pthread_mutex_lock(&b->lock);
    struct sonde_table *batch = b->unused;
    if (batch)
        b->unused = batch->next;
    b->handed_out++;
    pthread_mutex_unlock(&b->lock);
    if (batch)
        return batch;
    batch = snd_sqltable_begin(&snd_sql_tables[scan->table], scan->chosen);
    if (batch) {
        batch->owner = b;
        batch->give_back = give_back;
        return batch;
    }
    pthread_mutex_lock(&b->lock);
    b->handed_out--;
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ----------------------------------------------------------------- the thread */

/* Hands over what is filled, once there is room; false: nobody wants more. */
static bool hand_over(struct sonde_table_scan *scan)
{
    struct sonde_table *batch = scan->filling;

    scan->filling = NULL;
    if (!snd_sqltable_show(batch)) {
        scan->out_of_memory = true;
        sonde_table_free(batch);
        return false;
    }
    pthread_mutex_lock(&scan->batches->lock);
    while (scan->made_count - scan->taken_count == READY_MAX && !scan->is_unwanted)
        pthread_cond_wait(&scan->taken, &scan->batches->lock);
    bool wanted = !scan->is_unwanted;
    if (wanted) {
        scan->ready[scan->made_count++ % READY_MAX] = batch;
        pthread_cond_signal(&scan->made);
    }
    pthread_mutex_unlock(&scan->batches->lock);
    if (!wanted)
        sonde_table_free(batch);
    return wanted;
}

static bool take_row(void *user, enum snd_sql_table_id table, const struct snd_sql_value *values,
                     size_t given)
{
    struct sonde_table_scan *scan = user;

    (void)table; /* it is the only one wanted */
    if (!scan->filling)
        scan->filling = next_batch(scan);
    if (!scan->filling ||
        !snd_columns_add(&scan->filling->rows, values, given, &scan->filling->texts)) {
        scan->out_of_memory = true;
        return false;
    }
    return scan->filling->rows.count < BATCH_ROWS || hand_over(scan);
}

static void *fill_batches(void *user)
{
    struct sonde_table_scan *scan = user;
    struct sonde_error       why = { 0 };
    uint32_t                 columns = 0;

    for (size_t i = 0; i < scan->chosen.count; i++)
        columns |= 1u << scan->chosen.items[i];
    enum sonde_status st = snd_sql_table_rows(scan->trace, scan->table, columns, SND_SQL_BY_PROCESS,
                                              take_row, scan, &why);
    if (scan->filling && st == SONDE_OK && !scan->out_of_memory)
        hand_over(scan);
    sonde_table_free(scan->filling);
    if (st == SONDE_OK && scan->out_of_memory)
        st = snd_fail(&why, SONDE_E_NOMEM, "out of memory for the table %s",
                      snd_sql_tables[scan->table].name);
    pthread_mutex_lock(&scan->batches->lock);
    scan->status = st;
    scan->why = why;
    scan->is_done = true;
    pthread_cond_signal(&scan->made);
    pthread_mutex_unlock(&scan->batches->lock);
    return NULL;
}

/* ------------------------------------------------------------------ the reader */

static enum sonde_status refuse_column(const struct snd_sql_table *table, const char *name,
                                       struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };

    for (size_t i = 0; i < snd_sql_column_count(table); i++)
        snd_buf_format(&names, "%s%s", i ? ", " : "", table->columns[i].name);
    enum sonde_status st = snd_fail(err, SONDE_E_ARGUMENT,
                                    "unknown column '%.60s' of the table %s; columns: %s", name,
                                    table->name, snd_buf_string(&names));
    sonde_buffer_release(&names);
    return st;
}

/* Each at most once. */
static enum sonde_status choose(const struct snd_sql_table *table, const char *const *names,
                                struct snd_chosen *chosen, struct sonde_error *err)
{
    uint32_t seen = 0;

    for (; *names; names++) {
        size_t at = snd_sql_column_find(table, *names);
        if (at == SIZE_MAX)
            return refuse_column(table, *names, err);
        if (seen & 1u << at)
            return snd_fail(err, SONDE_E_ARGUMENT, "the column '%s' was asked for twice", *names);
        seen |= 1u << at;
        chosen->items[chosen->count++] = (uint8_t)at;
    }
    return SONDE_OK;
}

enum sonde_status sonde_table_scan_new(struct sonde_trace *trace, const char *name,
                                       const char *const *columns, struct sonde_table_scan **out,
                                       struct sonde_error *err)
{
    enum snd_sql_table_id id;
    struct snd_chosen     chosen = { 0 };
    enum sonde_status     st = snd_sqltable_find(name, &id, err);

    *out = NULL;
    if (st == SONDE_OK && columns)
        st = choose(&snd_sql_tables[id], columns, &chosen, err);
    if (st != SONDE_OK)
        return st;
    const struct snd_sql_table *of = &snd_sql_tables[id];
    struct sonde_table_scan    *scan = calloc(1, sizeof *scan);
    struct batches             *batches = calloc(1, sizeof *batches);
    if (!scan || !batches) {
        free(scan);
        free(batches);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the table %s", name);
    }
    scan->trace = trace;
    scan->table = id;
    scan->chosen = columns ? chosen : snd_chosen_but(of, SIZE_MAX);
    scan->batches = batches;
    for (size_t i = 0; i < scan->chosen.count; i++) {
        const struct snd_sql_column *column = &of->columns[scan->chosen.items[i]];
        scan->columns[i] = (struct sonde_table_column){
            .name = column->name, .type = (enum sonde_column_type)column->type
        };
    }
    pthread_mutex_init(&batches->lock, NULL);
    pthread_cond_init(&scan->made, NULL);
    pthread_cond_init(&scan->taken, NULL);
    *out = scan;
    return SONDE_OK;
}

const struct sonde_table_column *sonde_table_scan_column(const struct sonde_table_scan *scan,
                                                         size_t                         index)
{
    return index < scan->chosen.count ? &scan->columns[index] : NULL;
}

enum sonde_status sonde_table_scan_next(struct sonde_table_scan *scan, struct sonde_table **batch,
                                        struct sonde_error *err)
{
    *batch = NULL;
    if (!scan->has_thread)
        scan->has_thread = snd_quiet_thread(&scan->thread, fill_batches, scan);
    if (!scan->has_thread)
        return snd_fail(err, SONDE_E_IO, "cannot start a thread to read the trace");
    pthread_mutex_lock(&scan->batches->lock);
    while (scan->made_count == scan->taken_count && !scan->is_done)
        pthread_cond_wait(&scan->made, &scan->batches->lock);
    enum sonde_status st = SONDE_OK;
    if (scan->made_count > scan->taken_count) {
        *batch = scan->ready[scan->taken_count++ % READY_MAX];
        pthread_cond_signal(&scan->taken);
    } else if (scan->status != SONDE_OK) {
        st = snd_fail(err, scan->status, "%s", scan->why.message);
    }
    pthread_mutex_unlock(&scan->batches->lock);
    return st;
}

void sonde_table_scan_free(struct sonde_table_scan *scan)
{
    if (!scan)
        return;
    struct batches *b = scan->batches;
    pthread_mutex_lock(&b->lock);
    scan->is_unwanted = true;
    pthread_cond_signal(&scan->taken);
    pthread_mutex_unlock(&b->lock);
    if (scan->has_thread)
        pthread_join(scan->thread, NULL);
    while (scan->taken_count < scan->made_count)
        sonde_table_free(scan->ready[scan->taken_count++ % READY_MAX]);
    pthread_cond_destroy(&scan->made);
    pthread_cond_destroy(&scan->taken);
    free(scan);
    pthread_mutex_lock(&b->lock);
    b->scan_is_gone = true;
    leave_batches(b);
}
