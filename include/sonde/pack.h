/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/pack.h - whole traces: verify, compact, cut a session out. model.h includes it.
 *
 * Threads: as a trace: one at a time.
 */
#ifndef SONDE_PACK_H
#define SONDE_PACK_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

struct sonde_check {
    uint64_t files, chunks, events, records;
    uint64_t damaged_chunks; /* checksum or structure wrong: read up to the damage */
    uint64_t skipped_bytes;  /* belonging to no readable chunk */
    uint64_t unknown_chunks, unknown_events;
    uint64_t damaged_headers; /* files whose header fails its checksum */
    uint64_t refused_files;   /* of a folder: cannot be opened, or of a newer version */
    bool     closed;          /* every file ended in order */
    uint64_t missing_bytes;   /* by how much closed files were longer when they were closed */
    uint64_t missing_events;  /* how many more events they had */
};
/* Reads every byte of the file or folder at `path` and verifies every checksum. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_check(const char *path, struct sonde_check *out,
                                                      struct sonde_error *err);
/*
 * Writes a compacted copy of the trace file `path` to `out_path` (a temporary file, then renamed,
 * so that `out_path` may equal `path`). Damaged parts are left out: packing also recovers. A folder
 * is packed file by file into the folder `out_path`. `level`: of zstd, 1 to 19; 0: the default;
 * -1: nothing is compressed, only space that the recording reserved and did not use is left out.
 * Errors: SONDE_E_UNSUPPORTED when built without zstd, unless -1; SONDE_E_IO; SONDE_E_FORMAT.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_pack(const char *path, const char *out_path,
                                                     int level, struct sonde_error *err);

/*
 * Writes a packed trace of a file of another tool's: JSON of torch.profiler (Kineto), Chrome or Perfetto, plain or gzip's
 * (docs/IMPORT.md). `out_path` is written aside and then renamed. `level`: as above. sonde_trace_open() reads
 * such files as they are, in the same way.
 * Errors: SONDE_E_FORMAT (no event that can be read; line and byte), SONDE_E_IO, SONDE_E_NOMEM, SONDE_E_UNSUPPORTED.
 */
SONDE_API SONDE_CHECKED enum sonde_status sonde_import(const char *path, const char *out_path,
                                                       int level, struct sonde_error *err);

/* One session's part of a trace that several share: docs/FORMAT.md, Sessions. */
struct sonde_span {
    uint64_t begin, end; /* raw clock; both are part of it */
};
struct sonde_cut {
    size_t                   struct_size; /* sizeof(struct sonde_cut), as in the INIT macro */
    uint32_t                 session;     /* whose tallies */
    bool                     samples, counters, ranges; /* events that are kept, too */
    const struct sonde_span *spans;                     /* of which times */
    size_t                   span_count;
    bool                     ended; /* closed in order, although the recording continues */
    bool                     all;   /* every event of these times, of whatever kind */
    const char *report; /* facts on tensors of this subject alone; NULL: of all subjects */
};
#define SONDE_CUT_INIT                                                                  \
    {                                                                                   \
        sizeof(struct sonde_cut), 0, false, false, false, SONDE_NULL_, 0, false, false, \
            SONDE_NULL_                                                                 \
    }
/* Writes the session's part of the trace file `path`, without its children's files, to `out_path`. */
SONDE_API SONDE_CHECKED enum sonde_status sonde_cut_session(const char *path, const char *out_path,
                                                            const struct sonde_cut *cut,
                                                            struct sonde_error     *err);

SONDE_C_END_
#endif
