/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/codes.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096        /* characters of a name or a path */
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

static size_t put_utf8(char *out, uint32_t c)
{
    if (c >= 0xdc80 && c <= 0xdcff) { /* a byte of a file's name that is no UTF-8 */
        *out = (char)(c & 0xff);
        return 1;
    }
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    unsigned             more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t leads[] = { 0, 0xc0, 0xe0, 0xf0 };
    out[0] = (char)(leads[more] | c >> 6 * more);
    for (unsigned i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (c >> 6 * (more - i) & 63));
    return more + 1;
}

/* Text of one, two or four bytes a character, in UTF-8. */
static char *encode(const char *data, size_t length, unsigned width)
{
    char  *text = malloc(length * 4 + 1);
    size_t at = 0;

    for (size_t i = 0; text && i < length; i++) {
        uint32_t c = 0;
        memcpy(&c, data + i * width, width);
        at += put_utf8(text + at, c & 0x1fffff);
    }
    if (text)
        text[at] = '\0';
    return text;
}

char *snd_py_text(pid_t pid, const struct snd_py_layout *l, uint64_t object, uint64_t *data_at,
                  bool *no_memory)
{
    char head[SND_PY_TEXT_READ];

    if (object == 0 || !snd_memory_read(pid, object, head, l->unicode_ascii))
        return NULL;
    uint64_t length = snd_u64(head + l->unicode_length);
    uint32_t state = snd_u32(head + l->unicode_state) >> l->unicode_kind;
    unsigned width = state & 7;
    bool     compact = state >> 3 & 1, ascii = state >> 4 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4) || length > TEXT_MAX)
        return NULL;
    char *data = malloc((size_t)length * width + 1), *text = NULL;
    *data_at = object + (ascii ? l->unicode_ascii : l->unicode_compact);
    bool is_read = data &&
                   (length == 0 || snd_memory_read(pid, *data_at, data, (size_t)length * width));
    if (is_read)
        text = encode(data, (size_t)length, width);
    *no_memory |= !data || (is_read && !text);
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

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
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

/*
 * Which bytes `instr` is after the beginning of the instructions that it is one of; false: of none. Where
 * there is no interpreter lock, threads change copies of their own.
 */
static bool find_in_copies(const struct snd_code *code, uint64_t instr, int64_t *offset)
{
    for (uint32_t i = 0; i < code->copies->count; i++) {
        int64_t at = (int64_t)(instr - code->copies->at[i]);
        if (at >= -2 && at <= (int64_t)code->instr_count * 2) {
            *offset = at;
            return at % 2 == 0;
        }
    }
    return false;
}

/* The number of copies, then their addresses, 0 of a thread that has not run it. */
static void read_copies(const struct snd_codes *codes, const struct snd_code *code)
{
    struct snd_code_copies *copies = code->copies;
    uint64_t                list = 0, count = 0;

    copies->count = 0;
    if (!snd_memory_word(codes->pid, code->address + codes->layout->code_tlbc, &list) ||
        list == 0 || !snd_memory_word(codes->pid, list, &count))
        return;
    if (count > SND_CODE_COPIES)
        count = SND_CODE_COPIES;
    if (count > 0 &&
        snd_memory_read(codes->pid, list + 8, copies->at, (size_t)count * sizeof *copies->at))
        copies->count = (uint32_t)count;
}

bool snd_code_offset(const struct snd_codes *codes, const struct snd_code *code, uint64_t instr,
                     int64_t *offset)
{
    const struct snd_py_layout *l = codes->layout;

    if (!l->code_first_instr) { /* 3.9: bytes; 3.10: units of two */
        int32_t last = (int32_t)(uint32_t)instr;
        *offset = l->lines == SND_PY_LNOTAB ? last : (int64_t)last * 2;
        return last >= -1;
    }
    if (code->copies) {
        if (find_in_copies(code, instr, offset))
            return true;
        read_copies(codes, code);
        if (find_in_copies(code, instr, offset))
            return true;
    }
    int64_t at = (int64_t)(instr - code->address - l->code_first_instr);
    *offset = at;
    return at >= -2 && at <= (int64_t)code->instr_count * 2 && at % 2 == 0;
}

#define IS_GENERATOR 0x2a0u /* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */

bool snd_code_may_begin(const struct snd_codes *codes, const struct snd_code *code)
{
    const struct snd_py_layout *l = codes->layout;

    return !l->code_flags || !(snd_u32(code->witness + l->code_flags) & IS_GENERATOR);
}
