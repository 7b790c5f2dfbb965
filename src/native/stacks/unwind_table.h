/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/stacks/unwind_table.h - how to get from a frame to its caller, for every address of a file.
 *
 * Made once per file from .eh_frame, or .debug_frame: sorted rows of 16 bytes, each of which holds
 * from its address on. Only what walks need is kept: where the CFA (the stack pointer before the
 * call), the return address and the frame pointer are. What is said in other ways than compilers do
 * ends a walk.
 *
 * Layer: native (sees base/, format/, pystack/, symbols/). Threads: one at a time makes a table.
 */
#ifndef SND_NATIVE_STACKS_UNWIND_TABLE_H
#define SND_NATIVE_STACKS_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/unwind/cfi.h"

#if defined(__aarch64__)
#define SND_NATIVE_FP 29
#else
#define SND_NATIVE_FP 6
#endif

/* cfa: a register's number, which cfa_offset is added to; or with one of these. */
#define SND_CFA_DEREF 0x40u /* the CFA is stored there */
#define SND_CFA_PLT 0x80u /* of a linkage table: SP + 8, and 8 more from byte cfa_offset of 16 on */
#define SND_CFA_NONE 0xffu /* nothing is known from here on */

/* ra, fp: where the caller's value is. */
enum snd_saved {
    SND_SAVED_SAME,      /* in the register: of the return address, aarch64's x30 */
    SND_SAVED_AT_CFA,    /* stored at CFA + offset */
    SND_SAVED_AT_SP,     /* at SP + offset, SP that of the frame itself */
    SND_SAVED_AT_FP,     /* at FP + offset */
    SND_SAVED_LOST,      /* not understood */
    SND_SAVED_UNDEFINED, /* of the return address: there is no caller */
};

struct snd_unwind_row {
    uint32_t pc; /* from the table's base on */
    int32_t  cfa_offset;
    int16_t  ra_offset, fp_offset;
    uint8_t  cfa, ra, fp; /* enum snd_saved */
    uint8_t  is_signal;   /* the frame of a handler: its caller did not call */
};

struct snd_unwind_table {
    struct snd_unwind_row *rows; /* owned */
    uint32_t               count, capacity;
    uint64_t               base; /* address of the first function */
};

/* Adds a section's functions. False: memory is out. Sort when all are in. */
bool snd_unwind_table_add(struct snd_unwind_table *table, const struct snd_cfi_section *section);
void snd_unwind_table_sort(struct snd_unwind_table *table);
void snd_unwind_table_release(struct snd_unwind_table *table);

/* The row for an address; NULL: nothing is known of it. */
const struct snd_unwind_row *snd_unwind_table_find(const struct snd_unwind_table *table,
                                                   uint64_t                       pc);

#endif
