/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/kinds.h - which kinds of events a trace has, so that a walk that looks for others is spared.
 *
 * Found by going through the events without their times and threads, which costs less than a walk,
 * and once for a trace. What a walk leaves out (warm-up, what follows damage) may be among them: a kind that
 * is not there is certain, one that is there may not be met.
 *
 * Layer: read. Threads: as a trace.
 */
#ifndef SND_READ_WALK_KINDS_H
#define SND_READ_WALK_KINDS_H

#include "base/error.h"
#include "read/reader.h"

struct snd_kinds {
    bool events[256];  /* by kind: SND_EV_ */
    bool attrs[256];   /* by key, of ATTR and ATTR64; those of call records are in the tables */
    bool unsized_free; /* there is a FREE of an address that does not have its size */
    bool crossing_end; /* an END_KEY may end a range of another thread */
};

/* `out` is the trace's. Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED. */
SND_CHECKED enum sonde_status
snd_trace_kinds(struct sonde_trace *trace, const struct snd_kinds **out, struct sonde_error *err);

#endif
