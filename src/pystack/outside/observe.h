/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/outside/observe.h - samples another process into a trace, from outside.
 *
 * Nothing is put into that process. A thread that runs is halted for some microseconds where looks
 * at its stack do not agree, unless that is not wanted (halt.h). The trace is the recorder's, loaded
 * from its shared library when it is needed: this program reads traces, and links no recorder.
 *
 * Layer:   pystack. Threads: one; a process observes one other.
 */
#ifndef SND_PYSTACK_OUTSIDE_OBSERVE_H
#define SND_PYSTACK_OUTSIDE_OBSERVE_H

#include "pystack/outside/locate.h"

struct snd_observation {
    pid_t               pid;
    const char         *path; /* of the trace: a file, or a folder ending in '/' */
    uint64_t            period_ns;
    bool                nonblocking; /* no thread is halted: what changes meanwhile is left out */
    const volatile int *quit;        /* not 0: end */
};

/*
 * Samples until the process ends, becomes another program, or *quit.
 * Errors: as snd_python_find(); SONDE_E_IO: the trace; SONDE_E_UNSUPPORTED: no recorder.
 */
SND_CHECKED enum sonde_status snd_observe(const struct snd_observation *observation,
                                          struct sonde_error           *err);

/* Is the recorder there? Errors: SONDE_E_UNSUPPORTED, with where it was looked for. */
SND_CHECKED enum sonde_status snd_observe_check(struct sonde_error *err);

#endif
