/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/cfi.h"

#include <dlfcn.h>
#include <string.h>

/* How addresses are stored. */
#define ENCODED_FORMAT 0x0f
#define ENCODED_PCREL 0x10
#define ENCODED_RELATION 0x70
#define ENCODED_OMITTED 0xff
#define TABLE_ENCODING 0x3b /* of the sorted table: 4 bytes, signed, from where the header is */

/* struct dl_find_object of <dlfcn.h>, which older headers do not have. */
struct object {
    unsigned long long flags;
    void              *begin, *end;
    void              *link_map;
    void              *header; /* .eh_frame_hdr */
    unsigned long long reserved[7];
};

static int (*find_object)(void *address, struct object *object);

bool snd_cfi_init(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");

    memcpy(&find_object, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool snd_cfi_object(uint64_t address, struct snd_cfi_object *found)
{
    struct object object;

    if (!find_object || find_object((void *)(uintptr_t)address, &object) != 0) /* NOLINT */
        return false;
    *found = (struct snd_cfi_object){ (uint64_t)(uintptr_t)object.begin,
                                      (uint64_t)(uintptr_t)object.end, object.link_map };
    return true;
}

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

static struct snd_cfi_bytes take_block(struct snd_cfi_bytes *b)
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

/* A length is a difference, whatever addresses are relative to. */
static uint64_t read_encoded(const struct snd_cfi *c, struct snd_cfi_bytes *b, uint8_t encoding,
                             bool is_length)
{
    uint64_t here = (uint64_t)(uintptr_t)b->at + c->bias;
    size_t   size = formats[encoding & ENCODED_FORMAT].size;

    if (size == 0 || (encoding & ENCODED_RELATION & ~ENCODED_PCREL)) {
        b->bad = true;
        return 0;
    }
    uint64_t value = snd_cfi_fixed(b, size);
    if (formats[encoding & ENCODED_FORMAT].is_signed)
        value = (uint64_t)extend(value, (unsigned)size * 8);
    return value + (!is_length && (encoding & ENCODED_PCREL) ? here : 0);
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
#define INSTRUCTIONS (sizeof instructions / sizeof instructions[0])

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
        o->block = take_block(b);
    else if (operand == ADDRESS)
        o->number = (int64_t)read_encoded(c, b, c->encoding, false);
    else if (operand != NONE)
        o->number = (int64_t)snd_cfi_fixed(b, sizes[operand]);
}

static void execute(struct snd_cfi *c)
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

static bool run_program(struct snd_cfi *c, struct snd_cfi_bytes program)
{
    c->program = program;
    while (c->program.at < c->program.end && c->location <= c->pc && !c->unknown)
        execute(c);
    return !c->program.bad && !c->unknown;
}

/* ------------------------------------------------------------------- tables */

/* An entry of .eh_frame without its length; `bad` where it is not one of 32 bits. */
static struct snd_cfi_bytes open_entry(const uint8_t *at)
{
    struct snd_cfi_bytes head = { at, at + 4, false };
    uint32_t             size = (uint32_t)snd_cfi_fixed(&head, 4);

    return (struct snd_cfi_bytes){ at + 4, at + 4 + size, size < 4 || size >= 0xfffffff0u };
}

/* The common part of functions; `c->program` becomes its instructions. */
static bool read_common(struct snd_cfi *c, struct snd_cfi_bytes b)
{
    snd_cfi_fixed(&b, 4);
    uint64_t    version = snd_cfi_fixed(&b, 1);
    const char *letters = (const char *)b.at;
    while (snd_cfi_fixed(&b, 1) != 0 && !b.bad)
        continue;
    if (b.bad || (version != 1 && version != 3 && version != 4) ||
        (letters[0] != 'z' && letters[0] != '\0'))
        return false;
    if (version == 4) /* sizes of an address and of a segment */
        snd_cfi_fixed(&b, 2);
    c->code_factor = snd_cfi_uleb(&b);
    c->data_factor = snd_cfi_sleb(&b);
    c->return_column = (uint32_t)(version == 1 ? snd_cfi_fixed(&b, 1) : snd_cfi_uleb(&b));
    c->has_extra = letters[0] == 'z';
    struct snd_cfi_bytes extra = { b.at, b.at, false };
    if (c->has_extra)
        extra = take_block(&b);
    c->encoding = 0;
    c->is_signal = false;
    for (const char *l = letters + c->has_extra; *l; l++) {
        if (*l == 'R')
            c->encoding = (uint8_t)snd_cfi_fixed(&extra, 1);
        else if (*l == 'L')
            snd_cfi_fixed(&extra, 1);
        else if (*l == 'P')
            read_encoded(c, &extra,
                         (uint8_t)snd_cfi_fixed(&extra, 1) & (ENCODED_FORMAT | ENCODED_PCREL),
                         true);
        else if (*l == 'S')
            c->is_signal = true;
        else if (*l != 'B') /* which key signs return addresses */
            return false;
    }
    c->program = b;
    return !b.bad && !extra.bad && c->encoding != ENCODED_OMITTED &&
           c->return_column < SND_CFI_REGISTERS;
}

/* The table has, sorted, where functions begin and where their entries are: the last before pc. */
static const uint8_t *search(const uint8_t *header, uint64_t pc)
{
    uint32_t low = 0, high;
    int32_t  pair[2];

    if (header[0] != 1 || header[1] != 0x1b || header[2] != 0x03 || header[3] != TABLE_ENCODING)
        return NULL;
    memcpy(&high, header + 8, sizeof high);
    const uint8_t *table = header + 12;
    int64_t        wanted = (int64_t)(pc - (uint64_t)(uintptr_t)header);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        memcpy(pair, table + (size_t)middle * sizeof pair, sizeof pair);
        if (pair[0] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    memcpy(pair, table + (size_t)(low - 1) * sizeof pair, sizeof pair);
    return header + pair[1];
}

bool snd_cfi_find(struct snd_cfi *c, uint64_t pc)
{
    struct object object;

    c->bias = 0;
    if (!find_object || find_object((void *)(uintptr_t)pc, &object) != 0 || !object.header)
        return false;
    const uint8_t *entry = search(object.header, pc);
    if (!entry)
        return false;
    struct snd_cfi_bytes b = open_entry(entry);
    const uint8_t       *here = b.at;
    uint32_t             back = (uint32_t)snd_cfi_fixed(&b, 4);
    if (b.bad || back == 0 || !read_common(c, open_entry(here - back)))
        return false;
    struct snd_cfi_bytes common = c->program;
    c->function = c->location = read_encoded(c, &b, c->encoding, false);
    uint64_t size = read_encoded(c, &b, c->encoding, true);
    if (c->has_extra)
        take_block(&b);
    if (b.bad || pc < c->function || pc - c->function >= size)
        return false;
    memset(&c->row, 0, sizeof c->row);
    c->row.cfa.kind = SND_CFI_UNDEFINED;
    c->saved_count = 0;
    c->unknown = false;
    c->pc = pc;
    if (!run_program(c, common))
        return false;
    c->initial = c->row;
    return run_program(c, b);
}

/* ------------------------------------------------------------ a whole section */

#define INSTRUCTIONS_MOST ((uint32_t)1 << 16) /* of one function */

/* The entry at an offset of the section, without its length; `bad`: not within it. */
static struct snd_cfi_bytes entry_at(const struct snd_cfi_section *s, size_t at)
{
    struct snd_cfi_bytes b = { s->bytes, s->bytes, true };

    if (at > s->size || s->size - at < 8)
        return b;
    b = open_entry(s->bytes + at);
    b.bad |= (size_t)(b.end - b.at) > s->size - at - 4;
    return b;
}

static void walk_rows(struct snd_cfi *c, struct snd_cfi_bytes program,
                      const struct snd_cfi_visitor *v)
{
    uint32_t left = INSTRUCTIONS_MOST;

    c->program = program;
    while (c->program.at < c->program.end && left-- > 0) {
        uint64_t before = c->location;
        execute(c);
        if (c->unknown || c->program.bad)
            break;
        if (c->location != before)
            v->row(v->user, before, c, true);
    }
    v->row(v->user, c->location, c, !c->unknown && !c->program.bad && left != UINT32_MAX);
}

/* A function's entry, whose common part is at `common`. */
static void walk_function(struct snd_cfi *c, struct snd_cfi_bytes common, struct snd_cfi_bytes b,
                          const struct snd_cfi_visitor *v)
{
    if (common.bad || !read_common(c, common))
        return;
    struct snd_cfi_bytes first = c->program;
    c->function = c->location = read_encoded(c, &b, c->encoding, false);
    uint64_t size = read_encoded(c, &b, c->encoding, true);
    if (c->has_extra)
        take_block(&b);
    if (b.bad || size == 0 || c->function == 0)
        return; /* the linker has left the function out */
    memset(&c->row, 0, sizeof c->row);
    c->row.cfa.kind = SND_CFI_UNDEFINED;
    c->saved_count = 0;
    c->unknown = false;
    c->pc = UINT64_MAX;
    if (!run_program(c, first))
        return;
    c->initial = c->row;
    v->begin(v->user, c->function, c->function + size);
    walk_rows(c, b, v);
}

void snd_cfi_walk(const struct snd_cfi_section *s, const struct snd_cfi_visitor *visitor)
{
    const uint32_t is_common = s->is_debug ? UINT32_MAX : 0;
    struct snd_cfi c = { .bias = s->address - (uint64_t)(uintptr_t)s->bytes };
    size_t         at = 0;

    while (at + 8 <= s->size) {
        uint32_t size;
        memcpy(&size, s->bytes + at, sizeof size);
        struct snd_cfi_bytes b = entry_at(s, at);
        if (size != 0 && b.bad)
            return; /* damaged, or of 64 bits */
        size_t here = at + 4;
        at += 4 + (size_t)size;
        if (size == 0)
            continue;
        uint32_t id = (uint32_t)snd_cfi_fixed(&b, 4);
        if (id == is_common || (!s->is_debug && id > here))
            continue;
        walk_function(&c, entry_at(s, s->is_debug ? id : here - id), b, visitor);
    }
}
