/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_formulas.h - the arguments of a call, and the formulas over them.
 *
 * Sizes come from the trace, which may be hostile: everything is a double, so nothing overflows,
 * and no formula goes over more than a few thousand of anything.
 *
 * Layer: model. Threads: any.
 */
#ifndef SND_MODEL_FLOPS_FLOPS_FORMULAS_H
#define SND_MODEL_FLOPS_FLOPS_FORMULAS_H

#include <stdbool.h>

#include "format/layout.h"
#include "sonde/trace.h"

#define SND_ARGUMENTS_MAX 24u /* of one operator, as far as a formula looks */
#define SND_NUMBERS_MAX 8u    /* numbers of a list argument: a stride, a padding */

/* A call, taken apart. */
struct snd_flops_call {
    const struct sonde_argument *items;
    size_t                       item_count;
    uint32_t          top[SND_ARGUMENTS_MAX]; /* items that are arguments, not elements */
    size_t            count;
    struct sonde_text values[SND_ARGUMENTS_MAX]; /* as torch prints them, without quotes */
    size_t            value_count;
};

/* What a formula finds. `out`: elements written, of the type `dtype`. */
struct snd_flops_result {
    double  macs, other, out;
    double  indices;   /* more of them, of int64 */
    double  own_bytes; /* written besides: elements that have each a type of their own */
    uint8_t dtype;     /* at first that of the first tensor among the arguments */
};

/* The type of what an operator returns, from what its formula finds. */
enum snd_result_rule {
    SND_RESULT_FOUND, /* that one */
    SND_RESULT_BOOL,
    SND_RESULT_INT32,
    SND_RESULT_INT64,
    SND_RESULT_FLOAT32,
    SND_RESULT_FLOAT64,     /* or the complex one of it */
    SND_RESULT_REAL,        /* of integers torch's default, float32 */
    SND_RESULT_QUOTIENT,    /* the same, unless it is rounded */
    SND_RESULT_SUM,         /* of integers int64; or as the last argument says */
    SND_RESULT_RUNNING_SUM, /* the same, the third argument */
    SND_RESULT_MEAN,        /* or as the last argument says */
    SND_RESULT_PART,        /* of a complex type its part's */
    SND_RESULT_COMPLEX,     /* the complex type of such parts */
    SND_RESULT_ARGUMENT_3,  /* as this argument says */
    SND_RESULT_ARGUMENT_6,
    SND_RESULT_FIRST, /* the first argument's */
};

/* --------------------------------------------------------------------- types */

double snd_type_bytes(uint8_t dtype);
/* Of these arguments together, lists of tensors among them. */
uint8_t snd_type_promoted(const struct snd_flops_call *c, size_t first, size_t last);
uint8_t snd_type_of_result(const struct snd_flops_call *c, enum snd_result_rule rule,
                           uint8_t dtype);

/* ---------------------------------------------------------------- arguments */

const struct sonde_argument *snd_arg_tensor(const struct snd_flops_call *c, size_t i);
const struct sonde_argument *snd_arg_list(const struct snd_flops_call *c, size_t i);
/* Element `k` of a list argument, if it is a tensor. */
const struct sonde_argument *snd_arg_element(const struct snd_flops_call *c,
                                             const struct sonde_argument *l, size_t k);
double                       snd_arg_product(const int64_t *dims, size_t count);
double                       snd_arg_numel(const struct sonde_argument *t);
/* From the end: 0 is the last. */
double snd_arg_dim(const struct sonde_argument *t, size_t from_end);
/* By its number, which may be counted from the end (-1: the last); 1: there is none such. */
double snd_arg_size(const struct sonde_argument *t, double number);
/* "3", "True", "1.5"; false if it is not a number. */
bool snd_arg_number(const struct snd_flops_call *c, size_t i, double *value);
bool snd_arg_is_true(const struct snd_flops_call *c, size_t i);
/* "[1, 1]" to its numbers; returns how many, or -1 if it is not such a list. */
int snd_arg_numbers(const struct snd_flops_call *c, size_t i, double values[SND_NUMBERS_MAX]);
/* The k-th number of a list; one number stands for all, none for `missing`. */
double snd_arg_pick(const double *values, int count, unsigned k, double missing);
/* Elements of the result of an element-wise operator: its tensors, broadcast. */
double snd_arg_broadcast(const struct snd_flops_call *c, size_t first, size_t last);

