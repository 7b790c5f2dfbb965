/* SPDX-License-Identifier: Apache-2.0 */
/* model/flops/flops_types.c: what formulas ask of a call, at the edges of what it has. */
#include "model/flops/flops_formulas.h"

#include "base/count_of.h"
#include "scratch.h"

/* A call with these values, of which the first `count` are the call's. */
static struct snd_flops_call values_of(const char *const *texts, size_t there, size_t count)
{
    struct snd_flops_call c = { .value_count = count };

    for (size_t i = 0; i < there; i++)
        c.values[i] = (struct sonde_text){ texts[i], strlen(texts[i]) };
    return c;
}

static void numbers(void **state)
{
    static const struct {
        const char *text;
        bool        is_number;
        double      value;
    } cases[] = {
        { "3", true, 3 },
        { "-1.5", true, -1.5 },
        { "True", true, 1 },
        { "False", true, 0 },
        { "", false, 0 },
        { "x", false, 0 },
        { "Trueish", false, 0 },
        { "Tru", false, 0 },
        { "false", false, 0 },
        { "1e3", true, 1000 },
        { "Fals", false, 0 },
        { "12345678901234567890", true, 12345678901234567890.0 },
        { "0.00000000000000000000000000000000000001", true,
          1e-38 }, /* longer than what is looked at */
    };
    double value;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        struct snd_flops_call c = values_of(&cases[i].text, 1, 1);
        if (snd_arg_number(&c, 0, &value) != cases[i].is_number)
            fail_msg("'%s'", cases[i].text);
        if (cases[i].is_number && i + 1 < SND_COUNT_OF(cases))
            assert_true(value == cases[i].value);
        assert_int_equal(snd_arg_is_true(&c, 0),
                         cases[i].is_number && cases[i].value > 0 && i + 1 < SND_COUNT_OF(cases));
    }
    /* not what is behind the last value */
    static const char *const two[] = { "3", "4" };
    struct snd_flops_call    c = values_of(two, 2, 1);
    assert_true(snd_arg_number(&c, 0, &value) && value == 3);
    assert_false(snd_arg_number(&c, 1, &value));
    assert_false(snd_arg_is_true(&c, 1));
}

static void lists_of_numbers(void **state)
{
    static const struct {
        const char *text;
        int         count;
        double      first, last;
    } cases[] = {
        { "[1, 2]", 2, 1, 2 },        { "[3]", 1, 3, 3 },    { "[]", 0, 0, 0 },
        { "[ 4,5 ,6]", 3, 4, 6 },     { "[", -1, 0, 0 },     { "", -1, 0, 0 },
        { "[1", -1, 0, 0 },           { "1, 2]", -1, 0, 0 }, { "[1, x]", -1, 0, 0 },
        { "[True, False]", 2, 1, 0 }, { "[1, ]", -1, 0, 0 },
    };
    static const char *const two[] = { "[3]", "[4]" };
    double                   values[SND_NUMBERS_MAX];

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        struct snd_flops_call c = values_of(&cases[i].text, 1, 1);
        int                   count = snd_arg_numbers(&c, 0, values);
        if (count != cases[i].count)
            fail_msg("%s: %d", cases[i].text, count);
        if (count > 0)
            assert_true(values[0] == cases[i].first && values[count - 1] == cases[i].last);
    }
    struct snd_flops_call c = values_of(two, 2, 1);
    assert_int_equal(snd_arg_numbers(&c, 0, values), 1);
    assert_int_equal(snd_arg_numbers(&c, 1, values), -1);
    /* as many as there is room for, and one more */
    for (int more = 0; more < 2; more++) {
        char        text[256] = "[";
        const char *whole = text;
        for (size_t i = 0; i < SND_NUMBERS_MAX + (size_t)more; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%zu", i ? ", " : "", i);
        strcat(text, "]");
        c = values_of(&whole, 1, 1);
        assert_int_equal(snd_arg_numbers(&c, 0, values), more ? -1 : (int)SND_NUMBERS_MAX);
    }
}

static void picked_numbers(void **state)
{
    static const double values[] = { 5, 6, 7 };

    (void)state;
    assert_true(snd_arg_pick(values, 0, 0, 9) == 9);
    assert_true(snd_arg_pick(values, -1, 2, 9) == 9);
    assert_true(snd_arg_pick(values, 1, 0, 9) == 5 && snd_arg_pick(values, 1, 2, 9) == 5);
    assert_true(snd_arg_pick(values, 2, 1, 9) == 6 && snd_arg_pick(values, 2, 2, 9) == 6);
    assert_true(snd_arg_pick(values, 3, 2, 9) == 7);
}

static void dims(void **state)
{
    static const int64_t        sizes[] = { 2, 3, 0, 5, -1 };
    const struct sonde_argument t = { .kind = SND_SHAPE_TENSOR, .count = 5, .dims = sizes };
    static const double         from_end[] = { 0, 5, 0, 3, 2, 1, 1 };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(from_end); i++)
        assert_true(snd_arg_dim(&t, i) == from_end[i]);
    assert_true(snd_arg_dim(NULL, 0) == 1);
    assert_true(snd_arg_numel(NULL) == 0);
    assert_true(snd_arg_numel(&t) == 0);
    assert_true(snd_arg_product(sizes, 2) == 6);
    assert_true(snd_arg_product(sizes, 0) == 1);
    assert_true(snd_arg_product(sizes + 3, 2) == 0);
    assert_true(snd_arg_size(&t, 0) == 2 && snd_arg_size(&t, 3) == 5 && snd_arg_size(&t, 4) == 0);
    assert_true(snd_arg_size(&t, 5) == 1 && snd_arg_size(&t, -6) == 1);
    assert_true(snd_arg_size(&t, -5) == 2 && snd_arg_size(&t, -2) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(lists_of_numbers),
        cmocka_unit_test(picked_numbers),
        cmocka_unit_test(dims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
