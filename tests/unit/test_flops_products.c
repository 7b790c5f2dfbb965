/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products, convolutions, attention and recurrent networks: each line of the tables against its
 * definition, worked out by hand. Sizes differ from each other, so that none stands for another.
 */
#include "base/count_of.h"
#include "flops_call.h"

/* Stride 3, padding 2, dilation 2 and 1 of 9 x 12 and a filter of 3 x 4: (9 + 4 - 4 - 1) / 3 + 1 = 3
 * by (12 + 4 - 3 - 1) / 3 + 1 = 5 places. */
#define IMAGE "2,5,9,12"
#define FILTER "7,5,3,4"
#define PLACES (2.0 * 3 * 5)
#define WEIGHTS (7.0 * 5 * 3 * 4)

static const struct flops_row products[] = {
    { "aten::mm", "3,4;4,5", "", 60, 0, 15 },
    { "aten::addmm", "5;3,4;4,5;#;#", "", 60, 0, 15 },
    { "aten::bmm", "7,3,4;7,4,5", "", 420, 0, 105 },
    { "aten::mm", "2,7,3,4;2,7,4,5", "", 840, 0, 210 },
    { "aten::addbmm", "3,5;7,3,4;7,4,5;#;#", "", 420, 0, 15 },
    { "aten::matmul", "4;4", "", 4, 0, 1 },
    { "aten::matmul", "2,3,4;4", "", 24, 0, 6 },
    { "aten::matmul", "4;2,4,5", "", 40, 0, 10 },
    { "aten::matmul", "2,1,3,4;6,4,5", "", 2 * 6 * 60, 0, 2 * 6 * 15 },
    { "aten::matmul", "6,3,4;2,1,4,5", "", 2 * 6 * 60, 0, 2 * 6 * 15 },
    { "aten::linear", "2,3,4;5,4;5", "", 6 * 20, 0, 30 },
    { "aten::linear", "4;5,4", "", 20, 0, 5 },
    { "aten::linear", "3,4;4", "", 12, 0, 3 },
    { "aten::linear", "3,0;5,0", "", 0, 0, 0 },
    { "onednn::qlinear_pointwise", "2,4;#;#;5,4;5;5;-", "", 40, 0, 10 },
    { "aten::linear_backward", "2,3,4;2,3,5;5,4;-", "", 2 * 6 * 20, 0, 6 * 4 + 20 },
    { "aten::linear_backward", "2,4;2,0;0,4;-", "", 0, 0, 0 },
    { "aten::linear_backward", "4;5;5,4;-", "", 2 * 20, 0, 4 + 20 },
    { "aten::mv", "3,4;4", "", 12, 0, 3 },
    { "aten::addmv", "3;3,4;4;#;#", "", 12, 0, 3 },
    { "aten::dot", "9;9", "", 9, 0, 1 },
    { "aten::ger", "3;4", "", 12, 0, 12 },
    { "aten::addr", "3,4;3;4;#;#", "", 12, 0, 12 },
    /* difference, power and sum of each number, and a root of all */
    { "aten::cdist", "3,4;5,4;#;-", "", 0, 15 * (3 * 4 + 1), 15 },
    { "aten::cdist", "2,3,4;2,5,4;#;-", "", 0, 30 * (3 * 4 + 1), 30 },
    { "aten::conv_tbc", "9,2,3;4,3,5;5;#", ";;;1", 8 * 2 * 60, 0, 8 * 2 * 5 },
    { "aten::conv_tbc", "2,2,3;4,3,5;5;#", ";;;0", 0, 0, 0 },
};

