/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that is no product, and factorisations: operations, and elements written, worked out by
 * hand. An index counts as two: it has eight bytes.
 */
#include "base/count_of.h"
#include "flops_call.h"

static const struct flops_row elements[] = {
    { "aten::add", "4,1,6;5,1;#", "", 0, 120, 120 },
    { "aten::mul", "4,6;#", "", 0, 24, 24 },
    { "aten::add", "0,6;6;#", "", 0, 0, 0 },
    { "aten::add", "6;4,6,6;#", "", 0, 144, 144 },
    { "aten::where", "4,6;4,6;6", "", 0, 0, 24 },
    /* a name of its own that ends as one in place: none without its end is another */
    { "aten::__and__", "4,6;4,6", "", 0, 24, 24 },
    { "aten::__or__", "4,6;6", "", 0, 24, 24 },
    { "aten::__xor__", "4,6;#", "", 0, 24, 24 },
    { "aten::__lshift__", "4,6;#", "", 0, 24, 24 },
    { "aten::__rshift__", "4,6;#", "", 0, 24, 24 },
    { "aten::index_put_", "4,6;(3);3,6;#", "", 0, 0, 18 },
    { "aten::_foreach_add_", "(4,6;3);(4,6;3);#", "", 0, 27, 27 },
    { "aten::relu", "4,10", "", 0, 40, 40 },
    { "aten::silu_backward", "4,10;4,10", "", 0, 360, 40 },
    { "aten::cummax", "4,6;#", "", 0, 24, 24 + 48 },
    { "aten::glu", "4,10;#", "", 0, 20 * 5, 20 },
    /* norms */
    { "aten::layer_norm", "4,10;-;10;10;#;#", "", 0, 40 * 7, 40 },
    { "aten::native_layer_norm", "4,10;-;10;-;#", "", 0, 40 * 6, 40 },
    { "aten::native_layer_norm", "4,10;-;-;-;#", "", 0, 40 * 5, 40 },
    { "aten::native_group_norm", "2,4,5;4;4;#;#;#;#;#", "", 0, 40 * 7, 40 },
    { "aten::rms_norm", "4,10;-;10;#", "", 0, 40 * 4, 40 },
    { "aten::batch_norm", "2,4,5;4;4;4;4;#;#;#;#", ";;;;;True;0.1;1e-05;True", 0, 40 * 7, 40 },
    { "aten::batch_norm", "2,4,5;4;-;4;4;#;#;#;#", ";;;;;True;0.1;1e-05;True", 0, 40 * 6, 40 },
    { "aten::batch_norm", "2,4,5;-;-;4;4;#;#;#;#", ";;;;;True;0.1;1e-05;True", 0, 40 * 5, 40 },
    { "aten::batch_norm", "2,4,5;4;4;4;4;#;#;#;#", ";;;;;False;0.1;1e-05;True", 0, 40 * 4, 40 },
    { "aten::_native_batch_norm_legit_no_training", "2,4,5;4;4;4;4;#;#", ";;;;;0.1;1e-05", 0,
      40 * 4, 40 },
    /* reductions: what the dims leave */
    { "aten::trace", "6,6", "", 0, 36, 0 },
    { "aten::sum", "4,6;#", ";", 0, 24, 1 },
    { "aten::sum", "4,6;-;#;#", ";[1];False;", 0, 24, 4 },
    { "aten::sum", "4,6;-;#;#", ";[0];False;", 0, 24, 6 },
    { "aten::sum", "4,6;-;#;#", ";[-2];False;", 0, 24, 6 },
    { "aten::sum", "4,6,3;-;#;#", ";[0, 2];False;", 0, 72, 6 },
    { "aten::sum", "4,6;-;#;#", ";[2];False;", 0, 24, 24 }, /* it has no such dim */
    { "aten::sum", "4,6;-;#;#", ";[-3];False;", 0, 24, 24 },
    { "aten::sum", "4,6;-;#;#", ";[];False;", 0, 24, 1 },
    { "aten::sum", "4,0;-;#;#", ";[1];False;", 0, 0, 0 },
    { "aten::argmax", "4,6;#;#", ";1;False", 0, 24, 2 * 4 },
    { "aten::argmax", "4,6;#;#", ";;False", 0, 24, 2 * 1 },
    { "aten::logsumexp", "4,6;-;#", ";[0];False", 0, 96, 6 },
    { "aten::norm", "4,6;#;-;#", ";2;[1];False", 0, 48, 4 },
    { "aten::max", "4,6", "", 0, 24, 1 },
    { "aten::max", "4,6;#;#", ";1;False", 0, 24, 4 + 2 * 4 },
    { "aten::max", "4,1;6", "", 0, 24, 24 },
    { "aten::sort", "4,8;#;#", ";-1;False", 0, 32 * 3, 32 + 64 },
    { "aten::sort", "4,5;#;#", ";-1;False", 0, 20 * 3, 20 + 40 },
    { "aten::sort", "4,2;#;#", ";-1;False", 0, 8, 8 + 16 },
    { "aten::sort", "4,1;#;#", ";-1;False", 0, 0, 4 + 8 },
    { "aten::argsort", "4,8;#;#", ";-1;False", 0, 32 * 3, 64 },
    { "aten::msort", "4,8", "", 0, 32 * 3, 32 },
    { "aten::topk", "4,8;#;#;#;#", ";3;-1;True;True", 0, 32 * 3, 12 + 24 },
    { "aten::topk", "4,0;#;#;#;#", ";3;-1;True;True", 0, 0, 0 },
    { "aten::kthvalue", "4,8;#;#;#", ";2;1;False", 0, 32 * 3, 4 + 8 },
    { "aten::median", "4,8", "", 0, 32 * 3, 1 },
    { "aten::median", "4,8;#;#", ";1;False", 0, 32 * 3, 4 + 8 },
    /* moved, not computed */
    { "aten::copy_", "4,6;4,6;#", "", 0, 0, 24 },
    { "aten::gather", "4,6;#;4,2;#", "", 0, 0, 8 },
    { "aten::index_select", "4,6;#;3", ";1;", 0, 0, 12 },
    { "aten::index_select", "4,6;#;3", ";0;", 0, 0, 18 },
    { "aten::cat", "(4,6;3,6);#", "", 0, 0, 42 },
    { "aten::embedding", "100,16;3,5;#;#;#", "", 0, 0, 240 },
    { "aten::embedding_bag", "100,16;15;3", "", 0, 240, 240 },
};

