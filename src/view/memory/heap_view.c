/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap view: who allocates what. As text the sums of each process and call trees of what was held
 * at the peak, was not freed, and was allocated in all; as data a row for each call stack.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/buf.h"
#include "base/data/map.h"
#include "base/text/plural.h"
#include "base/text/utf8.h"
#include "format/limits.h"
#include "model/memory/heap_stacks.h"
#include "view/render/format.h"
#include "view/render/view.h"

#define LEAST_SHARE 0.01 /* of a tree's whole: what is less is left out, unless all is shown */
#define DEPTH_MAX 60
#define ROOT (-1)

/* What a stack and a whole heap both have. */
/* clang-format off */
#define SUMS \
    { "process", "Process", SND_COUNT, SND_FIT_FIXED }, \
    { "memory", "Memory", SND_TEXT, SND_FIT_CONTENT }, \
    { "allocations", "Allocations", SND_COUNT, SND_FIT_FIXED }, \
    { "bytes", "Bytes", SND_BYTES, SND_FIT_FIXED }, \
    { "peak_blocks", "Peak Blocks", SND_COUNT, SND_FIT_FIXED }, \
    { "peak_bytes", "Peak", SND_BYTES, SND_FIT_FIXED }, \
    { "leaked_blocks", "Leaked Blocks", SND_COUNT, SND_FIT_FIXED }, \
    { "leaked_bytes", "Leaked", SND_BYTES, SND_FIT_FIXED }, \
    { "temporary", "Temporary", SND_COUNT, SND_FIT_FIXED }, \
    { "held_blocks", "Held Blocks", SND_COUNT, SND_FIT_FIXED }, \
    { "held_bytes", "Held", SND_BYTES, SND_FIT_FIXED }
#define HELD_BLOCKS 9 /* places of columns that are there if a moment was asked for */
#define HELD_BYTES 10
/* clang-format on */

static const struct snd_column columns[] = {
    SUMS,
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "bytes_error", "Bytes +-", SND_BYTES, SND_FIT_FIXED },
    { "leaked_error", "Leaked +-", SND_BYTES, SND_FIT_FIXED },
    { "stack", "Stack", SND_LINES, SND_FIT_CONTENT },
};

static const struct snd_column heap_columns[] = {
    SUMS,
    { "unknown_frees", "Unknown Frees", SND_COUNT, SND_FIT_FIXED },
    { "period_bytes", "Period", SND_BYTES, SND_FIT_FIXED },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "bytes_error", "Bytes +-", SND_BYTES, SND_FIT_FIXED },
    { "leaked_error", "Leaked +-", SND_BYTES, SND_FIT_FIXED },
    { "peak_error", "Peak +-", SND_BYTES, SND_FIT_FIXED },
};

/* What a tree is of. */
struct metric {
    const char *title, *unit;
    size_t      offset, blocks; /* in struct snd_heap_sums; blocks: beside it */
};
#define SUM(member) offsetof(struct snd_heap_sums, member)
static const struct metric metric_at = { "Held at the moment", "bytes", SUM(at_bytes),
                                         SUM(at_blocks) };
static const struct metric metrics[] = {
    { "Held at the peak", "bytes", SUM(peak_bytes), SUM(peak_blocks) },
    { "Not freed at the end", "bytes", SUM(live_bytes), SUM(live_blocks) },
    { "Allocated in all", "bytes", SUM(bytes), SUM(allocations) },
};

static uint64_t sum_at(const struct snd_heap_sums *sums, size_t offset)
{
    uint64_t value;

    memcpy(&value, (const char *)sums + offset, sizeof value);
    return value;
}

/* ------------------------------------------------------------------- the text */

struct page {
    const struct sonde_trace          *trace;
    const struct snd_heaps            *heaps;
    const struct sonde_report_options *options;
    const struct metric               *metric;
    struct snd_out                    *out;
    uint64_t                           whole;
    int64_t                            rows; /* that may still be shown; -1: all */
};

/* "1,234,567". */
static const char *grouped(char text[32], uint64_t value)
{
    char   plain[24];
    size_t length = (size_t)snprintf(plain, sizeof plain, "%" PRIu64, value), at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = plain[i];
    }
    text[at] = '\0';
    return text;
}

static void put_line(struct page *page, const char *what, uint64_t bytes, double error,
                     uint64_t blocks, const char *unit)
{
    char number[32], count[32], more[32], text[64] = "";

    if (error > 0)
        snprintf(text, sizeof text, " +- %s", grouped(more, (uint64_t)(error + 0.5)));
    snd_out_format(page->out, "  %-11s %s%s byte%s in %s %s%s\n", what, grouped(number, bytes),
                   text, snd_plural(bytes), grouped(count, blocks), unit, snd_plural(blocks));
}

