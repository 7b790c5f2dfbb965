/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/file/cut_trace.h - what of a trace is one session's.
 *
 * Sessions of one process share its trace. A cut keeps the tables, the tallies of one session as
 * if they were the process's, and of the events those that it asks for, of the times in which the
 * session was on.
 *
 * Layer: model.
 */
#ifndef SND_MODEL_FILE_CUT_TRACE_H
#define SND_MODEL_FILE_CUT_TRACE_H

#include "read/reader.h"
#include "sonde/model.h"

/* Ranges that are open on a thread, and whether each is kept. */
struct snd_cut_thread {
    uint32_t thread, depth, room;
    bool    *kept;
    bool     latest; /* whether its latest timed event is kept: attributes follow it */
};

struct snd_cut {
    const struct sonde_cut   *asked;
    const struct sonde_trace *trace;
    struct snd_cut_thread    *threads;
    uint32_t                  thread_count, thread_room;
    bool                      failed; /* memory ran out: ranges are missing */
    uint32_t                  owners[SND_TALLY_LINE_MEMORY + 1]; /* by kind: the session that the
                                                                  process's counts are all of */
};

/* `asked` must outlive it. */
void snd_cut_init(struct snd_cut *cut, const struct sonde_cut *asked,
                  const struct sonde_trace *trace);

void snd_cut_release(struct snd_cut *cut);

/* Whether an event of `thread` is kept; events come in the order of the thread's chunks. */
bool snd_cut_has_event(struct snd_cut *cut, uint32_t thread, const uint64_t *words);
/* Makes a record that is kept one of the session alone, in place. */
void snd_cut_record(const struct snd_cut *cut, uint64_t *words, size_t count);

#endif
