/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/frame_rules.h - how the frame of a caller is found, by return address: what the tables
 * for exceptions (.eh_frame) say of it, in a few numbers. For all threads; read without a lock.
 */
#ifndef SND_PROBES_HEAP_STACKS_FRAME_RULES_H
#define SND_PROBES_HEAP_STACKS_FRAME_RULES_H

#include "probes/heap/heap.h"
#include "base/hints.h"

enum snd_heap_rule {
    SND_RULE_SP,    /* CFA = stack pointer + cfa */
    SND_RULE_FP,    /* CFA = frame pointer + cfa */
    SND_RULE_AT_FP, /* CFA is stored at frame pointer + cfa: a function that aligned its stack */
    SND_RULE_END,   /* there is no caller, or nothing is known of it */
    SND_RULE_ODD,   /* needs the full unwinder */
};

enum snd_heap_frame_flags {
    SND_FRAME_USES_FP = 1,   /* to find its caller */
    SND_FRAME_LAST = 2,      /* it has no caller */
    SND_FRAME_READ = 4,      /* more was read to find its caller than the two slots below */
    SND_FRAME_HIDDEN = 8,    /* code of this library: an operator new */
    SND_FRAME_OURS = 16,     /* code of the recorder */
    SND_FRAME_PYTHON = 32,   /* code of the file that has the Python interpreter */
    SND_FRAME_PLUMBING = 64, /* the interpreter's own: Python frames stand for it */
    SND_FRAME_ARENA = 128,   /* of the interpreter, maps memory for its objects and frames */
};

/* Slots lie below the CFA, at multiples of 8. */
struct snd_heap_row {
    uint64_t pc; /* a return address; 0: the slot is free */
    int32_t  cfa, return_at,
        fp_at;      /* the latter two from the CFA; fp_at 0: fp is still the caller's */
    int32_t lowest; /* of return_at and fp_at */
    uint8_t rule;   /* enum snd_heap_rule */
    uint8_t flags;
};

struct snd_heap_rows {
    size_t              mask, used;
    struct snd_heap_row at[];
};
extern struct snd_heap_rows *snd_heap_rows;

/* Once, before the first walk. `tables`: the tables of loaded files can be found. */
void snd_heap_rules_init(bool tables);
/* A library was unloaded: its addresses may become another's. */
void snd_heap_rules_forget(void);
/* A row that the table does not have yet. Rows stay where they are. */
const struct snd_heap_row *snd_heap_row_add(uint64_t pc);
/* Held around a fork. */
void snd_heap_rules_lock(void);
void snd_heap_rules_unlock(void);

static inline struct snd_heap_row *snd_heap_row_slot(struct snd_heap_rows *table, uint64_t pc)
{
    size_t at = (size_t)(pc * 0x9e3779b97f4a7c15u >> 32) & table->mask;

    for (;; at = (at + 1) & table->mask) {
        uint64_t found = __atomic_load_n(&table->at[at].pc, __ATOMIC_ACQUIRE);
        if (found == pc || found == 0)
            return &table->at[at];
    }
}

static inline const struct snd_heap_row *snd_heap_row_find(uint64_t pc)
{
    struct snd_heap_rows *table = __atomic_load_n(&snd_heap_rows, __ATOMIC_ACQUIRE);

    if (SND_UNLIKELY(!table))
        return NULL;
    struct snd_heap_row *row = snd_heap_row_slot(table, pc);
    return SND_LIKELY(row->pc == pc) ? row : NULL;
}

#endif
