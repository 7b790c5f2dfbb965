/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The modules view: what each module of a network cost, forward and backward; as a tree in the
 * order in which they ran, or, sorted, as a table.
 */
#include "view/view.h"

static const struct snd_column columns[] = {
    { "path", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "class", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "depth", NULL, SND_COUNT, SND_FIT_FIXED },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "forward_ns", "Forward", SND_TIME, SND_FIT_FIXED },
    { "backward_ns", "Backward", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "self_forward_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "self_backward_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "calls", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "flops", "Fwd ", SND_FLOPS, SND_FIT_FIXED },
    { "backward_flops", "Bwd ", SND_FLOPS, SND_FIT_FIXED },
    { "self_flops", NULL, SND_REAL, SND_FIT_FIXED },
    { "macs", NULL, SND_REAL, SND_FIT_FIXED },
    { "parameters", "Parameters", SND_COUNT, SND_FIT_FIXED },
    { "parameter_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "activation_bytes", "Activations", SND_BYTES, SND_FIT_FIXED },
    { "cpu_memory_bytes", "CPU Mem", SND_BYTES, SND_FIT_FIXED },
    { "device_memory_bytes", "CUDA Mem", SND_BYTES, SND_FIT_FIXED },
    { NULL, "Module", SND_TEXT, SND_FIT_CONTENT },
};
enum { COLUMN_BACKWARD = 5, COLUMN_PARAMETERS = 14, COLUMN_ACTIVATIONS = 16, COLUMN_DEVICE = 18 };

/* "  layer1 (Sequential)", by its whole path where the order is not the tree's. */
static struct snd_cell show_name(struct snd_doc *doc, const struct sonde_module *m, bool is_sorted)
{
    size_t            indent = is_sorted || m->depth == 0 ? 0 : 2 * (size_t)(m->depth - 1);
    struct sonde_text name = is_sorted || m->depth == 0 ? m->path : m->name;

    if (m->depth == 0)
        return snd_cell_string("(no module)");
    if (m->kind.length == 0)
        return snd_cell_text(snd_doc_indent(doc, indent, name));
    return snd_cell_string(
        snd_doc_format(doc, "%*s%s (%s)", (int)indent, "", name.bytes, m->kind.bytes));
}

static void add_row(struct snd_doc *doc, const struct sonde_module *m, int64_t whole_ns,
                    bool is_sorted)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    bool             none = m->depth == 0; /* of what belongs to no module, only its own */
    int64_t          forward = none ? m->self_forward_ns : m->forward_ns;
    int64_t          backward = none ? m->self_backward_ns : m->backward_ns;

    *cell++ = none ? snd_cell_string("") : snd_cell_text(m->path);
    *cell++ = snd_cell_text(m->kind);
    *cell++ = snd_cell_number(m->depth);
    *cell++ = snd_cell_share(forward + backward, whole_ns);
    *cell++ = snd_cell_number(forward);
    *cell++ = snd_cell_number(backward);
    *cell++ = snd_cell_number(m->self_forward_ns + m->self_backward_ns);
    *cell++ = snd_cell_number(m->self_forward_ns);
    *cell++ = snd_cell_number(m->self_backward_ns);
    *cell++ = none ? snd_cell_none() : snd_cell_number((int64_t)m->calls);
    *cell++ = snd_cell_real(none ? m->self_flops : m->flops);
    *cell++ = snd_cell_real(none ? 0 : m->backward_flops);
    *cell++ = snd_cell_real(m->self_flops);
    *cell++ = snd_cell_real(m->macs);
    *cell++ = m->parameters < 0 || none ? snd_cell_none() : snd_cell_number(m->parameters);
    *cell++ = m->parameters < 0 || none ? snd_cell_none() : snd_cell_number(m->parameter_bytes);
    *cell++ = none ? snd_cell_none() : snd_cell_number(m->activation_bytes);
    *cell++ = none ? snd_cell_none() : snd_cell_number(m->cpu_bytes);
    *cell++ = none ? snd_cell_none() : snd_cell_number(m->device_bytes);
    *cell++ = show_name(doc, m, is_sorted);
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

SND_VIEW_BUILD(snd_view_modules)
{
    bool backward = false, parameters = false, memory = false, device = false;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = sonde_modules_new(trace, options->flops, &doc->modules, err);
    if (st != SONDE_OK)
        return st;
    const struct sonde_module *root = sonde_modules_node(doc->modules, 0);
    int64_t                    whole = root->forward_ns + root->backward_ns;
    if (sonde_modules_count(doc->modules) > 1) {
        for (uint32_t at = root->first_child; at != 0; at = next_node(doc->modules, at)) {
            const struct sonde_module *m = sonde_modules_node(doc->modules, at);
            add_row(doc, m, whole, options->sort != NULL);
            backward |= m->backward_ns != 0;
            parameters |= m->parameters >= 0;
            memory |= m->cpu_bytes != 0 || m->activation_bytes != 0;
            device |= m->device_bytes != 0;
        }
        if (root->self_forward_ns + root->self_backward_ns > 0)
            add_row(doc, root, whole, options->sort != NULL);
    }
    doc->rows.hidden[COLUMN_BACKWARD] = !backward;
    doc->rows.hidden[COLUMN_PARAMETERS] = !parameters;
    doc->rows.hidden[COLUMN_ACTIVATIONS] = doc->rows.hidden[COLUMN_ACTIVATIONS + 1] = !memory;
    doc->rows.hidden[COLUMN_DEVICE] = !device;
    doc->empty = "The trace names no modules: record them with --modules.";
    snd_doc_total(doc, "time_ns", "Total", SND_TIME, snd_cell_number(whole));
    snd_doc_total(doc, "parameters", NULL, SND_COUNT,
                  root->parameters < 0 ? snd_cell_none() : snd_cell_number(root->parameters));
    return SONDE_OK;
}
