/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions view: one row per Python function; or one row per pair of caller and callee; or the
 * call tree. As text it is pstats' (pstats_text.c). Without counted calls it is made of samples.
 */
#include <stdlib.h>

#include "view/python/pstats.h"
#include "view/samples/sampled_functions.h"

static const struct snd_column function_columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "calls", "Calls", SND_COUNT, SND_FIT_FIXED },
    { "primitive_calls", "Primitive", SND_COUNT, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "resumptions", "Resumed", SND_COUNT, SND_FIT_FIXED },
    { "awaiting_ns", "Awaiting", SND_TIME, SND_FIT_FIXED },
};

static const struct snd_column call_columns[] = {
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "caller_file", "Caller's File", SND_TEXT, SND_FIT_CONTENT },
    { "caller_line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "caller_function", "Caller", SND_TEXT, SND_FIT_CONTENT },
    { "calls", "Calls", SND_COUNT, SND_FIT_FIXED },
    { "primitive_calls", "Primitive", SND_COUNT, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
};

static const struct snd_column tree_columns[] = {
    { "depth", "Depth", SND_COUNT, SND_FIT_FIXED },
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "calls", "Calls", SND_REAL, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
};

static struct snd_cell *put_place(struct snd_cell *cell, const struct sonde_function *f)
{
    *cell++ = f ? snd_cell_text(f->file) : snd_cell_none();
    *cell++ = f ? snd_cell_number(f->line) : snd_cell_none();
    *cell++ = f ? snd_cell_text(f->name) : snd_cell_none();
    return cell;
}

static struct snd_functions_data *data_of(const struct snd_doc *doc)
{
    return doc->data;
}

static void add_functions(struct snd_doc *doc, const struct snd_pstats *sorted)
{
    for (size_t i = 0; i < sorted->count; i++) {
        const struct sonde_function *f = sonde_functions_row(data_of(doc)->functions,
                                                             sorted->order[i]);
        struct snd_cell             *cell = put_place(snd_table_add(&doc->rows), f);
        *cell++ = snd_cell_number((int64_t)f->calls);
        *cell++ = snd_cell_number((int64_t)f->primitive_calls);
        *cell++ = snd_cell_number(f->self_ns);
        *cell++ = snd_cell_number(f->total_ns);
        *cell++ = snd_cell_number((int64_t)f->resumptions);
        *cell++ = snd_cell_number(f->awaiting_ns);
    }
}

static void add_call(struct snd_doc *doc, const struct sonde_call *call)
{
    const struct sonde_function *callee = sonde_functions_row(data_of(doc)->functions,
                                                              call->callee);
    const struct sonde_function *caller =
        call->caller == SONDE_NONE ? NULL
                                   : sonde_functions_row(data_of(doc)->functions, call->caller);
    struct snd_cell *cell = put_place(snd_table_add(&doc->rows), callee);

    cell = put_place(cell, caller);
    *cell++ = snd_cell_number((int64_t)call->calls);
    *cell++ = snd_cell_number((int64_t)call->primitive_calls);
    *cell++ = snd_cell_number(call->self_ns);
    *cell++ = snd_cell_number(call->total_ns);
}

static void add_calls(struct snd_doc *doc, const struct snd_pstats *sorted, bool callers)
{
    for (size_t i = 0; i < sorted->count; i++) {
        const struct sonde_function *f = sonde_functions_row(data_of(doc)->functions,
                                                             sorted->order[i]);
        for (uint32_t k = 0; callers && k < f->caller_count; k++)
            add_call(doc, sonde_functions_caller(data_of(doc)->functions, f->first_caller + k));
        for (uint32_t k = 0; !callers && k < f->callee_count; k++)
            add_call(doc, sonde_functions_callee(data_of(doc)->functions, f->first_callee + k));
    }
}

static enum sonde_status add_tree(struct snd_doc *doc, struct sonde_error *err)
{
    enum sonde_status st = sonde_call_tree_new(data_of(doc)->functions, &data_of(doc)->tree, err);

    for (size_t i = 1; st == SONDE_OK && i < sonde_call_tree_count(data_of(doc)->tree); i++) {
        const struct sonde_call_node *node = sonde_call_tree_node(data_of(doc)->tree, i);
        struct snd_cell              *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_number((int64_t)node->depth - 1);
        cell = put_place(cell, sonde_functions_row(data_of(doc)->functions, node->function));
        *cell++ = snd_cell_real(node->calls);
        *cell++ = snd_cell_number(node->self_ns);
        *cell++ = snd_cell_number(node->total_ns);
    }
    return st;
}

static void add_totals(struct snd_doc *doc)
{
    int64_t calls = 0, primitive = 0, self_ns = 0;

    for (size_t i = 0; i < sonde_functions_count(data_of(doc)->functions); i++) {
        const struct sonde_function *f = sonde_functions_row(data_of(doc)->functions, i);
        calls = (int64_t)((uint64_t)calls + f->calls);
        primitive = (int64_t)((uint64_t)primitive + f->primitive_calls);
        self_ns = (int64_t)((uint64_t)self_ns + (uint64_t)f->self_ns);
    }
    snd_doc_total(doc, "calls", NULL, SND_COUNT, snd_cell_number(calls));
    snd_doc_total(doc, "primitive_calls", NULL, SND_COUNT, snd_cell_number(primitive));
    snd_doc_total(doc, "self_ns", NULL, SND_TIME, snd_cell_number(self_ns));
}

/* Leaves the functions that were resumed or awaited: those of --awaiting. */
static void keep_awaiting(const struct sonde_functions *functions, struct snd_pstats *sorted)
{
    size_t kept = 0;

    for (size_t i = 0; i < sorted->count; i++) {
        const struct sonde_function *f = sonde_functions_row(functions, sorted->order[i]);
        if (f->resumptions > 0 || f->awaiting_ns > 0)
            sorted->order[kept++] = sorted->order[i];
    }
    sorted->count = kept;
}

static void free_data(void *object)
{
    struct snd_functions_data *data = object;

    free(data->sorted);
    sonde_call_tree_free(data->tree);
    sonde_functions_free(data->functions);
    free(data);
}

SND_VIEW_BUILD(snd_view_functions)
{
    bool is_calls = options->part == SONDE_PART_CALLERS || options->part == SONDE_PART_CALLEES;

    if (is_calls)
        snd_table_init(&doc->rows, call_columns, SND_COUNT_OF(call_columns));
    else if (options->part == SONDE_PART_TREE)
        snd_table_init(&doc->rows, tree_columns, SND_COUNT_OF(tree_columns));
    else
        snd_table_init(&doc->rows, function_columns, SND_COUNT_OF(function_columns));
    struct snd_functions_data *data = calloc(1, sizeof *data);
    if (!data)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    doc->data = data;
    snd_doc_keep(doc, data, free_data);
    enum sonde_status st = sonde_functions_new(trace, &data->functions, err);
    bool              sampled = false;
    if (st == SONDE_OK && (sonde_functions_count(data->functions) == 0 || options->gil))
        st = snd_sampled_functions(trace, options, doc, &sampled, err);
    if (sampled && options->part == SONDE_PART_MAIN)
        return st;
    if (sampled)
        doc->empty = "The trace has samples and no counted calls: --view samples shows who called "
                     "whom.";
    if (st == SONDE_OK)
        st = snd_pstats_sort(data->functions, options->sort ? options->sort : "cumulative",
                             &data->sorted, err);
    if (st != SONDE_OK)
        return st;
    if (options->part == SONDE_PART_AWAITING) {
        keep_awaiting(data->functions, data->sorted);
        doc->empty = "No generator or coroutine was resumed.";
    }
    const struct snd_pstats *sorted = data->sorted;
    doc->text = sorted->count > 0 ? snd_pstats_text : NULL;
    if (options->part == SONDE_PART_TREE)
        st = add_tree(doc, err);
    else if (is_calls)
        add_calls(doc, sorted, options->part == SONDE_PART_CALLERS);
    else
        add_functions(doc, sorted);
    add_totals(doc);
    return st;
}
