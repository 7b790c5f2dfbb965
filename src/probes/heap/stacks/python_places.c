/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/python_places.h"

#include <string.h>

#include "probes/heap/stacks/heap_interpreter.h"
#include "probes/heap/heap_pages.h"
#include "pystack/interpreter/code.h"
#include "pystack/interpreter/code_lines.h"
#include "pystack/unwind/loops.h"
#include "sonde/record.h"

#define BLOCK ((uint32_t)1 << 12)
#define BLOCKS ((uint32_t)1 << 12)    /* 16 million places */
#define SLOTS_FIRST ((size_t)1 << 10) /* small: see heap_pages.h */
#define TEXTS ((size_t)64 << 10)      /* of names and paths, at once */
#define MIX 0x9e3779b97f4a7c15u

struct place {
    const char *function, *file;
    uint32_t    first_line, line;
    uint32_t    frame, epoch; /* its id in the trace, of the recording of this epoch */
};

struct slot {
    uint64_t code, at; /* snd_heap_pycode(); an instruction there, or LINE and a line */
    uint32_t number;   /* 0: free, since 0 is no line's */
};
#define LINE ((uint64_t)1 << 63)

/* clang-format off */
static struct place special[SND_PYPLACES] = {
    [SND_PYPLACE_ARENA] = { "[pymalloc arena]", "", 0, 0, 0, 0 },
    [SND_PYPLACE_FRAMES] = { "[Python frames]", "", 0, 0, 0, 0 },
    [SND_PYPLACE_GAP] = { SND_LOOPS_GAP, "", 0, 0, 0, 0 },
    [SND_PYPLACE_CUT] = { SND_FRAMES_LEFT_OUT, "", 0, 0, 0, 0 },
};
/* clang-format on */

static struct place *blocks[BLOCKS];
static uint32_t      count = SND_PYPLACES;
static struct slot  *slots;
static size_t        mask, used;

/* --------------------------------------------------------------------- memory */

static uint64_t word(uint64_t address)
{
    return snd_u64((const char *)(uintptr_t)address); /* NOLINT(performance-no-int-to-ptr) */
}

/* A copy that stays; NULL if out of memory. */
static const char *keep_text(const char *text, size_t length)
{
    static char  *at;
    static size_t left;

    if (left < length + 1) {
        left = length + 1 > TEXTS ? length + 1 : TEXTS;
        at = snd_heap_pages(left);
        if (!at) {
            left = 0;
            return NULL;
        }
    }
    char *kept = memcpy(at, text, length);
    kept[length] = '\0';
    at += length + 1;
    left -= length + 1;
    return kept;
}

static struct slot *slot_of(uint64_t code, uint64_t at)
{
    size_t i = (size_t)((code ^ at * MIX) * MIX >> 32) & mask;

    while (slots[i].number != 0 && (slots[i].code != code || slots[i].at != at))
        i = (i + 1) & mask;
    return &slots[i];
}

static void put(uint64_t code, uint64_t at, uint32_t number)
{
    *slot_of(code, at) = (struct slot){ code, at, number };
    used++;
}

static bool grow(void)
{
    struct slot *old = slots;
    size_t       before = old ? mask + 1 : 0, more = old ? before * 2 : SLOTS_FIRST;

    if (old && (used + 2) * 2 < mask) /* a line and an instruction may come */
        return true;
    struct slot *fresh = snd_heap_pages(more * sizeof *fresh);
    if (!fresh)
        return false;
    slots = fresh;
    mask = more - 1;
    for (size_t i = 0; i < before; i++)
        if (old[i].number != 0)
            *slot_of(old[i].code, old[i].at) = old[i];
    if (old)
        snd_heap_pages_free(old, before * sizeof *old);
    return true;
}

/* ---------------------------------------------------------------------- lines */

/* The length and the last letters of a str, the length and the first bytes of a bytes object. */
static uint64_t mix_text(const struct snd_py_layout *l, uint64_t text, uint64_t bytes)
{
    uint64_t length = word(text + l->unicode_length), size = word(bytes + l->var_size);
    bool     is_compact = word(text + l->unicode_state) >> l->unicode_kind >> 3 & 1;
    uint64_t mixed = (text ^ length << 48) * MIX + (bytes ^ size << 48);

    if (is_compact && length >= 8)
        mixed = (mixed ^ word(text + l->unicode_ascii + length - 8)) * MIX;
    uint64_t first = word(bytes + l->bytes_data); /* no block is smaller */
    if (size < 8)
        first &= ((uint64_t)1 << size * 8) - 1;
    mixed = (mixed ^ first) * MIX;
    return mixed ^ mixed >> 29;
}

