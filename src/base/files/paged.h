/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/files/paged.h - a large array that need not be in memory as a whole: in a temporary file without a name, read and written
 * through pages that can be let go.
 *
 * A small one is in memory, and so is a large one where no file can be made, or its disk is full.
 *
 * Layer: base. Threads: one at a time.
 */
#ifndef SND_BASE_FILES_PAGED_H
#define SND_BASE_FILES_PAGED_H

#include <stdbool.h>
#include <stddef.h>

#define SND_PAGED_LEAST ((size_t)4 << 20) /* bytes of an array that is worth a file */

/* All zero is an empty one. */
struct snd_paged {
    void  *bytes;
    size_t size;
    int    file; /* its descriptor plus one; 0: it is in memory */
};

/* So that it has `size` bytes at least; new ones are zero. `bytes` may move. False: memory is out. */
bool snd_paged_grow(struct snd_paged *paged, size_t size);
void snd_paged_release(struct snd_paged *paged);
/* Pages leave memory, with what was written to them, until they are looked at again. */
void snd_paged_let_go(const struct snd_paged *paged);

#endif
