/* SPDX-License-Identifier: Apache-2.0 */
/* view/python/pstats_sort.c - the names of functions as pstats has them, and its sort keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/compare.h"
#include "base/text/buf.h"
#include "base/text/nearest.h"
#include "view/python/pstats.h"
#include "view/render/format.h"

#define KEYS_MAX 8

/* Columns by which rows are compared. */
enum column { PRIMITIVE, CALLS, SELF, TOTAL, FILE_NAME, LINE, NAME, STANDARD_NAME };

static const struct {
    const char *name, *shown;
    enum column columns[3];
    size_t      count;
} keys[] = {
    { "calls", "call count", { CALLS }, 1 },
    { "ncalls", "call count", { CALLS }, 1 },
    { "cumtime", "cumulative time", { TOTAL }, 1 },
    { "cumulative", "cumulative time", { TOTAL }, 1 },
    { "filename", "file name", { FILE_NAME }, 1 },
    { "line", "line number", { LINE }, 1 },
    { "module", "file name", { FILE_NAME }, 1 },
    { "name", "function name", { NAME }, 1 },
    { "nfl", "name/file/line", { NAME, FILE_NAME, LINE }, 3 },
    { "pcalls", "primitive call count", { PRIMITIVE }, 1 },
    { "stdname", "standard name", { STANDARD_NAME }, 1 },
    { "time", "internal time", { SELF }, 1 },
    { "tottime", "internal time", { SELF }, 1 },
};
#define KEY_COUNT SND_COUNT_OF(keys)

struct sorted {
    const struct sonde_function *function;
    const char                  *standard_name;
    uint32_t                     index;
    const enum column           *columns; /* of all rows: the same */
    size_t                       column_count;
};

/* An exact key, or the beginning of keys that mean the same. KEY_COUNT: none. */
static size_t find_key(const char *word, size_t length)
{
    size_t found = KEY_COUNT;

    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strncmp(keys[i].name, word, length) != 0)
            continue;
        if (keys[i].name[length] == '\0')
            return i;
        if (found < KEY_COUNT && strcmp(keys[found].shown, keys[i].shown) != 0)
            return KEY_COUNT;
        found = i;
    }
    return length > 0 ? found : KEY_COUNT;
}

static enum sonde_status refuse(const char *word, size_t length, struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };
    struct snd_nearest  nearest = { .word = word, .length = length };
    char                hint[SND_HINT_MAX];

    for (size_t i = 0; i < KEY_COUNT; i++) {
        snd_buf_format(&names, "%s%s", i ? ", " : "", keys[i].name);
        snd_nearest_try(&nearest, keys[i].name);
    }
    snd_fail(err, SONDE_E_ARGUMENT, "cannot sort functions by '%.*s'%s; keys: %s",
             (int)(length < 60 ? length : 60), word, snd_nearest_hint(&nearest, hint),
             snd_buf_string(&names));
    sonde_buffer_release(&names);
    return SONDE_E_ARGUMENT;
}

static enum sonde_status read_keys(const char *words, enum column *columns, size_t *count,
                                   struct snd_pstats *p, struct sonde_error *err)
{
    *count = 0;
    for (;;) {
        size_t length = strcspn(words, ","), key = find_key(words, length);
        if (key == KEY_COUNT || *count + 3 > KEYS_MAX * 3)
            return refuse(words, length, err);
        size_t used = strlen(p->sorted_by);
        snprintf(p->sorted_by + used, sizeof p->sorted_by - used, "%s%s", used ? ", " : "",
                 keys[key].shown);
        for (size_t i = 0; i < keys[key].count; i++)
            columns[(*count)++] = keys[key].columns[i];
        if (words[length] == '\0')
            return SONDE_OK;
        words += length + 1;
    }
}

int snd_pstats_compare(struct sonde_text x, struct sonde_text y)
{
    return snd_order_at(x.bytes, x.length, y.bytes, y.length);
}

