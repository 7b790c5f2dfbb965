/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/torch_rules.h - how torch numbers the threads of a trace.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_RANGES_TORCH_RULES_H
#define SND_MODEL_RANGES_TORCH_RULES_H

#include "sonde/trace.h"

/*
 * By thread of the trace, from the metadata "torch.thread TID"; 0 where it was not told.
 * Owns: the caller frees it. NULL when memory is out.
 */
uint32_t *snd_torch_threads(const struct sonde_trace *trace);

#endif
