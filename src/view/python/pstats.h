/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/python/pstats.h - functions in the order and the words of Python's pstats.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_PYTHON_PSTATS_H
#define SND_VIEW_PYTHON_PSTATS_H

#include "view/render/view.h"

/* What the text needs besides the document: the order, and what it was sorted by. */
struct snd_pstats {
    char     sorted_by[256]; /* "cumulative time"; empty: not sorted */
    size_t   count;
    uint32_t order[]; /* functions */
};

/* doc->data of the functions view. */
struct snd_functions_data {
    struct sonde_functions *functions;
    struct sonde_call_tree *tree; /* of --tree */
    struct snd_pstats      *sorted;
};

/*
 * Functions in the order of `keys`, pstats' sort keys with commas between them ("time,name").
 * Owns: the caller frees *out. Errors: SONDE_E_ARGUMENT, naming the keys; SONDE_E_NOMEM.
 */
enum sonde_status snd_pstats_sort(const struct sonde_functions *functions, const char *keys,
                                  struct snd_pstats **out, struct sonde_error *err);

/* The order of texts by their bytes, as of Python's str: below, at or above 0. */
int snd_pstats_compare(struct sonde_text x, struct sonde_text y);

/* "file:line(function)", "{built-in}": what pstats calls the standard name. */
void snd_pstats_name(const struct sonde_function *function, struct sonde_buffer *name);

/* The text of the document's functions, or of their callers, callees, tree, awaiting. */
void snd_pstats_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out);

#endif
