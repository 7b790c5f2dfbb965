/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/code.h"

#include <string.h>

/* --------------------------------------------------------------------- text */

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

size_t snd_py_text_encode(const char *data, const struct snd_py_text *text, char *out)
{
    size_t at = 0;

    for (size_t i = 0; i < text->length; i++) {
        uint32_t c = 0;
        memcpy(&c, data + i * text->width, text->width);
        at += put_utf8(out + at, c & 0x1fffff);
    }
    out[at] = '\0';
    return at;
}

bool snd_py_text_find(pid_t pid, const struct snd_py_layout *l, uint64_t object,
                      struct snd_py_text *text)
{
    char head[SND_PY_TEXT_READ];

    if (object == 0 || !snd_memory_read(pid, object, head, l->unicode_ascii))
        return false;
    uint64_t length = snd_u64(head + l->unicode_length);
    uint32_t state = snd_u32(head + l->unicode_state) >> l->unicode_kind;
    unsigned width = state & 7;
    bool     compact = state >> 3 & 1, ascii = state >> 4 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4) || length > SND_PY_TEXT_MAX)
        return false;
    *text = (struct snd_py_text){ object + (ascii ? l->unicode_ascii : l->unicode_compact),
                                  (size_t)length, width };
    return true;
}

/* ------------------------------------------------------------------- places */

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
static void read_copies(pid_t pid, const struct snd_py_layout *l, const struct snd_code *code)
{
    struct snd_code_copies *copies = code->copies;
    uint64_t                list = 0, count = 0;

    copies->count = 0;
    if (!snd_memory_word(pid, code->address + l->code_tlbc, &list) || list == 0 ||
        !snd_memory_word(pid, list, &count))
        return;
    if (count > SND_CODE_COPIES)
        count = SND_CODE_COPIES;
    if (count > 0 && snd_memory_read(pid, list + 8, copies->at, (size_t)count * sizeof *copies->at))
        copies->count = (uint32_t)count;
}

bool snd_code_offset(pid_t pid, const struct snd_py_layout *l, const struct snd_code *code,
                     uint64_t instr, int64_t *offset)
{
    if (!l->code_first_instr) { /* 3.9: bytes; 3.10: units of two */
        int32_t last = (int32_t)(uint32_t)instr;
        *offset = l->lines == SND_PY_LNOTAB ? last : (int64_t)last * 2;
        return last >= -1;
    }
    if (code->copies) {
        if (find_in_copies(code, instr, offset))
            return true;
        read_copies(pid, l, code);
        if (find_in_copies(code, instr, offset))
            return true;
    }
    int64_t at = (int64_t)(instr - code->address - l->code_first_instr);
    *offset = at;
    return at >= -2 && at <= (int64_t)code->instr_count * 2 && at % 2 == 0;
}

#define IS_GENERATOR 0x2a0u /* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */

bool snd_code_may_begin(const struct snd_py_layout *l, const struct snd_code *code)
{
    return !l->code_flags || !(snd_u32(code->witness + l->code_flags) & IS_GENERATOR);
}
