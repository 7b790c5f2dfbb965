/* SPDX-License-Identifier: Apache-2.0 */
#include "export/stacks/weighted_stacks.h"

#include <inttypes.h>

#include "export/stacks/speedscope.h"

/* --------------------------------------------------------------------- folded */

static void put_clean(struct snd_out *out, const struct sonde_buffer *text)
{
    for (size_t i = 0; i < text->length; i++) {
        char c = text->bytes[i];
        snd_out_put(out, c == ';' || (unsigned char)c < ' ' ? "_" : &c, 1);
    }
}

static void name_frame(const struct sonde_frame *f, struct sonde_buffer *text)
{
    snd_buf_clear(text);
    snd_buf_put(text, f->function.bytes, f->function.length);
    if (f->file.length > 0)
        snd_buf_format(text, " (%.*s", (int)f->file.length, f->file.bytes);
    if (f->file.length > 0 && f->line > 0)
        snd_buf_format(text, ":%" PRIu32, f->line);
    snd_buf_text(text, f->file.length > 0 ? ")" : "");
}

static void put_line(const struct snd_weighted_source *source,
                     const struct snd_weighted_stack *stack, struct sonde_buffer *text,
                     struct snd_out *out)
{
    snd_buf_clear(text);
    source->name(source->user, stack->group, text);
    put_clean(out, text);
    for (size_t i = stack->count; i-- > 0;) {
        name_frame(&stack->frames[i].frame, text);
        snd_out_text(out, ";");
        put_clean(out, text);
    }
    snd_out_format(out, " %" PRIu64 "\n", stack->weight);
}

enum sonde_status snd_weighted_folded(const struct snd_weighted_source *source, struct snd_out *out,
                                      struct sonde_error *err)
{
    struct snd_weighted_stack stack;
    struct sonde_buffer       text = { 0 };

    while (!text.failed && source->next(source->user, &stack))
        if (stack.weight > 0)
            put_line(source, &stack, &text, out);
    bool failed = text.failed;
    sonde_buffer_release(&text);
    return failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks") : SONDE_OK;
}

/* ----------------------------------------------------------------- speedscope */

static uint32_t number_of(struct snd_speedscope *s, const struct sonde_frame *frame)
{
    return snd_speedscope_frame(s, frame->function, frame->file,
                                frame->first_line ? frame->first_line : frame->line);
}

/* The next stack of a group that has a weight. */
static bool next_of(const struct snd_weighted_source *source, uint32_t group,
                    struct snd_weighted_stack *stack)
{
    while (source->next(source->user, stack))
        if (stack->group == group && stack->weight > 0)
            return true;
    return false;
}

static void put_stacks(struct snd_speedscope *s, const struct snd_weighted_source *source,
                       uint32_t group, struct snd_json *json)
{
    struct snd_weighted_stack stack;

    snd_json_array(json, "samples");
    for (source->rewind(source->user); next_of(source, group, &stack);) {
        snd_json_array(json, NULL);
        for (size_t i = stack.count; i-- > 0;)
            snd_json_uint(json, NULL, number_of(s, &stack.frames[i].frame));
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_json_array(json, "weights");
    for (source->rewind(source->user); next_of(source, group, &stack);)
        snd_json_uint(json, NULL, stack.weight);
    snd_json_end(json);
}

static void put_profile(struct snd_speedscope *s, const struct snd_weighted_source *source,
                        uint32_t group, struct snd_json *json)
{
    struct snd_weighted_stack stack;
    struct sonde_buffer       name = { 0 };
    uint64_t                  total = 0;

    source->name(source->user, group, &name);
    for (source->rewind(source->user); next_of(source, group, &stack);)
        total += stack.weight;
    snd_json_object(json, NULL);
    snd_json_text(json, "type", "sampled");
    snd_json_string(json, "name", snd_buf_string(&name), name.length);
    snd_json_text(json, "unit", source->unit(source->user, group));
    snd_json_int(json, "startValue", 0);
    snd_json_uint(json, "endValue", total);
    put_stacks(s, source, group, json);
    snd_json_end(json);
    s->failed |= name.failed;
    sonde_buffer_release(&name);
}

enum sonde_status snd_weighted_speedscope(const struct snd_weighted_source *source,
                                          struct snd_out *out, struct sonde_error *err)
{
    struct snd_speedscope     s = { .trace = source->trace };
    struct snd_weighted_stack stack;
    struct snd_json           json;

    while (source->next(source->user, &stack)) /* all frames come first in the file */
        for (size_t i = 0; i < stack.count; i++)
            number_of(&s, &stack.frames[i].frame);
    if (!s.failed) {
        snd_json_init(&json, out);
        snd_json_break_at(&json, 2);
        snd_speedscope_begin(&s, &json);
        for (uint32_t group = 0; group < source->group_count; group++)
            put_profile(&s, source, group, &json);
        snd_json_end(&json);
        snd_json_end(&json);
    }
    bool failed = s.failed;
    snd_speedscope_release(&s);
    return failed ? snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks") : SONDE_OK;
}