static const struct flops_row no_products[] = {
    { "aten::mm", "3,4", "", 0, 0, 0 },
    { "aten::mm", "3,4;4", "", 0, 0, 0 },
    { "aten::mm", "4;4,5", "", 0, 0, 0 },
    { "aten::mm", "3,4;#", "", 0, 0, 0 },
    { "aten::matmul", "3,4;-", "", 0, 0, 0 },
    { "aten::matmul", "-;3,4", "", 0, 0, 0 },
    { "aten::matmul", ";3,4", "", 0, 0, 0 }, /* the first has no dims */
    { "aten::linear", ";3,4", "", 0, 0, 0 },
    { "aten::linear", "3,4;5,4,2", "", 0, 0, 0 },
    { "aten::linear", "-;5,4", "", 0, 0, 0 },
    { "aten::linear_backward", "2,4;2,5;5", "", 0, 0, 0 },
    { "aten::linear_backward", "2,4;2,5;5,4,1", "", 0, 0, 0 },
    { "aten::linear_backward", "2,4;-;5,4", "", 0, 0, 0 },
    { "aten::mv", "2,3,4;4", "", 0, 0, 0 },
    { "aten::mv", "4;4", "", 0, 0, 0 },
    { "aten::dot", "3,3;3", "", 0, 0, 0 },
    { "aten::dot", "-;3", "", 0, 0, 0 },
    { "aten::ger", "3,1;4", "", 0, 0, 0 },
    { "aten::ger", "3;4,1", "", 0, 0, 0 },
    { "aten::ger", "3;-", "", 0, 0, 0 },
    { "aten::addbmm", "3,5;3;7,4,5", "", 0, 0, 0 },
    { "aten::cdist", "4;5,4;#", "", 0, 0, 0 },
    { "aten::cdist", "3,4;4;#", "", 0, 0, 0 },
    { "aten::cdist", "-;5,4;#", "", 0, 0, 0 },
    { "quantized::linear", "2,4;-", "", 0, 0, 0 }, /* its output's width is elsewhere */
    { "aten::conv_tbc", "9,2,3;4,3,5;5;#", "", 0, 0, 0 },
    { "aten::conv_tbc", "9,2;4,3,5;5;#", ";;;1", 0, 0, 0 },
    { "aten::conv_tbc", "9,2,3;4,3;5;#", ";;;1", 0, 0, 0 },
};

