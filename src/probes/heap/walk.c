/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "probes/heap/locks.h"
#include "probes/heap/pages.h"
#include "probes/heap/stacks.h"
#include "pystack/unwind.h"

#if defined(__aarch64__)
#define FP 29
#define RETURN_COLUMN 30
#else
#define FP 6
#define RETURN_COLUMN 16
#endif
#define PAGE ((uint64_t)4096)
#define ROWS_FIRST ((size_t)1 << 14)
#define MIX 0x9e3779b97f4a7c15u

struct rows {
    size_t              mask, used;
    struct snd_heap_row at[];
};

static struct rows *rows; /* replaced when full; the old ones stay, for who still reads them */
static uint64_t     generation; /* of loaded libraries */
static struct snd_heap_lock lock;
static bool                 has_tables;
static uint64_t             here_low, here_high; /* this library's code */
/* Under the lock: too large for a program's stack. */
static struct {
    struct snd_cfi      cfi;
    struct snd_unwind   unwind;
    struct snd_py_stack stack;
    ucontext_t          context;
} * slow;

void snd_heap_walk_init(void)
{
    has_tables = snd_unwind_init();
    slow = snd_heap_pages(sizeof *slow);
    has_tables &= slow != NULL;
    struct snd_cfi_object here;
    if (snd_cfi_object((uint64_t)(uintptr_t)snd_heap_walk_init, &here)) {
        here_low = here.begin;
        here_high = here.end;
    }
}

void snd_heap_walk_forget(void)
{
    snd_heap_lock(&lock);
    __atomic_store_n(&rows, NULL, __ATOMIC_RELEASE);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
    snd_heap_unlock(&lock);
}

/* ------------------------------------------------------------------ the rows */

static inline struct snd_heap_row *slot_of(struct rows *table, uint64_t pc)
{
    size_t at = (size_t)(pc * MIX >> 32) & table->mask;

    for (;; at = (at + 1) & table->mask) {
        uint64_t found = __atomic_load_n(&table->at[at].pc, __ATOMIC_ACQUIRE);
        if (found == pc || found == 0)
            return &table->at[at];
    }
}

