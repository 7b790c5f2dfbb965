/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/doc.h - what a view hands to the renderers: rows, totals, sections.
 *
 * Layer: view. Threads: a document belongs to one thread.
 */
#ifndef SND_VIEW_RENDER_DOC_H
#define SND_VIEW_RENDER_DOC_H

#include "base/files/sink.h"
#include "sonde/export.h"
#include "sonde/model.h"
#include "view/render/table.h"

#define SND_TOTALS_MAX 32
#define SND_KEPT_MAX 8
#define SND_SECTIONS_MAX 4

/* One number about the whole; a line "title: value" of text, a member of JSON's totals. */
struct snd_total {
    const char     *key, *title; /* title NULL: not in text */
    enum snd_kind   kind;
    struct snd_cell cell;
};

/* A table beside the rows: in text before them, if it has any rows; in JSON in totals. */
struct snd_section {
    struct snd_table table;
    const char      *key, *title; /* title: over the table in text, or NULL */
    /* Writes it in text, under its title, in place of the table; NULL: the table. */
    void (*text)(const struct snd_table *table, const struct sonde_report_options *options,
                 struct snd_out *out);
};

/* What the report page has above a column of rows whose text is laid out by hand. */
struct snd_column_title {
    const char *key, *title;
};

struct snd_doc {
    const char               *view;
    const struct sonde_trace *trace; /* of a view: always there */
    struct snd_table          rows;
    bool             failed; /* there was no memory for a text; the tables have their own */
    struct snd_total totals[SND_TOTALS_MAX];
    size_t           total_count;
    bool             totals_first; /* above the table, in text */

    struct snd_section sections[SND_SECTIONS_MAX]; /* snd_doc_section() */
    size_t             section_count;
    const char        *rows_title; /* over the table of the rows, or NULL */
    const struct snd_column_title
        *page_titles; /* where the page's are not those of text; static, ends with NULL */

    const char *empty;      /* text shown when there are no rows; NULL: nothing */
    bool        unsaid_cut; /* text does not say that rows were left out: torch does not */

    /* Writes what stands above the tables in text; NULL: nothing. */
    void (*head)(const struct snd_doc *doc, const struct sonde_report_options *options,
                 struct snd_out *out);
    /* Where text is another tool's, to the letter: writes it in place of the tables. */
    void (*text)(const struct snd_doc *doc, const struct sonde_report_options *options,
                 struct snd_out *out);
    void *data; /* the view's own, for its `head` and `text` */

    /* What the view has made and the cells borrow from: snd_doc_keep(). */
    struct {
        void *object;
        void (*release)(void *object);
    } kept[SND_KEPT_MAX];
    size_t kept_count;

    struct sonde_summary *summary;     /* begun; finished by snd_doc_summary() */
    bool                  has_summary; /* it is finished */
    struct snd_doc_text  *texts;
};

void snd_doc_release(struct snd_doc *doc);

/* Hands a model over, to be released with the document; the last one first. NULL is nothing. */
void snd_doc_keep(struct snd_doc *doc, void *object, void (*release)(void *object));
/* Defines such a function: SND_DOC_RELEASE(free_tree, sonde_tree_free) */
#define SND_DOC_RELEASE(name, free_function) \
    static void name(void *object)           \
    {                                        \
        free_function(object);               \
    }

/*
 * The totals, threads, steps and ledger of the trace in doc->summary, for views that show them and
 * for the ledger's note: asked for after the view's own models are made, they take no walk.
 */
SND_CHECKED enum sonde_status snd_doc_summary(struct snd_doc *doc, struct sonde_error *err);
void snd_doc_total(struct snd_doc *doc, const char *key, const char *title, enum snd_kind kind,
                   struct snd_cell cell);

/* A new section's table, empty. */
struct snd_table *snd_doc_section(struct snd_doc *doc, const char *key, const char *title,
                                  const struct snd_column *columns, size_t column_count);

/* Whether memory ran out for a text or a table of it: then it is not to be shown. */
bool snd_doc_has_failed(const struct snd_doc *doc);

/* Formatted text that lives as long as the document; "" when memory ran out. */
const char *snd_doc_format(struct snd_doc *doc, const char *format, ...) SONDE_PRINTF(2, 3);

/* The text of a buffer, living as long; releases the buffer. What it had no memory for fails the document. */
const char *snd_doc_take(struct snd_doc *doc, struct sonde_buffer *text);

/* "4.089 G", living as long. */
const char *snd_doc_count(struct snd_doc *doc, double value);

/* `text` after `indent` blanks, living as long. */
struct sonde_text snd_doc_indent(struct snd_doc *doc, size_t indent, struct sonde_text text);

#endif
