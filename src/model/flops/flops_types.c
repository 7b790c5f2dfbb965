/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_types.c - an operator's arguments, and the type of what it returns, by torch's rules of type
 * promotion.
 *
 * A trace has the types of an operator's inputs and not those of its results. The rules are torch's
 * (documentation of torch.result_type): a tensor with dims takes precedence over one without, and both over
 * numbers; what takes precedence loses only to a higher kind. torch hands a Python number to an operator as a
 * tensor without dims, of the widest type of its kind: such a tensor is taken for a number.
 */
#include <stdlib.h>
#include <string.h>

#include "format/dtypes.h"
#include "model/flops/flops_formulas.h"

static unsigned kind_of(uint8_t dtype)
{
    const struct snd_dtype *known = snd_dtype(dtype);

    return known ? known->kind : SND_DTYPE_NONE;
}

double snd_type_bytes(uint8_t dtype)
{
    const struct snd_dtype *known = snd_dtype(dtype);

    return known ? known->bytes : 4; /* as the most common one, float32 */
}

/* ---------------------------------------------------------------- promotion */

static bool is_unsigned(uint8_t dtype)
{
    return dtype == SONDE_UINT8 || dtype == SONDE_UINT16 || dtype == SONDE_UINT32 ||
           dtype == SONDE_UINT64;
}

static uint8_t wider(uint8_t a, uint8_t b)
{
    return snd_type_bytes(b) > snd_type_bytes(a) ? b : a;
}

static uint8_t promote_integers(uint8_t a, uint8_t b)
{
    if (is_unsigned(a) == is_unsigned(b))
        return wider(a, b);
    uint8_t without = is_unsigned(a) ? a : b, with = is_unsigned(a) ? b : a;
    if (snd_type_bytes(with) > snd_type_bytes(without))
        return with;
    return without == SONDE_UINT8 ? SONDE_INT16 : without; /* of the others torch refuses */
}

static uint8_t promote_floats(uint8_t a, uint8_t b)
{
    bool halves = (a == SONDE_FLOAT16 && b == SONDE_BFLOAT16) ||
                  (a == SONDE_BFLOAT16 && b == SONDE_FLOAT16);

    return halves ? SONDE_FLOAT32 : wider(a, b);
}

static uint8_t part_of(uint8_t dtype)
{
    return dtype == SONDE_COMPLEX32    ? SONDE_FLOAT16
           : dtype == SONDE_BCOMPLEX32 ? SONDE_BFLOAT16
           : dtype == SONDE_COMPLEX64  ? SONDE_FLOAT32
           : dtype == SONDE_COMPLEX128 ? SONDE_FLOAT64
                                       : dtype;
}

static uint8_t complex_of(uint8_t part)
{
    return part == SONDE_FLOAT16    ? SONDE_COMPLEX32
           : part == SONDE_BFLOAT16 ? SONDE_BCOMPLEX32
           : part == SONDE_FLOAT64  ? SONDE_COMPLEX128
                                    : SONDE_COMPLEX64;
}

/* Of two tensors with dims. UNKNOWN gives way. */
static uint8_t promote(uint8_t a, uint8_t b)
{
    unsigned x = kind_of(a), y = kind_of(b);

    if (a == b || y == SND_DTYPE_NONE || x == SND_DTYPE_OTHER)
        return a;
    if (x == SND_DTYPE_NONE || y == SND_DTYPE_OTHER)
        return b;
    if (x == SND_DTYPE_COMPLEX || y == SND_DTYPE_COMPLEX) {
        if (x < SND_DTYPE_FLOAT || y < SND_DTYPE_FLOAT)
            return x > y ? a : b;
        return complex_of(promote_floats(part_of(a), part_of(b)));
    }
    if (x != y)
        return x > y ? a : b;
    return x == SND_DTYPE_INTEGER ? promote_integers(a, b) : promote_floats(a, b);
}

/* What takes precedence, and what does not. */
static uint8_t combine(uint8_t first, uint8_t second)
{
    unsigned x = kind_of(first), y = kind_of(second);

    if (x == SND_DTYPE_COMPLEX)
        return first;
    if (x == SND_DTYPE_FLOAT)
        return y == SND_DTYPE_COMPLEX ? complex_of(first) : first;
    if (x == SND_DTYPE_NONE || x == SND_DTYPE_BOOL || y == SND_DTYPE_FLOAT ||
        y == SND_DTYPE_COMPLEX)
        return promote(first, second);
    return first;
}

/* ---------------------------------------------------------------- arguments */

