/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/calls/call_inside.h - what the files of call_count.h share.
 *
 *     call_state.c       the process's state; each file below calls only those above it
 *     call_functions.c   functions: their numbers, and their ids in the recording
 *     call_edges.c       edges (caller, callee), and their words in the trace
 *     call_counters.c    counters of the thread for each function
 *     call_c.c           the calls of functions in C that are open, for the torch probe
 *     call_stack.c       one stack: calls pushed and popped, as counts, ranges or events
 *     call_sessions.c    sessions that count for themselves
 *     call_awaits.c      how long coroutines are suspended
 *     call_threads.c     which stack is the calling thread's
 *     call_count.c       starting and stopping
 *
 * Layer:   probes.
 * Threads: as call_count.h.
 */
#ifndef SND_PROBES_PYTHON_CALLS_CALL_INSIDE_H
#define SND_PROBES_PYTHON_CALLS_CALL_INSIDE_H

#include "probes/python/calls/call_count.h"

/* ------------------------------------------------------------------- functions */

/* A function; its ids belong to the recording of that epoch. */
struct snd_calls_named {
    uint32_t epoch, frame, name;
    uint32_t name_length, file_length, line;
    bool     outside, module; /* as in struct snd_calls_name */
};
extern struct snd_calls_named *snd_calls_functions_; /* by number, less one */
extern uint32_t                snd_calls_function_room_;

/* The function, with its ids in the recording of that epoch. */
const struct snd_calls_named *snd_calls_interned_(uint32_t number, uint32_t epoch);

/* ----------------------------------------------------------------------- edges */

/* Counts go here while nothing records. */
extern uint64_t snd_calls_unused_words_[SND_CALLS_WORDS];

/* NULL: no memory. */
struct snd_calls_edges *snd_calls_new_edges_(void);
void                    snd_calls_drop_edges_(struct snd_calls_edges *edges);
/* Points the edge to its words in the recording that is on. */
void snd_calls_fetch_words_(const struct snd_calls_thread *t, struct snd_calls_edge *edge);
/* The words of a pair in the recording that is on; NULL: none. */
uint64_t *snd_calls_words_(uint32_t number, uint32_t caller, uint32_t callee);

/* --------------------------------------------------------- threads and sessions */

extern struct snd_calls_thread *snd_calls_threads_; /* of the process, all there ever were */
extern struct snd_calls_session snd_calls_process_;

struct snd_calls_thread *snd_calls_new_thread_(struct snd_calls_session *owner);
void                     snd_calls_free_thread_(struct snd_calls_thread *t);
void                     snd_calls_reset_(struct snd_calls_thread *t);
void                     snd_calls_close_all_(struct snd_calls_thread *t);
void                     snd_calls_sessions_in_child_(struct snd_calls_thread *t);
void                     snd_calls_sessions_ended_(struct snd_calls_thread *t);

#endif
