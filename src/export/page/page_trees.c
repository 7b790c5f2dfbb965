/* SPDX-License-Identifier: Apache-2.0 */
/* The trees that the report page draws as flame graphs: ranges, samples, modules, functions. */
#include <inttypes.h>

#include "export/page/page_trees.h"

#include "base/count_of.h"

static uint64_t not_negative(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

uint32_t snd_html_place(struct snd_html *page, const struct snd_html_node *node)
{
    if (node->file.length == 0)
        return 0;
    snd_buf_clear(&page->text);
    snd_buf_put(&page->text, node->file.bytes, node->file.length);
    if (node->line > 0)
        snd_buf_format(&page->text, ":%" PRIu32, node->line);
    page->failed |= page->text.failed;
    return snd_html_text(page, (struct sonde_text){ page->text.bytes, page->text.length });
}

/* How the node `at` of a tree is linked; node 0 is the root, which is not shown. */
struct links {
    uint32_t first_child, next_sibling, parent;
};
typedef struct links links_fn(const void *tree, uint32_t at);

/* The node after `at`, each before its children; 0: it was the last. */
static uint32_t next_node(const void *tree, uint32_t at, links_fn *links)
{
    uint32_t next = links(tree, at).first_child;

    for (uint32_t up = at; next == 0 && up != 0; up = links(tree, up).parent)
        next = links(tree, up).next_sibling;
    return next;
}

/* ---------------------------------------------------------------------- each */

static struct links range_links(const void *tree, uint32_t at)
{
    const struct sonde_node *node = sonde_tree_node(tree, at);

    return (struct links){ node->first_child, node->next_sibling, node->parent };
}

static enum sonde_status walk_ranges(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                     struct sonde_error *err)
{
    struct sonde_tree *tree;
    enum sonde_status  st = sonde_tree_new(trace, false, &tree, err);

    if (st != SONDE_OK)
        return st;
    for (uint32_t at = 0; (at = next_node(tree, at, range_links)) != 0;) {
        const struct sonde_node *node = sonde_tree_node(tree, at);
        each(user, &(struct snd_html_node){ .depth = node->depth - 1,
                                            .name = node->name,
                                            .total_ns = node->total_ns,
                                            .self_ns = node->self_ns,
                                            .count = node->count });
    }
    sonde_tree_free(tree);
    return SONDE_OK;
}

static enum sonde_status walk_samples(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                      struct sonde_error *err)
{
    struct sonde_samples        *samples;
    struct sonde_samples_options options = { .struct_size = sizeof options,
                                             .by = SONDE_SAMPLES_MERGED };
    enum sonde_status            st = sonde_samples_new(trace, &options, &samples, err);

    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < sonde_samples_thread_count(samples); i++) {
        uint32_t root = sonde_samples_thread(samples, i)->root;
        for (uint32_t at = sonde_samples_next(samples, root, root); at != 0;
             at = sonde_samples_next(samples, at, root)) {
            const struct sonde_sample_node *node = sonde_samples_node(samples, at);
            each(user,
                 &(struct snd_html_node){ node->depth - 1, node->function, node->file, node->line,
                                          node->time_ns, node->self_ns, node->samples,
                                          node->is_range    ? SND_HTML_RANGE
                                          : node->is_native ? SND_HTML_NATIVE
                                                            : SND_HTML_PYTHON });
        }
    }
    sonde_samples_free(samples);
    return SONDE_OK;
}

static struct links module_links(const void *modules, uint32_t at)
{
    const struct sonde_module *node = sonde_modules_node(modules, at);

    return (struct links){ node->first_child, node->next_sibling, node->parent };
}

static enum sonde_status walk_modules(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                      struct sonde_error *err)
{
    struct sonde_modules *modules;
    enum sonde_status     st = sonde_modules_new(trace, SONDE_FLOPS_NONE, &modules, err);

    if (st != SONDE_OK)
        return st;
    for (uint32_t at = 0; (at = next_node(modules, at, module_links)) != 0;) {
        const struct sonde_module *node = sonde_modules_node(modules, at);
        each(user, &(struct snd_html_node){ node->depth - 1, node->name, node->kind, 0,
                                            node->forward_ns + node->backward_ns,
                                            node->self_forward_ns + node->self_backward_ns,
                                            node->calls, SND_HTML_OF_MODULE });
    }
    sonde_modules_free(modules);
    return SONDE_OK;
}

