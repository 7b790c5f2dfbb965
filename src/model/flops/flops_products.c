/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_products.c - formulas of products: matrices, convolutions, attention, recurrent
 * networks. They count multiply-accumulates.
 */
#include <math.h>

#include "model/flops/flops_formulas.h"

/* ---------------------------------------------------------------- contractions */

static bool set_matmul(struct snd_flops_result *r, double batch, double m, double n, double k)
{
    r->macs = batch * m * n * k;
    r->out = batch * m * n;
    return true;
}

/* a, b: which arguments are the two matrices (possibly batches of them). */
bool snd_work_mm(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *y = snd_arg_tensor(c, (size_t)b);

    if (!x || !y || x->count < 2 || y->count < 2)
        return false;
    double batch = x->count > 2 ? snd_arg_product(x->dims, x->count - 2) : 1;
    return set_matmul(r, batch, snd_arg_dim(x, 1), snd_arg_dim(y, 0), snd_arg_dim(x, 0));
}

/* torch.matmul: vectors, matrices and broadcast batches of them. */
bool snd_work_matmul(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *y = snd_arg_tensor(c, (size_t)b);

    if (!x || !y || x->count == 0 || y->count == 0)
        return false;
    double k = snd_arg_dim(x, 0), m = x->count > 1 ? snd_arg_dim(x, 1) : 1,
           n = y->count > 1 ? snd_arg_dim(y, 0) : 1;
    double batch = 1;
    for (size_t i = 2; i < x->count || i < y->count; i++)
        batch *= fmax(i < x->count ? snd_arg_dim(x, i) : 1, i < y->count ? snd_arg_dim(y, i) : 1);
    return set_matmul(r, batch, m, n, k);
}

/* Weight is out x in; what comes before the last dim of the input is batch. */
bool snd_work_linear(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *w = snd_arg_tensor(c, (size_t)b);

    if (!x || !w || x->count == 0 || w->count == 0 || w->count > 2)
        return false;
    double k = snd_arg_dim(x, 0), n = w->count == 2 ? snd_arg_dim(w, 1) : 1;
    return set_matmul(r, 1, k > 0 ? snd_arg_numel(x) / k : 0, n, k);
}

/* quantized::linear(x, packed weights, ..). a: bytes of a weight. Its output's width is not among its shapes. */
bool snd_work_packed_linear(const struct snd_flops_call *c, int a, int b,
                            struct snd_flops_result *r)
{
    (void)c, (void)a, (void)b, (void)r;
    return false;
}

bool snd_packed_linear_from(const struct snd_flops_call *c, const struct snd_flops_call *child,
                            int weight_bytes, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double                       in = snd_arg_dim(x, 0), sizes[SND_NUMBERS_MAX];

    if (!x || x->count == 0 || in <= 0)
        return false;
    for (size_t i = 0; i < 2; i++) {
        int    count = snd_arg_numbers(child, i, sizes);
        double rows = 1;
        for (int k = 0; k + 1 < count; k++)
            rows *= sizes[k];
        if (count != (int)x->count || rows * in != snd_arg_numel(x) || sizes[count - 1] < 1)
            continue;
        r->own_bytes = in * sizes[count - 1] * weight_bytes;
        return set_matmul(r, 1, rows, sizes[count - 1], in);
    }
    return false;
}

/* mkldnn's weights may be packed into blocks: the output's width is the bias's, or unknown. */
bool snd_work_linear_backward(const struct snd_flops_call *c, int a, int b,
                              struct snd_flops_result *r)
{
    const struct sonde_argument *g = snd_arg_tensor(c, (size_t)a),
                                *w = snd_arg_tensor(c, (size_t)b);

    if (!g || !w || w->count != 2 || g->count == 0)
        return false;
    double rows = snd_arg_dim(g, 0) > 0 ? snd_arg_numel(g) / snd_arg_dim(g, 0) : 0;
    r->macs = 2 * rows * snd_arg_numel(w);
    r->out = rows * snd_arg_dim(w, 0) + snd_arg_numel(w);
    return true;
}

bool snd_work_mv(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a);

    (void)b;
    if (!x || x->count != 2)
        return false;
    return set_matmul(r, 1, snd_arg_dim(x, 1), 1, snd_arg_dim(x, 0));
}

