/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/part.h - some processes of an open trace as a trace of their own, on the same axis.
 *
 *     struct snd_part part;
 *     if (snd_part_open(&part, trace, is_chosen, err) == SONDE_OK)
 *         write_all(&part.trace);
 *     snd_part_close(&part);
 *
 * Nothing is read again: the part borrows files and tables of the whole, which must not be used meanwhile.
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_PART_H
#define SND_READ_PART_H

#include "read/reader.h"

struct snd_part {
    struct sonde_trace  trace;
    struct sonde_trace *whole;
};

/* `is_chosen`: by process. A process without a file of its own is chosen with the one whose file it is in. */
SND_CHECKED enum sonde_status snd_part_open(struct snd_part *part, struct sonde_trace *whole,
                                            const bool *is_chosen, struct sonde_error *err);
void                          snd_part_close(struct snd_part *part);

#endif
