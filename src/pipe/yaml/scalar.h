/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/scalar.h - what an unquoted word of YAML 1.1 is, and how a number is written.
 *
 * Both as PyYAML has it, since PipeEdge's programs read and write by it: 1e-05 is text, 1.0e-05
 * a number; yes and off are flags; 0x10, 010, 0b1, 1_000 and 1:30 are integers.
 *
 * Layer: pipe. Threads: any.
 */
#ifndef SND_PIPE_YAML_SCALAR_H
#define SND_PIPE_YAML_SCALAR_H

#include "pipe/yaml/node.h"

/* Room for any number that snd_real_text writes. */
#define SND_REAL_MAX 40

/* Sets kind and value of a node that has its text. */
void snd_scalar_resolve(struct snd_node *node);
/* Whether the text, unquoted, would be taken for something else than text. */
bool snd_scalar_is_special(const char *text, size_t length);

/* Python's repr, the shortest that reads back as the same, with the full stop YAML wants. */
void snd_real_text(char text[SND_REAL_MAX], double value);

/* Whether a text is a number for most programs but not for YAML 1.1: 1e-05. */
bool snd_scalar_is_near_number(const char *text, size_t length);

#endif
