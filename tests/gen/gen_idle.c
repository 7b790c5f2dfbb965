/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_idle.c - a GPU that waits for every reason there is, with times that add up by hand. */
#include <stdio.h>

#include "cases.h"
#include "format/layout.h"
#include "synth.h"

#define US UINT64_C(1000)

struct idle {
    struct synth *s;
    uint32_t      host, cupti, compute, side, work, copy, stack;
};

static void begin(const struct idle *g, uint64_t at_us, const char *name)
{
    synth_begin(g->s, g->host, at_us * US, synth_string(g->s, name), 0);
    synth_attr(g->s, g->host, SND_ATTR_SCOPE, SND_SCOPE_FUNCTION + 1);
}

static void end(const struct idle *g, uint64_t at_us)
{
    synth_end(g->s, g->host, at_us * US);
}

/* A call of CUDA's runtime. */
static void call(const struct idle *g, uint64_t from_us, uint64_t to_us, const char *name,
                 uint32_t correlation)
{
    synth_begin(g->s, g->host, from_us * US, synth_string(g->s, name), 0);
    synth_attr(g->s, g->host, SND_ATTR_API, correlation);
    end(g, to_us);
}

static void ran(const struct idle *g, uint64_t from_us, uint64_t to_us, uint32_t work,
                uint32_t queue, uint32_t correlation, uint64_t node)
{
    synth_device(g->s, g->cupti, from_us * US, work, queue, (to_us - from_us) * US, correlation,
                 node);
}

/* The host, in step 1: launches early, then late, copies beside a kernel, and waits. */
static void run_first(const struct idle *g)
{
    synth_step(g->s, g->host, 0, 1);
    begin(g, 10, "step");
    begin(g, 20, "aten::linear");
    synth_attr(g->s, g->host, SND_ATTR_MODULE, synth_string(g->s, "Net.fc|Linear"));
    synth_attr(g->s, g->host, SND_ATTR_STACK, g->stack);
    synth_attr(g->s, g->host, SND_ATTR_SHAPES, synth_shapes(g->s, "8,16;16,4"));
    call(g, 22, 24, "cudaLaunchKernel", 1);
    call(g, 26, 28, "cudaLaunchKernel", 2);
    end(g, 40);
    begin(g, 70, "aten::index");
    end(g, 118);
    begin(g, 118, "aten::mm");
    call(g, 120, 122, "cudaLaunchKernel", 3);
    end(g, 126);
    begin(g, 127, "aten::copy_");
    call(g, 130, 132, "cudaMemcpyAsync", 4);
    call(g, 134, 136, "cudaLaunchKernel", 5);
    end(g, 139);
    begin(g, 149, "aten::item");
    call(g, 150, 198, "cudaStreamSynchronize", 6);
    end(g, 200);
    begin(g, 208, "aten::add");
    call(g, 210, 212, "cudaLaunchKernel", 7);
    end(g, 214);
    end(g, 480);
}

/* In step 2: a graph, and a copy of memory that is not pinned, for which the host waits. */
static void run_second(const struct idle *g)
{
    synth_step(g->s, g->host, 500 * US, 2);
    begin(g, 515, "replay");
    call(g, 520, 524, "cudaGraphLaunch", 8);
    end(g, 530);
    begin(g, 553, "aten::copy_");
    call(g, 555, 600, "cudaMemcpyAsync", 9);
    end(g, 602);
    begin(g, 603, "aten::relu");
    call(g, 604, 606, "cudaLaunchKernel", 10);
    end(g, 607);
    begin(g, 640, "aten::size"); /* the recording ends at 650 */
    end(g, 650);
}

static void run_device(const struct idle *g)
{
    ran(g, 30, 60, g->work, g->compute, 1, 0);
    ran(g, 64, 80, g->work, g->compute, 2, 0);
    ran(g, 126, 140, g->work, g->compute, 3, 0);
    ran(g, 145, 195, g->copy, g->side, 4, 0);
    ran(g, 165, 175, g->work, g->compute, 5, 0);
    ran(g, 215, 235, g->work, g->compute, 7, 0);
    ran(g, 240, 250, g->work, g->compute, 99, 0); /* launched before the recording */
    ran(g, 540, 550, g->work, g->compute, 8, 11);
    ran(g, 552, 560, g->work, g->compute, 8, 12);
    ran(g, 562, 598, g->copy, g->compute, 9, 0);
    ran(g, 610, 620, g->work, g->compute, 10, 0);
}

void make_gpu_idle(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    struct idle   g = { .s = s };

    (void)n;
    g.host = synth_thread(s, "python", 0);
    g.cupti = synth_thread(s, "cupti", 0);
    g.compute = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    g.side = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 13, 0 });
    g.work = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "gemm"),
                                                      .kind = SND_WORK_KERNEL,
                                                      .grid = { 4, 2, 1 },
                                                      .block = { 32, 4, 1 },
                                                      .registers = 40,
                                                      .shared_dynamic = 1024 });
    g.copy = synth_work(s, &(struct snd_work_record){
                               .name = synth_string(s, "Memcpy HtoD (Pageable -> Device)"),
                               .kind = SND_WORK_COPY,
                               .copy_kind = 1,
                               .source_kind = 1,
                               .target_kind = 3,
                               .bytes = 86000 });
    g.stack = synth_stack(s, synth_stack(s, 0, python_frame(s, "train", 30, "train.py", 41)),
                          python_frame(s, "forward", 10, "net.py", 12));
    run_first(&g);
    run_second(&g);
    run_device(&g);
    synth_close(s, true);
}