static int compare_column(const struct sorted *x, const struct sorted *y, enum column column)
{
    const struct sonde_function *a = x->function, *b = y->function;

    switch (column) {
    case PRIMITIVE:
        return SND_FALLING(a->primitive_calls, b->primitive_calls);
    case CALLS:
        return SND_FALLING(a->calls, b->calls);
    case SELF:
        return SND_FALLING(a->self_ns, b->self_ns);
    case TOTAL:
        return SND_FALLING(a->total_ns, b->total_ns);
    case FILE_NAME:
        return snd_pstats_compare(a->file, b->file);
    case LINE:
        return SND_RISING(a->line, b->line);
    case NAME:
        return snd_pstats_compare(a->name, b->name);
    case STANDARD_NAME:
        return strcmp(x->standard_name, y->standard_name);
    }
    return 0;
}

/* What the keys leave equal is in the order of names: pstats leaves it to chance. */
static int compare(const void *left, const void *right)
{
    const struct sorted *x = left, *y = right;

    for (size_t i = 0; i < x->column_count; i++) {
        int sign = compare_column(x, y, x->columns[i]);
        if (sign)
            return sign;
    }
    int sign = strcmp(x->standard_name, y->standard_name);
    return sign ? sign : SND_RISING(x->index, y->index);
}

void snd_pstats_name(const struct sonde_function *f, struct sonde_buffer *name)
{
    const char *bytes = f->name.bytes;
    size_t      length = f->name.length;

    if (f->line == 0 && f->file.length == 1 && f->file.bytes[0] == '~') {
        bool angled = length > 1 && bytes[0] == '<' && bytes[length - 1] == '>';
        snd_buf_text(name, angled ? "{" : "");
        snd_format_text(name, bytes + angled, length - 2 * angled);
        snd_buf_text(name, angled ? "}" : "");
        return;
    }
    snd_format_text(name, f->file.bytes, f->file.length);
    snd_buf_format(name, ":%" PRIu32 "(", f->line);
    snd_format_text(name, bytes, length);
    snd_buf_text(name, ")");
}

/* Each row with its name; false when memory is out. The names lie in `text`. */
static bool make_rows(const struct sonde_functions *functions, struct sorted *rows, size_t count,
                      const enum column *columns, size_t column_count, struct sonde_buffer *text)
{
    size_t *starts = calloc(count + 1, sizeof *starts);

    for (size_t i = 0; starts && i < count; i++) {
        starts[i] = text->length;
        snd_pstats_name(sonde_functions_row(functions, i), text);
        snd_buf_put(text, "", 1);
    }
    for (size_t i = 0; starts && !text->failed && i < count; i++)
        rows[i] = (struct sorted){ sonde_functions_row(functions, i), text->bytes + starts[i],
                                   (uint32_t)i, columns, column_count };
    bool good = starts && !text->failed;
    free(starts);
    return good;
}

enum sonde_status snd_pstats_sort(const struct sonde_functions *functions, const char *words,
                                  struct snd_pstats **out, struct sonde_error *err)
{
    size_t              count = sonde_functions_count(functions), column_count = 0;
    struct snd_pstats  *p = calloc(1, sizeof *p + count * sizeof p->order[0]);
    struct sorted      *rows = calloc(count + 1, sizeof *rows);
    struct sonde_buffer text = { 0 };
    enum column         columns[KEYS_MAX * 3];
    enum sonde_status   st;

    *out = NULL;
    if (!p || !rows) {
        free(p);
        free(rows);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for sorting %zu functions", count);
    }
    st = read_keys(words, columns, &column_count, p, err);
    if (st == SONDE_OK && !make_rows(functions, rows, count, columns, column_count, &text))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for sorting %zu functions", count);
    if (st == SONDE_OK) {
        snd_sort(rows, count, sizeof *rows, compare);
        p->count = count;
        for (size_t i = 0; i < count; i++)
            p->order[i] = rows[i].index;
        *out = p;
    } else {
        free(p);
    }
    free(rows);
    sonde_buffer_release(&text);
    return st;
}
