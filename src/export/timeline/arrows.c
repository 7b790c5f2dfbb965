/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/arrows.h"

#include <stdlib.h>

#include "model/ranges/torch_rules.h"

#define FORWARDS_MAX (1u << 20) /* forward operators whose backward is still awaited */

bool snd_arrows_init(struct snd_arrows *arrows, const struct sonde_trace *trace)
{
    arrows->torch_ids = snd_torch_threads(trace);
    return arrows->torch_ids != NULL;
}

void snd_arrows_release(struct snd_arrows *arrows)
{
    free(arrows->torch_ids);
    free(arrows->forwards);
    free(arrows->spare);
    snd_map_release(&arrows->by_sequence);
}

static bool has(const struct snd_span *span, unsigned key)
{
    return span->attr_mask >> key & 1;
}

static uint32_t take_place(struct snd_arrows *a)
{
    if (a->spare_count > 0)
        return a->spare[--a->spare_count];
    if (a->count >= FORWARDS_MAX ||
        !snd_grow(&a->forwards, &a->room, a->count, sizeof *a->forwards) ||
        !snd_grow(&a->spare, &a->spare_room, a->count, sizeof *a->spare))
        return UINT32_MAX;
    return a->count++;
}

static void keep_forward(struct snd_arrows *a, struct snd_key key, const struct snd_arrow_end *own)
{
    uint32_t at;

    if (snd_map_get(&a->by_sequence, key, &at)) {
        if (own->start_ns > a->forwards[at].start_ns)
            a->forwards[at] = *own;
        return;
    }
    at = take_place(a);
    if (at != UINT32_MAX &&
        snd_map_put(&a->by_sequence, key, at)) /* otherwise the arrow is left out */
        a->forwards[at] = *own;
}

bool snd_arrows_follow(struct snd_arrows *arrows, const struct snd_span *span,
                       struct snd_arrow_end *forward)
{
    if (!has(span, SND_ATTR_SEQUENCE))
        return false;
    bool     backward = has(span, SND_ATTR_FWD_THREAD) && span->attrs[SND_ATTR_FWD_THREAD] != 0;
    uint64_t thread = backward ? span->attrs[SND_ATTR_FWD_THREAD] : arrows->torch_ids[span->thread];
    struct snd_key key = { span->process, thread, span->attrs[SND_ATTR_SEQUENCE] };
    uint32_t       at;

    if (!backward) {
        keep_forward(arrows, key,
                     &(struct snd_arrow_end){ span->serial, span->start_ns, span->thread });
        return false;
    }
    if (!snd_map_take(&arrows->by_sequence, key, &at))
        return false;
    *forward = arrows->forwards[at];
    arrows->spare[arrows->spare_count++] = at;
    return true;
}
