/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/cfi_program.h"

#include <string.h>

#include "base/count_of.h"

/* ------------------------------------------------------------------ numbers */

uint64_t snd_cfi_fixed(struct snd_cfi_bytes *b, size_t size)
{
    uint64_t value = 0;

    if ((size_t)(b->end - b->at) < size) {
        b->bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&value, b->at, size); /* both processors are little-endian */
    b->at += size;
    return value;
}

static int64_t extend(uint64_t value, unsigned bits)
{
    return bits < 64 && (value >> (bits - 1) & 1u) ? (int64_t)(value | ~(uint64_t)0 << bits)
                                                   : (int64_t)value;
}

static uint64_t read_leb(struct snd_cfi_bytes *b, unsigned *bits)
{
    uint64_t value = 0, byte;

    *bits = 0;
    do {
        byte = snd_cfi_fixed(b, 1);
        if (*bits < 64)
            value |= (byte & 0x7f) << *bits;
        *bits += 7;
    } while (byte & 0x80);
    return value;
}

uint64_t snd_cfi_uleb(struct snd_cfi_bytes *b)
{
    unsigned bits;

    return read_leb(b, &bits);
}

int64_t snd_cfi_sleb(struct snd_cfi_bytes *b)
{
    unsigned bits;
    uint64_t value = read_leb(b, &bits);

    return extend(value, bits);
}

struct snd_cfi_bytes snd_cfi_take_block(struct snd_cfi_bytes *b)
{
    uint64_t size = snd_cfi_uleb(b);

    if (size > (uint64_t)(b->end - b->at)) {
        b->bad = true;
        size = 0;
    }
    struct snd_cfi_bytes block = { b->at, b->at + size, false };
    b->at += size;
    return block;
}

/* Sizes of the formats of an address; 0: not one that is used. */
static const struct {
    uint8_t size;
    bool    is_signed;
} formats[16] = {
    [0x00] = { 8, false }, [0x02] = { 2, false }, [0x03] = { 4, false }, [0x04] = { 8, false },
    [0x0a] = { 2, true },  [0x0b] = { 4, true },  [0x0c] = { 8, true },
};

uint64_t snd_cfi_read_encoded(const struct snd_cfi *c, struct snd_cfi_bytes *b, uint8_t encoding,
                              bool is_length)
{
    uint64_t here = (uint64_t)(uintptr_t)b->at + c->bias;
    size_t   size = formats[encoding & SND_CFI_ENCODED_FORMAT].size;

    if (size == 0 || (encoding & SND_CFI_ENCODED_RELATION & ~SND_CFI_ENCODED_PCREL)) {
        b->bad = true;
        return 0;
    }
    uint64_t value = snd_cfi_fixed(b, size);
    if (formats[encoding & SND_CFI_ENCODED_FORMAT].is_signed)
        value = (uint64_t)extend(value, (unsigned)size * 8);
    return value + (!is_length && (encoding & SND_CFI_ENCODED_PCREL) ? here : 0);
}

/* ------------------------------------------------------------- instructions */

enum operand {
    NONE,
    COLUMN,
    UNSIGNED,
    UNSIGNED_FACTORED,
    SIGNED_FACTORED,
    BLOCK,
    BYTE,
    HALF,
    WORD,
    ADDRESS
};

struct operands {
    uint64_t             column;
    int64_t              number;
    struct snd_cfi_bytes block;
};

typedef void effect_fn(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind);

static void do_nothing(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)c, (void)o, (void)kind;
}

static void advance(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)kind;
    c->location += (uint64_t)o->number * c->code_factor;
}

static void set_location(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)kind;
    c->location = (uint64_t)o->number;
}

/* Vector registers and the like have no place here, and are of no use. */
static void set_rule(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    if (o->column < SND_CFI_REGISTERS)
        c->row.registers[o->column] = (struct snd_cfi_rule){ kind, o->number, o->block };
}

static void set_negative(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    const struct operands negative = { o->column, -o->number, o->block };

    set_rule(c, &negative, kind);
}

static void restore(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)kind;
    if (o->column < SND_CFI_REGISTERS)
        c->row.registers[o->column] = c->initial.registers[o->column];
}

static void remember(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)o, (void)kind;
    if (c->saved_count == SND_CFI_SAVED)
        c->unknown = true;
    else
        c->saved[c->saved_count++] = c->row;
}

static void recall(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)o, (void)kind;
    if (c->saved_count == 0)
        c->unknown = true;
    else
        c->row = c->saved[--c->saved_count];
}

static void set_cfa(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    c->row.cfa_register = (uint32_t)o->column;
    c->row.cfa = (struct snd_cfi_rule){ kind, o->number, o->block };
}

static void set_cfa_register(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)kind;
    c->row.cfa_register = (uint32_t)o->column;
}

static void set_cfa_offset(struct snd_cfi *c, const struct operands *o, enum snd_cfi_kind kind)
{
    (void)kind;
    c->row.cfa.offset = o->number;
}