/* Of the moment that was asked for, and when that was. */
static void put_held(struct page *page, const struct snd_heap *heap)
{
    char seconds[SND_NUMBER_MAX];

    put_line(page, "held", heap->sums.at_bytes,
             heap->at ? heap->at->error : heap->errors.live_bytes, heap->sums.at_blocks, "block");
    if (heap->at)
        snd_out_format(page->out, "  %-11s %s s after the start\n", "at",
                       snd_number_fixed(seconds, 6, (double)heap->at->at_ns / 1e9));
    else
        snd_out_format(page->out, "  %-11s the end\n", "at");
}

static void put_sums(struct page *page, const struct snd_heap *heap)
{
    const struct sonde_process *process = sonde_trace_process(page->trace, heap->process);
    const struct snd_heap_sums *s = &heap->sums;
    struct sonde_buffer         name = { 0 };
    char                        number[32], share[SND_NUMBER_MAX];

    snd_format_text(&name, process->program, strlen(process->program));
    snd_out_format(page->out, "Process %" PRIu32 "%s%s, %s:", process->pid, name.length ? " " : "",
                   snd_buf_string(&name),
                   heap->is_mapped ? "memory that it mapped itself"
                                   : "malloc and related functions");
    if (heap->period)
        snd_out_format(page->out, " estimates from %" PRIu64 " sample%s, +- to 95 %%",
                       heap->samples, snd_plural(heap->samples));
    snd_out_text(page->out, "\n");
    put_line(page, "allocated", s->bytes, heap->errors.bytes, s->allocations, "allocation");
    put_line(page, "peak", s->peak_bytes, heap->errors.peak_bytes, s->peak_blocks, "block");
    put_line(page, "not freed", s->live_bytes, heap->errors.live_bytes, s->live_blocks, "block");
    if (heap->period == 0 && !heap->is_mapped)
        snd_out_format(page->out, "  %-11s %s allocation%s (%s %%), freed by the next call\n",
                       "temporary", grouped(number, s->temporary), snd_plural(s->temporary),
                       snd_number_fixed(share, 1,
                                        s->allocations
                                            ? 100.0 * (double)s->temporary / (double)s->allocations
                                            : 0));
    if (page->options->at_ns)
        put_held(page, heap);
    if (heap->unknown_frees && !heap->is_mapped)
        snd_out_format(page->out, "  %-11s %s block%s whose allocation was not seen\n", "freed",
                       grouped(number, heap->unknown_frees), snd_plural(heap->unknown_frees));
    sonde_buffer_release(&name);
}

/* A name, truncated as those of the tables are. */
static void put_name(struct sonde_buffer *text, struct sonde_text name, uint32_t most)
{
    struct sonde_buffer whole = { 0 };

    snd_format_text(&whole, name.bytes, name.length);
    bool   cut = most > 3 && snd_utf8_count(snd_buf_string(&whole), whole.length) > most;
    size_t kept = cut ? snd_utf8_prefix(snd_buf_string(&whole), whole.length, most - 3)
                      : whole.length;
    snd_buf_format(text, "%.*s%s", (int)kept, snd_buf_string(&whole), cut ? "..." : "");
    sonde_buffer_release(&whole);
}

static void put_node(struct page *page, const struct snd_heap_node *node, int depth)
{
    struct sonde_buffer text = { 0 };
    char                number[32], share[SND_NUMBER_MAX], count[32];
    uint64_t            value = sum_at(&node->sums, page->metric->offset);
    const char         *file = node->frame.file.length
                                   ? memrchr(node->frame.file.bytes, '/', node->frame.file.length)
                                   : NULL;
    size_t              skip = file ? (size_t)(file + 1 - node->frame.file.bytes) : 0;

    snd_buf_format(&text, "%16s %5s %%  %*s", grouped(number, value),
                   snd_number_fixed(share, 1, 100.0 * (double)value / (double)page->whole),
                   depth * 2, "");
    put_name(&text, node->frame.function, page->options->max_name);
    snd_buf_text(&text, "  ");
    snd_format_text(&text, node->frame.file.bytes + skip, node->frame.file.length - skip);
    if (node->frame.line)
        snd_buf_format(&text, ":%" PRIu32, node->frame.line);
    if (node->first_child == 0)
        snd_buf_format(&text, "  (%s)", grouped(count, sum_at(&node->sums, page->metric->blocks)));
    snd_buf_text(&text, "\n");
    snd_out_put(page->out, snd_buf_string(&text), text.length);
    sonde_buffer_release(&text);
}

