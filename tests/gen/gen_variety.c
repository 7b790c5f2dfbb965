/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_variety.c - variety: what gen_chance.c has not, by its number N: operators as calls that repeat, forward and back;
 * calls of Python functions on two threads; samples in runs; native frames with inlined functions; a heap; ranges that end out
 * of turn, or on another thread; files in folders whose names begin alike.
 *
 * What is drawn (draws.h) may be nonsense, but never damaged.
 */
#include "cases.h"

#include <stdio.h>
#include <string.h>

#include "draws.h"
#include "format/fields.h"
#include "format/layout.h"
#include "synth.h"

enum { THREADS = 2, CALLS = 12, FRAMES = 9, STACKS = 14, DEEPEST = 5 };

struct function {
    uint32_t id, frame;
    uint64_t start_ns;
};

/* Longer than a narrow column has room for. */
#define LONG_FUNCTION \
    "a_function_whose_name_is_longer_than_what_a_column_of_a_table_has_room_for_if_it_is_narrow"
#define LONG_KERNEL                                       \
    ("void at::native::vectorized_elementwise_kernel<4, " \
     "at::native::FillFunctor<float>>(int)")

struct variety {
    struct synth   *s;
    struct draws    draws;
    uint32_t        threads[THREADS], sampler, cupti;
    uint64_t        now[THREADS], keys;
    uint32_t        depth[THREADS];
    struct function open[THREADS][DEEPEST];
    uint32_t        functions[THREADS], next_function;
    uint32_t        frames[FRAMES], stacks[STACKS], calls[CALLS];
    uint32_t        queues[2], works[6], correlation;
};

/* ------------------------------------------------------------------ what is set up once */

/* Folders that are all of another's name, that begin like it, or lie in it. */
static void draw_frames(struct variety *v)
{
    static const char *const folders[] = { "/home/me/app/a", "/home/me/app/ab",
                                           "/home/me/app",   "/home/me/app/a/b",
                                           "/home/me/apple", "/usr/lib/python3.11/json" };
    static const char *const functions[] = { "main",       "work",        "work",
                                             "<listcomp>", "Net.forward", LONG_FUNCTION };
    uint64_t                 most = 1 + draw(v, SND_COUNT_OF(folders));

    for (uint32_t i = 0; i < FRAMES; i++) {
        char     file[96];
        uint32_t line = 10 * (uint32_t)draw(v, 3) + 1;
        snprintf(file, sizeof file, "%s/%s.py", folders[draw(v, most)], draw(v, 2) ? "x" : "y");
        v->frames[i] = python_frame(v->s, DRAW_OF(v, functions), line, file,
                                    line + (uint32_t)draw(v, 3));
    }
}

static uint32_t draw_address(struct variety *v)
{
    static const char *const files[] = { "/app/prog", "/app/prog", "/usr/lib/libm.so.6",
                                         "[kernel]",  "[unknown]", "[vdso]" };

    return synth_address(v->s, synth_string(v->s, DRAW_OF(v, files)), 0, 0x1000 + 16 * draw(v, 40));
}

/* Of Python alone, with native frames below, and of one that others are inlined into. */
static void draw_stacks(struct variety *v)
{
    const struct snd_symbol_entry inlined[] = {
        { synth_string(v->s, "inner"), synth_string(v->s, "/src/prog.c"), 5, 3 },
        { synth_string(v->s, "middle"), synth_string(v->s, "/src/prog.h"), 0, 0 },
        { synth_string(v->s, "std::vector<int>::push_back(int const&)"), 0, 12, 10 },
    };

    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t parent = i < 3 ? 0 : v->stacks[draw(v, i)];
        uint32_t frame = draw(v, 3) ? v->frames[draw(v, FRAMES)] : draw_address(v);
        v->stacks[i] = synth_stack(v->s, parent, frame);
    }
    uint32_t last = synth_address(v->s, synth_string(v->s, "/app/prog"), 0, 0x9999);
    synth_symbol(v->s, last, inlined, 1 + (uint32_t)draw(v, SND_COUNT_OF(inlined)));
    v->stacks[STACKS - 1] = synth_stack(v->s, v->stacks[0], last);
}

