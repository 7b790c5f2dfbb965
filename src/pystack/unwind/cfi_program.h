/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/cfi_program.h - the numbers of unwind tables, and the instructions that make their rows, for
 * cfi.c.
 *
 * Layer:   pystack. Threads: as cfi.h; also in a signal handler.
 */
#ifndef SND_PYSTACK_UNWIND_CFI_PROGRAM_H
#define SND_PYSTACK_UNWIND_CFI_PROGRAM_H

#include "pystack/unwind/cfi.h"

/* How addresses are stored. */
#define SND_CFI_ENCODED_FORMAT 0x0f
#define SND_CFI_ENCODED_PCREL 0x10
#define SND_CFI_ENCODED_RELATION 0x70
#define SND_CFI_ENCODED_OMITTED 0xff

/* A block after its length; empty, and `b` bad, if it is longer than the rest. */
struct snd_cfi_bytes snd_cfi_take_block(struct snd_cfi_bytes *b);

/* An address as `encoding` stores it. A length is a difference, whatever addresses are relative to. */
uint64_t snd_cfi_read_encoded(const struct snd_cfi *c, struct snd_cfi_bytes *b, uint8_t encoding,
                              bool is_length);

/* Executes the next instruction of c->program. */
void snd_cfi_execute(struct snd_cfi *c);

/* Executes a program up to c->pc. False: it is damaged, or has an instruction that is not known. */
bool snd_cfi_run(struct snd_cfi *c, struct snd_cfi_bytes program);

#endif
