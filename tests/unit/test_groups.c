/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranks/groups.c: what the text of a collective's call says: kind, size, group, ranks. */
#include "model/ranks/groups.h"

#include "base/count_of.h"
#include "format/layout.h"
#include "scratch.h"

struct read {
    struct sonde_trace *trace;
    struct snd_groups   groups;
};

/* The trace of a job of `world` ranks with these texts, whose ids count from 1. */
static struct read read_texts(const char *const *texts, size_t count, uint32_t world)
{
    struct synth_options options = { .rank = 1, .world_size = world };
    struct synth        *s = synth_new(scratch_path("texts"), &options);
    struct read          read;

    for (size_t i = 0; i < count; i++)
        assert_int_equal(synth_string(s, texts[i]), i + 1);
    synth_close(s, true);
    read.trace = scratch_open(scratch_path("texts"));
    snd_groups_begin(&read.groups, read.trace);
    return read;
}

static void release(struct read *read)
{
    snd_groups_release(&read->groups);
    sonde_trace_close(read->trace);
}

static struct snd_collective_spec spec_of(struct read *read, uint32_t id)
{
    uint32_t at = snd_groups_spec(&read->groups, 0, id);

    assert_true(at < read->groups.spec_count);
    assert_int_equal(snd_groups_spec(&read->groups, 0, id), at); /* it is read once */
    return read->groups.specs[at];
}

static const struct snd_group *group_of(struct read *read, uint32_t id)
{
    uint32_t group = spec_of(read, id).group;

    assert_true(group < read->groups.count);
    return &read->groups.groups[group];
}

static struct snd_collective_spec read_one(const char *text)
{
    struct read                read = read_texts(&text, 1, 2);
    struct snd_collective_spec spec = spec_of(&read, 1);

    release(&read);
    return spec;
}

/* torch's names of types, c10's names and ours: as many bytes as the type has. */
static void sizes_of_types(void **state)
{
    static const struct {
        const char *name;
        uint64_t    bytes;
    } types[] = {
        { "Byte", 1 },
        { "Char", 1 },
        { "Short", 2 },
        { "Int", 4 },
        { "Long", 8 },
        { "Half", 2 },
        { "Float", 4 },
        { "Double", 8 },
        { "ComplexHalf", 4 },
        { "ComplexFloat", 8 },
        { "ComplexDouble", 16 },
        { "Bool", 1 },
        { "BFloat16", 2 },
        { "Float8_e5m2", 1 },
        { "Float8_e4m3fn", 1 },
        { "Float8_e5m2fnuz", 1 },
        { "Float8_e4m3fnuz", 1 },
        { "UInt16", 2 },
        { "UInt32", 4 },
        { "UInt64", 8 },
        { "Float8_e8m0fnu", 1 },
        { "float32", 4 },
        { "bfloat16", 2 },
        { "int64", 8 },
        { "of another kind", 0 },
        { "", 0 },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(types); i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"Collective name\": \"allreduce\", \"dtype\": \"%s\", \"In msg nelems\": 10, "
                 "\"Out msg nelems\": 7}",
                 types[i].name);
        struct snd_collective_spec spec = read_one(text);
        if (spec.size_bytes != 10 * types[i].bytes)
            fail_msg("%s: %llu", types[i].name, (unsigned long long)spec.size_bytes);
    }
}

/* The larger of what goes in and comes out; what cannot be is none. */
static void sizes(void **state)
{
    static const struct {
        const char *in, *out;
        uint64_t    bytes;
    } cases[] = {
        { "3", "5", 20 },
        { "5", "3", 20 },
        { "0", "0", 0 },
        { "0", "5", 20 },
        { "5", "0", 20 },
        { "-1", "5", 0 },
        { "5", "-1", 0 },
        { "576460752303423487", "0", 2305843009213693948 }, /* of 32 bytes each it would just fit */
        { "576460752303423488", "0", 0 },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        char text[256];
        snprintf(
            text, sizeof text,
            "{\"Collective name\": \"x\", \"dtype\": \"Float\", \"In msg nelems\": %s, \"Out msg "
            "nelems\": %s}",
            cases[i].in, cases[i].out);
        if (read_one(text).size_bytes != cases[i].bytes)
            fail_msg("%s, %s: %llu", cases[i].in, cases[i].out,
                     (unsigned long long)read_one(text).size_bytes);
    }
}

