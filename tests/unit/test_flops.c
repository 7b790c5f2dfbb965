/* SPDX-License-Identifier: Apache-2.0 */
/* What operators compute, against numbers worked out by hand. */
#include <math.h>

#include "base/count_of.h"
#include "flops_call.h"
#include "format/dtypes.h"

/* What the formulas are given for. */
static const struct {
    const char *name, *note;
} table[] = {
#define SND_FLOPS(name, formula, a, b, note) { name, note },
#define SND_FLOPS_AS(name, formula, a, b, result, note) { name, note },
#include "model/flops/flops.def"
#undef SND_FLOPS
#undef SND_FLOPS_AS
};

/* One call: shapes as synth_shapes() takes them, arguments as a JSON list or NULL. */
struct example {
    const char *name, *shapes, *arguments;
    double      macs, flops;
};

#define CONV "[\"\", \"\", \"\", \"[2, 1]\", \"[1, 0]\", \"[1, 1]\", \"1\"]"
#define GENERAL(transposed) \
    "[\"\", \"\", \"\", \"[2]\", \"[1]\", \"[1]\", \"" transposed "\", \"[0]\", \"2\"]"
#define BACKWARD(transposed, mask)                                                  \
    "[\"\", \"\", \"\", \"[8]\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"" transposed \
    "\", \"[0, 0]\", \"1\", \"" mask "\"]"

