/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_chance.c - chance: a program of everything at once, by its number N; chance_job: ranks of such programs.
 *
 * What is drawn (draws.h) may be nonsense, but never damaged.
 */
#include "cases.h"

#include <stdio.h>

#include "draws.h"
#include "format/layout.h"
#include "synth.h"

enum { THREADS = 3, MODULES = 4, STACKS = 10, DEEPEST = 6, NAMES = 24 };

struct chance {
    struct synth *s;
    struct draws  draws;
    uint32_t      names[NAMES], modules[MODULES];
    uint32_t      threads[THREADS], sampler, cupti;
    uint64_t      now[THREADS];
    uint32_t      depth[THREADS];
    uint32_t      stacks[STACKS], queues[3], works[6], calls[4];
    uint32_t      correlation, said, collective;
    uint64_t      address;
};

#define draw_name(c) ((c)->names[draw(c, NAMES)])
#define draw_module(c) ((c)->modules[draw(c, MODULES)])

static uint32_t draw_device(struct chance *c)
{
    static const uint32_t devices[] = { CPU, CPU, CUDA0, SND_DEVICE(1, 1) };

    return DRAW_OF(c, devices);
}

static uint32_t draw_shapes(struct chance *c)
{
    static const char *const shapes[] = { "8,16;16,4", "8,16;16,4",   "4;8,16;16,4;#;#",
                                          "1;1",       "0,3;3,0",     "2,3,8,8;4,3,3,3;4;-;-;-;#",
                                          "(2,2;3);#", "2,2,3;2,3,1", "-" };

    return draw(c, 3) == 0 ? 0 : synth_shapes(c->s, DRAW_OF(c, shapes));
}

/* ------------------------------------------------------------------ what is set up once */

static void write_names(struct chance *c)
{
    static const char *const names[NAMES] = {
        "aten::mm",
        "aten::addmm",
        "aten::linear",
        "aten::conv2d",
        "aten::relu",
        "aten::add_",
        "aten::sum",
        "aten::copy_",
        "aten::to",
        "aten::item",
        "aten::empty",
        "aten::bmm",
        "aten::cat",
        "AddmmBackward0",
        "autograd::engine::evaluate_function: AddmmBackward0",
        "forward",
        "forward",
        "Optimizer.step#SGD.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        "ProfilerStep#1",
        "Torch-Compiled Region: 0/0",
        "_compile.compile_inner (dynamo_timed)",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "x"
    };
    static const char *const modules[MODULES] = { "Net", "Net.features", "Net.features.0|Conv2d",
                                                  "Net.fc|Linear" };

    for (uint32_t i = 0; i < NAMES; i++)
        c->names[i] = synth_string(c->s, names[i]);
    for (uint32_t i = 0; i < MODULES; i++)
        c->modules[i] = synth_string(c->s, modules[i]);
}

static void draw_stacks(struct chance *c)
{
    static const char *const functions[] = { "main", "train",    "forward",  "helper",
                                             "main", "<lambda>", "__call__", "<module>" };
    static const char *const files[] = { "prog.py", "net.py", "/usr/lib/python3/torch/nn.py",
                                         "<frozen importlib._bootstrap>", "/usr/lib/libm.so" };

    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t file = (uint32_t)draw(c, SND_COUNT_OF(files)), line = (uint32_t)draw(c, 4) * 10;
        bool     native = file == 4;
        uint32_t function = synth_string(c->s, DRAW_OF(c, functions));
        uint32_t frame = synth_frame_in(c->s, function, native ? 0 : line + 1,
                                        synth_string(c->s, files[file]),
                                        native ? 0 : line + (uint32_t)draw(c, 3), native);
        c->stacks[i] = synth_stack(c->s, i < 2 ? 0 : c->stacks[draw(c, i)], frame);
    }
}

