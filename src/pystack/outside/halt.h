/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/outside/halt.h - reads the stack of a running thread of another process, by stopping that thread.
 *
 * Only that thread is stopped (ptrace), and only while its frames are read, some tens of microseconds;
 * it is resumed before the call returns, and by the kernel if this program dies. Only a running thread
 * may be stopped: a blocking system call could return early.
 *
 * Layer:   pystack.
 * Threads: one.
 */
#ifndef SND_PYSTACK_OUTSIDE_HALT_H
#define SND_PYSTACK_OUTSIDE_HALT_H

#include "pystack/interpreter/frames.h"
#include "pystack/task.h"

/* A snd_running_fn. `python` is a struct snd_python. TORN: it may not be halted, as when another
 * program traces it; UNREAD: it has ended. */
enum snd_py_read snd_halt_read(void *python, struct snd_task *thread, uint64_t state,
                               struct snd_py_hint *hint, struct snd_py_rider *rider,
                               struct snd_py_stack *stack);

#endif
