/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/plan/plan_search.c against trying everything, and pipe/plan/plan_files.c. */
#include <math.h>

#include "base/text/buf.h"
#include "pipe/plan/plan.h"
#include "pipe/yaml/yaml.h"
#include "scratch.h"
#include "turns.h"

#define MB 1048576.0

static struct sonde_error err;
static uint64_t           seed = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % below);
}

/* ------------------------------------------------------- trying everything */

struct trial {
    const struct snd_pipeline *p;
    uint32_t                   used[8];
    double                     best;
    uint32_t                   fewest;
};

/* The costs, written down a second time and in another way. */
static double stage_cost(const struct snd_pipeline *p, uint32_t type, uint32_t first, uint32_t last)
{
    double time = 0, bytes = 0, item = (double)p->value_bytes * (double)p->batch_size;
    double in = (first == 1 ? p->parameters_in : p->parameters_out[first - 2]) * item;
    double out = p->parameters_out[last - 1] * item;

    for (uint32_t i = first; i <= last; i++) {
        time += p->types[type].time_s[i - 1];
        bytes += p->memory_mb[i - 1] * MB;
    }
    bytes += in * (first == 1 ? 1 : 1 + (double)p->buffers_in) + out * (1 + (double)p->buffers_out);
    return bytes < p->types[type].memory_mb * MB ? time : INFINITY;
}

static double send_cost(const struct snd_pipeline *p, uint32_t from, uint32_t to, uint32_t layer)
{
    double bits = p->parameters_out[layer - 1] * (double)p->value_bytes * (double)p->batch_size * 8;

    return bits / (fmin(p->types[from].bandwidth_mbps, p->types[to].bandwidth_mbps) * MB);
}

static void try_all(struct trial *t, uint32_t done, uint32_t last_type, uint32_t stages,
                    double worst)
{
    const struct snd_pipeline *p = t->p;

    if (done == p->layers) {
        if (worst < t->best || (worst == t->best && stages < t->fewest)) {
            t->best = worst;
            t->fewest = stages;
        }
        return;
    }
    for (uint32_t type = 0; type < p->type_count; type++) {
        if (t->used[type] == p->types[type].count)
            continue;
        double with = done ? fmax(worst, send_cost(p, last_type, type, done)) : worst;
        t->used[type]++;
        for (uint32_t end = done + 1; end <= p->layers; end++)
            try_all(t, end, type, stages + 1, fmax(with, stage_cost(p, type, done + 1, end)));
        t->used[type]--;
    }
}

/* ------------------------------------------------------------ the plan held */

/* Every layer once, in order, each host once, and the cost that it claims. */
static void check_plan(const struct snd_pipeline *p, const struct snd_plan *plan)
{
    double worst = 0;

    assert_true(plan->count > 0);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct snd_stage *stage = &plan->stages[i];
        assert_int_equal(stage->first, i == 0 ? 1 : plan->stages[i - 1].last + 1);
        assert_true(stage->last >= stage->first);
        assert_true(stage->host < p->types[stage->type].count);
        for (uint32_t k = 0; k < i; k++)
            assert_false(plan->stages[k].type == stage->type &&
                         plan->stages[k].host == stage->host);
        worst = fmax(worst, stage_cost(p, stage->type, stage->first, stage->last));
        if (i > 0)
            worst = fmax(worst,
                         send_cost(p, plan->stages[i - 1].type, stage->type, stage->first - 1));
    }
    assert_int_equal(plan->stages[plan->count - 1].last, p->layers);
    assert_true(isfinite(worst));
    assert_true(fabs(worst - plan->period_s) <= 1e-12 * worst);
    const struct snd_stage *slowest = &plan->stages[plan->slowest];
    assert_true(plan->period_s == (plan->is_send ? slowest->send_s : slowest->compute_s));
}

/* -------------------------------------------------------------- made up ones */

#define LAYERS 12
#define TYPES 6
struct made {
    struct snd_pipeline    pipeline;
    struct snd_device_type types[TYPES];
    double                 memory[LAYERS], out[LAYERS], time[TYPES][LAYERS];
};

static const char *host_names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };

