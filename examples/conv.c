/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

/* One row of input times one row of the kernel, added to one row of output; zeros beyond the edge. */
static void add_row(const float *restrict in, const float *restrict k, float *restrict out,
                    size_t w)
{
    if (w == 1) {
        out[0] += k[1] * in[0];
        return;
    }
    out[0] += k[1] * in[0] + k[2] * in[1];
    for (size_t x = 1; x + 1 < w; x++)
        out[x] += k[0] * in[x - 1] + k[1] * in[x] + k[2] * in[x + 1];
    out[w - 1] += k[0] * in[w - 2] + k[1] * in[w - 1];
}

static void fill(float *out, float value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = value;
}

/* One channel of one image into one channel of its output. */
static void add_plane(const float *in, const float *kernel, float *out, size_t h, size_t w)
{
    for (size_t y = 0; y < h; y++) {
        for (size_t dy = 0; dy < 3; dy++) {
            size_t row = y + dy; /* of the input, plus one */
            if (row >= 1 && row <= h)
                add_row(in + (row - 1) * w, kernel + dy * 3, out + y * w, w);
        }
    }
}

void conv_forward(const struct conv *conv, const struct tensor *in, struct tensor *out)
{
    size_t plane = in->h * in->w;

    for (size_t n = 0; n < in->n; n++) {
        for (size_t o = 0; o < conv->out; o++) {
            float *to = out->data + (n * conv->out + o) * plane;
            fill(to, conv->bias[o], plane);
            for (size_t i = 0; i < conv->in; i++)
                add_plane(in->data + (n * conv->in + i) * plane,
                          conv->weight + (o * conv->in + i) * 9, to, in->h, in->w);
        }
    }
}

double conv_flops(const struct conv *conv, const struct tensor *in)
{
    return 2.0 * 9.0 * (double)(in->n * in->h * in->w) * (double)(conv->in * conv->out);
}
