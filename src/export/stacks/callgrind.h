/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/callgrind.h - what files of functions and of samples share in callgrind's format.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_STACKS_CALLGRIND_H
#define SND_EXPORT_STACKS_CALLGRIND_H

#include "base/error.h"
#include "base/files/sink.h"
#include "sonde/trace.h"

/* A name, without what would end its line. */
void snd_callgrind_text(struct snd_out *out, struct sonde_text text);
/* What is counted, and its sum over all functions. */
struct snd_callgrind_event {
    struct sonde_text name, title;
    int64_t           total;
};
#define SND_CALLGRIND_TIME                     \
    {                                          \
        { "ns", 2 }, { "nanoseconds", 11 }, 0, \
    }
/* The head of the file, to the first function. */
void snd_callgrind_head(struct snd_out *out, const struct sonde_trace *trace,
                        const struct snd_callgrind_event *events, size_t count);

/* The samples of a trace; of one without, its ranges. Errors: SONDE_E_STATE: it has none; SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_callgrind_samples(struct sonde_trace *trace, struct snd_out *out,
                                                    struct sonde_error *err);

#endif
