/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/diff/diff_match.c - which row of A is which of B; declared in diff.h.
 *
 * By key first. What is left is matched by place: a row that follows the partner of its predecessor,
 * in the order in which rows began, and has as many calls, is the same row under another name. Functions of
 * samples have neither order nor calls: chance decides which of them are seen, and when first.
 */
#include <stdlib.h>

#include "base/text/buf.h"
#include "model/diff/diff.h"

/* Two rows of one key (an operator, and a range that a person gave its name) are told apart. */
static bool find_line(struct snd_diff_side *side, const struct snd_diff_item *item, uint32_t run,
                      uint32_t *at)
{
    struct sonde_buffer key = { 0 };
    bool                done = false;

    snd_buf_put(&key, item->key.bytes, item->key.length);
    while (!done && !key.failed) {
        if (!snd_texts_add(&side->keys, key.bytes ? key.bytes : "", key.length, at))
            break;
        done = *at >= side->count || side->lines[*at].items[run] == NULL;
        snd_buf_put(&key, "\1", 1);
    }
    sonde_buffer_release(&key);
    return done;
}

bool snd_diff_side_fill(struct snd_diff_side *side, const struct snd_diff_run *runs, uint32_t count)
{
    side->runs = count;
    for (uint32_t run = 0; run < count; run++) {
        for (uint32_t i = 0; i < runs[run].count; i++) {
            const struct snd_diff_item *item = &runs[run].items[i];
            uint32_t                    at;
            if (!find_line(side, item, run, &at))
                return false;
            if (at >= side->count) {
                if (!snd_grow(&side->lines, &side->room, side->count, sizeof *side->lines))
                    return false;
                const struct snd_diff_item **items = snd_arena_take(&side->arena,
                                                                    count * sizeof *items);
                if (!items)
                    return false;
                for (uint32_t r = 0; r < count; r++)
                    items[r] = NULL;
                side->lines[side->count++] = (struct snd_diff_line){ items, item, 0, false };
            }
            side->lines[at].items[run] = item;
        }
    }
    return true;
}

void snd_diff_side_release(struct snd_diff_side *side)
{
    free(side->lines);
    snd_texts_release(&side->keys);
    snd_arena_release(&side->arena);
}

static void pair(struct snd_diff_side *a, struct snd_diff_side *b, uint32_t i, uint32_t j,
                 bool place)
{
    a->lines[i].partner = j + 1;
    b->lines[j].partner = i + 1;
    a->lines[i].by_place = b->lines[j].by_place = place;
}

bool snd_diff_match(struct snd_diff_side *a, struct snd_diff_side *b, bool by_place)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct snd_text *key = &a->keys.items[i];
        uint32_t               j;
        if (!snd_texts_add(&b->keys, key->bytes, key->length, &j))
            return false;
        if (j < b->count)
            pair(a, b, i, j, false);
    }
    for (uint32_t j = 0; by_place && j < b->count; j++) {
        uint32_t before = j > 0 ? b->lines[j - 1].partner : 0;
        if (b->lines[j].partner || (j > 0 && before == 0))
            continue;
        uint32_t i = before; /* the row after the partner of the one before */
        if (i < a->count && a->lines[i].partner == 0 &&
            a->lines[i].first->all.count == b->lines[j].first->all.count)
            pair(a, b, i, j, true);
    }
    return true;
}
