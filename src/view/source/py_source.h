/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/source/py_source.h - the source of a Python function, from its file.
 *
 * Layer: view. Threads: a source belongs to one thread.
 */
#ifndef SND_VIEW_SOURCE_PY_SOURCE_H
#define SND_VIEW_SOURCE_PY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "sonde/model.h"

struct snd_pysource {
    char             *bytes;
    size_t            length;
    size_t           *starts; /* of each line, and of what follows the last */
    size_t            line_count;
    uint64_t          size; /* size and time of modification of the file, by stat() */
    int64_t           mtime_ns;
    struct sonde_text file; /* that is open, of the function it was opened for; or empty */
};

/*
 * The text that was recorded, or else the file. False: it cannot be read (or does not fit in
 * memory); then it has no lines.
 */
bool snd_pysource_open(struct snd_pysource *source, const struct sonde_line_function *function);
/*
 * The same for the next of several functions: a file that is open already is not read again. The
 * first time `source` is all zeros; the functions outlive it.
 */
bool snd_pysource_turn(struct snd_pysource *source, const struct sonde_line_function *function);
void snd_pysource_close(struct snd_pysource *source);

/* Whether the file is still what it was when `function` was recorded, as far as is known. */
bool snd_pysource_fits(const struct snd_pysource        *source,
                       const struct sonde_line_function *function);

/* Line `number`, from 1, without its end; empty past the last. */
struct sonde_text snd_pysource_line(const struct snd_pysource *source, size_t number);

/*
 * How many lines the function, class or lambda that begins at line `first` has: what Python's
 * inspect.getblock says. 0 when there is no such line.
 */
size_t snd_pysource_block(const struct snd_pysource *source, size_t first);

#endif