/* The same convolution by each of the operators that torch has for it: their arguments are in another order. */
static const struct flops_row forms[] = {
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;-;-;#", ";;;[3, 3];[2, 2];[2, 1];1", PLACES *WEIGHTS,
      0, PLACES * 7 },
    { "aten::convolution", IMAGE ";" FILTER ";7;-;-;-;#;-;#",
      ";;;[3, 3];[2, 2];[2, 1];False;[0, 0];1", PLACES *WEIGHTS, 0, PLACES * 7 },
    { "aten::mkldnn_convolution", IMAGE ";" FILTER ";7;-;-;-;#", ";;;[2, 2];[3, 3];[2, 1];1",
      PLACES *WEIGHTS, 0, PLACES * 7 },
    { "aten::cudnn_convolution", IMAGE ";" FILTER ";-;-;-;#", ";;[2, 2];[3, 3];[2, 1];1",
      PLACES *WEIGHTS, 0, PLACES * 7 },
    { "aten::cudnn_convolution_relu", IMAGE ";" FILTER ";7;-;-;-;#", ";;;[3, 3];[2, 2];[2, 1];1",
      PLACES *WEIGHTS, 0, PLACES * 7 },
    { "aten::cudnn_convolution_add_relu", IMAGE ";" FILTER ";2,7,3,5;#;7;-;-;-;#",
      ";;;1;;[3, 3];[2, 2];[2, 1];1", PLACES *WEIGHTS, 0, PLACES * 7 },
    { "aten::slow_conv_dilated2d", IMAGE ";" FILTER ";-;7;-;-;-", ";;[3, 4];;[3, 3];[2, 2];[2, 1]",
      PLACES *WEIGHTS, 0, PLACES * 7 },
    { "onednn::qconv2d_pointwise", IMAGE ";#;#;" FILTER ";7;7;7;-;-;-;#",
      ";1;0;;;;;[3, 3];[2, 2];[2, 1];1", PLACES *WEIGHTS, 0, PLACES * 7 },
    /* no dilation: (9 + 4 - 2 - 1) / 3 + 1 = 4 by (12 + 4 - 3 - 1) / 3 + 1 = 5 */
    { "aten::_nnpack_spatial_convolution", IMAGE ";" FILTER ";7;-;-", ";;;[2, 2];[3, 3]",
      2 * 20 * WEIGHTS, 0, 2 * 20 * 7 },
    { "aten::_slow_conv2d_forward", IMAGE ";" FILTER ";-;7;-;-", ";;[3, 4];;[3, 3];[2, 2]",
      2 * 20 * WEIGHTS, 0, 2 * 20 * 7 },
    /* a transposed one applies its filter, 5 x 7 channels, at each place of its input */
    { "aten::conv_transpose2d", IMAGE ";5,7,3,4;7;-;-;-;#;-", ";;;[3, 3];[2, 2];[1, 1];1;[2, 2]",
      2 * 108 * WEIGHTS, 0, 2 * 108 * 7 },
    { "aten::cudnn_convolution_transpose", IMAGE ";5,7,3,4;-;-;-;-",
      ";;[2, 2];[1, 1];[3, 3];[2, 2]", 2 * 108 * WEIGHTS, 0, 2 * 108 * 7 },
    { "aten::slow_conv_transpose2d", IMAGE ";5,7,3,4;-;7;-;-;-;-",
      ";;[3, 4];;[3, 3];[2, 2];[1, 1];[2, 2]", 2 * 108 * WEIGHTS, 0, 2 * 108 * 7 },
    { "aten::convolution", IMAGE ";5,7,3,4;7;-;-;-;#;-;#", ";;;[3, 3];[2, 2];[2, 2];True;[1, 1];1",
      2 * 108 * WEIGHTS, 0, 2 * 108 * 7 },
    /* backward: the gradients of the input and of the weight, as the mask says */
    { "aten::convolution_backward", "2,7,3,5;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 1];False;[0, 0];1;[True, True, True]", 2 * PLACES *WEIGHTS, 0,
      2 * 5 * 108 + WEIGHTS },
    { "aten::convolution_backward", "2,7,3,5;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 1];False;[0, 0];1;[True, False, False]", PLACES *WEIGHTS, 0,
      2 * 5 * 108 },
    { "aten::convolution_backward", "2,7,3,5;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 1];False;[0, 0];1;[False, True, False]", PLACES *WEIGHTS, 0,
      WEIGHTS },
    { "aten::convolution_backward", "2,7,3,4;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];False;[0, 0];1;[False, False]", 0, 0, 0 },
    { "aten::convolution_backward", "2,7,20,21;" IMAGE ";5,7,3,4;-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];True;[0, 0];1;[True, True, True]", 2 * 2 * 108 * WEIGHTS, 0,
      2 * 5 * 108 + WEIGHTS },
    { "aten::_slow_conv2d_backward", "2,7,3,5;" IMAGE ";" FILTER ";-;-;-;-",
      ";;;[3, 4];[3, 3];[2, 2];[True, True, False]", 2 * PLACES *WEIGHTS, 0,
      2 * 5 * 108 + WEIGHTS },
    /* one, two and three dims; without a batch; a number that stands for all */
    { "aten::conv1d", "2,3,11;5,3,4;5;-;-;-;#", ";;;[3];[2];[2];1", 2 * 3 * 60, 0, 2 * 3 * 5 },
    { "aten::conv2d", "5,9,12;" FILTER ";7;-;-;-;#", ";;;[3];[2];[2];1", 12 * WEIGHTS, 0, 12 * 7 },
    { "aten::conv3d", "1,2,5,6,7;3,2,2,3,4;-;-;-;-;#", ";;;[1, 2, 3];[0, 1, 2];[1, 1, 1];1",
      4 * 3 * 3 * 144, 0, 36 * 3 },
    { "aten::convolution_backward", "7,3,4;5,9,12;" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];False;[0, 0];1;[True, True, True]", 2 * 12 * WEIGHTS, 0,
      5 * 108 + WEIGHTS },
    { "aten::conv2d", "1,2,2,2;3,2,5,5;3;-;-;-;#", ";;;[1, 1];[0, 0];[1, 1];1", 0, 0, 0 },
    { "aten::conv2d", "1,2,5,5;3,2,5,5;3;-;-;-;#", ";;;[1, 1];[0, 0];[1, 1];1", 150, 0, 3 },
    /* an empty list pads nothing, and dilates nothing */
    { "aten::conv2d", "1,2,5,6;3,2,5,5;3;-;-;-;#", ";;;[1, 1];[];[];1", 2 * 150, 0, 2 * 3 },
};

