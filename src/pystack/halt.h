/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/halt.h - the stack of a running thread of another process, which is halted meanwhile.
 *
 * That one thread alone, for the time it takes to read its frames, some tens of microseconds: it is
 * let go before the call returns, and by the kernel should this program die. Only a thread that
 * runs may be halted: a system call that waits could return early.
 *
 * Layer: pystack. Threads: one.
 */
#ifndef SND_PYSTACK_HALT_H
#define SND_PYSTACK_HALT_H

#include "pystack/process.h"

/* A snd_running_fn. `python` is a struct snd_python. TORN: it may not be halted, as when another
 * program traces it; UNREAD: it has ended. */
enum snd_py_read snd_halt_read(void *python, uint32_t tid, uint64_t state,
                               struct snd_py_stack *stack);

#endif
