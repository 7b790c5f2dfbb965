/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_elements.c - formulas of everything that is no product: element by element, norms,
 * reductions, pooling, resize. They count single operations.
 */
#include <math.h>

#include "model/flops/flops_formulas.h"

/* ----------------------------------------------------- one element at a time */

/* a: operations for each element of the result; b: last argument that is broadcast. */
bool snd_work_each(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    r->out = snd_arg_broadcast(c, 0, (size_t)b);
    if (r->out < 0)
        return false;
    r->other = a * r->out;
    return true;
}

/* As each, over the tensors of a list: _foreach_add_ and its like. b: which list. */
bool snd_work_foreach(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *l = snd_arg_list(c, (size_t)b);

    if (!l)
        return false;
    for (size_t k = 0; k < l->count; k++)
        r->out += snd_arg_numel(snd_arg_element(c, l, k));
    r->other = a * r->out;
    return true;
}

/* a: operations for each element of argument b, which is as large as the result. */
bool snd_work_like(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_arg_tensor(c, (size_t)b))
        return false;
    r->out = snd_arg_numel(snd_arg_tensor(c, (size_t)b));
    r->out_like = (unsigned)b;
    r->other = a * r->out;
    return true;
}

/* As like, and two more for each of the weight (b + 1) and bias (b + 2) that is there. */
bool snd_work_norm(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_arg_tensor(c, 0))
        return false;
    r->out = snd_arg_numel(snd_arg_tensor(c, 0));
    r->other = r->out * (a + (snd_arg_tensor(c, (size_t)b) != NULL) +
                         (snd_arg_tensor(c, (size_t)b + 1) != NULL));
    return true;
}

/* batch_norm(x, weight, bias, mean, var, training at b, ..): with fixed statistics there is less. */
bool snd_work_batch_norm(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_arg_tensor(c, 0))
        return false;
    bool training = b >= 0 && snd_arg_is_true(c, (size_t)b);
    r->out = snd_arg_numel(snd_arg_tensor(c, 0));
    r->other = r->out * ((training ? a : 2) + (snd_arg_tensor(c, 1) != NULL) +
                         (snd_arg_tensor(c, 2) != NULL));
    return true;
}

/* Input b is read once, `a` operations an element; the result is small. */
bool snd_work_reduce(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)b);

    if (!x)
        return false;
    r->other = a * snd_arg_numel(x);
    r->out_like = (unsigned)b;
    return true;
}

/* n log2 n comparisons along the last dim or all: an upper bound for sort and its like. */
bool snd_work_sort(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);

    (void)a, (void)b;
    if (!x)
        return false;
    double n = snd_arg_dim(x, 0);
    r->out = snd_arg_numel(x);
    r->other = n > 1 ? r->out * ceil(log2(n)) : 0;
    return true;
}

/* Bytes are moved and nothing is computed: `a` is the argument that is as large as the result. */
bool snd_work_copy(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    (void)b;
    if (!snd_arg_tensor(c, (size_t)a))
        return false;
    r->out = snd_arg_numel(snd_arg_tensor(c, (size_t)a));
    r->out_like = (unsigned)a;
    return true;
}

/* The tensors of list `a`, one after another. */
bool snd_work_cat(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    return snd_work_foreach(c, 0, a, r) && ((void)b, true);
}

/* embedding(weight, indices): as many rows as there are indices. */
bool snd_work_embedding(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *w = snd_arg_tensor(c, 0), *i = snd_arg_tensor(c, 1);

    (void)b;
    if (!w || !i)
        return false;
    r->out = snd_arg_numel(i) * snd_arg_dim(w, 0);
    r->other = a * r->out;
    return true;
}

/* -------------------------------------------------------------------- pooling */

/*
 * pool(x, kernel, stride, padding, [dilation | ceil_mode ..]). a: dims that the window moves
 * along; b bit 0: there is a dilation (max), bit 1: there are no comparisons but sums (average).
 */
