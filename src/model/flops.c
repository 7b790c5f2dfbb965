/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops.c - the formulas of flops.def.
 *
 * A formula sees a call: the tensors' dims and the numbers among its arguments, in the order of
 * the operator's signature. It says how many multiply-accumulates the call has, how many other
 * operations, and how many elements come out; bytes moved follow from that. Where something
 * that it needs is missing it says so instead of guessing.
 *
 * Sizes come from the trace, which may be hostile: everything is a double, so nothing overflows,
 * and no formula goes over more than a few thousand of anything.
 */
#include "model/flops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "format/fields.h"
#include "format/layout.h"
#include "read/reader.h"

#define ARGUMENTS_MAX 24u /* of one operator, as far as a formula looks */
#define ITEMS_MAX 8192u   /* with the elements of lists: all parameters of a large network */
#define LIST_MAX 8u       /* numbers of a list argument: a stride, a padding */
#define ANSWERS_MAX (1u << 20)

/* A call, taken apart. */
struct call {
    const struct sonde_argument *items;
    size_t                       item_count;
    uint32_t                     top[ARGUMENTS_MAX]; /* items that are arguments, not elements */
    size_t                       count;
    struct sonde_text            values[ARGUMENTS_MAX]; /* as torch prints them, without quotes */
    size_t                       value_count;
};

/* What a formula finds. `out`: elements written, of the size of `out_like`'s. */
struct result {
    double   macs, other, out;
    unsigned out_like;
    bool     nothing; /* the call computes nothing */
};

struct formula {
    const char *name;
    bool (*work)(const struct call *c, int a, int b, struct result *r);
    int         a, b;
    const char *note;
};

/* ------------------------------------------------------------------ arguments */

static const struct sonde_argument *tensor(const struct call *c, size_t i)
{
    if (i >= c->count || c->items[c->top[i]].kind != SND_SHAPE_TENSOR)
        return NULL;
    return &c->items[c->top[i]];
}

static const struct sonde_argument *list(const struct call *c, size_t i)
{
    if (i >= c->count || c->items[c->top[i]].kind != SND_SHAPE_LIST)
        return NULL;
    return &c->items[c->top[i]];
}

/* Element `k` of a list argument, if it is a tensor. */
static const struct sonde_argument *element(const struct call *c, const struct sonde_argument *l,
                                            size_t k)
{
    size_t at = (size_t)(l - c->items) + 1 + k;

    return k < l->count && at < c->item_count && c->items[at].kind == SND_SHAPE_TENSOR
               ? &c->items[at]
               : NULL;
}

static double product(const int64_t *dims, size_t count)
{
    double p = 1;

    for (size_t i = 0; i < count; i++)
        p *= dims[i] > 0 ? (double)dims[i] : 0;
    return p;
}

static double numel(const struct sonde_argument *t)
{
    return t ? product(t->dims, t->count) : 0;
}

/* From the end: 0 is the last. */
static double dim(const struct sonde_argument *t, size_t from_end)
{
    if (!t || from_end >= t->count)
        return 1;
    int64_t d = t->dims[t->count - 1 - from_end];
    return d > 0 ? (double)d : 0;
}

/* "3", "True", "1.5"; false if it is not a number. */
static bool number(const struct call *c, size_t i, double *value)
{
    if (i >= c->value_count || c->values[i].length == 0)
        return false;
    struct sonde_text text = c->values[i];
    if ((text.length == 4 && memcmp(text.bytes, "True", 4) == 0) ||
        (text.length == 5 && memcmp(text.bytes, "False", 5) == 0)) {
        *value = text.length == 4;
        return true;
    }
    char   copy[40];
    char  *end;
    size_t length = text.length < sizeof copy - 1 ? text.length : sizeof copy - 1;
    memcpy(copy, text.bytes, length);
    copy[length] = '\0';
    *value = strtod(copy, &end);
    return end != copy;
}

static bool is_true(const struct call *c, size_t i)
{
    double value;

    return number(c, i, &value) && value > 0;
}

/* "[1, 1]" to its numbers; returns how many, or -1 if it is not such a list. */
static int numbers(const struct call *c, size_t i, double values[LIST_MAX])
{
    if (i >= c->value_count || c->values[i].length < 2 || c->values[i].bytes[0] != '[')
        return -1;
    const char *at = c->values[i].bytes + 1, *end = c->values[i].bytes + c->values[i].length;
    int         count = 0;
    while (at < end && *at != ']') {
        struct call one = { .value_count = 1 };
        while (at < end && (*at == ' ' || *at == ','))
            at++;
        const char *stop = at;
        while (stop < end && *stop != ',' && *stop != ']')
            stop++;
        one.values[0] = (struct sonde_text){ at, (size_t)(stop - at) };
        if (stop == at || count == (int)LIST_MAX || !number(&one, 0, &values[count]))
            return -1;
        count++;
        at = stop;
    }
    return at < end ? count : -1;
}

/* The k-th number of a list; one number stands for all, none for `missing`. */
static double pick(const double *values, int count, unsigned k, double missing)
{
    if (count <= 0)
        return missing;
    return values[(int)k < count ? k : (unsigned)count - 1];
}

/* Elements of the result of an element-wise operator: its tensors, broadcast. */
static double broadcast(const struct call *c, size_t first, size_t last)
{
    double p = 1;
    bool   any = false;

    for (size_t k = 0; k < 16; k++) {
        double widest = 1;
        bool   zero = false;
        for (size_t i = first; i <= last && i < c->count; i++) {
            const struct sonde_argument *t = tensor(c, i);
            if (!t)
                continue;
            any = true;
            double d = dim(t, k);
            zero |= k < t->count && d <= 0;
            widest = d > widest ? d : widest;
        }
        p *= zero ? 0 : widest;
    }
    return any ? p : -1;
}

/* ---------------------------------------------------------------- contractions */