/* Operators as torch's probe has them; one in three is of the backward pass. */
static void draw_calls(struct variety *v)
{
    static const char *const names[] = { "aten::linear",      "aten::addmm", "aten::t",
                                         "aten::relu",        "aten::mm",    "forward",
                                         "triton_poi_fused_0" };
    static const char *const back[] = { "AddmmBackward0",
                                        "autograd::engine::evaluate_function: AddmmBackward0",
                                        "aten::mm" };
    static const char *const modules[] = { "Net|Net", "Net.fc|Linear", "Net.fc|Linear", "Net.act",
                                           "Net.act.0|ReLU" };
    static const char *const shapes[] = { "4;8,16;16,4;#;#", "8,16;16,4", "-", "(2,2;3);#" };

    for (uint32_t i = 0; i < CALLS; i++) {
        bool is_back = i % 3 == 2;
        v->calls[i] = synth_call(
            v->s,
            &(struct snd_call_record){
                .name = synth_string(v->s, is_back ? DRAW_OF(v, back) : DRAW_OF(v, names)),
                .shapes = draw(v, 2) ? synth_shapes(v->s, DRAW_OF(v, shapes)) : 0,
                .strides = draw(v, 3) ? 0 : synth_shapes(v->s, "1;16,1;4,1"),
                .arguments = draw(v, 3) ? 0 : synth_string(v->s, "[\"\", \"1\", \"[1, 2]\"]"),
                .keywords = draw(v, 4) ? 0 : synth_string(v->s, "{\"out\": \"\", \"a\": \"1\"}"),
                .stack = draw(v, 2) ? v->stacks[draw(v, STACKS)] : 0,
                .module = is_back || draw(v, 3) == 0 ? 0 : synth_string(v->s, DRAW_OF(v, modules)),
                .scope = is_back      ? SND_SCOPE_BACKWARD + 1
                         : draw(v, 5) ? SND_SCOPE_FUNCTION + 1
                                      : SND_SCOPE_USER + 1,
                .flags = (draw(v, 4) ? SND_CALL_SEQUENCE : 0) | (draw(v, 9) ? 0 : SND_CALL_ASYNC),
                .fwd_thread = is_back ? draw(v, 3) : 0,
                .compiled = draw(v, 5) ? 0 : synth_string(v->s, "act|Net.act") });
    }
}

static void draw_works(struct variety *v)
{
    static const char *const names[] = { "ncclDevKernel_AllReduce_Sum", "ncclSetup", "reluKernel",
                                         LONG_KERNEL };

    for (uint32_t i = 0; i < 2; i++)
        v->queues[i] = synth_queue(v->s, &(struct snd_queue_record){ SND_DEVICE(1, i), 1, 7, 0 });
    for (uint32_t i = 0; i < 4; i++)
        v->works[i] = synth_work(v->s, &(struct snd_work_record){
                                           .name = synth_string(v->s, names[i]),
                                           .kind = SND_WORK_KERNEL,
                                           .grid = { (uint32_t)draw(v, 3), 1, 1 },
                                           .block = { 32 * (uint32_t)draw(v, 3), 1, 1 } });
    v->works[4] = synth_work(v->s,
                             &(struct snd_work_record){ .name = synth_string(v->s, "Context Sync"),
                                                        .kind = SND_WORK_SYNCHRONIZE });
    v->works[5] = synth_work(v->s, &(struct snd_work_record){
                                       .name = synth_string(v->s, "Activity Buffer Request"),
                                       .kind = SND_WORK_OVERHEAD });
}

static void draw_notes(struct variety *v)
{
    static const char *const paths[] = { "[\"/home/me/app\", \"/usr/lib/python3.11\"]",
                                         "[\"/home\", \"/home/me\"]", "[\"/home/me/app/a\"]",
                                         "[]" };

    synth_meta(v->s, "command", "python x.py");
    synth_meta(v->s, "torch.probe", "{\"shapes\": true}");
    synth_meta(v->s, "torch.options", "{\"record_shapes\": true, \"with_stack\": true}");
    synth_meta(v->s, "torch.thread 4242", "1");
    synth_meta(v->s, "torch.thread 4243", "2");
    synth_meta(v->s, "python.version", "3.11.2");
    synth_meta(v->s, "python.functions", "trace");
    synth_meta(v->s, "python.sample.hz", "1000");
    synth_meta(v->s, "counters.functions", "page-faults,cycles:u");
    synth_meta(v->s, "python.sys_path", DRAW_OF(v, paths));
    synth_meta(v->s, "python.prefixes", "[\"/home/me/\\\"a\\\\\", \"/home/me/app/\", \"/usr/\"]");
    if (draw(v, 2))
        synth_meta(v->s, "python.sys_prefixes", "[\"/usr\"]");
    synth_meta(v->s, "module Net", "{\"class\": \"Net\", \"parameters\": 0}");
    synth_meta(v->s, "module Net.act.0", "{\"class\": \"ReLU\", \"parameters\": 0}");
    synth_meta(v->s, "module Net.fc",
               "{\"class\": \"Linear\", \"parameters\": 68, \"parameter_bytes\": 272}");
}

/* --------------------------------------------------------------------- what a thread does */