/* By code; the three that carry an operand in their low six bits follow. */
static const struct instruction {
    effect_fn        *effect; /* NULL: not known */
    enum operand      first, second;
    enum snd_cfi_kind kind;
} instructions[] = {
    [0x00] = { do_nothing, NONE, NONE, 0 },
    [0x01] = { set_location, ADDRESS, NONE, 0 },
    [0x02] = { advance, BYTE, NONE, 0 },
    [0x03] = { advance, HALF, NONE, 0 },
    [0x04] = { advance, WORD, NONE, 0 },
    [0x05] = { set_rule, COLUMN, UNSIGNED_FACTORED, SND_CFI_AT },
    [0x06] = { restore, COLUMN, NONE, 0 },
    [0x07] = { set_rule, COLUMN, NONE, SND_CFI_UNDEFINED },
    [0x08] = { set_rule, COLUMN, NONE, SND_CFI_SAME },
    [0x09] = { set_rule, COLUMN, UNSIGNED, SND_CFI_REGISTER },
    [0x0a] = { remember, NONE, NONE, 0 },
    [0x0b] = { recall, NONE, NONE, 0 },
    [0x0c] = { set_cfa, COLUMN, UNSIGNED, SND_CFI_REGISTER },
    [0x0d] = { set_cfa_register, COLUMN, NONE, 0 },
    [0x0e] = { set_cfa_offset, UNSIGNED, NONE, 0 },
    [0x0f] = { set_cfa, BLOCK, NONE, SND_CFI_IS_RESULT },
    [0x10] = { set_rule, COLUMN, BLOCK, SND_CFI_AT_RESULT },
    [0x11] = { set_rule, COLUMN, SIGNED_FACTORED, SND_CFI_AT },
    [0x12] = { set_cfa, COLUMN, SIGNED_FACTORED, SND_CFI_REGISTER },
    [0x13] = { set_cfa_offset, SIGNED_FACTORED, NONE, 0 },
    [0x14] = { set_rule, COLUMN, UNSIGNED_FACTORED, SND_CFI_IS },
    [0x15] = { set_rule, COLUMN, SIGNED_FACTORED, SND_CFI_IS },
    [0x16] = { set_rule, COLUMN, BLOCK, SND_CFI_IS_RESULT },
    [0x2d] = { do_nothing, NONE, NONE,
               0 }, /* the return address is signed: it is stripped anyway */
    [0x2e] = { do_nothing, UNSIGNED, NONE, 0 },
    [0x2f] = { set_negative, COLUMN, UNSIGNED_FACTORED, SND_CFI_AT },
};
#define INSTRUCTIONS SND_COUNT_OF(instructions)

static void read_operand(struct snd_cfi *c, enum operand operand, struct operands *o)
{
    static const uint8_t  sizes[] = { [BYTE] = 1, [HALF] = 2, [WORD] = 4 };
    struct snd_cfi_bytes *b = &c->program;

    if (operand == COLUMN)
        o->column = snd_cfi_uleb(b);
    else if (operand == UNSIGNED)
        o->number = (int64_t)snd_cfi_uleb(b);
    else if (operand == UNSIGNED_FACTORED)
        o->number = (int64_t)(snd_cfi_uleb(b) * (uint64_t)c->data_factor); /* may wrap: untrusted */
    else if (operand == SIGNED_FACTORED)
        o->number = (int64_t)((uint64_t)snd_cfi_sleb(b) * (uint64_t)c->data_factor);
    else if (operand == BLOCK)
        o->block = snd_cfi_take_block(b);
    else if (operand == ADDRESS)
        o->number = (int64_t)snd_cfi_read_encoded(c, b, c->encoding, false);
    else if (operand != NONE)
        o->number = (int64_t)snd_cfi_fixed(b, sizes[operand]);
}

void snd_cfi_execute(struct snd_cfi *c)
{
    uint8_t         code = (uint8_t)snd_cfi_fixed(&c->program, 1);
    struct operands o = { .column = code & 0x3fu, .number = code & 0x3f };

    if (code >> 6 == 1) {
        advance(c, &o, 0);
    } else if (code >> 6 == 2) {
        read_operand(c, UNSIGNED_FACTORED, &o);
        set_rule(c, &o, SND_CFI_AT);
    } else if (code >> 6 == 3) {
        restore(c, &o, 0);
    } else if (code < INSTRUCTIONS && instructions[code].effect) {
        const struct instruction *i = &instructions[code];
        read_operand(c, i->first, &o);
        read_operand(c, i->second, &o);
        i->effect(c, &o, i->kind);
    } else {
        c->unknown = true;
    }
}

bool snd_cfi_run(struct snd_cfi *c, struct snd_cfi_bytes program)
{
    c->program = program;
    while (c->program.at < c->program.end && c->location <= c->pc && !c->unknown)
        snd_cfi_execute(c);
    return !c->program.bad && !c->unknown;
}