static const struct flops_row no_elements[] = {
    { "aten::add", "#;#;#", "", 0, 0, 0 },
    { "aten::where", "-;#;#", "", 0, 0, 0 },
    { "aten::_foreach_add_", "4,6;#", "", 0, 0, 0 },
    { "aten::relu", "#", "", 0, 0, 0 },
    { "aten::cummax", "-;#", "", 0, 0, 0 },
    { "aten::glu", "-;#", "", 0, 0, 0 },
    { "aten::layer_norm", "-;-;10;10", "", 0, 0, 0 },
    { "aten::batch_norm", "-;4;4;4;4;#;#;#;#", ";;;;;True;0.1;1e-05;True", 0, 0, 0 },
    { "aten::trace", "-", "", 0, 0, 0 },
    { "aten::sum", "-;#", "", 0, 0, 0 },
    { "aten::max", "-;#", "", 0, 0, 0 },
    { "aten::sort", "-;#;#", "", 0, 0, 0 },
    { "aten::copy_", "#;4,6", "", 0, 0, 0 },
    { "aten::index_select", "4,6;#;-", ";1;", 0, 0, 0 },
    { "aten::index_select", "-;#;3", ";1;", 0, 0, 0 },
    { "aten::cat", "4,6;#", "", 0, 0, 0 },
    { "aten::embedding", "100,16;-", "", 0, 0, 0 },
    { "aten::embedding", "-;3,5", "", 0, 0, 0 },
};

