/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/host_clocks.h - the times of a job's hosts on one axis.
 *
 * Processes of one machine share a clock. Where a trace has several, the collectives that they met in tell how far their clocks are
 * apart (clocks.h), and the axes of their processes are bent so that all times are the reference host's. All that walk the trace from
 * then on, and whoever asks when a process began, see those times.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_RANKS_HOST_CLOCKS_H
#define SND_MODEL_RANKS_HOST_CLOCKS_H

#include "read/reader.h"

struct snd_host_clocks {
    uint32_t  hosts;      /* machines, by their boot, or by name where that is not told */
    uint32_t  aligned;    /* of those, whose offset is known; the reference is one of them */
    uint32_t  reference;  /* a process of that host */
    int64_t   error_ns;   /* the greatest of the hosts that are aligned */
    int64_t   claimed_ns; /* by which the kernels say that their clocks are off at most; -1 */
    uint32_t *host_of;    /* of each process */
    int64_t  *errors_ns;  /* of each host; -1: not aligned */
};

/*
 * Aligns them, once; then nothing is done. A trace of one host, or without collectives, is not walked. Whoever shows times of several
 * ranks calls this before anything of the trace is looked at.
 * Errors: as snd_collectives_walk().
 */
SND_CHECKED enum sonde_status snd_host_clocks_align(struct sonde_trace *trace,
                                                    struct sonde_error *err);

/* By how much times of two processes may be apart that look like one; 0: it is one clock, or nothing is known. */
int64_t snd_host_clocks_error(const struct sonde_trace *trace, uint32_t process, uint32_t other);

#endif
