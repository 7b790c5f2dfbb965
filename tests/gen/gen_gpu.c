/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_gpu.c - traces of programs that use a GPU. */
#include <string.h>

#include "cases.h"
#include "format/layout.h"
#include "synth.h"

#define US UINT64_C(1000)

struct gpu {
    struct synth *s;
    uint32_t      host, cupti;                                  /* threads */
    uint32_t      compute, side;                                /* queues */
    uint32_t      gemm, relu, copy_in, copy_out, fill, buffers; /* works */
};

static uint32_t kernel(struct synth *s, const char *name, uint32_t grid, uint32_t block,
                       uint32_t registers, uint32_t shared)
{
    return synth_work(s, &(struct snd_work_record){ .name = synth_string(s, name),
                                                    .kind = SND_WORK_KERNEL,
                                                    .grid = { grid, 1, 1 },
                                                    .block = { block, 1, 1 },
                                                    .registers = registers,
                                                    .shared_static = shared });
}

static uint32_t copy(struct synth *s, const char *name, uint32_t kind, uint32_t source,
                     uint32_t target, uint64_t bytes)
{
    return synth_work(s, &(struct snd_work_record){ .name = synth_string(s, name),
                                                    .kind = SND_WORK_COPY,
                                                    .copy_kind = kind,
                                                    .source_kind = source,
                                                    .target_kind = target,
                                                    .bytes = bytes });
}

static void describe(struct synth *s)
{
    const struct snd_fact_member device[] = {
        { SND_FIELD_DEVICE_NAME, SND_FACT_TEXT, synth_string(s, "NVIDIA H200"), 0 },
        { SND_FIELD_DEVICE_MEMORY_BYTES, SND_FACT_NUMBER, 0, UINT64_C(150109880320) },
        { SND_FIELD_DEVICE_CAPABILITY_MAJOR, SND_FACT_NUMBER, 0, 9 },
        { SND_FIELD_DEVICE_CAPABILITY_MINOR, SND_FACT_NUMBER, 0, 0 },
        { SND_FIELD_DEVICE_SMS, SND_FACT_NUMBER, 0, 132 },
        { SND_FIELD_DEVICE_CLOCK_KHZ, SND_FACT_NUMBER, 0, 1980000 },
        { SND_FIELD_DEVICE_WARP, SND_FACT_NUMBER, 0, 32 },
        { SND_FIELD_DEVICE_THREADS_PER_SM, SND_FACT_NUMBER, 0, 2048 },
        { SND_FIELD_DEVICE_THREADS_PER_BLOCK, SND_FACT_NUMBER, 0, 1024 },
        { SND_FIELD_DEVICE_REGISTERS_PER_SM, SND_FACT_NUMBER, 0, 65536 },
        { SND_FIELD_DEVICE_REGISTERS_PER_BLOCK, SND_FACT_NUMBER, 0, 65536 },
        { SND_FIELD_DEVICE_SHARED_PER_SM, SND_FACT_NUMBER, 0, 233472 },
        { SND_FIELD_DEVICE_SHARED_PER_BLOCK, SND_FACT_NUMBER, 0, 49152 },
        { SND_FIELD_DEVICE_SHARED_PER_BLOCK_OPTIN, SND_FACT_NUMBER, 0, 232448 },
        { SND_FIELD_DEVICE_BLOCKS_PER_SM, SND_FACT_NUMBER, 0, 32 },
        { SND_FIELD_DEVICE_SHARED_RESERVED, SND_FACT_NUMBER, 0, 1024 },
    };
    const struct snd_fact_member cuda[] = {
        { SND_FIELD_CUDA_DRIVER_VERSION, SND_FACT_NUMBER, 0, 13000 },
        { SND_FIELD_CUDA_RUNTIME_VERSION, SND_FACT_NUMBER, 0, 13000 },
        { SND_FIELD_CUDA_CUPTI_VERSION, SND_FACT_NUMBER, 0, 130000 },
    };

    synth_fact(s, SND_FACT_OF_DEVICE, 0, 1, device, sizeof device / sizeof device[0]);
    synth_fact(s, SND_FACT_OF_CUDA, 0, 0, cuda, sizeof cuda / sizeof cuda[0]);
}

static void begin(struct gpu *g, uint64_t at_us, const char *name, uint32_t scope)
{
    synth_begin(g->s, g->host, at_us * US, synth_string(g->s, name), 0);
    if (scope != 0)
        synth_attr(g->s, g->host, SND_ATTR_SCOPE, scope);
}

static void end(struct gpu *g, uint64_t at_us)
{
    synth_end(g->s, g->host, at_us * US);
}

/* A call of CUDA's runtime, of 2 us. */
static void call(struct gpu *g, uint64_t at_us, const char *name, uint32_t number,
                 uint32_t correlation)
{
    begin(g, at_us, name, 0);
    synth_attr(g->s, g->host, SND_ATTR_API, (uint64_t)number << 32 | correlation);
    end(g, at_us + 2);
}

static void ran(struct gpu *g, uint64_t at_us, uint64_t us, uint32_t work, uint32_t queue,
                uint32_t correlation, uint64_t node)
{
    synth_device(g->s, g->cupti, at_us * US, work, queue, us * US, correlation, node);
}

