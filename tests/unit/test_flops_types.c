/* SPDX-License-Identifier: Apache-2.0 */
/* model/flops/flops_types.c: types of results, as torch.result_type and the operators' documentation have them. */
#include "base/count_of.h"
#include "format/dtypes.h"
#include "model/flops/flops_formulas.h"
#include "scratch.h"

static const int64_t dims[] = { 2, 3 };

/* An argument: a tensor of a type with or without dims, or a number by its text. */
struct given {
    uint8_t     dtype;
    bool        has_dims;
    const char *number;
};

#define WITH(type)               \
    {                            \
        SONDE_##type, true, NULL \
    }
#define WITHOUT(type)             \
    {                             \
        SONDE_##type, false, NULL \
    }
#define NUMBER(text)   \
    {                  \
        0, false, text \
    }

static struct snd_flops_call call_of(struct sonde_argument items[4], const struct given *given,
                                     size_t count)
{
    struct snd_flops_call c = {
        .items = items, .item_count = count, .count = count, .value_count = count
    };

    for (size_t i = 0; i < count; i++) {
        items[i] = (struct sonde_argument){ .kind = given[i].number ? SND_SHAPE_SCALAR
                                                                    : SND_SHAPE_TENSOR,
                                            .dtype = given[i].dtype,
                                            .count = given[i].has_dims ? 2 : 0,
                                            .dims = dims };
        c.top[i] = (uint8_t)i;
        if (given[i].number)
            c.values[i] = (struct sonde_text){ given[i].number, strlen(given[i].number) };
    }
    return c;
}

static void types_of_two(void **state)
{
    static const struct {
        struct given two[2];
        uint8_t      result;
    } cases[] = {
        { { WITH(UINT8), WITH(INT8) }, SONDE_INT16 },
        { { WITH(UINT8), WITH(INT16) }, SONDE_INT16 },
        { { WITH(UINT8), WITH(UINT8) }, SONDE_UINT8 },
        { { WITH(INT32), WITH(INT64) }, SONDE_INT64 },
        { { WITH(UINT16), WITH(UINT64) }, SONDE_UINT64 },
        { { WITH(UINT8), WITH(INT64) }, SONDE_INT64 },
        { { WITH(FLOAT16), WITH(BFLOAT16) }, SONDE_FLOAT32 },
        { { WITH(FLOAT16), WITH(FLOAT32) }, SONDE_FLOAT32 },
        { { WITH(BFLOAT16), WITH(FLOAT64) }, SONDE_FLOAT64 },
        { { WITH(INT64), WITH(FLOAT16) }, SONDE_FLOAT16 },
        { { WITH(BOOL), WITH(INT8) }, SONDE_INT8 },
        { { WITH(BOOL), WITH(BOOL) }, SONDE_BOOL },
        { { WITH(BOOL), WITH(FLOAT32) }, SONDE_FLOAT32 },
        { { WITH(COMPLEX64), WITH(FLOAT64) }, SONDE_COMPLEX128 },
        { { WITH(COMPLEX64), WITH(FLOAT16) }, SONDE_COMPLEX64 },
        { { WITH(COMPLEX32), WITH(FLOAT32) }, SONDE_COMPLEX64 },
        { { WITH(COMPLEX32), WITH(FLOAT16) }, SONDE_COMPLEX32 },
        { { WITH(COMPLEX64), WITH(INT64) }, SONDE_COMPLEX64 },
        { { WITH(COMPLEX64), WITH(COMPLEX128) }, SONDE_COMPLEX128 },
        /* one with dims takes precedence over one without, and loses to a higher kind alone */
        { { WITH(FLOAT32), WITHOUT(FLOAT64) }, SONDE_FLOAT32 },
        { { WITH(FLOAT16), WITHOUT(FLOAT32) }, SONDE_FLOAT16 },
        { { WITH(INT32), WITHOUT(FLOAT64) }, SONDE_FLOAT32 },
        { { WITH(INT32), WITHOUT(FLOAT16) }, SONDE_FLOAT16 },
        { { WITH(FLOAT16), WITHOUT(COMPLEX128) }, SONDE_COMPLEX32 },
        { { WITH(FLOAT64), WITHOUT(COMPLEX64) }, SONDE_COMPLEX128 },
        { { WITH(BOOL), WITHOUT(INT64) }, SONDE_INT64 },
        { { WITH(BOOL), WITHOUT(INT8) }, SONDE_INT8 },
        { { WITH(INT8), WITHOUT(INT64) }, SONDE_INT8 },
        { { WITH(COMPLEX64), WITHOUT(FLOAT64) }, SONDE_COMPLEX64 },
        { { WITHOUT(FLOAT64), WITHOUT(FLOAT64) }, SONDE_FLOAT64 },
        { { WITHOUT(INT64), WITHOUT(BOOL) }, SONDE_INT64 },
        /* numbers */
        { { WITH(INT32), NUMBER("2.5") }, SONDE_FLOAT32 },
        { { WITH(INT32), NUMBER("3") }, SONDE_INT32 },
        { { WITH(INT32), NUMBER("-3") }, SONDE_INT32 },
        { { WITH(INT32), NUMBER("True") }, SONDE_INT32 },
        { { WITH(INT32), NUMBER("inf") }, SONDE_FLOAT32 },
        { { WITH(BOOL), NUMBER("3") }, SONDE_INT64 },
        { { WITH(BOOL), NUMBER("False") }, SONDE_BOOL },
        { { WITH(FLOAT32), NUMBER("2j") }, SONDE_COMPLEX64 },
        { { WITH(FLOAT64), NUMBER("2.5") }, SONDE_FLOAT64 },
        { { WITH(INT32), NUMBER("") }, SONDE_INT32 },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            struct sonde_argument items[4];
            const struct given    two[2] = { cases[i].two[swapped], cases[i].two[!swapped] };
            struct snd_flops_call c = call_of(items, two, 2);
            if (snd_type_promoted(&c, 0, 1) != cases[i].result)
                fail_msg("case %zu%s: %u, not %u", i, swapped ? " swapped" : "",
                         snd_type_promoted(&c, 0, 1), cases[i].result);
            assert_int_equal(snd_type_promoted(&c, 0, 9), cases[i].result);
        }
}

