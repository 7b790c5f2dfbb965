/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/cfi.h"

#include <dlfcn.h>
#include <string.h>

#include "pystack/unwind/cfi_program.h"

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
        extra = snd_cfi_take_block(&b);
    c->encoding = 0;
    c->is_signal = false;
    for (const char *l = letters + c->has_extra; *l; l++) {
        if (*l == 'R')
            c->encoding = (uint8_t)snd_cfi_fixed(&extra, 1);
        else if (*l == 'L')
            snd_cfi_fixed(&extra, 1);
        else if (*l == 'P')
            snd_cfi_read_encoded(c, &extra,
                                 (uint8_t)snd_cfi_fixed(&extra, 1) &
                                     (SND_CFI_ENCODED_FORMAT | SND_CFI_ENCODED_PCREL),
                                 true);
        else if (*l == 'S')
            c->is_signal = true;
        else if (*l != 'B') /* which key signs return addresses */
            return false;
    }
    c->program = b;
    return !b.bad && !extra.bad && c->encoding != SND_CFI_ENCODED_OMITTED &&
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
    c->function = c->location = snd_cfi_read_encoded(c, &b, c->encoding, false);
    uint64_t size = snd_cfi_read_encoded(c, &b, c->encoding, true);
    if (c->has_extra)
        snd_cfi_take_block(&b);
    if (b.bad || pc < c->function || pc - c->function >= size)
        return false;
    memset(&c->row, 0, sizeof c->row);
    c->row.cfa.kind = SND_CFI_UNDEFINED;
    c->saved_count = 0;
    c->unknown = false;
    c->pc = pc;
    if (!snd_cfi_run(c, common))
        return false;
    c->initial = c->row;
    return snd_cfi_run(c, b);
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
        snd_cfi_execute(c);
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
    c->function = c->location = snd_cfi_read_encoded(c, &b, c->encoding, false);
    uint64_t size = snd_cfi_read_encoded(c, &b, c->encoding, true);
    if (c->has_extra)
        snd_cfi_take_block(&b);
    if (b.bad || size == 0 || c->function == 0)
        return; /* the linker has left the function out */
    memset(&c->row, 0, sizeof c->row);
    c->row.cfa.kind = SND_CFI_UNDEFINED;
    c->saved_count = 0;
    c->unknown = false;
    c->pc = UINT64_MAX;
    if (!snd_cfi_run(c, first))
        return;
    c->initial = c->row;
    v->begin(v->user, c->function, c->function + size);
    if (v->row)
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
