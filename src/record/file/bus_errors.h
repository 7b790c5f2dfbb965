/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/file/bus_errors.h - stores into the mapped file that the file system cannot take.
 *
 * A page of a mapped file may have no place behind it when it is written: somebody truncated the
 * file, or the file system moves blocks when they are written again and is full (btrfs, snapshots).
 * The kernel then sends SIGBUS, which ends the program. While a recording is open its handler is
 * ours: it lays anonymous memory over what is left of the mapping, so that the store is void and
 * the program goes on, and notes from where on. What the chunk got from there is counted as lost
 * when it is sealed. Any other SIGBUS goes to whoever had the signal before. docs/decisions/0010-bus-errors.md.
 *
 * Layer:   record.
 * Threads: any.
 */
#ifndef SND_RECORD_FILE_BUS_ERRORS_H
#define SND_RECORD_FILE_BUS_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the handler; removes it unless another has replaced it meanwhile. */
void snd_bus_guard(void);
void snd_bus_release(void);

/* A shared mapping of the file begins, ends. Its first `kept` bytes, 64 at most, stay readable in it. */
void snd_bus_add(void *map, size_t size, size_t kept);
void snd_bus_remove(void *map);

/* The first byte of this mapping whose stores were lost, or its size. */
size_t snd_bus_cut(const void *map, size_t size);

#endif
