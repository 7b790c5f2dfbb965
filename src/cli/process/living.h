/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/living.h - which processes of a `sonde run` still live.
 *
 * A daemon is not a child of ours any more, may have closed every descriptor and may not have made its
 * file yet. But its environment names the folder, and if it has overwritten that (setproctitle),
 * it still has its file, or its parent's, mapped. Both are in /proc.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_LIVING_H
#define SND_CLI_PROCESS_LIVING_H

#include <stddef.h>

#define SND_LIVING_UNKNOWN ((size_t)-1)

/*
 * Counts the processes, ours left out, that record into `folder`, an absolute path that ends in a
 * slash, or may begin to; SND_LIVING_UNKNOWN where /proc cannot be read. Helpers of Python's
 * multiprocessing that end with the program and record nothing are not counted.
 */
size_t snd_living_count(const char *folder);

/* The same; as long as there are some it looks again, for a fraction of a second: many end soon. */
size_t snd_living_wait(const char *folder);

#endif
