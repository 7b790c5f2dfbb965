/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/code_objects.h - code objects of a Python process: names, files, lines; looked up once.
 *
 * A code object is known by its address, which another may get when it is freed. Each time a
 * stack is named, what is known of its code objects is compared with what is there now: those that
 * are expected may be read along with the stack (snd_codes_ask(), snd_codes_compare()), the others in
 * a call of their own (snd_codes_check()); then snd_codes_get() for each.
 *
 * Layer:   pystack. Threads: one at a time.
 */
#ifndef SND_PYSTACK_INTERPRETER_CODE_OBJECTS_H
#define SND_PYSTACK_INTERPRETER_CODE_OBJECTS_H

#include "base/data/map.h"
#include "pystack/interpreter/code.h"

#define SND_CODES_CHECKED (SND_PIECES_MAX / 2) /* different ones of one stack, at most */

struct snd_codes {
    pid_t                       pid;
    const struct snd_py_layout *layout;
    uint64_t                    type; /* of code objects: the address of PyCode_Type */
    struct snd_map              by_address;
    struct snd_code           **list; /* owned; by number */
    uint32_t                    count, capacity, serials;
    uint64_t                    round, asks;
    bool                        no_memory; /* why snd_codes_get() found nothing */
    /* what is there now, while it is compared */
    struct snd_piece pieces[SND_PIECES_MAX];
    uint64_t         asked[SND_CODES_CHECKED]; /* their addresses */
    uint32_t         asked_count, piece_count;
    char now[SND_CODES_CHECKED][SND_CODE_WITNESS], names[SND_CODES_CHECKED][SND_CODE_NAME];
};

void snd_codes_init(struct snd_codes *codes, pid_t pid, const struct snd_py_layout *layout,
                    uint64_t type);
void snd_codes_release(struct snd_codes *codes);

/*
 * Begins a round: nothing of what was compared before is known to be so still.
 */
void snd_codes_round(struct snd_codes *codes);
/*
 * Of those of these addresses that are known and, unless `all`, have not been compared in this
 * round: makes codes->pieces what must be read to compare them, in the order of addresses, so that what
 * is near is read at once. Returns how many pieces, at most `most`.
 */
size_t snd_codes_ask(struct snd_codes *codes, const uint64_t *addresses, size_t count, bool all,
                     size_t most);
/* The first `whole` pieces have been read: compares, in the round that has begun; or not, if some are missing. */
void snd_codes_compare(struct snd_codes *codes, size_t whole);
/* Asks, reads and compares. One call to the kernel, or none if all have been compared in this round. */
void snd_codes_check(struct snd_codes *codes, const uint64_t *addresses, size_t count);

/*
 * The code at an address that has been checked; read now if it is new or has changed. NULL: it
 * is no code object, or out of memory. Borrowed until the next call of this or of check.
 */
const struct snd_code *snd_codes_get(struct snd_codes *codes, uint64_t address);

/*
 * A str object as UTF-8, and in *data_at where its characters are; NULL if it cannot be read, is
 * not in CPython's compact form, is no str, or for want of memory: then *no_memory is set. Owns: the caller
 * frees it.
 */
char *snd_py_text(pid_t pid, const struct snd_py_layout *layout, uint64_t object, uint64_t *data_at,
                  bool *no_memory);

#endif
