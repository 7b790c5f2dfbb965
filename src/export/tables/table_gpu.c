/* SPDX-License-Identifier: Apache-2.0 */
/* export/tables/table_gpu.c - rows of the table gpu_work: what GPUs did, and which call of which operator asked for it. */
#include <string.h>

#include "export/timeline/gpu_streams.h"
#include "export/tables/tables.h"
#include "model/gpu/kernels.h"
#include "model/gpu/launches.h"

static struct snd_sql_value of_number(bool is_known, int64_t number)
{
    return (struct snd_sql_value){ .number = number, .is_null = !is_known };
}

static struct snd_sql_value of_text(bool is_known, struct sonde_text text)
{
    return (struct snd_sql_value){ .text = text, .is_null = !is_known };
}

static struct sonde_text text_of(const struct sonde_trace *trace, uint32_t name)
{
    return (struct sonde_text){ trace->names.items[name].bytes, trace->names.items[name].length };
}

/* In the order of tables.def. */
static bool put_item(const struct snd_launches *launches, const struct snd_device_item *item,
                     snd_sql_row_fn *row, void *user)
{
    struct sonde_trace            *trace = launches->trace;
    const struct snd_work_record  *work = snd_device_work(trace, item);
    const struct snd_queue_record *queue = snd_device_queue(trace, item);
    const struct snd_launch *launch = snd_launch_of(launches, item->process, item->correlation);
    static const struct snd_where nowhere = { .name = SONDE_NONE, .module = SONDE_NONE };
    const struct snd_where       *where = launch ? &launches->places[launch->where] : &nowhere;
    const char                   *kind = snd_work_words[work->kind];
    const struct snd_sql_value    values[] = {
           of_number(true, item->process),
           of_number(queue, queue ? SND_DEVICE_INDEX(queue->device) : 0),
           of_number(queue, queue ? queue->stream : 0),
           of_text(true, (struct sonde_text){ kind, strlen(kind) }),
           of_text(true, snd_device_work_name(trace, item)),
           of_number(true, item->start_ns),
           of_number(true, item->duration_ns),
           of_number(work->kind != SND_WORK_KERNEL, (int64_t)work->bytes),
           of_number(item->node != 0, (int64_t)item->node),
           of_number(item->correlation != 0, item->correlation),
           of_number(launch, launch ? launch->thread : 0),
           of_text(launch, launch ? text_of(trace, launch->name) : (struct sonde_text){ 0 }),
           of_number(launch, launch ? launch->begin_ns : 0),
           of_number(launch, launch ? snd_sub(launch->end_ns, launch->begin_ns) : 0),
           of_text(where->name != SONDE_NONE, snd_where_name(launches, where)),
           of_text(where->module != SONDE_NONE, snd_where_module(launches, where)),
    };

    return row(user, SND_TABLE_gpu_work, values, SND_SQL_COLUMNS_MAX);
}

enum sonde_status snd_sql_gpu_rows(struct sonde_trace *trace, snd_sql_row_fn *row, void *user,
                                   bool *stopped, struct sonde_error *err)
{
    const struct snd_devices *devices;
    struct snd_launches      *launches;
    enum sonde_status         st = snd_trace_devices_by_time(trace, &devices, err);

    if (st != SONDE_OK || !devices)
        return st;
    st = snd_launches_new(trace, &launches, err);
    for (uint32_t i = 0; st == SONDE_OK && !*stopped && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        if (snd_work_counts(snd_device_work(trace, item)))
            *stopped = !put_item(launches, item, row, user);
    }
    snd_launches_free(launches);
    return st;
}
