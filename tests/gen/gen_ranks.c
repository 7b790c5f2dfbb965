/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_ranks.c - job: four ranks; N % 10 says what is wrong with rank 2, N / 10 how many steps there are (12).
 * wide: N ranks with 100 steps. layers_job: four ranks, N steps of a model of 16 layers as torch runs it.
 *
 * A step is data loading (100 us), an operator (500 us, each rank up to 40 us more), and an all_reduce of 4 MB: its call
 * takes 20 us, the work of gloo's thread ends 100 us after the last rank has called, and then all go on.
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "synth.h"

enum { JITTERS = 4, SLOW_RANK = 2 };
enum wrong {
    EVEN,
    COMPUTE,
    LOADING,
    HOST,
    COMMUNICATION,
    KILLED,
    MISMATCH,
    OCCASIONAL,
    UNNUMBERED,
    CLOCKS /* nothing; but the second host's clock is 2.5 s ahead */
};

static const char describes[] =
    "{\"Collective name\": \"allreduce_\", \"Group size\": %u, \"In msg "
    "nelems\": %u, \"Out msg nelems\": %u, "
    "\"Process Group Description\": \"default_pg\", \"Process Group "
    "Name\": \"0\", \"Rank\": %u, \"dtype\": \"Float\"}";

struct rank {
    struct synth *s;
    uint32_t      main, gloo;
    uint32_t      loading, mm, call, work, said, said_else;
};

/* The same numbers in every run, none like its neighbour. */
static uint64_t jitter_ns(uint64_t step, uint32_t rank)
{
    uint64_t x = (step * JITTERS + rank + 1) * 0x9E3779B97F4A7C15u;

    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    return (x >> 33) % 40000;
}

static void begin_scoped(struct rank *r, uint64_t ns, uint32_t name, uint64_t scope)
{
    synth_begin(r->s, r->main, ns, name, 0);
    synth_attr(r->s, r->main, SND_ATTR_SCOPE, scope);
}

static struct rank make_rank(const char *path, uint32_t number, uint32_t count, enum wrong wrong)
{
    bool                 is_ahead = wrong == CLOCKS && number >= 2;
    struct synth_options options = { .pid = 5000 + number,
                                     .parent_pid = 4999,
                                     .rank = number,
                                     .world_size = count,
                                     .host = number < 2 ? "node0" : "node1",
                                     .boot_id = is_ahead ? 0xb008 : 0,
                                     .start_ns = number * 1000 + (is_ahead ? 2500000000u : 0) };
    char                 file[1024], said[512];

    snprintf(file, sizeof file, "%s/rank%u.sonde", path, number);
    struct rank r = { .s = synth_new(file, &options) };
    snprintf(said, sizeof said,
             "{\"rank\": %u, \"local_rank\": %u, \"world_size\": %u, \"source\": \"RANK\", "
             "\"job\": \"j\"}",
             number, number % 2, count);
    synth_meta(r.s, "job.rank", said);
    snprintf(said, sizeof said,
             "{\"description\": \"default_pg\", \"size\": %u, \"backend\": \"gloo\"}", count);
    synth_meta(r.s, "job.group 0", said);
    r.main = synth_thread(r.s, "main", 0);
    r.gloo = synth_thread(r.s, "pt_gloo_runloop", 0);
    r.loading = synth_string(r.s, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    r.mm = synth_string(r.s, "aten::mm");
    r.call = synth_string(r.s, "c10d::allreduce_");
    r.work = synth_string(r.s, "gloo:all_reduce");
    snprintf(said, sizeof said, describes, count, 1000000u, 1000000u, number);
    r.said = synth_string(r.s, said);
    snprintf(said, sizeof said, describes, count, 500000u, 500000u, number);
    r.said_else = synth_string(r.s, said);
    return r;
}

static void say_collective(struct rank *r, uint32_t thread, uint64_t step, enum wrong wrong,
                           uint32_t number)
{
    bool other = wrong == MISMATCH && number == SLOW_RANK && step == 3;

    synth_attr(r->s, thread, SND_ATTR_COLLECTIVE, other ? r->said_else : r->said);
    if (wrong != UNNUMBERED)
        synth_attr(r->s, thread, SND_ATTR_COLLECTIVE_SEQUENCE, step + 7);
}

/* Up to the call of the collective, which it returns: when. */
static uint64_t run_to_call(struct rank *r, uint64_t from, uint64_t step, uint32_t number,
                            enum wrong wrong)
{
    bool     slow = number == SLOW_RANK;
    uint64_t late = wrong == OCCASIONAL && step % 3 != 0 ? 0 : 400000;
    uint64_t at = from;