/* A copy to the GPU, a product and what follows it; 100 us later the same as a graph. */
static void run_step(struct gpu *g, uint64_t at, uint32_t first)
{
    begin(g, at, "step", SND_SCOPE_USER + 1);
    begin(g, at + 2, "aten::to", SND_SCOPE_FUNCTION + 1);
    begin(g, at + 3, "aten::copy_", SND_SCOPE_FUNCTION + 1);
    call(g, at + 4, "cudaMemcpyAsync", 41, first);
    end(g, at + 8);
    end(g, at + 9);
    begin(g, at + 10, "aten::linear", SND_SCOPE_FUNCTION + 1);
    begin(g, at + 11, "aten::addmm", SND_SCOPE_FUNCTION + 1);
    call(g, at + 12, "cudaLaunchKernel", 211, first + 1);
    end(g, at + 16);
    call(g, at + 17, "cudaLaunchKernel", 211, first + 2);
    end(g, at + 20);
    end(g, at + 22);
    call(g, at + 24, "cudaGraphLaunch", 311, first + 3);
    begin(g, at + 30, "aten::item", SND_SCOPE_FUNCTION + 1);
    call(g, at + 31, "cudaMemcpyAsync", 41, first + 4);
    begin(g, at + 34, "cudaStreamSynchronize", 0);
    synth_attr(g->s, g->host, SND_ATTR_API, (uint64_t)131 << 32 | (first + 5));
    end(g, at + 90);
    end(g, at + 91);
}

static void run_device(struct gpu *g, uint64_t at, uint32_t first)
{
    ran(g, at + 10, 5, g->copy_in, g->compute, first, 0);
    ran(g, at + 18, 20, g->gemm, g->compute, first + 1, 0);
    ran(g, at + 38, 4, g->relu, g->compute, first + 2, 0);
    ran(g, at + 45, 20, g->gemm, g->compute, first + 3, 4294967297);
    ran(g, at + 46, 6, g->fill, g->side, first + 3, 4294967298);
    ran(g, at + 70, 4, g->relu, g->compute, first + 3, 4294967299);
    ran(g, at + 80, 3, g->copy_out, g->compute, first + 4, 0);
}

static void write_steps(const char *path, uint32_t steps)
{
    struct synth *s = synth_new(path, NULL);
    struct gpu    g = { .s = s };

    describe(s);
    g.host = synth_thread(s, "python", 0);
    g.cupti = synth_thread(s, "cupti", 0);
    g.compute = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    g.side = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 13, 0 });
    g.gemm = kernel(s, "ampere_sgemm_128x64_tn", 64, 128, 122, 16384);
    g.relu = kernel(s, "void at::native::vectorized_elementwise_kernel<4>(int, float*)", 256, 128,
                    16, 0);
    g.copy_in = copy(s, "Memcpy HtoD (Pinned -> Device)", 1, 2, 3, 1 << 20);
    g.copy_out = copy(s, "Memcpy DtoH (Device -> Pageable)", 2, 3, 1, 4);
    g.fill = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "Memset (Device)"),
                                                      .kind = SND_WORK_FILL,
                                                      .target_kind = 3,
                                                      .bytes = 4096 });
    g.buffers =
        synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "Activity Buffer Request"),
                                                 .kind = SND_WORK_OVERHEAD });
    for (uint32_t i = 0; i < steps; i++)
        run_step(&g, 1000 + i * 100, 1 + i * 10);
    /* Written afterwards, and not in order. */
    ran(&g, 1001, 2, g.buffers, 0, 0, 0);
    for (uint32_t i = steps; i-- > 0;)
        run_device(&g, 1000 + i * 100, 1 + i * 10);
    const uint64_t words[SND_GPU_WORDS] = {
        [SND_GPU_RECORDS] = 1 + 7 * (uint64_t)steps, [SND_GPU_BUFFERS] = 1
    };
    synth_tally(s, SND_TALLY_GPU, 0, 0, words, SND_GPU_WORDS);
    synth_close(s, true);
}

void make_gpu(const char *path, uint64_t n)
{
    (void)n;
    write_steps(path, 2);
}

void make_gpu_large(const char *path, uint64_t n)
{
    write_steps(path, (uint32_t)n);
}

/* Nodes of one graph in one stream: the second begins in the first and outlasts it, the third is all in the second. */
void make_gpu_overlap(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    struct gpu    g = { .s = s };

    (void)n;
    describe(s);
    g.host = synth_thread(s, "python", 0);
    g.cupti = synth_thread(s, "cupti", 0);
    g.compute = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    g.gemm = kernel(s, "gemm", 64, 128, 122, 16384);
    g.relu = kernel(s, "relu", 256, 128, 16, 0);
    g.fill = kernel(s, "fill", 16, 128, 16, 0);
    call(&g, 1000, "cudaGraphLaunch", 311, 1);
    ran(&g, 1010, 20, g.gemm, g.compute, 1, 4294967297);
    ran(&g, 1020, 30, g.relu, g.compute, 1, 4294967298);
    ran(&g, 1030, 5, g.fill, g.compute, 1, 4294967299);
    ran(&g, 1060, 5, g.fill, g.compute, 1, 0); /* once in a graph, once not */
    synth_close(s, true);
}
