/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/gpu_streams.h"

#include <inttypes.h>

void snd_stream_name(const struct snd_queue_record *queue, struct sonde_buffer *text)
{
    if (!queue) {
        snd_buf_text(text, "GPU");
        return;
    }
    snd_buf_format(text, "cuda:%" PRIu32 " stream %" PRIu32,
                   (uint32_t)SND_DEVICE_INDEX(queue->device), queue->stream);
}

struct sonde_text snd_device_work_name(const struct sonde_trace     *trace,
                                       const struct snd_device_item *item)
{
    return sonde_trace_string(trace, item->process, snd_device_work(trace, item)->name);
}