static void draw_devices(struct chance *c)
{
    static const char *const kernels[] = { "ampere_sgemm_128x64_tn", "relu", "relu" };

    for (uint32_t i = 0; i < 3; i++) {
        c->queues[i] = synth_queue(c->s,
                                   &(struct snd_queue_record){ SND_DEVICE(1, i / 2), 1, 7 + i, 0 });
        c->works[i] = synth_work(c->s, &(struct snd_work_record){
                                           .name = synth_string(c->s, kernels[i]),
                                           .kind = SND_WORK_KERNEL,
                                           .grid = { 1u << draw(c, 8), 1, 1 },
                                           .block = { 32u << draw(c, 5), 1, 1 },
                                           .registers = 16 * (uint32_t)draw(c, 9),
                                           .shared_static = 1024 * (uint32_t)draw(c, 48) });
    }
    c->works[3] = synth_work(c->s,
                             &(struct snd_work_record){
                                 .name = synth_string(c->s, "Memcpy HtoD (Pageable -> Device)"),
                                 .kind = SND_WORK_COPY,
                                 .copy_kind = 1,
                                 .source_kind = 1,
                                 .target_kind = 3,
                                 .bytes = draw_size(c) });
    c->works[4] = synth_work(c->s, &(struct snd_work_record){
                                       .name = synth_string(c->s, "Memcpy DtoH (Device -> Pinned)"),
                                       .kind = SND_WORK_COPY,
                                       .copy_kind = 2,
                                       .source_kind = 3,
                                       .target_kind = 2,
                                       .bytes = draw_size(c) });
    c->works[5] =
        synth_work(c->s, &(struct snd_work_record){ .name = synth_string(c->s, "Memset (Device)"),
                                                    .kind = SND_WORK_FILL,
                                                    .target_kind = 3,
                                                    .bytes = draw_size(c) });
}

static void draw_calls(struct chance *c)
{
    for (uint32_t i = 0; i < 4; i++)
        c->calls[i] = synth_call(c->s, &(struct snd_call_record){
                                           .name = draw_name(c),
                                           .shapes = draw_shapes(c),
                                           .stack = c->stacks[draw(c, STACKS)],
                                           .module = draw(c, 2) ? draw_module(c) : 0,
                                           .scope = (uint32_t)draw(c, 3),
                                           .flags = draw(c, 4) == 0 ? SND_CALL_ASYNC : 0 });
}

static void draw_notes(struct chance *c)
{
    synth_meta(c->s, "command", "python prog.py --size 3");
    synth_meta(c->s, "python.sample.hz", "100");
    synth_meta(c->s, "torch.thread 4242", "1");
    synth_meta(c->s, "counters.ranges", "page-faults,task-clock");
    synth_meta(c->s, "module Net", "{\"class\": \"Net\", \"parameters\": 0}");
    synth_meta(c->s, "module Net.features.0",
               "{\"class\": \"Conv2d\", \"parameters\": 112, \"parameter_bytes\": 448}");
    synth_meta(c->s, "module Net.fc",
               "{\"class\": \"Linear\", \"parameters\": 2570, \"parameter_bytes\": 10280}");
    if (draw(c, 2))
        synth_meta(c->s, "machine.roof",
                   "{\"flops_per_second\": 100000000000, \"bytes_per_second\": 20000000000, "
                   "\"threads\": 2}");
}

/* --------------------------------------------------------------------- what a thread does */

static void add_attribute(struct chance *c, uint32_t t)
{
    const struct {
        uint8_t  key;
        uint64_t value;
    } attributes[] = {
        { SND_ATTR_FLOPS, draw_size(c) * (c->draws.small ? 1 : 1000) },
        { SND_ATTR_MACS, draw_size(c) * (c->draws.small ? 1 : 500) },
        { SND_ATTR_BYTES, draw_size(c) },
        { SND_ATTR_STACK, c->stacks[draw(c, STACKS)] },
        { SND_ATTR_STACK, c->stacks[draw(c, STACKS)] },
        { SND_ATTR_SEQUENCE, draw(c, 4) },
        { SND_ATTR_FWD_THREAD, 1 },
        { SND_ATTR_SCOPE, draw(c, 3) },
        { SND_ATTR_SCOPE, SND_SCOPE_USER + 1 },
        { SND_ATTR_MODULE, draw_module(c) },
        { SND_ATTR_MODULE, draw_module(c) },
        { SND_ATTR_COUNTED, draw(c, 5) << 8 | draw(c, 2) },
        { SND_ATTR_MODULE_CALL, draw_module(c) },
        { SND_ATTR_MODULE_RETURN, draw_module(c) },
        { SND_ATTR_ARGUMENTS, synth_string(c->s, "[\"\", \"\", \"1\"]") },
        { SND_ATTR_ASYNC, draw(c, 2) },
        { SND_ATTR_PYTHON_DEPTH, draw(c, 4) },
    };
    uint64_t which = draw(c, SND_COUNT_OF(attributes));

    synth_attr(c->s, c->threads[t], attributes[which].key, attributes[which].value);
}