    synth_step(r->s, r->main, at, step);
    begin_scoped(r, at + 1000, r->loading, 8);
    at += 100000 + (slow && wrong == LOADING ? late : 0);
    synth_end(r->s, r->main, at);
    begin_scoped(r, at + 1000, r->mm, 1);
    at += 500000 + jitter_ns(step, number) +
          (slow && (wrong == COMPUTE || wrong == OCCASIONAL) ? late : 0);
    synth_end(r->s, r->main, at);
    return at + 2000 + (slow && wrong == HOST ? late : 0);
}

/* The collective of a step, from the calls on; gloo's threads end it, and then all go on. */
static void communicate(struct rank *r, uint32_t number, uint64_t step, enum wrong wrong,
                        uint64_t own, uint64_t last, bool gone)
{
    uint64_t late = number == SLOW_RANK && wrong == COMMUNICATION ? 400000 : 0;

    synth_begin(r->s, r->main, own, r->call, 0);
    synth_attr(r->s, r->main, SND_ATTR_SCOPE, 1);
    say_collective(r, r->main, step, wrong, number);
    synth_end(r->s, r->main, own + 20000);
    synth_begin(r->s, r->gloo, own + 5000 + late, r->work, 0);
    synth_attr(r->s, r->gloo, SND_ATTR_SCOPE, 8);
    synth_attr(r->s, r->gloo, SND_ATTR_ASYNC, 1);
    say_collective(r, r->gloo, step, wrong, number);
    if (!gone)
        synth_end(r->s, r->gloo, last);
}

static void write_job(const char *path, uint32_t count, uint64_t steps, enum wrong wrong)
{
    uint64_t    *at = calloc(count, sizeof *at), *calls = calloc(count, sizeof *calls);
    struct rank *ranks = calloc(count, sizeof *ranks);

    if (!at || !calls || !ranks)
        abort();
    make_folder(path);
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = make_rank(path, i, count, wrong);
        /* The same moment: files begin one after the other. */
        at[i] = 10000 + (uint64_t)(count > 4 ? count : 0) * 1000 - (uint64_t)i * 1000;
    }
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t latest = 0;
        bool     gone = wrong == KILLED && step == steps - 1;
        for (uint32_t i = 0; i < count; i++) {
            if (gone && i == SLOW_RANK)
                continue;
            calls[i] = run_to_call(&ranks[i], at[i], step, i, wrong) + (uint64_t)i * 1000;
            latest = calls[i] > latest ? calls[i] : latest;
        }
        for (uint32_t i = 0; i < count; i++) {
            uint64_t last = latest + 100000 - (uint64_t)i * 1000 +
                            (wrong == COMMUNICATION ? 400000 : 0);
            if (gone && i == SLOW_RANK)
                continue;
            communicate(&ranks[i], i, step, wrong, calls[i] - (uint64_t)i * 1000, last, gone);
            at[i] = last + 5000;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        synth_close(ranks[i].s, wrong != KILLED);
    free(at);
    free(calls);
    free(ranks);
}

void make_job(const char *path, uint64_t n)
{
    write_job(path, 4, n / 10 ? n / 10 : 12, (enum wrong)(n % 10));
}

void make_wide(const char *path, uint64_t n)
{
    write_job(path, (uint32_t)n, 100, EVEN);
}

/* ---------------------------------------------------------------- training */

enum { LAYERS = 16, BUCKETS = 2, CALLS_MAX = 64, INSIDE_NS = 700, LEAF_NS = 2500 };

/* Operators as they lie in each other, name(inside,inside): a layer forward and backward. */
static const char forward[] = "aten::linear(aten::t(aten::transpose(aten::as_strided)),"
                              "aten::addmm(aten::expand(aten::as_strided),aten::copy_,"
                              "aten::resolve_conj,aten::resolve_conj)),aten::relu(aten::clamp_min)";
static const char backward[] =
    "autograd::engine::evaluate_function: ReluBackward0(ReluBackward0(aten::threshold_backward)),"
    "autograd::engine::evaluate_function: AddmmBackward0(AddmmBackward0("
    "aten::t(aten::transpose(aten::as_strided)),aten::mm(aten::resolve_conj,aten::resolve_conj),"
    "aten::t(aten::transpose(aten::as_strided)),aten::mm(aten::resolve_conj,aten::resolve_conj)),"
    "aten::sum,aten::view),autograd::engine::evaluate_function: torch::autograd::AccumulateGrad("
    "torch::autograd::AccumulateGrad(aten::detach(detach)))";
static const char updates[] = "Optimizer.step#SGD.step(aten::_foreach_add_,aten::_foreach_mul_)";

struct trainer {
    struct rank rank;
    uint32_t    autograd;
    char        names[CALLS_MAX][64];
    uint32_t    calls[CALLS_MAX], count;
};

static bool ends_with(const char *text, const char *end)
{
    return strlen(text) >= strlen(end) && strcmp(text + strlen(text) - strlen(end), end) == 0;
}

/* The call record of an operator, by its name. */
static uint32_t call_of(struct trainer *t, const char *name)
{
    uint32_t i = 0;

    while (i < t->count && strcmp(t->names[i], name) != 0)
        i++;
    if (i == CALLS_MAX)
        abort();
    if (i == t->count) {
        bool is_function = ends_with(name, "Backward0") && !strchr(name, ':');
        snprintf(t->names[i], sizeof t->names[i], "%s", name);
        t->calls[i] = synth_call(t->rank.s,
                                 &(struct snd_call_record){ .name = synth_string(t->rank.s, name),
                                                            .scope = is_function ? 2 : 1 });
        t->count++;
    }
    return t->calls[i];
}

/* Operators of `spec`, from `at` on; returns when they are over. */
static uint64_t run_operators(struct trainer *t, uint32_t thread, uint64_t at, const char *spec)
{
    char name[64];

    while (*spec) {
        size_t length = strcspn(spec, "(,)");
        if (length > 0) {
            bool has_inside = spec[length] == '(';
            snprintf(name, sizeof name, "%.*s", (int)length, spec);
            synth_call_range(t->rank.s, thread, at, call_of(t, name), has_inside ? 0 : LEAF_NS);
            at += has_inside ? INSIDE_NS : LEAF_NS + INSIDE_NS;
        }
        spec += length;
        if (*spec == ')') {
            synth_end(t->rank.s, thread, at);
            at += INSIDE_NS;
        }
        spec += *spec != 0;
    }
    return at;
}

/* Up to the end of the backward pass, whose buckets it calls for. */
static uint64_t run_training_step(struct trainer *t, uint32_t number, uint64_t at, uint64_t step)
{
    struct rank *r = &t->rank;

    synth_step(r->s, r->main, at, step);
    begin_scoped(r, at + 1000, r->loading, 8);
    at += 50000 + jitter_ns(step, number);
    synth_end(r->s, r->main, at);
    for (int layer = 0; layer < LAYERS; layer++)
        at = run_operators(t, r->main, at + INSIDE_NS, forward);
    for (int layer = 1; layer <= LAYERS; layer++) {
        at = run_operators(t, t->autograd, at + INSIDE_NS, backward);
        if (layer % (LAYERS / BUCKETS) != 0)
            continue;
        uint64_t sequence = BUCKETS * step + (uint64_t)(layer / (LAYERS / BUCKETS));
        synth_begin(r->s, t->autograd, at, r->call, 0);
        synth_attr(r->s, t->autograd, SND_ATTR_SCOPE, 1);
        say_collective(r, t->autograd, sequence, EVEN, number);
        synth_end(r->s, t->autograd, at + 20000);
        synth_begin(r->s, r->gloo, at + 5000, r->work, 0);
        synth_attr(r->s, r->gloo, SND_ATTR_SCOPE, 8);
        synth_attr(r->s, r->gloo, SND_ATTR_ASYNC, 1);
        say_collective(r, r->gloo, sequence, EVEN, number);
        at += 21000;
        synth_end(r->s, r->gloo, at + 40000); /* all have called by then */
    }
    return run_operators(t, r->main, at + 45000, updates);
}

void make_layers_job(const char *path, uint64_t n)
{
    static struct trainer trainers[4];
    uint64_t              at[4];

    make_folder(path);
    for (uint32_t i = 0; i < 4; i++) {
        trainers[i] = (struct trainer){ .rank = make_rank(path, i, 4, EVEN) };
        trainers[i].autograd = synth_thread(trainers[i].rank.s, "pt_autograd_0", 0);
        at[i] = 10000 - (uint64_t)i * 1000; /* the same moment: files begin one after the other */
    }
    for (uint64_t step = 0; step < n; step++) {
        uint64_t latest = 0;
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t over = run_training_step(&trainers[i], i, at[i], step) + (uint64_t)i * 1000;
            latest = over > latest ? over : latest;
        }
        for (uint32_t i = 0; i < 4; i++)
            at[i] = latest - (uint64_t)i * 1000;
    }
    for (uint32_t i = 0; i < 4; i++)
        synth_close(trainers[i].rank.s, true);
}