bool snd_work_dot(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a);

    (void)b;
    if (!x || x->count != 1)
        return false;
    return set_matmul(r, 1, 1, 1, snd_arg_dim(x, 0));
}

bool snd_work_ger(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *y = snd_arg_tensor(c, (size_t)b);

    if (!x || !y || x->count != 1 || y->count != 1)
        return false;
    return set_matmul(r, 1, snd_arg_dim(x, 0), snd_arg_dim(y, 0), 1);
}

/* addbmm: the batch is summed up. */
bool snd_work_addbmm(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    if (!snd_work_mm(c, a, b, r))
        return false;
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *y = snd_arg_tensor(c, (size_t)b);
    r->out = snd_arg_dim(x, 1) * snd_arg_dim(y, 0);
    return true;
}

bool snd_work_cdist(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)a),
                                *y = snd_arg_tensor(c, (size_t)b);

    if (!snd_work_matmul(c, a, b, r) || x->count < 2 || y->count < 2)
        return false;
    double batch = snd_arg_product(x->dims, x->count - 2),
           pairs = batch * snd_arg_dim(x, 1) * snd_arg_dim(y, 1);
    r->macs = 0;
    r->other = pairs * (3 * snd_arg_dim(x, 0) + 1); /* difference, power, sum; root */
    r->out = pairs;
    return true;
}

/* ---------------------------------------------------------------- convolutions */

/*
 * Where an operator keeps what; -1: it has none, or none is looked at: a transposed one applies the
 * filter at each place of its input, a backward one where the output's gradient is.
 */
struct conv_form {
    int input, weight, stride, padding, dilation, transposed, mask;
};

static const struct conv_form conv_forms[] = {
    [CONV_FUNCTION] = { 0, 1, 3, 4, 5, -1, -1 },
    [CONV_TRANSPOSE] = { 0, 1, -1, -1, -1, -1, -1 },
    [CONV_GENERAL] = { 0, 1, 3, 4, 5, 6, -1 },
    [CONV_BACKWARD] = { 1, 2, -1, -1, -1, 7, 10 },
    [CONV_MKLDNN] = { 0, 1, 4, 3, 5, -1, -1 },
    [CONV_CUDNN] = { 0, 1, 3, 2, 4, -1, -1 },
    [CONV_CUDNN_T] = { 0, 1, -1, -1, -1, -1, -1 },
    [CONV_CUDNN_RELU] = { 0, 1, 3, 4, 5, -1, -1 },
    [CONV_CUDNN_ADD] = { 0, 1, 5, 6, 7, -1, -1 },
    [CONV_SLOW] = { 0, 1, 4, 5, 6, -1, -1 },
    [CONV_SLOW_T] = { 0, 1, -1, -1, -1, -1, -1 },
    [CONV_SLOW_BACKWARD] = { 1, 2, -1, -1, -1, -1, 6 },
    [CONV_NNPACK] = { 0, 1, 4, 3, -1, -1, -1 },
    [CONV_ONEDNN_Q] = { 0, 3, 7, 8, 9, -1, -1 },
};

/* Positions to which the filter is applied. False: what they depend on was not recorded. */
static bool count_positions(const struct snd_flops_call *c, const struct conv_form *f,
                            bool transposed, unsigned spatial, double *positions)
{
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)f->input),
                                *w = snd_arg_tensor(c, (size_t)f->weight);
    double stride[SND_NUMBERS_MAX], padding[SND_NUMBERS_MAX], dilation[SND_NUMBERS_MAX];

    *positions = 1;
    if (transposed) {
        for (unsigned k = 0; k < spatial; k++)
            *positions *= snd_arg_dim(x, k);
        return true;
    }
    int strides = snd_arg_numbers(c, (size_t)f->stride, stride);
    int paddings = snd_arg_numbers(c, (size_t)f->padding, padding);
    int dilations = f->dilation < 0 ? 0 : snd_arg_numbers(c, (size_t)f->dilation, dilation);
    if (strides <= 0 || paddings < 0)
        return false; /* also padding='same', which is a text: an inner operator knows it */
    for (unsigned k = 0; k < spatial; k++) { /* lists are in the order of the dims */
        double s = snd_arg_pick(stride, strides, k, 1), p = snd_arg_pick(padding, paddings, k, 0);
        double d = snd_arg_pick(dilation, dilations, k, 1);
        double in = snd_arg_dim(x, spatial - 1 - k), filter = snd_arg_dim(w, spatial - 1 - k);
        if (s < 1)
            return false;
        double out = floor((in + 2 * p - d * (filter - 1) - 1) / s) + 1;
        *positions *= out > 0 ? out : 0;
    }
    return true;
}

