/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/benchmark/benchmark_lists.h - the lists of a model's benchmark: layers, operators, nodes of its graph.
 *
 * Layer: export (sees base/, format/, read/, model/). Threads: one at a time.
 */
#ifndef SND_EXPORT_BENCHMARK_BENCHMARK_LISTS_H
#define SND_EXPORT_BENCHMARK_BENCHMARK_LISTS_H

#include "export/encode/yaml_json.h"
#include "sonde/bench.h"

/* "batch_size_8" */
const char *snd_batch_key(char text[48], uint64_t size);

enum sonde_status snd_benchmark_layers(struct snd_emit *e, const struct sonde_bench *bench,
                                       struct sonde_error *err);
enum sonde_status snd_benchmark_operators(struct snd_emit *e, const struct sonde_bench *bench,
                                          struct sonde_error *err);

/* `is_asked`: the user asked for the graph; otherwise nothing is written if there is none. */
enum sonde_status snd_benchmark_graph(struct snd_emit *e, struct sonde_trace *trace, bool is_asked,
                                      struct sonde_error *err);

#endif