static const struct flops_row no_forms[] = {
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;-;-;#", "", 0, 0, 0 },
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;-;-;#", ";;;[];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;-;-;#", ";;;[0, 3];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;#;-;#", ";;;[3, 3];same;[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", IMAGE ";" FILTER ";7;-;-;-;#", ";;;x3, 3];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", "2,5,9;7,5,3;7;-;-;-;#", ";;;[3];[2];[2];1", 0, 0, 0 },
    { "aten::conv2d", "9,12;" FILTER ";7;-;-;-;#", ";;;[3, 3];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", "1,2,5,9,12;" FILTER ";7;-;-;-;#", ";;;[3, 3];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::conv2d", IMAGE ";-;7;-;-;-;#", ";;;[3, 3];[2, 2];[2, 2];1", 0, 0, 0 },
    { "aten::convolution", "2,5;7,5;7;-;-;-;#;-;#", ";;;[3];[2];[2];False;[0];1", 0, 0, 0 },
    { "aten::convolution_backward", "4;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];False;[0, 0];1;[True, True, True]", 0, 0, 0 },
    { "aten::convolution_backward", "-;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];False;[0, 0];1;[True, True, True]", 0, 0, 0 },
    { "aten::convolution_backward", "2,7,3,4;" IMAGE ";" FILTER ";-;-;-;-;#;-;#;-",
      ";;;[7];[3, 3];[2, 2];[2, 2];False;[0, 0];1;[True]", 0, 0, 0 },
};

/* 2 x 3 heads, 5 queries and 7 keys of 4 numbers, values of 6; a score is scaled and has five operations of its softmax. */
static const struct flops_row attention[] = {
    { "aten::scaled_dot_product_attention", "2,3,5,4;2,3,7,4;2,3,7,6;-;#;#;-;#", "", 210 * 10,
      210 * 6, 6 * 5 * 6 },
    { "aten::scaled_dot_product_attention", "3,5,4;3,7,4;3,7,6;-;#;#;-;#", "", 105 * 10, 105 * 6,
      3 * 5 * 6 },
    { "aten::scaled_dot_product_attention", "2,3,0,4;2,3,7,4;2,3,7,6;-;#;#;-;#", "", 0, 0, 0 },
    { "aten::scaled_dot_product_attention", "2,3,5,0;2,3,7,0;2,3,7,6;-;#;#;-;#", "", 0, 0, 0 },
    { "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "2,3,5,6;2,3,5,4;2,3,7,4;2,3,7,6;2,3,5,6;2,3,5;#;#;-;-", "", 210 * (3 * 4 + 2 * 6), 210 * 8,
      120 + 168 + 252 },
    { "aten::_flash_attention_forward", "2,5,3,4;2,7,3,4;2,7,3,6;-;-;#;#;#;#;#", "", 210 * 10,
      210 * 6, 6 * 5 * 6 },
    { "aten::_flash_attention_backward", "2,5,3,6;2,5,3,4;2,7,3,4;2,7,3,6", "",
      210 * (3 * 4 + 2 * 6), 210 * 8, 120 + 168 + 252 },
    /* three projections of 8 numbers, two products, one projection */
    { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;24,8;24;8,8;8", ";;;8;4;;;;",
      2 * (5 + 7 + 7) * 64 + 2 * (2 * 5 * 7 * 8) + 2 * 5 * 64, 2 * 4 * 35 * 6, 80 },
    /* a norm has seven operations a number, GELU five; two sums go around */
    { "aten::_transformer_encoder_layer_fwd",
      "2,5,8;#;#;24,8;24;8,8;8;#;#;#;8;8;8;8;32,8;32;8,32;8", ";8;4;;;;;True;True;1e-05;;;;;;;;",
      10 * (192 + 64 + 256 + 256) + 2 * (2 * 5 * 5 * 8),
      6 * 4 * 2 * 25 + 2 * 7 * 80 + 10 * 32 * 5 + 2 * 80, 80 },
};

