/* SPDX-License-Identifier: Apache-2.0 */
#include "model/torch_stacks.h"

#include <inttypes.h>
#include <string.h>

#include "base/data/map.h"
#include "read/reader.h"

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

static void put_frame_at(const struct sonde_trace *trace, uint32_t process,
                         const struct sonde_frame *f, uint32_t line, struct sonde_buffer *text)
{
    if (f->file.length > 0) {
        struct sonde_text file = snd_file_shown(trace, process, f->file);
        snd_buf_put(text, file.bytes, file.length);
        snd_buf_format(text, "(%" PRIu32 "): ", line);
    }
    snd_buf_put(text, f->function.bytes, f->function.length);
}

/* By where its function begins. */
static void put_frame(const struct sonde_trace *trace, uint32_t process,
                      const struct sonde_frame *f, struct sonde_buffer *text)
{
    put_frame_at(trace, process, f, f->first_line ? f->first_line : f->line, text);
}

/* By the line that it was at, where that was recorded. */
static void put_line(const struct sonde_trace *trace, uint32_t process, const struct sonde_frame *f,
                     struct sonde_buffer *text)
{
    put_frame_at(trace, process, f, f->line ? f->line : f->first_line, text);
}

bool snd_frame_is_c(const struct sonde_frame *frame)
{
    static const char begin[] = "<built-in ";

    return frame->file.length == 0 && frame->function.length >= sizeof begin &&
           memcmp(frame->function.bytes, begin, sizeof begin - 1) == 0;
}

typedef void put_function(const struct sonde_trace *trace, uint32_t process,
                          const struct sonde_frame *f, struct sonde_buffer *text);

static size_t put_stack(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                        char separator, put_function *put, struct sonde_buffer *text)
{
    struct sonde_frame frame;
    size_t             shown = 0;

    for (size_t i = 0; i < SND_STACK_MAX && shown < most; i++) {
        if (!snd_stack_next(trace, process, &id, &frame))
            break;
        if (is_left_out(&frame))
            continue;
        if (shown++ > 0)
            snd_buf_put(text, &separator, 1);
        put(trace, process, &frame, text);
    }
    return shown;
}

size_t snd_stack_text(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                      char separator, struct sonde_buffer *text)
{
    return put_stack(trace, process, id, most, separator, put_frame, text);
}

size_t snd_stack_lines(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                       struct sonde_buffer *text)
{
    return put_stack(trace, process, id, most, '\n', put_line, text);
}

bool snd_line_text(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                   struct sonde_buffer *text)
{
    struct sonde_frame frame;
    uint32_t           outer = id;

    while (snd_stack_next(trace, process, &outer, &frame) && snd_frame_is_c(&frame))
        id = outer;
    return snd_stack_lines(trace, process, id, 1, text) > 0;
}

void snd_function_text(const struct sonde_trace *trace, uint32_t process, uint32_t frame,
                       struct sonde_buffer *text)
{
    struct sonde_frame f;

    if (!sonde_trace_frame(trace, process, frame, &f))
        snd_buf_text(text, "(unknown)");
    else if (f.first_line == 0)
        snd_buf_put(text, f.function.bytes, f.function.length);
    else
        put_frame(trace, process, &f, text);
}

int32_t snd_module_number(struct sonde_text function)
{
    static const char prefix[] = "nn.Module: ";
    size_t            digits = function.length;
    int32_t           number = 0;

    if (digits < sizeof prefix || memcmp(function.bytes, prefix, sizeof prefix - 1) != 0)
        return -1;
    while (function.bytes[digits - 1] >= '0' && function.bytes[digits - 1] <= '9')
        digits--;
    if (digits == function.length || digits + 9 < function.length)
        return -1;
    for (; digits < function.length; digits++)
        number = number * 10 + (function.bytes[digits] - '0');
    return number;
}