/* Places of a window, and what is done in each. */
static const struct flops_row windows[] = {
    { "aten::max_pool1d", "2,3,11;-;-;-;-;#", ";[4];[3];[2];[2];False", 0, 18 * 3, 18 },
    { "aten::max_pool2d", "1,2,7,9;-;-;-;-;#", ";[3, 3];[2, 2];[0, 0];[1, 1];False", 0, 2 * 12 * 8,
      24 },
    { "aten::max_pool2d", "2,8,8;-;-;-;-;#", ";[3];[2];[0];[1];True", 0, 2 * 16 * 8, 32 },
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", ";[2, 4];[];[0, 0];[1, 1];False", 0, 2 * 8 * 7, 16 },
    { "aten::max_pool2d", "7,9;-;-;-;-;#", ";[3, 3];[2, 2];[0, 0];[1, 1];False", 0, 12 * 8, 12 },
    { "aten::max_pool2d", "1,2,2,2;-;-;-;-;#", ";[3, 3];[1, 1];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::max_pool2d", "1,2,1,2;-;-;-;-;#", ";[3, 3];[1, 1];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::avg_pool2d", "1,2,8,8;-;-;-;#;#;-", ";[2, 2];[];[0, 0];False;True;", 0, 2 * 16 * 4,
      32 },
    { "aten::avg_pool2d", "1,2,8,8;-;-;-;#;#;-", ";[3, 3];[2, 2];[0, 0];True;True;", 0, 2 * 16 * 9,
      32 },
    /* rounded up, but no window begins behind the input and its padding */
    { "aten::avg_pool2d", "1,2,2,2;-;-;-;#;#;-", ";[1, 1];[3, 3];[0, 0];True;True;", 0, 2, 2 },
    { "aten::avg_pool2d", "1,2,3,3;-;-;-;#;#;-", ";[2, 2];[4, 4];[1, 1];True;True;", 0, 2 * 4, 2 },
    { "aten::avg_pool2d", "1,2,4,4;-;-;-;#;#;-", ";[2, 2];[4, 4];[1, 1];True;True;", 0, 2 * 4 * 4,
      8 },
    { "aten::avg_pool3d", "2,5,6,7;-;-;-;#;#;-", ";[1, 2, 3];[2, 2, 2];[0, 1, 0];False;True;", 0,
      72 * 6, 72 },
    /* windows of an adaptive one overlap: 5 by 2 are 0..3 and 2..5 */
    { "aten::adaptive_avg_pool1d", "3,7;-", ";[3]", 0, 3 * 9, 9 },
    { "aten::adaptive_avg_pool2d", "1,2,5,6;-", ";[2, 3]", 0, 2 * 36, 12 },
    { "aten::adaptive_avg_pool2d", "5,6;-", ";[2, 3]", 0, 36, 6 },
    { "aten::adaptive_max_pool2d", "1,2,5,6;-", ";[2, 3]", 0, 2 * 30, 12 },
    { "aten::adaptive_max_pool1d", "3,2;-", ";[4]", 0, 0, 12 },
    { "aten::adaptive_avg_pool1d", "1,4096;-", ";[4096]", 0, 4096, 4096 },
    { "aten::adaptive_avg_pool1d", "1,10;-", ";[4097]", 0, 4107, 4097 }, /* at most so many */
    { "aten::adaptive_avg_pool1d", "1,0;-", ";[3]", 0, 0, 3 },
    { "aten::adaptive_avg_pool1d", "1,5;-", ";[0]", 0, 0, 0 },
    { "aten::upsample_nearest1d", "3,4;-;-", ";[9];", 0, 0, 27 },
    { "aten::upsample_linear1d", "3,4;-;#;-", ";[9];False;", 0, 27 * 3, 27 },
    { "aten::upsample_bilinear2d", "1,2,4,4;-;#;-;-", ";[8, 9];False;;", 0, 144 * 7, 144 },
    { "aten::upsample_bilinear2d", "4,4;-;#;-;-", ";[8, 9];False;;", 0, 72 * 7, 72 },
    { "aten::upsample_bilinear2d", "1,2,4,4;-;#;-;-", ";[-1, 9];False;;", 0, 0, 0 },
    { "aten::upsample_bilinear2d", "1,2,4,4;-;#;-;-", ";[1, 9];False;;", 0, 18 * 7, 18 },
    { "aten::upsample_trilinear3d", "2,4,4,4;-;#", ";[2, 3, 5];False", 0, 60 * 15, 60 },
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", ";;1.0;2;4;3", 0, 120 * (9 * 8 + 1), 120 },
};

