/* SPDX-License-Identifier: Apache-2.0 */
/* read/said/trace_facts.c: facts that a trace has as texts of JSON: what is read of them, and what cannot be. */
#include "format/fields.h"
#include "read/reader.h"
#include "read/said/trace_facts.h"
#include "scratch.h"

static struct sonde_trace *open_with(const char *const (*metas)[2], size_t count)
{
    struct synth *s = synth_new(scratch_path("facts"), NULL);

    for (size_t i = 0; i < count; i++)
        synth_meta(s, metas[i][0], metas[i][1]);
    synth_close(s, true);
    return scratch_open(scratch_path("facts"));
}

static uint32_t count_facts(const struct sonde_trace *trace, uint32_t kind)
{
    uint32_t at = 0, count = 0;

    while (snd_fact_next(trace, 0, kind, &at))
        count++;
    return count;
}

static const struct snd_fact *first_fact(const struct sonde_trace *trace, uint32_t kind)
{
    uint32_t at = 0;

    return snd_fact_next(trace, 0, kind, &at);
}

/* A node has a number; what is none is passed over. */
static void nodes_have_numbers(void **state)
{
    static const char *const metas[][2] = {
        { "model.node 3", "{\"name\": \"third\"}" },
        { "model.node x", "{\"name\": \"none\"}" },
        { "model.node 4x", "{\"name\": \"none\"}" },
        { "model.node 4294967295", "{\"name\": \"none\"}" },
        { "model.node 4294967294", "{\"name\": \"last\", \"name\": \"again\"}" },
        { "model.node 5", "no JSON" },
    };
    struct sonde_trace *trace = open_with(metas, 6);
    uint32_t            at = 0, named = 0;

    (void)state;
    for (const struct snd_fact *f; (f = snd_fact_next(trace, 0, SND_FACT_OF_NODE, &at));) {
        struct sonde_text name = snd_fact_text(f, SND_FIELD_NODE_NAME);
        assert_true(f->number == 3 || f->number == 4294967294 || f->number == 5);
        if (f->number == 3)
            assert_true(text_is(name, "third"));
        else if (f->number == 4294967294)
            assert_true(text_is(name, "last")); /* the first of a name counts */
        else
            assert_int_equal(name.length, 0);
        named += name.length > 0;
    }
    assert_int_equal(named, 2);
    sonde_trace_close(trace);
}

/* The machine is one text in older traces: each part of it is a field. */
static void machines(void **state)
{
    static const char *const whole[][2] = {
        { "model.machine", "{\"system\": {\"system\": \"Linux\", \"node\": \"n\", \"release\": "
                           "\"6.1\"}, \"cpu\": {\"model\": "
                           "\"C\", \"architecture\": \"x86_64\", \"physical\": 4, \"total\": 8, "
                           "\"hertz\": 3000000000}, "
                           "\"memory\": {\"total\": 100, \"used\": 60, \"available\": 40}, "
                           "\"gpus\": [{\"name\": \"G\", "
                           "\"memory\": 7}, {\"name\": \"H\"}]}" },
    };
    static const char *const no_json[][2] = { { "model.machine", "{\"cpu\": " } };
    static const char *const no_gpus[][2] = { { "model.machine", "{\"cpu\": {\"total\": 2}}" } };
    static const struct {
        uint16_t    field;
        const char *text;
        int64_t     number;
    } fields[] = {
        { SND_FIELD_MACHINE_SYSTEM, "Linux", 0 },
        { SND_FIELD_MACHINE_NODE, "n", 0 },
        { SND_FIELD_MACHINE_RELEASE, "6.1", 0 },
        { SND_FIELD_MACHINE_CPU, "C", 0 },
        { SND_FIELD_MACHINE_ARCHITECTURE, "x86_64", 0 },
        { SND_FIELD_MACHINE_CORES, NULL, 4 },
        { SND_FIELD_MACHINE_CPUS, NULL, 8 },
        { SND_FIELD_MACHINE_MEMORY_BYTES, NULL, 100 },
        { SND_FIELD_MACHINE_USED_BYTES, NULL, 60 },
        { SND_FIELD_MACHINE_AVAILABLE_BYTES, NULL, 40 },
        { SND_FIELD_MACHINE_GPU, "H", 0 }, /* the last of several */
        { SND_FIELD_MACHINE_GPU_BYTES, NULL, 7 },
    };
    struct sonde_trace    *trace = open_with(whole, 1);
    const struct snd_fact *fact = first_fact(trace, SND_FACT_OF_MACHINE);
    uint32_t               gpus = 0;

    (void)state;
    assert_non_null(fact);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].text)
            assert_true(text_is(snd_fact_text(fact, fields[i].field), fields[i].text));
        else
            assert_int_equal(snd_fact_number(fact, fields[i].field, -1), fields[i].number);
    }
    for (uint32_t i = 0; i < fact->count; i++)
        gpus += fact->values[i].field == SND_FIELD_MACHINE_GPU;
    assert_int_equal(gpus, 2);
    sonde_trace_close(trace);
    trace = open_with(no_json, 1);
    fact = first_fact(trace, SND_FACT_OF_MACHINE);
    assert_non_null(fact);
    assert_int_equal(fact->count, 1); /* the text itself */
    sonde_trace_close(trace);
    trace = open_with(no_gpus, 1);
    assert_int_equal(snd_fact_number(first_fact(trace, SND_FACT_OF_MACHINE), SND_FIELD_MACHINE_CPUS,
                                     -1),
                     2);
    sonde_trace_close(trace);
    trace = open_with(NULL, 0);
    assert_int_equal(count_facts(trace, SND_FACT_OF_MACHINE), 0);
    assert_int_equal(count_facts(trace, SND_FACT_OF_FAILURE), 0);
    sonde_trace_close(trace);
}

/* A list is as many values of one field; a key that is not known is left out. */
static void lists_and_unknown_keys(void **state)
{
    static const char *const metas[][2] = {
        { "job.group 7",
          "{\"size\": 2, \"ranks\": [4, 6], \"rank\": [1], \"of a later version\": 5}" },
        { "model.failure", "it broke" },
    };
    struct sonde_trace    *trace = open_with(metas, 2);
    const struct snd_fact *fact = first_fact(trace, SND_FACT_OF_GROUP);

    (void)state;
    assert_non_null(fact);
    assert_true(text_is(fact->subject, "7"));
    assert_int_equal(snd_fact_number(fact, SND_FIELD_GROUP_SIZE, 0), 2);
    assert_true(
        text_is(snd_fact_text(first_fact(trace, SND_FACT_OF_FAILURE), SND_FIELD_FAILURE_REASON),
                "it broke"));
    assert_int_equal(count_facts(trace, SND_FACT_OF_FAILURE), 1);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_have_numbers),
        cmocka_unit_test(machines),
        cmocka_unit_test(lists_and_unknown_keys),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
