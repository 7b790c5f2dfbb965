/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/doc.h - what a view hands to the renderers: rows, totals, sections.
 *
 * Layer: view. Threads: a document belongs to one thread.
 */
#ifndef SND_VIEW_DOC_H
#define SND_VIEW_DOC_H

#include "base/sink.h"
#include "sonde/export.h"
#include "sonde/layers.h"
#include "sonde/bench.h"
#include "sonde/graph.h"
#include "sonde/model.h"
#include "sonde/tensorlines.h"
#include "view/table.h"

#define SND_TOTALS_MAX 32

/* One number about the whole; a line "title: value" of text, a member of JSON's totals. */
struct snd_total {
    const char     *key, *title; /* title NULL: not in text */
    enum snd_kind   kind;
    struct snd_cell cell;
};

struct snd_doc {
    const char               *view;
    const struct sonde_trace *trace; /* of a view: always there */
    struct snd_table          rows;
    struct snd_total          totals[SND_TOTALS_MAX];
    size_t                    total_count;
    bool                      totals_first; /* above the table, in text */

    struct snd_table section;     /* a second table: in text before the rows, in JSON in totals */
    const char      *section_key; /* NULL: none */
    const char      *section_title, *rows_title; /* over the tables, or NULL */

    const char *empty;      /* said in text when there are no rows; NULL: nothing at all is said */
    bool        unsaid_cut; /* text does not say that rows were left out: torch does not */

    /* Writes what stands above the tables in text; NULL: nothing. */
    void (*head)(const struct snd_doc *doc, const struct sonde_report_options *options,
                 struct snd_out *out);
    /* Where text is another tool's, to the letter: writes it in place of the tables. */
    void (*text)(const struct snd_doc *doc, const struct sonde_report_options *options,
                 struct snd_out *out);
    void *text_data; /* of `text`: freed with the document by free() */

    /* What the cells borrow from, freed with the document. */
    struct sonde_averages         *averages;
    struct sonde_tree             *tree;
    struct sonde_memory           *memory;
    struct sonde_modules          *modules;
    struct sonde_bench            *bench;
    struct sonde_graph            *graph;
    struct sonde_tensor_lines     *tensor_lines;
    struct sonde_layers           *layers;
    struct sonde_functions        *functions;
    struct sonde_call_tree        *call_tree;
    struct sonde_lines            *lines;
    struct sonde_samples          *samples;       /* by thread */
    struct sonde_samples          *shown_samples; /* merged as text shows them, or NULL */
    struct sonde_sample_functions *sample_functions;
    struct sonde_summary          *summary;     /* begun; finished by snd_doc_summary() */
    bool                           has_summary; /* it is finished */
    struct snd_doc_text           *texts;
};

void snd_doc_release(struct snd_doc *doc);

/*
 * The totals, threads, steps and ledger of the trace in doc->summary, for views that show them and
 * for the ledger's note: asked for after the view's own models are made, they take no walk.
 */
SND_CHECKED enum sonde_status snd_doc_summary(struct snd_doc *doc, struct sonde_error *err);
void snd_doc_total(struct snd_doc *doc, const char *key, const char *title, enum snd_kind kind,
                   struct snd_cell cell);

/* Formatted text that lives as long as the document; "" when memory ran out. */
const char *snd_doc_format(struct snd_doc *doc, const char *format, ...) SONDE_PRINTF(2, 3);

/* "4.089 G", living as long. */
const char *snd_doc_count(struct snd_doc *doc, double value);

/* `text` after `indent` blanks, living as long. */
struct sonde_text snd_doc_indent(struct snd_doc *doc, size_t indent, struct sonde_text text);

#endif