static inline const struct snd_heap_row *find_row(uint64_t pc)
{
    struct rows *table = __atomic_load_n(&rows, __ATOMIC_ACQUIRE);

    if (SND_UNLIKELY(!table))
        return NULL;
    struct snd_heap_row *row = slot_of(table, pc);
    return SND_LIKELY(row->pc == pc) ? row : NULL;
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

/* What the tables say of the code that a return address belongs to. */
static struct snd_heap_row read_row(uint64_t pc)
{
    struct snd_heap_row       row = { .pc = pc,
                                      .rule = SND_RULE_END,
                                      .is_ours = snd_heap_is_ours(pc),
                                      .is_hidden = pc - here_low < here_high - here_low };
    const struct snd_cfi_row *from = &slow->cfi.row;
    int64_t                   cfa;

    if (!has_tables || !snd_cfi_find(&slow->cfi, pc - 1))
        return row;
    const struct snd_cfi_rule *back = &from->registers[slow->cfi.return_column];
    const struct snd_cfi_rule *fp = &from->registers[FP];
    if (back->kind == SND_CFI_UNDEFINED)
        return row;
    row.rule = (uint8_t)read_cfa(from, &cfa);
    bool plain = back->kind == SND_CFI_AT && fits(back->offset) && !slow->cfi.is_signal &&
                 slow->cfi.return_column == RETURN_COLUMN &&
                 from->registers[SND_CFI_SP].kind == SND_CFI_SAME &&
                 (fp->kind != SND_CFI_AT || fits(fp->offset));
    row.fp_saved = fp->kind == SND_CFI_AT;
    row.fp_at = row.fp_saved ? (int32_t)fp->offset : 0;
    if (row.rule == SND_RULE_AT_FP)
        plain &= fp->kind == SND_CFI_AT_RESULT && is_at_fp(fp->expression);
    else
        plain &= fp->kind == SND_CFI_AT || fp->kind == SND_CFI_SAME;
    if (!plain)
        row.rule = SND_RULE_ODD;
    row.cfa = (int32_t)cfa;
    row.return_at = (int32_t)back->offset;
    return row;
}

static struct rows *grow(struct rows *old)
{
    size_t       count = old ? (old->mask + 1) * 2 : ROWS_FIRST;
    struct rows *table = snd_heap_pages(sizeof *table + count * sizeof table->at[0]);

    if (!table)
        return NULL;
    table->mask = count - 1;
    for (size_t i = 0; old && i <= old->mask; i++)
        if (old->at[i].pc != 0)
            *slot_of(table, old->at[i].pc) = old->at[i];
    table->used = old ? old->used : 0;
    __atomic_store_n(&rows, table, __ATOMIC_RELEASE);
    return table;
}

/* A row that the table does not have yet. */
static SND_NOINLINE struct snd_heap_row add_row(uint64_t pc)
{
    struct snd_heap_row none = { .pc = pc, .rule = SND_RULE_END };

    snd_heap_lock(&lock);
    struct rows *table = rows;
    if (slow && (!table || table->used * 2 > table->mask))
        table = grow(table);
    if (!slow || !table) {
        snd_heap_unlock(&lock);
        return none;
    }
    struct snd_heap_row *slot = slot_of(table, pc);
    if (slot->pc == 0) {
        struct snd_heap_row row = read_row(pc);
        row.pc = 0;
        *slot = row;
        __atomic_store_n(&slot->pc, pc, __ATOMIC_RELEASE);
        table->used++;
    }
    none = *slot;
    snd_heap_unlock(&lock);
    return none;
}

/* ----------------------------------------------------------------- the stack */

/* Probes by a system call that reads its second argument before it rejects its first. */
static bool is_readable(uint64_t page)
{
    int  before = errno;
    long result = syscall(SYS_rt_sigprocmask, ~0L, page, 0L, 8L);
    bool readable = result == 0 || errno != EFAULT;

    errno = before;
    return readable;
}

/* Callers lie above: `high` moves up page by page. */
static SND_NOINLINE bool extend(struct snd_heap_thread *self, uint64_t sp, uint64_t address)
{
    if (address % 8 != 0 || address < sp)
        return false;
    if (sp < self->low || sp >= self->high) { /* another stack, or further down in this one */
        bool is_near = self->low > sp && self->low - sp < PAGE * 16;
        self->low = sp & ~(PAGE - 1);
        if (!is_near)
            self->high = self->low + PAGE;
    }
    if (address < self->low || address - self->low > PAGE << 20)
        return false;
    while (address >= self->high) {
        if (!is_readable(self->high))
            return false;
        self->high += PAGE;
    }
    return true;
}

/* `sp`: of the innermost frame, on whose stack this is. */
static inline bool load(struct snd_heap_thread *self, uint64_t sp, uint64_t address,
                        uint64_t *value)
{
    bool known = sp >= self->low && address >= sp && address < self->high && address % 8 == 0;

    if (SND_UNLIKELY(!known) && !extend(self, sp, address))
        return false;
    *value = *(const uint64_t *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
    return true;
}

/* From a frame to its caller; false at the end. */
static inline bool go_out(const struct snd_heap_row *row, uint64_t start,
                          struct snd_heap_caller *at)
{
    struct snd_heap_thread *self = &snd_heap_self;
    uint64_t                cfa = (row->rule == SND_RULE_SP ? at->sp : at->fp) + (uint64_t)row->cfa;

    if (row->rule >= SND_RULE_AT_FP) {
        if (row->rule != SND_RULE_AT_FP || !load(self, start, cfa, &cfa) ||
            !load(self, start, at->fp, &at->fp))
            return false;
    } else if (row->fp_saved && !load(self, start, cfa + (uint64_t)row->fp_at, &at->fp)) {
        return false;
    }
    /* Callers have higher addresses. */
    if (cfa <= at->sp || !load(self, start, cfa + (uint64_t)row->return_at, &at->pc))
        return false;
    at->pc = snd_cfi_strip(at->pc);
    at->sp = cfa;
    return at->pc != 0;
}

/* The full unwinder, from here on; frames of this library are skipped. */
static SND_NOINLINE void walk_slowly(const struct snd_heap_caller *caller,
                                     struct snd_heap_stack        *stack)
{
    snd_heap_lock(&lock);
    getcontext(&slow->context);
    snd_unwind(&slow->unwind, &slow->context, &slow->stack);
    size_t from = 0, count = slow->stack.native_count;
    while (from < count && slow->stack.native[from].pc != caller->pc)
        from++;
    stack->count = 0;
    for (; from < count; from++) {
        stack->pcs[stack->count++] = slow->stack.native[from].pc;
        stack->is_ours |= snd_heap_is_ours(slow->stack.native[from].pc);
    }
    stack->cut = slow->stack.native_cut;
    if (stack->count == 0)
        stack->pcs[stack->count++] = caller->pc;
    snd_heap_unlock(&lock);
}

static void hash(struct snd_heap_stack *stack)
{
    uint64_t low = __atomic_load_n(&generation, __ATOMIC_RELAXED) + 1, high = MIX ^ low;

    for (uint32_t i = 0; i < stack->count; i++) {
        low = (low ^ stack->pcs[i]) * 0xff51afd7ed558ccdu;
        low ^= low >> 32;
        high = (high + stack->pcs[i]) * 0xc4ceb9fe1a85ec53u;
        high ^= high >> 29;
    }
    stack->low = low;
    stack->high = high;
}

void snd_heap_walk(const struct snd_heap_caller *caller, struct snd_heap_stack *stack)
{
    struct snd_heap_caller at = *caller;
    struct snd_heap_row    fresh;
    bool                   more = true;

    stack->count = 0;
    stack->cut = stack->is_ours = false;
    while (more) {
        if (SND_UNLIKELY(stack->count == SND_HEAP_FRAMES)) {
            stack->cut = true;
            break;
        }
        stack->pcs[stack->count++] = at.pc;
        const struct snd_heap_row *row = find_row(at.pc);
        if (SND_UNLIKELY(!row)) {
            fresh = add_row(at.pc);
            row = &fresh;
        }
        stack->is_ours |= row->is_ours;
        stack->count -= row->is_hidden;
        if (SND_UNLIKELY(row->rule == SND_RULE_ODD)) {
            walk_slowly(caller, stack);
            break;
        }
        more = row->rule != SND_RULE_END && go_out(row, caller->sp, &at);
    }
    hash(stack);
}

void snd_heap_walk_lock(void)
{
    snd_heap_lock(&lock);
}

void snd_heap_walk_unlock(void)
{
    snd_heap_unlock(&lock);
}
