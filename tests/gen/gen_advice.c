/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_advice.c - a program on a GPU that keeps it busy, and what can be wrong with it, a bit of N each. */
#include "cases.h"
#include "format/layout.h"
#include "synth.h"

#define US UINT64_C(1000)
#define PERIOD 1000 /* of a step, in us */
#define STEPS 20
#define MB (UINT64_C(1) << 20)

enum {
    ITEM = 1,           /* reads the loss in each step */
    SYNCHRONISE = 2,    /* waits for the GPU in each step */
    HOST_LATE = 4,      /* prepares the next batch while the GPU has nothing to do */
    TINY = 8,           /* 40 kernels of 3 us in a step */
    PAGEABLE_COPY = 16, /* from memory that is not pinned */
    FLOAT_PRODUCT = 32, /* products without tensor cores */
    SLOW_STEPS = 64,    /* two steps take three times as long, in aten::sort */
    COMPILES = 128,     /* torch.compile compiles in six steps */
    LOADS_ALONE = 256,  /* a DataLoader without workers */
    LOADS_LATE = 512,   /* one with workers that are too slow */
    HOLDS = 1024,       /* one module has most of the peak */
    FRAGMENTS = 2048,   /* the allocator holds far more than is in use */
    ENDS_LATE = 4096,   /* long after its last step: no fault of a step */
};

struct program {
    struct synth *s;
    uint64_t      faults;
    uint32_t      host, cupti, compute, product, small, copy, correlation;
    uint32_t      line;        /* the line that begins a range now */
    uint32_t      stacks[100]; /* of each line; 0: not made yet */
};

static uint32_t stack_of(struct program *p)
{
    if (p->stacks[p->line] == 0)
        p->stacks[p->line] = synth_stack(
            p->s, synth_stack(p->s, 0, python_frame(p->s, "main", 5, "/home/me/train.py", 90)),
            python_frame(p->s, "step", 30, "/home/me/train.py", p->line));
    return p->stacks[p->line];
}

static void begin(struct program *p, uint64_t at_us, const char *name)
{
    synth_begin(p->s, p->host, at_us * US, synth_string(p->s, name), 0);
    synth_attr(p->s, p->host, SND_ATTR_SCOPE, SND_SCOPE_FUNCTION + 1);
    synth_attr(p->s, p->host, SND_ATTR_STACK, stack_of(p));
}

static void end(const struct program *p, uint64_t at_us)
{
    synth_end(p->s, p->host, at_us * US);
}

static void range(struct program *p, uint64_t from_us, uint64_t to_us, const char *name,
                  uint32_t line)
{
    p->line = line;
    begin(p, from_us, name);
    end(p, to_us);
}

/* A call of CUDA's runtime. */
static uint32_t call(struct program *p, uint64_t from_us, uint64_t to_us, const char *name,
                     uint32_t number)
{
    synth_begin(p->s, p->host, from_us * US, synth_string(p->s, name), 0);
    synth_attr(p->s, p->host, SND_ATTR_API, (uint64_t)number << 32 | ++p->correlation);
    end(p, to_us);
    return p->correlation;
}

/* A kernel that is asked for at `from_us` and runs later. */
static void run(struct program *p, uint64_t from_us, uint64_t at_us, uint64_t us, uint32_t work,
                const char *name, uint32_t line)
{
    p->line = line;
    begin(p, from_us, name);
    uint32_t correlation = call(p, from_us, from_us + 1, "cudaLaunchKernel", 211);
    end(p, from_us + 1);
    synth_device(p->s, p->cupti, at_us * US, work, p->compute, us * US, correlation, 0);
}

/* Waits for the GPU, in a range. */
static void wait_for_gpu(struct program *p, uint64_t from_us, uint64_t to_us, const char *name,
                         const char *function, uint32_t number, uint32_t line)
{
    p->line = line;
    begin(p, from_us, name);
    call(p, from_us + 1, to_us - 1, function, number);
    end(p, to_us);
}

