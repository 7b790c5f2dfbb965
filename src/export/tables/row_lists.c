/* SPDX-License-Identifier: Apache-2.0 */
#include "export/tables/row_lists.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/compare.h"

#define VARINT_MAX 10 /* bytes of the longest difference */

/* The number of a text. Most texts were seen a moment ago, and where they are now. */
static bool find_text(struct snd_rowlists *lists, struct sonde_text text, uint32_t *number)
{
    uint32_t *recent = &lists->recent[((uintptr_t)text.bytes >> 3 ^ (uintptr_t)text.bytes >> 11) %
                                      SND_ROWLIST_RECENT];

    if (*recent < lists->texts.count) {
        const struct snd_text *known = &lists->texts.items[*recent];
        if (known->length == text.length && memcmp(known->bytes, text.bytes, text.length) == 0) {
            *number = *recent;
            return true;
        }
    }
    if (!snd_texts_add(&lists->texts, text.bytes ? text.bytes : "", text.length, number))
        return false;
    *recent = *number;
    return true;
}

static bool find_named(struct snd_rowlists *lists, struct sonde_text text, uint32_t name,
                       uint32_t *number)
{
    size_t at = snd_sql_name_place(name);

    if (name != 0 && lists->names[at].name == name) {
        *number = lists->names[at].number;
        return true;
    }
    if (!find_text(lists, text, number))
        return false;
    if (name != 0) {
        lists->names[at].name = name;
        lists->names[at].number = *number;
    }
    return true;
}

/* A new piece, whose number is the first free one; number 0 stays unused. */
static bool add_piece(struct snd_rowlists *lists, uint32_t *number)
{
    if (lists->piece_count == 0)
        lists->piece_count = 1;
    if (!snd_grow(&lists->pieces, &lists->piece_room, lists->piece_count, sizeof *lists->pieces))
        return false;
    *number = lists->piece_count++;
    lists->pieces[*number] = (struct snd_rowlist_piece){ 0 };
    return true;
}

bool snd_rowlists_add(struct snd_rowlists *lists, struct sonde_text text, uint32_t name,
                      int64_t row)
{
    uint32_t number;

    if (!find_named(lists, text, name, &number))
        return false;
    if (number == lists->list_count) {
        if (!snd_grow(&lists->lists, &lists->list_room, number, sizeof *lists->lists))
            return false;
        lists->lists[lists->list_count++] = (struct snd_rowlist){ .text = number };
    }
    struct snd_rowlist *list = &lists->lists[number];
    if (list->last == 0 || lists->pieces[list->last].used > SND_ROWLIST_PIECE - VARINT_MAX) {
        uint32_t piece;
        if (!add_piece(lists, &piece))
            return false;
        if (list->last == 0)
            list->first = piece;
        else
            lists->pieces[list->last].next = piece;
        list->last = piece;
    }
    struct snd_rowlist_piece *piece = &lists->pieces[list->last];
    uint64_t                  step = (uint64_t)(row - list->latest);
    for (; step >= 0x80; step >>= 7)
        piece->bytes[piece->used++] = (uint8_t)(step | 0x80);
    piece->bytes[piece->used++] = (uint8_t)step;
    list->latest = row;
    return true;
}

bool snd_rowlist_next(const struct snd_rowlists *lists, struct snd_rowlist_position *at,
                      int64_t *row)
{
    uint64_t step = 0;

    if (at->piece != 0 && at->at == lists->pieces[at->piece].used) {
        at->piece = lists->pieces[at->piece].next;
        at->at = 0;
    }
    if (at->piece == 0)
        return false;
    const uint8_t *bytes = lists->pieces[at->piece].bytes;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = bytes[at->at++];
        step |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            break;
    }
    at->row += (int64_t)step;
    *row = at->row;
    return true;
}

static int compare(const void *x, const void *y, void *user)
{
    const struct snd_text *texts = user;
    const struct snd_text *a = &texts[((const struct snd_rowlist *)x)->text];
    const struct snd_text *b = &texts[((const struct snd_rowlist *)y)->text];

    return snd_order_at(a->bytes, a->length, b->bytes, b->length);
}

void snd_rowlists_sort(struct snd_rowlists *lists)
{
    if (lists->list_count > 0)
        qsort_r(lists->lists, lists->list_count, sizeof *lists->lists, compare, lists->texts.items);
}

void snd_rowlists_release(struct snd_rowlists *lists)
{
    snd_texts_release(&lists->texts);
    free(lists->lists);
    free(lists->pieces);
    *lists = (struct snd_rowlists){ 0 };
}
