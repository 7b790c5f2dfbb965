/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/limits.h - how deep a stack may be: what is recorded of it, and what readers follow.
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_LIMITS_H
#define SND_FORMAT_LIMITS_H

/*
 * Python frames of one stack that are recorded: the innermost. The outermost frame of a stack
 * that has more is SND_FRAMES_LEFT_OUT, and the ledger counts it.
 */
#define SND_PYTHON_FRAMES_MAX 1024
#define SND_FRAMES_LEFT_OUT "(outer frames left out)"

/* Frames of one stack that readers follow. Probes record fewer: only a damaged trace has more. */
#define SND_STACK_MAX 16384u

/* The same, and at least one, which says that the stack is not known. */
#define SND_NAMED_STACK_MAX (SND_STACK_MAX + 1u)

/* The same with the ranges that were open, which readers put among them. */
#define SND_MIXED_FRAMES_MAX (SND_STACK_MAX + 1024u)

#endif