static void begin(struct chance *c, uint32_t t)
{
    synth_begin(c->s, c->threads[t], c->now[t], draw_name(c), draw_shapes(c));
    c->depth[t]++;
    for (uint64_t i = draw(c, 4); i > 0; i--)
        add_attribute(c, t);
    if (c->said && draw(c, 4) == 0) {
        synth_attr(c->s, c->threads[t], SND_ATTR_COLLECTIVE, c->said);
        synth_attr(c->s, c->threads[t], SND_ATTR_COLLECTIVE_SEQUENCE, ++c->collective);
    }
}

/* A call of CUDA's runtime and what it has the GPU do: once, twice or, of a graph, several times. */
static void launch(struct chance *c, uint32_t t)
{
    static const char *const names[] = { "cudaLaunchKernel", "cudaLaunchKernel", "cudaMemcpyAsync",
                                         "cudaGraphLaunch", "cudaStreamSynchronize" };
    uint32_t which = (uint32_t)draw(c, SND_COUNT_OF(names)), number = ++c->correlation;
    uint64_t at = c->now[t] + draw_ns(c);

    synth_begin(c->s, c->threads[t], c->now[t], synth_string(c->s, names[which]), 0);
    synth_attr(c->s, c->threads[t], SND_ATTR_API, number);
    c->now[t] += which == 4 ? 10 * draw_ns(c) : draw_ns(c);
    synth_end(c->s, c->threads[t], c->now[t]);
    for (uint64_t i = which == 4 ? 0 : which == 3 ? draw(c, 4) : draw(c, 8) != 0; i > 0; i--) {
        uint64_t ns = draw_ns(c);
        uint32_t work = which == 2 ? 3 + (uint32_t)draw(c, 3) : (uint32_t)draw(c, 3);
        synth_device(c->s, c->cupti, at, c->works[work], c->queues[draw(c, 3)], ns, number,
                     which == 3 ? 10 + i : 0);
        at += draw(c, 2) ? ns : draw_ns(c);
    }
}

static void use_memory(struct chance *c, uint32_t t)
{
    uint32_t device = draw_device(c);

    if (draw(c, 3) != 0)
        synth_alloc(c->s, c->threads[t], c->now[t], device, 0x1000 * (1 + draw(c, 8)),
                    draw_size(c));
    else
        synth_free(c->s, c->threads[t], c->now[t], device, 0x1000 * (1 + draw(c, 8)),
                   draw(c, 2) ? 0 : draw_size(c));
}

static void sample(struct chance *c, uint32_t t)
{
    static const uint32_t states[] = { 3, 3, 2, 0, 4, 11 };
    uint64_t              latest = c->now[t];

    synth_sample(c->s, c->sampler, latest, c->stacks[draw(c, STACKS)], DRAW_OF(c, states) | 1 << 8,
                 c->threads[t], (uint32_t)(1 + draw_ns(c)));
}

