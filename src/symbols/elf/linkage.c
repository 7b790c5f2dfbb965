/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/elf/linkage.c - names for procedure linkage tables: "malloc@plt".
 *
 * An entry jumps through a slot of the global offset table; the relocation of that slot names the
 * function. The jump is decoded, so that every kind of table (.plt, .plt.sec, .plt.got) is read alike.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "symbols/elf/symtab.h"

#define ENTRY 16u /* bytes of an entry, on both processors */
#define NAME_MOST 65536u

struct slots {
    struct snd_map map; /* address of a slot to the number of its symbol */
    bool           failed;
};

static void take_relocations(struct slots *slots, const struct snd_image *image,
                             const Elf64_Shdr *section)
{
    uint64_t    size;
    Elf64_Rela *list = snd_image_bytes(image, section, &size);

    for (uint64_t i = 0; list && i < size / sizeof *list; i++) {
        uint64_t       symbol = ELF64_R_SYM(list[i].r_info), type = ELF64_R_TYPE(list[i].r_info);
        bool           names = image->head.e_machine == EM_X86_64
                                   ? type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
                                   : type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
        struct snd_key key = { list[i].r_offset, 0, 0 };
        if (names && symbol != 0 && symbol < UINT32_MAX &&
            !snd_map_put(&slots->map, key, (uint32_t)symbol))
            slots->failed = true;
    }
    free(list);
}

/* [endbr64] [bnd] jmp *disp32(%rip): the slot's address, or 0. */
static uint64_t slot_x86(const uint8_t *code, uint64_t address)
{
    static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    unsigned             at = memcmp(code, endbr, sizeof endbr) == 0 ? sizeof endbr : 0;
    int32_t              far;

    at += code[at] == 0xf2;
    if (code[at] != 0xff || code[at + 1] != 0x25)
        return 0;
    memcpy(&far, code + at + 2, sizeof far);
    return address + at + 6 + (uint64_t)(int64_t)far;
}

/* adrp x16, page; ldr x17, [x16, #low]; .. */
static uint64_t slot_arm(const uint8_t *code, uint64_t address)
{
    uint32_t word[3];

    memcpy(word, code, sizeof word);
    unsigned at = word[0] == 0xd503245fu; /* bti c */
    if ((word[at] & 0x9f00001fu) != 0x90000010u || (word[at + 1] & 0xffc003ffu) != 0xf9400211u)
        return 0;
    uint32_t bits = (word[at] >> 29 & 3) | (word[at] >> 3 & 0x1ffffcu);
    int64_t  pages = bits & 0x100000u ? (int64_t)bits - 0x200000 : (int64_t)bits;
    return ((address + 4 * at) & ~(uint64_t)4095) + (uint64_t)(pages * 4096) +
           (word[at + 1] >> 10 & 0xfffu) * 8;
}

struct dynamic {
    Elf64_Sym *symbols;
    char      *text;
    uint64_t   count, text_size;
};

static const char *plt_name(struct snd_symtab *symtab, const struct dynamic *dynamic,
                            uint32_t symbol)
{
    static const char ending[] = "@plt";

    if (symbol >= dynamic->count || dynamic->symbols[symbol].st_name >= dynamic->text_size)
        return "";
    const char *name = dynamic->text + dynamic->symbols[symbol].st_name;
    size_t      length = strnlen(name, NAME_MOST);
    char       *copy = length > 0 ? snd_arena_take(&symtab->arena, length + sizeof ending) : NULL;
    if (!copy)
        return "";
    memcpy(copy, name, length);
    memcpy(copy + length, ending, sizeof ending);
    return copy;
}

static bool take_section(struct snd_symtab *symtab, const struct snd_image *image,
                         const Elf64_Shdr *section, const struct slots *slots,
                         const struct dynamic *dynamic)
{
    uint64_t size;
    uint8_t *code = snd_image_bytes(image, section, &size);
    uint32_t symbol;
    bool     ok = true;

    for (uint64_t at = 0; code && ok && size - at >= 8; at += ENTRY) {
        uint8_t  bytes[ENTRY] = { 0 };
        uint64_t left = size - at < ENTRY ? size - at : ENTRY, address = section->sh_addr + at;
        memcpy(bytes, code + at, (size_t)left);
        uint64_t slot = image->head.e_machine == EM_X86_64 ? slot_x86(bytes, address)
                                                           : slot_arm(bytes, address);
        if (slot != 0 && snd_map_get(&slots->map, (struct snd_key){ slot, 0, 0 }, &symbol)) {
            const char *name = plt_name(symtab, dynamic, symbol);
            if (name[0] != '\0')
                ok = snd_symtab_put(symtab, (struct snd_symtab_entry){ name, address,
                                                                       address + left, true, 0 });
        }
        if (left < ENTRY)
            break;
    }
    free(code);
    return ok;
}

static bool read_dynamic(const struct snd_image *image, struct dynamic *dynamic)
{
    const Elf64_Shdr *table = snd_image_section(image, ".dynsym");
    uint64_t          size;

    if (!table || table->sh_link >= image->section_count)
        return false;
    dynamic->symbols = snd_image_bytes(image, table, &size);
    if (!dynamic->symbols)
        return false;
    dynamic->count = size / sizeof *dynamic->symbols;
    dynamic->text = snd_image_bytes(image, &image->sections[table->sh_link], &dynamic->text_size);
    return dynamic->text != NULL;
}

bool snd_symtab_add_plt(struct snd_symtab *symtab, const struct snd_image *image)
{
    struct slots   slots = { 0 };
    struct dynamic dynamic = { 0 };
    bool           ok = true;

    if ((image->head.e_machine == EM_X86_64 || image->head.e_machine == EM_AARCH64) &&
        read_dynamic(image, &dynamic)) {
        for (uint32_t i = 0; i < image->section_count; i++)
            if (image->sections[i].sh_type == SHT_RELA && (image->sections[i].sh_flags & SHF_ALLOC))
                take_relocations(&slots, image, &image->sections[i]);
        for (uint32_t i = 0; ok && i < image->section_count; i++)
            if (strncmp(snd_image_section_name(image, &image->sections[i]), ".plt", 4) == 0)
                ok = take_section(symtab, image, &image->sections[i], &slots, &dynamic);
    }
    ok = ok && !slots.failed;
    snd_map_release(&slots.map);
    free(dynamic.symbols);
    free(dynamic.text);
    return ok;
}