/* a: form; b: dims that the filter moves along, or 0: those of the weight. */
bool snd_work_conv(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct conv_form      *f = &conv_forms[a];
    const struct sonde_argument *x = snd_arg_tensor(c, (size_t)f->input),
                                *w = snd_arg_tensor(c, (size_t)f->weight);
    double mask[SND_NUMBERS_MAX], positions;

    if (!x || !w || w->count < 3 || (b > 0 && w->count != (uint32_t)b + 2))
        return false;
    unsigned spatial = w->count - 2;
    if (x->count != spatial + 2 && x->count != spatial + 1)
        return false;
    bool transposed = a == CONV_TRANSPOSE || a == CONV_CUDNN_T || a == CONV_SLOW_T ||
                      (f->transposed >= 0 && snd_arg_is_true(c, (size_t)f->transposed));
    double batch = x->count == spatial + 2 ? snd_arg_dim(x, spatial + 1) : 1;
    int    passes = 1;
    if (f->mask >= 0) {
        const struct sonde_argument *g =
            snd_arg_tensor(c, 0); /* the output's gradient has the positions */
        int known = snd_arg_numbers(c, (size_t)f->mask, mask);
        if (!g || g->count < spatial || known < 2)
            return false;
        passes = (mask[0] > 0) + (mask[1] > 0);
        const struct sonde_argument *where = transposed ? x : g;
        positions = 1;
        for (unsigned k = 0; k < spatial; k++)
            positions *= snd_arg_dim(where, k);
        r->out = (mask[0] > 0 ? snd_arg_numel(x) : 0) + (mask[1] > 0 ? snd_arg_numel(w) : 0);
    } else {
        if (!count_positions(c, f, transposed, spatial, &positions))
            return false;
        /* A transposed one's output is as large as its stride makes it: its input is what counts. */
        r->out = batch * positions *
                 (transposed ? snd_arg_dim(w, spatial) : snd_arg_dim(w, spatial + 1));
        r->dtype = x->dtype;
    }
    r->macs = passes * batch * positions *
              snd_arg_numel(w); /* the weight has channels / groups already */
    return true;
}

/* conv_tbc(x: T x B x C, w: K x C x O, bias, pad) */
bool snd_work_conv_tbc(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *w = snd_arg_tensor(c, 1);
    double                       pad;

    (void)a, (void)b;
    if (!x || !w || x->count != 3 || w->count != 3 || !snd_arg_number(c, 3, &pad))
        return false;
    double out = snd_arg_dim(x, 2) + 2 * pad - snd_arg_dim(w, 2) + 1;
    r->out = (out > 0 ? out : 0) * snd_arg_dim(x, 1) * snd_arg_dim(w, 0);
    r->macs = (out > 0 ? out : 0) * snd_arg_dim(x, 1) * snd_arg_numel(w);
    return true;
}

/* ------------------------------------------------------------------- attention */

/*
 * a: query's argument; keys and values follow. b bit 0: backward, bit 1: sequence before heads.
 * Forward: query by key, softmax, by value. Backward: the scores once more, then four products.
 */
bool snd_work_attention(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *q = snd_arg_tensor(c, (size_t)a),
                                *k = snd_arg_tensor(c, (size_t)a + 1),
                                *v = snd_arg_tensor(c, (size_t)a + 2);

    if (!q || !k || !v || q->count < 3 || k->count < 3 || v->count < 3)
        return false;
    bool   swapped = (b & 2) && q->count == 4;
    double d = snd_arg_dim(q, 0), dv = snd_arg_dim(v, 0);
    double sq = snd_arg_dim(q, swapped ? 2 : 1), sk = snd_arg_dim(k, swapped ? 2 : 1);
    double heads = sq > 0 && d > 0 ? snd_arg_numel(q) / (sq * d) : 0; /* batch and heads */
    double scores = heads * sq * sk;
    if (b & 1) {
        r->macs = scores * (3 * d + 2 * dv);
        r->other = scores * 8; /* softmax again, and back through it */
        r->out = snd_arg_numel(q) + snd_arg_numel(k) + snd_arg_numel(v);
    } else {
        r->macs = scores * (d + dv);
        r->other = scores * 6; /* scale; greatest, difference, exp, sum, quotient */
        r->out = heads * sq * dv;
    }
    r->dtype = q->dtype;
    return true;
}

