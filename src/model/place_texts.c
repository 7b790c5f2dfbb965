/* SPDX-License-Identifier: Apache-2.0 */
#include "model/place_texts.h"

#include <stdlib.h>

#include "base/text/buf.h"
#include "model/torch_stacks.h"
#include "read/reader.h"

#define DEFAULT_DEPTH 5u /* of stacks, as averages have it */

static void put_shapes(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                       struct sonde_buffer *text)
{
    char   small[512];
    size_t length = snd_trace_shapes(trace, process, id, false, small, sizeof small);

    if (length < sizeof small) {
        snd_buf_put(text, small, length);
        return;
    }
    char *whole = malloc(length + 1);
    if (whole)
        snd_buf_put(text, whole, snd_trace_shapes(trace, process, id, false, whole, length + 1));
    text->failed |= !whole;
    free(whole);
}

/* Keeps the text of `key`, which is then released. */
static bool add_text(struct snd_place_texts *t, struct snd_key key, struct sonde_buffer *text,
                     uint32_t *number)
{
    bool added = !text->failed &&
                 snd_texts_add(&t->texts, snd_buf_string(text), text->length, number);

    sonde_buffer_release(text);
    ++*number;
    return added && snd_map_put(&t->numbers, key, *number);
}

bool snd_place_stack(struct snd_place_texts *t, const struct sonde_trace *trace, uint32_t process,
                     uint32_t stack, uint32_t *number)
{
    struct snd_key      key = { process, stack, 0 };
    struct sonde_buffer text = { 0 };

    *number = 0;
    if (stack == 0 || snd_map_get(&t->numbers, key, number))
        return true;
    snd_stack_lines(trace, process, stack, t->stack_depth ? t->stack_depth : DEFAULT_DEPTH, &text);
    return add_text(t, key, &text, number);
}

bool snd_place_shapes(struct snd_place_texts *t, const struct sonde_trace *trace, uint32_t process,
                      uint32_t shapes, uint32_t *number)
{
    struct snd_key      key = { process, shapes, 1 };
    struct sonde_buffer text = { 0 };

    *number = 0;
    if (shapes == 0 || snd_map_get(&t->numbers, key, number))
        return true;
    put_shapes(trace, process, shapes, &text);
    return add_text(t, key, &text, number);
}

struct sonde_text snd_place_text(const struct snd_place_texts *t, uint32_t number)
{
    if (number == 0)
        return (struct sonde_text){ "", 0 };
    return (struct sonde_text){ t->texts.items[number - 1].bytes,
                                t->texts.items[number - 1].length };
}

void snd_place_texts_release(struct snd_place_texts *t)
{
    snd_map_release(&t->numbers);
    snd_texts_release(&t->texts);
}
