/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/own_table.h - a thread with descriptors of its own, inside somebody else's program.
 *
 * open() takes the lowest free number, and programs count on it: after close(0) the next file is
 * standard input. A thread of ours that opens a file takes that number for a moment. In a table of
 * its own it does not, and the program cannot close what it has open.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_FILES_OWN_TABLE_H
#define SND_BASE_FILES_OWN_TABLE_H

#include <stdbool.h>

/*
 * Gives the calling thread an empty table of descriptors. Only for a thread that we have created,
 * before it opens anything; threads that it creates later share the table.
 * Returns false, and changes nothing, where the kernel refuses.
 */
bool snd_owntable_enter(void);

/*
 * A copy, in the calling thread's table, of a descriptor of the process's first thread; -1 if there
 * is none or the kernel refuses. Asks for no right to the file.
 */
int snd_owntable_borrow(int fd);

#endif
