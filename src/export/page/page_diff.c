/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between two sides, on the report page: the views of sonde_diff(), and trees with the
 * numbers of both sides at each node. Equal paths are one node; several runs of a side are added up, and
 * the page divides by their steps, or by their number where there are no steps.
 */
#include <stdlib.h>

#include "export/common/exporter.h"
#include "export/page/page_trees.h"
#include "model/diff/diff.h"

enum side { A, B, SIDES };

struct both {
    uint32_t parent, first_child, last_child, next_sibling; /* 0 is the root, which is no node */
    uint32_t depth, name, place;
    enum snd_html_kind kind;
    uint64_t           total_ns[SIDES], self_ns[SIDES], count[SIDES];
};

struct merged {
    struct snd_html      *page;
    struct both          *nodes;
    uint32_t              count, room;
    struct snd_map        children; /* (parent, name) to a node */
    uint32_t             *path;     /* by depth, of the tree that is walked: its node */
    uint32_t              path_room;
    const struct snd_map *renamed; /* names of A to names of B */
    enum side             side;
    bool                  failed;
};

static uint64_t not_negative(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

/* The child of `parent` with this name, which it may get now; 0: memory is out. */
static uint32_t child_of(struct merged *m, uint32_t parent, uint32_t name,
                         const struct snd_html_node *node)
{
    struct snd_key key = { parent, name, 0 };
    uint32_t       at;

    if (snd_map_get(&m->children, key, &at))
        return at;
    if (!snd_grow(&m->nodes, &m->room, m->count, sizeof *m->nodes) ||
        !snd_map_put(&m->children, key, m->count))
        return 0;
    at = m->count++;
    m->nodes[at] = (struct both){ .parent = parent,
                                  .depth = node->depth,
                                  .name = name,
                                  .place = snd_html_place(m->page, node),
                                  .kind = node->kind };
    if (m->nodes[parent].last_child)
        m->nodes[m->nodes[parent].last_child].next_sibling = at;
    else
        m->nodes[parent].first_child = at;
    m->nodes[parent].last_child = at;
    return at;
}

static void add_node(void *user, const struct snd_html_node *node)
{
    struct merged *m = user;

    if (m->failed || !snd_grow(&m->path, &m->path_room, node->depth + 1, sizeof *m->path)) {
        m->failed = true;
        return;
    }
    uint32_t name = snd_html_text(m->page, node->name), now;
    if (m->side == A && snd_map_get(m->renamed, (struct snd_key){ name, 0, 0 }, &now))
        name = now;
    uint32_t at = child_of(m, node->depth ? m->path[node->depth - 1] : 0, name, node);
    m->path[node->depth] = at;
    m->failed |= at == 0;
    m->nodes[at].total_ns[m->side] += not_negative(node->total_ns);
    m->nodes[at].self_ns[m->side] += not_negative(node->self_ns);
    m->nodes[at].count[m->side] += node->count;
}

static uint32_t next_of(const struct merged *m, uint32_t at)
{
    uint32_t next = m->nodes[at].first_child;

    for (; next == 0 && at != 0; at = m->nodes[at].parent)
        next = m->nodes[at].next_sibling;
    return next;
}

static void write_merged(struct merged *m, struct snd_html_block *of_b, struct snd_html_block *of_a)
{
    for (uint32_t at = 0; (at = next_of(m, at)) != 0;) {
        const struct both *node = &m->nodes[at];
        snd_html_value(of_b, 0, node->depth);
        snd_html_value(of_b, 1, node->name);
        snd_html_value(of_b, 2, node->total_ns[B]);
        snd_html_value(of_b, 3, node->self_ns[B]);
        snd_html_value(of_b, 4, node->count[B]);
        snd_html_value(of_b, 5, node->place);
        snd_html_value(of_b, 6, node->kind);
        snd_html_value(of_a, 0, node->total_ns[A]);
        snd_html_value(of_a, 1, node->self_ns[A]);
        snd_html_value(of_a, 2, node->count[A]);
        snd_html_entry(m->page, of_b);
        snd_html_entry(m->page, of_a);
    }
    snd_html_flush(m->page, of_b);
    snd_html_flush(m->page, of_a);
}

/* What times are divided by, and what has another name now. */
struct unit {
    const char    *name;
    uint64_t       count[SIDES];
    struct snd_map renamed; /* numbers of texts */
};

static enum sonde_status put_tree(struct snd_html *page, const struct snd_html_tree *tree,
                                  const struct unit *unit, struct sonde_error *err)
{
    const struct snd_html_sides *sides = page->sides;
    struct merged                m = { .page = page, .renamed = &unit->renamed };
    struct snd_html_block        of_a, of_b;
    enum sonde_status            st = SONDE_OK;

    m.failed = !snd_grow(&m.nodes, &m.room, 0, sizeof *m.nodes);
    if (!m.failed)
        m.nodes[m.count++] = (struct both){ 0 };
    for (size_t i = 0; st == SONDE_OK && !m.failed && i < sides->a_runs + sides->b_runs; i++) {
        m.side = i < sides->a_runs ? A : B;
        st = tree->walk(sides->traces[i], add_node, &m, err);
    }
    m.failed |= !snd_html_block_init(&of_b, "NODE", 7);
    m.failed |= !snd_html_block_init(&of_a, "NODA", 3);
    if (st == SONDE_OK && !m.failed) {
        snd_buf_clear(&page->text);
        snd_buf_format(&page->text,
                       "{\"key\":\"diff-%s\",\"title\":\"%s: what changed\",\"count_title\":\"%s\","
                       "\"unit\":\"%s\",\"a_units\":%llu,\"b_units\":%llu}",
                       tree->key, tree->title, tree->count_title, unit->name,
                       (unsigned long long)unit->count[A], (unsigned long long)unit->count[B]);
        snd_html_json(page, "TREE", &page->text);
        write_merged(&m, &of_b, &of_a);
    }
    page->failed |= m.failed;
    snd_html_block_release(&of_a);
    snd_html_block_release(&of_b);
    snd_map_release(&m.children);
    free(m.nodes);
    free(m.path);
    return st;
}

/* The rows of `sonde diff --by`; what the sides have nothing of is left out. */
static void put_rows(struct snd_html *page, const char *by)
{
    struct sonde_diff_options   diff = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_sink           sink = sonde_sink_buffer(&page->text);
    struct sonde_error          err;
    size_t                      failed;

    diff.by = by;
    report.format = SONDE_REPORT_COLUMNS;
    report.rows = SND_HTML_ROWS;
    snd_buf_clear(&page->text);
    snd_buf_format(&page->text,
                   "{\"title\":\"What changed\",\"traits\":[\"blank\",\"elsewhere\"],"
                   "\"summary\":\"what changed from A to B, and whether that is noise\","
                   "\"group\":\"%s\",\"document\":",
                   by);
    if (sonde_diff(page->sides->traces, page->sides->a_runs, page->sides->b_runs, &diff, &report,
                   &sink, &failed, &err) == SONDE_OK) {
        snd_buf_text(&page->text, "}");
        snd_html_json(page, "VIEW", &page->text);
    }
    snd_buf_clear(&page->text);
}

static void note_renamed(struct snd_html *page, const struct snd_diff *diff,
                         struct snd_map *renamed)
{
    for (size_t i = 0; i < diff->count; i++) {
        const struct snd_diff_row *row = &diff->rows[i];
        if (row->match == SND_DIFF_RENAMED) {
            struct snd_key was = { snd_html_text(page, row->was), 0, 0 };
            page->failed |= !snd_map_put(renamed, was, snd_html_text(page, row->name));
        }
    }
}

/* As sonde_diff() has it: a step, where both sides have enough of them, else a run. */
static enum sonde_status find_unit(struct snd_html *page, struct unit *unit,
                                   struct sonde_error *err)
{
    const struct snd_html_sides *sides = page->sides;
    struct snd_diff             *diff;
    enum sonde_status            st = snd_diff_new(sides->traces, sides->a_runs, sides->b_runs,
                                                   &snd_diff_sources[0], 0, &diff, err);

    *unit = (struct unit){ "run", { sides->a_runs, sides->b_runs }, { 0 } };
    if (st == SONDE_E_STATE)
        return SONDE_OK; /* a side has no ranges: samples and functions are of a run */
    if (st != SONDE_OK)
        return st;
    if (diff->has_steps)
        *unit = (struct unit){ "step", { diff->a_steps, diff->b_steps }, { 0 } };
    note_renamed(page, diff, &unit->renamed);
    snd_diff_free(diff);
    return SONDE_OK;
}

enum sonde_status snd_html_diff(struct snd_html *page, struct sonde_error *err)
{
    struct unit       unit;
    const char       *by;
    enum sonde_status st = find_unit(page, &unit, err);

    for (size_t i = 0; st == SONDE_OK && !page->failed && i < snd_html_tree_count; i++)
        if ((snd_html_all_trees[i].needs & ~page->content) == 0 && !snd_html_all_trees[i].is_bytes)
            st = put_tree(page, &snd_html_all_trees[i], &unit, err);
    for (size_t i = 0; st == SONDE_OK && (by = sonde_diff_source(i)) != NULL; i++)
        put_rows(page, by);
    snd_map_release(&unit.renamed);
    return st;
}
