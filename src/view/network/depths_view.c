/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depths view: at each depth of the tree of modules, what each class of them cost; flops-profiler's
 * aggregated profile, with every class instead of the first few.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "read/file/scale.h"
#include "view/network/modules_view.h"

static const struct snd_column columns[] = {
    { "depth", "Depth", SND_COUNT, SND_FIT_FIXED },
    { "modules", "Modules", SND_COUNT, SND_FIT_FIXED },
    { "parameters", "Parameters", SND_COUNT, SND_FIT_FIXED },
    { "macs", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "MACs", SND_TEXT, SND_FIT_FIXED },
    { "flops", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "FLOPs", SND_TEXT, SND_FIT_FIXED },
    { "time_percent", "Time %", SND_SHARE, SND_FIT_FIXED },
    { "forward_ns", "Forward", SND_TIME, SND_FIT_FIXED },
    { "backward_ns", "Backward", SND_TIME, SND_FIT_FIXED },
    { "class", "Class", SND_TEXT, SND_FIT_CONTENT },
};
enum { COLUMN_BACKWARD = 9 };

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "MACs", "Modules", "Backward", "Parameters", "FLOPs", NULL };

struct kind { /* of one class at one depth */
    struct sonde_text name;
    uint32_t          depth;
    uint64_t          modules;
    int64_t           parameters, forward_ns, backward_ns;
    double            macs, flops;
};

static struct kind *find_kind(struct kind *kinds, size_t *count, const struct sonde_module *m)
{
    for (size_t i = 0; i < *count; i++)
        if (kinds[i].depth == m->depth && kinds[i].name.length == m->kind.length &&
            memcmp(kinds[i].name.bytes, m->kind.bytes, m->kind.length) == 0)
            return &kinds[i];
    kinds[*count] = (struct kind){ .name = m->kind, .depth = m->depth };
    return &kinds[(*count)++];
}

/* By depth, then the longest first. */
static int compare_kinds(const void *left, const void *right)
{
    const struct kind *x = left, *y = right;
    int64_t            a = snd_add(x->forward_ns, x->backward_ns);
    int64_t            b = snd_add(y->forward_ns, y->backward_ns);

    return SND_ORDER(SND_RISING(x->depth, y->depth), SND_FALLING(a, b));
}

static void add_row(struct snd_doc *doc, const struct kind *k, int64_t passes, int64_t whole_ns)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_number(k->depth);
    *cell++ = snd_cell_number((int64_t)k->modules);
    *cell++ = snd_cell_number(k->parameters);
    *cell++ = snd_cell_real(k->macs / (double)passes);
    *cell++ = snd_cell_string(snd_doc_count(doc, k->macs / (double)passes));
    *cell++ = snd_cell_real(k->flops / (double)passes);
    *cell++ = snd_cell_string(snd_doc_count(doc, k->flops / (double)passes));
    *cell++ = snd_cell_share(snd_add(k->forward_ns, k->backward_ns), whole_ns);
    *cell++ = snd_cell_number(k->forward_ns / passes);
    *cell++ = snd_cell_number(k->backward_ns / passes);
    *cell++ = k->name.length ? snd_cell_text(k->name) : snd_cell_string("(unknown)");
}

SND_VIEW_BUILD(snd_view_depths)
{
    struct sonde_modules *modules;
    size_t                count = 0;
    bool                  backward = false;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->rows.spare = spare;
    enum sonde_status st = snd_modules_load(trace, options, doc, &modules, err);
    if (st != SONDE_OK)
        return st;
    size_t       all = sonde_modules_count(modules);
    struct kind *kinds = calloc(all + 1, sizeof *kinds);
    if (!kinds) {
        doc->rows.failed = true;
        return SONDE_OK;
    }
    for (size_t i = 1; i < all; i++) {
        const struct sonde_module *m = sonde_modules_node(modules, i);
        struct kind               *k = find_kind(kinds, &count, m);
        k->modules++;
        k->parameters = snd_add(k->parameters, m->parameters < 0 ? 0 : m->parameters);
        k->forward_ns = snd_add(k->forward_ns, m->forward_ns);
        k->backward_ns = snd_add(k->backward_ns, m->backward_ns);
        k->macs += m->macs;
        k->flops += m->flops;
        backward |= m->backward_ns > 0;
    }
    snd_sort(kinds, count, sizeof *kinds, compare_kinds);
    const struct sonde_module *root = sonde_modules_node(modules, 0);
    uint64_t                   passes = sonde_modules_passes(modules);
    for (size_t i = 0; i < count; i++)
        add_row(doc, &kinds[i], passes > 0 && passes < INT32_MAX ? (int64_t)passes : 1,
                snd_add(root->forward_ns, root->backward_ns));
    free(kinds);
    doc->rows.hidden[COLUMN_BACKWARD] = !backward;
    return SONDE_OK;
}