/* Times are multiples of an eighth: sums are exact, and equal costs are frequent. */
static void make_up(struct made *m, uint32_t layers, uint32_t types, uint32_t most_hosts)
{
    memset(m, 0, sizeof *m);
    for (uint32_t i = 0; i < layers; i++) {
        m->memory[i] = draw(40) / 8.0;
        m->out[i] = 1 + draw(20) * 4096.0;
    }
    for (uint32_t t = 0; t < types; t++) {
        uint32_t speed = 1 + draw(4);
        for (uint32_t i = 0; i < layers; i++)
            m->time[t][i] = speed * (1 + draw(8)) / 8.0;
        if (t > 0 && draw(4) == 0) /* alike in times; perhaps in everything */
            memcpy(m->time[t], m->time[t - 1], sizeof m->time[t]);
        m->types[t] = (struct snd_device_type){
            .name = "type",
            .memory_mb = draw(5) ? 4 + draw(40) : 1,
            .bandwidth_mbps = draw(8) ? 1 + draw(3) : 0,
            .time_s = m->time[t],
            .hosts = host_names,
            .count = draw(most_hosts + 1),
        };
        if (t > 0 && draw(3) == 0)
            m->types[t].memory_mb = m->types[t - 1].memory_mb;
        if (t > 0 && draw(3) == 0)
            m->types[t].bandwidth_mbps = m->types[t - 1].bandwidth_mbps;
    }
    m->pipeline = (struct snd_pipeline){
        .layers = layers,
        .memory_mb = m->memory,
        .parameters_out = m->out,
        .parameters_in = draw(100000),
        .value_bytes = draw(2) ? 4 : 2,
        .batch_size = 1 + draw(4),
        .buffers_in = draw(3),
        .buffers_out = draw(3),
        .types = m->types,
        .type_count = types,
    };
}

static void finds_what_trying_everything_finds(void **state)
{
    uint32_t rounds = 1500 / turns_one_of(), possible = 0, sends = 0;

    (void)state;
    for (uint32_t round = 0; round < rounds; round++) {
        struct made     m;
        struct snd_plan plan;
        make_up(&m, 1 + draw(7), 1 + draw(4), 2);
        struct trial      t = { .p = &m.pipeline, .best = INFINITY };
        enum sonde_status status = snd_plan_find(&m.pipeline, &plan, &err);
        try_all(&t, 0, 0, 0, 0);
        if (isinf(t.best)) {
            assert_int_equal(status, SONDE_E_STATE);
            assert_int_equal(plan.count, 0);
            continue;
        }
        if (status != SONDE_OK)
            fail_msg("round %u: %s", round, err.message);
        check_plan(&m.pipeline, &plan);
        if (fabs(plan.period_s - t.best) > 1e-12 * t.best || plan.count != t.fewest)
            fail_msg("round %u: %.17g in %u stages, not %.17g in %u", round, plan.period_s,
                     plan.count, t.best, t.fewest);
        possible++;
        sends += plan.is_send;
        snd_plan_release(&plan);
    }
    /* The made up ones are of every sort. */
    assert_true(possible > rounds / 3 && possible < rounds);
    assert_true(sends > rounds / 100);
}

/* 128 layers on 32 devices of four types; 48 on 12 that all differ. */
static void takes_large_ones(void **state)
{
    static double          memory[128], out[128], time[12][128];
    struct snd_device_type types[12];
    struct snd_plan        plan;
    static const char     *hosts[8] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    struct {
        uint32_t layers, types, hosts;
    } sizes[] = { { 128, 4, 8 }, { 48, 12, 1 } };

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < sizes[n].layers; i++) {
            memory[i] = 20 + draw(10);
            out[i] = 150000 * (1 + draw(4));
            for (uint32_t t = 0; t < sizes[n].types; t++)
                time[t][i] = (1 + t) * (1 + draw(1000) / 1000.0);
        }
        for (uint32_t t = 0; t < sizes[n].types; t++)
            types[t] =
                (struct snd_device_type){ "type", 2048, 1000, time[t], hosts, sizes[n].hosts };
        struct snd_pipeline p = { sizes[n].layers, memory,        out, 150528, 4, 8, 2, 2,
                                  types,           sizes[n].types };
        assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_OK);
        check_plan(&p, &plan);
        snd_plan_release(&plan);
    }
}

static void says_why_there_is_no_plan(void **state)
{
    struct made     m;
    struct snd_plan plan;

    (void)state;
    make_up(&m, 3, 1, 1);
    m.types[0].count = 1;
    m.types[0].memory_mb = 100;
    m.memory[1] = 101;
    assert_int_equal(snd_plan_find(&m.pipeline, &plan, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "layer 2 alone needs 10"));
    m.memory[0] = m.memory[1] = m.memory[2] = 40;
    assert_int_equal(snd_plan_find(&m.pipeline, &plan, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "the layers need 120 MB besides buffers, the devices have "
                                        "100 MB in all"));
    m.types[0].count = 0;
    assert_int_equal(snd_plan_find(&m.pipeline, &plan, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "there is no device"));
}