static const struct flops_row no_windows[] = {
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", "", 0, 0, 0 },
    { "aten::max_pool2d", "-;-;-;-;-;#", ";[3, 3];[2, 2];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::max_pool2d", "8;-;-;-;-;#", ";[3, 3];[2, 2];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", ";[];[2, 2];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", ";[3, 3];[2, 2];;[1, 1];False", 0, 0, 0 },
    { "aten::max_pool2d", "1,2,8,8;-;-;-;-;#", ";[3, 3];[2, 0];[0, 0];[1, 1];False", 0, 0, 0 },
    { "aten::adaptive_avg_pool2d", "5;-", ";[2, 3]", 0, 0, 0 },
    { "aten::adaptive_avg_pool2d", "1,2,5,6;-", ";[]", 0, 0, 0 },
    { "aten::adaptive_avg_pool2d", "-;-", ";[2, 3]", 0, 0, 0 },
    { "aten::upsample_bilinear2d", "1,2,4,4;-;#;-;-", ";[8];False;;", 0, 0, 0 },
    { "aten::upsample_bilinear2d", "4;-;#;-;-", ";[8, 9];False;;", 0, 0, 0 },
    { "aten::upsample_bilinear2d", "-;-;#;-;-", ";[8, 9];False;;", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", ";;1.0;2;4;0", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", ";;1.0;2;4", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", ";;1.0;2;;3", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;5,5;#;#;#;#", ";;1.0;;4;3", 0, 0, 0 },
    { "torchvision::roi_align", "3,16,16;5,5;#;#;#;#", ";;1.0;2;4;3", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;5;#;#;#;#", ";;1.0;2;4;3", 0, 0, 0 },
    { "torchvision::roi_align", "2,3,16,16;-;#;#;#;#", ";;1.0;2;4;3", 0, 0, 0 },
};

/* The textbook's counts; a Fourier transform of real numbers writes complex ones, of twice the size. */
static const struct flops_row solvers[] = {
    { "aten::linalg_lu_factor_ex", "2,3,3;#;#", "", 18, 0, 18 },
    { "aten::linalg_lu_factor", "4,3;#", "", 13.5, 0, 12 },
    { "aten::linalg_lu_factor", "3,4;#", "", 13.5, 0, 12 },
    { "aten::linalg_det", "5,6,6", "", 5 * 72, 0, 5 },
    { "aten::linalg_det", "6,6", "", 72, 0, 1 },
    { "aten::linalg_cholesky_ex", "2,6,6;#;#", "", 72, 0, 72 },
    { "aten::linalg_inv_ex", "2,4,4;#", "", 128, 0, 32 },
    { "aten::linalg_qr", "5,3;-", "", 72, 0, 15 + 9 },
    { "aten::linalg_qr", "2,3,5;-", "", 144, 0, 30 + 18 },
    { "aten::linalg_solve", "3,3;3,2;#", "", 9 + 18, 0, 6 },
    { "aten::linalg_solve", "2,3,3;2,3,2;#", "", 2 * (9 + 18), 0, 12 },
    { "aten::linalg_lu_solve", "3,3;3;3,2;#", "", 18, 0, 6 },
    { "aten::cholesky_solve", "3,2;3,3;#", "", 18, 0, 6 },
    { "aten::linalg_solve_triangular", "3,3;3,2;#;#;#", "", 9, 0, 6 },
    { "aten::triangular_solve", "3,2;3,3;#;#;#", "", 9, 0, 6 },
    { "aten::_fft_c2c", "4,8;-;#;#", ";[1];0;True", 0, 5 * 32 * 3, 32 },
    { "aten::_fft_c2c", "4,8;-;#;#", ";[0, 1];0;True", 0, 5 * 32 * 5, 32 },
    { "aten::_fft_c2c", "4,2;-;#;#", ";[1];0;True", 0, 5 * 8, 8 },
    { "aten::_fft_c2c", "4,1;-;#;#", ";[1];0;True", 0, 0, 4 },
    { "aten::_fft_c2c", "4,0;-;#;#", ";[1];0;True", 0, 0, 0 },
    { "aten::_fft_r2c", "4,8;-;#;#", ";[-1];0;True", 0, 2.5 * 32 * 3, 2 * 4 * 5 },
    { "aten::_fft_r2c", "4,8;-;#;#", ";[-1];0;False", 0, 2.5 * 32 * 3, 2 * 4 * 8 },
    { "aten::_fft_r2c", "1,4;-;#;#", ";[0];0;True", 0, 0,
      2 * 4 }, /* one along it: floor(1 / 2) + 1 */
    { "aten::_fft_c2r", "4,5;-;#;#", ";[1];0;8", 0, 2.5 * 32 * 3, 32 },
    { "aten::_fft_c2r", "4,5;-;#;#", ";[0, 1];0;8", 0, 2.5 * 32 * 5, 32 },
};

static const struct flops_row no_solvers[] = {
    { "aten::linalg_det", "6", "", 0, 0, 0 },
    { "aten::linalg_det", "-", "", 0, 0, 0 },
    { "aten::linalg_solve", "3,3;-;#", "", 0, 0, 0 },
    { "aten::linalg_solve", "0,0;0,2;#", "", 0, 0, 0 },
    { "aten::linalg_solve", "3;3,2;#", "", 0, 0, 0 },
    { "aten::_fft_c2c", "4,8;-;#;#", ";[];0;True", 0, 0, 0 },
    { "aten::_fft_c2c", "-;-;#;#", ";[1];0;True", 0, 0, 0 },
    { "aten::_fft_c2r", "4,5;-;#;#", ";[1];0;", 0, 0, 0 },
};

static void by_element(void **state)
{
    (void)state;
    check_rows(elements, SND_COUNT_OF(elements));
    check_refused(no_elements, SND_COUNT_OF(no_elements));
}

static void by_window(void **state)
{
    (void)state;
    check_rows(windows, SND_COUNT_OF(windows));
    check_refused(no_windows, SND_COUNT_OF(no_windows));
}

static void by_equation(void **state)
{
    (void)state;
    check_rows(solvers, SND_COUNT_OF(solvers));
    check_refused(no_solvers, SND_COUNT_OF(no_solvers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_element),
        cmocka_unit_test(by_window),
        cmocka_unit_test(by_equation),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
