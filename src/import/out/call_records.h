/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/out/call_records.h - ways of calling an operator, and what follows from where a call stands.
 *
 * A file says neither that a function runs backward nor from where in Python it was called: the first follows
 * from the engine's range around it, the second from the Python functions around it. A way of calling
 * with either is a record of its own.
 *
 * Layer: import (sees base/, format/). Threads: one at a time.
 */
#ifndef SND_IMPORT_OUT_CALL_RECORDS_H
#define SND_IMPORT_OUT_CALL_RECORDS_H

#include "import/out/trace_out.h"

struct snd_way {
    struct snd_call_record record;
    uint32_t               name_hash; /* of its name */
    uint32_t
        runs_hash; /* autograd::engine::evaluate_function: of the name of what it runs; 0: it is not that */
};

struct snd_calls {
    struct snd_trace_out *out;
    struct snd_way       *ways; /* by call id; owned */
    uint32_t              count, room;
    struct snd_map        by_text;  /* a hash of what the file says to a call */
    struct snd_map        variants; /* (call, stack, is backward) */
    uint8_t              *is_code;  /* by frame: it has a file; owned */
    uint32_t              frame_count, frame_room;
    bool                  failed;
};

void snd_calls_release(struct snd_calls *calls);

/* A new way of calling; its id, 0: memory is out. */
uint32_t snd_calls_add(struct snd_calls *calls, const struct snd_call_record *record,
                       const char *name, size_t length);
/* The same way from `stack` (0: not known), and run backward by the engine if it says so. */
uint32_t snd_calls_variant(struct snd_calls *calls, uint32_t call, uint32_t stack, bool backward);
/* Whether the range of `outer` is the engine's around a function that is called as `inner`. */
bool snd_calls_runs(const struct snd_calls *calls, uint32_t outer, uint32_t inner);

/* The frame of a Python function by torch's name for it: "file.py(3): name", "<built-in ..>". */
uint32_t snd_calls_frame(struct snd_calls *calls, const char *name, size_t length);
bool     snd_calls_is_code(const struct snd_calls *calls, uint32_t frame);

#endif
