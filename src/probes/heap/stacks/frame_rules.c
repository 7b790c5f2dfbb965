/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/frame_rules.h"

#include "probes/heap/stacks/heap_interpreter.h"
#include "probes/heap/locks.h"
#include "probes/heap/heap_pages.h"
#include "probes/heap/stacks/stack_tallies.h"
#include "pystack/unwind/cfi.h"

#if defined(__aarch64__)
#define FP 29
#define RETURN_COLUMN 30
#else
#define FP 6
#define RETURN_COLUMN 16
#endif
#define ROWS_FIRST ((size_t)1 << 11) /* small: see heap_pages.h */

struct snd_heap_rows
    *snd_heap_rows; /* replaced when full; the old ones stay, for who still reads them */

static struct snd_heap_lock lock;
static bool                 has_tables;
static struct snd_cfi      *cfi; /* under the lock: too large for a program's stack */
static uint64_t             here_low, here_high; /* this library's code */

void snd_heap_rules_init(bool tables)
{
    struct snd_cfi_object here;

    cfi = snd_heap_pages(sizeof *cfi);
    has_tables = tables && cfi;
    if (snd_cfi_object((uint64_t)(uintptr_t)snd_heap_rules_init, &here)) {
        here_low = here.begin;
        here_high = here.end;
    }
}

void snd_heap_rules_forget(void)
{
    snd_heap_lock(&lock);
    __atomic_store_n(&snd_heap_rows, NULL, __ATOMIC_RELEASE);
    snd_heap_interpreter_forget();
    snd_heap_unlock(&lock);
}

static bool fits(int64_t offset)
{
    return offset >= INT32_MIN && offset <= INT32_MAX;
}

/* "The value at frame pointer + n": a breg, then a deref. */
static bool is_stored_at_fp(struct snd_cfi_bytes b, int64_t *offset)
{
    bool is_fp = snd_cfi_fixed(&b, 1) == 0x70 + FP;

    *offset = snd_cfi_sleb(&b);
    return is_fp && snd_cfi_fixed(&b, 1) == 0x06 && !b.bad && b.at == b.end && fits(*offset);
}

/* "Stored where the frame pointer points to". */
static bool is_at_fp(struct snd_cfi_bytes b)
{
    bool is_fp = snd_cfi_fixed(&b, 1) == 0x70 + FP;

    return snd_cfi_sleb(&b) == 0 && is_fp && !b.bad && b.at == b.end;
}

static enum snd_heap_rule read_cfa(const struct snd_cfi_row *row, int64_t *offset)
{
    *offset = row->cfa.offset;
    if (row->cfa.kind == SND_CFI_IS_RESULT)
        return is_stored_at_fp(row->cfa.expression, offset) ? SND_RULE_AT_FP : SND_RULE_ODD;
    if (row->cfa.kind != SND_CFI_REGISTER || !fits(*offset))
        return SND_RULE_ODD;
    if (row->cfa_register == SND_CFI_SP)
        return SND_RULE_SP;
    return row->cfa_register == FP ? SND_RULE_FP : SND_RULE_ODD;
}

/* Below the CFA, where a caller's registers can be. */
static bool is_slot(int64_t offset)
{
    return offset < 0 && offset >= INT32_MIN && offset % 8 == 0;
}

/* The rule as far as a row can have it; else SND_RULE_ODD. */
static enum snd_heap_rule read_rule(struct snd_heap_row *row)
{
    const struct snd_cfi_row  *from = &cfi->row;
    const struct snd_cfi_rule *back = &from->registers[cfi->return_column];
    const struct snd_cfi_rule *fp = &from->registers[FP];
    int64_t                    cfa;

    if (back->kind == SND_CFI_UNDEFINED)
        return SND_RULE_END;
    enum snd_heap_rule rule = read_cfa(from, &cfa);
    if (rule == SND_RULE_ODD || back->kind != SND_CFI_AT || !is_slot(back->offset) ||
        cfi->is_signal || cfi->return_column != RETURN_COLUMN ||
        from->registers[SND_CFI_SP].kind != SND_CFI_SAME)
        return SND_RULE_ODD;
    row->cfa = (int32_t)cfa;
    row->return_at = row->lowest = (int32_t)back->offset;
    if (rule == SND_RULE_AT_FP)
        return fp->kind == SND_CFI_AT_RESULT && is_at_fp(fp->expression) ? rule : SND_RULE_ODD;
    if (fp->kind == SND_CFI_SAME)
        return rule;
    if (fp->kind != SND_CFI_AT || !is_slot(fp->offset))
        return SND_RULE_ODD;
    row->fp_at = (int32_t)fp->offset;
    row->lowest = row->fp_at < row->lowest ? row->fp_at : row->lowest;
    return rule;
}

/* What the tables say of the code that a return address belongs to. */
static struct snd_heap_row read_row(uint64_t pc)
{
    static const uint8_t flags[] = { [SND_RULE_FP] = SND_FRAME_USES_FP,
                                     [SND_RULE_AT_FP] = SND_FRAME_USES_FP | SND_FRAME_READ,
                                     [SND_RULE_END] = SND_FRAME_LAST,
                                     [SND_RULE_ODD] = 0 };
    struct snd_heap_row  row = { .pc = pc, .rule = SND_RULE_END };

    if (has_tables && snd_cfi_find(cfi, pc - 1))
        row.rule = (uint8_t)read_rule(&row);
    row.flags = flags[row.rule];
    if (snd_heap_is_ours(pc))
        row.flags |= SND_FRAME_OURS;
    if (pc - here_low < here_high - here_low)
        row.flags |= SND_FRAME_HIDDEN;
    row.flags |= snd_heap_interpreter_flags(pc, row.rule == SND_RULE_END ? 0 : cfi->function);
    return row;
}

static struct snd_heap_rows *grow(struct snd_heap_rows *old)
{
    size_t                count = old ? (old->mask + 1) * 2 : ROWS_FIRST;
    struct snd_heap_rows *table = snd_heap_pages(sizeof *table + count * sizeof table->at[0]);

    if (!table)
        return NULL;
    table->mask = count - 1;
    for (size_t i = 0; old && i <= old->mask; i++)
        if (old->at[i].pc != 0)
            *snd_heap_row_slot(table, old->at[i].pc) = old->at[i];
    table->used = old ? old->used : 0;
    __atomic_store_n(&snd_heap_rows, table, __ATOMIC_RELEASE);
    return table;
}

const struct snd_heap_row *snd_heap_row_add(uint64_t pc)
{
    static const struct snd_heap_row none = { .rule = SND_RULE_END, .flags = SND_FRAME_LAST };

    snd_heap_lock(&lock);
    struct snd_heap_rows *table = snd_heap_rows;
    if (cfi && (!table || table->used * 2 > table->mask))
        table = grow(table);
    if (!cfi || !table) {
        snd_heap_unlock(&lock);
        return &none;
    }
    struct snd_heap_row *slot = snd_heap_row_slot(table, pc);
    if (slot->pc == 0) {
        struct snd_heap_row row = read_row(pc);
        row.pc = 0;
        *slot = row;
        __atomic_store_n(&slot->pc, pc, __ATOMIC_RELEASE);
        table->used++;
    }
    snd_heap_unlock(&lock);
    return slot;
}

void snd_heap_rules_lock(void)
{
    snd_heap_lock(&lock);
}

void snd_heap_rules_unlock(void)
{
    snd_heap_unlock(&lock);
}
