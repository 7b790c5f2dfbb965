/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/heap_interpreter.h - the Python interpreter of this process, if it has one: which file it is, which
 * native frames are its own, and where the calling thread's Python frames begin.
 *
 * It is found when the first return address in its file is met (frame_rules.h): a process without Python has no
 * cost but one look for a symbol in each new address's file. Nothing of Python is changed. Of its functions
 * two are called, which only read thread-local storage.
 */
#ifndef SND_PROBES_HEAP_STACKS_HEAP_INTERPRETER_H
#define SND_PROBES_HEAP_STACKS_HEAP_INTERPRETER_H

#include "probes/heap/heap.h"
#include "pystack/unwind/loops.h"

/*
 * What the rule of a return address in a function that begins at `function` has more: of enum
 * snd_heap_frame_flags. Under the lock of the rules.
 */
uint8_t snd_heap_interpreter_flags(uint64_t pc, uint64_t function);
/* A library was unloaded: was it the interpreter? */
void snd_heap_interpreter_forget(void);
bool snd_heap_is_python(uint64_t pc);

/*
 * The Python frames of the calling thread; false: it has none, or they cannot be read. A thread's own frames
 * stand still while it allocates, with or without the interpreter lock, and keep their code objects alive.
 */
bool snd_heap_interpreter_frames(struct snd_py_stack *frames);

/* By which frames are read, once there were some. */
const struct snd_python *snd_heap_interpreter_layout(void);
/* Whether the code object of a frame is one. */
bool snd_heap_interpreter_is_code(uint64_t code);
/* Sets the evaluation loop's function. */
void snd_heap_interpreter_loop(struct snd_loops *loops);

#endif