/* _native_multi_head_attention(q, k, v, embed_dim, heads, qkv_w, qkv_b, proj_w, proj_b, ..) */
bool snd_work_multi_head(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *q = snd_arg_tensor(c, 0), *k = snd_arg_tensor(c, 1),
                                *w = snd_arg_tensor(c, 5), *p = snd_arg_tensor(c, 7);
    double heads;

    (void)a, (void)b;
    if (!q || !k || !w || !p || q->count != 3 || k->count != 3 || !snd_arg_number(c, 4, &heads))
        return false;
    double batch = snd_arg_dim(q, 2), sq = snd_arg_dim(q, 1), sk = snd_arg_dim(k, 1),
           e = snd_arg_dim(q, 0);
    double scores = batch * heads * sq * sk;
    r->macs = batch * (sq + 2 * sk) * e * e + 2 * batch * sq * sk * e +
              batch * sq * snd_arg_numel(p);
    r->other = scores * 6;
    r->out = snd_arg_numel(q);
    return true;
}

/* _transformer_encoder_layer_fwd(src, embed_dim, heads, qkv_w, qkv_b, proj_w, proj_b, use_gelu,
 * norm_first, eps, norm_w1, norm_b1, norm_w2, norm_b2, ffn_w1, ffn_b1, ffn_w2, ffn_b2, ..) */
bool snd_work_encoder_layer(const struct snd_flops_call *c, int a, int b,
                            struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *proj = snd_arg_tensor(c, 5),
                                *w1 = snd_arg_tensor(c, 14), *w2 = snd_arg_tensor(c, 16),
                                *qkv = snd_arg_tensor(c, 3);
    double heads;

    (void)a, (void)b;
    if (!x || !proj || !w1 || !w2 || !qkv || x->count != 3 || !snd_arg_number(c, 2, &heads))
        return false;
    double rows = snd_arg_dim(x, 2) * snd_arg_dim(x, 1),
           scores = snd_arg_dim(x, 2) * snd_arg_dim(x, 1) * snd_arg_dim(x, 1);
    r->macs =
        rows * (snd_arg_numel(qkv) + snd_arg_numel(proj) + snd_arg_numel(w1) + snd_arg_numel(w2)) +
        2 * scores * snd_arg_dim(x, 0);
    r->other = 6 * scores * heads + 2 * 7 * snd_arg_numel(x) + rows * snd_arg_dim(w1, 1) * 5 +
               2 * snd_arg_numel(x);
    r->out = snd_arg_numel(x);
    return true;
}

/* ------------------------------------------------------------ recurrent networks */

/* One direction of one layer: `gates` products, and what is done with each element of them. */
static void add_cell(struct snd_flops_result *r, double steps, double in, double hidden, int gates)
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
bool snd_work_rnn(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    size_t packed = snd_arg_list(c, 3) ? 1 : 0; /* a packed sequence has its batch sizes second */
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *params = snd_arg_list(c, 2 + packed);
    double                       layers;

    (void)b;
    if (!x || !params || x->count < 2 || !snd_arg_number(c, 4 + packed, &layers))
        return false;
    double   steps = snd_arg_dim(x, 0) > 0 ? snd_arg_numel(x) / snd_arg_dim(x, 0) : 0;
    bool     biases = snd_arg_is_true(c, 3 + packed);
    double   directions = snd_arg_is_true(c, 7 + packed) ? 2 : 1;
    unsigned each = biases ? 4 : 2; /* w_ih, w_hh[, b_ih, b_hh] */
    if (params->count < each * layers * directions)
        return false; /* projected LSTMs have five: the inner operators count them */
    double hidden = 0;
    for (unsigned i = 0; i + 1 < params->count; i += each) {
        const struct sonde_argument *in = snd_arg_element(c, params, i),
                                    *own = snd_arg_element(c, params, i + 1);
        if (!in || !own || in->count != 2 || own->count != 2 ||
            snd_arg_dim(own, 1) != a * snd_arg_dim(own, 0))
            return false;
        hidden = snd_arg_dim(own, 0);
        add_cell(r, steps, snd_arg_dim(in, 0), hidden, a);
    }
    r->out = steps * hidden * directions;
    return true;
}

