/* SPDX-License-Identifier: Apache-2.0 */
/* The trees that the report page draws as flame graphs: ranges, samples, modules, functions. */
#include <inttypes.h>

#include "export/page.h"

/* A node, each before its children. */
struct node {
    uint32_t          depth;
    struct sonde_text name, file;
    uint32_t          line;
    int64_t           total_ns, self_ns;
    uint64_t          count;
};

static uint64_t not_negative(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

static uint32_t place_of(struct snd_html *page, const struct node *node)
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

static void put_node(struct snd_html *page, struct snd_html_block *block, const struct node *node)
{
    snd_html_value(block, 0, node->depth);
    snd_html_value(block, 1, snd_html_text(page, node->name));
    snd_html_value(block, 2, not_negative(node->total_ns));
    snd_html_value(block, 3, not_negative(node->self_ns));
    snd_html_value(block, 4, node->count);
    snd_html_value(block, 5, place_of(page, node));
    snd_html_entry(page, block);
}

/* Begins a tree: the nodes that follow belong to it. */
static void begin_tree(struct snd_html *page, const char *key, const char *title,
                       const char *count_title)
{
    snd_buf_clear(&page->text);
    snd_buf_format(&page->text, "{\"key\":\"%s\",\"title\":\"%s\",\"count_title\":\"%s\"}", key,
                   title, count_title);
    snd_html_json(page, "TREE", &page->text);
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

static enum sonde_status put_ranges(struct snd_html *page, struct snd_html_block *block,
                                    struct sonde_error *err)
{
    struct sonde_tree *tree;
    enum sonde_status  st = sonde_tree_new(page->trace, false, &tree, err);

    if (st != SONDE_OK)
        return st;
    begin_tree(page, "ranges", "Ranges", "calls");
    for (uint32_t at = 0; (at = next_node(tree, at, range_links)) != 0;) {
        const struct sonde_node *node = sonde_tree_node(tree, at);
        put_node(page, block,
                 &(struct node){ node->depth - 1,
                                 node->name,
                                 { 0 },
                                 0,
                                 node->total_ns,
                                 node->self_ns,
                                 node->count });
    }
    snd_html_flush(page, block);
    sonde_tree_free(tree);
    return SONDE_OK;
}

static enum sonde_status put_samples(struct snd_html *page, struct snd_html_block *block,
                                     struct sonde_error *err)
{
    struct sonde_samples        *samples;
    struct sonde_samples_options options = { .by = SONDE_SAMPLES_MERGED };
    enum sonde_status            st = sonde_samples_new(page->trace, &options, &samples, err);

    if (st != SONDE_OK)
        return st;
    begin_tree(page, "samples", "Samples", "samples");
    for (size_t i = 0; i < sonde_samples_thread_count(samples); i++) {
        uint32_t root = sonde_samples_thread(samples, i)->root;
        for (uint32_t at = sonde_samples_next(samples, root, root); at != 0;
             at = sonde_samples_next(samples, at, root)) {
            const struct sonde_sample_node *node = sonde_samples_node(samples, at);
            put_node(page, block,
                     &(struct node){ node->depth - 1, node->function, node->file, node->line,
                                     node->time_ns, node->self_ns, node->samples });
        }
    }
    snd_html_flush(page, block);
    sonde_samples_free(samples);
    return SONDE_OK;
}

static struct links module_links(const void *modules, uint32_t at)
{
    const struct sonde_module *node = sonde_modules_node(modules, at);

    return (struct links){ node->first_child, node->next_sibling, node->parent };
}

static enum sonde_status put_modules(struct snd_html *page, struct snd_html_block *block,
                                     struct sonde_error *err)
{
    struct sonde_modules *modules;
    enum sonde_status     st = sonde_modules_new(page->trace, SONDE_FLOPS_NONE, &modules, err);

    if (st != SONDE_OK)
        return st;
    begin_tree(page, "modules", "Modules", "calls");
    for (uint32_t at = 0; (at = next_node(modules, at, module_links)) != 0;) {
        const struct sonde_module *node = sonde_modules_node(modules, at);
        put_node(page, block,
                 &(struct node){ node->depth - 1, node->name, node->kind, 0,
                                 node->forward_ns + node->backward_ns,
                                 node->self_forward_ns + node->self_backward_ns, node->calls });
    }
    snd_html_flush(page, block);
    sonde_modules_free(modules);
    return SONDE_OK;
}

static struct links call_links(const void *tree, uint32_t at)
{
    const struct sonde_call_node *node = sonde_call_tree_node(tree, at);

    return (struct links){ node->first_child, node->next_sibling, node->parent };
}

static enum sonde_status put_functions(struct snd_html *page, struct snd_html_block *block,
                                       struct sonde_error *err)
{
    struct sonde_functions *functions;
    struct sonde_call_tree *tree = NULL;
    enum sonde_status       st = sonde_functions_new(page->trace, &functions, err);

    if (st == SONDE_OK && sonde_functions_count(functions) > 0)
        st = sonde_call_tree_new(functions, &tree, err);
    if (tree) {
        begin_tree(page, "functions", "Python functions", "calls");
        for (uint32_t at = 0; (at = next_node(tree, at, call_links)) != 0;) {
            const struct sonde_call_node *node = sonde_call_tree_node(tree, at);
            const struct sonde_function  *function = sonde_functions_row(functions, node->function);
            put_node(page, block,
                     &(struct node){ node->depth - 1, function->name, function->file,
                                     function->line, node->total_ns, node->self_ns,
                                     (uint64_t)node->calls });
        }
        snd_html_flush(page, block);
        sonde_call_tree_free(tree);
    }
    if (st == SONDE_OK || tree)
        sonde_functions_free(functions);
    return st;
}

enum sonde_status snd_html_trees(struct snd_html *page, struct sonde_error *err)
{
    static const struct {
        unsigned needs; /* enum snd_content */
        enum sonde_status (*put)(struct snd_html *, struct snd_html_block *, struct sonde_error *);
    } trees[] = { { 0, put_ranges },
                  { SND_HAS_SAMPLES, put_samples },
                  { SND_HAS_MODULES, put_modules },
                  { SND_HAS_FUNCTIONS, put_functions } };
    struct snd_html_block block;
    enum sonde_status     st = SONDE_OK;

    if (!snd_html_block_init(&block, "NODE", 6))
        page->failed = true;
    for (size_t i = 0; st == SONDE_OK && !page->failed && i < sizeof trees / sizeof trees[0]; i++)
        if ((trees[i].needs & ~page->content) == 0)
            st = trees[i].put(page, &block, err);
    snd_html_block_release(&block);
    return st;
}
