/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/span_records.h - what a walk of spans calls, as records from one thread to another.
 *
 * The walk's calls (snd_spanrecords_pack()) write them; snd_spanrecords_replay() reads them and makes the same calls, with
 * the same values. An exporter's marks and numbers of open ranges stay on its side. A record is a span as it is: packing it
 * into less costs more than the bytes.
 *
 * Layer: export. Threads: packing is one thread's, replaying another's.
 */
#ifndef SND_EXPORT_TIMELINE_SPAN_RECORDS_H
#define SND_EXPORT_TIMELINE_SPAN_RECORDS_H

#include "export/common/walk_ahead.h"
#include "export/timeline/spans.h"

/* Calls that write records, of what `wanted` has functions for. */
struct snd_spans_calls snd_spanrecords_pack(const struct snd_spans_calls *wanted,
                                            struct snd_ahead_writer      *writer);

struct snd_span_replay {
    const struct sonde_trace     *trace;
    const struct snd_spans_calls *calls;
    struct snd_open_spans        *open; /* by thread: what the exporter has given its open ranges */
    uint64_t                      attrs[SND_SPAN_ATTRS];
    bool                          stopped; /* by a call */
    bool                          failed;  /* memory ran out */
};

/* False: out of memory; released all the same. */
SND_CHECKED bool snd_spanrecords_begin(struct snd_span_replay       *replay,
                                       const struct sonde_trace     *trace,
                                       const struct snd_spans_calls *calls);
/* The calls of a block's records, which they change. False: one has ended it, or memory has. */
bool snd_spanrecords_replay(struct snd_span_replay *replay, const struct snd_block *block);
void snd_spanrecords_release(struct snd_span_replay *replay);

#endif
