/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_order.h - trees of samples whose stacks are all in: sums, and the order they are shown in.
 *
 * Layer: model. Threads: any, on data of their own.
 */
#ifndef SND_MODEL_SAMPLES_SAMPLE_ORDER_H
#define SND_MODEL_SAMPLES_SAMPLE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/model.h"

/*
 * Adds each node to its parent, whose number is lower, and puts the children of each in order, the
 * longest first. Node 0 is none. False: out of memory.
 */
bool snd_sample_nodes_settle(struct sonde_sample_node *nodes, uint32_t count);
/* By process, its main thread first. False: out of memory. */
bool snd_sample_threads_sort(struct sonde_sample_thread *threads, uint32_t count,
                             const struct sonde_trace *trace);

#endif
