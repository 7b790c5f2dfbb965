/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/unclaimed.h"

#include <stdlib.h>

#include "base/data/map.h"

bool snd_unclaimed_begin(struct snd_unclaimed *unclaimed, uint32_t threads)
{
    unclaimed->threads = calloc((size_t)threads + 1, sizeof *unclaimed->threads);
    unclaimed->count = unclaimed->threads ? threads : 0;
    return unclaimed->threads != NULL;
}

bool snd_unclaimed_add(struct snd_unclaimed *unclaimed, uint32_t thread,
                       const struct snd_unclaimed_item *item)
{
    struct snd_unclaimed_list *list = &unclaimed->threads[thread];

    if (!snd_grow(&list->items, &list->room, list->count, sizeof *list->items))
        return false;
    list->items[list->count++] = *item;
    return true;
}

void snd_unclaimed_claim(struct snd_unclaimed *unclaimed, uint32_t thread, int64_t start_ns)
{
    struct snd_unclaimed_list *list = &unclaimed->threads[thread];

    while (list->count > 0 && list->items[list->count - 1].ns >= start_ns)
        list->count--;
}

void snd_unclaimed_release(struct snd_unclaimed *unclaimed)
{
    for (uint32_t i = 0; i < unclaimed->count; i++)
        free(unclaimed->threads[i].items);
    free(unclaimed->threads);
    *unclaimed = (struct snd_unclaimed){ 0 };
}
