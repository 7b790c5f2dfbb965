/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/gpu_streams.h - what GPUs did, for formats that only have threads and times.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_TIMELINE_GPU_STREAMS_H
#define SND_EXPORT_TIMELINE_GPU_STREAMS_H

#include "base/text/buf.h"
#include "read/walk/device_work.h"

/* Appends "cuda:0 stream 7"; "GPU" where the queue is not known (NULL). */
void snd_stream_name(const struct snd_queue_record *queue, struct sonde_buffer *text);

struct sonde_text snd_device_work_name(const struct sonde_trace     *trace,
                                       const struct snd_device_item *item);

#endif
