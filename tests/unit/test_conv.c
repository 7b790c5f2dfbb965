/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conv.c - the example's convolution against the plainest loop that defines one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conv.h"

enum { N = 2, IN = 3, OUT = 2, SIDE_MAX = 9 };

static float in_data[N * IN * SIDE_MAX * SIDE_MAX];
static float out_data[N * OUT * SIDE_MAX * SIDE_MAX];
static float weight[OUT * IN * 9];
static float bias[OUT];

/* Small integers: products and sums of them are exact in a float, in any order. */
static void fill(float *out, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (float)(int)((i * 7 + seed) % 11) - 5.0F;
}

/* One output value, straight from the definition. */
static float expected(const struct tensor *in, size_t n, size_t o, size_t y, size_t x)
{
    float sum = bias[o];

    for (size_t i = 0; i < IN; i++) {
        for (size_t dy = 0; dy < 3; dy++) {
            for (size_t dx = 0; dx < 3; dx++) {
                size_t row = y + dy, column = x + dx; /* plus one */
                if (row < 1 || row > in->h || column < 1 || column > in->w)
                    continue;
                sum += weight[((o * IN + i) * 3 + dy) * 3 + dx] *
                       in->data[((n * IN + i) * in->h + row - 1) * in->w + column - 1];
            }
        }
    }
    return sum;
}

static void check_size(size_t h, size_t w)
{
    struct tensor in = { N, IN, h, w, in_data }, out = { N, OUT, h, w, out_data };
    struct conv   conv = { IN, OUT, weight, bias };

    fill(in_data, N * IN * h * w, 3);
    fill(weight, sizeof weight / sizeof weight[0], 5);
    fill(bias, OUT, 8);
    conv_forward(&conv, &in, &out);
    for (size_t n = 0; n < N; n++)
        for (size_t o = 0; o < OUT; o++)
            for (size_t y = 0; y < h; y++)
                for (size_t x = 0; x < w; x++)
                    assert_float_equal(out_data[((n * OUT + o) * h + y) * w + x],
                                       expected(&in, n, o, y, x), 0);
}

static void forward_is_the_definition(void **state)
{
    (void)state;
    check_size(5, 7);
    check_size(9, 9);
    check_size(4, 2);
}

static void edges_of_narrow_images(void **state)
{
    (void)state;
    check_size(1, 1);
    check_size(1, 6);
    check_size(6, 1);
    check_size(2, 2);
}

static void flops_as_torch_counts(void **state)
{
    struct tensor in = { 8, 3, 224, 224, NULL };
    struct conv   conv = { 3, 3, NULL, NULL };

    (void)state;
    /* 2 * N * Ho * Wo * kh * kw * Cin * Cout */
    assert_float_equal(conv_flops(&conv, &in), 65028096.0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_the_definition),
        cmocka_unit_test(edges_of_narrow_images),
        cmocka_unit_test(flops_as_torch_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
