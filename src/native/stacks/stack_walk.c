/* SPDX-License-Identifier: Apache-2.0 */
#include "native/stacks/stack_walk.h"

#include <string.h>

struct walk {
    const struct snd_mappings   *mappings;
    struct snd_mapped_files     *files;
    const struct snd_user_stack *stack;
    uint64_t                     registers[SND_CFI_REGISTERS];
    uint64_t                     known;  /* a bit for each register */
    uint64_t                     bottom; /* the stack pointer of the innermost frame */
    bool                         is_cut;
    bool                         in_chain; /* the frame pointer was read from the one before */
};

static bool read_word(struct walk *w, uint64_t address, uint64_t *value)
{
    uint64_t at = address - w->bottom;

    if (address < w->bottom || at > w->stack->size || w->stack->size - at < sizeof *value) {
        w->is_cut = address >= w->bottom;
        return false;
    }
    memcpy(value, w->stack->bytes + at, sizeof *value);
    return true;
}

static bool find_cfa(struct walk *w, const struct snd_unwind_row *row, uint64_t pc, uint64_t *cfa)
{
    uint32_t reg = row->cfa & ~SND_CFA_DEREF;

    if (row->cfa == SND_CFA_PLT) {
        *cfa = w->registers[SND_CFI_SP] + 8 + ((int32_t)(pc & 15) >= row->cfa_offset ? 8 : 0);
        return true;
    }
    if (reg >= SND_CFI_REGISTERS || !(w->known >> reg & 1))
        return false;
    *cfa = w->registers[reg] + (uint64_t)(int64_t)row->cfa_offset;
    return !(row->cfa & SND_CFA_DEREF) || read_word(w, *cfa, cfa);
}

static bool read_saved(struct walk *w, uint8_t saved, int16_t offset, uint64_t cfa, uint32_t reg,
                       uint64_t *value)
{
    uint64_t base = saved == SND_SAVED_AT_CFA  ? cfa
                    : saved == SND_SAVED_AT_SP ? w->registers[SND_CFI_SP]
                                               : w->registers[SND_NATIVE_FP];

    if (saved == SND_SAVED_SAME) {
        *value = w->registers[reg];
        return (w->known >> reg & 1) != 0;
    }
    if (saved >= SND_SAVED_LOST || (saved == SND_SAVED_AT_FP && !(w->known >> SND_NATIVE_FP & 1)))
        return false;
    return read_word(w, base + (uint64_t)(int64_t)offset, value);
}

#if defined(__aarch64__)
#define RETURN_REGISTER 30u
#define ADDRESS_BITS 48 /* above them some processors put a signature */
#else
#define RETURN_REGISTER 16u
#define ADDRESS_BITS 64
#endif

static uint64_t strip(uint64_t address)
{
    return ADDRESS_BITS == 64 ? address : address & (((uint64_t)1 << (ADDRESS_BITS % 64)) - 1);
}

static void set_caller(struct walk *w, uint64_t sp, bool has_fp, uint64_t fp)
{
    w->registers[SND_CFI_SP] = sp;
    w->registers[SND_NATIVE_FP] = fp;
    w->known = (uint64_t)1 << SND_CFI_SP | (uint64_t)has_fp << SND_NATIVE_FP;
}

/* By the row of a table. False: the walk ends. */
static bool step_by_row(struct walk *w, const struct snd_unwind_row *row, uint64_t *pc,
                        bool is_first, enum snd_walk_end *end)
{
    uint64_t cfa, ra, fp = 0;

    *end = SND_WALK_LOST;
    if (row->ra == SND_SAVED_UNDEFINED) {
        *end = SND_WALK_WHOLE;
        return false;
    }
    if (!find_cfa(w, row, *pc, &cfa) || (row->ra == SND_SAVED_SAME && RETURN_REGISTER == 16) ||
        !read_saved(w, row->ra, row->ra_offset, cfa, RETURN_REGISTER, &ra))
        return false;
    /* Only a leaf may leave the stack where it was; a handler's stack may lie anywhere. */
    if (cfa <= w->registers[SND_CFI_SP] && !row->is_signal &&
        !(is_first && cfa == w->registers[SND_CFI_SP]))
        return false;
    bool has_fp = read_saved(w, row->fp, row->fp_offset, cfa, SND_NATIVE_FP, &fp);
    set_caller(w, cfa, has_fp, fp);
    w->in_chain = false;
    *pc = strip(ra);
    return true;
}

/* By the chain of frame pointers, as far as it looks like one. A zero in it marks the outermost frame. */
static bool step_by_pointer(struct walk *w, uint64_t *pc, enum snd_walk_end *end)
{
    uint64_t fp = w->registers[SND_NATIVE_FP], ra, next;

    *end = w->in_chain && fp == 0 ? SND_WALK_WHOLE : SND_WALK_LOST;
    if (!(w->known >> SND_NATIVE_FP & 1) || fp < w->registers[SND_CFI_SP] || fp % 8 != 0)
        return false;
    *end = SND_WALK_LOST;
    if (!read_word(w, fp, &next) || !read_word(w, fp + 8, &ra))
        return false;
    ra = strip(ra);
    if (ra == 0 || !snd_mappings_find(w->mappings, ra - 1)) {
        *end = SND_WALK_WHOLE;
        return false;
    }
    set_caller(w, fp + 16, true, next);
    w->in_chain = true;
    *pc = ra;
    return true;
}

size_t snd_stack_walk(const struct snd_mappings *mappings, struct snd_mapped_files *files,
                      const struct snd_user_stack *stack,
                      struct snd_walked_frame frames[SND_WALK_MAX], enum snd_walk_end *end)
{
    struct walk w = { mappings, files, stack, { 0 }, ~(uint64_t)0, 0, false, false };
    uint64_t    pc = stack->pc;
    bool        is_call = false, goes_on = true; /* is_call: pc is where a call returns to */
    size_t      count = 0;

    memcpy(w.registers, stack->registers, sizeof w.registers);
    w.bottom = w.registers[SND_CFI_SP];
    *end = SND_WALK_CUT;
    while (goes_on && count < SND_WALK_MAX) {
        uint64_t                  at = pc - is_call;
        const struct snd_mapping *m = snd_mappings_find(mappings, at);
        if (!m && count > 0) {
            *end = pc == 0 ? SND_WALK_WHOLE : SND_WALK_LOST;
            return count;
        }
        struct snd_mapped_file      *file = m ? &files->list[m->file] : NULL;
        uint64_t                     address = m ? snd_mapped_address(file, m, at) : at;
        const struct snd_unwind_row *row = m ? snd_mapped_row(file, address) : NULL;
        if (row && row->is_signal) /* a handler returns to it, but nothing in it called */
            address += is_call;
        frames[count++] = (struct snd_walked_frame){ m ? m->file : UINT32_MAX, address };
        goes_on = row ? step_by_row(&w, row, &pc, count == 1, end) : step_by_pointer(&w, &pc, end);
        is_call = !(row && row->is_signal);
        if (!goes_on && m && !row && snd_mapped_is_start(file, address))
            *end =
                SND_WALK_WHOLE; /* the loader's entry: it has no caller, though no table says so */
    }
    if (w.is_cut && *end == SND_WALK_LOST)
        *end = SND_WALK_CUT;
    return count;
}
