/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/nearest.h"

#include <stdio.h>
#include <string.h>

#define WORD_MAX 40 /* longer words get no suggestion */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c == '-' ? '_' : (unsigned char)c;
}

static size_t least(size_t x, size_t y)
{
    return x < y ? x : y;
}

/* Edits from one to the other: insert, delete, replace, swap two neighbours. */
static size_t count_edits(const char *x, size_t m, const char *y, size_t n)
{
    size_t rows[3][WORD_MAX + 1]; /* the row being made and the two above it */

    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *two_up = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            int a = lower(x[i - 1]), b = lower(y[j - 1]);
            row[j] = least(least(row[j - 1], up[j]) + 1, up[j - 1] + (a != b));
            if (i > 1 && j > 1 && a == lower(y[j - 2]) && b == lower(x[i - 2]))
                row[j] = least(row[j], two_up[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

static int begins_with(const char *text, const char *start, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' || lower(text[i]) != lower(start[i]))
            return 0;
    return 1;
}

/* Near is an abbreviation ("mem"), or one edit, two from five letters on, three from eight. */
void snd_nearest_try(struct snd_nearest *nearest, const char *candidate)
{
    size_t length = strlen(candidate), distance;

    if (nearest->length < 2 || nearest->length > WORD_MAX || length > WORD_MAX)
        return;
    if (begins_with(candidate, nearest->word, nearest->length))
        distance = 1;
    else
        distance = count_edits(nearest->word, nearest->length, candidate, length);
    if (distance <= (least(nearest->length, length) + 1) / 3 &&
        (!nearest->best || distance < nearest->distance)) {
        nearest->best = candidate;
        nearest->distance = distance;
    }
}

const char *snd_nearest_hint(const struct snd_nearest *nearest, char hint[SND_HINT_MAX])
{
    hint[0] = '\0';
    if (nearest->best)
        snprintf(hint, SND_HINT_MAX, " (did you mean '%.*s'?)", WORD_MAX, nearest->best);
    return hint;
}