static struct links call_links(const void *tree, uint32_t at)
{
    const struct sonde_call_node *node = sonde_call_tree_node(tree, at);

    return (struct links){ node->first_child, node->next_sibling, node->parent };
}

/* A damaged trace can claim more calls than fit. */
static uint64_t whole_calls(double calls)
{
    return calls < 0x1p64 ? (uint64_t)calls : UINT64_MAX;
}

static enum sonde_status walk_functions(struct sonde_trace *trace, snd_html_node_fn *each,
                                        void *user, struct sonde_error *err)
{
    struct sonde_functions *functions;
    struct sonde_call_tree *tree = NULL;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    if (st != SONDE_OK)
        return st;
    if (sonde_functions_count(functions) > 0)
        st = sonde_call_tree_new(functions, &tree, err);
    for (uint32_t at = 0; tree && (at = next_node(tree, at, call_links)) != 0;) {
        const struct sonde_call_node *node = sonde_call_tree_node(tree, at);
        const struct sonde_function  *function = sonde_functions_row(functions, node->function);
        each(user, &(struct snd_html_node){ node->depth - 1, function->name, function->file,
                                            function->line, node->total_ns, node->self_ns,
                                            whole_calls(node->calls), SND_HTML_PYTHON });
    }
    sonde_call_tree_free(tree);
    sonde_functions_free(functions);
    return st;
}

const struct snd_html_tree snd_html_all_trees[] = {
    { "ranges", "Ranges", "calls", 0, false, walk_ranges },
    { "samples", "Samples", "samples", SND_HAS_SAMPLES, false, walk_samples },
    { "modules", "Modules", "calls", SND_HAS_MODULES, false, walk_modules },
    { "functions", "Python functions", "calls", SND_HAS_FUNCTIONS, false, walk_functions },
    { "heap-peak", "Heap: held at the peak", "blocks", SND_HAS_HEAP, true, snd_html_heap_peak },
    { "heap-left", "Heap: not freed at the end", "blocks", SND_HAS_HEAP, true, snd_html_heap_left },
    { SND_HTML_HEAP_ALL, "Heap: allocated in all", "allocations", SND_HAS_HEAP, true,
      snd_html_heap_all },
};
const size_t snd_html_tree_count = SND_COUNT_OF(snd_html_all_trees);

/* --------------------------------------------------------------------- write */

struct writer {
    struct snd_html      *page;
    struct snd_html_block block;
};

static void put_node(void *user, const struct snd_html_node *node)
{
    struct writer         *w = user;
    struct snd_html_block *block = &w->block;

    snd_html_value(block, 0, node->depth);
    snd_html_value(block, 1, snd_html_text(w->page, node->name));
    snd_html_value(block, 2, not_negative(node->total_ns));
    snd_html_value(block, 3, not_negative(node->self_ns));
    snd_html_value(block, 4, node->count);
    snd_html_value(block, 5, snd_html_place(w->page, node));
    snd_html_value(block, 6, node->kind);
    snd_html_entry(w->page, block);
}

enum sonde_status snd_html_trees(struct snd_html *page, struct sonde_error *err)
{
    struct writer     w = { .page = page };
    enum sonde_status st = SONDE_OK;

    if (!snd_html_block_init(&w.block, "NODE", 7))
        page->failed = true;
    for (size_t i = 0; st == SONDE_OK && !page->failed && i < snd_html_tree_count; i++) {
        const struct snd_html_tree *tree = &snd_html_all_trees[i];
        if (tree->needs & ~page->content)
            continue;
        snd_buf_clear(&page->text);
        snd_buf_format(&page->text, "{\"key\":\"%s\",\"title\":\"%s\",\"count_title\":\"%s\"%s}",
                       tree->key, tree->title, tree->count_title,
                       tree->is_bytes ? ",\"measure\":\"bytes\"" : "");
        snd_html_json(page, "TREE", &page->text);
        st = tree->walk(page->trace, put_node, &w, err);
        snd_html_flush(page, &w.block);
    }
    snd_html_block_release(&w.block);
    return st;
}
