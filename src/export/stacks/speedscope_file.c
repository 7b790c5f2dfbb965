/* SPDX-License-Identifier: Apache-2.0 */
/* export/stacks/speedscope_file.c - see speedscope.h: frames, and the heads of file and profiles. */
#include "export/stacks/speedscope.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "snd_config.h"

uint32_t snd_speedscope_frame(struct snd_speedscope *s, struct sonde_text name,
                              struct sonde_text file, uint32_t line)
{
    struct snd_key key = { (uint64_t)(uintptr_t)name.bytes, (uint64_t)(uintptr_t)file.bytes, line };
    uint32_t       at;

    if (snd_map_get(&s->by_place, key, &at))
        return at;
    if (!snd_grow(&s->frames, &s->frame_room, s->frame_count, sizeof *s->frames) ||
        !snd_map_put(&s->by_place, key, s->frame_count)) {
        s->failed = true;
        return 0;
    }
    s->frames[s->frame_count] = (struct snd_speedscope_frame){ name, file, line };
    return s->frame_count++;
}

void snd_speedscope_begin(struct snd_speedscope *s, struct snd_json *json)
{
    static const char schema[] = "https://www.speedscope.app/file-format-schema.json";

    snd_json_object(json, NULL);
    snd_json_text(json, "$schema", schema);
    snd_json_text(json, "exporter", "sonde " SND_VERSION);
    snd_json_text(json, "name", sonde_trace_process(s->trace, 0)->program);
    snd_json_int(json, "activeProfileIndex", 0);
    snd_json_object(json, "shared");
    snd_json_array(json, "frames");
    for (uint32_t i = 0; i < s->frame_count; i++) {
        const struct snd_speedscope_frame *f = &s->frames[i];
        snd_json_object(json, NULL);
        snd_json_string(json, "name", f->name.bytes, f->name.length);
        if (f->file.length > 0)
            snd_json_string(json, "file", f->file.bytes, f->file.length);
        if (f->line > 0)
            snd_json_uint(json, "line", f->line);
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_json_end(json);
    snd_json_array(json, "profiles");
}

void snd_speedscope_profile(struct snd_speedscope *s, struct snd_json *json, uint32_t thread,
                            const char *type, int64_t end_ns)
{
    const struct sonde_thread *t = sonde_trace_thread(s->trace, thread);
    struct sonde_buffer        name = { 0 };

    snd_export_owner(s->trace, t->process, &name);
    if (t->name.length > 0)
        snd_buf_put(&name, t->name.bytes, t->name.length);
    else
        snd_buf_format(&name, "thread %" PRIu32, t->tid);
    snd_json_object(json, NULL);
    snd_json_text(json, "type", type);
    snd_json_string(json, "name", snd_buf_string(&name), name.length);
    snd_json_text(json, "unit", "nanoseconds");
    snd_json_int(json, "startValue", 0);
    snd_json_int(json, "endValue", end_ns);
    s->failed |= name.failed;
    sonde_buffer_release(&name);
}

void snd_speedscope_release(struct snd_speedscope *s)
{
    free(s->frames);
    snd_map_release(&s->by_place);
}
