/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/code_objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

#define TABLE_MAX (1u << 22) /* bytes of a line table */
#define CODES_MAX 65536u     /* a program that keeps making functions: all are looked up anew */

void snd_codes_init(struct snd_codes *codes, pid_t pid, const struct snd_py_layout *layout,
                    uint64_t type)
{
    *codes = (struct snd_codes){ .pid = pid, .layout = layout, .type = type };
}

static void free_code(struct snd_code *code)
{
    if (!code)
        return;
    free(code->function);
    free(code->file);
    free(code->lines);
    free(code->copies);
    free(code);
}

void snd_codes_release(struct snd_codes *codes)
{
    for (uint32_t i = 0; i < codes->count; i++)
        free_code(codes->list[i]);
    free(codes->list);
    snd_map_release(&codes->by_address);
}

/* ------------------------------------------------------------------ reading */

char *snd_py_text(pid_t pid, const struct snd_py_layout *l, uint64_t object, uint64_t *data_at,
                  bool *no_memory)
{
    struct snd_py_text found;

    if (!snd_py_text_find(pid, l, object, &found))
        return NULL;
    size_t bytes = found.length * found.width;
    char  *data = malloc(bytes + 1), *text = malloc(found.length * 4 + 1);
    bool   is_read = data && text && (bytes == 0 || snd_memory_read(pid, found.at, data, bytes));
    *data_at = found.at;
    *no_memory |= !data || !text;
    if (is_read) {
        snd_py_text_encode(data, &found, text);
    } else {
        free(text);
        text = NULL;
    }
    free(data);
    return text;
}

static bool read_lines(struct snd_codes *codes, uint64_t object, struct snd_code *code)
{
    const struct snd_py_layout *l = codes->layout;
    char                        head[SND_PY_BYTES_READ];

    if (object == 0 || !snd_memory_read(codes->pid, object, head, l->bytes_data))
        return false;
    uint64_t size = snd_u64(head + l->var_size);
    if (size > TABLE_MAX)
        return false;
    code->line_bytes = (size_t)size;
    code->lines = malloc(code->line_bytes + 1);
    codes->no_memory |= !code->lines;
    return code->lines && (size == 0 || snd_memory_read(codes->pid, object + l->bytes_data,
                                                        code->lines, code->line_bytes));
}

static uint64_t word(const struct snd_code *code, uint32_t offset)
{
    return snd_u64(code->witness + offset);
}

static struct snd_code *read_code(struct snd_codes *codes, uint64_t address)
{
    const struct snd_py_layout *l = codes->layout;
    struct snd_code            *code = calloc(1, sizeof *code);
    uint64_t                    data;

    codes->no_memory |= !code;
    if (!code)
        return NULL;
    code->address = address;
    if (!snd_memory_read(codes->pid, address, code->witness, l->code_firstline + 4) ||
        word(code, l->object_type) != codes->type ||
        !snd_memory_read(codes->pid, address, code->witness,
                         l->code_size < SND_CODE_WITNESS ? l->code_size : SND_CODE_WITNESS))
        goto fail;
    code->first_line = snd_u32(code->witness + l->code_firstline);
    code->instr_count = l->code_first_instr ? word(code, l->var_size) : UINT32_MAX;
    if (code->instr_count > UINT32_MAX)
        goto fail;
    code->file = snd_py_text(codes->pid, l, word(code, l->code_file), &data, &codes->no_memory);
    code->function = snd_py_text(codes->pid, l,
                                 word(code, l->code_qualname ? l->code_qualname : l->code_name),
                                 &data, &codes->no_memory);
    if (!code->file || !code->function || !read_lines(codes, word(code, l->code_lines), code))
        goto fail;
    if (l->code_tlbc) {
        code->copies = calloc(1, sizeof *code->copies);
        codes->no_memory |= !code->copies;
        if (!code->copies)
            goto fail;
    }
    code->name_at = data;
    size_t length = strlen(code->function);
    code->name_bytes = (uint32_t)(length < SND_CODE_NAME ? length : SND_CODE_NAME);
    if (code->name_bytes > 0 && !snd_memory_read(codes->pid, data, code->name, code->name_bytes))
        goto fail;
    return code;
fail:
    free_code(code);
    return NULL;
}

/* ----------------------------------------------------------------- checking */

/* Are the fields that name the code what they were? The others change while it runs. */
static bool is_same(const struct snd_py_layout *l, const struct snd_code *code, const char *now)
{
    const uint32_t words[] = { l->object_type, l->var_size,
                               l->code_file,   l->code_name,
                               l->code_lines,  l->code_qualname ? l->code_qualname : l->code_name };

    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        if (snd_u64(now + words[i]) != word(code, words[i]))
            return false;
    return snd_u32(now + l->code_firstline) == code->first_line &&
           (!l->code_version ||
            snd_u32(now + l->code_version) == snd_u32(code->witness + l->code_version));
}