static bool set_matmul(struct result *r, double batch, double m, double n, double k)
{
    r->macs = batch * m * n * k;
    r->out = batch * m * n;
    return true;
}

/* a, b: which arguments are the two matrices (possibly batches of them). */
static bool work_mm(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a), *y = tensor(c, (size_t)b);

    if (!x || !y || x->count < 2 || y->count < 2)
        return false;
    double batch = x->count > 2 ? product(x->dims, x->count - 2) : 1;
    return set_matmul(r, batch, dim(x, 1), dim(y, 0), dim(x, 0));
}

/* torch.matmul: vectors, matrices and broadcast batches of them. */
static bool work_matmul(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a), *y = tensor(c, (size_t)b);

    if (!x || !y || x->count == 0 || y->count == 0)
        return false;
    double k = dim(x, 0), m = x->count > 1 ? dim(x, 1) : 1, n = y->count > 1 ? dim(y, 0) : 1;
    double batch = 1;
    for (size_t i = 2; i < x->count || i < y->count; i++)
        batch *= fmax(i < x->count ? dim(x, i) : 1, i < y->count ? dim(y, i) : 1);
    return set_matmul(r, batch, m, n, k);
}

/* Weight is out x in; what comes before the last dim of the input is batch. */
static bool work_linear(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a), *w = tensor(c, (size_t)b);

    if (!x || !w || x->count == 0 || w->count == 0 || w->count > 2)
        return false;
    double k = dim(x, 0), n = w->count == 2 ? dim(w, 1) : 1;
    return set_matmul(r, 1, k > 0 ? numel(x) / k : 0, n, k);
}

/* mkldnn's weights may be packed into blocks: the output's width is the bias's, or unknown. */
static bool work_linear_backward(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *g = tensor(c, (size_t)a), *w = tensor(c, (size_t)b);

    if (!g || !w || w->count != 2 || g->count == 0)
        return false;
    double rows = dim(g, 0) > 0 ? numel(g) / dim(g, 0) : 0;
    r->macs = 2 * rows * numel(w);
    r->out = rows * dim(w, 0) + numel(w);
    return true;
}

static bool work_mv(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a);

    (void)b;
    if (!x || x->count != 2)
        return false;
    return set_matmul(r, 1, dim(x, 1), 1, dim(x, 0));
}

static bool work_dot(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a);

    (void)b;
    if (!x || x->count != 1)
        return false;
    return set_matmul(r, 1, 1, 1, dim(x, 0));
}

static bool work_ger(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a), *y = tensor(c, (size_t)b);

    if (!x || !y || x->count != 1 || y->count != 1)
        return false;
    return set_matmul(r, 1, dim(x, 0), dim(y, 0), 1);
}

/* addbmm: the batch is summed up. */
static bool work_addbmm(const struct call *c, int a, int b, struct result *r)
{
    if (!work_mm(c, a, b, r))
        return false;
    const struct sonde_argument *x = tensor(c, (size_t)a), *y = tensor(c, (size_t)b);
    r->out = dim(x, 1) * dim(y, 0);
    return true;
}

static bool work_cdist(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)a), *y = tensor(c, (size_t)b);

    if (!work_matmul(c, a, b, r) || x->count < 2 || y->count < 2)
        return false;
    double batch = product(x->dims, x->count - 2), pairs = batch * dim(x, 1) * dim(y, 1);
    r->macs = 0;
    r->other = pairs * (3 * dim(x, 0) + 1); /* difference, power, sum; root */
    r->out = pairs;
    return true;
}

/* ---------------------------------------------------------------- convolutions */

/* Where an operator keeps what; -1: it has none. */
struct conv_form {
    int input, weight, stride, padding, dilation, transposed, mask;
};

enum conv_kind {
    CONV_FUNCTION,  /* conv2d(x, w, bias, stride, padding, dilation, groups) */
    CONV_TRANSPOSE, /* conv_transpose2d(x, w, bias, stride, padding, output_padding, groups, dilation) */
    CONV_GENERAL,   /* convolution(x, w, bias, stride, padding, dilation, transposed, ..) */
    CONV_BACKWARD,  /* convolution_backward(g, x, w, bias, stride, padding, dilation, transposed, .., mask) */
    CONV_MKLDNN,    /* mkldnn_convolution(x, w, bias, padding, stride, dilation, groups) */
    CONV_CUDNN,     /* cudnn_convolution(x, w, padding, stride, dilation, groups, ..) */
    CONV_CUDNN_T,   /* cudnn_convolution_transpose(x, w, padding, output_padding, stride, dilation, ..) */
    CONV_CUDNN_RELU, /* cudnn_convolution_relu(x, w, bias, stride, padding, dilation, groups) */
    CONV_CUDNN_ADD, /* cudnn_convolution_add_relu(x, w, z, alpha, bias, stride, padding, dilation, ..) */
    CONV_SLOW,      /* _slow_conv2d_forward(x, w, kernel, bias, stride, padding) */
    CONV_SLOW_T,    /* slow_conv_transpose2d(x, w, kernel, bias, stride, padding, output_padding, dilation) */
    CONV_SLOW_BACKWARD, /* _slow_conv2d_backward(g, x, w, kernel, stride, padding, mask) */
    CONV_NNPACK,    /* _nnpack_spatial_convolution(x, w, bias, padding, stride) */
    CONV_ONEDNN_Q,  /* onednn::qconv_pointwise(x, scale, zero, w, w_scale, w_zero, bias, stride, padding, dilation, ..) */
};