static const struct example examples[] = {
    /* matrix products */
    { "aten::mm", "3,4;4,5", NULL, 3 * 4 * 5, 2 * 3 * 4 * 5 },
    { "aten::addmm", "5;3,4;4,5;#;#", NULL, 60, 120 },
    { "aten::bmm", "7,3,4;7,4,5", NULL, 7 * 60, 7 * 120 },
    { "aten::baddbmm", "7,3,5;7,3,4;7,4,5;#;#", NULL, 420, 840 },
    { "aten::addbmm", "3,5;7,3,4;7,4,5;#;#", NULL, 420, 840 },
    { "aten::matmul", "2,1,3,4;6,4,5", NULL, 2 * 6 * 60, 2 * 6 * 120 },
    { "aten::matmul", "4;4", NULL, 4, 8 },
    { "aten::matmul", "2,3,4;4", NULL, 24, 48 },
    { "aten::linear", "2,3,4;5,4;5", NULL, 6 * 20, 6 * 40 },
    { "aten::linear", "4;5,4", NULL, 20, 40 },
    { "aten::mv", "3,4;4", NULL, 12, 24 },
    { "aten::addmv", "3;3,4;4;#;#", NULL, 12, 24 },
    { "aten::dot", "9;9", NULL, 9, 18 },
    { "aten::ger", "3;4", NULL, 12, 24 },
    { "aten::_int_mm", "3,4;4,5", NULL, 60, 120 },
    { "onednn::qlinear_pointwise", "2,4;#;#;5,4;5;5;-", NULL, 40, 80 },
    { "aten::mkldnn_linear_backward", "2,4;2,5;5,4;-", NULL, 2 * 2 * 20, 4 * 2 * 20 },
    { "aten::cdist", "2,3,4;2,5,4;#;-", NULL, 0, 2 * 3 * 5 * (3 * 4 + 1) },
    /* convolutions: 2 x 6 -> 5 x 6 of 9 x 8, stride 2 and 1, padding 1 and 0, filter 3 x 3 */
    { "aten::conv2d", "4,2,9,8;6,2,3,3;6;-;-;-;#", CONV, 4 * 5 * 6 * 6 * 18,
      2.0 * 4 * 5 * 6 * 6 * 18 },
    { "aten::conv2d", "2,9,8;6,2,3,3;6;-;-;-;#", CONV, 5 * 6 * 6 * 18, 2.0 * 5 * 6 * 6 * 18 },
    { "aten::convolution", "4,6,10;8,3,5;-;-;-;-;#;-;#", GENERAL("False"), /* 2 groups, 4 out */
      4 * 4 * 8 * 15, 2 * 4 * 4 * 8 * 15 },
    { "aten::convolution", "4,6,10;6,4,5;-;-;-;-;#;-;#", GENERAL("True"), /* 10 positions */
      4 * 10 * 6 * 20, 2 * 4 * 10 * 6 * 20 },
    { "aten::conv_transpose2d", "1,6,4,4;6,3,2,2;-;-;-;-;#;-",
      "[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[0, 0]\", \"1\", \"[1, 1]\"]", 16 * 6 * 12,
      2 * 16 * 6 * 12 },
    { "aten::mkldnn_convolution", "1,2,4,4;3,2,3,3;3;-;-;-;#",
      "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"1\"]", 16 * 54, 2 * 16 * 54 },
    { "aten::cudnn_convolution", "1,2,4,4;3,2,3,3;-;-;-;#;#;#;#",
      "[\"\", \"\", \"[1, 1]\", \"[2, 2]\", \"[1, 1]\", \"1\", \"False\", \"False\", \"True\"]",
      4 * 54, 2 * 4 * 54 },
    { "aten::_slow_conv2d_forward", "1,2,4,4;3,2,3,3;-;3;-;-",
      "[\"\", \"\", \"[3, 3]\", \"\", \"[1, 1]\", \"[0, 0]\"]", 4 * 54, 2 * 4 * 54 },
    { "aten::convolution_backward", "4,8,5,5;4,2,5,5;8,2,3,3;-;-;-;-;#;-;#;-",
      BACKWARD("False", "[True, True, True]"), 2 * 4 * 25 * 144, 4 * 4 * 25 * 144 },
    { "aten::convolution_backward", "4,8,5,5;4,2,5,5;8,2,3,3;-;-;-;-;#;-;#;-",
      BACKWARD("False", "[False, True, False]"), 4 * 25 * 144, 2 * 4 * 25 * 144 },
    { "aten::convolution_backward", "4,2,8,8;4,8,5,5;8,2,3,3;-;-;-;-;#;-;#;-",
      BACKWARD("True", "[True, True, False]"), 2 * 4 * 25 * 144, 4 * 4 * 25 * 144 },
    { "aten::conv_tbc", "9,2,3;4,3,5;5;#", "[\"\", \"\", \"\", \"1\"]", 8 * 2 * 60, 16 * 2 * 60 },
    /* attention: 2 x 3 heads, 5 queries, 7 keys of 4, values of 6; softmax and scale are 6 */
    { "aten::scaled_dot_product_attention", "2,3,5,4;2,3,7,4;2,3,7,6;-;#;#;-;#", NULL, 6 * 35 * 10,
      2 * 6 * 35 * 10 + 6 * 6 * 35 },
    { "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
      "2,3,5,6;2,3,5,4;2,3,7,4;2,3,7,6;2,3,5,6;2,3,5;#;#;-;-", NULL, 6 * 35 * (3 * 4 + 2 * 6),
      2 * 6 * 35 * 24 + 8 * 6 * 35 },
    { "aten::_flash_attention_forward", "2,5,3,4;2,7,3,4;2,7,3,4;-;-;#;#;#;#;#", NULL, 6 * 35 * 8,
      2 * 6 * 35 * 8 + 6 * 6 * 35 },
    /* recurrent: 5 steps of 3, 8 in, 6 hidden, one layer */
    { "aten::lstm", "5,3,8;(1,3,6;1,3,6);(24,8;24,6;24;24);#;#;#;#;#;#",
      "[\"\", \"\", \"\", \"True\", \"1\", \"0.\", \"False\", \"False\", \"False\"]",
      15 * 4 * 6 * 14, 2 * 15 * 4 * 6 * 14 + 15 * 6 * 22 },
    { "aten::gru", "5,3,8;1,3,6;(18,8;18,6);#;#;#;#;#;#",
      "[\"\", \"\", \"\", \"False\", \"1\", \"0.\", \"False\", \"False\", \"False\"]",
      15 * 3 * 6 * 14, 2 * 15 * 3 * 6 * 14 + 15 * 6 * 17 },
    { "aten::gru",
      "5,3,8;1,3,6;(18,8;18,6;18);#;#;#;#;#;#", /* one tensor more than it has a use for */
      "[\"\", \"\", \"\", \"False\", \"1\", \"0.\", \"False\", \"False\", \"False\"]",
      15 * 3 * 6 * 14, 2 * 15 * 3 * 6 * 14 + 15 * 6 * 17 },
    { "aten::mkldnn_rnn_layer", "5,3,8;24,8;24,6;24;24;1,3,6;1,3,6;#", NULL, 15 * 4 * 6 * 14,
      2 * 15 * 4 * 6 * 14 + 15 * 6 * 22 },
    { "aten::mkldnn_rnn_layer_backward", "5,3,8;24,8;24,6;24;24;1,3,6;1,3,6", NULL,
      2 * 15 * 4 * 6 * 14, 4 * 15 * 4 * 6 * 14 + 2 * 15 * 6 * 22 },
    { "aten::_cudnn_rnn", "5,3,8;(24,8;24,6;24;24);#", "[\"\", \"\", \"4\"]", 15 * 4 * 6 * 14,
      2 * 15 * 4 * 6 * 14 + 15 * 6 * 22 },
    { "aten::lstm_cell", "3,8;(3,6;3,6);24,8;24,6;24;24", NULL, 3 * 4 * 6 * 14,
      2 * 3 * 4 * 6 * 14 + 3 * 6 * 22 },
    /* norms, softmax, activations */
    { "aten::layer_norm", "4,10;-;10;10;#;#", NULL, 0, 40 * 7 },
    { "aten::native_layer_norm", "4,10;-;-;-;#", NULL, 0, 40 * 5 },
    { "aten::native_group_norm", "2,4,5;4;4;#;#;#;#;#", NULL, 0, 40 * 7 },
    { "aten::batch_norm", "2,4,5;4;4;4;4;#;#;#;#",
      "[\"\", \"\", \"\", \"\", \"\", \"True\", \"0.1\", \"1e-05\", \"True\"]", 0, 40 * 7 },
    { "aten::batch_norm", "2,4,5;4;4;4;4;#;#;#;#",
      "[\"\", \"\", \"\", \"\", \"\", \"False\", \"0.1\", \"1e-05\", \"True\"]", 0, 40 * 4 },
    { "aten::native_batch_norm_backward", "2,4,5;2,4,5;4;4;4;4;4;#;#;-", NULL, 0, 40 * 13 },
    { "aten::_softmax", "4,10;#;#", NULL, 0, 200 },
    { "aten::_softmax_backward_data", "4,10;4,10;#;#", NULL, 0, 160 },
    { "aten::relu", "4,10", NULL, 0, 40 },
    { "aten::relu_", "4,10", NULL, 0, 40 },
    { "aten::gelu", "4,10;-", NULL, 0, 200 },
    { "aten::silu_backward", "4,10;4,10", NULL, 0, 360 },
    /* element-wise: of the broadcast result */
    { "aten::add", "4,1,6;5,1;#", NULL, 0, 120 },
    { "aten::mul", "4,6;#", NULL, 0, 24 },
    { "aten::div_", "4,6;4,6", NULL, 0, 24 },
    { "aten::add", "0,6;6;#", NULL, 0, 0 },
    { "aten::addcmul", "4,6;4,6;6;#", NULL, 0, 72 },
    { "aten::_foreach_add_", "(4,6;3);(4,6;3);#", NULL, 0, 27 },
    { "aten::_fused_adamw_", "(4,6;3);(4,6;3);(4,6;3);(4,6;3);-;-", NULL, 0, 14 * 27 },
    /* reductions, pooling */
    { "aten::sum", "4,6;#", NULL, 0, 24 },
    { "aten::var", "4,6;#", NULL, 0, 96 },
    { "aten::topk", "4,8;#;#;#;#", NULL, 0, 32 * 3 },
    { "aten::max_pool2d", "1,2,7,7;-;-;-;-;#",
      "[\"\", \"[3, 3]\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"False\"]", 0, 2 * 9 * 8 },
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#",
      "[\"\", \"[3, 3]\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"True\"]", 0, 2 * 16 * 8 },
    { "aten::avg_pool2d", "1,2,8,8;-;-;-;#;#;-",
      "[\"\", \"[2, 2]\", \"[]\", \"[0, 0]\", \"False\", \"True\", \"\"]", 0, 2 * 16 * 4 },
    { "aten::adaptive_avg_pool2d", "1,2,5,6;-", "[\"\", \"[2, 3]\"]", 0, 2 * 6 * 6 },
    /* embedding, resize */
    { "aten::embedding", "100,16;3,5;#;#;#", NULL, 0, 0 },
    { "aten::embedding_bag", "100,16;15;3", NULL, 0, 240 },
    { "aten::upsample_bilinear2d", "1,2,4,4;-;#;-;-", "[\"\", \"[8, 8]\", \"False\", \"\", \"\"]",
      0, 2 * 64 * 7 },
    { "aten::copy_", "4,6;4,6;#", NULL, 0, 0 },
    /* each form of a convolution has its numbers elsewhere: stride 3, padding 2, dilation 2 (or none): 3 x 3 (4 x 4) places */
    { "aten::conv2d", "1,2,10,10;3,2,3,3;3;-;-;-;#",
      "[\"\", \"\", \"\", \"[3, 3]\", \"[1, 1]\", \"[2, 2]\", \"1\"]", 9 * 54, 2 * 9 * 54 },
    { "aten::convolution", "1,2,10,10;3,2,3,3;3;-;-;-;#;-;#",
      "[\"\", \"\", \"\", \"[3, 3]\", \"[1, 1]\", \"[2, 2]\", \"False\", \"[0, 0]\", \"1\"]",
      9 * 54, 2 * 9 * 54 },
    { "aten::cudnn_convolution_relu", "1,2,9,9;3,2,3,3;3;-;-;-;#",
      "[\"\", \"\", \"\", \"[3, 3]\", \"[2, 2]\", \"[2, 2]\", \"1\"]", 9 * 54, 2 * 9 * 54 },
    { "aten::cudnn_convolution_add_relu", "1,2,9,9;3,2,3,3;1,3,3,3;#;3;-;-;-;#",
      "[\"\", \"\", \"\", \"1\", \"\", \"[3, 3]\", \"[2, 2]\", \"[2, 2]\", \"1\"]", 9 * 54,
      2 * 9 * 54 },
    { "aten::slow_conv_dilated2d", "1,2,9,9;3,2,3,3;-;3;-;-;-",
      "[\"\", \"\", \"[3, 3]\", \"\", \"[3, 3]\", \"[2, 2]\", \"[2, 2]\"]", 9 * 54, 2 * 9 * 54 },
    { "aten::_nnpack_spatial_convolution", "1,2,9,9;3,2,3,3;3;-;-",
      "[\"\", \"\", \"\", \"[2, 2]\", \"[3, 3]\"]", 16 * 54, 2 * 16 * 54 },
    { "onednn::qconv2d_pointwise", "1,2,9,9;#;#;3,2,3,3;3;3;3;-;-;-;#",
      "[\"\", \"1\", \"0\", \"\", \"\", \"\", \"\", \"[3, 3]\", \"[2, 2]\", \"[2, 2]\", \"1\"]",
      9 * 54, 2 * 9 * 54 },
    { "mkldnn::_convolution_pointwise", "1,2,9,9;3,2,3,3;3;-;-;-;#",
      "[\"\", \"\", \"\", \"[2, 2]\", \"[3, 3]\", \"[2, 2]\", \"1\"]", 9 * 54, 2 * 9 * 54 },
    { "aten::cudnn_convolution", "1,2,9,9;3,2,3,3;-;-;-;#",
      "[\"\", \"\", \"[2, 2]\", \"[3, 3]\", \"[2, 2]\", \"1\"]", 9 * 54, 2 * 9 * 54 },
    { "aten::_slow_conv2d_backward", "1,3,4,4;1,2,9,9;3,2,3,3;-;-;-;-",
      "[\"\", \"\", \"\", \"[3, 3]\", \"[3, 3]\", \"[2, 2]\", \"[True, False, False]\"]", 16 * 54,
      2 * 16 * 54 },
    /* a window that would begin behind the input is left out, though sizes are rounded up */
    { "aten::avg_pool2d", "1,2,2,2;-;-;-;#;#;-",
      "[\"\", \"[1, 1]\", \"[3, 3]\", \"[0, 0]\", \"True\", \"True\", \"\"]", 0, 2 },
    /* whole layers in one operator: 2 x 5 queries, 2 x 7 keys of 8 numbers, 4 heads */
    { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;24,8;24;8,8;8",
      "[\"\", \"\", \"\", \"8\", \"4\", \"\", \"\", \"\", \"\"]",
      2 * (5 + 7 + 7) * 64 + 2 * (2 * 5 * 7 * 8) + 2 * 5 * 64,
      2.0 * (2 * (5 + 7 + 7) * 64 + 2 * (2 * 5 * 7 * 8) + 2 * 5 * 64) + 6 * 2 * 4 * 5 * 7 },
    { "aten::_transformer_encoder_layer_fwd",
      "2,5,8;#;#;24,8;24;8,8;8;#;#;#;8;8;8;8;32,8;32;8,32;8",
      "[\"\", \"8\", \"4\", \"\", \"\", \"\", \"\", \"True\", \"True\", \"1e-05\", \"\", \"\", "
      "\"\", \"\", \"\", \"\", \"\", \"\"]",
      10 * (192 + 64 + 256 + 256) + 2 * (2 * 5 * 5 * 8),
      2.0 * (10 * (192 + 64 + 256 + 256) + 2 * (2 * 5 * 5 * 8)) + 6 * 4 * 2 * 25 + 2 * 7 * 80 +
          10 * 32 * 5 + 2 * 80 },
    /* 5 boxes of 3 channels at 2 x 2 places, 2 x 2 samples of 4 taps each */
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#",
      "[\"\", \"\", \"1.0\", \"2\", \"2\", \"2\"]", 0, 60 * (4 * 8 + 1) },
    /* factorisations, equations, Fourier transforms */
    { "aten::linalg_lu_factor_ex", "2,3,3;#;#", NULL, 2 * 9, 2 * 18 },
    { "aten::linalg_lu_factor", "4,3;#", NULL, 13.5, 27 },
    { "aten::linalg_det", "6,6", NULL, 72, 144 },
    { "aten::linalg_cholesky_ex", "6,6;#;#", NULL, 36, 72 },
    { "aten::linalg_inv_ex", "4,4;#", NULL, 64, 128 },
    { "aten::linalg_qr", "5,3;-", NULL, 72, 144 },
    { "aten::linalg_solve", "3,3;3,2;#", NULL, 9 + 18, 2 * 27 },
    { "aten::cholesky_solve", "3,2;3,3;#", NULL, 18, 36 },
    { "aten::linalg_solve_triangular", "3,3;3,2;#;#;#", NULL, 9, 18 },
    { "aten::_fft_c2c", "4,8;-;#;#", "[\"\", \"[1]\", \"0\", \"True\"]", 0, 5 * 32 * 3 },
    { "aten::_fft_c2c", "4,8;-;#;#", "[\"\", \"[0, 1]\", \"0\", \"True\"]", 0, 5 * 32 * 5 },
    { "aten::_fft_r2c", "4,8;-;#;#", "[\"\", \"[-1]\", \"0\", \"True\"]", 0, 2.5 * 32 * 3 },
    { "aten::_fft_c2r", "4,5;-;#;#", "[\"\", \"[1]\", \"0\", \"8\"]", 0, 2.5 * 32 * 3 },
};