/* 300 operators, the GPU waits 2 ms for each of the first 12 and 1 us for each of the others; 25 steps. */
void make_gpu_minor(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    struct idle   g = { .s = s };
    uint64_t      at = 0;
    char          name[32];

    (void)n;
    g.host = synth_thread(s, "python", 0);
    g.cupti = synth_thread(s, "cupti", 0);
    g.compute = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    g.work = synth_work(s, &(struct snd_work_record){ .name = synth_string(s, "gemm"),
                                                      .kind = SND_WORK_KERNEL });
    for (uint32_t i = 0; i < 300; i++) {
        if (i % 12 == 0)
            synth_step(s, g.host, at * US, i / 12);
        snprintf(name, sizeof name, "aten::op%03u", (unsigned)i);
        begin(&g, at, name);
        at += i < 12 ? 2000 : 1;
        call(&g, at, at, "cudaLaunchKernel", i + 1);
        end(&g, at);
        ran(&g, at, at + 20, g.work, g.compute, i + 1, 0);
        at += 20;
    }
    synth_close(s, true);
}

/* What torch's allocator tells of a GPU: 1000 bytes from before, of which 300 are freed. */
void make_gpu_memory(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    struct idle   g = { .s = s, .host = synth_thread(s, "python", 0) };
    uint32_t      allocated = synth_string(s, "device.allocated cuda:0");
    uint32_t      reserved = synth_string(s, "device.reserved cuda:0"), t = g.host;

    (void)n;
    g.stack = synth_stack(s, synth_stack(s, 0, python_frame(s, "train", 30, "train.py", 41)),
                          python_frame(s, "forward", 10, "net.py", 12));
    synth_meta(s, "torch.thread 4242", "1");
    begin(&g, 10, "aten::linear");
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "Net.fc|Linear"));
    synth_attr(s, t, SND_ATTR_STACK, g.stack);
    begin(&g, 11, "aten::addmm");
    synth_alloc(s, t, 12 * US, CUDA0, 0x1000, 512);
    synth_counter(s, t, 12 * US, allocated, 1512); /* so that 1000 were in use before */
    synth_counter(s, t, 12 * US, reserved, 4096);
    call(&g, 13, 15, "cudaMalloc", 1);
    synth_alloc(s, t, 16 * US, CUDA0, 0x2000, 2048);
    synth_counter(s, t, 16 * US, reserved, 8192);
    end(&g, 18);
    end(&g, 19);
    synth_free(s, t, 20 * US, CUDA0, 0x1, 300); /* of before */
    synth_free(s, t, 22 * US, CUDA0, 0x2000, 2048);
    begin(&g, 30, "MmBackward0");
    synth_attr(s, t, SND_ATTR_SCOPE, SND_SCOPE_BACKWARD + 1);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
    begin(&g, 31, "aten::mm");
    synth_alloc(s, t, 32 * US, CUDA0, 0x3000,
                2300); /* more than ever in the trace, but not in use */
    end(&g, 33);
    end(&g, 34);
    synth_alloc(s, t, 40 * US, CPU, 0x10, 64);
    synth_counter(s, t, 41 * US, reserved, 16384); /* the most, later */
    synth_close(s, true);
}

void make_gpu_lost(const char *path, uint64_t n)
{
    const uint64_t words[SND_GPU_WORDS] = {
        [SND_GPU_RECORDS] = 9, [SND_GPU_DROPPED] = 4, [SND_GPU_UNKNOWN] = 1,
        [SND_GPU_BUFFERS] = 2, [SND_GPU_EARLY] = 3,   [SND_GPU_EARLY_NS] = 1250,
        [SND_GPU_UNASKED] = 2
    };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "python", 0);

    (void)n;
    synth_begin(s, t, 1 * US, synth_string(s, "step"), 0);
    synth_end(s, t, 2 * US);
    synth_tally(s, SND_TALLY_GPU, 0, 0, words, SND_GPU_WORDS);
    synth_close(s, true);
}

void make_gpu_absent(const char *path, uint64_t n)
{
    struct synth                *s = synth_new(path, NULL);
    uint32_t                     t = synth_thread(s, "python", 0);
    const struct snd_fact_member cuda[] = {
        { SND_FIELD_CUDA_ABSENT, SND_FACT_TEXT,
          synth_string(s, "CUPTI refused: the user may not read the GPU's counters"), 0 },
    };

    (void)n;
    synth_begin(s, t, 1 * US, synth_string(s, "step"), 0);
    synth_end(s, t, 2 * US);
    synth_fact(s, SND_FACT_OF_CUDA, 0, 0, cuda, 1);
    synth_close(s, true);
}
