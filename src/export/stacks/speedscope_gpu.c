/* SPDX-License-Identifier: Apache-2.0 */
/* export/stacks/speedscope_gpu.c - see speedscope.h: a profile for each stream of a GPU. */
#include <inttypes.h>
#include <stdlib.h>

#include "export/common/exporter.h"
#include "export/stacks/speedscope.h"
#include "export/timeline/gpu_streams.h"

static uint32_t frame_of(struct snd_speedscope *s, const struct snd_device_item *item)
{
    return snd_speedscope_frame(s, snd_device_work_name(s->trace, item),
                                (struct sonde_text){ "", 0 }, 0);
}

void snd_speedscope_add_work(struct snd_speedscope *s, const struct snd_devices *devices)
{
    for (uint32_t i = 0; devices && i < devices->count && !s->failed; i++)
        if (snd_work_counts(snd_device_work(s->trace, &devices->items[i])))
            frame_of(s, &devices->items[i]);
}

static void put_event(struct snd_json *json, const char *type, uint32_t frame, int64_t at_ns)
{
    snd_json_object(json, NULL);
    snd_json_text(json, "type", type);
    snd_json_uint(json, "frame", frame);
    snd_json_int(json, "at", at_ns);
    snd_json_end(json);
}

/* Work of one stream runs in order; of a graph's nodes that overlap, what is left counts. */
struct stream {
    uint32_t process, queue, first, last; /* numbers of by_time */
    int64_t  end_ns;
};

static void put_stream(struct snd_speedscope *s, const struct snd_devices *devices,
                       const struct stream *stream, struct snd_json *json)
{
    const struct snd_device_item *first = &devices->items[devices->by_time[stream->first]];
    struct sonde_buffer           name = { 0 };
    int64_t                       at = 0;

    snd_export_owner(s->trace, stream->process, &name);
    snd_stream_name(snd_device_queue(s->trace, first), &name);
    snd_json_object(json, NULL);
    snd_json_text(json, "type", "evented");
    snd_json_string(json, "name", snd_buf_string(&name), name.length);
    snd_json_text(json, "unit", "nanoseconds");
    snd_json_int(json, "startValue", 0);
    snd_json_int(json, "endValue", stream->end_ns - first->start_ns);
    snd_json_array(json, "events");
    for (uint32_t i = stream->first; i <= stream->last; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        if (item->process != stream->process || item->queue != stream->queue ||
            !snd_work_counts(snd_device_work(s->trace, item)))
            continue;
        int64_t start = item->start_ns - first->start_ns, end = start + item->duration_ns;
        start = start > at ? start : at;
        at = end > start ? end : start;
        put_event(json, "O", frame_of(s, item), start);
        put_event(json, "C", frame_of(s, item), at);
    }
    snd_json_end(json);
    snd_json_end(json);
    s->failed |= name.failed;
    sonde_buffer_release(&name);
}

/* The streams in the order in which they were first used; NULL: memory is out. */
static struct stream *list_streams(const struct snd_speedscope *s,
                                   const struct snd_devices *devices, uint32_t *count)
{
    struct stream *streams = NULL;
    struct snd_map map = { 0 };
    uint32_t       room = 0, at;
    bool           good = snd_grow(&streams, &room, 0, sizeof *streams);

    *count = 0;
    for (uint32_t i = 0; good && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        struct snd_key                key = { item->process, item->queue, 0 };
        int64_t                       end = item->start_ns + item->duration_ns;
        if (!snd_work_counts(snd_device_work(s->trace, item)))
            continue;
        if (!snd_map_get(&map, key, &at)) {
            good = snd_grow(&streams, &room, *count, sizeof *streams) &&
                   snd_map_put(&map, key, *count);
            if (!good)
                break;
            at = (*count)++;
            streams[at] = (struct stream){ item->process, item->queue, i, i, end };
        }
        streams[at].last = i;
        streams[at].end_ns = end > streams[at].end_ns ? end : streams[at].end_ns;
    }
    snd_map_release(&map);
    if (!good) {
        free(streams);
        return NULL;
    }
    return streams;
}

void snd_speedscope_put_work(struct snd_speedscope *s, const struct snd_devices *devices,
                             struct snd_json *json)
{
    uint32_t count = 0;

    if (!devices)
        return;
    struct stream *streams = list_streams(s, devices, &count);
    for (uint32_t i = 0; i < count && streams; i++)
        put_stream(s, devices, &streams[i], json);
    s->failed |= streams == NULL;
    free(streams);
}