static void formulas(void **state)
{
    struct snd_work work;

    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        if (count(e->name, e->shapes, e->arguments, SONDE_FLOPS_FULL, &work) != SND_FLOPS_FOUND)
            fail_msg("%s %s: not counted", e->name, e->shapes);
        if (work.macs != e->macs || work.flops != e->flops)
            fail_msg("%s %s: %g MACs, %g FLOPs; expected %g, %g", e->name, e->shapes, work.macs,
                     work.flops, e->macs, e->flops);
    }
}

/* Bytes: what is read and what is written, by the size of each element. */
static void bytes_moved(void **state)
{
    struct snd_work work;

    (void)state;
    count("aten::mm", "3,4;4,5", NULL, SONDE_FLOPS_FULL, &work);
    assert_true(work.moved_bytes == 4 * (12 + 20 + 15));
    count("aten::copy_", "4,6;4,6;#", NULL, SONDE_FLOPS_FULL, &work);
    assert_true(work.moved_bytes == 4 * (24 + 24 + 24));
    count("aten::conv2d", "4,2,9,8;6,2,3,3;6;-;-;-;#", CONV, SONDE_FLOPS_FULL, &work);
    assert_true(work.moved_bytes == 4 * (4 * 2 * 72 + 6 * 18 + 6 + 4 * 6 * 30));
}