/* rnn_tanh_cell, lstm_cell, gru_cell(x, hx, w_ih, w_hh, ..). a: gates. */
bool snd_work_cell(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *in = snd_arg_tensor(c, 2),
                                *own = snd_arg_tensor(c, 3);

    (void)b;
    if (!x || !in || !own || in->count != 2 || own->count != 2 || x->count == 0)
        return false;
    double steps = snd_arg_dim(x, 0) > 0 ? snd_arg_numel(x) / snd_arg_dim(x, 0) : 0;
    add_cell(r, steps, snd_arg_dim(in, 0), snd_arg_dim(own, 0), a);
    r->out = steps * snd_arg_dim(own, 0);
    return true;
}

/* mkldnn_rnn_layer(x, w_ih, w_hh, b_ih, b_hh, hx, cx, reverse, sizes, mode, hidden, ..).
 * a: 1 forward, 2 more for backward. */
bool snd_work_mkldnn_rnn(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *in = snd_arg_tensor(c, 1),
                                *own = snd_arg_tensor(c, 2);

    (void)b;
    if (!x || !in || !own || in->count != 2 || own->count != 2 || x->count != 3)
        return false;
    double hidden = snd_arg_dim(own, 0);
    int    gates = hidden > 0 ? (int)fmin(snd_arg_dim(own, 1) / hidden, 4) : 0;
    if (gates < 1)
        return false;
    double steps = snd_arg_dim(x, 2) * snd_arg_dim(x, 1);
    add_cell(r, steps, snd_arg_dim(in, 0), hidden, gates);
    r->macs *= a;
    r->other *= a;
    r->out = steps * hidden;
    return true;
}

/*
 * _cudnn_rnn(x, weights[], stride0, weight_buf, hx, cx, mode, hidden, proj, layers, batch_first,
 * dropout, train, bidirectional, ..), the same arguments in front of _cudnn_rnn_backward's.
 * a: 1 forward, 2 backward; b: which argument says that there are two directions, or 0. The weights
 * tell all else but the length of the sequence.
 */
bool snd_work_cudnn_rnn(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *weights = snd_arg_list(c, 1);
    double                       stride0;

    if (!x || !weights || x->count < 2 || !snd_arg_number(c, 2, &stride0) || stride0 < 2 ||
        stride0 > 8)
        return false;
    double steps = snd_arg_dim(x, 0) > 0 ? snd_arg_numel(x) / snd_arg_dim(x, 0) : 0, hidden = 0;
    for (unsigned i = 0; i + 1 < weights->count; i += (unsigned)stride0) {
        const struct sonde_argument *in = snd_arg_element(c, weights, i),
                                    *own = snd_arg_element(c, weights, i + 1);
        if (!in || !own || in->count != 2 || own->count != 2 || snd_arg_dim(own, 0) <= 0)
            return false;
        hidden = snd_arg_dim(own, 0);
        add_cell(r, steps, snd_arg_dim(in, 0), hidden, (int)fmin(snd_arg_dim(own, 1) / hidden, 4));
    }
    r->macs *= a;
    r->other *= a;
    r->out = steps * hidden * (b > 0 && snd_arg_is_true(c, (size_t)b) ? 2 : 1);
    return true;
}

/* _thnn_fused_lstm_cell(input_gates, hidden_gates, ..): the products were made before. a: gates. */
bool snd_work_fused_cell(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *g = snd_arg_tensor(c, 0);

    (void)b;
    if (!g)
        return false;
    r->out = snd_arg_numel(g) / a;
    r->other = r->out * ((a == 4 ? 18 : 14) + a);
    return true;
}