static const struct conv_form conv_forms[] = {
    [CONV_FUNCTION] = { 0, 1, 3, 4, 5, -1, -1 },
    [CONV_TRANSPOSE] = { 0, 1, 3, 4, 7, -1, -1 },
    [CONV_GENERAL] = { 0, 1, 3, 4, 5, 6, -1 },
    [CONV_BACKWARD] = { 1, 2, 4, 5, 6, 7, 10 },
    [CONV_MKLDNN] = { 0, 1, 4, 3, 5, -1, -1 },
    [CONV_CUDNN] = { 0, 1, 3, 2, 4, -1, -1 },
    [CONV_CUDNN_T] = { 0, 1, 4, 2, 5, -1, -1 },
    [CONV_CUDNN_RELU] = { 0, 1, 3, 4, 5, -1, -1 },
    [CONV_CUDNN_ADD] = { 0, 1, 5, 6, 7, -1, -1 },
    [CONV_SLOW] = { 0, 1, 4, 5, 6, -1, -1 },
    [CONV_SLOW_T] = { 0, 1, 4, 5, 7, -1, -1 },
    [CONV_SLOW_BACKWARD] = { 1, 2, 4, 5, -1, -1, 6 },
    [CONV_NNPACK] = { 0, 1, 4, 3, -1, -1, -1 },
    [CONV_ONEDNN_Q] = { 0, 3, 7, 8, 9, -1, -1 },
};

/* Positions to which the filter is applied. False: what they depend on was not recorded. */
static bool count_positions(const struct call *c, const struct conv_form *f, bool transposed,
                            unsigned spatial, double *positions)
{
    const struct sonde_argument *x = tensor(c, (size_t)f->input), *w = tensor(c, (size_t)f->weight);
    double stride[LIST_MAX], padding[LIST_MAX], dilation[LIST_MAX];

    *positions = 1;
    if (transposed) {
        for (unsigned k = 0; k < spatial; k++)
            *positions *= dim(x, k);
        return true;
    }
    int strides = numbers(c, (size_t)f->stride, stride);
    int paddings = numbers(c, (size_t)f->padding, padding);
    int dilations = f->dilation < 0 ? 0 : numbers(c, (size_t)f->dilation, dilation);
    if (strides <= 0 || paddings < 0)
        return false; /* also padding='same', which is a text: an inner operator knows it */
    for (unsigned k = 0; k < spatial; k++) { /* lists are in the order of the dims */
        double s = pick(stride, strides, k, 1), p = pick(padding, paddings, k, 0);
        double d = pick(dilation, dilations, k, 1);
        double in = dim(x, spatial - 1 - k), filter = dim(w, spatial - 1 - k);
        if (s < 1)
            return false;
        double out = floor((in + 2 * p - d * (filter - 1) - 1) / s) + 1;
        *positions *= out > 0 ? out : 0;
    }
    return true;
}

/* a: form; b: dims that the filter moves along, or 0: those of the weight. */
static bool work_conv(const struct call *c, int a, int b, struct result *r)
{
    const struct conv_form      *f = &conv_forms[a];
    const struct sonde_argument *x = tensor(c, (size_t)f->input), *w = tensor(c, (size_t)f->weight);
    double                       mask[LIST_MAX], positions;

    if (!x || !w || w->count < 3 || (b > 0 && w->count != (uint32_t)b + 2))
        return false;
    unsigned spatial = w->count - 2;
    if (x->count != spatial + 2 && x->count != spatial + 1)
        return false;
    bool transposed = a == CONV_TRANSPOSE || a == CONV_CUDNN_T || a == CONV_SLOW_T ||
                      (f->transposed >= 0 && is_true(c, (size_t)f->transposed));
    double batch = x->count == spatial + 2 ? dim(x, spatial + 1) : 1;
    int    passes = 1;
    if (f->mask >= 0) {
        const struct sonde_argument *g = tensor(c, 0); /* the output's gradient tells the positions */
        int known = numbers(c, (size_t)f->mask, mask);
        if (!g || g->count < spatial || known < 2)
            return false;
        passes = (mask[0] > 0) + (mask[1] > 0);
        const struct sonde_argument *where = transposed ? x : g;
        positions = 1;
        for (unsigned k = 0; k < spatial; k++)
            positions *= dim(where, k);
        r->out = (mask[0] > 0 ? numel(x) : 0) + (mask[1] > 0 ? numel(w) : 0);
    } else {
        if (!count_positions(c, f, transposed, spatial, &positions))
            return false;
        /* A transposed one's output is as large as its stride makes it: its input is what counts. */
        r->out = batch * positions * (transposed ? dim(w, spatial) : dim(w, spatial + 1));
        r->out_like = (unsigned)f->input;
    }
    r->macs = passes * batch * positions * numel(w); /* the weight has channels / groups already */
    return true;
}

/* conv_tbc(x: T x B x C, w: K x C x O, bias, pad) */
static bool work_conv_tbc(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *w = tensor(c, 1);
    double                       pad;

    (void)a, (void)b;
    if (!x || !w || x->count != 3 || w->count != 3 || !number(c, 3, &pad))
        return false;
    double out = dim(x, 2) + 2 * pad - dim(w, 2) + 1;
    r->out = (out > 0 ? out : 0) * dim(x, 1) * dim(w, 0);
    r->macs = (out > 0 ? out : 0) * dim(x, 1) * numel(w);
    return true;
}

/* ------------------------------------------------------------------- attention */

/*
 * a: query's argument; keys and values follow. b bit 0: backward, bit 1: sequence before heads.
 * Forward: query by key, softmax, by value. Backward: the scores once more, then four products.
 */