/* Up to three tensors of 10 elements, or numbers (count 0) of a type; the bytes of all and the result. */
struct typed {
    const char *name;
    uint8_t     types[3];
    unsigned    numbers; /* the last ones are tensors without dims */
    double      bytes;
};

static const struct typed typed_calls[] = {
    { "aten::add", { SONDE_FLOAT16, SONDE_FLOAT16 }, 0, 10 * (2 + 2 + 2) },
    { "aten::add", { SONDE_FLOAT16, SONDE_BFLOAT16 }, 0, 10 * (2 + 2 + 4) },
    { "aten::add", { SONDE_UINT8, SONDE_INT8 }, 0, 10 * (1 + 1 + 2) },
    { "aten::add", { SONDE_COMPLEX64, SONDE_FLOAT64 }, 0, 10 * (8 + 8 + 16) },
    { "aten::add", { SONDE_FLOAT16, SONDE_FLOAT64 }, 1, 10 * (2 + 2) + 8 },
    { "aten::add", { SONDE_INT32, SONDE_FLOAT64 }, 1, 10 * (4 + 4) + 8 },
    { "aten::add", { SONDE_INT16, SONDE_INT64 }, 1, 10 * (2 + 2) + 8 },
    { "aten::add", { SONDE_FLOAT64, SONDE_FLOAT64 }, 2, 8 + 8 + 8 },
    { "aten::add_", { SONDE_FLOAT16, SONDE_FLOAT64 }, 0, 10 * (2 + 8 + 2) },
    { "aten::eq", { SONDE_UINT64, SONDE_UINT64 }, 0, 10 * (8 + 8 + 1) },
    { "aten::div", { SONDE_INT64, SONDE_INT64 }, 0, 10 * (8 + 8 + 4) },
    { "aten::where", { SONDE_BOOL, SONDE_FLOAT64, SONDE_FLOAT64 }, 0, 10 * (1 + 8 + 8 + 8) },
    { "aten::abs", { SONDE_COMPLEX128 }, 0, 10 * (16 + 8) },
    { "aten::cumsum", { SONDE_BOOL }, 0, 10 * (1 + 8) },
    { "aten::exp", { SONDE_UINT16 }, 0, 10 * (2 + 4) },
    { "aten::relu", { SONDE_FLOAT8_E4M3FN }, 0, 10 * (1 + 1) },
    { "aten::argsort", { SONDE_FLOAT32 }, 0, 10 * (4 + 8) },
    { "aten::sort", { SONDE_UINT8 }, 0, 10 * (1 + 1 + 8) },
};

