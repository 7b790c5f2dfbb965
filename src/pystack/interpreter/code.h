/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/code.h - a code object: what is known of it, its texts, and where in it a frame is.
 *
 * Layer: pystack. No state, no memory of its own, no lock.
 */
#ifndef SND_PYSTACK_INTERPRETER_CODE_H
#define SND_PYSTACK_INTERPRETER_CODE_H

#include "pystack/interpreter/py_layout.h"
#include "pystack/process_memory.h"

#define SND_CODE_WITNESS SND_PY_CODE_READ /* bytes of the object that are compared, at most */
#define SND_CODE_NAME 48                  /* bytes of the name that are */

/* Where copies of a code object's instructions were when they were last read: each thread may have one. */
#define SND_CODE_COPIES 64
struct snd_code_copies {
    uint32_t count;
    uint64_t at[SND_CODE_COPIES];
};

struct snd_code {
    uint32_t                serial; /* no other code has it, whatever its address */
    uint64_t                address;
    uint64_t                checked;         /* the round in which it was last found unchanged */
    uint64_t                asked;           /* when it was last among those that were read */
    char                   *function, *file; /* owned; UTF-8 */
    uint32_t                first_line;
    uint8_t                *lines; /* owned */
    size_t                  line_bytes;
    uint64_t                instr_count; /* 3.11 on: units of two bytes */
    struct snd_code_copies *copies;      /* owned; NULL: the version has no copies */
    uint64_t                name_at; /* the name's length and letters: where, and as they were */
    uint32_t                name_bytes;
    char                    witness[SND_CODE_WITNESS], name[SND_CODE_NAME];
};

/* The instruction that a frame of this code is at, in bytes; false if it cannot be this code's. */
bool snd_code_offset(pid_t pid, const struct snd_py_layout *layout, const struct snd_code *code,
                     uint64_t instr, int64_t *offset);

/*
 * Can this code be the outermost frame of a stack? A generator is unlinked from its caller when it
 * yields: a chain read at that moment ends with the generator and is not a whole stack. From 3.11
 * on the frames themselves say whether they are linked.
 */
bool snd_code_may_begin(const struct snd_py_layout *layout, const struct snd_code *code);

/* Where the characters of a str object are. */
#define SND_PY_TEXT_MAX 4096 /* characters of a name or a path */
struct snd_py_text {
    uint64_t at;
    size_t   length;
    unsigned width; /* bytes a character */
};
/* False if it cannot be read, is not in CPython's compact form, or is no str. */
bool snd_py_text_find(pid_t pid, const struct snd_py_layout *layout, uint64_t object,
                      struct snd_py_text *text);
/* Its characters, which are `data`, as UTF-8 with a zero: at most length * 4 + 1 bytes. Returns their number. */
size_t snd_py_text_encode(const char *data, const struct snd_py_text *text, char *out);

#endif