static bool work_attention(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *q = tensor(c, (size_t)a), *k = tensor(c, (size_t)a + 1),
                                *v = tensor(c, (size_t)a + 2);

    if (!q || !k || !v || q->count < 3 || k->count < 3 || v->count < 3)
        return false;
    bool   swapped = (b & 2) && q->count == 4;
    double d = dim(q, 0), dv = dim(v, 0);
    double sq = dim(q, swapped ? 2 : 1), sk = dim(k, swapped ? 2 : 1);
    double heads = sq > 0 && d > 0 ? numel(q) / (sq * d) : 0; /* batch and heads */
    double scores = heads * sq * sk;
    if (b & 1) {
        r->macs = scores * (3 * d + 2 * dv);
        r->other = scores * 8; /* softmax again, and back through it */
        r->out = numel(q) + numel(k) + numel(v);
    } else {
        r->macs = scores * (d + dv);
        r->other = scores * 6; /* scale; greatest, difference, exp, sum, quotient */
        r->out = heads * sq * dv;
    }
    r->out_like = (unsigned)a;
    return true;
}

/* _native_multi_head_attention(q, k, v, embed_dim, heads, qkv_w, qkv_b, proj_w, proj_b, ..) */
static bool work_multi_head(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *q = tensor(c, 0), *k = tensor(c, 1), *w = tensor(c, 5),
                                *p = tensor(c, 7);
    double heads;

    (void)a, (void)b;
    if (!q || !k || !w || !p || q->count != 3 || k->count != 3 || !number(c, 4, &heads))
        return false;
    double batch = dim(q, 2), sq = dim(q, 1), sk = dim(k, 1), e = dim(q, 0);
    double scores = batch * heads * sq * sk;
    r->macs = batch * (sq + 2 * sk) * e * e + 2 * batch * sq * sk * e + batch * sq * numel(p);
    r->other = scores * 6;
    r->out = numel(q);
    return true;
}

/* _transformer_encoder_layer_fwd(src, embed_dim, heads, qkv_w, qkv_b, proj_w, proj_b, use_gelu,
 * norm_first, eps, norm_w1, norm_b1, norm_w2, norm_b2, ffn_w1, ffn_b1, ffn_w2, ffn_b2, ..) */
static bool work_encoder_layer(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *proj = tensor(c, 5), *w1 = tensor(c, 14),
                                *w2 = tensor(c, 16), *qkv = tensor(c, 3);
    double heads;

    (void)a, (void)b;
    if (!x || !proj || !w1 || !w2 || !qkv || x->count != 3 || !number(c, 2, &heads))
        return false;
    double rows = dim(x, 2) * dim(x, 1), scores = dim(x, 2) * dim(x, 1) * dim(x, 1);
    r->macs = rows * (numel(qkv) + numel(proj) + numel(w1) + numel(w2)) + 2 * scores * dim(x, 0);
    r->other = 6 * scores * heads + 2 * 7 * numel(x) + rows * dim(w1, 1) * 5 + 2 * numel(x);
    r->out = numel(x);
    return true;
}

/* ------------------------------------------------------------ recurrent networks */

/* One direction of one layer: `gates` products, and what is done with each element of them. */
static void add_cell(struct result *r, double steps, double in, double hidden, int gates)
{
    /* LSTM: 3 sigmoids, 2 tanh, 3 products, 1 sum; GRU: 2 sigmoids, 1 tanh, 3 products, 2 sums. */
    double each = gates == 4 ? 18 : gates == 3 ? 14 : 1;

    r->macs += steps * gates * hidden * (in + hidden);
    r->other += steps * hidden * (each + gates * 1.0); /* the two products are added */
}

/*
 * lstm, gru, rnn_tanh, rnn_relu(x, hx, params[], has_biases, layers, dropout, train,
 * bidirectional, batch_first). a: gates; b: 1 if hx is a list (lstm).
 */
static bool work_rnn(const struct call *c, int a, int b, struct result *r)
{
    size_t packed = list(c, 3) ? 1 : 0; /* a packed sequence has its batch sizes second */
    const struct sonde_argument *x = tensor(c, 0), *params = list(c, 2 + packed);
    double layers;

    (void)b;
    if (!x || !params || x->count < 2 || !number(c, 4 + packed, &layers))
        return false;
    double steps = dim(x, 0) > 0 ? numel(x) / dim(x, 0) : 0;
    bool   biases = is_true(c, 3 + packed);
    double directions = is_true(c, 7 + packed) ? 2 : 1;
    unsigned each = biases ? 4 : 2; /* w_ih, w_hh[, b_ih, b_hh] */
    if (params->count < each * layers * directions)
        return false; /* projected LSTMs have five: the inner operators count them */
    double hidden = 0;
    for (unsigned i = 0; i + 1 < params->count; i += each) {
        const struct sonde_argument *in = element(c, params, i), *own = element(c, params, i + 1);
        if (!in || !own || in->count != 2 || own->count != 2 || dim(own, 1) != a * dim(own, 0))
            return false;
        hidden = dim(own, 0);
        add_cell(r, steps, dim(in, 0), hidden, a);
    }
    r->out = steps * hidden * directions;
    return true;
}

/* rnn_tanh_cell, lstm_cell, gru_cell(x, hx, w_ih, w_hh, ..). a: gates. */
static bool work_cell(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *in = tensor(c, 2), *own = tensor(c, 3);

    (void)b;
    if (!x || !in || !own || in->count != 2 || own->count != 2 || x->count == 0)
        return false;
    double steps = dim(x, 0) > 0 ? numel(x) / dim(x, 0) : 0;
    add_cell(r, steps, dim(in, 0), dim(own, 0), a);
    r->out = steps * dim(own, 0);
    return true;
}

/* mkldnn_rnn_layer(x, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse, sizes, mode, hidden, ..).
 * a: 1 forward, 2 more for backward. */
static bool work_mkldnn_rnn(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *in = tensor(c, 1), *own = tensor(c, 2);

    (void)b;
    if (!x || !in || !own || in->count != 2 || own->count != 2 || x->count != 3)
        return false;
    double hidden = dim(own, 0);
    int    gates = hidden > 0 ? (int)fmin(dim(own, 1) / hidden, 4) : 0;
    if (gates < 1)
        return false;
    double steps = dim(x, 2) * dim(x, 1);
    add_cell(r, steps, dim(in, 0), hidden, gates);
    r->macs *= a;
    r->other *= a;
    r->out = steps * hidden;
    return true;
}