/* Torch's rules of promotion: what has dims first, numbers last. */
static void bytes_by_type(void **state)
{
    static const int64_t dims[] = { 10 };

    (void)state;
    for (size_t i = 0; i < sizeof typed_calls / sizeof typed_calls[0]; i++) {
        const struct typed   *t = &typed_calls[i];
        struct sonde_argument items[3];
        struct snd_call       call = { items, 0, { "", 0 } };
        struct snd_work       work;
        while (call.item_count < 3 && (call.item_count == 0 || t->types[call.item_count] != 0))
            call.item_count++;
        for (size_t k = 0; k < call.item_count; k++)
            items[k] = (struct sonde_argument){ SND_SHAPE_TENSOR, t->types[k],
                                                k + t->numbers < call.item_count, dims };
        assert_int_equal(snd_flops_call((struct sonde_text){ t->name, strlen(t->name) },
                                        SONDE_FLOPS_FULL, &call, &work),
                         SND_FLOPS_FOUND);
        if (work.moved_bytes != t->bytes)
            fail_msg("%s, %zu: %g bytes, expected %g", t->name, i, work.moved_bytes, t->bytes);
    }
}

/* A number has the type that Python's would have; without a tensor beside it the result has it. */
static void bytes_of_numbers(void **state)
{
    static const struct {
        const char *arguments;
        double      size; /* of an element of the result */
    } cases[] = {
        { "[\"\",\"True\",\"False\"]", 1 }, { "[\"\",\"1\",\"-2\"]", 8 },
        { "[\"\",\"1\",\"True\"]", 8 },     { "[\"\",\"1.5\",\"2\"]", 4 },
        { "[\"\",\"inf\",\"True\"]", 4 },   { "[\"\",\"1\",\"2j\"]", 8 },
        { "[\"\",\"1.5\",\"2j\"]", 8 },
    };
    struct snd_work work;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        count("aten::where", "10;#;#", cases[i].arguments, SONDE_FLOPS_FULL, &work);
        if (work.moved_bytes != 10 * (4 + cases[i].size))
            fail_msg("%s: %g bytes", cases[i].arguments, work.moved_bytes);
    }
}

/* A sum, a mean and a running sum say of which type they are: the number of one of torch's types. */
static void bytes_of_a_given_type(void **state)
{
    static const struct {
        const char *name, *shapes, *arguments;
        double      bytes;
    } cases[] = {
        { "aten::sum", "10;#", "[\"\",\"7\"]", 40 + 8 },
        { "aten::sum", "10;#", "[\"\",\"5\"]", 40 + 2 },
        { "aten::sum", "10;-;#;#", "[\"\",\"[0]\",\"False\",\"7\"]", 40 + 8 },
        { "aten::sum", "10;-;#", "[\"\",\"[0]\",\"7\"]", 40 + 4 }, /* that is no type */
        { "aten::mean", "10;#", "[\"\",\"7\"]", 40 + 8 },
        { "aten::mean", "10;-;#;#", "[\"\",\"[0]\",\"False\",\"7\"]", 40 + 8 },
        { "aten::mean", "10;-;#", "[\"\",\"[0]\",\"7\"]", 40 + 4 },
        { "aten::cumsum", "10;#;#", "[\"\",\"0\",\"7\"]", 40 + 80 },
        { "aten::cumsum", "10;#", "[\"\",\"7\"]", 40 + 40 }, /* a dimension */
        { "aten::sum", "10;#", "[\"\",\"255\"]", 40 + 4 },
        { "aten::sum", "10;#", "[\"\",\"-1\"]", 40 + 4 },
    };
    struct snd_work work;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        count(cases[i].name, cases[i].shapes, cases[i].arguments, SONDE_FLOPS_FULL, &work);
        if (work.moved_bytes != cases[i].bytes)
            fail_msg("%s %s: %g bytes, expected %g", cases[i].name, cases[i].arguments,
                     work.moved_bytes, cases[i].bytes);
    }
}

