/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules view: what each module of a network cost, forward and backward; as a tree in the
 * order in which they ran, or, sorted, as a table.
 */
#include "view/network/modules_view.h"

#include <inttypes.h>

#include "read/file/scale.h"

static const struct snd_column columns[] = {
    { NULL, "Module", SND_TEXT, SND_FIT_CONTENT },
    { "path", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "class", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "depth", NULL, SND_COUNT, SND_FIT_FIXED },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "forward_ns", "Forward", SND_TIME, SND_FIT_FIXED },
    { "device_forward_ns", "On GPU", SND_TIME, SND_FIT_FIXED },
    { "backward_ns", "Backward", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "self_forward_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "self_backward_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "calls", NULL, SND_COUNT, SND_FIT_FIXED },
    { NULL, "# of Calls", SND_TEXT, SND_FIT_FIXED },
    { "idle_calls", "Without Ops", SND_COUNT, SND_FIT_FIXED },
    { "calls_inferred", NULL, SND_COUNT, SND_FIT_FIXED },
    { "macs", NULL, SND_REAL, SND_FIT_FIXED },
    { "backward_macs", NULL, SND_REAL, SND_FIT_FIXED },
    { "flops", "Fwd ", SND_FLOPS, SND_FIT_FIXED },
    { "backward_flops", "Bwd ", SND_FLOPS, SND_FIT_FIXED },
    { "self_flops", NULL, SND_REAL, SND_FIT_FIXED },
    { "flops_percent", NULL, SND_SHARE, SND_FIT_FIXED },
    { "gflops_per_second", "GFLOPS", SND_REAL, SND_FIT_FIXED },
    { NULL, "MACs", SND_TEXT, SND_FIT_FIXED },
    { NULL, "FLOPs", SND_TEXT, SND_FIT_FIXED },
    { NULL, "Bwd FLOPs", SND_TEXT, SND_FIT_FIXED },
    { "parameters", "Parameters", SND_COUNT, SND_FIT_FIXED },
    { "parameters_percent", NULL, SND_SHARE, SND_FIT_FIXED },
    { "parameter_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "activation_bytes", "Activations", SND_BYTES, SND_FIT_FIXED },
    { "cpu_memory_bytes", "CPU Mem", SND_BYTES, SND_FIT_FIXED },
    { "device_memory_bytes", "CUDA Mem", SND_BYTES, SND_FIT_FIXED },
    { "peak_bytes", "Peak Mem", SND_BYTES, SND_FIT_FIXED },
    { "output_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "input_shapes", "Input", SND_SHAPES, SND_FIT_SHAPES },
    { "output_shapes", "Output", SND_SHAPES, SND_FIT_SHAPES },
    { "gpu_forward_ns", "GPU Forward", SND_TIME, SND_FIT_FIXED },
    { "gpu_backward_ns", "GPU Backward", SND_TIME, SND_FIT_FIXED },
    { "activation_percent", NULL, SND_SHARE, SND_FIT_FIXED },
};
enum {
    COLUMN_ON_GPU = 6,
    COLUMN_BACKWARD = 7,
    COLUMN_IDLE = 13,
    COLUMN_FLOPS = 17,
    COLUMN_RATE = 21,
    COLUMN_WORK = 22,
    COLUMN_PARAMETERS = 25,
    COLUMN_ACTIVATIONS = 28,
    COLUMN_DEVICE = 30,
    COLUMN_PEAK = 31,
    COLUMN_SHAPES = 33,
    COLUMN_GPU = 35
};

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "Without Ops", "CUDA Mem",  "CPU Mem",    "Self",
                                     "GFLOPS",      "Input",     "# of Calls", "Peak Mem",
                                     "MACs",        "Bwd FLOPs", "Bwd ",       "Output",
                                     "Activations", "Backward",  "Parameters", "On GPU",
                                     "FLOPs",       "Fwd ",      NULL };