/*
 * _cudnn_rnn(x, weights[], stride0, weight_buf, hx, cx, mode, hidden, proj, layers, batch_first,
 * dropout, train, bidirectional, ..), the same arguments in front of _cudnn_rnn_backward's.
 * a: 1 forward, 2 backward. The weights tell all but the length of the sequence.
 */
static bool work_cudnn_rnn(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *weights = list(c, 1);
    double stride0;

    (void)b;
    if (!x || !weights || x->count < 2 || !number(c, 2, &stride0) || stride0 < 2 || stride0 > 8)
        return false;
    double steps = dim(x, 0) > 0 ? numel(x) / dim(x, 0) : 0, hidden = 0;
    for (unsigned i = 0; i + 1 < weights->count; i += (unsigned)stride0) {
        const struct sonde_argument *in = element(c, weights, i), *own = element(c, weights, i + 1);
        if (!in || !own || in->count != 2 || own->count != 2 || dim(own, 0) <= 0)
            return false;
        hidden = dim(own, 0);
        add_cell(r, steps, dim(in, 0), hidden, (int)fmin(dim(own, 1) / hidden, 4));
    }
    r->macs *= a;
    r->other *= a;
    r->out = steps * hidden;
    return true;
}

/* _thnn_fused_lstm_cell(input_gates, hidden_gates, ..): the products were made before. a: gates. */
static bool work_fused_cell(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *g = tensor(c, 0);

    (void)b;
    if (!g)
        return false;
    r->out = numel(g) / a;
    r->other = r->out * ((a == 4 ? 18 : 14) + a);
    return true;
}

/* ----------------------------------------------------- one element at a time */

/* a: operations for each element of the result; b: last argument that is broadcast. */
static bool work_each(const struct call *c, int a, int b, struct result *r)
{
    r->out = broadcast(c, 0, (size_t)b);
    if (r->out < 0)
        return false;
    r->other = a * r->out;
    return true;
}

/* As each, over the tensors of a list: _foreach_add_ and its like. b: which list. */
static bool work_foreach(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *l = list(c, (size_t)b);

    if (!l)
        return false;
    for (size_t k = 0; k < l->count; k++)
        r->out += numel(element(c, l, k));
    r->other = a * r->out;
    return true;
}

/* a: operations for each element of argument b, which is as large as the result. */
static bool work_like(const struct call *c, int a, int b, struct result *r)
{
    if (!tensor(c, (size_t)b))
        return false;
    r->out = numel(tensor(c, (size_t)b));
    r->out_like = (unsigned)b;
    r->other = a * r->out;
    return true;
}

/* As like, and two more for each of the weight (b + 1) and bias (b + 2) that is there. */
static bool work_norm(const struct call *c, int a, int b, struct result *r)
{
    if (!tensor(c, 0))
        return false;
    r->out = numel(tensor(c, 0));
    r->other = r->out * (a + (tensor(c, (size_t)b) != NULL) + (tensor(c, (size_t)b + 1) != NULL));
    return true;
}

/* batch_norm(x, weight, bias, mean, var, training at b, ..): with fixed statistics there is less. */
static bool work_batch_norm(const struct call *c, int a, int b, struct result *r)
{
    if (!tensor(c, 0))
        return false;
    bool training = b >= 0 && is_true(c, (size_t)b);
    r->out = numel(tensor(c, 0));
    r->other = r->out * ((training ? a : 2) + (tensor(c, 1) != NULL) + (tensor(c, 2) != NULL));
    return true;
}

/* Input b is read once, `a` operations an element; the result is small. */
static bool work_reduce(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, (size_t)b);

    if (!x)
        return false;
    r->other = a * numel(x);
    r->out_like = (unsigned)b;
    return true;
}

/* n log2 n comparisons along the last dim or all: an upper bound for sort and its like. */
static bool work_sort(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0);

    (void)a, (void)b;
    if (!x)
        return false;
    double n = dim(x, 0);
    r->out = numel(x);
    r->other = n > 1 ? r->out * ceil(log2(n)) : 0;
    return true;
}

/* Bytes are moved and nothing is computed: `a` is the argument that is as large as the result. */
static bool work_copy(const struct call *c, int a, int b, struct result *r)
{
    (void)b;
    if (!tensor(c, (size_t)a))
        return false;
    r->out = numel(tensor(c, (size_t)a));
    r->out_like = (unsigned)a;
    return true;
}

/* The tensors of list `a`, one after another. */
static bool work_cat(const struct call *c, int a, int b, struct result *r)
{
    return work_foreach(c, 0, a, r) && ((void)b, true);
}

/* embedding(weight, indices): as many rows as there are indices. */
static bool work_embedding(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *w = tensor(c, 0), *i = tensor(c, 1);

    (void)b;
    if (!w || !i)
        return false;
    r->out = numel(i) * dim(w, 0);
    r->other = a * r->out;
    return true;
}

/* -------------------------------------------------------------------- pooling */

/*
 * pool(x, kernel, stride, padding, [dilation | ceil_mode ..]). a: dims that the window moves
 * along; b bit 0: there is a dilation (max), bit 1: there are no comparisons but sums (average).
 */