static const struct flops_row no_attention[] = {
    { "aten::scaled_dot_product_attention", "5,4;3,7,4;3,7,6", "", 0, 0, 0 },
    { "aten::scaled_dot_product_attention", "3,5,4;7,4;3,7,6", "", 0, 0, 0 },
    { "aten::scaled_dot_product_attention", "3,5,4;3,7,4;7,6", "", 0, 0, 0 },
    { "aten::scaled_dot_product_attention", "3,5,4;3,7,4;-", "", 0, 0, 0 },
    { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;24,8;24;8,8;8", "", 0, 0, 0 },
    { "aten::_native_multi_head_attention", "5,8;2,7,8;2,7,8;#;#;24,8;24;8,8;8", ";;;8;4;;;;", 0, 0,
      0 },
    { "aten::_native_multi_head_attention", "2,5,8;7,8;2,7,8;#;#;24,8;24;8,8;8", ";;;8;4;;;;", 0, 0,
      0 },
    { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;-;24;8,8;8", ";;;8;4;;;;", 0, 0,
      0 },
    { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;24,8;24;-;8", ";;;8;4;;;;", 0, 0,
      0 },
    { "aten::_transformer_encoder_layer_fwd", "5,8;#;#;24,8;24;8,8;8;#;#;#;8;8;8;8;32,8;32;8,32;8",
      ";8;4;;;;;True;True;1e-05;;;;;;;;", 0, 0, 0 },
    { "aten::_transformer_encoder_layer_fwd",
      "2,5,8;#;#;24,8;24;8,8;8;#;#;#;8;8;8;8;32,8;32;8,32;8", "", 0, 0, 0 },
};

/* 5 steps of 3, 8 numbers in, 6 hidden: 15 steps of gates x 6 x (8 + 6), and what is done with the gates. */
#define ONE_LAYER ";;;True;1;0.;False;False;False"
#define LSTM_OTHER (15 * 6 * (18 + 4))
#define GRU_OTHER (15 * 6 * (14 + 3))

static const struct flops_row recurrent[] = {
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#", ONE_LAYER, 15 * 24 * 14,
      LSTM_OTHER, 90 },
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6);#;#;#;#;#;#",
      ";;;False;1;0.;False;False;False", 15 * 24 * 14, LSTM_OTHER, 90 },
    { "aten::lstm", "5,3,8;(2,3,6;2,3,6);(24,8;24,6;24;24;24,8;24,6;24;24);#;#;#;#;#;#",
      ";;;True;1;0.;False;True;False", 2 * 15 * 24 * 14, 2 * LSTM_OTHER, 180 },
    { "aten::lstm", "5,3,8;(2,3,6;2,3,6);(24,8;24,6;24;24;24,6;24,6;24;24);#;#;#;#;#;#",
      ";;;True;2;0.;False;False;False", 15 * 24 * (14 + 12), 2 * LSTM_OTHER, 90 },
    { "aten::lstm", "15,8;5;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#", ";;;;True;1;0.;False;False",
      15 * 24 * 14, LSTM_OTHER, 90 },
    { "aten::lstm", "15,8;5;(2,3,6;2,3,6);(24,8;24,6;24;24;24,8;24,6;24;24);#;#;#;#;#",
      ";;;;True;1;0.;False;True", 2 * 15 * 24 * 14, 2 * LSTM_OTHER, 180 },
    { "aten::gru", "5,3,8;1,3,6;(18,8;18,6;18;18);#;#;#;#;#;#", ONE_LAYER, 15 * 18 * 14, GRU_OTHER,
      90 },
    { "aten::gru", "5,3,0;1,3,6;(18,0;18,6;18;18);#;#;#;#;#;#", ONE_LAYER, 0, 0, 0 },
    { "aten::rnn_tanh", "5,3,8;1,3,6;(6,8;6,6;6;6);#;#;#;#;#;#", ONE_LAYER, 15 * 6 * 14,
      15 * 6 * (1 + 1), 90 },
    { "aten::lstm_cell", "3,8;(3,6;3,6);24,8;24,6;24;24", "", 3 * 24 * 14, 3 * 6 * 22, 18 },
    { "aten::gru_cell", "8;6;18,8;18,6;18;18", "", 18 * 14, 6 * 17, 6 },
    { "aten::rnn_relu_cell", "3,8;3,6;6,8;6,6;6;6", "", 3 * 6 * 14, 3 * 6 * 2, 18 },
    { "aten::rnn_relu_cell", "3,0;3,6;6,0;6,6;6;6", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "5,3,8;24,8;24,6;24;24;1,3,6;1,3,6;#", "", 15 * 24 * 14, LSTM_OTHER,
      90 },
    { "aten::mkldnn_rnn_layer", "5,3,8;18,8;18,6;18;18;1,3,6;1,3,6;#", "", 15 * 18 * 14, GRU_OTHER,
      90 },
    { "aten::mkldnn_rnn_layer", "5,3,8;6,8;6,6;6;6;1,3,6;1,3,6;#", "", 15 * 6 * 14, 15 * 6 * 2,
      90 },
    { "aten::mkldnn_rnn_layer", "5,3,8;30,8;30,6;30;30;1,3,6;1,3,6;#", "", 15 * 24 * 14, LSTM_OTHER,
      90 }, /* of more than four gates none is known */
    { "aten::mkldnn_rnn_layer_backward", "5,3,8;24,8;24,6;24;24;1,3,6;1,3,6", "", 2 * 15 * 24 * 14,
      2 * LSTM_OTHER, 90 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24);#", ";;4", 15 * 24 * 14, LSTM_OTHER, 90 },
    { "aten::_cudnn_rnn", "5,3,8;(18,8;18,6;18,8;18,6);#", ";;2", 2 * 15 * 18 * 14, 2 * GRU_OTHER,
      90 },
    { "aten::_cudnn_rnn", "15,8;(24,8;24,6;24;24;24;24;24;24);#", ";;8", 15 * 24 * 14, LSTM_OTHER,
      90 },
    { "aten::_cudnn_rnn", "5,3,0;(24,0;24,6;24;24);#", ";;4", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24;24,8;24,6;24;24);#;-;-;-;#;#;#;#;#;#;#;#;-;-",
      ";;4;;;;2;6;0;1;False;0.;True;True;[];", 2 * 15 * 24 * 14, 2 * LSTM_OTHER, 180 },
    { "aten::miopen_rnn", "5,3,8;(24,8;24,6;24;24;24,8;24,6;24;24);#;-;-;#;#;#;#;#;#;#;-;-",
      ";;4;;;2;6;1;False;0.;True;True;[];", 2 * 15 * 24 * 14, 2 * LSTM_OTHER, 180 },
    { "aten::_cudnn_rnn_backward", "5,3,8;(24,8;24,6;24;24);#", ";;4", 2 * 15 * 24 * 14,
      2 * LSTM_OTHER, 90 },
    { "aten::_thnn_fused_lstm_cell", "3,24;3,24;3,6", "", 0, 18 * 22, 18 },
    { "aten::_thnn_fused_gru_cell", "3,18;3,18;3,6", "", 0, 18 * 17, 18 },
};

