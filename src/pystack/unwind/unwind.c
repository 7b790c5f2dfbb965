/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/unwind.h"

#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((uint64_t)4096)
#define VALUES 16 /* of an expression's own stack */

bool snd_unwind_init(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    return snd_cfi_init();
#else
    return false;
#endif
}

/* ---------------------------------------------------------------- registers */

/* By DWARF's numbers; the return address's column is where the code is. */
static uint64_t take_registers(struct snd_unwind *u, const ucontext_t *context)
{
#if defined(__x86_64__)
    static const uint8_t order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                     REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };
    for (size_t i = 0; i < SND_CFI_REGISTERS; i++)
        u->registers[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
    memset(u->known, true, sizeof u->known);
    return u->registers[16];
#elif defined(__aarch64__)
    for (size_t i = 0; i < 31; i++)
        u->registers[i] = context->uc_mcontext.regs[i];
    u->registers[31] = context->uc_mcontext.sp;
    u->registers[32] = context->uc_mcontext.pc;
    memset(u->known, true, sizeof u->known);
    return u->registers[32];
#else
    return (void)u, (void)context, 0;
#endif
}

/* --------------------------------------------------------------- the memory */

/* Callers lie above: the page is read from here on. */
static bool read_word(struct snd_unwind *u, uint64_t address, uint64_t *value)
{
    struct snd_window *w = &u->stack;

    if (address % 8 != 0)
        return false;
    if (address < w->from || address + 8 > w->to) {
        uint64_t end = (address | (PAGE - 1)) + 1;
        w->from = w->to = 0;
        if (end == 0 || !snd_memory_read(u->pid, address, w->bytes, (size_t)(end - address)))
            return false;
        w->from = address;
        w->to = end;
    }
    *value = snd_u64(w->bytes + (address - w->from));
    return true;
}

/* -------------------------------------------------------------- expressions */

struct values {
    uint64_t at[VALUES];
    unsigned count;
    bool     bad;
};

static void push(struct values *v, uint64_t value)
{
    if (v->count == VALUES)
        v->bad = true;
    else
        v->at[v->count++] = value;
}

static uint64_t pop(struct values *v)
{
    if (v->count == 0) {
        v->bad = true;
        return 0;
    }
    return v->at[--v->count];
}

static uint64_t register_plus(struct snd_unwind *u, uint64_t number, int64_t offset,
                              struct values *v)
{
    if (number >= SND_CFI_REGISTERS || !u->known[number]) {
        v->bad = true;
        return 0;
    }
    return u->registers[number] + (uint64_t)offset;
}

enum operation {
    AND = 0x1a,
    MINUS = 0x1c,
    OR = 0x21,
    PLUS = 0x22,
    SHL = 0x24,
    SHR = 0x25,
    EQ = 0x29,
    GE,
    GT,
    LE,
    LT,
    NE
};

static bool operate(uint8_t code, struct values *v)
{
    uint64_t b = pop(v), a = pop(v);
    int64_t  x = (int64_t)a, y = (int64_t)b;

    switch (code) {
    case AND:
        push(v, a & b);
        return true;
    case MINUS:
        push(v, a - b);
        return true;
    case OR:
        push(v, a | b);
        return true;
    case PLUS:
        push(v, a + b);
        return true;
    case SHL:
        push(v, b < 64 ? a << b : 0);
        return true;
    case SHR:
        push(v, b < 64 ? a >> b : 0);
        return true;
    case EQ:
        push(v, x == y);
        return true;
    case GE:
        push(v, x >= y);
        return true;
    case GT:
        push(v, x > y);
        return true;
    case LE:
        push(v, x <= y);
        return true;
    case LT:
        push(v, x < y);
        return true;
    case NE:
        push(v, x != y);
        return true;
    default:
        return false;
    }
}

/* What the tables of the C library and of lazy binding need; false: another one. */
static bool step(struct snd_unwind *u, uint8_t code, struct snd_cfi_bytes *b, struct values *v)
{
    if (code >= 0x30 && code <= 0x4f) {
        push(v, code - 0x30u);
    } else if (code >= 0x70 && code <= 0x8f) {
        push(v, register_plus(u, code - 0x70u, snd_cfi_sleb(b), v));
    } else if (code >= 0x08 && code <= 0x0f) { /* 1, 2, 4, 8 bytes, each unsigned and signed */
        size_t   size = (size_t)1 << (code - 0x08) / 2;
        unsigned unused = 64 - (unsigned)size * 8;
        uint64_t value = snd_cfi_fixed(b, size);
        push(v, code % 2 ? (uint64_t)((int64_t)(value << unused) >> unused) : value);
    } else if (code == 0x06) {
        uint64_t value = 0;
        v->bad |= !read_word(u, pop(v), &value);
        push(v, value);
    } else if (code == 0x10) {
        push(v, snd_cfi_uleb(b));
    } else if (code == 0x11) {
        push(v, (uint64_t)snd_cfi_sleb(b));
    } else if (code == 0x12) {
        uint64_t value = pop(v);
        push(v, value);
        push(v, value);
    } else if (code == 0x23) {
        push(v, pop(v) + snd_cfi_uleb(b));
    } else {
        return operate(code, v);
    }
    return true;
}