static void types_of_results(void **state)
{
    static const struct {
        enum snd_result_rule rule;
        uint8_t              from, result;
    } cases[] = {
        { SND_RESULT_BOOL, SONDE_FLOAT64, SONDE_BOOL },
        { SND_RESULT_INT32, SONDE_FLOAT64, SONDE_INT32 },
        { SND_RESULT_INT64, SONDE_FLOAT16, SONDE_INT64 },
        { SND_RESULT_FLOAT32, SONDE_INT8, SONDE_FLOAT32 },
        { SND_RESULT_FLOAT64, SONDE_FLOAT32, SONDE_FLOAT64 },
        { SND_RESULT_FLOAT64, SONDE_COMPLEX64, SONDE_COMPLEX128 },
        { SND_RESULT_REAL, SONDE_INT64, SONDE_FLOAT32 },
        { SND_RESULT_REAL, SONDE_BOOL, SONDE_FLOAT32 },
        { SND_RESULT_REAL, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_QUOTIENT, SONDE_INT64, SONDE_FLOAT32 },
        { SND_RESULT_QUOTIENT, SONDE_FLOAT64, SONDE_FLOAT64 },
        { SND_RESULT_SUM, SONDE_INT8, SONDE_INT64 },
        { SND_RESULT_SUM, SONDE_BOOL, SONDE_INT64 },
        { SND_RESULT_SUM, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_RUNNING_SUM, SONDE_INT8, SONDE_INT64 },
        { SND_RESULT_RUNNING_SUM, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_MEAN, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_PART, SONDE_COMPLEX32, SONDE_FLOAT16 },
        { SND_RESULT_PART, SONDE_COMPLEX64, SONDE_FLOAT32 },
        { SND_RESULT_PART, SONDE_COMPLEX128, SONDE_FLOAT64 },
        { SND_RESULT_PART, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_COMPLEX, SONDE_FLOAT16, SONDE_COMPLEX32 },
        { SND_RESULT_COMPLEX, SONDE_FLOAT32, SONDE_COMPLEX64 },
        { SND_RESULT_COMPLEX, SONDE_FLOAT64, SONDE_COMPLEX128 },
        { SND_RESULT_ARGUMENT_3, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_ARGUMENT_6, SONDE_FLOAT16, SONDE_FLOAT16 },
        { SND_RESULT_FIRST, SONDE_FLOAT16, SONDE_INT32 },
    };
    static const struct given one = WITH(INT32);
    struct sonde_argument     items[4];
    struct snd_flops_call     c = call_of(items, &one, 1);

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        if (snd_type_of_result(&c, cases[i].rule, cases[i].from) != cases[i].result)
            fail_msg("case %zu: %u", i, snd_type_of_result(&c, cases[i].rule, cases[i].from));
}

/* A type among the arguments is the number that torch has for it, where the operator takes one. */
static void types_that_are_given(void **state)
{
    char                  number[8], none[8];
    struct given          given[4] = { WITH(INT8), NUMBER("0"), NUMBER("False"), NUMBER(number) };
    struct sonde_argument items[4];

    (void)state;
    snprintf(number, sizeof number, "%u", SONDE_FLOAT64);
    snprintf(none, sizeof none, "255");
    struct snd_flops_call c = call_of(items, given, 4); /* sum(x, dims, keep, dtype) */
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_SUM, SONDE_INT8), SONDE_FLOAT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_MEAN, SONDE_INT8), SONDE_FLOAT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_ARGUMENT_3, SONDE_INT8), SONDE_FLOAT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_ARGUMENT_6, SONDE_INT8), SONDE_INT8);
    given[3].number = none;
    c = call_of(items, given, 4);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_SUM, SONDE_INT8), SONDE_INT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_MEAN, SONDE_FLOAT16), SONDE_FLOAT16);
    given[3].number = "-1";
    c = call_of(items, given, 4);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_ARGUMENT_3, SONDE_INT8), SONDE_INT8);
    given[1] = given[2] = (struct given)NUMBER(number); /* sum(x, dtype), cumsum(x, dim, dtype) */
    c = call_of(items, given, 2);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_SUM, SONDE_INT8), SONDE_FLOAT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_MEAN, SONDE_INT8), SONDE_FLOAT64);
    c = call_of(items, given, 3); /* sum(x, dims, keep) has none */
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_SUM, SONDE_INT8), SONDE_INT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_RUNNING_SUM, SONDE_INT8), SONDE_FLOAT64);
    assert_int_equal(snd_type_of_result(&c, SND_RESULT_QUOTIENT, SONDE_INT8), SONDE_INT8);
}

static void sizes_of_types(void **state)
{
    (void)state;
    assert_true(snd_type_bytes(SONDE_UINT8) == 1 && snd_type_bytes(SONDE_BOOL) == 1);
    assert_true(snd_type_bytes(SONDE_FLOAT32) == 4 && snd_type_bytes(SONDE_FLOAT64) == 8);
    assert_true(snd_type_bytes(SONDE_DTYPE_UNKNOWN) == 4); /* as float32 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_of_two),
        cmocka_unit_test(types_of_results),
        cmocka_unit_test(types_that_are_given),
        cmocka_unit_test(sizes_of_types),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
