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
    r->dtype = snd_type_promoted(c, 0, (size_t)b);
    r->other = a * r->out;
    return true;
}

/* As each; the first argument decides and has no part in the type: where(condition, x, y). */
bool snd_work_choose(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_work_each(c, a, b, r))
        return false;
    r->dtype = snd_type_promoted(c, 1, (size_t)b);
    return true;
}

/* As each, over the tensors of a list: _foreach_add_ and its like. b: which list. */
bool snd_work_foreach(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *l = snd_arg_list(c, (size_t)b);

    if (!l)
        return false;
    double elements = 0;
    for (size_t k = 0; k < l->count; k++) {
        const struct sonde_argument *t = snd_arg_element(c, l, k);
        elements += snd_arg_numel(t);
        r->own_bytes += t ? snd_arg_numel(t) * snd_type_bytes(t->dtype) : 0;
    }
    r->other = a * elements;
    return true;
}

/* a: operations for each element of argument b, which is as large as the result. */
bool snd_work_like(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_arg_tensor(c, (size_t)b))
        return false;
    r->out = snd_arg_numel(snd_arg_tensor(c, (size_t)b));
    r->dtype = snd_arg_tensor(c, (size_t)b)->dtype;
    r->other = a * r->out;
    return true;
}

/* One half of the input with the other, `a` operations for each element of the result: glu. */
bool snd_work_halves(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_work_like(c, 0, b, r))
        return false;
    r->out /= 2;
    r->other = a * r->out;
    return true;
}

/* As like, and the index of each element: cummax. */
bool snd_work_running(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_work_like(c, a, b, r))
        return false;
    r->indices = r->out;
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
    return true;
}

/* Elements that are left of `x` once the dims of argument `at` are gone; without any, one. */
static double count_left(const struct snd_flops_call *c, const struct sonde_argument *x, size_t at)
{
    double dims[SND_NUMBERS_MAX], dim, gone = 1;
    int    count = snd_arg_numbers(c, at, dims);

    if (count <= 0 && !snd_arg_number(c, at, &dim))
        return 1;
    for (int i = 0; i < count; i++)
        gone *= snd_arg_size(x, dims[i]);
    if (count <= 0)
        gone = snd_arg_size(x, dim);
    return gone > 0 ? snd_arg_numel(x) / gone : 0;
}

/* sum(x, dims, ..): `a` operations for each element read; b: the argument with the dims. */
bool snd_work_total(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);

    if (!x)
        return false;
    r->other = a * snd_arg_numel(x);
    /* The two-argument form of a sum has a type in their place. */
    r->out = b == 1 && c->count == 2 ? 1 : count_left(c, x, (size_t)b);
    return true;
}

/* max(x), max(x, dim, keep): the values and where they are; max(x, y): element by element. */
bool snd_work_extreme(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    double dim;

    if (snd_arg_tensor(c, (size_t)b))
        return snd_work_each(c, a, b, r);
    if (!snd_work_total(c, a, b, r))
        return false;
    r->indices = snd_arg_number(c, (size_t)b, &dim) ? r->out : 0;
    return true;
}

/*
 * n log2 n comparisons along the last dim or all: an upper bound for sort and its like. What they
 * return: a 0: all; 1: as many along the last dim as argument b says; 2: what the dim of argument b
 * leaves. With where it was, but for b -1.
 */
bool snd_work_sort(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double                       most, n = snd_arg_dim(x, 0), all = snd_arg_numel(x);

    if (!x)
        return false;
    r->out = all;
    if (a == 1 && snd_arg_number(c, (size_t)b, &most) && n > 0)
        r->out = all / n * most;
    else if (a == 2)
        r->out = count_left(c, x, (size_t)b);
    r->indices = b >= 0 && (a != 2 || c->count > 1) ? r->out : 0;
    r->other = n > 1 ? all * ceil(log2(n)) : 0;
    return true;
}

/* Bytes are moved and nothing is computed: `a` is the argument that is as large as the result. */
bool snd_work_copy(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    (void)b;
    if (!snd_arg_tensor(c, (size_t)a))
        return false;
    r->out = snd_arg_numel(snd_arg_tensor(c, (size_t)a));
    r->dtype = snd_arg_tensor(c, (size_t)a)->dtype;
    return true;
}

/* index_select(x, dim, index): along the dim of argument b as many as argument a has. */
bool snd_work_select(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *index = snd_arg_tensor(c, (size_t)a);

    if (!x || !index)
        return false;
    r->out = count_left(c, x, (size_t)b) * snd_arg_numel(index);
    return true;
}

/* The tensors of list `a`, one after another. */
bool snd_work_cat(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *l = snd_arg_list(c, (size_t)a);

    (void)b;
    if (!l)
        return false;
    for (size_t k = 0; k < l->count; k++)
        r->out += snd_arg_numel(snd_arg_element(c, l, k));
    r->dtype = snd_type_promoted(c, (size_t)a, (size_t)a);
    return true;
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
