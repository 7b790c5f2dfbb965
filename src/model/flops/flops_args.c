/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops_args.c - what a formula asks of a call: its tensors' dims, its numbers.
 */
#include <stdlib.h>
#include <string.h>

#include "model/flops/flops_formulas.h"

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
