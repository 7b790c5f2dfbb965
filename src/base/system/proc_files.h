/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/proc_files.h - files of /proc: what the kernel says of a process, and its settings.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_SYSTEM_PROC_FILES_H
#define SND_BASE_SYSTEM_PROC_FILES_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads /proc/PID/NAME, at most size - 1 bytes, and ends it with a zero; it may have zeroes of its
 * own. Returns its length: 0 if it cannot be read.
 */
size_t snd_proc_read(pid_t pid, const char *name, char *text, size_t size);

/* The first line of a file, such as a setting of the kernel; "" if it cannot be read. */
void snd_proc_line(const char *path, char *text, size_t size);

/* The state of a process, as a letter of proc(5): 'T' stopped, 'Z' zombie; 'X' if it is gone. */
char snd_proc_state(pid_t pid);

/* The parent of a process; 0 if it has ended or is a zombie. */
pid_t snd_proc_parent(pid_t pid);

/* Threads of this process whose names do not begin with `prefix`; 0 if they cannot be listed. */
size_t snd_proc_threads_besides(const char *prefix);

#endif