static void call(struct variety *v, uint32_t t)
{
    uint64_t ns = draw(v, 2) ? 1 + draw_ns(v) : 0;

    synth_attr(v->s, v->threads[t], SND_ATTR_CALLS_SEQUENCE, draw(v, 4));
    synth_call_range(v->s, v->threads[t], v->now[t], v->calls[draw(v, CALLS)], ns);
    v->now[t] += ns;
    v->depth[t] += ns == 0;
    if (ns == 0 && draw(v, 3) == 0)
        synth_alloc(v->s, v->threads[t], v->now[t], CPU, 0x1000 * (1 + draw(v, 6)), draw_size(v));
    if (ns == 0 && draw(v, 4) == 0)
        synth_attr(v->s, v->threads[t], SND_ATTR_KEY, ++v->keys);
}

/* The innermost, the one around it, or one that has a key, of whatever thread. */
static void end(struct variety *v, uint32_t t)
{
    uint64_t which = draw(v, 8);

    if (which == 0 && v->keys > 0) {
        synth_end_key(v->s, v->threads[t], v->now[t], 1 + draw(v, v->keys));
    } else if (v->depth[t] > 0) {
        if (which == 1)
            synth_end_at(v->s, v->threads[t], v->now[t], (uint32_t)draw(v, v->depth[t]));
        else
            synth_end(v->s, v->threads[t], v->now[t]);
        v->depth[t]--;
    }
}

static void leave(struct variety *v, uint32_t t)
{
    if (v->functions[t] == 0)
        return;
    const struct function *f = &v->open[t][--v->functions[t]];
    synth_function(v->s, v->threads[t], v->now[t], f->frame, 0, v->now[t] - f->start_ns, f->id,
                   v->functions[t] ? f[-1].id : 0);
}

/* Some call another in the nanosecond in which they begin, some return in it. */
static void enter(struct variety *v, uint32_t t)
{
    do {
        if (v->functions[t] == DEEPEST)
            return;
        v->open[t][v->functions[t]++] = (struct function){ .id = ++v->next_function,
                                                           .frame = v->frames[draw(v, FRAMES)],
                                                           .start_ns = v->now[t] };
        if (draw(v, 4) == 0)
            leave(v, t);
    } while (draw(v, 2));
}

/* A call of the API that closes in place, and what it has a GPU do. */
static void launch(struct variety *v, uint32_t t)
{
    uint64_t       ns = 1 + draw_ns(v), at = v->now[t] + draw_ns(v);
    uint32_t       number = ++v->correlation;
    uint64_t       which = draw(v, 3);
    const uint64_t words[3] = {
        SND_EV_API,
        SND_PAIR(synth_string(v->s, which ? "cudaLaunchKernel" : "cudaDeviceSynchronize"), ns),
        number
    };

    synth_event(v->s, v->threads[t], v->now[t], words, 3);
    v->now[t] += ns;
    if (which)
        synth_device(v->s, v->cupti, at, v->works[draw(v, 5)], v->queues[draw(v, 2)],
                     draw(v, 3) ? draw_ns(v) : 0, number, 0);
    if (draw(v, 3) == 0) /* ranges may lie in it, or it in them */
        synth_device(v->s, v->cupti, at, v->works[5], v->queues[0], draw_ns(v), 0, 0);
}

static void sample(struct variety *v, uint32_t t)
{
    static const uint32_t states[] = { 3, 2, 10, 0, 4 };
    uint64_t              now = v->now[t], length = draw_ns(v), late = draw_ns(v);

    if (length + late >= now)
        return;
    synth_sample_run(v->s, v->sampler, now,
                     &(struct synth_run){ .stack = v->stacks[draw(v, STACKS)],
                                          .state = DRAW_OF(v, states) | (1 + (uint32_t)draw(v, 3))
                                                                            << 8,
                                          .sampled = v->threads[t],
                                          .begin_ns = now - late - length,
                                          .read_ns = now - late - length / 2,
                                          .end_ns = now - late });
}

static void span(struct variety *v, uint32_t t)
{
    uint32_t name = synth_string(v->s, draw(v, 2) ? "span" : "tidy");
    uint64_t ns = 1 + draw_ns(v);

    synth_span(v->s, v->threads[t], v->now[t], name, ns);
    v->now[t] += ns;
}

static void act(struct variety *v, uint32_t t)
{
    v->now[t] += draw_ns(v);
    switch (draw(v, 14)) {
    case 0:
    case 1:
    case 2:
        if (v->depth[t] < DEEPEST) {
            call(v, t);
            break;
        }
        /* fall through */
    case 3:
    case 4:
        end(v, t);
        break;
    case 5:
    case 6:
        enter(v, t);
        break;
    case 7:
    case 8:
        leave(v, t);
        break;
    case 9:
        launch(v, t);
        break;
    case 10:
    case 11:
        sample(v, t);
        break;
    case 12:
        span(v, t);
        break;
    default:
        synth_counter(v->s, v->threads[t], v->now[t],
                      synth_string(v->s, draw(v, 2) ? "process.rss" : "loss"),
                      (double)draw_size(v));
    }
}

