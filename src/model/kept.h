/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/kept.h - models of a trace that are lent to whoever asks for the same again: a page of many views makes each once.
 *
 *     snd_kept_begin(trace);
 *     ... models are made and freed as ever ...
 *     snd_kept_end(trace);                        frees them
 *
 * A model's "new" asks snd_kept_lend() first and hands what it made to snd_kept_add(); its "free" asks snd_kept_return().
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_KEPT_H
#define SND_MODEL_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/trace.h"

typedef void snd_kept_free_fn(void *model);

void snd_kept_begin(struct sonde_trace *trace);
/* Nothing may be on loan. */
void snd_kept_end(struct sonde_trace *trace);

/* The model that was made with the same options, freed by the same function; NULL: there is none. */
void *snd_kept_lend(const struct sonde_trace *trace, snd_kept_free_fn *free_model,
                    uint64_t options);
/* Keeps a model that was made, if models are kept; where memory is out, it is not. */
void snd_kept_add(struct sonde_trace *trace, snd_kept_free_fn *free_model, uint64_t options,
                  void *model);
/* True: the model is kept, and must not be freed. */
bool snd_kept_return(const struct sonde_trace *trace, const void *model);

#endif
