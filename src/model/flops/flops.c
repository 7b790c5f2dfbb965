/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/flops/flops.c - which formula of flops.def an operator has, and what it gives for a call.
 *
 * A formula sees a call: the tensors' dims and the numbers among its arguments, in the order of
 * the operator's signature. It says how many multiply-accumulates the call has, how many other
 * operations, and how many elements come out; bytes moved follow from that. Where something
 * that it needs is missing it says so instead of guessing.
 */
#include "model/flops/flops.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "base/data/sort.h"
#include "base/text/compare.h"
#include "format/dtypes.h"
#include "format/fields.h"
#include "format/layout.h"
#include "model/flops/flops_formulas.h"
#include "read/reader.h"

#define ITEMS_MAX 8192u /* with the elements of lists: all parameters of a large network */
#define ANSWERS_MAX (1u << 20)

struct formula {
    const char *name;
    bool (*work)(const struct snd_flops_call *c, int a, int b, struct snd_flops_result *r);
    int                  a, b;
    enum snd_result_rule result;
};

/* ---------------------------------------------------------------- the table */

static const struct formula formulas[] = {
#define SND_FLOPS(name, formula, a, b, note) SND_FLOPS_AS(name, formula, a, b, FOUND, note)
#define SND_FLOPS_AS(name, formula, a, b, result, note) \
    { name, snd_work_##formula, a, b, SND_RESULT_##result },
#include "model/flops/flops.def"
#undef SND_FLOPS
#undef SND_FLOPS_AS
};
#define FORMULAS SND_COUNT_OF(formulas)

bool snd_flops_is_operator(struct sonde_text name)
{
    static const char *const not_operators[] = { "autograd::", "torch::", "profiler::", "nccl:",
                                                 "c10d::" };
    const char              *colons = memmem(name.bytes, name.length, "::", 2);

    if (!colons || colons == name.bytes || memchr(name.bytes, ' ', name.length))
        return false;
    for (size_t i = 0; i < SND_COUNT_OF(not_operators); i++) {
        size_t length = strlen(not_operators[i]);
        if (name.length >= length && memcmp(name.bytes, not_operators[i], length) == 0)
            return false;
    }
    return true;
}

static int compare_name(const char *bytes, size_t length, const char *name)
{
    return snd_order_at(bytes, length, name, strlen(name));
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
    if (!memchr(name.bytes, ':', name.length)) /* most ranges that are no operators */
        return NULL;
    const struct formula *f = find_exact(name.bytes, name.length);
    if (!f && name.bytes[name.length - 1] == '_')
        f = find_exact(name.bytes, name.length - 1);
    return f;
}

/* -------------------------------------------------------------------- one call */

/* The strings of a JSON list; escapes do not occur in numbers, so they are not undone. */
static void split_arguments(struct snd_flops_call *c, struct sonde_text json)
{
    const char *at = json.bytes, *end = json.bytes + json.length;

    while (json.length > 0 && c->value_count < SND_ARGUMENTS_MAX) {
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

static void take_apart(struct snd_flops_call *c, const struct snd_call *from)
{
    *c = (struct snd_flops_call){ .items = from->items, .item_count = from->item_count };
    for (size_t i = 0; i < from->item_count && c->count < SND_ARGUMENTS_MAX; i++) {
        c->top[c->count++] = (uint32_t)i;
        if (from->items[i].kind == SND_SHAPE_LIST)
            i += from->items[i].count < from->item_count ? from->items[i].count : from->item_count;
    }
    split_arguments(c, from->arguments);
}

static uint8_t first_type(const struct snd_flops_call *c)
{
    for (size_t i = 0; i < c->item_count; i++)
        if (c->items[i].kind == SND_SHAPE_TENSOR)
            return c->items[i].dtype;
    return SONDE_DTYPE_UNKNOWN;
}

/* What goes in and what comes out; an operator in place (add_) returns what it is called on. */
static double count_bytes(const struct snd_flops_call *c, const struct formula *f, bool in_place,
                          const struct snd_flops_result *r)
{
    enum snd_result_rule rule = in_place ? SND_RESULT_FIRST : f->result;
    double               bytes = 0;

    for (size_t i = 0; i < c->item_count; i++)
        if (c->items[i].kind == SND_SHAPE_TENSOR)
            bytes += snd_arg_numel(&c->items[i]) * snd_type_bytes(c->items[i].dtype);
    return bytes + r->out * snd_type_bytes(snd_type_of_result(c, rule, r->dtype)) +
           r->indices * snd_type_bytes(SONDE_INT64) + r->own_bytes;
}

/* "aten::add_", and not "aten::__and__". */
static bool is_in_place(struct sonde_text name)
{
    return name.length > 2 && name.bytes[name.length - 1] == '_' &&
           name.bytes[name.length - 2] != '_';
}

static enum snd_flops_answer run_formula(const struct formula *f, struct sonde_text name,
                                         const struct snd_call *from, struct snd_work *work)
{
    struct snd_flops_call   c;
    struct snd_flops_result r = { 0 };

    *work = (struct snd_work){ 0 };
    if (f->work == snd_work_none)
        return SND_FLOPS_NO_WORK;
    take_apart(&c, from);
    r.dtype = first_type(&c);
    if (!f->work(&c, f->a, f->b, &r))
        return SND_FLOPS_UNKNOWN;
    *work = (struct snd_work){ 2 * r.macs + r.other, r.macs,
                               count_bytes(&c, f, is_in_place(name), &r) };
    if (!isfinite(work->flops) || !isfinite(work->moved_bytes)) {
        *work = (struct snd_work){ 0 };
        return SND_FLOPS_UNKNOWN;
    }
    return SND_FLOPS_FOUND;
}

/* ------------------------------------------------------------- torch's numbers */

/* Its formulas are in 64-bit integers, with its divisions where it has them. */
static double torch_conv2d(const struct snd_flops_call *c)
{
    const struct sonde_argument *x = snd_arg_tensor(c, 0), *w = snd_arg_tensor(c, 1);
    double stride[SND_NUMBERS_MAX], padding[SND_NUMBERS_MAX], dilation[SND_NUMBERS_MAX], groups;

    if (c->count < 7 || !x || !w || x->count != 4 || w->count != 4 ||
        snd_arg_numbers(c, 3, stride) < 2 || snd_arg_numbers(c, 4, padding) < 2 ||
        snd_arg_numbers(c, 5, dilation) < 2 || !snd_arg_number(c, 6, &groups) || groups < 1 ||
        stride[0] < 1 || stride[1] < 1)
        return 0;
    double h =
        floor((snd_arg_dim(x, 1) + 2 * padding[0] - dilation[0] * (snd_arg_dim(w, 1) - 1) - 1) /
              stride[0]) +
        1;
    double v =
        floor((snd_arg_dim(x, 0) + 2 * padding[1] - dilation[1] * (snd_arg_dim(w, 0) - 1) - 1) /
              stride[1]) +
        1;
    return floor(2 * snd_arg_dim(x, 3) * h * v * snd_arg_dim(w, 1) * snd_arg_dim(w, 0) *
                 snd_arg_dim(x, 2) * snd_arg_dim(w, 3) / groups);
}

static double torch_matmul(const struct snd_flops_call *c, size_t first, bool batched)
{
    const struct sonde_argument *x = snd_arg_tensor(c, first), *y = snd_arg_tensor(c, first + 1);

    if (!x || !y || x->count == 0 || snd_arg_dim(x, 0) <= 0)
        return 0;
    double flops = snd_arg_numel(x) / snd_arg_dim(x, 0);
    if (batched)
        flops = snd_arg_dim(x, x->count - 1) > 0 ? flops / snd_arg_dim(x, x->count - 1) : 0;
    return flops * snd_arg_numel(y) * 2;
}

static enum snd_flops_answer run_torch(int which, const struct snd_call *from,
                                       struct snd_work *work)
{
    struct snd_flops_call c;

    take_apart(&c, from);
    *work = (struct snd_work){ 0 };
    switch (which) {
    case 0:
        work->flops = torch_conv2d(&c);
        break;
    case 1:
        work->flops = torch_matmul(&c, 0, false);
        break;
    case 2:
        work->flops = torch_matmul(&c, 1, false);
        break;
    case 3:
        work->flops = torch_matmul(&c, 0, true);
        break;
    case 4:
        work->flops = torch_matmul(&c, 1, true);
        break;
    default:
        work->flops = snd_arg_tensor(&c, 0) ? snd_arg_numel(snd_arg_tensor(&c, 0)) : 0;
        break;
    }
    if (!isfinite(work->flops))
        work->flops = 0;
    return work->flops > 0 ? SND_FLOPS_FOUND : SND_FLOPS_UNKNOWN;
}

/* -1: not one of the seven. */
static int find_torch(struct sonde_text name)
{
    static const char *const names[] = { "aten::conv2d",  "aten::mm",  "aten::addmm", "aten::bmm",
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
    return f ? run_formula(f, name, call, work) : SND_FLOPS_NO_FORMULA;
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
    const struct sonde_trace *trace;
    enum sonde_flops_mode     mode;
    const struct formula    **by_name; /* of each name of the trace; NULL: none */
    int8_t                   *torch_by_name;
    struct latest            *latest;
    struct snd_map            known; /* (name, process; shapes, arguments) to answers */
    struct answer            *answers;
    uint32_t                  answer_count, answer_room;
    struct sonde_argument    *items;
};

/* By name, sorted once: a report makes several of these for its trace. */
static const struct formula *sorted[FORMULAS];
static pthread_once_t        is_sorted = PTHREAD_ONCE_INIT;

static int compare_entries(const void *x, const void *y)
{
    const struct formula *const *a = x, *const *b = y;

    return strcmp((*a)->name, (*b)->name);
}

static void sort_formulas(void)
{
    for (size_t i = 0; i < FORMULAS; i++)
        sorted[i] = &formulas[i];
    snd_sort(sorted, FORMULAS, sizeof *sorted, compare_entries);
}

static const struct formula *search(const char *bytes, size_t length)
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

/* Returns whether any name has a formula. */
static bool match_names(struct snd_flops *f)
{
    bool any = false;

    pthread_once(&is_sorted, sort_formulas);
    for (uint32_t i = 0; i < f->trace->names.count; i++) {
        struct snd_text name = f->trace->names.items[i];
        f->torch_by_name[i] = (int8_t)find_torch((struct sonde_text){ name.bytes, name.length });
        any |= f->torch_by_name[i] >= 0;
        if (name.length < 4 || !memchr(name.bytes, ':', name.length))
            continue;
        f->by_name[i] = search(name.bytes, name.length);
        if (!f->by_name[i] && name.bytes[name.length - 1] == '_')
            f->by_name[i] = search(name.bytes, name.length - 1);
        any |= f->by_name[i] != NULL;
    }
    return any;
}

enum sonde_status snd_flops_new(const struct sonde_trace *trace, enum sonde_flops_mode mode,
                                struct snd_flops **out, struct sonde_error *err)
{
    struct snd_flops *f = calloc(1, sizeof *f);
    size_t            names = (size_t)trace->names.count + 1;

    *out = NULL;
    if (f) {
        f->trace = trace;
        f->mode = mode;
        f->by_name = calloc(names, sizeof *f->by_name);
        f->torch_by_name = calloc(names, sizeof *f->torch_by_name);
        f->latest = calloc(names, sizeof *f->latest);
    }
    bool good = f && f->by_name && f->torch_by_name && f->latest;
    if (good && match_names(f))
        good = (f->items = malloc(ITEMS_MAX * sizeof *f->items)) != NULL;
    if (!good) {
        snd_flops_free(f);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the formulas of operators");
    }
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
    size_t          count = sonde_trace_arguments(f->trace, process, shapes, f->items, ITEMS_MAX);
    struct snd_call call = { f->items, count < ITEMS_MAX ? count : ITEMS_MAX, { "", 0 } };

    if (arguments != 0)
        call.arguments = sonde_trace_string(f->trace, process, arguments);
    if (f->mode == SONDE_FLOPS_TORCH)
        return run_torch(f->torch_by_name[name], &call, work);
    struct snd_text text = f->trace->names.items[name];
    return run_formula(f->by_name[name], (struct sonde_text){ text.bytes, text.length }, &call,
                       work);
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

bool snd_flops_from_child(struct snd_flops *f, uint32_t process, uint32_t name, uint32_t shapes,
                          uint32_t child_arguments, struct snd_work *work)
{
    struct snd_flops_call   c, child = { .count = 0 };
    struct snd_flops_result r = { 0 };
    size_t count = sonde_trace_arguments(f->trace, process, shapes, f->items, ITEMS_MAX);

    take_apart(&c,
               &(struct snd_call){ f->items, count < ITEMS_MAX ? count : ITEMS_MAX, { "", 0 } });
    split_arguments(&child, sonde_trace_string(f->trace, process, child_arguments));
    r.dtype = first_type(&c);
    if (!snd_packed_linear_from(&c, &child, f->by_name[name]->a, &r))
        return false;
    *work = (struct snd_work){ 2 * r.macs, r.macs, count_bytes(&c, f->by_name[name], false, &r) };
    return isfinite(work->flops) && isfinite(work->moved_bytes);
}

enum snd_flops_answer snd_flops_of_name(const struct snd_flops *f, uint32_t name)
{
    if (f->mode == SONDE_FLOPS_TORCH)
        return f->torch_by_name[name] >= 0 ? SND_FLOPS_UNKNOWN : SND_FLOPS_NO_FORMULA;
    if (!f->by_name[name])
        return SND_FLOPS_NO_FORMULA;
    return f->by_name[name]->work == snd_work_none ? SND_FLOPS_NO_WORK : SND_FLOPS_UNKNOWN;
}

bool snd_flops_asks_children(const struct snd_flops *f, uint32_t name)
{
    return f->mode == SONDE_FLOPS_FULL && f->by_name[name] &&
           f->by_name[name]->work == snd_work_packed_linear;
}

enum snd_flops_answer snd_flops_of(struct snd_flops *f, uint32_t process, uint32_t name,
                                   uint32_t shapes, uint32_t arguments, struct snd_work *work)
{
    struct latest *latest = &f->latest[name];
    struct answer  found = { .what = SND_FLOPS_UNKNOWN };

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