/* By the begin of the name, whatever stands before and after it; and what of its size goes over a link. */
static void kinds_of_collectives(void **state)
{
    static const struct {
        const char              *name;
        enum snd_collective_kind kind;
        const char              *word;
        double                   share; /* in a group of 4 */
    } cases[] = {
        { "allreduce", SND_COLLECTIVE_ALL_REDUCE, "all_reduce", 1.5 },
        { "__all_reduce_coalesced", SND_COLLECTIVE_ALL_REDUCE, "all_reduce", 1.5 },
        { "_allgather_base", SND_COLLECTIVE_ALL_GATHER, "all_gather", 0.75 },
        { "reduce_scatter_tensor", SND_COLLECTIVE_REDUCE_SCATTER, "reduce_scatter", 0.75 },
        { "reduce", SND_COLLECTIVE_REDUCE, "reduce", 1 },
        { "alltoall_base", SND_COLLECTIVE_ALL_TO_ALL, "all_to_all", 0.75 },
        { "broadcast", SND_COLLECTIVE_BROADCAST, "broadcast", 1 },
        { "gather", SND_COLLECTIVE_GATHER, "gather", 0.75 },
        { "scatter", SND_COLLECTIVE_SCATTER, "scatter", 0.75 },
        { "send", SND_COLLECTIVE_SEND, "send", 1 },
        { "recvAnysource", SND_COLLECTIVE_RECV, "recv", 1 },
        { "monitored_barrier", SND_COLLECTIVE_BARRIER, "barrier", 0 },
        { "sen", SND_COLLECTIVE_OTHER, "other", 1 },
        { "my_send", SND_COLLECTIVE_OTHER, "other", 1 },
        { "_", SND_COLLECTIVE_OTHER, "other", 1 },
        { "", SND_COLLECTIVE_OTHER, "other", 1 },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"Collective name\": \"%s\"}", cases[i].name);
        if (read_one(text).kind != cases[i].kind)
            fail_msg("%s: %s", cases[i].name, snd_collective_word(read_one(text).kind));
        assert_string_equal(snd_collective_word(cases[i].kind), cases[i].word);
        assert_true(snd_collective_bus_share(cases[i].kind, 4) == cases[i].share);
        assert_true(snd_collective_bus_share(cases[i].kind, 0) == 0);
    }
    assert_true(snd_collective_bus_share(SND_COLLECTIVE_ALL_REDUCE, 1) == 0);
}

static void numbers_of_a_call(void **state)
{
    struct snd_collective_spec spec = read_one("{\"Collective name\": \"send\", \"Rank\": 3, \"Dst "
                                               "Rank\": 4, \"Src Rank\": 5, \"Seq\": 6}");

    (void)state;
    assert_int_equal(spec.own, 3);
    assert_int_equal(spec.peer, 4);
    assert_int_equal(spec.sequence, 6);
    spec =
        read_one("{\"Collective name\": \"recv\", \"Rank\": 0, \"Dst Rank\": 4, \"Src Rank\": 0}");
    assert_int_equal(spec.own, 0);
    assert_int_equal(spec.peer, 0);
    assert_int_equal(spec.sequence, -1);
    spec = read_one("{\"Collective name\": \"recv\", \"Rank\": -1, \"Src Rank\": 4294967295}");
    assert_int_equal(spec.own, SONDE_NONE);
    assert_int_equal(spec.peer, SONDE_NONE);
}

