/* SPDX-License-Identifier: Apache-2.0 */
/* The tree view: who called whom, indented; time, calls and share of each path. */
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "name", NULL, SND_TEXT, SND_FIT_CONTENT },
    { "depth", NULL, SND_COUNT, SND_FIT_FIXED },
    { "total_percent", "Total %", SND_SHARE, SND_FIT_FIXED },
    { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "waiting_ns", "Waiting", SND_TIME, SND_FIT_FIXED },
    { "device_ns", "GPU total", SND_TIME, SND_FIT_FIXED },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "cpu_memory_bytes", "CPU Mem", SND_BYTES, SND_FIT_FIXED },
    { "flops", "Total ", SND_FLOPS, SND_FIT_FIXED },
    { NULL, "Name", SND_TEXT, SND_FIT_CONTENT },
};
enum { COLUMN_WAITING = 5, COLUMN_DEVICE = 6, COLUMN_MEMORY = 8 };

/* Of all that the first level took: the root itself has no time of its own. */
static int64_t whole_ns(const struct sonde_tree *tree)
{
    const struct sonde_node *root = sonde_tree_node(tree, 0);
    int64_t                  sum = 0;

    for (uint32_t i = root->first_child; i != 0; i = sonde_tree_node(tree, i)->next_sibling)
        sum += sonde_tree_node(tree, i)->total_ns;
    return sum;
}

static void add_node(struct snd_doc *doc, const struct sonde_node *node, int64_t whole)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    unsigned         indent = node->depth > 0 ? node->depth - 1 : 0;

    /* Past some depth the indent says nothing more and costs memory. */
    indent = indent < 100 ? indent : 100;
    *cell++ = snd_cell_text(node->name);
    *cell++ = snd_cell_number(node->depth);
    *cell++ = snd_cell_share(node->total_ns, whole);
    *cell++ = snd_cell_number(node->total_ns);
    *cell++ = snd_cell_number(node->self_ns);
    *cell++ = snd_cell_number(node->waiting_ns);
    *cell++ = snd_cell_number(node->device_ns);
    *cell++ = snd_cell_number((int64_t)node->count);
    *cell++ = snd_cell_number(node->cpu_bytes);
    *cell++ = snd_cell_real(node->flops);
    *cell++ = snd_cell_text(snd_doc_indent(doc, 2 * (size_t)indent, node->name));
}

SND_DOC_RELEASE(free_tree, sonde_tree_free)

static const struct snd_column_title page_titles[] = {
    { "name", "Name" },
    { NULL, NULL },
};

SND_VIEW_BUILD(snd_view_tree)
{
    bool per_thread = (options->groups & SONDE_GROUP_THREAD) != 0;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->page_titles = page_titles;
    struct sonde_tree *tree = NULL;
    enum sonde_status  st = sonde_tree_new(trace, per_thread, &tree, err);
    snd_doc_keep(doc, tree, free_tree);
    if (st != SONDE_OK)
        return st;

    int64_t  whole = whole_ns(tree);
    bool     has_memory = false, has_waiting = false, has_device = false;
    uint32_t at = sonde_tree_node(tree, 0)->first_child;
    while (at != 0) {
        const struct sonde_node *node = sonde_tree_node(tree, at);
        add_node(doc, node, whole);
        has_memory |= node->cpu_bytes != 0;
        has_waiting |= node->waiting_ns != 0;
        has_device |= node->device_ns != 0;
        at = node->first_child;
        while (at == 0 && node->parent != 0) {
            at = node->next_sibling;
            if (at == 0)
                node = sonde_tree_node(tree, node->parent);
        }
        if (at == 0)
            at = node->next_sibling;
    }
    doc->rows.hidden[COLUMN_WAITING] = !has_waiting;
    if (!has_device)
        snd_table_leave_out(&doc->rows, COLUMN_DEVICE);
    doc->rows.hidden[COLUMN_MEMORY] = !has_memory;
    doc->empty = "The trace has no ranges.";
    snd_doc_total(doc, "total_ns", "Total", SND_TIME, snd_cell_number(whole));
    return SONDE_OK;
}
