/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of memory on the report page: from when to when each was held, by which thread it was taken, and
 * torch's categories. In which range that was the page finds by thread and time.
 */
#include "export/page/page.h"
#include "format/layout.h"

static struct snd_key key_of(const struct sonde_event *event)
{
    return (struct snd_key){ event->process, event->memory.device, event->memory.address };
}

/* `end_ns` INT64_MAX: it was not freed. */
static void put_block(struct snd_html *page, const struct snd_html_held *held, int64_t end_ns)
{
    snd_html_value(&page->blocks, 0, held->track);
    snd_html_value(&page->blocks, 1, held->thread == SONDE_NONE ? 0 : (uint64_t)held->thread + 1);
    snd_html_signed(&page->blocks, 2, snd_sub(held->start_ns, page->last_block_ns));
    snd_html_value(&page->blocks, 3,
                   end_ns == INT64_MAX ? 0 : (uint64_t)snd_sub(end_ns, held->start_ns) + 1);
    snd_html_value(&page->blocks, 4, held->bytes);
    page->last_block_ns = held->start_ns;
    snd_html_entry(page, &page->blocks);
}

static void take_back(struct snd_html *page, const struct sonde_event *event)
{
    uint32_t at;

    if (!snd_map_get(&page->held_map, key_of(event), &at))
        return; /* allocated before the recording */
    put_block(page, &page->held[at], event->time_ns);
    snd_map_remove(&page->held_map, key_of(event));
    page->held[at] = (struct snd_html_held){ .next_spare = page->spare };
    page->spare = at + 1;
}

/* A place in `held`; UINT32_MAX: memory is out. */
static uint32_t take_place(struct snd_html *page)
{
    if (page->spare) {
        uint32_t at = page->spare - 1;
        page->spare = page->held[at].next_spare;
        return at;
    }
    if (!snd_grow(&page->held, &page->held_room, page->held_count, sizeof *page->held))
        return UINT32_MAX;
    return page->held_count++;
}

void snd_html_block_event(struct snd_html *page, const struct sonde_event *event, uint32_t track)
{
    if (SND_DEVICE_TYPE(event->memory.device) < 2)
        page->has_memory_of[SND_DEVICE_TYPE(event->memory.device)] = true;
    take_back(page, event); /* an address whose free was not seen */
    if (event->kind != SONDE_EVENT_ALLOC)
        return;
    uint32_t at = take_place(page);
    if (at == UINT32_MAX || !snd_map_put(&page->held_map, key_of(event), at)) {
        page->failed = true;
        return;
    }
    page->held[at] = (struct snd_html_held){ .start_ns = event->time_ns,
                                             .bytes = event->memory.size_bytes,
                                             .thread = event->thread,
                                             .track = track,
                                             .is_held = true };
}

/* Of a device's allocations, in order of time: when, how many bytes, and what for. */
static enum sonde_status put_categories(struct snd_html *page, uint32_t type, uint32_t index,
                                        struct snd_html_block *block, struct sonde_error *err)
{
    struct sonde_timeline *timeline;
    enum sonde_status      st = sonde_timeline_new(page->trace, type, index, &timeline, err);

    if (st != SONDE_OK)
        return st;
    const struct sonde_timeline_columns *all = sonde_timeline_columns(timeline);
    int64_t                              last_ns = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->bytes[i] <= 0)
            continue;
        snd_html_value(block, 0, type);
        snd_html_signed(block, 1, snd_sub(all->time_ns[i], last_ns));
        snd_html_value(block, 2, (uint64_t)all->bytes[i]);
        snd_html_value(block, 3, all->category[i]);
        last_ns = all->time_ns[i];
        snd_html_entry(page, block);
    }
    snd_html_flush(page, block);
    sonde_timeline_free(timeline);
    return SONDE_OK;
}

enum sonde_status snd_html_memory(struct snd_html *page, struct sonde_error *err)
{
    struct snd_html_block categories;
    enum sonde_status     st = SONDE_OK;

    for (uint32_t i = 0; i < page->held_count; i++)
        if (page->held[i].is_held)
            put_block(page, &page->held[i], INT64_MAX);
    snd_html_flush(page, &page->blocks);
    if (!(page->content & SND_HAS_MEMORY))
        return SONDE_OK;
    page->failed |= !snd_html_block_init(&categories, "CATE", 4);
    for (uint32_t type = 0; type < 2 && st == SONDE_OK && !page->failed; type++) /* CPU, CUDA */
        if (page->has_memory_of[type])
            st = put_categories(page, type, SONDE_NONE, &categories, err);
    snd_html_block_release(&categories);
    return st;
}