static const struct flops_row no_recurrent[] = {
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#", "", 0, 0, 0 },
    { "aten::lstm", "8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#", ONE_LAYER, 0, 0, 0 },
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24);#;#;#;#;#;#", ONE_LAYER, 0, 0, 0 },
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#",
      ";;;True;2;0.;False;False;False", 0, 0, 0 },
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#",
      ";;;True;1;0.;False;True;False", 0, 0, 0 },
    { "aten::lstm_cell", "3,8;(3,6;3,6);24;24,6;24;24", "", 0, 0, 0 },
    { "aten::lstm_cell", "3,8;(3,6;3,6);24,8;24;24;24", "", 0, 0, 0 },
    { "aten::lstm_cell", ";(3,6;3,6);24,8;24,6;24;24", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "3,8;24,8;24,6;24;24;1,3,6;1,3,6;#", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "5,3,8;24;24,6;24;24;1,3,6;1,3,6;#", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "5,3,8;24,8;24;24;24;1,3,6;1,3,6;#", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "5,3,8;3,8;3,6;3;3;1,3,6;1,3,6;#", "", 0, 0, 0 },
    { "aten::mkldnn_rnn_layer", "5,3,8;24,8;24,0;3;3;1,3,6;1,3,6;#", "", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24);#", "", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24);#", ";;1", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24);#", ";;9", 0, 0, 0 },
    { "aten::_cudnn_rnn", "8;(24,8;24,6;24;24);#", ";;4", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24;24,6;24;24);#", ";;4", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24;24;24);#", ";;4", 0, 0, 0 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,0;24;24);#", ";;4", 0, 0, 0 },
    { "aten::_thnn_fused_lstm_cell", "-;3,24;3,6", "", 0, 0, 0 },
};

static void matrices(void **state)
{
    (void)state;
    check_rows(products, SND_COUNT_OF(products));
    check_refused(no_products, SND_COUNT_OF(no_products));
}

static void convolutions(void **state)
{
    (void)state;
    check_rows(forms, SND_COUNT_OF(forms));
    check_refused(no_forms, SND_COUNT_OF(no_forms));
}

static void attentions(void **state)
{
    (void)state;
    check_rows(attention, SND_COUNT_OF(attention));
    check_refused(no_attention, SND_COUNT_OF(no_attention));
}

static void recurrent_networks(void **state)
{
    (void)state;
    check_rows(recurrent, SND_COUNT_OF(recurrent));
    check_refused(no_recurrent, SND_COUNT_OF(no_recurrent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(attentions),
        cmocka_unit_test(recurrent_networks),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