static bool work_pool(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0);
    double kernel[LIST_MAX], stride[LIST_MAX], padding[LIST_MAX], dilation[LIST_MAX];
    int    kernels = numbers(c, 1, kernel), strides = numbers(c, 2, stride),
        paddings = numbers(c, 3, padding), dilations = b & 1 ? numbers(c, 4, dilation) : 0;
    bool   ceils = is_true(c, b & 1 ? 5 : 4);
    double window = 1, positions = 1;

    if (!x || x->count < (uint32_t)a || kernels <= 0 || paddings < 0)
        return false;
    for (int k = 0; k < a; k++) {
        double w = pick(kernel, kernels, (unsigned)k, 1), p = pick(padding, paddings, (unsigned)k, 0);
        double s = pick(stride, strides, (unsigned)k, w); /* an empty one: the window's size */
        double d = pick(dilation, dilations, (unsigned)k, 1), in = dim(x, (size_t)(a - 1 - k));
        if (s < 1)
            return false;
        double out = (in + 2 * p - d * (w - 1) - 1) / s;
        out = (ceils ? ceil(out) : floor(out)) + 1;
        if (ceils && (out - 1) * s >= in + p)
            out--; /* a window must begin in the input or its padding on the left */
        positions *= out > 0 ? out : 0;
        window *= w;
    }
    double planes = product(x->dims, x->count - (uint32_t)a);
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
    for (double i = 0; i < out; i++)
        sum += ceil((i + 1) * in / out) - floor(i * in / out);
    return sum;
}

/* adaptive_avg_pool2d(x, out). a: dims; b: 1 sums, 0 comparisons. */
static bool work_adaptive_pool(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0);
    double                       out[LIST_MAX];
    int                          outs = numbers(c, 1, out);

    if (!x || x->count < (uint32_t)a || outs <= 0)
        return false;
    double read = 1, positions = 1;
    for (int k = 0; k < a; k++) {
        double o = pick(out, outs, (unsigned)k, 1);
        read *= count_window(dim(x, (size_t)(a - 1 - k)), o);
        positions *= o > 0 ? o : 0;
    }
    double planes = product(x->dims, x->count - (uint32_t)a);
    r->out = planes * positions;
    r->other = planes * (b ? read : fmax(read - positions, 0));
    return true;
}

/* upsample_*2d(x, size, ..): a: operations for each element of the result; b: dims. */
static bool work_resize(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0);
    double                       size[LIST_MAX];

    if (!x || numbers(c, 1, size) != b || x->count < (uint32_t)b)
        return false; /* with factors instead of a size: the inner operator has it */
    r->out = product(x->dims, x->count - (uint32_t)b);
    for (int k = 0; k < b; k++)
        r->out *= size[k] > 0 ? size[k] : 0;
    r->other = a * r->out;
    return true;
}

/* Regions of interest: roi_align(x, rois, scale, h, w, samples, ..): 4 taps a sample. */
static bool work_roi(const struct call *c, int a, int b, struct result *r)
{
    const struct sonde_argument *x = tensor(c, 0), *rois = tensor(c, 1);
    double                       h, w, samples;

    (void)a, (void)b;
    if (!x || !rois || x->count != 4 || rois->count != 2 || !number(c, 3, &h) || !number(c, 4, &w) ||
        !number(c, 5, &samples))
        return false;
    if (samples < 1)
        return false; /* as many as the region is wide: not known from shapes */
    r->out = dim(rois, 1) * dim(x, 2) * h * w;
    r->other = r->out * (samples * samples * 8 + 1);
    return true;
}

/* Views, allocations, and operators that only call others. */
static bool work_none(const struct call *c, int a, int b, struct result *r)
{
    (void)c, (void)a, (void)b;
    r->nothing = true;
    return true;
}

/* ---------------------------------------------------------------- the table */

static const struct formula formulas[] = {
#define SND_FLOPS(name, formula, a, b, note) { name, work_##formula, a, b, note },
#include "model/flops.def"
#undef SND_FLOPS
};
#define FORMULAS (sizeof formulas / sizeof formulas[0])

bool snd_flops_entry(size_t index, const char **name, const char **note)
{
    if (index >= FORMULAS)
        return false;
    *name = formulas[index].name;
    *note = formulas[index].note;
    return true;
}

bool snd_flops_is_operator(struct sonde_text name)
{
    static const char *const not_operators[] = { "autograd::", "torch::", "profiler::", "nccl:",
                                                 "c10d::" };
    const char *colons = memmem(name.bytes, name.length, "::", 2);

    if (!colons || colons == name.bytes || memchr(name.bytes, ' ', name.length))
        return false;
    for (size_t i = 0; i < sizeof not_operators / sizeof not_operators[0]; i++) {
        size_t length = strlen(not_operators[i]);
        if (name.length >= length && memcmp(name.bytes, not_operators[i], length) == 0)
            return false;
    }
    return true;
}

static int compare_name(const char *bytes, size_t length, const char *name)
{
    size_t other = strlen(name), least = length < other ? length : other;
    int    order = memcmp(bytes, name, least);

    return order ? order : (length > other) - (length < other);
}

static const struct formula *find_exact(const char *bytes, size_t length)
{
    for (size_t i = 0; i < FORMULAS; i++)
        if (compare_name(bytes, length, formulas[i].name) == 0)
            return &formulas[i];
    return NULL;
}

/* An operator in place computes what the other one does. */
static const struct formula *find_formula(struct sonde_text name)
{
    if (name.length < 4 || !memchr(name.bytes, ':', name.length))
        return NULL;
    const struct formula *f = find_exact(name.bytes, name.length);
    if (!f && name.bytes[name.length - 1] == '_')
        f = find_exact(name.bytes, name.length - 1);
    return f;
}

/* -------------------------------------------------------------------- one call */

/* The strings of a JSON list; escapes do not occur in numbers, so they are not undone. */
static void split_arguments(struct call *c, struct sonde_text json)
{
    const char *at = json.bytes, *end = json.bytes + json.length;

    while (json.length > 0 && c->value_count < ARGUMENTS_MAX) {
        while (at < end && *at != '"')
            at++;
        if (at >= end)
            return;
        const char *stop = ++at;
        while (stop < end && *stop != '"')
            stop += *stop == '\\' && stop + 1 < end ? 2 : 1;
        c->values[c->value_count++] = (struct sonde_text){ at, (size_t)(stop - at) };
        at = stop + 1;
    }
}