/* What all of the rows are shares of, and of how many passes they are the mean. */
struct whole {
    int64_t time_ns, parameters, activation_bytes;
    double  flops;
    int64_t passes; /* 1: sums */
    bool    is_sorted;
};

/* "  layer1 (Sequential)", by its whole path where the order is not the tree's. */
static struct snd_cell show_name(struct snd_doc *doc, const struct sonde_module *m, bool is_sorted)
{
    if (m->depth == 0)
        return snd_cell_string("(no module)");
    size_t            indent = is_sorted ? 0 : 2 * (size_t)(m->depth - 1);
    struct sonde_text name = is_sorted ? m->path : m->name;
    if (m->kind.length == 0)
        return snd_cell_text(snd_doc_indent(doc, indent, name));
    return snd_cell_string(
        snd_doc_format(doc, "%*s%s (%s)", (int)indent, "", name.bytes, m->kind.bytes));
}

static struct snd_cell show_mean(int64_t sum, const struct whole *whole)
{
    return snd_cell_number(sum / whole->passes);
}

static struct snd_cell show_work(double sum, const struct whole *whole)
{
    return snd_cell_real(sum / (double)whole->passes);
}

static struct snd_cell show_known(int64_t value, bool known)
{
    return known ? snd_cell_number(value) : snd_cell_none();
}

/* On a GPU the operators' own times are those of handing work over: no rate comes of them. */
static struct snd_cell show_rate(const struct sonde_module *m, double flops,
                                 const struct whole *whole)
{
    double one = flops / (double)whole->passes;
    double ns = m->on_device ? (double)m->device_forward_ns
                             : (double)m->forward_ns / (double)whole->passes;

    return one > 0 && ns > 0 ? snd_cell_real(one / ns) : snd_cell_none();
}

static struct snd_cell show_shapes(struct sonde_text shapes)
{
    return shapes.length ? snd_cell_text(shapes) : snd_cell_none();
}

/* "~8" if it is inferred from operators. */
static struct snd_cell show_calls(struct snd_doc *doc, const struct sonde_module *m,
                                  const struct whole *whole)
{
    return m->depth == 0
               ? snd_cell_none()
               : snd_cell_string(snd_doc_format(doc, "%s%" PRIu64, m->calls_inferred ? "~" : "",
                                                m->calls / (uint64_t)whole->passes));
}

static struct snd_cell show_count(struct snd_doc *doc, double sum, const struct whole *whole)
{
    return sum > 0 ? snd_cell_string(snd_doc_count(doc, sum / (double)whole->passes))
                   : snd_cell_string("--");
}

static struct snd_cell *add_costs(struct snd_doc *doc, struct snd_cell *cell,
                                  const struct sonde_module *m, const struct whole *whole)
{
    bool    none = m->depth == 0; /* of what belongs to no module, only its own */
    int64_t forward = none ? m->self_forward_ns : m->forward_ns;
    int64_t backward = none ? m->self_backward_ns : m->backward_ns;
    double  flops = none ? m->self_flops : m->flops;
    double  both = flops + (none ? 0 : m->backward_flops);

    *cell++ = snd_cell_share(forward + backward, whole->time_ns);
    *cell++ = show_mean(forward, whole);
    *cell++ = show_known(m->device_forward_ns, m->device_forward_ns >= 0);
    *cell++ = show_mean(backward, whole);
    *cell++ = show_mean(m->self_forward_ns + m->self_backward_ns, whole);
    *cell++ = show_mean(m->self_forward_ns, whole);
    *cell++ = show_mean(m->self_backward_ns, whole);
    *cell++ = show_known((int64_t)m->calls / whole->passes, !none);
    *cell++ = show_calls(doc, m, whole);
    *cell++ = show_known((int64_t)m->idle_calls / whole->passes, !none);
    *cell++ = show_known(m->calls_inferred, !none);
    *cell++ = none ? snd_cell_none() : show_work(m->macs, whole);
    *cell++ = none ? snd_cell_none() : show_work(m->backward_macs, whole);
    *cell++ = show_work(flops, whole);
    *cell++ = show_work(none ? 0 : m->backward_flops, whole);
    *cell++ = show_work(m->self_flops, whole);
    *cell++ = whole->flops > 0 ? snd_cell_real(both * 100 / whole->flops) : snd_cell_none();
    *cell++ = none ? snd_cell_none() : show_rate(m, flops, whole);
    *cell++ = show_count(doc, none ? 0 : m->macs, whole);
    *cell++ = show_count(doc, flops, whole);
    *cell++ = show_count(doc, both - flops, whole);
    return cell;
}

