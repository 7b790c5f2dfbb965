/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/apart.h - work on the trace file whose descriptor the program has closed.
 *
 * Daemons close every number, and count on which one their next file gets. So the file is opened
 * again by a thread with a table of descriptors of its own (base/owntable.h), for one piece of
 * work: what that maps is mapped for all.
 *
 * Layer:   record.
 * Threads: any; needs no lock.
 */
#ifndef SND_RECORD_APART_H
#define SND_RECORD_APART_H

#include <pthread.h>

#include "record/state.h"

/* Returns 0 or an errno. */
typedef int snd_apart_work(int fd, void *user);

/*
 * Calls `work` with a descriptor of the file and waits for its end. Returns what it returned, or
 * EBADF: the file has no name any more, or may not be opened.
 */
int snd_apart(snd_apart_work *work, void *user);

/* How a thread of the recorder's own is created: no signal of the program's is for it. */
bool snd_apart_attributes(pthread_attr_t *attributes);

#endif
