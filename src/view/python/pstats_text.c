/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, callers and callees as Python's pstats prints them, to the character. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "base/text/buf.h"
#include "base/text/plural.h"
#include "base/text/utf8.h"
#include "view/render/fit_lines.h"
#include "view/render/format.h"
#include "view/python/pstats.h"

/* Columns before and between the names of functions, in each of the lists. */
enum { BEFORE_FUNCTION = 46, BEFORE_AWAITING = 37, BEFORE_TREE = 27, BESIDE_RELATED = 32 };
#define ROOM_LEAST 16 /* columns that a name has at least: its end may be cut off then */

/* A page of pstats: which functions are shown, and how wide their names are. */
struct page {
    const struct sonde_functions *functions;
    const struct snd_pstats      *sorted;
    struct snd_out               *out;
    size_t                        shown, width;
    size_t                        columns; /* of a line; 0: any number */
    const char                   *mark;    /* in place of the begin of a path */
    struct sonde_buffer           name;
};

/* How many columns a name has in a line with `others`. */
static size_t room_of(const struct page *page, size_t others)
{
    if (page->columns == 0)
        return SIZE_MAX;
    return page->columns > others + ROOM_LEAST ? page->columns - others : ROOM_LEAST;
}

/* The name, its path shortened from the left to fit in `room` columns. Returns its own. */
static size_t take_name(struct page *page, uint32_t function, size_t room)
{
    const struct sonde_function *f = sonde_functions_row(page->functions, function);

    snd_buf_clear(&page->name);
    snd_pstats_name(f, &page->name);
    const char *text = snd_buf_string(&page->name);
    if (snd_utf8_count(text, page->name.length) > room && text[0] != '{') {
        struct sonde_buffer path = { 0 };
        snd_format_text(&path, f->file.bytes, f->file.length);
        snd_fit_path(&page->name, path.length, room, page->mark);
        sonde_buffer_release(&path);
    }
    return snd_utf8_count(snd_buf_string(&page->name), page->name.length);
}

/* pstats' f8. */
static void put_seconds(struct snd_out *out, double seconds)
{
    char text[SND_NUMBER_MAX];

    snd_out_format(out, "%8s", snd_number_fixed(text, 3, seconds));
}

static double seconds_of(int64_t ns)
{
    return (double)ns / 1e9;
}

/* ---------------------------------------------------------------- the lists */

/* "Ordered by: ..", and that the list was cut; the blank line after them. */
static void put_heading(struct page *page)
{
    snd_out_format(page->out, "   Ordered by: %s\n", page->sorted->sorted_by);
    if (page->shown < page->sorted->count)
        snd_out_format(page->out, "   List reduced from %zu to %zu due to restriction <%zu>\n",
                       page->sorted->count, page->shown, page->shown);
    snd_out_text(page->out, "\n");
}

static void put_totals(struct page *page)
{
    uint64_t calls = 0, primitive = 0;
    double   seconds = 0;
    char     text[SND_NUMBER_MAX];

    for (size_t i = 0; i < page->sorted->count; i++) {
        const struct sonde_function *f = sonde_functions_row(page->functions, i);
        calls += f->calls;
        primitive += f->primitive_calls;
        seconds += seconds_of(f->self_ns);
    }
    snd_out_format(page->out, "         %" PRIu64 " function calls ", calls);
    if (calls != primitive)
        snd_out_format(page->out, "(%" PRIu64 " primitive calls) ", primitive);
    snd_out_format(page->out, "in %s seconds\n\n", snd_number_fixed(text, 3, seconds));
}

static void put_mean(struct snd_out *out, int64_t ns, uint64_t calls)
{
    snd_out_text(out, " ");
    if (calls == 0)
        snd_out_repeat(out, ' ', 8);
    else
        put_seconds(out, seconds_of(ns) / (double)calls);
    snd_out_text(out, " ");
}

static void put_function(struct page *page, uint32_t function)
{
    const struct sonde_function *f = sonde_functions_row(page->functions, function);
    char                         calls[48];

    if (f->calls == f->primitive_calls)
        snprintf(calls, sizeof calls, "%" PRIu64, f->calls);
    else
        snprintf(calls, sizeof calls, "%" PRIu64 "/%" PRIu64, f->calls, f->primitive_calls);
    snd_out_format(page->out, "%9s ", calls);
    put_seconds(page->out, seconds_of(f->self_ns));
    put_mean(page->out, f->self_ns, f->calls);
    put_seconds(page->out, seconds_of(f->total_ns));
    put_mean(page->out, f->total_ns, f->primitive_calls);
    take_name(page, function, room_of(page, BEFORE_FUNCTION));
    snd_out_put(page->out, snd_buf_string(&page->name), page->name.length);
    snd_out_text(page->out, "\n");
}

