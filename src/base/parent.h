/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/parent.h - the parent of a process, from /proc.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_PARENT_H
#define SND_BASE_PARENT_H

#include <sys/types.h>

/* 0 when it has ended, or is a zombie. */
pid_t snd_parent_of(pid_t pid);

#endif
