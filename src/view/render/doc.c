/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/doc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/summary/summary.h"
#include "view/render/format.h"

struct snd_doc_text {
    struct snd_doc_text *next;
    char                 bytes[];
};

void snd_doc_release(struct snd_doc *doc)
{
    snd_table_release(&doc->rows);
    for (size_t i = 0; i < doc->section_count; i++)
        snd_table_release(&doc->sections[i].table);
    while (doc->kept_count > 0) {
        doc->kept_count--;
        doc->kept[doc->kept_count].release(doc->kept[doc->kept_count].object);
    }
    sonde_summary_free(doc->summary);
    while (doc->texts) {
        struct snd_doc_text *next = doc->texts->next;
        free(doc->texts);
        doc->texts = next;
    }
}

void snd_doc_keep(struct snd_doc *doc, void *object, void (*release)(void *object))
{
    if (!object)
        return;
    assert(doc->kept_count < SND_KEPT_MAX);
    doc->kept[doc->kept_count].object = object;
    doc->kept[doc->kept_count++].release = release;
}

enum sonde_status snd_doc_summary(struct snd_doc *doc, struct sonde_error *err)
{
    bool              steps = strcmp(doc->view, "steps") == 0;
    enum sonde_status st = doc->has_summary ? SONDE_OK
                                            : snd_summary_finish(doc->summary, steps, err);

    doc->has_summary = st == SONDE_OK;
    return st;
}

void snd_doc_total(struct snd_doc *doc, const char *key, const char *title, enum snd_kind kind,
                   struct snd_cell cell)
{
    assert(doc->total_count < SND_TOTALS_MAX);
    doc->totals[doc->total_count++] = (struct snd_total){ key, title, kind, cell };
}

struct snd_table *snd_doc_section(struct snd_doc *doc, const char *key, const char *title,
                                  const struct snd_column *columns, size_t column_count)
{
    assert(doc->section_count < SND_SECTIONS_MAX);
    struct snd_section *section = &doc->sections[doc->section_count++];
    section->key = key;
    section->title = title;
    snd_table_init(&section->table, columns, column_count);
    return &section->table;
}

static char *new_text(struct snd_doc *doc, size_t length)
{
    struct snd_doc_text *text = malloc(sizeof *text + length + 1);

    if (!text) {
        doc->failed = true;
        return NULL;
    }
    text->next = doc->texts;
    doc->texts = text;
    text->bytes[length] = '\0';
    return text->bytes;
}

bool snd_doc_has_failed(const struct snd_doc *doc)
{
    bool failed = doc->failed || doc->rows.failed;

    for (size_t i = 0; i < doc->section_count; i++)
        failed |= doc->sections[i].table.failed;
    return failed;
}

const char *snd_doc_format(struct snd_doc *doc, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int   length = vsnprintf(NULL, 0, format, args);
    char *bytes = length < 0 ? NULL : new_text(doc, (size_t)length);
    va_end(args);
    if (bytes)
        vsnprintf(bytes, (size_t)length + 1, format, again);
    va_end(again);
    return bytes ? bytes : "";
}

const char *snd_doc_take(struct snd_doc *doc, struct sonde_buffer *text)
{
    doc->failed |= text->failed;
    const char *kept = snd_doc_format(doc, "%s", snd_buf_string(text));
    sonde_buffer_release(text);
    return kept;
}

const char *snd_doc_count(struct snd_doc *doc, double value)
{
    struct sonde_buffer text = { 0 };

    snd_format_count(&text, value);
    return snd_doc_take(doc, &text);
}

struct sonde_text snd_doc_indent(struct snd_doc *doc, size_t indent, struct sonde_text text)
{
    char *bytes = new_text(doc, indent + text.length);

    if (!bytes)
        return (struct sonde_text){ "", 0 };
    memset(bytes, ' ', indent);
    if (text.length > 0)
        memcpy(bytes + indent, text.bytes, text.length);
    return (struct sonde_text){ bytes, indent + text.length };
}