/* Calls of functions, counted beside what is in the timeline, with counters of theirs. */
static void add_counts(struct variety *v)
{
    static const uint64_t read[SND_COUNTERS_READ_WORDS] = { 4, 1, 2 };

    for (uint32_t i = 0; i < FRAMES; i++) {
        uint64_t       count = 1 + draw(v, 3), own = draw_ns(v), total = own + draw_ns(v);
        const uint64_t calls[SND_CALLS_WORDS] = { count, count, total, own, 0, 0, count, total };
        synth_tally(v->s, SND_TALLY_CALLS, v->frames[i], i ? v->frames[draw(v, i)] : 0, calls,
                    SND_CALLS_WORDS);
        for (uint32_t k = 0; k < 2; k++) {
            const uint64_t counted[SND_FUNCTION_COUNTERS_WORDS] = { count, draw(v, 3),
                                                                    draw_size(v) };
            synth_tally(v->s, SND_TALLY_FUNCTION_COUNTERS, v->frames[i], k, counted,
                        SND_FUNCTION_COUNTERS_WORDS);
        }
    }
    synth_tally(v->s, SND_TALLY_COUNTERS_READ, 0, 0, read, SND_COUNTERS_READ_WORDS);
}

/* A heap, its stacks, one that is not known among them, and two moments of it. */
static void add_heap(struct variety *v)
{
    uint64_t all[SND_HEAP_PROCESS_WORDS] = { 0 };

    for (uint32_t i = 0; i < 5; i++) {
        uint64_t       blocks = 1 + draw(v, 3), bytes = draw_size(v), live = draw(v, 2);
        const uint64_t words[SND_HEAP_WORDS] = { blocks,           bytes,      live,
                                                 live ? bytes : 0, draw(v, 2), draw(v, 2),
                                                 draw_size(v),     draw(v, 2) };
        const uint64_t held[SND_HEAP_HELD_WORDS] = { live, draw_size(v) };
        all[SND_HEAP_PROCESS_ALLOCATIONS] += blocks;
        all[SND_HEAP_PROCESS_LIVE] += live ? bytes : 0;
        all[SND_HEAP_PROCESS_PEAK] += bytes;
        synth_tally(v->s, SND_TALLY_HEAP, i ? v->stacks[i] : 0, 0, words, SND_HEAP_WORDS);
        synth_tally(v->s, SND_TALLY_HEAP_HELD, i ? v->stacks[i] : 0, 2 * (i % 2), held,
                    SND_HEAP_HELD_WORDS);
    }
    all[SND_HEAP_PROCESS_RISING] = draw(v, 2);
    synth_tally(v->s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t moment[SND_HEAP_MOMENT_WORDS] = { 1, draw_size(v), 2 * draw_size(v),
                                                         synth_raw_clock(v->s, 1000 * (i + 1)) };
        synth_tally(v->s, SND_TALLY_HEAP_MOMENT, 0, 2 * i, moment, SND_HEAP_MOMENT_WORDS);
    }
}

void make_variety(const char *path, uint64_t n)
{
    struct variety v = { .s = synth_new(path, NULL), .draws = DRAWS_OF(n) };

    v.threads[0] = synth_thread_of(v.s, "python", 4242, 0);
    v.threads[1] = synth_thread_of(v.s, "pt_autograd_0", 4243, 0);
    v.sampler = synth_thread(v.s, "sonde", 0);
    v.cupti = synth_thread(v.s, "cupti", 0);
    draw_notes(&v);
    draw_frames(&v);
    draw_stacks(&v);
    draw_calls(&v);
    draw_works(&v);
    for (uint64_t i = 0; i < 200; i++) {
        if (i % 50 == 10)
            synth_step(v.s, v.threads[0], v.now[0], i / 50);
        act(&v, (uint32_t)draw(&v, THREADS));
    }
    for (uint32_t t = 0; t < THREADS; t++) {
        for (; v.functions[t] > 0; v.now[t] += draw_ns(&v))
            leave(&v, t);
        for (; v.depth[t] > draw(&v, 2); v.depth[t]--)
            synth_end(v.s, v.threads[t], v.now[t] += draw_ns(&v));
    }
    if (draw(&v, 2))
        add_heap(&v);
    if (draw(&v, 3) == 0)
        add_counts(&v);
    synth_close(v.s, true);
}

DRAWS_END;