/* What is missing is not guessed, what computes nothing is known to, the rest is not. */
static void answers(void **state)
{
    struct snd_work work;

    (void)state;
    assert_int_equal(count("aten::conv2d", "4,2,9,8;6,2,3,3;6;-;-;-;#", NULL, SONDE_FLOPS_FULL,
                           &work),
                     SND_FLOPS_UNKNOWN);
    assert_int_equal(count("aten::mm", "3,4;#", NULL, SONDE_FLOPS_FULL, &work), SND_FLOPS_UNKNOWN);
    char   huge[20 * 20 + 8] = "";
    size_t length = 0;
    for (int i = 0; i < 20; i++) /* more elements than there is a number for */
        length += (size_t)snprintf(huge + length, sizeof huge - length, "%s9000000000000000000",
                                   i > 0 ? "," : "");
    assert_int_equal(count("aten::sin", huge, NULL, SONDE_FLOPS_FULL, &work), SND_FLOPS_UNKNOWN);
    assert_true(work.flops == 0 && work.moved_bytes == 0);
    static const char *const weights[] = {
        "25,8;25,6", "24,8;18,6", "24,8,1;24,6", "24,8;24,6,1", "24;24,6", "24,8;24"
    }; /* not 4 x 6 by 8 and by 6 */
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) {
        char shapes[80];
        snprintf(shapes, sizeof shapes, "5,3,8;(1,3,6;1,3,6);(%s);#;#;#;#;#;#", weights[i]);
        assert_int_equal(count("aten::lstm", shapes,
                               "[\"\", \"\", \"\", \"False\", \"1\", \"0.\", \"False\", "
                               "\"False\", \"False\"]",
                               SONDE_FLOPS_FULL, &work),
                         SND_FLOPS_UNKNOWN);
    }
    assert_int_equal(count("aten::view", "3,4;-", NULL, SONDE_FLOPS_FULL, &work),
                     SND_FLOPS_NO_WORK);
    assert_int_equal(count("mylib::mm", "3,4;4,5", NULL, SONDE_FLOPS_FULL, &work),
                     SND_FLOPS_NO_FORMULA);
    assert_int_equal(count("conv2d", "3,4;4,5", NULL, SONDE_FLOPS_FULL, &work),
                     SND_FLOPS_NO_FORMULA);
    assert_true(work.flops == 0);
}

/* A trace is hostile: numbers of any size, lists of any form. */
static void nonsense(void **state)
{
    static const char *const arguments[] = {
        "",
        "[",
        "[\"",
        "[\"[\", \"[\", \"[\", \"[1\", \"[1,\", \"]\"]",
        "[\"\\",
        "[\"\",\"\",\"\",\"[0, 0]\",\"[1, 1]\",\"[1, 1]\",\"1\"]",
        "[\"\",\"\",\"\",\"[1e308, 1]\",\"[1e308, 1]\",\"[nan, inf]\",\"-1\"]",
        "[\"\",\"\",\"\",\"[1,1,1,1,1,1,1,1,1,1,1,1]\",\"[1, 1]\",\"[1, 1]\",\"1\"]",
    };
    static const char *const shapes[] = {
        "9223372036854775807,9223372036854775807,3,3;9223372036854775807,2,3,3;-;-;-;-;#",
        "4,2,9,8;6,2,3,3",
        "(4;4;4)",
        "-",
        "0,0,0,0;0,0,0,0;-;-;-;-;#",
    };
    struct snd_work work;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(table); i++) {
        const char *name = table[i].name;
        assert_true(strlen(table[i].note) > 0);
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            struct sonde_argument items[64];
            struct sonde_trace   *trace = open_shapes(shapes[k]);
            for (size_t n = 0; n < sizeof arguments / sizeof arguments[0]; n++) {
                struct snd_call call = { items,
                                         sonde_trace_arguments(trace, 0, 1, items, 64),
                                         { arguments[n], strlen(arguments[n]) } };
                snd_flops_call((struct sonde_text){ name, strlen(name) }, SONDE_FLOPS_FULL, &call,
                               &work);
                assert_true(isfinite(work.flops) && work.flops >= 0);
                assert_true(isfinite(work.moved_bytes) && work.moved_bytes >= 0);
            }
            sonde_trace_close(trace);
        }
        if (i > 200) /* enough kinds; every formula is among the first of its line */
            i += 7;
    }
}

