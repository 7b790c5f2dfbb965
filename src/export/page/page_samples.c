/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples on the report page's timeline: for each, its thread, time, state and stack; and the stacks, as frames that name
 * their caller. A stack is written when a sample first has it, after its callers, so that the page reads both in one go.
 */
#include <inttypes.h>

#include "export/page/page_trees.h"
#include "read/reader.h"

#define STACKS_WAITING \
    SND_STACK_MAX /* callers that are not written yet; deeper ones are left out */

static const struct snd_stack_node *stack_at(const struct snd_html *page, uint32_t process,
                                             uint32_t id)
{
    const struct snd_tables *t = &page->trace->processes[process].tables;

    return id != 0 && id < t->stack_count ? &t->stacks[id] : NULL;
}

static void put_stack(struct snd_html *page, uint32_t process, const struct snd_stack_node *node,
                      uint32_t caller)
{
    struct sonde_frame   frame = { .function = { "(not known)", 11 }, .file = { "", 0 } };
    struct snd_html_node place;

    (void)sonde_trace_frame(page->trace, process, node->frame, &frame);
    place = (struct snd_html_node){ .file = frame.file,
                                    .line = frame.first_line ? frame.first_line : frame.line };
    snd_html_value(&page->stacks, 0, caller);
    snd_html_value(&page->stacks, 1, snd_html_text(page, frame.function));
    snd_html_value(&page->stacks, 2, snd_html_place(page, &place));
    snd_html_value(&page->stacks, 3, frame.line);
    snd_html_value(&page->stacks, 4,
                   snd_frame_is_native(&page->trace->processes[process].tables, node->frame)
                       ? SND_HTML_NATIVE
                       : SND_HTML_PYTHON);
    snd_html_entry(page, &page->stacks);
}

/* The number of a stack, plus one; 0: it has no frames. Records come after their parents, so that this ends. */
static uint32_t stack_number(struct snd_html *page, uint32_t process, uint32_t id)
{
    uint32_t waiting[STACKS_WAITING], count = 0, number = 0;

    for (const struct snd_stack_node *s = stack_at(page, process, id); s && count < STACKS_WAITING;
         id = s->parent, s = stack_at(page, process, id)) {
        struct snd_key key = { SND_HTML_SAMPLED, process, id };
        if (snd_map_get(&page->numbers, key, &number))
            break;
        waiting[count++] = id;
    }
    while (count > 0 && !page->failed) {
        struct snd_key key = { SND_HTML_SAMPLED, process, waiting[--count] };
        put_stack(page, process, stack_at(page, process, waiting[count]), number);
        number = ++page->stack_count;
        page->failed |= !snd_map_put(&page->numbers, key, number);
    }
    return number;
}

void snd_html_sample(struct snd_html *page, const struct sonde_event *event)
{
    const struct sonde_event_sample *sample = &event->sample;

    if (event->thread == SONDE_NONE)
        return;
    uint32_t stack = stack_number(page, event->process, sample->stack);
    snd_html_value(&page->samples, 0, event->thread);
    snd_html_signed(&page->samples, 1,
                    snd_sub(event->time_ns, page->last_sample_ns[event->thread]));
    snd_html_value(&page->samples, 2, sample->covered_ns);
    snd_html_value(&page->samples, 3,
                   (uint64_t)(sample->count ? sample->count : 1) << SND_HTML_STATE_BITS |
                       (sample->state & ((1u << SND_HTML_STATE_BITS) - 1)));
    snd_html_value(&page->samples, 4, stack);
    page->last_sample_ns[event->thread] = event->time_ns;
    snd_html_entry(page, &page->samples);
}
