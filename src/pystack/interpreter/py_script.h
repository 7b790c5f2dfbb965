/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/py_script.h - how a thread of CPython 3.14 or later is handed a script (PEP 768), as the interpreter states it.
 *
 * Apart from py_layout.h, which the probes are compiled with: those read stacks, and hand over nothing.
 *
 * Layer: pystack (sees base/). No state.
 */
#ifndef SND_PYSTACK_INTERPRETER_PY_SCRIPT_H
#define SND_PYSTACK_INTERPRETER_PY_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets in bytes. */
struct snd_py_script {
    uint32_t breaker;       /* of a thread state: a word that it looks at between instructions */
    uint32_t place;         /* of a thread state: what has the next two */
    uint32_t pending, path; /* that there is one; its path */
    uint32_t path_size;     /* not an offset: bytes of a path, at most */
    uint32_t allowed;       /* of an interpreter: a number, 0 if it takes none */
};

#define SND_PY_SCRIPT_WAITS 32u /* the bit of `breaker` that makes a thread look */

/*
 * Of 3.`minor`, by the block at the start of its _PyRuntime (SND_PY_OFFSETS_SIZE bytes, untrusted). False: a version
 * before 3.14, or one whose block is not known.
 */
bool snd_py_script_read(struct snd_py_script *script, unsigned minor, const void *offsets,
                        size_t size);

#endif