/* Without a number that the count depends on there is no count, rather than a wrong one. */
static void needs_its_arguments(void **state)
{
    static const struct example lacking[] = {
        { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", NULL, 0, 0 },
        { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#",
          "[\"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"False\"]", 0, 0 },
        { "aten::max_pool2d", "8;-;-;-;-;#",
          "[\"\", \"[3, 3]\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"False\"]", 0, 0 },
        { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#",
          "[\"\", \"[3, 3]\", \"[0, 0]\", \"[0, 0]\", \"[1, 1]\", \"False\"]", 0, 0 },
        { "aten::avg_pool2d", "1,2,8,8;-;-;-;#;#;-", NULL, 0, 0 },
        { "aten::conv2d", "4,2,9,8;6,2,3,3;6;-;-;-;#", NULL, 0, 0 },
        { "aten::adaptive_avg_pool2d", "1,2,5,6;-", NULL, 0, 0 },
        { "aten::_native_multi_head_attention", "2,5,8;2,7,8;2,7,8;#;#;24,8;24;8,8;8", NULL, 0, 0 },
        { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", NULL, 0, 0 },
        { "aten::mm", "3,4", NULL, 0, 0 },
        { "aten::linear", "-;5,4", NULL, 0, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        struct sonde_argument items[64];
        struct sonde_trace   *trace = open_shapes(lacking[i].shapes);
        const char           *arguments = lacking[i].arguments ? lacking[i].arguments : "";
        struct snd_work       work = { 0 };
        struct snd_call       call = { items,
                                       sonde_trace_arguments(trace, 0, 1, items, 64),
                                       { arguments, strlen(arguments) } };
        if (snd_flops_call((struct sonde_text){ lacking[i].name, strlen(lacking[i].name) },
                           SONDE_FLOPS_FULL, &call, &work) == SND_FLOPS_FOUND)
            fail_msg("%s of %s with '%s' has %g FLOPs", lacking[i].name, lacking[i].shapes,
                     arguments, work.flops);
        sonde_trace_close(trace);
    }
}

static void names_are_given_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(table); i++)
        for (size_t k = i + 1; k < SND_COUNT_OF(table); k++)
            if (strcmp(table[i].name, table[k].name) == 0)
                fail_msg("%s is in flops.def twice", table[i].name);
}

/* torch's seven operators, with its own arithmetic. */
static void torch_mode(void **state)
{
    static const struct {
        const char *name, *shapes, *arguments;
        double      flops;
    } cases[] = {
        { "aten::conv2d", "4,2,9,8;6,2,3,3;6;-;-;-;#", CONV, 2.0 * 4 * 5 * 6 * 9 * 2 * 6 },
        { "aten::conv2d", "4,4,5,5;6,2,3,3;6;-;-;-;#", /* its channels are the input's */
          "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"2\"]",
          2.0 * 4 * 25 * 9 * 4 * 6 / 2 },
        { "aten::conv2d", "2,9,8;6,2,3,3;6;-;-;-;#", CONV, 0 },
        { "aten::mm", "3,4;4,5", NULL, 120 },
        { "aten::addmm", "5;3,4;4,5;#;#", NULL, 120 },
        { "aten::bmm", "7,3,4;7,4,5", NULL, 7 * 120 },
        { "aten::baddbmm", "7,3,5;7,3,4;7,4,5;#;#", NULL, 7 * 120 },
        { "aten::mul", "4,1;4,9", NULL, 4 },
        { "aten::add", "4,6;#;#", NULL, 24 },
        { "aten::add_", "4,6;4,6;#", NULL, 0 },
        { "aten::linear", "2,4;5,4;5", NULL, 0 },
    };
    struct snd_work work;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        count(cases[i].name, cases[i].shapes, cases[i].arguments, SONDE_FLOPS_TORCH, &work);
        if (work.flops != cases[i].flops)
            fail_msg("%s %s: %g, expected %g", cases[i].name, cases[i].shapes, work.flops,
                     cases[i].flops);
    }
    /* An eighth has none, though its arguments are those of the first. */
    assert_int_equal(count("aten::conv_other", "4,2,9,8;6,2,3,3;6;-;-;-;#", CONV, SONDE_FLOPS_TORCH,
                           &work),
                     SND_FLOPS_NO_FORMULA);
    assert_true(work.flops == 0);
}