/* PipeEdge's rule: what is needed is less than what is there. */
static void does_not_fill_a_device_to_the_last_byte(void **state)
{
    double                 memory[] = { 2 }, out[] = { 0 }, time[] = { 1 };
    struct snd_device_type type = { "type", 3, 1, time, host_names, 1 };
    struct snd_pipeline    p = { 1, memory, out, 262144, 4, 1, 2, 2, &type, 1 };
    struct snd_plan        plan;

    (void)state;
    assert_true(snd_stage_memory_mb(&p, 1, 1) == 3);
    assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_E_STATE);
    type.memory_mb = 3.000001;
    assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_OK);
    snd_plan_release(&plan);
}

static void refuses_too_many_combinations(void **state)
{
    static double          time[40][8], memory[8], out[8];
    struct snd_device_type types[40];
    struct snd_plan        plan;

    (void)state;
    for (uint32_t t = 0; t < 40; t++) {
        time[t][0] = t;
        types[t] = (struct snd_device_type){ "type", 100, 1, time[t], host_names, 1 };
    }
    struct snd_pipeline p = { 8, memory, out, 1, 4, 1, 2, 2, types, 40 };
    assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_E_LIMIT);
    for (uint32_t t = 0; t < 40; t++)
        time[t][0] = 1; /* all alike: one kind of forty, of which eight can be used */
    assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_OK);
    snd_plan_release(&plan);
}

/* ------------------------------------------------------------------- files */

static void write_text(const char *name, const char *text)
{
    scratch_save(scratch_path(name), text, strlen(text));
}

static enum sonde_status load(const char *models, const char *types, const char *devices,
                              struct snd_arena *arena, struct snd_pipeline *pipeline,
                              struct sonde_buffer *notes)
{
    char paths[3][256];

    write_text("m.yml", models);
    write_text("t.yml", types);
    write_text("d.yml", devices);
    snprintf(paths[0], sizeof paths[0], "%s", scratch_path("m.yml"));
    snprintf(paths[1], sizeof paths[1], "%s", scratch_path("t.yml"));
    snprintf(paths[2], sizeof paths[2], "%s", scratch_path("d.yml"));
    struct snd_plan_options options = { paths[0],        paths[1], paths[2], "toy",
                                        "torch.float16", 2,        2,        2 };
    return snd_pipeline_load(&options, arena, pipeline, notes, &err);
}

#define MODEL "toy: {layers: 2, mem_MB: [1, 2.5], parameters_in: 10, parameters_out: [5, 6]}\n"
#define TYPE(name, times)                                                            \
    name ": {bw_Mbps: 8, mem_MB: 64, model_profiles: {toy: [{batch_size: 2, dtype: " \
         "torch.float16, time_s: [" times "]}]}}\n"

