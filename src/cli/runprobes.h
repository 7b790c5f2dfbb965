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
 * Is what `view` shows recorded? If not, `advice` is the option that has it recorded. Views that
 * show whatever there is always are.
 */
bool snd_run_probes_show(const struct snd_run_probes *chosen, const char *view, size_t length,
                         const char **advice);

/* The same of the view that a file of another format is made of: that alone will do. */
bool snd_run_probes_make(const struct snd_run_probes *chosen, const char *view,
                         const char **advice);

/* Appends the views that show what is recorded to `views`, with commas. */
void snd_run_probes_views(const struct snd_run_probes *chosen, struct sonde_buffer *views);

/*
 * Has the Python processes load these probes. -1, or an exit status when what was asked for cannot be had.
 */
int snd_run_probes_set(const struct snd_run_probes *chosen);

#endif
