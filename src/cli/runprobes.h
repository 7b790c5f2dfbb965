/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/runprobes.h - what `sonde run` has a Python program record, told through its environment.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUNPROBES_H
#define SND_CLI_RUNPROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define SND_SAMPLE_HZ_MOST 20000 /* the sampler's own limit: probes/python/sampler.c */

struct snd_run_probes {
    bool        ops, shapes, memory, modules, stacks; /* PyTorch's */
    bool        functions, timeline, python_only;
    const char *lines, *line_memory; /* names of functions, with commas; NULL: not asked for */
    int64_t     sample;              /* a second; 0: not asked for, -1: as often as is usual */
    bool        native;              /* samples with native frames */
    bool        unasked;             /* what cannot be recorded is left out without a word */
};

/*
 * If none was asked for: what `view` shows, or without one (NULL) operators and samples, as far as
 * the program has them.
 */
void snd_run_probes_default(struct snd_run_probes *chosen, const char *view);

/*
 * Has the Python processes load these probes. Appends the views that show them to `views`, with
 * commas. -1, or an exit status when what was asked for cannot be had.
 */
int snd_run_probes_set(const struct snd_run_probes *chosen, struct sonde_buffer *views);

#endif