static void add_row(struct snd_doc *doc, const struct sonde_module *m, const struct whole *whole)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    bool             none = m->depth == 0, counted = m->parameters >= 0 && !none;

    *cell++ = show_name(doc, m, whole->is_sorted);
    *cell++ = none ? snd_cell_string("") : snd_cell_text(m->path);
    *cell++ = snd_cell_text(m->kind);
    *cell++ = snd_cell_number(m->depth);
    cell = add_costs(doc, cell, m, whole);
    *cell++ = show_known(m->parameters, counted);
    *cell++ = counted && whole->parameters > 0
                  ? snd_cell_real((double)m->parameters * 100 / (double)whole->parameters)
                  : snd_cell_none();
    *cell++ = show_known(m->parameter_bytes, counted);
    *cell++ = show_known(m->activation_bytes / whole->passes, !none);
    *cell++ = show_known(m->cpu_bytes / whole->passes, !none);
    *cell++ = show_known(m->device_bytes / whole->passes, !none);
    *cell++ = show_known(m->peak_bytes, !none);
    *cell++ = show_known(m->output_bytes, m->output_bytes >= 0);
    *cell++ = show_shapes(m->input_shapes);
    *cell++ = show_shapes(m->output_shapes);
    *cell++ = show_mean(none ? m->self_gpu_forward_ns : m->gpu_forward_ns, whole);
    *cell++ = show_mean(none ? m->self_gpu_backward_ns : m->gpu_backward_ns, whole);
    *cell++ = !none && whole->activation_bytes > 0
                  ? snd_cell_share(m->activation_bytes, whole->activation_bytes)
                  : snd_cell_none();
}

/* Of the modules without a parent: what memory does outside all of them is no share of it. */
static int64_t top_activation_bytes(const struct sonde_modules *modules)
{
    int64_t sum = 0;

    for (uint32_t at = sonde_modules_node(modules, 0)->first_child; at != 0;) {
        const struct sonde_module *m = sonde_modules_node(modules, at);
        sum = snd_add(sum, m->activation_bytes);
        at = m->next_sibling;
    }
    return sum;
}

static uint32_t next_node(const struct sonde_modules *modules, uint32_t at)
{
    const struct sonde_module *m = sonde_modules_node(modules, at);

    if (m->first_child != 0)
        return m->first_child;
    while (m->next_sibling == 0 && m->parent != 0)
        m = sonde_modules_node(modules, m->parent);
    return m->next_sibling;
}

/* Columns that would hold nothing are left out of text. */
struct seen {
    bool on_gpu, backward, idle, parameters, memory, device, peak, shapes, work, gpu;
};

static void note_seen(struct seen *seen, const struct sonde_module *m, bool is_benchmark)
{
    seen->on_gpu |= m->device_forward_ns >= 0;
    seen->backward |= m->backward_ns != 0;
    seen->idle |= m->idle_calls != 0;
    seen->parameters |= m->parameters >= 0;
    seen->memory |= m->cpu_bytes != 0 || m->activation_bytes != 0;
    seen->device |= m->device_bytes != 0;
    seen->peak |= m->peak_bytes != 0 && is_benchmark;
    seen->shapes |= m->output_shapes.length > 0;
    seen->work |= m->flops > 0 && is_benchmark;
    seen->gpu |= m->gpu_forward_ns != 0 || m->gpu_backward_ns != 0;
}

