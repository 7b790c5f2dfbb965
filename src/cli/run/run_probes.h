/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_probes.h - what `sonde run` has a program record: the probes of probes/probes.def that
 * were chosen, and the environment that starts them in the program.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_PROBES_H
#define SND_CLI_RUN_RUN_PROBES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/buf.h"
#include "cli/options/options.h"

#define SND_SAMPLE_HZ_MOST 20000 /* the sampler's own limit: probes/python/sampler/sampler.c */

/*
 * The types of values. FLAG; LIST: NULL if not given; WORDS: NULL if not given, "" without words;
 * RATE: 0 if not given, -1 without a number.
 */
#define SND_PROBE_FLAG bool
#define SND_PROBE_LIST const char *
#define SND_PROBE_RATE int64_t
#define SND_PROBE_WORDS const char *

struct snd_run_probes {
#define SND_PROBE(id, option, value, ...) SND_PROBE_##value id;
#define SND_PROBE_DETAIL(id, ...) bool id;
#include "probes/probes.def"
#undef SND_PROBE
#undef SND_PROBE_DETAIL
    bool outside; /* samples are taken from outside: without a Python package, too */
    bool unasked; /* none was requested: what cannot be recorded is left out silently */
};

/* Their options in a command's table; `AT(id)` is the offset of a member of snd_run_probes. */
#define SND_PROBE_OPTION_FLAG SND_OPTION_FLAG
#define SND_PROBE_OPTION_LIST SND_OPTION_LIST
#define SND_PROBE_OPTION_RATE SND_OPTION_MAYBE
#define SND_PROBE_OPTION_WORDS SND_OPTION_WORDS

/* -1, or the exit status of a usage error: a value is out of its range. */
int snd_run_probes_check(const struct snd_command *self, const struct snd_run_probes *chosen);

/*
 * If none was asked for: the probe that `view` shows, or without one (NULL) the usual ones, as far
 * as the program has what they record.
 */
void snd_run_probes_default(struct snd_run_probes *chosen, const char *view);

/*
 * Is what `view` shows recorded? If not, `advice` gets the option that records it. Views that
 * show whatever there is always are.
 */
bool snd_run_probes_show(const struct snd_run_probes *chosen, const char *view, size_t length,
                         struct sonde_buffer *advice);

/* The same of the view that a file of another format is made from: no other view will do. */
bool snd_run_probes_make(const struct snd_run_probes *chosen, const char *view,
                         struct sonde_buffer *advice);

/* Appends the views that show what is recorded to `views`, with commas. */
void snd_run_probes_views(const struct snd_run_probes *chosen, struct sonde_buffer *views);

/* The chosen ones that `sonde run` starts itself (SND_BY_PARENT), by index; NULL past the last. */
struct snd_run_parent;
const struct snd_run_parent *snd_run_probes_parent(const struct snd_run_probes *chosen,
                                                   size_t                       index);

/*
 * Sets the environment that starts the chosen probes in the program. Returns -1, or the exit
 * status if one that was asked for cannot be started; the reason is on stderr then.
 */
int snd_run_probes_set(const struct snd_run_probes *chosen);

/* Undoes it: the program is run without recording. */
void snd_run_probes_clear(void);

#endif