static int compare_nodes(const void *left, const void *right, void *argument)
{
    const struct page *by = argument;
    uint32_t           x, y;

    memcpy(&x, left, sizeof x);
    memcpy(&y, right, sizeof y);
    uint64_t a = sum_at(&snd_heaps_node(by->heaps, x)->sums, by->metric->offset);
    uint64_t b = sum_at(&snd_heaps_node(by->heaps, y)->sums, by->metric->offset);
    return SND_ORDER(SND_FALLING(a, b), SND_RISING(x, y));
}

static bool is_shown(const struct page *page, uint32_t node)
{
    uint64_t value = sum_at(&snd_heaps_node(page->heaps, node)->sums, page->metric->offset);

    return value > 0 &&
           (page->options->show_all || (double)value >= LEAST_SHARE * (double)page->whole);
}

/*
 * `depth`: of the parent's row, ROOT if it has none. A lone child is not set off from its parent, unless that
 * has siblings: a chain of callers stays in its column, and where it branches the branches can be told apart.
 */
static void put_below(struct page *page, uint32_t parent, bool has_siblings, int depth)
{
    uint32_t *children = NULL, count = 0, room = 0;

    for (uint32_t c = snd_heaps_node(page->heaps, parent)->first_child; c;
         c = snd_heaps_node(page->heaps, c)->next_sibling) {
        if (!is_shown(page, c))
            continue;
        if (!snd_grow(&children, &room, count, sizeof *children)) {
            snd_out_fail(page->out, ENOMEM);
            break;
        }
        children[count++] = c;
    }
    if (count > 1)
        qsort_r(children, count, sizeof *children, compare_nodes, page);
    if (depth == ROOT || ((count > 1 || has_siblings) && depth < DEPTH_MAX))
        depth++;
    for (uint32_t i = 0; i < count && page->rows != 0 && !page->out->failed; i++) {
        put_node(page, snd_heaps_node(page->heaps, children[i]), depth);
        page->rows -= page->rows > 0;
        put_below(page, children[i], count > 1, depth);
    }
    free(children);
}

static void put_tree(struct page *page, const struct snd_heap *heap, const struct metric *metric)
{
    page->metric = metric;
    page->whole = sum_at(&heap->sums, metric->offset);
    page->rows = page->options->rows;
    if (page->whole == 0)
        return;
    snd_out_format(page->out, "\n%s (bytes, share, function by its callers, blocks):\n",
                   metric->title);
    put_below(page, heap->root, false, ROOT);
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    struct page page = { .trace = doc->trace, .heaps = doc->data, .options = options, .out = out };
    const struct snd_heap *heap;

    for (uint32_t i = 0; (heap = snd_heaps_heap(page.heaps, i)) && !out->failed; i++) {
        snd_out_text(out, i > 0 ? "\n\n" : "");
        put_sums(&page, heap);
        if (options->at_ns)
            put_tree(&page, heap, &metric_at);
        for (size_t m = 0; m < SND_COUNT_OF(metrics); m++)
            put_tree(&page, heap, &metrics[m]);
    }
    snd_out_text(out, "\n");
}

/* ------------------------------------------------------------------- the rows */

static const char *memory_of(const struct snd_heap *heap)
{
    return heap->is_mapped ? "mapped" : "malloc";
}

static struct snd_cell *put_cells(struct snd_cell *cell, const struct sonde_trace *trace,
                                  const struct snd_heap *heap, const struct snd_heap_sums *sums)
{
    *cell++ = snd_cell_number(sonde_trace_process(trace, heap->process)->pid);
    *cell++ = snd_cell_string(memory_of(heap));
    *cell++ = snd_cell_number((int64_t)sums->allocations);
    *cell++ = snd_cell_number((int64_t)sums->bytes);
    *cell++ = snd_cell_number((int64_t)sums->peak_blocks);
    *cell++ = snd_cell_number((int64_t)sums->peak_bytes);
    *cell++ = snd_cell_number((int64_t)sums->live_blocks);
    *cell++ = snd_cell_number((int64_t)sums->live_bytes);
    *cell++ = heap->period ? snd_cell_none() : snd_cell_number((int64_t)sums->temporary);
    *cell++ = snd_cell_number((int64_t)sums->at_blocks);
    *cell++ = snd_cell_number((int64_t)sums->at_bytes);
    return cell;
}