/* One thing that thread `t` does, and the time that it takes. */
static void act(struct chance *c, uint32_t t)
{
    uint32_t thread = c->threads[t];

    c->now[t] += draw_ns(c);
    switch (draw(c, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (c->depth[t] < DEEPEST) {
            begin(c, t);
            break;
        }
        /* fall through */
    case 4:
    case 5:
    case 6:
        if (c->depth[t] > 0) {
            synth_end(c->s, thread, c->now[t]);
            c->depth[t]--;
        }
        break;
    case 7: {
        uint64_t ns = draw_ns(c);
        synth_call_range(c->s, thread, c->now[t], c->calls[draw(c, 4)], 1 + ns);
        c->now[t] += 1 + ns;
        break;
    }
    case 8:
    case 9:
        launch(c, t);
        break;
    case 10:
    case 11:
        use_memory(c, t);
        break;
    case 12:
    case 13:
        sample(c, t);
        break;
    case 14:
        synth_counter(c->s, thread, c->now[t],
                      synth_string(c->s, draw(c, 2) ? "loss" : "device.reserved cuda:0"),
                      (double)draw_size(c));
        break;
    default:
        if (draw(c, 3) == 0)
            synth_gap(c->s, thread, c->now[t], (uint32_t)draw(c, 3), 0);
        else if (draw(c, 2))
            synth_mark(c->s, thread, c->now[t], draw_name(c), c->stacks[draw(c, STACKS)]);
        else
            synth_link(c->s, thread, c->now[t], SND_LINK_FLOW, draw(c, 2), draw(c, 3));
    }
}

static void run_steps(struct chance *c, uint64_t steps, uint32_t acts)
{
    for (uint64_t step = 0; step < steps; step++) {
        if (draw(c, 8) != 0)
            synth_step(c->s, c->threads[0], c->now[0], step);
        for (uint32_t i = 0; i < acts; i++)
            act(c, (uint32_t)draw(c, THREADS));
        if (draw(c, 5) == 0)
            synth_seal(c->s, c->threads[0]);
    }
}

static void add_tallies(struct chance *c)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t       frame = python_frame(c->s, i % 2 ? "helper" : "main", 1 + i * 10, "prog.py",
                                            1 + i * 10);
        const uint64_t calls[SND_CALLS_WORDS] = {
            1 + draw(c, 3), 1, draw_ns(c) * 10, draw_ns(c), draw(c, 2),
            draw_ns(c),     1, draw_ns(c) * 10
        };
        const uint64_t lines[2] = { draw(c, 3), draw_ns(c) };
        const uint64_t memory[6] = { draw(c, 3),   draw_size(c), draw_size(c),
                                     draw_size(c), draw_size(c), draw_size(c) };
        const uint64_t heap[SND_HEAP_WORDS] = { 1 + draw(c, 3), draw_size(c), draw(c, 2),
                                                draw_size(c),   draw(c, 2),   draw(c, 2),
                                                draw_size(c),   draw(c, 2) };
        synth_tally(c->s, SND_TALLY_CALLS, frame,
                    i ? python_frame(c->s, "main", 1, "prog.py", 1) : 0, calls, SND_CALLS_WORDS);
        synth_tally(c->s, SND_TALLY_LINE, frame, 0, lines, 2);
        synth_tally(c->s, SND_TALLY_LINE_MEMORY, frame, 0, memory, 6);
        synth_tally(c->s, SND_TALLY_HEAP, c->stacks[i], 0, heap, SND_HEAP_WORDS);
    }
}

static void write_program(const char *path, const struct synth_options *options, uint64_t n,
                          const char *said)
{
    static const char *const names[THREADS] = { "main", "pt_autograd_0", "worker" };
    struct chance            c = { .s = synth_new(path, options), .draws = DRAWS_OF(n) };

    for (uint32_t t = 0; t < THREADS; t++)
        c.threads[t] = synth_thread(c.s, names[t], 0);
    c.sampler = synth_thread(c.s, "sonde", 0);
    c.cupti = synth_thread(c.s, "cupti", 0);
    if (said) {
        synth_meta(c.s, "job.rank", said);
        c.said = synth_string(c.s, "{\"Collective name\": \"allreduce_\", \"Group size\": 3, \"In "
                                   "msg nelems\": 1000, \"Out msg nelems\": 1000, "
                                   "\"Process Group Description\": \"default_pg\", \"Process Group "
                                   "Name\": \"0\", \"dtype\": \"Float\"}");
    }
    write_names(&c);
    draw_notes(&c);
    draw_stacks(&c);
    draw_devices(&c);
    draw_calls(&c);
    run_steps(&c, 1 + draw(&c, 6), 40);
    if (draw(&c, 2))
        add_tallies(&c);
    bool closed = draw(&c, 5) != 0;
    for (uint32_t t = 0; closed && t < THREADS; t++)
        for (; c.depth[t] > draw(&c, 2); c.depth[t]--)
            synth_end(c.s, c.threads[t], c.now[t] += draw_ns(&c));
    synth_close(c.s, closed);
}

void make_chance(const char *path, uint64_t n)
{
    write_program(path, NULL, n, NULL);
}

/* Three ranks, the last of another host; their collectives are numbered, the rest fits as chance has it. */
void make_chance_job(const char *path, uint64_t n)
{
    make_folder(path);
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct synth_options options = { .pid = 5000 + rank,
                                         .parent_pid = 4999,
                                         .rank = rank,
                                         .world_size = 3,
                                         .host = rank < 2 ? "node0" : "node1",
                                         .boot_id = rank < 2 ? 0 : 0xb008,
                                         .start_ns = rank * 1000 };
        char                 file[1024], said[128];
        snprintf(file, sizeof file, "%s/rank%u.sonde", path, (unsigned)rank);
        snprintf(said, sizeof said,
                 "{\"rank\": %u, \"local_rank\": %u, \"world_size\": 3, \"source\": \"RANK\", "
                 "\"job\": \"j\"}",
                 (unsigned)rank, (unsigned)rank % 2);
        write_program(file, &options, n * 3 + rank, said);
    }
}

DRAWS_END;
