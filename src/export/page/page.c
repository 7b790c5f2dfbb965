/* SPDX-License-Identifier: Apache-2.0 */
/* Sections, blocks and texts of the report page's data. */
#include "export/page/page.h"

#include <stdlib.h>

#include "export/encode/little_endian.h"
#include "export/timeline/torch_tensors.h"
#include "model/torch_stacks.h"

/* ------------------------------------------------------------------ sections */

static void put_section(struct snd_html *page, const char *kind, const void *data, size_t length)
{
    if (length > UINT32_MAX) {
        page->failed = true;
        return;
    }
    snd_out_put(page->out, kind, 4);
    snd_out_le(page->out, length, 4);
    snd_out_put(page->out, data, length);
}

void snd_html_json(struct snd_html *page, const char *kind, struct sonde_buffer *text)
{
    page->failed |= text->failed;
    if (!text->failed)
        put_section(page, kind, text->bytes, text->length);
    snd_buf_clear(text);
}

/* -------------------------------------------------------------------- blocks */

bool snd_html_block_init(struct snd_html_block *block, const char *kind, uint32_t columns)
{
    bool good = true;

    *block = (struct snd_html_block){ .kind = kind, .columns = columns };
    for (uint32_t i = 0; i < columns; i++)
        good &= (block->bytes[i] = malloc((size_t)SND_HTML_BLOCK * SND_VARINT_MAX)) != NULL;
    return good;
}

void snd_html_block_release(struct snd_html_block *block)
{
    for (uint32_t i = 0; i < block->columns; i++)
        free(block->bytes[i]);
}

void snd_html_flush(struct snd_html *page, struct snd_html_block *block)
{
    size_t length = 4;

    if (block->count == 0)
        return;
    for (uint32_t i = 0; i < block->columns; i++)
        length += 4 + block->length[i];
    snd_out_put(page->out, block->kind, 4);
    snd_out_le(page->out, length, 4);
    snd_out_le(page->out, block->count, 4);
    for (uint32_t i = 0; i < block->columns; i++) {
        snd_out_le(page->out, block->length[i], 4);
        snd_out_put(page->out, block->bytes[i], block->length[i]);
        block->length[i] = 0;
    }
    block->count = 0;
}

void snd_html_entry(struct snd_html *page, struct snd_html_block *block)
{
    if (++block->count == SND_HTML_BLOCK)
        snd_html_flush(page, block);
}

/* --------------------------------------------------------------------- texts */

uint32_t snd_html_text(struct snd_html *page, struct sonde_text text)
{
    uint32_t number = 0;

    if (text.length > 0 && !snd_texts_add(&page->texts, text.bytes, text.length, &number))
        page->failed = true;
    return number;
}

uint32_t snd_html_name(struct snd_html *page, uint32_t name)
{
    const struct snd_text *text = &page->trace->names.items[name];

    if (page->by_name[name] == 0)
        page->by_name[name] = 1 +
                              snd_html_text(page, (struct sonde_text){ text->bytes, text->length });
    return page->by_name[name] - 1;
}

static void write_id(struct snd_html *page, enum snd_html_what what, uint32_t process, uint32_t id)
{
    struct sonde_text string;

    switch (what) {
    case SND_HTML_SHAPES:
        snd_tensors_text(page->trace, process, id, &page->text);
        break;
    case SND_HTML_STACK:
        snd_stack_lines(page->trace, process, id, SIZE_MAX, &page->text);
        break;
    case SND_HTML_MODULE:
        string = sonde_trace_string(page->trace, process, id);
        snd_buf_put(&page->text, string.bytes, string.length);
        break;
    case SND_HTML_FUNCTION:
        snd_function_text(page->trace, process, id, &page->text);
        break;
    case SND_HTML_SAMPLED:
        break;
    }
}

static uint32_t number_id(struct snd_html *page, enum snd_html_what what, uint32_t process,
                          uint32_t id)
{
    struct snd_key key = { what, process, id };
    uint32_t       number;

    if (snd_map_get(&page->numbers, key, &number))
        return number;
    snd_buf_clear(&page->text);
    write_id(page, what, process, id);
    number = snd_html_text(page, (struct sonde_text){ page->text.bytes, page->text.length });
    if (page->text.failed || !snd_map_put(&page->numbers, key, number))
        page->failed = true;
    return number;
}

/* Most ranges are of few operators. */
uint32_t snd_html_id(struct snd_html *page, enum snd_html_what what, uint32_t process, uint32_t id)
{
    struct snd_html_recent *recent = &page->recent[(id * 4 + what) % SND_HTML_RECENT];

    if (id == 0)
        return 0;
    if (recent->id != id || recent->what != what || recent->process != process)
        *recent = (struct snd_html_recent){ what, process, id, number_id(page, what, process, id) };
    return recent->number;
}