uint64_t snd_heap_pycode(const struct snd_py_layout *l, uint64_t code)
{
    const char *bytes = (const char *)(uintptr_t)code; /* NOLINT(performance-no-int-to-ptr) */
    uint64_t    version = l->code_version ? snd_u32(bytes + l->code_version) : 0;

    if (version != 0)
        return code ^ version << 40 ^ version << 17;
    /* Before 3.12 a later code object may have the address, the name and the place of each of its parts. */
    uint64_t mixed = (code ^ snd_u64(bytes + l->code_name) << 7) * MIX +
                     snd_u32(bytes + l->code_firstline);
    return mixed * MIX ^ mix_text(l, snd_u64(bytes + l->code_file), snd_u64(bytes + l->code_lines));
}

/* 0 if the instruction is not in this code object. */
static uint32_t find_line(const struct snd_py_layout *l, const struct snd_py_frame *f)
{
    static struct snd_code_copies copies;
    struct snd_code code = { .address = f->code, .copies = l->code_tlbc ? &copies : NULL };
    uint64_t        lines = word(f->code + l->code_lines);
    int64_t         offset;

    copies.count = 0;
    code.instr_count = l->code_first_instr ? word(f->code + l->var_size) : UINT32_MAX;
    if (!snd_code_offset(SND_MEMORY_OWN, l, &code, f->instr, &offset))
        return 0;
    const uint8_t *table = (const uint8_t *)(uintptr_t)(lines + l->bytes_data); /* NOLINT */
    uint32_t       first = (uint32_t)word(f->code + l->code_firstline);
    return snd_py_line(l->lines, table, (size_t)word(lines + l->var_size), first, offset);
}

static const char *read_text(const struct snd_py_layout *l, uint64_t object)
{
    static char        bytes[SND_PY_TEXT_MAX * 4 + 1];
    struct snd_py_text text;

    if (!snd_py_text_find(SND_MEMORY_OWN, l, object, &text))
        return NULL;
    const char *data = (const char *)(uintptr_t)text.at; /* NOLINT(performance-no-int-to-ptr) */
    return keep_text(bytes, snd_py_text_encode(data, &text, bytes));
}

static uint32_t add_line(const struct snd_py_layout *l, uint64_t object, struct place place)
{
    place.function = read_text(l,
                               word(object + (l->code_qualname ? l->code_qualname : l->code_name)));
    place.file = read_text(l, word(object + l->code_file));
    if (!place.function || !place.file || count / BLOCK >= BLOCKS)
        return 0;
    struct place **block = &blocks[count / BLOCK];
    if (!*block)
        *block = snd_heap_pages(BLOCK * sizeof **block);
    if (!*block)
        return 0;
    (*block)[count % BLOCK] = place;
    return count++;
}

/* A line table is searched from its beginning: each instruction once. */
static uint32_t add(const struct snd_py_layout *l, const struct snd_py_frame *f, uint64_t code)
{
    struct place place = { .line = find_line(l, f),
                           .first_line = (uint32_t)word(f->code + l->code_firstline) };

    if (!grow())
        return 0;
    uint32_t number = slot_of(code, LINE | place.line)->number;
    if (number == 0) {
        number = add_line(l, f->code, place);
        if (number == 0)
            return 0;
        put(code, LINE | place.line, number);
    }
    put(code, f->instr, number);
    return number;
}

uint64_t snd_heap_pyplace_of(const struct snd_py_frame *f)
{
    const struct snd_py_layout *l = &snd_heap_interpreter_layout()->layout;

    if (!snd_heap_interpreter_is_code(f->code))
        return 0;
    uint64_t code = snd_heap_pycode(l, f->code);
    uint32_t number = slots ? slot_of(code, f->instr)->number : 0;
    if (number == 0)
        number = add(l, f, code);
    return number ? snd_heap_pyplace(number) : 0;
}

uint32_t snd_heap_pyplace_frame(uint64_t number)
{
    uint32_t      n = (uint32_t)(number & ~SND_HEAP_PLACE), epoch = sonde_epoch();
    struct place *p = n < SND_PYPLACES ? &special[n] : &blocks[n / BLOCK][n % BLOCK];

    if (p->frame == 0 || p->epoch != epoch) {
        uint32_t function = sonde_intern(p->function, strlen(p->function));
        uint32_t file = sonde_intern(p->file, strlen(p->file));
        p->frame = sonde_intern_frame_in(function, p->first_line, file, p->line);
        p->epoch = sonde_epoch(); /* a forked child's file is made with its first record */
    }
    return p->frame;
}