/* From 3.12 on a code object has a number of its own, unless they ran out. */
static bool has_version(const struct snd_py_layout *l, const struct snd_code *code)
{
    return l->code_version && snd_u32(code->witness + l->code_version) != 0;
}

static struct snd_code *find(const struct snd_codes *codes, uint64_t address, uint32_t *at)
{
    return snd_map_get(&codes->by_address, (struct snd_key){ address, 0, 0 }, at) ? codes->list[*at]
                                                                                  : NULL;
}

static void forget(struct snd_codes *codes, uint32_t at)
{
    struct snd_code *code = codes->list[at], *last = codes->list[--codes->count];

    snd_map_remove(&codes->by_address, (struct snd_key){ code->address, 0, 0 });
    if (last != code) {
        codes->list[at] = last;
        snd_map_put(&codes->by_address, (struct snd_key){ last->address, 0, 0 }, at);
    }
    free_code(code);
}

void snd_codes_round(struct snd_codes *codes)
{
    codes->round++;
    while (codes->count > CODES_MAX)
        forget(codes, codes->count - 1);
}

static bool compares_name(const struct snd_codes *codes, const struct snd_code *code)
{
    return !has_version(codes->layout, code) && code->name_bytes > 0;
}

static void add_piece(struct snd_codes *codes, uint64_t address, void *out, size_t size)
{
    uint32_t at = codes->piece_count++;

    for (; at > 0 && codes->pieces[at - 1].address > address; at--)
        codes->pieces[at] = codes->pieces[at - 1];
    codes->pieces[at] = (struct snd_piece){ address, out, size };
}

static void ask(struct snd_codes *codes, const struct snd_code *code)
{
    uint32_t n = codes->asked_count++;

    codes->asked[n] = code->address;
    add_piece(codes, code->address, codes->now[n], codes->layout->code_lines + 8);
    if (compares_name(codes, code))
        add_piece(codes, code->name_at, codes->names[n], code->name_bytes);
}

size_t snd_codes_ask(struct snd_codes *codes, const uint64_t *addresses, size_t count, bool all,
                     size_t most)
{
    uint64_t stamp = ++codes->asks;

    codes->asked_count = codes->piece_count = 0;
    for (size_t i = 0;
         i < count && codes->asked_count < SND_CODES_CHECKED && codes->piece_count + 2 <= most;
         i++) {
        uint32_t         at;
        struct snd_code *code = find(codes, addresses[i], &at);
        if (!code || code->asked == stamp || (!all && code->checked == codes->round))
            continue;
        code->asked = stamp;
        ask(codes, code);
    }
    return codes->piece_count;
}

/* What was read of an entry of `asked`. */
static bool is_unchanged(const struct snd_codes *codes, const struct snd_code *code, uint32_t n)
{
    return is_same(codes->layout, code, codes->now[n]) &&
           (!compares_name(codes, code) ||
            memcmp(codes->names[n], code->name, code->name_bytes) == 0);
}

void snd_codes_compare(struct snd_codes *codes, size_t whole)
{
    for (uint32_t i = 0; i < codes->asked_count && whole == codes->piece_count; i++) {
        uint32_t         at;
        struct snd_code *code = find(codes, codes->asked[i], &at);
        if (code && is_unchanged(codes, code, i))
            code->checked = codes->round;
        else if (code)
            forget(codes, at);
    }
    codes->asked_count = codes->piece_count = 0;
}

void snd_codes_check(struct snd_codes *codes, const uint64_t *addresses, size_t count)
{
    size_t n = snd_codes_ask(codes, addresses, count, false, SND_PIECES_MAX);

    if (n > 0)
        snd_codes_compare(codes, snd_memory_read_many(codes->pid, codes->pieces, n));
}

const struct snd_code *snd_codes_get(struct snd_codes *codes, uint64_t address)
{
    uint32_t         at;
    struct snd_code *code = find(codes, address, &at);

    if (code && code->checked == codes->round)
        return code;
    if (code)
        forget(codes, at);
    codes->no_memory = false;
    code = read_code(codes, address);
    if (!code)
        return NULL;
    code->serial = ++codes->serials;
    code->checked = codes->round;
    if (!snd_grow(&codes->list, &codes->capacity, codes->count, sizeof(*codes->list)) ||
        !snd_map_put(&codes->by_address, (struct snd_key){ address, 0, 0 }, codes->count)) {
        free_code(code);
        codes->no_memory = true;
        return NULL;
    }
    codes->list[codes->count++] = code;
    return code;
}
