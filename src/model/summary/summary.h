/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/summary/summary.h - a summary that needs no walk of its own.
 *
 *     snd_summary_begin(trace, &summary, err);   it is a consumer of the next walk of a model
 *     ... a model of the trace is made ...
 *     snd_summary_finish(summary, false, err);   walks only if no model did
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_SUMMARY_SUMMARY_H
#define SND_MODEL_SUMMARY_SUMMARY_H

#include <stdbool.h>

#include "base/error.h"
#include "sonde/model.h"

/*
 * Owns: the caller, until sonde_summary_free(), before the trace is closed. Until the summary is
 * finished only that may be done with it. Errors: SONDE_E_NOMEM.
 */
SND_CHECKED enum sonde_status
snd_summary_begin(struct sonde_trace *trace, struct sonde_summary **out, struct sonde_error *err);
/* `steps`: with the ranges and the GPU's time of each step, which takes one more walk if there are steps. */
SND_CHECKED enum sonde_status snd_summary_finish(struct sonde_summary *summary, bool steps,
                                                 struct sonde_error *err);
/* Ranges of steps, and so which steps are whole: a walk, unless it was made. */
SND_CHECKED enum sonde_status snd_summary_count_steps(struct sonde_summary *summary,
                                                      struct sonde_error   *err);

/* The steps of a finished summary, for a caller that counts their ranges on a walk of its own. */
struct snd_steps *snd_summary_steps(struct sonde_summary *summary);

/*
 * Until the caller frees it, whoever asks for a summary of the trace is lent this one, which is finished,
 * with steps: a page of many views needs but one.
 */
void snd_summary_share(struct sonde_summary *summary);

#endif
