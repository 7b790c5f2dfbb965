/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/bench_passes.h - the passes that a benchmark of a model marks (docs/MODEL.md).
 *
 * Layer: model. Threads: no state.
 */
#ifndef SND_MODEL_NETWORK_BENCH_PASSES_H
#define SND_MODEL_NETWORK_BENCH_PASSES_H

#include <stdbool.h>

/* Whether a range of this name is a pass with operators. */
bool snd_is_pass(const char *name);

#endif
