/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/sampler/interrupt.h - the stack of a running thread, which stands still for it when asked to by a signal.
 *
 * A thread that holds the interpreter's lock changes its frames every few dozen nanoseconds: from
 * outside, what it does in short functions cannot always be read whole, and leaving that out would
 * favour the long ones. Then it is interrupted, and stands still until its stack has been read: by the
 * asker, or by itself, if the asker does not get to it. Only the thread that holds the lock and runs is ever interrupted: a thread that waits
 * in a system call is not, so that a call returns early only if it is entered at that moment.
 * Where native frames are wanted, every running thread is interrupted in every round: only it can
 * unwind its own C stack. A thread that blocks the signal is not: the program would find it pending.
 *
 * The signal is SIGURG: unused unless a program installs a handler, and ignored by default, so that
 * one that comes late (after exec, after the sampler stopped) does no harm. Where a program has a
 * handler of its own for it, threads are not interrupted, and stacks are read from outside.
 *
 * Layer:   probes.
 * Threads: one thread sends the signals.
 */
#ifndef SND_PROBES_PYTHON_SAMPLER_INTERRUPT_H
#define SND_PROBES_PYTHON_SAMPLER_INTERRUPT_H

#include "pystack/interpreter/frames.h"
#include "pystack/task.h"

/* False: the signal has another handler. `python` is copied. `native`: with native frames. */
bool snd_interrupt_start(const struct snd_python *python, bool native);
void snd_interrupt_stop(void);
/* In a forked child, which does not have the thread that sent the signal. */
void snd_interrupt_in_child(void);

/* A snd_running_fn (pystack/sampling/sampling.h): UNREAD when the thread cannot be interrupted. */
enum snd_py_read snd_interrupt_read(void *user, struct snd_task *task, uint64_t state,
                                    struct snd_py_hint *hint, struct snd_py_rider *rider,
                                    struct snd_py_stack *stack);

#endif
