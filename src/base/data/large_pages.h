/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/large_pages.h - large arrays, zeroed, in large pages where the system has them.
 *
 * Most of the time to fill a new array of many megabytes goes into its page faults; pages of 2 MiB
 * take a tenth of it. Pages that are never written are never allocated.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_DATA_LARGE_PAGES_H
#define SND_BASE_DATA_LARGE_PAGES_H

#include <stddef.h>

/* Owns: the caller, until snd_pages_free() with the same size. NULL when memory is out. */
void *snd_pages_take(size_t size);
void  snd_pages_free(void *memory, size_t size);

#endif
