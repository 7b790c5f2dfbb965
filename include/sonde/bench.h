/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/bench.h - what a model costs as a whole, as `sonde model` recorded it.
 *
 * A benchmark is a trace: a folder with one file for each batch size's timed runs, in which
 * nothing but the runs is marked, and one for each batch size's passes with operators. Its
 * ranges and facts are named in docs/MODEL.md. Spreads, sums and peaks are
 * computed here, from the samples and allocations in the trace.
 *
 * Threads: as a trace.
 */
#ifndef SONDE_BENCH_H
#define SONDE_BENCH_H

#include "sonde/layers.h"

SONDE_C_BEGIN_

/* The parts of a timed run. A model on the CPU has only the first. */
enum sonde_bench_part {
    SONDE_BENCH_ON_DEVICE, /* the forward pass, until it is complete */
    SONDE_BENCH_TO_DEVICE, /* copying the inputs */
    SONDE_BENCH_TO_HOST,   /* copying the outputs */
    SONDE_BENCH_TOTAL,     /* all three */
    SONDE_BENCH_GPU,       /* the forward pass on the GPU alone, between two events of its stream */
    SONDE_BENCH_PARTS
};

struct sonde_bench_time {
    struct sonde_spread spread;   /* count 0: not measured */
    double              sigma_ns; /* deviation of all the runs (n), not of a sample of them */
    double              rate_mean, rate_sigma, rate_min, rate_max; /* runs per second */
};

struct sonde_bench_batch {
    uint64_t                size;
    struct sonde_bench_time time[SONDE_BENCH_PARTS];
    /* Of one pass with operators recorded; 0 passes: none was. */
    uint64_t passes, backward_passes;
    double   macs, flops, backward_macs, backward_flops;
    int64_t  input_bytes, before_bytes;    /* -1: unknown; before: parameters, buffers, inputs */
    int64_t  peak_bytes;                   /* peak of what a forward pass allocated */
    int64_t  held_bytes;                   /* of that, live at its end */
    int64_t  backward_peak_bytes;          /* forward and backward pass together */
    double   joules;                       /* of one run; NaN: unknown */
    struct sonde_text input, input_source; /* "ids 1x128 int64", its source; "": unknown */
    const char *path, *train_path; /* files of its forward and of its training passes; NULL: none */
};

struct sonde_bench_gpu {
    struct sonde_text name;
    int64_t           memory_bytes; /* -1: unknown */
};

struct sonde_bench_machine {
    bool                          is_known;
    struct sonde_text             system, node, release; /* "": unknown */
    struct sonde_text             cpu, architecture;     /* likewise */
    int64_t                       cores, cpus;           /* physical, logical; -1: unknown */
    double                        hertz;                 /* 0: unknown */
    int64_t                       memory_bytes, used_bytes, available_bytes; /* -1: unknown */
    size_t                        gpu_count;
    const struct sonde_bench_gpu *gpus;
};

struct sonde_bench_model {
    struct sonde_text          name, kind, device, dtype; /* "": unknown */
    struct sonde_bench_machine machine;
    struct sonde_text          energy;  /* the source of the energy, or why it is unknown */
    struct sonde_text          failure; /* one line; "": none */
    int64_t parameters, trainable, parameter_bytes, buffer_bytes; /* -1: unknown */
    double  peak_flops; /* per second, best of the timed matrix products; 0: none */
};

struct sonde_bench; /* opaque */
/* Owns: the caller, until sonde_bench_free(); its texts are valid until then. */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_bench_new(struct sonde_trace *trace, struct sonde_bench **out, struct sonde_error *err);
SONDE_API void                            sonde_bench_free(struct sonde_bench *bench);
SONDE_API const struct sonde_bench_model *sonde_bench_model(const struct sonde_bench *bench);
/* Batch sizes, smallest first. */
SONDE_API size_t                          sonde_bench_count(const struct sonde_bench *bench);
SONDE_API const struct sonde_bench_batch *sonde_bench_batch(const struct sonde_bench *bench,
                                                            size_t                    index);

SONDE_C_END_
#endif