static void reads_a_pipeline(void **state)
{
    struct snd_arena    arena = SND_ARENA_INIT;
    struct snd_pipeline p;
    struct sonde_buffer notes = { 0 }, text = { 0 };
    struct snd_plan     plan;

    (void)state;
    if (!snd_yaml_works())
        skip();
    if (load(MODEL, TYPE("fast", "1, 2") TYPE("odd", "1, 2") "none: {}\n",
             "fast: [10.0.0.1, 7]\nnone: [x]\nunknown: [y]\nodd: []\n", &arena, &p,
             &notes) != SONDE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(p.layers, 2);
    assert_int_equal(p.value_bytes, 2);
    assert_int_equal(p.type_count, 1);
    assert_int_equal(p.types[0].count, 2);
    assert_true(p.memory_mb[1] == 2.5 && p.parameters_out[1] == 6 && p.types[0].time_s[1] == 2);
    assert_true(snd_layer_bytes(&p, 0) == 40 && snd_layer_bytes(&p, 2) == 24);
    assert_non_null(strstr(notes.bytes, "hosts of type none are left out"));
    assert_non_null(strstr(notes.bytes, "has no such type"));
    assert_int_equal(snd_plan_find(&p, &plan, &err), SONDE_OK);
    assert_int_equal(snd_plan_write(&p, &plan, false, &text, &err), SONDE_OK);
    assert_string_equal(text.bytes, "- 10.0.0.1: [1, 1]\n- '7': [2, 2]\n"
                                    "# slowest: 7, layers 2 to 2, 2.000 s for a batch of 2: 1.000 "
                                    "items/s\n# hosts: 2 of 2\n");
    snd_plan_release(&plan);
    sonde_buffer_release(&text);
    sonde_buffer_release(&notes);
    snd_arena_release(&arena);
}

/* 1, 0x1 and 1.0 are one key to YAML, '1' is another. */
static void types_may_be_numbers(void **state)
{
    struct snd_arena    arena = SND_ARENA_INIT;
    struct snd_pipeline p;
    struct sonde_buffer notes = { 0 };

    (void)state;
    if (!snd_yaml_works())
        skip();
    if (load(MODEL, TYPE("1", "1, 2") TYPE("'2'", "1, 2"), "0x1: [7]\n2: [x]\n", &arena, &p,
             &notes) != SONDE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(p.type_count, 1);
    assert_string_equal(p.types[0].hosts[0], "7");
    assert_non_null(strstr(notes.bytes, "hosts of type 2 are left out"));
    sonde_buffer_release(&notes);
    snd_arena_release(&arena);
}

static void bounds_the_hosts(void **state)
{
    struct snd_arena    arena = SND_ARENA_INIT;
    struct snd_pipeline p;
    struct sonde_buffer notes = { 0 }, devices = { 0 };

    (void)state;
    if (!snd_yaml_works())
        skip();
    snd_buf_text(&devices, "fast:\n");
    for (unsigned i = 0; i < 65536; i++)
        snd_buf_format(&devices, "- h%u\n", i);
    if (load(MODEL, TYPE("fast", "1, 2"), devices.bytes, &arena, &p, &notes) != SONDE_OK)
        fail_msg("%s", err.message);
    assert_int_equal(p.types[0].count, 65536);
    snd_buf_text(&devices, "- one-more\n");
    assert_int_equal(load(MODEL, TYPE("fast", "1, 2"), devices.bytes, &arena, &p, &notes),
                     SONDE_E_LIMIT);
    assert_non_null(strstr(err.message, "line 65538: more than 65536 hosts"));
    sonde_buffer_release(&devices);
    sonde_buffer_release(&notes);
    snd_arena_release(&arena);
}

static void refuses_files_that_do_not_fit(void **state)
{
    static const struct {
        const char *models, *types, *devices, *says;
    } cases[] = {
        { "x: 1\n", "{}\n", "{}\n", "has no model toy" },
        { "toy: 1\n", "{}\n", "{}\n", "toy has no layers" },
        { "toy: {layers: 2, mem_MB: [1]}\n", "{}\n", "{}\n",
          "mem_MB of toy has 1 numbers for 2 layers" },
        { "toy: {layers: 2, mem_MB: [1, -1]}\n", "{}\n", "{}\n",
          "mem_MB of toy is the number '-1', not a number >= 0" },
        { "toy: {layers: 2, mem_MB: [1, 1], parameters_in: 1, parameters_out: [1, 1, 1]}\n", "{}\n",
          "{}\n", "parameters_out of toy has 3 numbers for 2 layers" },
        { "toy: {layers: 2, mem_MB: [1, 1], parameters_in: 1, parameters_out: []}\n", "{}\n",
          "{}\n", "parameters_out of toy has 0 numbers for 2 layers" },
        { MODEL, "{}\n", "{}\n", "no host of" },
        { MODEL, TYPE("fast", "1"), "fast: [a]\n", "time_s of fast has 1 numbers for 2 layers" },
        { MODEL, TYPE("fast", "1, 1e-05"), "fast: [a]\n",
          "the text '1e-05', not a number >= 0; YAML 1.1" },
        { MODEL, TYPE("fast", "1, 2"), "fast: [a, a]\n", "duplicate host a" },
        { MODEL, TYPE("fast", "1, 2") TYPE("odd", "1, 2"), "fast: [a]\nodd: [b, a]\n",
          "line 2: duplicate host a" },
        { MODEL, TYPE("fast", "1, 2"), "fast: [[a]]\n", "is a list, not a name of a host" },
        { MODEL, TYPE("fast", "1, 2"), "fast: a\n", "the text 'a', not a list of hosts" },
    };

    (void)state;
    if (!snd_yaml_works())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_arena    arena = SND_ARENA_INIT;
        struct sonde_buffer notes = { 0 };
        struct snd_pipeline p;
        assert_int_not_equal(load(cases[i].models, cases[i].types, cases[i].devices, &arena, &p,
                                  &notes),
                             SONDE_OK);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
        snd_arena_release(&arena);
        sonde_buffer_release(&notes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_trying_everything_finds),
        cmocka_unit_test(takes_large_ones),
        cmocka_unit_test(says_why_there_is_no_plan),
        cmocka_unit_test(does_not_fill_a_device_to_the_last_byte),
        cmocka_unit_test(refuses_too_many_combinations),
        cmocka_unit_test(reads_a_pipeline),
        cmocka_unit_test(types_may_be_numbers),
        cmocka_unit_test(bounds_the_hosts),
        cmocka_unit_test(refuses_files_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
