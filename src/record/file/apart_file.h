/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/apart_file.h - work on the trace file whose descriptor the program has closed.
 *
 * Daemons close every number, and count on which one their next file gets. So the file is opened
 * again by a thread with a table of descriptors of its own (base/files/own_table.h), for one piece of
 * work: what that maps is mapped for all. The helper thread has such a table from its start, since
 * it may be at work at any moment: a number that the program closes and gets back for a file of its
 * own would be written to.
 *
 * Layer:   record.
 * Threads: any; needs no lock.
 */
#ifndef SND_RECORD_FILE_APART_FILE_H
#define SND_RECORD_FILE_APART_FILE_H

#include <pthread.h>

#include "record/state.h"

/* Returns 0 or an errno. */
typedef int snd_apart_work(int fd, void *user);

/*
 * Calls `work` with a descriptor of the file and waits until it returns. Returns its result, or
 * EBADF if the file was removed or cannot be opened.
 */
int snd_apart(snd_apart_work *work, void *user);

/*
 * Gives the calling thread, one of the recorder's own, a table of descriptors with the file in it
 * and nothing else, for as long as it lives. Where the kernel refuses, it has none. Lock held.
 */
void snd_apart_keep(void);

/* The descriptor that the calling thread has kept; -1: none. */
int snd_apart_kept(void);

/*
 * Creates a thread of the recorder's own, which takes none of the program's signals. False: it
 * could not.
 */
bool snd_apart_thread(pthread_t *thread, bool is_detached, void *(*start)(void *), void *argument,
                      const char *name);

#endif