static void put_functions(struct page *page)
{
    put_totals(page);
    if (page->shown == 0)
        return;
    put_heading(page);
    snd_out_text(page->out,
                 "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n");
    for (size_t i = 0; i < page->shown; i++)
        put_function(page, page->sorted->order[i]);
    snd_out_text(page->out, "\n\n");
}

/* --------------------------------------------------- callers and callees */

struct related {
    const struct sonde_call     *call;
    const struct sonde_function *function; /* the other one */
    uint32_t                     index;
};

static int compare_related(const void *left, const void *right)
{
    const struct related *x = left, *y = right;
    int                   sign = snd_pstats_compare(x->function->file, y->function->file);

    if (sign == 0)
        sign = SND_RISING(x->function->line, y->function->line);
    return sign ? sign : snd_pstats_compare(x->function->name, y->function->name);
}

/* The calls of or by a function, by the name of the other one; those from outside are left out. */
static size_t find_related(const struct page *page, const struct sonde_function *f, bool callers,
                           struct related *related)
{
    size_t first = callers ? f->first_caller : f->first_callee, count = 0;
    size_t most = callers ? f->caller_count : f->callee_count;

    for (size_t i = 0; i < most; i++) {
        const struct sonde_call *call = callers
                                            ? sonde_functions_caller(page->functions, first + i)
                                            : sonde_functions_callee(page->functions, first + i);
        uint32_t                 other = callers ? call->caller : call->callee;
        if (other != SONDE_NONE)
            related[count++] = (struct related){ call, sonde_functions_row(page->functions, other),
                                                 other };
    }
    snd_sort(related, count, sizeof *related, compare_related);
    return count;
}

/* A line has two names. */
static size_t room_of_related(const struct page *page)
{
    size_t both = room_of(page, BESIDE_RELATED);

    return both == SIZE_MAX || both / 2 >= ROOM_LEAST ? both / 2 : ROOM_LEAST;
}

static void put_padded(struct page *page, uint32_t function)
{
    size_t width = take_name(page, function, room_of_related(page));

    snd_out_put(page->out, snd_buf_string(&page->name), page->name.length);
    snd_out_repeat(page->out, ' ', page->width > width ? page->width - width : 0);
}

static void put_related(struct page *page, const struct related *related, bool first)
{
    const struct sonde_call *call = related->call;
    char                     calls[48];

    if (call->calls == call->primitive_calls)
        snprintf(calls, sizeof calls, "%" PRIu64, call->calls);
    else
        snprintf(calls, sizeof calls, "%" PRIu64 "/%" PRIu64, call->calls, call->primitive_calls);
    snd_out_repeat(page->out, ' ', first ? 0 : page->width + 1);
    snd_out_format(page->out, "%*s ", first ? 7 : 9, calls);
    put_seconds(page->out, seconds_of(call->self_ns));
    snd_out_text(page->out, " ");
    put_seconds(page->out, seconds_of(call->total_ns));
    take_name(page, related->index, room_of(page, page->width + BESIDE_RELATED - 2));
    snd_out_text(page->out, "  ");
    snd_out_put(page->out, snd_buf_string(&page->name), page->name.length);
    snd_out_text(page->out, "\n");
}

static bool has_calls(const struct page *page)
{
    const struct sonde_call *call;

    for (size_t i = 0; (call = sonde_functions_caller(page->functions, i)) != NULL; i++)
        if (call->caller != SONDE_NONE)
            return true;
    return false;
}