/* The outermost operator with a formula counts; what it calls is how it does it. */
static void nothing_counts_twice(void **state)
{
    struct synth *s = synth_new(scratch_path("nested"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      linear = synth_shapes(s, "3,4;5,4;5"), addmm = synth_shapes(s, "5;3,4;4,5;#;#");
    struct sonde_averages_options options = { .struct_size = sizeof options,
                                              .flops = SONDE_FLOPS_FULL };
    struct sonde_averages        *r;

    (void)state;
    synth_begin(s, t, 0, synth_string(s, "wrapper::call"), 0);
    synth_begin(s, t, 10, synth_string(s, "aten::linear"), linear);
    synth_begin(s, t, 20, synth_string(s, "aten::addmm"), addmm);
    synth_end(s, t, 30);
    synth_end(s, t, 40);
    synth_begin(s, t, 50, synth_string(s, "aten::addmm"), addmm); /* not in it: counts */
    synth_end(s, t, 60);
    synth_end(s, t, 70);
    synth_begin(s, t, 80, synth_string(s, "mine"), 0); /* marked by the program */
    synth_attr(s, t, SND_ATTR_FLOPS, 1000);
    synth_begin(s, t, 90, synth_string(s, "aten::addmm"), addmm);
    synth_end(s, t, 100);
    synth_end(s, t, 110);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("nested"));
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    assert_true(find_average(r, "aten::linear")->flops == 120);
    assert_true(find_average(r, "aten::linear")->macs == 60);
    assert_true(find_average(r, "aten::addmm")->flops == 120);
    assert_true(find_average(r, "mine")->flops == 1000);
    sonde_averages_free(r);
    options.flops = SONDE_FLOPS_TORCH; /* each by itself, as torch shows them */
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    assert_true(find_average(r, "aten::linear")->flops == 0);
    assert_true(find_average(r, "aten::addmm")->flops == 360);
    assert_true(find_average(r, "mine")->flops == 1000);
    sonde_averages_free(r);
    options.flops = SONDE_FLOPS_NONE;
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    assert_true(find_average(r, "aten::addmm")->flops == 0);
    assert_true(find_average(r, "mine")->flops == 1000);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

static uint64_t uncounted; /* operators without FLOPs in the latest trace */

/* A range with one operator inside, which makes room for the result; returns the FLOPs and bytes of the outer one. */
static struct sonde_average quantized(const char *name, const char *shapes, const char *child,
                                      const char *arguments)
{
    struct synth                 *s = synth_new(scratch_path("quantized"), NULL);
    uint32_t                      t = synth_thread(s, "main", 0);
    struct sonde_averages_options options = { .struct_size = sizeof options,
                                              .flops = SONDE_FLOPS_FULL };
    struct sonde_averages        *r;

    synth_begin(s, t, 10, synth_string(s, name), synth_shapes(s, shapes));
    synth_begin(s, t, 20, synth_string(s, child), 0);
    synth_attr(s, t, SND_ATTR_ARGUMENTS, synth_string(s, arguments));
    synth_end(s, t, 30);
    synth_end(s, t, 40);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("quantized"));
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    struct sonde_average  found = *find_average(r, name);
    struct sonde_summary *summary;
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    uncounted = ledger_count(summary, "uncounted_operators");
    sonde_summary_free(summary);
    sonde_averages_free(r);
    sonde_trace_close(trace);
    return found;
}

/* Weights are packed: how wide the result is, an operator inside says, in its first argument or its second. */
static void packed_weights(void **state)
{
    const char *const    room = "aten::_empty_affine_quantized";
    struct sonde_average a = quantized("quantized::linear", "2,3,4;-;#;#", room,
                                       "[\"[2, 3, 5]\", \"\"]");

    (void)state;
    assert_true(a.macs == 6 * 4 * 5 && a.flops == 2 * 6 * 4 * 5);
    assert_int_equal(uncounted, 1);                      /* the one inside */
    assert_true(a.moved_bytes == 4 * (24 + 30) + 4 * 5); /* a weight has one byte */
    a = quantized("quantized::linear_dynamic_fp16", "2,3,4;-", room, "[\"\", \"[2, 3, 5]\"]");
    assert_true(a.macs == 6 * 4 * 5);
    assert_true(a.moved_bytes == 4 * (24 + 30) + 2 * 4 * 5);
    /* room for something else */
    assert_true(quantized("quantized::linear", "2,3,4;-", room, "[\"[2, 5]\"]").flops == 0);
    assert_int_equal(uncounted, 2); /* and so it is named as one without FLOPs */
    assert_true(quantized("quantized::linear", "2,3,4;-", room, "[\"[3, 3, 5]\"]").flops == 0);
    assert_true(quantized("quantized::linear", "2,3,4;-", room, "[\"[2, 3, 0]\"]").flops == 0);
    assert_true(
        quantized("quantized::linear", "2,3,4;-", room, "[\"\", \"\", \"[2, 3, 5]\"]").flops == 0);
    assert_true(quantized("quantized::linear", "2,3,0;-", room, "[\"[2, 3, 5]\"]").flops == 0);
    assert_true(quantized("quantized::linear", "-;-", room, "[\"[2, 3, 5]\"]").flops == 0);
    /* an operator that has a formula takes nothing from what is inside it */
    assert_true(quantized("aten::mm", "3,4;4,5", room, "[\"[3, 7]\"]").macs == 60);
}

/* Who works without a formula is named, with its share; who has one, or only calls, is not. */
static void uncounted_operators_are_named(void **state)
{
    struct synth         *s = synth_new(scratch_path("uncounted"), NULL);
    uint32_t              t = synth_thread(s, "main", 0), shapes = synth_shapes(s, "3,4");
    struct sonde_summary *summary;

    (void)state;
    synth_begin(s, t, 0, synth_string(s, "mylib::wave"), shapes);
    synth_end(s, t, 300);
    synth_begin(s, t, 300, synth_string(s, "aten::relu"), shapes);
    synth_end(s, t, 1000);
    synth_begin(s, t, 1000, synth_string(s, "aten::view"), shapes);
    synth_end(s, t, 1001);
    synth_begin(s, t, 2000, synth_string(s, "my function"), 0);
    synth_end(s, t, 2001);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("uncounted"));
    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    assert_int_equal(ledger_count(summary, "uncounted_operators"), 1);
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        if (strcmp(item->key, "uncounted_operators") == 0)
            assert_non_null(strstr(item->text, "mylib::wave (29.9 % of self time)"));
    }
    sonde_summary_free(summary);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(bytes_moved),
        cmocka_unit_test(bytes_by_type),
        cmocka_unit_test(bytes_of_numbers),
        cmocka_unit_test(bytes_of_a_given_type),
        cmocka_unit_test(answers),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(names_are_given_once),
        cmocka_unit_test(needs_its_arguments),
        cmocka_unit_test(torch_mode),
        cmocka_unit_test(nothing_counts_twice),
        cmocka_unit_test(packed_weights),
        cmocka_unit_test(uncounted_operators_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