static void take_apart(struct call *c, const struct snd_call *from)
{
    *c = (struct call){ .items = from->items, .item_count = from->item_count };
    for (size_t i = 0; i < from->item_count && c->count < ARGUMENTS_MAX; i++) {
        c->top[c->count++] = (uint32_t)i;
        if (from->items[i].kind == SND_SHAPE_LIST)
            i += from->items[i].count < from->item_count ? from->items[i].count : from->item_count;
    }
    split_arguments(c, from->arguments);
}

/* By torch's ScalarType. */
static double item_size(uint8_t dtype)
{
    static const uint8_t sizes[] = { 1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2 };

    return dtype < sizeof sizes ? sizes[dtype] : dtype >= 23 && dtype <= 27 ? 1 : 4;
}

static double count_bytes(const struct call *c, const struct result *r)
{
    double bytes = 0;

    for (size_t i = 0; i < c->item_count; i++)
        if (c->items[i].kind == SND_SHAPE_TENSOR)
            bytes += numel(&c->items[i]) * item_size(c->items[i].dtype);
    const struct sonde_argument *like = tensor(c, r->out_like);
    return bytes + r->out * (like ? item_size(like->dtype) : 4);
}

static enum snd_flops_answer run_formula(const struct formula *f, const struct snd_call *from,
                                         struct snd_work *work)
{
    struct call   c;
    struct result r = { 0 };

    *work = (struct snd_work){ 0 };
    if (f->work == work_none)
        return SND_FLOPS_NO_WORK;
    take_apart(&c, from);
    if (!f->work(&c, f->a, f->b, &r))
        return SND_FLOPS_UNKNOWN;
    *work = (struct snd_work){ 2 * r.macs + r.other, r.macs, count_bytes(&c, &r) };
    if (!isfinite(work->flops) || !isfinite(work->moved_bytes)) {
        *work = (struct snd_work){ 0 };
        return SND_FLOPS_UNKNOWN;
    }
    return SND_FLOPS_FOUND;
}

/* ------------------------------------------------------------- torch's numbers */

/* Its formulas are in 64-bit integers, with its divisions where it has them. */
static double torch_conv2d(const struct call *c)
{
    const struct sonde_argument *x = tensor(c, 0), *w = tensor(c, 1);
    double stride[LIST_MAX], padding[LIST_MAX], dilation[LIST_MAX], groups;

    if (c->count < 7 || !x || !w || x->count != 4 || w->count != 4 ||
        numbers(c, 3, stride) < 2 || numbers(c, 4, padding) < 2 || numbers(c, 5, dilation) < 2 ||
        !number(c, 6, &groups) || groups < 1 || stride[0] < 1 || stride[1] < 1)
        return 0;
    double h = floor((dim(x, 1) + 2 * padding[0] - dilation[0] * (dim(w, 1) - 1) - 1) / stride[0]) + 1;
    double v = floor((dim(x, 0) + 2 * padding[1] - dilation[1] * (dim(w, 0) - 1) - 1) / stride[1]) + 1;
    return floor(2 * dim(x, 3) * h * v * dim(w, 1) * dim(w, 0) * dim(x, 2) * dim(w, 3) / groups);
}

static double torch_matmul(const struct call *c, size_t first, bool batched)
{
    const struct sonde_argument *x = tensor(c, first), *y = tensor(c, first + 1);

    if (!x || !y || x->count == 0 || dim(x, 0) <= 0)
        return 0;
    double flops = numel(x) / dim(x, 0);
    if (batched)
        flops = dim(x, x->count - 1) > 0 ? flops / dim(x, x->count - 1) : 0;
    return flops * numel(y) * 2;
}

static enum snd_flops_answer run_torch(int which, const struct snd_call *from, struct snd_work *work)
{
    struct call c;

    take_apart(&c, from);
    *work = (struct snd_work){ 0 };
    switch (which) {
    case 0: work->flops = torch_conv2d(&c); break;
    case 1: work->flops = torch_matmul(&c, 0, false); break;
    case 2: work->flops = torch_matmul(&c, 1, false); break;
    case 3: work->flops = torch_matmul(&c, 0, true); break;
    case 4: work->flops = torch_matmul(&c, 1, true); break;
    default: work->flops = tensor(&c, 0) ? numel(tensor(&c, 0)) : 0; break;
    }
    if (!isfinite(work->flops))
        work->flops = 0;
    return work->flops > 0 ? SND_FLOPS_FOUND : SND_FLOPS_UNKNOWN;
}

/* -1: not one of the seven. */
static int find_torch(struct sonde_text name)
{
    static const char *const names[] = { "aten::conv2d", "aten::mm", "aten::addmm", "aten::bmm",
                                         "aten::baddbmm", "aten::mul", "aten::add" };

    for (int i = 0; i < 7; i++)
        if (compare_name(name.bytes, name.length, names[i]) == 0)
            return i;
    return -1;
}

enum snd_flops_answer snd_flops_call(struct sonde_text name, enum sonde_flops_mode mode,
                                     const struct snd_call *call, struct snd_work *work)
{
    *work = (struct snd_work){ 0 };
    if (mode == SONDE_FLOPS_TORCH) {
        int which = find_torch(name);
        return which < 0 ? SND_FLOPS_NO_FORMULA : run_torch(which, call, work);
    }
    const struct formula *f = mode == SONDE_FLOPS_FULL ? find_formula(name) : NULL;
    return f ? run_formula(f, call, work) : SND_FLOPS_NO_FORMULA;
}

/* ------------------------------------------------------------ calls of a trace */

struct answer {
    struct snd_work work;
    uint8_t         what; /* enum snd_flops_answer */
};