/* The host is half a step ahead, unless something holds it up; the GPU has no gap. */
static void run_step(struct program *p, uint64_t at, uint64_t number)
{
    bool     late = p->faults & (ITEM | SYNCHRONISE | HOST_LATE | TINY);
    uint64_t host = late ? at : at - PERIOD / 2;
    bool     slow = (p->faults & SLOW_STEPS) && (number == 7 || number == 13);

    synth_step(p->s, p->host, host * US, number);
    if (p->faults & LOADS_ALONE)
        range(p, host + 1, host + 200,
              "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 33);
    if (p->faults & LOADS_LATE)
        range(p, host + 1, host + 200,
              "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 33);
    if ((p->faults & COMPILES) && number < 6)
        range(p, host + 200, host + 700, "_compile.compile_inner (dynamo_timed)", 34);
    if (slow)
        range(p, host + 701, host + 2700, "aten::sort", 77);
    if (p->faults & TINY) {
        for (uint64_t i = 0; i < 40; i++)
            run(p, at + 20 * i, at + 20 * i + 3, 3, p->small, "aten::add_", 61);
        return;
    }
    p->line = 41;
    begin(p, host + 710, "aten::copy_");
    uint32_t correlation = call(p, host + 711, host + 712, "cudaMemcpyAsync", 41);
    end(p, host + 713);
    synth_device(p->s, p->cupti, (at + 714) * US, p->copy, p->compute, 30 * US, correlation, 0);
    for (uint64_t i = 0; i < 5; i++)
        run(p, host + 714 + 3 * i, at + 744 + (late ? 100 : 140) * i, late ? 100 : 140, p->product,
            "aten::addmm", 52);
    run(p, host + 730, at + 744 + (late ? 500 : 700), late ? 100 : 270, p->small, "aten::relu", 53);
}

/* What holds the host up, from the middle of a step's work on the GPU to the next step. */
static void hold_up(struct program *p, uint64_t at)
{
    if (p->faults & ITEM)
        wait_for_gpu(p, at + 25, at + 990, "aten::item", "cudaStreamSynchronize", 131, 66);
    if (p->faults & SYNCHRONISE)
        wait_for_gpu(p, at + 25, at + 990, "report", "cudaDeviceSynchronize", 165, 67);
    if (p->faults & HOST_LATE)
        range(p, at + 25, at + 990, "augment", 68);
}

/* What torch's allocator has: four modules, of which one may have more than the others together. */
static void hold_memory(struct program *p)
{
    uint32_t    t = p->host, reserved = synth_string(p->s, "device.reserved cuda:0");
    const char *modules[] = { "Net.embedding|Embedding", "Net.fc0|Linear", "Net.fc1|Linear",
                              "Net.fc2|Linear" };

    for (uint64_t i = 0; i < 4; i++) {
        uint64_t bytes = p->faults & HOLDS && i == 0 ? 130 * MB : 40 * MB;
        p->line = 50 + (uint32_t)i;
        begin(p, 10 + 2 * i, "aten::empty");
        synth_attr(p->s, t, SND_ATTR_MODULE, synth_string(p->s, modules[i]));
        synth_alloc(p->s, t, (10 + 2 * i) * US, CUDA0, 0x1000 + i, bytes);
        synth_counter(p->s, t, (10 + 2 * i) * US, reserved,
                      (double)(p->faults & FRAGMENTS ? 400 * MB : 190 * MB));
        end(p, 11 + 2 * i);
    }
}

static uint32_t kernel(struct synth *s, const char *name)
{
    return synth_work(s, &(struct snd_work_record){ .name = synth_string(s, name),
                                                    .kind = SND_WORK_KERNEL,
                                                    .grid = { 64, 1, 1 },
                                                    .block = { 128, 1, 1 } });
}

void make_advice(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    struct program p = { .s = s, .faults = n, .host = synth_thread(s, "python", 0) };
    bool           pageable = n & PAGEABLE_COPY;
    uint64_t       at = 2000;

    synth_meta(s, "python.sys_prefixes", "[\"/usr\"]");
    p.cupti = synth_thread(s, "cupti", 0);
    p.compute = synth_queue(s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    p.product = kernel(s, n & FLOAT_PRODUCT ? "ampere_sgemm_128x64_tn"
                                            : "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn");
    p.small = kernel(s, "void at::native::vectorized_elementwise_kernel<4>(int, float*)");
    p.copy = synth_work(s, &(struct snd_work_record){
                               .name = synth_string(s, pageable ? "Memcpy HtoD (Pageable -> Device)"
                                                                : "Memcpy HtoD (Pinned -> Device)"),
                               .kind = SND_WORK_COPY,
                               .copy_kind = 1,
                               .source_kind = pageable ? 1 : 2,
                               .target_kind = 3,
                               .bytes = MB });
    hold_memory(&p);
    for (uint64_t i = 0; i < STEPS; i++) {
        run_step(&p, at, i);
        at += PERIOD;
        if ((n & SLOW_STEPS) && (i == 7 || i == 13))
            at += 2 * PERIOD;
        hold_up(&p, at - PERIOD + 710);
    }
    if (n & ENDS_LATE) {
        synth_step(s, p.host, at * US, STEPS);
        synth_counter(s, p.host, (at + 30 * PERIOD) * US, synth_string(s, "saved"), 1);
    }
    synth_close(s, true);
}