static void hide_columns(struct snd_table *rows, const struct seen *seen)
{
    rows->hidden[COLUMN_ON_GPU] = !seen->on_gpu;
    rows->hidden[COLUMN_BACKWARD] = !seen->backward;
    rows->hidden[COLUMN_IDLE] = !seen->idle;
    /* A benchmark's numbers are in units of their own: they reach from thousands to billions. */
    rows->hidden[COLUMN_FLOPS] = rows->hidden[COLUMN_FLOPS + 1] = seen->work;
    rows->hidden[COLUMN_RATE] = !seen->work;
    rows->hidden[COLUMN_WORK] = rows->hidden[COLUMN_WORK + 1] = !seen->work;
    rows->hidden[COLUMN_WORK + 2] = !seen->work || !seen->backward;
    rows->hidden[COLUMN_PARAMETERS] = !seen->parameters;
    rows->hidden[COLUMN_ACTIVATIONS] = !seen->memory;
    /* Of a benchmark the net sums say nothing that the activations do not. */
    rows->hidden[COLUMN_ACTIVATIONS + 1] = !seen->memory || seen->peak;
    rows->hidden[COLUMN_DEVICE] = !seen->device || seen->peak;
    rows->hidden[COLUMN_PEAK] = !seen->peak;
    rows->hidden[COLUMN_SHAPES] = rows->hidden[COLUMN_SHAPES + 1] = !seen->shapes;
    rows->hidden[COLUMN_GPU + 1] = !seen->backward;
    for (size_t i = COLUMN_GPU; i <= COLUMN_GPU + 1 && !seen->gpu; i++)
        snd_table_leave_out(rows, i);
}

SND_DOC_RELEASE(free_modules, sonde_modules_free)

enum sonde_status snd_modules_load(struct sonde_trace                *trace,
                                   const struct sonde_report_options *options, struct snd_doc *doc,
                                   struct sonde_modules **out, struct sonde_error *err)
{
    enum sonde_status st = sonde_modules_new(trace, options->flops, out, err);

    snd_doc_keep(doc, *out, free_modules);
    return st;
}

static const struct snd_column_title page_titles[] = {
    { "path", "Module" },
    { "class", "Class" },
    { NULL, NULL },
};

SND_VIEW_BUILD(snd_view_modules)
{
    struct sonde_modules *modules;
    struct seen           seen = { 0 };

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->page_titles = page_titles;
    doc->rows.spare = spare;
    enum sonde_status st = snd_modules_load(trace, options, doc, &modules, err);
    if (st != SONDE_OK)
        return st;
    const struct sonde_module *root = sonde_modules_node(modules, 0);
    uint64_t                   passes = sonde_modules_passes(modules);
    const struct whole         whole = {
                .time_ns = root->forward_ns + root->backward_ns,
                .parameters = root->parameters,
                .activation_bytes = top_activation_bytes(modules),
                .flops = root->flops + root->backward_flops,
                .passes = passes > 0 && passes < INT32_MAX ? (int64_t)passes : 1,
                .is_sorted = options->sort != NULL,
    };
    if (sonde_modules_count(modules) > 1) {
        for (uint32_t at = root->first_child; at != 0; at = next_node(modules, at)) {
            const struct sonde_module *m = sonde_modules_node(modules, at);
            add_row(doc, m, &whole);
            note_seen(&seen, m, passes > 0);
        }
        if (root->self_forward_ns + root->self_backward_ns > 0)
            add_row(doc, root, &whole);
    }
    hide_columns(&doc->rows, &seen);
    snd_doc_total(doc, "time_ns", "Total", SND_TIME, show_mean(whole.time_ns, &whole));
    snd_doc_total(doc, "parameters", NULL, SND_COUNT,
                  show_known(root->parameters, root->parameters >= 0));
    if (passes > 0)
        snd_doc_total(doc, "passes", "Mean of passes", SND_COUNT, snd_cell_number(whole.passes));
    return SONDE_OK;
}
