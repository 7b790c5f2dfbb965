/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/code_lines.h - the line of an instruction, from CPython's three kinds of line tables.
 *
 * Layer: pystack. No state; tables are borrowed, and may hold anything.
 */
#ifndef SND_PYSTACK_INTERPRETER_CODE_LINES_H
#define SND_PYSTACK_INTERPRETER_CODE_LINES_H

#include "pystack/interpreter/py_layout.h"

/*
 * The line of the instruction at byte `offset` of the function's code; `offset` below 0, or one
 * that belongs to no line, is the function's first line.
 */
uint32_t snd_py_line(enum snd_py_lines kind, const uint8_t *table, size_t size, uint32_t first_line,
                     int64_t offset);

#endif
