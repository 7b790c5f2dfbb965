/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/spread.h - how a series of times is spread.
 *
 * Layer: model. Threads: no state.
 */
#ifndef SND_MODEL_SPREAD_H
#define SND_MODEL_SPREAD_H

#include "sonde/layers.h"

/* Sorts `ns` in place. Of nothing, all is 0. */
void snd_spread(int64_t *ns, size_t count, struct sonde_spread *out);

#endif
