/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_solvers.c - formulas of factorisations, solutions of equations and Fourier
 * transforms: the counts of the textbook algorithms (Golub, Van Loan), batches one by one.
 */
#include <math.h>

#include "format/dtypes.h"
#include "model/flops/flops_formulas.h"

/* How many matrices argument `i` holds, and their size; NULL: it holds none. */
static const struct sonde_argument *find_matrices(const struct snd_flops_call *c, size_t i,
                                                  double *batch, double *m, double *n)
{
    const struct sonde_argument *x = snd_arg_tensor(c, i);

    if (!x || x->count < 2)
        return NULL;
    *batch = snd_arg_product(x->dims, x->count - 2);
    *m = snd_arg_dim(x, 1);
    *n = snd_arg_dim(x, 0);
    return x;
}

static double lu_macs(double m, double n)
{
    double k = fmin(m, n);

    return m * n * k - (m + n) * k * k / 2 + k * k * k / 3;
}

/* A factorisation of a matrix. a: which; b: 1 if only a number is made of it, its determinant. */
bool snd_work_factor(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    double batch, m, n;

    if (!find_matrices(c, 0, &batch, &m, &n))
        return false;
    double least = fmin(m, n), most = fmax(m, n);
    switch ((enum factor_kind)a) {
    case FACTOR_LU:
        r->macs = batch * lu_macs(m, n);
        break;
    case FACTOR_CHOLESKY:
        r->macs = batch * n * n * n / 6;
        break;
    case FACTOR_INVERSE:
        r->macs = batch * n * n * n;
        break;
    case FACTOR_QR: /* Householder's, and Q formed from its reflections */
        r->macs = batch * 2 * (most * least * least - least * least * least / 3);
        break;
    }
    r->out = b ? batch : batch * (m * n + (a == FACTOR_QR ? least * least : 0));
    return true;
}

/*
 * Equations with the matrix of argument a and the right-hand sides of argument b: two triangles of
 * n x n for each side; of a triangular matrix (solve_triangle) one, of one that is not factored
 * (solve) its LU factorisation before.
 */
static bool solve(const struct snd_flops_call *c, int a, int b, int triangles, bool factors,
                  struct snd_flops_result *r)
{
    const struct sonde_argument *y = snd_arg_tensor(c, (size_t)b);
    double                       batch, m, n;

    if (!find_matrices(c, (size_t)a, &batch, &m, &n) || !y || n <= 0)
        return false;
    r->out = snd_arg_numel(y); /* n for each right-hand side */
    r->macs = triangles * r->out * n / 2 + (factors ? batch * lu_macs(n, n) : 0);
    r->dtype = y->dtype;
    return true;
}

bool snd_work_solve(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    return solve(c, a, b, 2, true, r);
}

bool snd_work_solve_factored(const struct snd_flops_call *c, int a, int b,
                             struct snd_flops_result *r)
{
    return solve(c, a, b, 2, false, r);
}

bool snd_work_solve_triangle(const struct snd_flops_call *c, int a, int b,
                             struct snd_flops_result *r)
{
    return solve(c, a, b, 1, false, r);
}

/* -------------------------------------------------------------- Fourier transforms */

/*
 * fft(x, dims, normalization, ..): 5 n log2 n, of real numbers half of it; n is the product of the
 * dims' sizes on the side that has all of them. a: which.
 */
bool snd_work_fourier(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0);
    double                       dims[SND_NUMBERS_MAX], last = 0, n = 1;
    int                          count = snd_arg_numbers(c, 1, dims);

    (void)b;
    if (!x || count <= 0 || (a == FOURIER_TO_REAL && !snd_arg_number(c, 3, &last)))
        return false;
    double elements = snd_arg_numel(x), halved = 1;
    for (int i = 0; i < count; i++) {
        double size = snd_arg_size(x, dims[i]);
        if (i + 1 == count) {
            halved = size;
            size = a == FOURIER_TO_REAL ? last : size;
        }
        n *= size;
    }
    double kept = floor(halved / 2) + 1; /* of real numbers: the rest is symmetric */
    bool   one_sided = a == FOURIER_OF_REAL && snd_arg_is_true(c, 3);
    r->out = halved > 0 ? elements / halved *
                              (a == FOURIER_TO_REAL ? last
                               : one_sided          ? kept
                                                    : halved)
                        : 0;
    double all = a == FOURIER_TO_REAL ? r->out : elements;
    r->other = n > 1 ? (a == FOURIER_COMPLEX ? 5 : 2.5) * all * log2(n) : 0;
    r->dtype = a == FOURIER_OF_REAL   ? snd_type_of_result(c, SND_RESULT_COMPLEX, x->dtype)
               : a == FOURIER_TO_REAL ? snd_type_of_result(c, SND_RESULT_PART, x->dtype)
                                      : x->dtype;
    return true;
}