/* The latest call of a name: the next one is like it more often than not. */
struct latest {
    uint32_t process, shapes, arguments; /* shapes 0: none yet */
    uint32_t answer;
};

struct snd_flops {
    const struct sonde_trace    *trace;
    enum sonde_flops_mode        mode;
    const struct formula       **by_name; /* of each name of the trace; NULL: none */
    int8_t                      *torch_by_name;
    struct latest               *latest;
    struct snd_map               known; /* (name, process; shapes, arguments) to answers */
    struct answer               *answers;
    uint32_t                     answer_count, answer_room;
    struct sonde_argument       *items;
};

static int compare_entries(const void *x, const void *y)
{
    const struct formula *const *a = x, *const *b = y;

    return strcmp((*a)->name, (*b)->name);
}

static const struct formula *search(const struct formula *const *sorted, const char *bytes,
                                    size_t length)
{
    size_t low = 0, high = FORMULAS;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int    order = compare_name(bytes, length, sorted[middle]->name);
        if (order == 0)
            return sorted[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static void match_names(struct snd_flops *f, const struct formula **sorted)
{
    for (size_t i = 0; i < FORMULAS; i++)
        sorted[i] = &formulas[i];
    qsort(sorted, FORMULAS, sizeof *sorted, compare_entries);
    for (uint32_t i = 0; i < f->trace->names.count; i++) {
        struct snd_text name = f->trace->names.items[i];
        f->torch_by_name[i] = (int8_t)find_torch((struct sonde_text){ name.bytes, name.length });
        if (name.length < 4 || !memchr(name.bytes, ':', name.length))
            continue;
        f->by_name[i] = search(sorted, name.bytes, name.length);
        if (!f->by_name[i] && name.bytes[name.length - 1] == '_')
            f->by_name[i] = search(sorted, name.bytes, name.length - 1);
    }
}

enum sonde_status snd_flops_new(const struct sonde_trace *trace, enum sonde_flops_mode mode,
                                struct snd_flops **out, struct sonde_error *err)
{
    const struct formula **sorted = malloc(FORMULAS * sizeof *sorted);
    struct snd_flops      *f = calloc(1, sizeof *f);
    size_t                 names = (size_t)trace->names.count + 1;

    *out = NULL;
    if (f) {
        f->trace = trace;
        f->mode = mode;
        f->by_name = calloc(names, sizeof *f->by_name);
        f->torch_by_name = calloc(names, sizeof *f->torch_by_name);
        f->latest = calloc(names, sizeof *f->latest);
        f->items = malloc(ITEMS_MAX * sizeof *f->items);
    }
    if (!f || !sorted || !f->by_name || !f->torch_by_name || !f->latest || !f->items) {
        free(sorted);
        snd_flops_free(f);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the formulas of operators");
    }
    match_names(f, sorted);
    free(sorted);
    *out = f;
    return SONDE_OK;
}

void snd_flops_free(struct snd_flops *f)
{
    if (!f)
        return;
    free(f->by_name);
    free(f->torch_by_name);
    free(f->latest);
    free(f->items);
    free(f->answers);
    snd_map_release(&f->known);
    free(f);
}

static enum snd_flops_answer work_out(struct snd_flops *f, uint32_t process, uint32_t name,
                                      uint32_t shapes, uint32_t arguments, struct snd_work *work)
{
    size_t count = sonde_trace_arguments(f->trace, process, shapes, f->items, ITEMS_MAX);
    struct snd_call call = { f->items, count < ITEMS_MAX ? count : ITEMS_MAX, { "", 0 } };

    if (arguments != 0)
        call.arguments = sonde_trace_string(f->trace, process, arguments);
    if (f->mode == SONDE_FLOPS_TORCH)
        return run_torch(f->torch_by_name[name], &call, work);
    return run_formula(f->by_name[name], &call, work);
}

/* The number of the answer; UINT32_MAX: it is in *found alone, since memory is out. */
static uint32_t find_answer(struct snd_flops *f, uint32_t process, uint32_t name, uint32_t shapes,
                            uint32_t arguments, struct answer *found)
{
    struct snd_key key = { SND_PAIR(name, process), SND_PAIR(shapes, arguments), 0 };
    uint32_t       at;

    if (snd_map_get(&f->known, key, &at)) {
        *found = f->answers[at];
        return at;
    }
    found->what = (uint8_t)work_out(f, process, name, shapes, arguments, &found->work);
    if (f->answer_count >= ANSWERS_MAX ||
        !snd_grow(&f->answers, &f->answer_room, f->answer_count, sizeof *f->answers) ||
        !snd_map_put(&f->known, key, f->answer_count))
        return UINT32_MAX; /* worked out again the next time */
    f->answers[f->answer_count] = *found;
    return f->answer_count++;
}

enum snd_flops_answer snd_flops_of(struct snd_flops *f, uint32_t process, uint32_t name,
                                   uint32_t shapes, uint32_t arguments, struct snd_work *work)
{
    struct answer found = { .what = SND_FLOPS_UNKNOWN };

    *work = (struct snd_work){ 0 };
    if (name >= f->trace->names.count ||
        (f->mode == SONDE_FLOPS_TORCH ? f->torch_by_name[name] < 0 : !f->by_name[name]))
        return SND_FLOPS_NO_FORMULA;
    if (f->mode == SONDE_FLOPS_FULL && f->by_name[name]->work == work_none)
        return SND_FLOPS_NO_WORK;
    if (shapes == 0)
        return SND_FLOPS_UNKNOWN;
    struct latest *latest = &f->latest[name];
    if (latest->shapes == shapes && latest->arguments == arguments && latest->process == process) {
        found = f->answers[latest->answer];
    } else {
        uint32_t at = find_answer(f, process, name, shapes, arguments, &found);
        if (at != UINT32_MAX)
            *latest = (struct latest){ process, shapes, arguments, at };
    }
    *work = found.work;
    return found.what;
}
