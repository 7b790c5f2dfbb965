/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/bench.h - what the files of sonde/bench.h share: bench.c adds up runs and passes,
 * bench_facts.c reads what the trace says of the model, its machine and its batch sizes.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_NETWORK_BENCH_H
#define SND_MODEL_NETWORK_BENCH_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "sonde/bench.h"

#define BATCHES_MAX 256u
#define SAMPLES_MAX (1u << 24)

enum part {
    PART_RUN_LAST = SONDE_BENCH_PARTS - 1,
    PART_PASS,
    PART_TRAIN,
    PART_BACKWARD,
    PART_PEAK,
    PART_NONE
};

struct label {     /* what a name of the trace means */
    uint8_t  part; /* enum sonde_bench_part, or enum part */
    uint64_t number;
};

struct samples {
    int64_t *ns;
    uint32_t count, room;
};

struct pass {             /* of one process */
    uint32_t       batch; /* plus one; 0: none is under way */
    uint8_t        part;
    double         flops, macs;
    int64_t        live_bytes, peak_bytes;
    struct snd_map blocks; /* (device, address) to a place in sizes */
    int64_t       *sizes;
    uint32_t       size_count, size_room;
};

struct sonde_bench {
    struct sonde_trace      *trace;
    struct sonde_bench_model model;
    struct sonde_bench_batch batches[BATCHES_MAX];
    struct samples           samples[BATCHES_MAX][SONDE_BENCH_PARTS];
    uint32_t                 batch_count, device_type;
    struct label            *labels; /* by name of the trace */
    struct pass             *passes; /* by process */
    struct snd_texts         texts;
    struct sonde_bench_gpu  *gpus; /* of the model's machine */
    struct snd_assembly      assembly;
};

/* The batch size, made if it is new, and its place; NULL: there are too many. */
struct sonde_bench_batch *snd_bench_find_batch(struct sonde_bench *b, uint64_t size,
                                               uint32_t *index);

/* Fills in the model and the facts of its batch sizes. Out of memory is noted in the assembly. */
void snd_bench_read_facts(struct sonde_bench *b);

#endif
