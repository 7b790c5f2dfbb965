/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/roof.h - what a machine can do at most, as it was measured: the roof of the roofline view.
 *
 * A trace has it as metadata (machine.roof), where who recorded it asked for it.
 *
 * Layer: model. Threads: any.
 */
#ifndef SND_MODEL_NETWORK_ROOF_H
#define SND_MODEL_NETWORK_ROOF_H

#include "sonde/model.h"

/* Of the first process that has it; false: the trace has none that can be read. */
bool snd_roof_find(const struct sonde_trace *trace, struct sonde_roof *roof);

#endif