/* The type that a number takes part with: torch's default of its kind. */
static uint8_t type_of_number(const struct snd_flops_call *c, size_t i)
{
    struct sonde_text text = i < c->value_count ? c->values[i] : (struct sonde_text){ "", 0 };

    if (text.length == 0)
        return SONDE_DTYPE_UNKNOWN;
    if (text.bytes[text.length - 1] == 'j')
        return SONDE_COMPLEX64;
    if (text.bytes[0] == 'T' || text.bytes[0] == 'F')
        return SONDE_BOOL;
    for (size_t k = 0; k < text.length; k++)
        if (!strchr("+-0123456789", text.bytes[k]))
            return SONDE_FLOAT32; /* also "inf", "nan" */
    return SONDE_INT64;
}

static uint8_t as_number(uint8_t dtype)
{
    return dtype == SONDE_FLOAT64      ? SONDE_FLOAT32
           : dtype == SONDE_COMPLEX128 ? SONDE_COMPLEX64
                                       : dtype;
}

struct ranks {
    uint8_t with_dims, without, number;
};

static void rank_tensor(struct ranks *ranks, const struct sonde_argument *t)
{
    bool is_widest = t->dtype == SONDE_FLOAT64 || t->dtype == SONDE_INT64 ||
                     t->dtype == SONDE_BOOL || t->dtype == SONDE_COMPLEX128;

    if (t->count > 0)
        ranks->with_dims = promote(ranks->with_dims, t->dtype);
    else if (is_widest)
        ranks->number = promote(ranks->number, as_number(t->dtype));
    else
        ranks->without = promote(ranks->without, t->dtype);
}

uint8_t snd_type_promoted(const struct snd_flops_call *c, size_t first, size_t last)
{
    struct ranks ranks = { SONDE_DTYPE_UNKNOWN, SONDE_DTYPE_UNKNOWN, SONDE_DTYPE_UNKNOWN };
    uint8_t      exact = SONDE_DTYPE_UNKNOWN;

    for (size_t i = first; i <= last && i < c->count; i++) {
        const struct sonde_argument *t = snd_arg_tensor(c, i), *l = snd_arg_list(c, i);
        for (size_t k = 0; l && k < l->count; k++)
            if (snd_arg_element(c, l, k))
                rank_tensor(&ranks, snd_arg_element(c, l, k));
        if (t) {
            rank_tensor(&ranks, t);
            exact = promote(exact, t->dtype);
        } else if (c->items[c->top[i]].kind == SND_SHAPE_SCALAR) {
            ranks.number = promote(ranks.number, type_of_number(c, i));
        }
    }
    if (kind_of(ranks.with_dims) == SND_DTYPE_NONE && kind_of(ranks.without) == SND_DTYPE_NONE &&
        kind_of(exact) != SND_DTYPE_NONE)
        return exact; /* all are without dims: tensors after all */
    return combine(ranks.with_dims, combine(ranks.without, ranks.number));
}

/* ------------------------------------------------------------------ results */

/* A type among the arguments is its number. */
static bool find_dtype(const struct snd_flops_call *c, size_t i, uint8_t *dtype)
{
    double number;

    if (i >= c->count || c->items[c->top[i]].kind != SND_SHAPE_SCALAR ||
        !snd_arg_number(c, i, &number) || number < 0 || number > 254 || !snd_dtype((uint8_t)number))
        return false;
    *dtype = (uint8_t)number;
    return true;
}

static bool is_whole(uint8_t dtype)
{
    return kind_of(dtype) == SND_DTYPE_BOOL || kind_of(dtype) == SND_DTYPE_INTEGER;
}

uint8_t snd_type_of_result(const struct snd_flops_call *c, enum snd_result_rule rule, uint8_t dtype)
{
    uint8_t given;

    switch (rule) {
    case SND_RESULT_BOOL:
        return SONDE_BOOL;
    case SND_RESULT_INT32:
        return SONDE_INT32;
    case SND_RESULT_INT64:
        return SONDE_INT64;
    case SND_RESULT_FLOAT32:
        return SONDE_FLOAT32;
    case SND_RESULT_FLOAT64:
        return kind_of(dtype) == SND_DTYPE_COMPLEX ? SONDE_COMPLEX128 : SONDE_FLOAT64;
    case SND_RESULT_REAL:
        return is_whole(dtype) ? SONDE_FLOAT32 : dtype;
    case SND_RESULT_QUOTIENT: /* with a way of rounding, integers stay integers */
        return is_whole(dtype) && c->count < 3 ? SONDE_FLOAT32 : dtype;
    case SND_RESULT_SUM: /* sum(x, dtype), sum(x, dims, keep, dtype) */
        if ((c->count == 2 || c->count == 4) && find_dtype(c, c->count - 1, &given))
            return given;
        return is_whole(dtype) ? SONDE_INT64 : dtype;
    case SND_RESULT_RUNNING_SUM: /* cumsum(x, dim, dtype) */
        if (find_dtype(c, 2, &given))
            return given;
        return is_whole(dtype) ? SONDE_INT64 : dtype;
    case SND_RESULT_MEAN:
        if ((c->count == 2 || c->count == 4) && find_dtype(c, c->count - 1, &given))
            return given;
        return dtype;
    case SND_RESULT_PART:
        return part_of(dtype);
    case SND_RESULT_COMPLEX:
        return complex_of(dtype);
    case SND_RESULT_ARGUMENT_3:
        return find_dtype(c, 3, &given) ? given : dtype;
    case SND_RESULT_ARGUMENT_6:
        return find_dtype(c, 6, &given) ? given : dtype;
    case SND_RESULT_FIRST: {
        const struct sonde_argument *self = snd_arg_tensor(c, 0);
        return self ? self->dtype : dtype;
    }
    default:
        return dtype;
    }
}

