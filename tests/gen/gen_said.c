/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_said.c - said: a program of which facts of every kind are told, by its number N, and the ranges and counters that belong
 * to them: a measured model, its layers, its graph, tensors, lines, counters of runs, a heap at moments. Of each fact some
 * members are missing, others are 0, or told twice; runs are of the same length, or there is one, or none.
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

enum { MODULES = 4, STACKS = 4, MEMBERS_MAX = 24, GRAPH_BATCH = 2 };

struct said {
    struct synth *s;
    struct draws  draws;
    uint32_t      thread, stacks[STACKS];
    uint64_t      now;
};

static const struct {
    uint32_t    kind;
    uint16_t    field, type;
    const char *word;
} fields[] = {
#define SND_FACT(name, kind, word, text, summary)
#define SND_FIELD(fact, name, field, type, word, summary) \
    { SND_FACT_OF_##fact, field, SND_FACT_##type, word },
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};

static const char *const modules[MODULES] = { "Net", "Net.a", "Net.b", "Net.b.0" };
static const unsigned    batches[] = { 1, 2, 2, 8 };

/* ---------------------------------------------------------------------- facts */

static const char *draw_text(struct said *c, uint32_t kind, uint16_t field)
{
    static const char *const shapes[] = { "[[2, 8]]", "[[2, 8], [8]]", "[]", "[[]]", "" };
    static const char *const devices[] = { "cpu", "cuda:0", "cuda:1", "" };
    static const char *const types[] = { "float32", "torch.float16", "int64", "" };
    static const char *const kinds[] = { "parameter", "buffer",      "gradient", "optimizer",
                                         "tensor",    "call_module", "output",   "placeholder" };
    static const char *const units[] = { "ns", "ns", "" };
    static const char *const words[] = {
        "x",    "Net", "Linear",
        "head", "",    "a text that is longer than what a narrow column of a table has room for"
    };

    switch (kind) {
    case SND_FACT_OF_MODEL:
        if (field == SND_FIELD_MODEL_DEVICE)
            return DRAW_OF(c, devices);
        return field == SND_FIELD_MODEL_DTYPE ? DRAW_OF(c, types) : DRAW_OF(c, words);
    case SND_FACT_OF_LAYERS:
        return field == SND_FIELD_LAYERS_MEMORY ? (draw(c, 2) ? "rss" : "weights")
                                                : DRAW_OF(c, words);
    case SND_FACT_OF_IO:
        return field == SND_FIELD_IO_CLASS ? DRAW_OF(c, words) : DRAW_OF(c, shapes);
    case SND_FACT_OF_NODE:
        if (field == SND_FIELD_NODE_KIND)
            return DRAW_OF(c, kinds);
        return field == SND_FIELD_NODE_IN || field == SND_FIELD_NODE_OUT ? DRAW_OF(c, shapes)
                                                                         : DRAW_OF(c, words);
    case SND_FACT_OF_TENSOR:
        if (field == SND_FIELD_TENSOR_KIND)
            return DRAW_OF(c, kinds);
        if (field == SND_FIELD_TENSOR_DTYPE)
            return DRAW_OF(c, types);
        return field == SND_FIELD_TENSOR_DEVICE  ? DRAW_OF(c, devices)
               : field == SND_FIELD_TENSOR_SHAPE ? (draw(c, 2) ? "[10, 4]" : "[]")
                                                 : DRAW_OF(c, words);
    case SND_FACT_OF_LINES:
        return field == SND_FIELD_LINES_NAME   ? "work"
               : field == SND_FIELD_LINES_FILE ? "/home/me/prog.py"
                                               : DRAW_OF(c, words);
    case SND_FACT_OF_COUNTER:
        return field == SND_FIELD_COUNTER_UNIT ? DRAW_OF(c, units) : DRAW_OF(c, words);
    default:
        return DRAW_OF(c, words);
    }
}

static int64_t draw_number(struct said *c, uint32_t kind, uint16_t field)
{
    static const int64_t numbers[] = { 0, 1, 2, 7, 64, 1024, 1000000, 30000000000 };
    static const int64_t lines[] = { 0, 1, 1, 10, 10, 19 };

    if (kind == SND_FACT_OF_GRAPH)
        return GRAPH_BATCH;
    if (kind == SND_FACT_OF_LAYERS ||
        (kind == SND_FACT_OF_BATCH && field == SND_FIELD_BATCH_SIZE) ||
        (kind == SND_FACT_OF_ENERGY && field == SND_FIELD_ENERGY_BATCH))
        return DRAW_OF(c, batches);
    if (kind == SND_FACT_OF_LAYER || kind == SND_FACT_OF_DEVICE)
        return (int64_t)(draw(c, 6) * draw(c, 6));
    if (kind == SND_FACT_OF_LINES)
        return DRAW_OF(c, lines);
    return draw(c, 16) == 0 ? -1 : DRAW_OF(c, numbers);
}

static struct snd_fact_member draw_member(struct said *c, uint32_t kind, uint16_t field,
                                          uint16_t type)
{
    static const double      reals[] = { 0, 0, 1, 400, 1e6, 2.5e6, 3.7e9 };
    static const char *const shapes[] = { "4,3", "1", "2,2,2", "0" };
    struct snd_fact_member   member = { field, type, 0, 0 };

    switch (type) {
    case SND_FACT_TEXT:
        member.id = synth_string(c->s, draw_text(c, kind, field));
        break;
    case SND_FACT_REAL:
        memcpy(&member.value, &DRAW_OF(c, reals), sizeof member.value);
        break;
    case SND_FACT_TENSOR:
        member.id = synth_shapes(c->s, DRAW_OF(c, shapes));
        /* fall through */
    default:
        member.value = (uint64_t)draw_number(c, kind, field);
    }
    return member;
}

/* Nearly all members of a kind, or a few. */
static void tell(struct said *c, uint32_t kind, const char *subject, uint32_t number)
{
    struct snd_fact_member members[MEMBERS_MAX];
    uint32_t               count = 0;
    uint64_t               part = 1 + 7 * (draw(c, 4) != 0);

    for (size_t i = 0; i < SND_COUNT_OF(fields); i++) {
        if (fields[i].kind != kind || (strcmp(fields[i].word, "absent") == 0 && draw(c, 6) != 0))
            continue;
        for (uint64_t times = draw(c, part + 1) != 0 ? 1 + (draw(c, 6) == 0) : 0;
             times > 0 && count < MEMBERS_MAX; times--)
            members[count++] = draw_member(c, kind, fields[i].field, fields[i].type);
    }
    synth_fact(c->s, kind, subject ? synth_string(c->s, subject) : 0, number, members, count);
}

static void tell_model(struct said *c)
{
    static const uint32_t once[] = { SND_FACT_OF_MODEL, SND_FACT_OF_MACHINE, SND_FACT_OF_BATCH,
                                     SND_FACT_OF_ENERGY };

    for (size_t i = 0; i < SND_COUNT_OF(once); i++)
        if (draw(c, 5) != 0)
            tell(c, once[i], NULL, 0);
    if (draw(c, 5) == 0)
        tell(c, SND_FACT_OF_FAILURE, NULL, 0);
    for (size_t i = 0; i < MODULES; i++) {
        if (draw(c, 3) != 0)
            tell(c, SND_FACT_OF_MODULE, modules[i], 0);
        if (draw(c, 3) != 0)
            tell(c, SND_FACT_OF_IO, modules[i], 0);
    }
    if (draw(c, 3) == 0)
        tell(c, SND_FACT_OF_CUDA, NULL, 0);
    for (uint32_t i = 0, end = (uint32_t)draw(c, 3); i < end; i++)
        tell(c, SND_FACT_OF_DEVICE, NULL, i);
}

static void tell_layers(struct said *c)
{
    tell(c, SND_FACT_OF_LAYERS, NULL, 0);
    synth_fact(c->s, SND_FACT_OF_LAYERS, 0, 0,
               (struct snd_fact_member[]){
                   { SND_FIELD_LAYERS_BATCH_SIZE, SND_FACT_NUMBER, 0, DRAW_OF(c, batches) },
                   { SND_FIELD_LAYERS_COUNT, SND_FACT_NUMBER, 0, 1 + draw(c, 4) },
                   { SND_FIELD_LAYERS_KEY, SND_FACT_TEXT, synth_string(c->s, "torch"), 0 },
                   { SND_FIELD_LAYERS_VALUE, SND_FACT_TEXT, synth_string(c->s, "2.0"), 0 } },
               4);
    for (uint32_t i = 0; i <= 4; i++)
        if (draw(c, 4) != 0)
            tell(c, SND_FACT_OF_LAYER, NULL, i);
}

static void tell_graph(struct said *c)
{
    tell(c, SND_FACT_OF_GRAPH, NULL, 0);
    for (uint32_t i = 0; i < 4; i++)
        if (draw(c, 5) != 0)
            tell(c, SND_FACT_OF_NODE, NULL, i);
}

static void tell_memory(struct said *c)
{
    for (uint32_t i = 1, end = (uint32_t)draw(c, 6); i <= end; i++)
        tell(c, SND_FACT_OF_TENSOR, NULL, i);
    for (uint32_t i = 1, end = (uint32_t)draw(c, 3); i <= end; i++)
        tell(c, SND_FACT_OF_LINES, NULL, i);
}

static void tell_counters(struct said *c)
{
    static const char *const counters[] = { "task-clock",       "cycles",        "instructions",
                                            "context-switches", "cache-misses",  "elapsed",
                                            "page-faults",      "branch-misses", "of no kernel" };

    for (size_t i = 0; i < SND_COUNT_OF(counters); i++)
        for (uint32_t run = 1, end = (uint32_t)draw(c, 4); run <= end; run++)
            tell(c, SND_FACT_OF_COUNTER, counters[i], run);
}

/* ------------------------------------------------------------- what belongs to them */

static uint32_t name_of(struct said *c, const char *what, const char *of, unsigned number,
                        const char *more)
{
    char text[64];

    snprintf(text, sizeof text, "%s%s%u%s", what, of, number, more);
    return synth_string(c->s, text);
}

/* `back`: of an operator of before, by its sequence number; it has its module. */
static void operate(struct said *c, bool back)
{
    static const char *const names[] = { "aten::mm", "aten::relu", "aten::empty" };

    synth_begin(c->s, c->thread, c->now,
                synth_string(c->s, back ? "MmBackward0" : DRAW_OF(c, names)),
                draw(c, 3) ? synth_shapes(c->s, "2,8;8,16") : 0);
    if (back) {
        synth_attr(c->s, c->thread, SND_ATTR_SCOPE, SND_SCOPE_BACKWARD + 1);
        synth_attr(c->s, c->thread, SND_ATTR_FWD_THREAD, 1);
    } else if (draw(c, 3) != 0) {
        synth_attr(c->s, c->thread, SND_ATTR_MODULE, synth_string(c->s, DRAW_OF(c, modules)));
    }
    synth_attr(c->s, c->thread, SND_ATTR_SEQUENCE, 1 + draw(c, 3));
    if (draw(c, 2))
        synth_attr(c->s, c->thread, SND_ATTR_STACK, DRAW_OF(c, c->stacks));
    for (uint64_t i = draw(c, 4); i > 0; i--) {
        uint32_t device = draw(c, 3) ? CUDA0 : CPU;
        uint64_t address = 64 * (1 + draw(c, 4));
        if (draw(c, 3) != 0)
            synth_alloc(c->s, c->thread, c->now, device, address, draw_size(c));
        else
            synth_free(c->s, c->thread, c->now, device, address, 0);
    }
    synth_end(c->s, c->thread, c->now += draw_ns(c));
}

/* A range around some operators and, of a graph, the nodes. */
static void pass(struct said *c, uint32_t name, bool of_graph)
{
    synth_begin(c->s, c->thread, c->now, name, 0);
    c->now += draw_ns(c);
    for (uint32_t i = 0; i < 4 && of_graph; i++) {
        synth_begin(c->s, c->thread, c->now, name_of(c, "model.", "node ", i, ""), 0);
        if (draw(c, 2))
            operate(c, false);
        synth_end(c->s, c->thread, c->now += draw_ns(c));
    }
    for (uint64_t i = draw(c, 4); i > 0 && !of_graph; i--)
        operate(c, draw(c, 4) == 0);
    synth_end(c->s, c->thread, c->now += draw_ns(c));
}

static void run_model(struct said *c)
{
    static const char *const parts[] = { "total batch=",   "to_device batch=", "forward batch=",
                                         "to_host batch=", "forward batch=",   "pass batch=",
                                         "train batch=",   "backward batch=" };
    static const char *const of_graph[] = { "graph batch=", "graph_pass batch=" };
    static const char *const peaks[] = { "model.peak flops=1000000", "model.peak flops=0",
                                         "model.peak bytes=1000" };

    for (uint64_t i = draw(c, 24); i > 0; i--)
        pass(c, name_of(c, "model.", DRAW_OF(c, parts), DRAW_OF(c, batches), ""), false);
    for (uint64_t i = draw(c, 6); i > 0; i--)
        pass(c, name_of(c, "model.", DRAW_OF(c, of_graph), GRAPH_BATCH, ""), true);
    c->now += 10;
    for (uint64_t i = draw(c, 3); i > 0; i--)
        pass(c, synth_string(c->s, DRAW_OF(c, peaks)), false);
    for (uint64_t i = draw(c, 4); i > 0; i--)
        synth_counter(c->s, c->thread, c->now,
                      name_of(c, "model.gpu_ns ", "batch=", DRAW_OF(c, batches), ""),
                      (double)draw_ns(c));
}

static void run_layers(struct said *c)
{
    static const char *const ranges[] = { "", "", " backward", " copy", " warmup" };
    static const char *const clocks[] = { " device_ns", " device_copy_ns", " device_backward_ns" };

    for (uint64_t i = draw(c, 20); i > 0; i--) {
        uint64_t ns = draw_ns(c);
        synth_span(c->s, c->thread, c->now,
                   name_of(c, "layer", " ", (unsigned)draw(c, 5), DRAW_OF(c, ranges)), 1 + ns);
        c->now += 1 + ns;
        if (draw(c, 4) == 0)
            synth_counter(c->s, c->thread, c->now,
                          name_of(c, "layer", " ", (unsigned)draw(c, 5), DRAW_OF(c, clocks)),
                          (double)draw_ns(c));
    }
    for (uint64_t i = draw(c, 4); i > 0; i--) {
        synth_span(c->s, c->thread, c->now, synth_string(c->s, draw(c, 2) ? "pass" : "model"), 100);
        c->now += 100;
    }
}

/* What the heap held at moments, by stack; the last of them may have no sum. */
static void add_heap(struct said *c)
{
    const uint64_t all[SND_HEAP_PROCESS_WORDS] = {
        1 + draw(c, 9), draw_size(c), draw_size(c), draw(c, 4), draw(c, 2), 0, draw(c, 3), 0
    };

    synth_tally(c->s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
    for (uint32_t i = 0; i < STACKS; i++) {
        const uint64_t own[SND_HEAP_WORDS] = { 1 + draw(c, 3), draw_size(c), draw(c, 2),
                                               draw_size(c),   draw(c, 2),   draw(c, 2),
                                               draw_size(c),   draw(c, 2) };
        synth_tally(c->s, SND_TALLY_HEAP, c->stacks[i], 0, own, SND_HEAP_WORDS);
    }
    for (uint32_t moment = 0, end = (uint32_t)draw(c, 5); moment < end; moment++) {
        for (uint32_t i = 0; i < STACKS; i++) {
            const uint64_t held[SND_HEAP_HELD_WORDS] = { draw(c, 3), draw_size(c) };
            if (draw(c, 2))
                synth_tally(c->s, SND_TALLY_HEAP_HELD, c->stacks[i], moment * 2, held,
                            SND_HEAP_HELD_WORDS);
        }
        uint64_t       at = 1000 * (moment + draw(c, 2)), since = draw(c, 2) ? at : 0;
        const uint64_t sum[SND_HEAP_MOMENT_WORDS] = { 1, draw_size(c), draw_size(c),
                                                      synth_raw_clock(c->s, at),
                                                      since ? synth_raw_clock(c->s, since) : 0 };
        if (draw(c, 4) != 0)
            synth_tally(c->s, SND_TALLY_HEAP_MOMENT, 0, moment * 2, sum, SND_HEAP_MOMENT_WORDS);
    }
}

void make_said(const char *path, uint64_t n)
{
    struct said c = { .s = synth_new(path, NULL), .draws = DRAWS_OF(n) };

    c.thread = synth_thread(c.s, "main", 0);
    c.now = 1000;
    for (uint32_t i = 0; i < STACKS; i++)
        c.stacks[i] = synth_stack(c.s, i < 2 ? 0 : c.stacks[i - 2],
                                  python_frame(c.s, "work", 1, "prog.py", 1 + 9 * i));
    synth_meta(c.s, "command", "python prog.py");
    synth_meta(c.s, "torch.thread 4242", "1");
    if (n % 5 != 0)
        tell_model(&c);
    if (n % 2) {
        tell_layers(&c);
        run_layers(&c);
    }
    if (n / 2 % 2)
        tell_graph(&c);
    if (n / 4 % 2)
        tell_memory(&c);
    if (n % 3 == 0)
        tell_counters(&c);
    if (n % 3 == 1)
        add_heap(&c);
    run_model(&c);
    synth_close(c.s, draw(&c, 6) != 0);
}

DRAWS_END;