/* ----------------------------------------------------------------- formulas */

/* Which arguments of a convolution are what. */
enum conv_kind {
    CONV_FUNCTION, /* conv2d(x, w, bias, stride, padding, dilation, groups) */
    CONV_TRANSPOSE, /* conv_transpose2d(x, w, bias, stride, padding, output_padding, groups, dilation) */
    CONV_GENERAL, /* convolution(x, w, bias, stride, padding, dilation, transposed, ..) */
    CONV_BACKWARD, /* convolution_backward(g, x, w, bias, stride, padding, dilation, transposed, .., mask) */
    CONV_MKLDNN, /* mkldnn_convolution(x, w, bias, padding, stride, dilation, groups) */
    CONV_CUDNN,  /* cudnn_convolution(x, w, padding, stride, dilation, groups, ..) */
    CONV_CUDNN_T, /* cudnn_convolution_transpose(x, w, padding, output_padding, stride, dilation, ..) */
    CONV_CUDNN_RELU, /* cudnn_convolution_relu(x, w, bias, stride, padding, dilation, groups) */
    CONV_CUDNN_ADD, /* cudnn_convolution_add_relu(x, w, z, alpha, bias, stride, padding, dilation, ..) */
    CONV_SLOW,      /* _slow_conv2d_forward(x, w, kernel, bias, stride, padding) */
    CONV_SLOW_T, /* slow_conv_transpose2d(x, w, kernel, bias, stride, padding, output_padding, dilation) */
    CONV_SLOW_BACKWARD, /* _slow_conv2d_backward(g, x, w, kernel, stride, padding, mask) */
    CONV_NNPACK,        /* _nnpack_spatial_convolution(x, w, bias, padding, stride) */
    CONV_ONEDNN_Q, /* onednn::qconv_pointwise(x, scale, zero, w, w_scale, w_zero, bias, stride, padding, dilation, ..) */
};

enum factor_kind { FACTOR_LU, FACTOR_CHOLESKY, FACTOR_INVERSE, FACTOR_QR };
enum fourier_kind {
    FOURIER_COMPLEX,
    FOURIER_OF_REAL, /* real numbers in, complex ones out: half of them, or all */
    FOURIER_TO_REAL, /* the other way: argument 3 is the size of the last dim */
};

/* By the name in flops.def, with its two parameters. False: what it needs was not recorded. */
#define SND_WORK(name) \
    bool snd_work_##name(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
SND_WORK(mm);
SND_WORK(matmul);
SND_WORK(linear);
SND_WORK(linear_backward);
SND_WORK(packed_linear);
SND_WORK(mv);
SND_WORK(dot);
SND_WORK(ger);
SND_WORK(addbmm);
SND_WORK(cdist);
SND_WORK(factor);
SND_WORK(solve);
SND_WORK(solve_factored);
SND_WORK(solve_triangle);
SND_WORK(fourier);
SND_WORK(conv);
SND_WORK(conv_tbc);
SND_WORK(attention);
SND_WORK(multi_head);
SND_WORK(encoder_layer);
SND_WORK(rnn);
SND_WORK(cell);
SND_WORK(mkldnn_rnn);
SND_WORK(cudnn_rnn);
SND_WORK(fused_cell);
SND_WORK(each);
SND_WORK(choose);
SND_WORK(foreach);
SND_WORK(like);
SND_WORK(halves);
SND_WORK(norm);
SND_WORK(batch_norm);
SND_WORK(reduce);
SND_WORK(total);
SND_WORK(extreme);
SND_WORK(running);
SND_WORK(sort);
SND_WORK(copy);
SND_WORK(select);
SND_WORK(cat);
SND_WORK(embedding);
SND_WORK(pool);
SND_WORK(adaptive_pool);
SND_WORK(resize);
SND_WORK(roi);
SND_WORK(none);
#undef SND_WORK

/*
 * What packed_linear cannot know: from an operator inside it that makes room for the result, the sizes
 * of which are among its first two arguments. False: they are not.
 */
bool snd_packed_linear_from(const struct snd_flops_call *c, const struct snd_flops_call *child,
                            int weight_bytes, struct snd_flops_result *r);

#endif