bool snd_work_pool(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double kernel[SND_NUMBERS_MAX], stride[SND_NUMBERS_MAX], padding[SND_NUMBERS_MAX],
        dilation[SND_NUMBERS_MAX];
    int kernels = snd_arg_numbers(c, 1, kernel), strides = snd_arg_numbers(c, 2, stride),
        paddings = snd_arg_numbers(c, 3, padding),
        dilations = b & 1 ? snd_arg_numbers(c, 4, dilation) : 0;
    bool   ceils = snd_arg_is_true(c, b & 1 ? 5 : 4);
    double window = 1, positions = 1;

    if (!x || x->count < (uint32_t)a || kernels <= 0 || paddings < 0)
        return false;
    for (int k = 0; k < a; k++) {
        double w = snd_arg_pick(kernel, kernels, (unsigned)k, 1),
               p = snd_arg_pick(padding, paddings, (unsigned)k, 0);
        double s = snd_arg_pick(stride, strides, (unsigned)k,
                                w); /* an empty one: the window's size */
        double d = snd_arg_pick(dilation, dilations, (unsigned)k, 1),
               in = snd_arg_dim(x, (size_t)(a - 1 - k));
        if (s < 1)
            return false;
        double out = (in + 2 * p - d * (w - 1) - 1) / s;
        out = (ceils ? ceil(out) : floor(out)) + 1;
        if (ceils && (out - 1) * s >= in + p)
            out--; /* a window must begin in the input or its padding on the left */
        positions *= out > 0 ? out : 0;
        window *= w;
    }
    double planes = snd_arg_product(x->dims, x->count - (uint32_t)a);
    r->out = planes * positions;
    r->other = r->out * (b & 2 ? window : window - 1); /* sums and a quotient, or comparisons */
    return true;
}

/* Each window of an adaptive pool: [floor(i in / out), ceil((i + 1) in / out)). */
static double count_window(double in, double out)
{
    if (in <= 0 || out <= 0)
        return 0;
    if (out > 4096)
        return in + out; /* at most so many elements are read along this dim */
    double sum = 0;
    for (uint32_t i = 0; i < (uint32_t)out; i++)
        sum += ceil((i + 1) * in / out) - floor(i * in / out);
    return sum;
}

/* adaptive_avg_pool2d(x, out). a: dims; b: 1 sums, 0 comparisons. */
bool snd_work_adaptive_pool(const struct snd_flops_call *c, int a, int b,
                            struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double                       out[SND_NUMBERS_MAX];
    int                          outs = snd_arg_numbers(c, 1, out);

    if (!x || x->count < (uint32_t)a || outs <= 0)
        return false;
    double read = 1, positions = 1;
    for (int k = 0; k < a; k++) {
        double o = snd_arg_pick(out, outs, (unsigned)k, 1);
        read *= count_window(snd_arg_dim(x, (size_t)(a - 1 - k)), o);
        positions *= o > 0 ? o : 0;
    }
    double planes = snd_arg_product(x->dims, x->count - (uint32_t)a);
    r->out = planes * positions;
    r->other = planes * (b ? read : fmax(read - positions, 0));
    return true;
}

/* upsample_*2d(x, size, ..): a: operations for each element of the result; b: dims. */
bool snd_work_resize(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double                       size[SND_NUMBERS_MAX];

    if (!x || snd_arg_numbers(c, 1, size) != b || x->count < (uint32_t)b)
        return false; /* with factors instead of a size: the inner operator has it */
    r->out = snd_arg_product(x->dims, x->count - (uint32_t)b);
    for (int k = 0; k < b; k++)
        r->out *= size[k] > 0 ? size[k] : 0;
    r->other = a * r->out;
    return true;
}

/* Regions of interest: roi_align(x, rois, scale, h, w, samples, ..): 4 taps a sample. */
bool snd_work_roi(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *rois = snd_arg_tensor(c, 1);
    double                       h, w, samples;

    (void)a, (void)b;
    if (!x || !rois || x->count != 4 || rois->count != 2 || !snd_arg_number(c, 3, &h) ||
        !snd_arg_number(c, 4, &w) || !snd_arg_number(c, 5, &samples))
        return false;
    if (samples < 1)
        return false; /* as many as the region is wide: not known from shapes */
    r->out = snd_arg_dim(rois, 1) * snd_arg_dim(x, 2) * h * w;
    r->other = r->out * (samples * samples * 8 + 1);
    return true;
}

/* Views, allocations, and operators that only call others. */
bool snd_work_none(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    (void)c, (void)a, (void)b, (void)r;
    return true;
}
