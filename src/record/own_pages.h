/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/own_pages.h - memory of the recorder's own: from the kernel, never from malloc, which may be
 * profiled.
 *
 * Layer: record. Threads: any.
 */
#ifndef SND_RECORD_OWN_PAGES_H
#define SND_RECORD_OWN_PAGES_H

#include <stddef.h>

/* Zeroed, or NULL. Owns: the caller, who frees it with the size it has. */
void *snd_ownpages_new(size_t size);
void *snd_ownpages_grow(void *pages, size_t old_size, size_t new_size); /* NULL: `pages` stands */
void  snd_ownpages_free(void *pages, size_t size);

#endif
