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

struct snd_run_probes {
    bool        ops, shapes, memory, modules, stacks; /* PyTorch's */
    bool        functions, timeline, python_only;
    const char *lines, *line_memory; /* names of functions, with commas; NULL: not asked for */
    int64_t     sample;              /* a second; 0: not asked for, -1: as often as is usual */
    bool        native;              /* samples with native frames */
};

/*
 * Has the Python processes load the probes that were asked for, or the operators if none was: a
 * program that has none is not disturbed. Appends the views that show them to `views`, with
 * commas. -1, or an exit status when what was asked for cannot be had.
 */
int snd_run_probes_set(const struct snd_run_probes *chosen, struct sonde_buffer *views);

#endif