/* ---------------------------------------------- what formulas ask of a call */

const struct sonde_argument *snd_arg_tensor(const struct snd_flops_call *c, size_t i)
{
    if (i >= c->count || c->items[c->top[i]].kind != SND_SHAPE_TENSOR)
        return NULL;
    return &c->items[c->top[i]];
}

const struct sonde_argument *snd_arg_list(const struct snd_flops_call *c, size_t i)
{
    if (i >= c->count || c->items[c->top[i]].kind != SND_SHAPE_LIST)
        return NULL;
    return &c->items[c->top[i]];
}

/* Element `k` of a list argument, if it is a tensor. */
const struct sonde_argument *snd_arg_element(const struct snd_flops_call *c,
                                             const struct sonde_argument *l, size_t k)
{
    size_t at = (size_t)(l - c->items) + 1 + k;

    return k < l->count && at < c->item_count && c->items[at].kind == SND_SHAPE_TENSOR
               ? &c->items[at]
               : NULL;
}

double snd_arg_product(const int64_t *dims, size_t count)
{
    double p = 1;

    for (size_t i = 0; i < count; i++)
        p *= dims[i] > 0 ? (double)dims[i] : 0;
    return p;
}

double snd_arg_numel(const struct sonde_argument *t)
{
    return t ? snd_arg_product(t->dims, t->count) : 0;
}

/* From the end: 0 is the last. */
double snd_arg_dim(const struct sonde_argument *t, size_t from_end)
{
    if (!t || from_end >= t->count)
        return 1;
    int64_t d = t->dims[t->count - 1 - from_end];
    return d > 0 ? (double)d : 0;
}

double snd_arg_size(const struct sonde_argument *t, double number)
{
    double at = number < 0 ? number + t->count : number;

    return at >= 0 && at < t->count ? snd_arg_dim(t, t->count - 1 - (size_t)at) : 1;
}

/* "3", "True", "1.5"; false if it is not a number. */
bool snd_arg_number(const struct snd_flops_call *c, size_t i, double *value)
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

bool snd_arg_is_true(const struct snd_flops_call *c, size_t i)
{
    double value;

    return snd_arg_number(c, i, &value) && value > 0;
}

/* "[1, 1]" to its numbers; returns how many, or -1 if it is not such a list. */
int snd_arg_numbers(const struct snd_flops_call *c, size_t i, double values[SND_NUMBERS_MAX])
{
    if (i >= c->value_count || c->values[i].length < 2 || c->values[i].bytes[0] != '[')
        return -1;
    const char *at = c->values[i].bytes + 1, *end = c->values[i].bytes + c->values[i].length;
    int         count = 0;
    while (at < end && *at != ']') {
        struct snd_flops_call one = { .value_count = 1 };
        while (at < end && (*at == ' ' || *at == ','))
            at++;
        const char *stop = at;
        while (stop < end && *stop != ',' && *stop != ']')
            stop++;
        one.values[0] = (struct sonde_text){ at, (size_t)(stop - at) };
        if (stop == at || count == (int)SND_NUMBERS_MAX || !snd_arg_number(&one, 0, &values[count]))
            return -1;
        count++;
        at = stop;
    }
    return at < end ? count : -1;
}

/* The k-th number of a list; one number stands for all, none for `missing`. */
double snd_arg_pick(const double *values, int count, unsigned k, double missing)
{
    if (count <= 0)
        return missing;
    return values[(int)k < count ? k : (unsigned)count - 1];
}

/* Elements of the result of an element-wise operator: its tensors, broadcast. */
double snd_arg_broadcast(const struct snd_flops_call *c, size_t first, size_t last)
{
    double p = 1;
    bool   any = false;

    for (size_t k = 0; k < 16; k++) {
        double widest = 1;
        bool   zero = false;
        for (size_t i = first; i <= last && i < c->count; i++) {
            const struct sonde_argument *t = snd_arg_tensor(c, i);
            if (!t)
                continue;
            any = true;
            double d = snd_arg_dim(t, k);
            zero |= k < t->count && d <= 0;
            widest = d > widest ? d : widest;
        }
        p *= zero ? 0 : widest;
    }
    return any ? p : -1;
}