static struct snd_cell error_cell(const struct snd_heap *heap, double error)
{
    return heap->period ? snd_cell_number((int64_t)(error + 0.5)) : snd_cell_none();
}

static void add_heap(struct snd_table *heaps, const struct sonde_trace *trace,
                     const struct snd_heap *heap)
{
    struct snd_cell *cell = put_cells(snd_table_add(heaps), trace, heap, &heap->sums);

    *cell++ = snd_cell_number((int64_t)heap->unknown_frees);
    *cell++ = heap->period ? snd_cell_number((int64_t)heap->period) : snd_cell_none();
    *cell++ = heap->period ? snd_cell_number((int64_t)heap->samples) : snd_cell_none();
    *cell++ = error_cell(heap, heap->errors.bytes);
    *cell++ = error_cell(heap, heap->errors.live_bytes);
    *cell++ = error_cell(heap, heap->errors.peak_bytes);
}

/* "function (file:line)" for each frame, innermost first. */
static const char *stack_text(struct snd_doc *doc, const struct snd_heap *heap, uint32_t stack,
                              struct sonde_frame *frames)
{
    struct sonde_buffer text = { 0 };
    size_t count = sonde_trace_stack(doc->trace, heap->process, stack, frames, SND_STACK_MAX);

    for (size_t i = 0; i < count && i < SND_STACK_MAX; i++) {
        snd_buf_text(&text, i > 0 ? "\n" : "");
        snd_format_text(&text, frames[i].function.bytes, frames[i].function.length);
        snd_buf_text(&text, " (");
        snd_format_text(&text, frames[i].file.bytes, frames[i].file.length);
        if (frames[i].line)
            snd_buf_format(&text, ":%" PRIu32, frames[i].line);
        snd_buf_text(&text, ")");
    }
    if (count == 0)
        snd_buf_text(&text, "(not known)");
    return snd_doc_take(doc, &text);
}

static void add_rows(struct snd_doc *doc, const struct snd_heaps *heaps,
                     const struct snd_heap *heap, struct sonde_frame *frames)
{
    for (uint32_t i = 0; i < heap->count; i++) {
        const struct snd_heap_row *row = snd_heaps_row(heaps, heap->first + i);
        struct snd_cell *cell = put_cells(snd_table_add(&doc->rows), doc->trace, heap, &row->sums);
        *cell++ = heap->period ? snd_cell_number((int64_t)row->samples) : snd_cell_none();
        *cell++ = error_cell(heap, row->errors.bytes);
        *cell++ = error_cell(heap, row->errors.live_bytes);
        *cell++ = snd_cell_string(stack_text(doc, heap, row->stack, frames));
    }
}

static void leave_out_held(struct snd_table *rows, struct snd_table *heaps)
{
    struct snd_table *tables[] = { rows, heaps };

    for (size_t i = 0; i < SND_COUNT_OF(tables); i++) {
        snd_table_leave_out(tables[i], HELD_BLOCKS);
        snd_table_leave_out(tables[i], HELD_BYTES);
    }
}

SND_DOC_RELEASE(free_heaps, snd_heaps_free)

SND_VIEW_BUILD(snd_view_heap)
{
    bool                   is_text = options->format == SONDE_REPORT_TEXT;
    struct snd_heaps      *heaps = NULL;
    const struct snd_heap *heap;
    uint32_t               count = 0;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct snd_table *section = snd_doc_section(doc, "heaps", NULL, heap_columns,
                                                SND_COUNT_OF(heap_columns));
    if (options->at_ns == 0)
        leave_out_held(&doc->rows, section);
    enum sonde_status st = snd_heaps_new_at(trace, is_text, options->at_ns, &heaps, err);
    if (st != SONDE_OK)
        return st;
    snd_doc_keep(doc, heaps, free_heaps);
    doc->data = heaps;
    struct sonde_frame *frames = is_text ? NULL : calloc(SND_STACK_MAX, sizeof *frames);
    if (!is_text && !frames)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks of the heap");
    for (; (heap = snd_heaps_heap(heaps, count)); count++) {
        add_heap(section, trace, heap);
        if (!is_text)
            add_rows(doc, heaps, heap, frames);
    }
    free(frames);
    doc->text = count > 0 ? put_page : NULL;
    snd_doc_total(doc, "heap_count", NULL, SND_COUNT, snd_cell_number(count));
    return SONDE_OK;
}