/* Who is in a group: its list; else all ranks, if it is the group of all; a list that was cut says nothing. */
static void ranks_of_groups(void **state)
{
    static const struct {
        const char *text;
        uint32_t    size;
        int         first, last; /* -1: not known */
    } cases[] = {
        { "\"Group size\": 2, \"Process Group Ranks\": \"[4, 6]\"", 2, -1,
          -1 }, /* a text, no list */
        { "\"Group size\": 2, \"Process Group Ranks\": [4, 6]", 2, 4, 6 },
        { "\"Process Group Ranks\": [4, 6, 7]", 3, 4, 7 },
        { "\"Group size\": 5, \"Process Group Ranks\": [4, 6]", 5, -1, -1 },
        { "\"Group size\": 8", 8, 0, 7 },
        { "\"Group size\": 7", 7, -1, -1 },
        { "\"Group size\": 7, \"Process Group Description\": \"default_pg\"", 7, 0, 6 },
        { "\"Group size\": 0", 0, -1, -1 },
        { "\"Group size\": -3", 0, -1, -1 },
        { "\"Group size\": 1000000", 1000000, -1, -1 },
        { "\"Group size\": 1000001", 0, -1, -1 },
        { "\"Process Group Ranks\": [-1, 5]", 1, 5, 5 }, /* what is no rank is left out */
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        char        text[256];
        const char *one = text;
        snprintf(text, sizeof text,
                 "{\"Collective name\": \"x\", \"Process Group Name\": \"g\", %s}", cases[i].text);
        struct read             read = read_texts(&one, 1, 8);
        const struct snd_group *g = group_of(&read, 1);
        if (g->size != cases[i].size)
            fail_msg("%s: size %u", cases[i].text, g->size);
        uint32_t first = snd_group_rank(g, 0),
                 last = snd_group_rank(g, cases[i].size ? cases[i].size - 1 : 0);
        if (first != (cases[i].first < 0 ? SONDE_NONE : (uint32_t)cases[i].first) ||
            last != (cases[i].last < 0 ? SONDE_NONE : (uint32_t)cases[i].last))
            fail_msg("%s: %u to %u", cases[i].text, first, last);
        assert_int_equal(snd_group_rank(g, cases[i].size), SONDE_NONE);
        assert_true(text_is(g->name, "g"));
        release(&read);
    }
}

/* A group is known by its name and its ranks: the same of both is the same group. */
static void groups_are_told_apart(void **state)
{
    static const char *const texts[] = {
        "{\"Collective name\": \"x\", \"Process Group Name\": \"g\", \"Process Group Ranks\": [0, "
        "1]}",
        "{\"Collective name\": \"y\", \"Process Group Name\": \"g\", \"Process Group Ranks\": [0, "
        "1]}",
        "{\"Collective name\": \"x\", \"Process Group Name\": \"g\", \"Process Group Ranks\": [0, "
        "2]}",
        "{\"Collective name\": \"x\", \"Process Group Name\": \"h\", \"Process Group Ranks\": [0, "
        "1]}",
        "not of a collective",
    };
    struct read read = read_texts(texts, SND_COUNT_OF(texts), 2);
    uint32_t    numbers[SND_COUNT_OF(texts)];

    (void)state;
    assert_true(snd_groups_any(read.trace));
    for (uint32_t i = 0; i < SND_COUNT_OF(texts); i++)
        numbers[i] = spec_of(&read, i + 1).group;
    assert_int_equal(numbers[0], numbers[1]);
    assert_int_not_equal(numbers[0], numbers[2]);
    assert_int_not_equal(numbers[0], numbers[3]);
    assert_int_not_equal(numbers[2], numbers[3]);
    assert_int_equal(read.groups.count, 4);
    assert_int_equal(spec_of(&read, 99).kind, SND_COLLECTIVE_OTHER); /* a text that is not there */
    release(&read);
    read = read_texts(&texts[4], 1, 2);
    assert_false(snd_groups_any(read.trace));
    assert_false(read.groups.has_async);
    release(&read);
}

/* gloo's work has ranges of its own, but for those of NCCL in the same job. */
static void work_of_other_threads(void **state)
{
#define CALL "{\"Collective name\": \"x\", \"Process Group Name\": \"g\"}"
    static const char *const texts[] = { CALL, "gloo:all_reduce" }, *const no_gloo[] = { CALL,
                                                                                         "gloo" };
    struct read read = read_texts(texts, 2, 2);

    (void)state;
    assert_true(read.groups.has_async);
    assert_true(group_of(&read, 1)->is_async);
    release(&read);
    read = read_texts(no_gloo, 2, 2);
    assert_false(read.groups.has_async);
    assert_false(group_of(&read, 1)->is_async);
    release(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_of_types),        cmocka_unit_test(sizes),
        cmocka_unit_test(kinds_of_collectives),  cmocka_unit_test(numbers_of_a_call),
        cmocka_unit_test(ranks_of_groups),       cmocka_unit_test(groups_are_told_apart),
        cmocka_unit_test(work_of_other_threads),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
