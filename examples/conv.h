/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv.h - a 3x3 convolution over NCHW floats, padding 1, as convnet.c uses it.
 *
 * Kept apart so that a test can hold it against the plainest possible loop.
 * Threads: nothing is shared; any number at once.
 */
#ifndef EXAMPLES_CONV_H
#define EXAMPLES_CONV_H

#include <stddef.h>

struct tensor {
    size_t n, c, h, w; /* images, channels, rows, columns */
    float *data;       /* n * c * h * w */
};

struct conv {
    size_t in, out; /* channels */
    float *weight;  /* out * in * 3 * 3 */
    float *bias;    /* out */
};

/* out[n][o][y][x] = bias[o] + sum of weight[o][i][dy][dx] * in[n][i][y + dy - 1][x + dx - 1]. */
void conv_forward(const struct conv *conv, const struct tensor *in, struct tensor *out);

/* Multiplications and additions of that, counted as torch counts them. */
double conv_flops(const struct conv *conv, const struct tensor *in);

#endif
