/* SPDX-License-Identifier: Apache-2.0 */
#include "native/stacks/unwind_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"

#define OP_DEREF 0x06
#define OP_BREG0 0x70
#define OP_LIT0 0x30

struct maker {
    struct snd_unwind_table *table;
    uint64_t                 start, end; /* of the function */
    bool                     has_base, failed;
};

/* --------------------------------------------------------------------- rules */

/* "breg N, offset" and perhaps "deref": what compilers write. False: anything else. */
static bool read_simple(struct snd_cfi_bytes b, uint32_t *reg, int64_t *offset, bool *deref)
{
    uint64_t code = snd_cfi_fixed(&b, 1);

    if (b.bad || code < OP_BREG0 || code >= OP_BREG0 + 32)
        return false;
    *reg = (uint32_t)(code - OP_BREG0);
    *offset = snd_cfi_sleb(&b);
    *deref = b.at < b.end;
    if (*deref && snd_cfi_fixed(&b, 1) != OP_DEREF)
        return false;
    return !b.bad && b.at == b.end;
}

/* SP + 8 + ((IP & 15) >= N) * 8: the linkage table of x86-64; its N. */
static bool read_plt(struct snd_cfi_bytes b, int32_t *cut)
{
    static const uint8_t before[] = { 0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a };
    static const uint8_t after[] = { 0x2a, 0x33, 0x24, 0x22 };
    size_t               size = (size_t)(b.end - b.at);

    if (size != sizeof before + 1 + sizeof after || memcmp(b.at, before, sizeof before) != 0 ||
        memcmp(b.at + sizeof before + 1, after, sizeof after) != 0)
        return false;
    *cut = b.at[sizeof before] - OP_LIT0;
    return *cut >= 0 && *cut < 16;
}

static bool fits16(int64_t value)
{
    return value >= INT16_MIN && value <= INT16_MAX;
}

static enum snd_saved make_saved(const struct snd_cfi_rule *rule, int16_t *offset)
{
    uint32_t reg;
    int64_t  at;
    bool     deref;

    *offset = 0;
    switch (rule->kind) {
    case SND_CFI_SAME:
        return SND_SAVED_SAME;
    case SND_CFI_UNDEFINED:
        return SND_SAVED_UNDEFINED;
    case SND_CFI_AT:
        *offset = (int16_t)rule->offset;
        return fits16(rule->offset) ? SND_SAVED_AT_CFA : SND_SAVED_LOST;
    case SND_CFI_AT_RESULT:
        if (!read_simple(rule->expression, &reg, &at, &deref) || deref || !fits16(at))
            return SND_SAVED_LOST;
        *offset = (int16_t)at;
        return reg == SND_CFI_SP      ? SND_SAVED_AT_SP
               : reg == SND_NATIVE_FP ? SND_SAVED_AT_FP
                                      : SND_SAVED_LOST;
    default:
        return SND_SAVED_LOST;
    }
}

static void make_cfa(const struct snd_cfi_row *from, struct snd_unwind_row *row)
{
    uint32_t reg = from->cfa_register;
    int64_t  offset = from->cfa.offset;
    bool     deref = false;

    row->cfa = SND_CFA_NONE;
    if (from->cfa.kind == SND_CFI_IS_RESULT) {
        if (read_plt(from->cfa.expression, &row->cfa_offset)) {
            row->cfa = SND_CFA_PLT;
            return;
        }
        if (!read_simple(from->cfa.expression, &reg, &offset, &deref))
            return;
    } else if (from->cfa.kind != SND_CFI_REGISTER) {
        return;
    }
    if (reg >= SND_CFI_REGISTERS || offset < INT32_MIN || offset > INT32_MAX)
        return;
    row->cfa = (uint8_t)(reg | (deref ? SND_CFA_DEREF : 0));
    row->cfa_offset = (int32_t)offset;
}

/* ---------------------------------------------------------------------- rows */

static void add(struct maker *m, uint64_t pc, struct snd_unwind_row row)
{
    struct snd_unwind_table *t = m->table;

    if (pc < t->base || pc - t->base > UINT32_MAX || m->failed)
        return;
    row.pc = (uint32_t)(pc - t->base);
    if (!snd_grow(&t->rows, &t->capacity, t->count, sizeof *t->rows)) {
        m->failed = true;
        return;
    }
    t->rows[t->count++] = row;
}

/* After a function nothing is known, unless another begins there: that sorts after it. */
static void on_begin(void *user, uint64_t start, uint64_t end)
{
    struct maker *m = user;

    m->start = start;
    m->end = end;
    add(m, end, (struct snd_unwind_row){ .cfa = SND_CFA_NONE });
}

static void on_row(void *user, uint64_t from, const struct snd_cfi *cfi, bool good)
{
    struct maker         *m = user;
    struct snd_unwind_row row = { .cfa = SND_CFA_NONE, .is_signal = cfi->is_signal };

    if (from < m->start || from >= m->end)
        return;
    if (good) {
        make_cfa(&cfi->row, &row);
        row.ra = (uint8_t)make_saved(&cfi->row.registers[cfi->return_column], &row.ra_offset);
        row.fp = (uint8_t)make_saved(&cfi->row.registers[SND_NATIVE_FP], &row.fp_offset);
    }
    add(m, from, row);
}

static void find_base(void *user, uint64_t start, uint64_t end)
{
    struct maker *m = user;

    (void)end;
    if (!m->has_base || start < m->table->base)
        m->table->base = start;
    m->has_base = true;
}

static void pass_row(void *user, uint64_t from, const struct snd_cfi *cfi, bool good)
{
    (void)user, (void)from, (void)cfi, (void)good;
}

bool snd_unwind_table_add(struct snd_unwind_table *t, const struct snd_cfi_section *section)
{
    struct maker m = { .table = t };

    if (t->count == 0)
        snd_cfi_walk(section, &(struct snd_cfi_visitor){ &m, find_base, pass_row });
    snd_cfi_walk(section, &(struct snd_cfi_visitor){ &m, on_begin, on_row });
    return !m.failed;
}

static int compare(const void *left, const void *right)
{
    const struct snd_unwind_row *x = left, *y = right;

    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    return (x->cfa != SND_CFA_NONE) - (y->cfa != SND_CFA_NONE);
}

void snd_unwind_table_sort(struct snd_unwind_table *t)
{
    uint32_t kept = 0;

    if (t->count == 0)
        return;
    qsort(t->rows, t->count, sizeof *t->rows, compare);
    for (uint32_t i = 0; i < t->count; i++) /* of two for one address the last holds */
        if (i + 1 == t->count || t->rows[i + 1].pc != t->rows[i].pc)
            t->rows[kept++] = t->rows[i];
    t->count = kept;
}

void snd_unwind_table_release(struct snd_unwind_table *t)
{
    free(t->rows);
    *t = (struct snd_unwind_table){ 0 };
}

const struct snd_unwind_row *snd_unwind_table_find(const struct snd_unwind_table *t, uint64_t pc)
{
    uint32_t low = 0, high = t->count;

    if (pc < t->base || pc - t->base > UINT32_MAX)
        return NULL;
    uint32_t wanted = (uint32_t)(pc - t->base);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->rows[middle].pc <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 || t->rows[low - 1].cfa == SND_CFA_NONE ? NULL : &t->rows[low - 1];
}