static void put_calls(struct page *page, bool callers)
{
    size_t most = 0;

    while (sonde_functions_caller(page->functions, most))
        most++;
    struct related *related = calloc(most + 1, sizeof *related);
    if (!related || page->shown == 0) {
        if (!related)
            snd_out_fail(page->out, ENOMEM);
        free(related);
        return;
    }
    put_heading(page);
    snd_out_text(page->out, "Function ");
    snd_out_repeat(page->out, ' ', page->width > 9 ? page->width - 9 : 0);
    snd_out_text(page->out, callers ? "was called by...\n" : "called...\n");
    if (has_calls(page)) {
        snd_out_repeat(page->out, ' ', page->width);
        snd_out_text(page->out, "    ncalls  tottime  cumtime\n");
    }
    for (size_t i = 0; i < page->shown; i++) {
        uint32_t function = page->sorted->order[i];
        size_t   count = find_related(page, sonde_functions_row(page->functions, function), callers,
                                      related);
        put_padded(page, function);
        snd_out_text(page->out, callers ? "<- " : "-> ");
        if (count == 0)
            snd_out_text(page->out, "\n");
        for (size_t k = 0; k < count; k++)
            put_related(page, &related[k], k == 0);
    }
    snd_out_text(page->out, "\n\n");
    free(related);
}

/* ------------------------------------------------------- what pstats has not */

static void put_awaiting(struct page *page)
{
    put_heading(page);
    snd_out_text(page->out, "   ncalls  resumed  tottime awaiting filename:lineno(function)\n");
    for (size_t i = 0; i < page->shown; i++) {
        const struct sonde_function *f = sonde_functions_row(page->functions,
                                                             page->sorted->order[i]);
        snd_out_format(page->out, "%9" PRIu64 " %8" PRIu64 " ", f->calls, f->resumptions);
        put_seconds(page->out, seconds_of(f->self_ns));
        snd_out_text(page->out, " ");
        put_seconds(page->out, seconds_of(f->awaiting_ns));
        snd_out_text(page->out, " ");
        take_name(page, page->sorted->order[i], room_of(page, BEFORE_AWAITING));
        snd_out_put(page->out, snd_buf_string(&page->name), page->name.length);
        snd_out_text(page->out, "\n");
    }
    snd_out_text(page->out, "\n\n");
}

static void put_tree(struct page *page, const struct sonde_call_tree *tree, size_t rows)
{
    size_t count = sonde_call_tree_count(tree);

    snd_out_text(page->out, "   ncalls  tottime  cumtime function\n");
    /* Nodes are in the order in which a reader goes down. */
    for (size_t i = 1; i < count && i <= rows; i++) {
        const struct sonde_call_node *node = sonde_call_tree_node(tree, i);
        char                          text[SND_NUMBER_MAX];
        snd_out_format(page->out, "%9s ", snd_number_fixed(text, 0, node->calls));
        put_seconds(page->out, seconds_of(node->self_ns));
        snd_out_text(page->out, " ");
        put_seconds(page->out, seconds_of(node->total_ns));
        size_t indent = 1 + 2 * ((size_t)node->depth - 1);
        snd_out_repeat(page->out, ' ', indent);
        take_name(page, node->function, room_of(page, BEFORE_TREE + indent));
        snd_out_put(page->out, snd_buf_string(&page->name), page->name.length);
        snd_out_text(page->out, "\n");
    }
    if (count > rows + 1)
        snd_out_format(page->out, "%zu more row%s: --rows -1 shows all\n", count - 1 - rows,
                       snd_plural(count - 1 - rows));
}

/* ---------------------------------------------------------------- the whole */

void snd_pstats_text(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct snd_functions_data *data = doc->data;
    struct page                      page = { .functions = data->functions,
                                              .sorted = data->sorted,
                                              .out = out,
                                              .columns = options->width,
                                              .mark = options->ascii ? "..." : "…" };
    size_t                           rows = options->rows >= 0 ? (size_t)options->rows : SIZE_MAX;

    page.shown = rows < page.sorted->count ? rows : page.sorted->count;
    for (size_t i = 0; i < page.shown; i++) {
        size_t width = take_name(&page, page.sorted->order[i], room_of_related(&page));
        page.width = width > page.width ? width : page.width;
    }
    page.width += 2;
    switch (options->part) {
    case SONDE_PART_CALLERS:
    case SONDE_PART_CALLEES:
        put_calls(&page, options->part == SONDE_PART_CALLERS);
        break;
    case SONDE_PART_TREE:
        put_tree(&page, data->tree, rows == SIZE_MAX ? rows - 1 : rows);
        break;
    case SONDE_PART_AWAITING:
        put_awaiting(&page);
        break;
    default:
        put_functions(&page);
        break;
    }
    sonde_buffer_release(&page.name);
}
