/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stacks.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "read/reader.h"

#define FRAMES_MAX 256u

static bool has(struct sonde_text text, const char *part)
{
    return text.length > 0 && memmem(text.bytes, text.length, part, strlen(part)) != NULL;
}

/* profiler_util._filter_stack_entry: how backward() itself got here says nothing. */
static bool is_left_out(const struct sonde_frame *f)
{
    if (has(f->file, "autograd/__init__"))
        return has(f->function, "_make_grads") || has(f->function, "backward");
    return has(f->file, "torch/tensor") && has(f->function, "backward");
}

static void put_frame(const struct sonde_trace *trace, uint32_t process,
                      const struct sonde_frame *f, struct sonde_buffer *text)
{
    if (f->file.length > 0) {
        struct sonde_text file = snd_file_shown(trace, process, f->file);
        snd_buf_put(text, file.bytes, file.length);
        snd_buf_format(text, "(%" PRIu32 "): ", f->first_line ? f->first_line : f->line);
    }
    snd_buf_put(text, f->function.bytes, f->function.length);
}

size_t snd_stack_text(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                      char separator, struct sonde_buffer *text)
{
    struct sonde_frame frames[FRAMES_MAX];
    size_t             count = snd_stack_frames(trace, process, id, frames, FRAMES_MAX, FRAMES_MAX);
    size_t             shown = 0;

    for (size_t i = 0; i < count && shown < most; i++) {
        if (is_left_out(&frames[i]))
            continue;
        if (shown++ > 0)
            snd_buf_put(text, &separator, 1);
        put_frame(trace, process, &frames[i], text);
    }
    return shown;
}
