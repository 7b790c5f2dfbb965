/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/outside/locate.h - finds the Python interpreter in a running process, from outside.
 *
 * Layer: pystack. Threads: any.
 */
#ifndef SND_PYSTACK_OUTSIDE_LOCATE_H
#define SND_PYSTACK_OUTSIDE_LOCATE_H

#include "pystack/interpreter/interpreters.h"

/*
 * Errors: SONDE_E_IO: no such process, or it may not be read (the message says what to do);
 *         SONDE_E_UNSUPPORTED: no Python, or none that is known here.
 */
SND_CHECKED enum sonde_status snd_python_find(struct snd_python *python, pid_t pid,
                                              struct sonde_error *err);

/* One of a file's symbols, as an address in the process; false if the file has none. */
struct snd_symbol {
    const char *name;
    uint64_t    address; /* 0: not found */
};
/* `base`: where the file's first segment lies. False when it is no ELF file of this machine. */
bool snd_elf_symbols(const char *file, uint64_t base, struct snd_symbol *symbols, size_t count);

/* The 3.MINOR in the file's own words ("python3.9"); 0 if it has none. */
unsigned snd_elf_python_minor(const char *file);

#endif
