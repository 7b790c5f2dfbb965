/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/page/page_trees.h - the trees of a trace that the report page draws as flame graphs.
 *
 * page_trees.c walks and writes them; page_heap.c has those of heaps; page_diff.c merges those of two sides.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_PAGE_PAGE_TREES_H
#define SND_EXPORT_PAGE_PAGE_TREES_H

#include "export/page/page.h"

/* A node, each before its children. Texts are borrowed for the call. */
struct snd_html_node {
    uint32_t           depth; /* from 0 */
    struct sonde_text  name, file;
    uint32_t           line;
    int64_t            total_ns, self_ns;
    uint64_t           count;
    enum snd_html_kind kind; /* SND_HTML_RANGE: the page knows more by its name */
};
typedef void snd_html_node_fn(void *user, const struct snd_html_node *node);

struct snd_html_tree {
    const char *key, *title, *count_title;
    unsigned    needs;    /* enum snd_content */
    bool        is_bytes; /* numbers are bytes, not ns: of one trace alone, not compared */
    /* Calls `each` for every node. */
    enum sonde_status (*walk)(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                              struct sonde_error *err);
};
extern const struct snd_html_tree snd_html_all_trees[];
extern const size_t               snd_html_tree_count;

/* Of heaps (page_heap.c), in bytes and blocks; the last has all functions, which moments name by number. */
#define SND_HTML_HEAP_ALL "heap-all"
enum sonde_status snd_html_heap_peak(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                     struct sonde_error *err);
enum sonde_status snd_html_heap_left(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                     struct sonde_error *err);
enum sonde_status snd_html_heap_all(struct sonde_trace *trace, snd_html_node_fn *each, void *user,
                                    struct sonde_error *err);

/* The number of the text "FILE:LINE" of a node; 0: it has no file. */
uint32_t snd_html_place(struct snd_html *page, const struct snd_html_node *node);

#endif