static bool evaluate(struct snd_unwind *u, struct snd_cfi_bytes b, uint64_t first, bool has_first,
                     uint64_t *result)
{
    struct values v = { .count = 0 };

    if (has_first)
        push(&v, first);
    while (b.at < b.end && !b.bad && !v.bad)
        if (!step(u, (uint8_t)snd_cfi_fixed(&b, 1), &b, &v))
            return false;
    *result = pop(&v);
    return !v.bad && !b.bad;
}

/* ------------------------------------------------------------------ walking */

static bool find_cfa(struct snd_unwind *u, uint64_t *cfa)
{
    const struct snd_cfi_row *row = &u->cfi.row;

    if (row->cfa.kind == SND_CFI_IS_RESULT)
        return evaluate(u, row->cfa.expression, 0, false, cfa);
    if (row->cfa.kind != SND_CFI_REGISTER || row->cfa_register >= SND_CFI_REGISTERS ||
        !u->known[row->cfa_register])
        return false;
    *cfa = u->registers[row->cfa_register] + (uint64_t)row->cfa.offset;
    return true;
}

/* The caller's value of a register; false: it is not known. */
static bool recover(struct snd_unwind *u, const struct snd_cfi_rule *rule, size_t column,
                    uint64_t cfa, uint64_t *value)
{
    uint64_t at = cfa + (uint64_t)rule->offset;
    size_t   from = rule->kind == SND_CFI_REGISTER ? (size_t)rule->offset : column;

    if (rule->kind == SND_CFI_UNDEFINED)
        return false;
    if (rule->kind == SND_CFI_AT)
        return read_word(u, at, value);
    if (rule->kind == SND_CFI_IS)
        *value = at;
    else if (rule->kind == SND_CFI_AT_RESULT)
        return evaluate(u, rule->expression, cfa, true, &at) && read_word(u, at, value);
    else if (rule->kind == SND_CFI_IS_RESULT)
        return evaluate(u, rule->expression, cfa, true, value);
    else if (from < SND_CFI_REGISTERS && u->known[from])
        *value = u->registers[from];
    else
        return false;
    return true;
}

/* From a frame to its caller; false at the end, or where it is unknown. */
static bool go_out(struct snd_unwind *u, uint64_t *pc)
{
    uint64_t values[SND_CFI_REGISTERS], cfa;
    bool     known[SND_CFI_REGISTERS];

    if (!find_cfa(u, &cfa))
        return false;
    for (size_t i = 0; i < SND_CFI_REGISTERS; i++)
        known[i] = recover(u, &u->cfi.row.registers[i], i, cfa, &values[i]);
    if (u->cfi.row.registers[SND_CFI_SP].kind == SND_CFI_SAME) {
        values[SND_CFI_SP] = cfa;
        known[SND_CFI_SP] = true;
    }
    if (!known[u->cfi.return_column])
        return false;
    *pc = snd_cfi_strip(values[u->cfi.return_column]);
    memcpy(u->registers, values, sizeof values);
    memcpy(u->known, known, sizeof known);
    return *pc != 0 && known[SND_CFI_SP];
}

void snd_unwind(struct snd_unwind *u, const void *context, struct snd_py_stack *stack)
{
    uint64_t pc = take_registers(u, context), before = 0;
    bool called = false; /* a return address is after the call, and may be the next function's */

    u->pid = getpid();
    u->stack.from = u->stack.to = 0;
    stack->native_count = 0;
    stack->native_cut = stack->native_broken = false;
    for (bool more = pc != 0; more;) {
        uint64_t sp = u->registers[SND_CFI_SP];
        if (stack->native_count == SND_NATIVE_MAX) {
            stack->native_cut = true;
            return;
        }
        /* Outwards is upwards; only a function that has not taken any stack is where it was called. */
        if (sp < before || (sp == before && stack->native_count > 1))
            return;
        bool found = snd_cfi_find(&u->cfi, pc - called);
        stack->native[stack->native_count++] = (struct snd_native_frame){
            pc, found ? u->cfi.function : 0, sp, called && !(found && u->cfi.is_signal)
        };
        before = sp;
        stack->native_broken = !found;
        called = found && !u->cfi.is_signal;
        more = found && go_out(u, &pc);
    }
}
