/* SPDX-License-Identifier: Apache-2.0 */
/* view/report.c - sonde_report(): finds the view, checks the options, builds and renders its table. */
#include <string.h>

#include "base/files/sink.h"
#include "base/text/buf.h"
#include "base/text/unknown_name.h"
#include "format/layout.h"
#include "model/counters/run_counters.h"
#include "model/ranks/host_clocks.h"
#include "model/samples/mixed_stacks.h"
#include "model/summary/summary.h"
#include "read/reader.h"
#include "read/said/trace_metadata.h"
#include "snd_config.h"
#include "view/render/render.h"
#include "view/render/view.h"

/* -------------------------------------------------------- the list of views */

#define SND_VIEW(name, function, summary, groups, sorting, page, absence) \
    { { name, summary, groups }, function, sorting },
static const struct snd_view all_views[] = {
#include "view/views.def"
};
#undef SND_VIEW

const struct sonde_view_info *sonde_view_info(size_t index)
{
    return index < SND_COUNT_OF(all_views) ? &all_views[index].info : NULL;
}

/* ----------------------------------------------------------------- without rows */

/* The metadata by which probes say that they were asked; what to do, and why there is nothing. */
#define SND_ABSENT(key, word, unasked, asked) key, word, unasked, asked
#define SND_UNSAID SND_META_COUNT, NULL, NULL, NULL
#define SND_VIEW(name, function, summary, groups, sorting, page, absence) { name, absence },
static const struct {
    const char   *view;
    enum snd_meta key;
    const char   *word;
    const char   *unasked, *asked;
} texts[] = {
#include "view/views.def"
};
#undef SND_VIEW

static bool was_asked(const struct sonde_trace *trace, enum snd_meta asked, const char *word)
{
    struct sonde_text value;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        if (snd_meta_find(trace, p, asked, &value) &&
            (!word || memmem(value.bytes, value.length, word, strlen(word))))
            return true;
    return false;
}

const char *sonde_view_absence(struct sonde_trace *trace, const char *view)
{
    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        if (strcmp(texts[i].view, view) == 0)
            return texts[i].key != SND_META_COUNT && was_asked(trace, texts[i].key, texts[i].word)
                       ? texts[i].asked
                       : texts[i].unasked;
    return NULL;
}

/* ------------------------------------------------------ what the trace has */

struct content {
    bool calls, ranges; /* ranges that are calls of Python functions, and others */
    bool samples;
    bool is_begun; /* a range whose attributes are to follow */
};

/* What a range is a call of comes right after its begin, among its attributes. */
static bool stop_at_range(const struct sonde_event *event, void *user)
{
    struct content *found = user;
    bool            is_attribute = event->kind == SONDE_EVENT_ATTR;

    found->samples |= event->kind == SONDE_EVENT_SAMPLE;
    found->ranges = found->is_begun && !is_attribute;
    if (event->kind == SONDE_EVENT_BEGIN) {
        found->is_begun = true;
    } else if (found->is_begun && is_attribute && event->attr.key == SND_ATTR_FRAME) {
        found->is_begun = false;
        found->calls = true;
    }
    return !found->ranges;
}

/* Whether it happened at least so often. */
static bool has_tally(const struct sonde_trace *trace, uint32_t kind, uint64_t least)
{
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t n = 0; sonde_trace_tally(trace, p, n, &row); n++)
            if (row.kind == kind && row.words[SND_TALLY_HOW_OFTEN] >= least)
                return true;
    return false;
}

/*
 * One walk, which ends at the first range that is not a call. Without one it has seen whether there
 * are samples; of a trace with ranges the sampler's tally tells, so that it is not read to its end.
 */
size_t sonde_views_with_content(struct sonde_trace *trace, const char **views, size_t size)
{
    struct sonde_error err;
    struct content     found = { 0 };

    if (sonde_trace_walk(trace, SONDE_BY_THREAD, stop_at_range, &found, &err) != SONDE_OK)
        found.ranges = true; /* the report says what is wrong */
    found.ranges |= found.is_begun;
    bool calls = has_tally(trace, SND_TALLY_CALLS, 0) || found.calls;
    bool samples = found.samples || (found.ranges && has_tally(trace, SND_TALLY_SAMPLER, 1));
    const struct {
        bool        there;
        const char *view;
    } all[] = {
        { found.ranges, "ops" },
        { snd_trace_has_works(trace), "kernels" },
        { calls, "functions" },
        { has_tally(trace, SND_TALLY_LINE, 0), "lines" },
        { has_tally(trace, SND_TALLY_LINE_MEMORY, 0), "line-memory" },
        { samples, "samples" },
        { has_tally(trace, SND_TALLY_HEAP_PROCESS, 0), "heap" },
        { snd_counters_there(trace), "counters" },
        { samples && !calls, "functions" }, /* the hot ones, of the samples */
        { found.calls && !found.ranges, "ops" },
    };
    _Static_assert(SND_COUNT_OF(all) <= SONDE_CONTENT_VIEWS + 1,
                   "no more than one of two that exclude each other");
    size_t count = 0;
    for (size_t i = 0; i < SND_COUNT_OF(all); i++) {
        if (all[i].there && count < size)
            views[count] = all[i].view;
        count += all[i].there;
    }
    return count;
}

const char *sonde_default_view(struct sonde_trace *trace)
{
    const char *view = "ops";

    sonde_views_with_content(trace, &view, 1);
    return view;
}

/* --------------------------------------------------------------- a report */

static const struct snd_view *find_view(const char *name)
{
    for (size_t i = 0; i < SND_COUNT_OF(all_views); i++)
        if (strcmp(all_views[i].info.name, name) == 0)
            return &all_views[i];
    return NULL;
}

static const char *name_at(size_t index)
{
    return index < SND_COUNT_OF(all_views) ? all_views[index].info.name : NULL;
}

static enum sonde_status refuse_view(const char *name, struct sonde_error *err)
{
    struct sonde_buffer text = { 0 };

    snd_fail(err, SONDE_E_ARGUMENT, "%s",
             snd_unknown_text(&text, "view", name, strlen(name), name_at));
    sonde_buffer_release(&text);
    return SONDE_E_ARGUMENT;
}

/* A group that the view does not know would change nothing, unseen. */
static enum sonde_status refuse_groups(const struct snd_view *view, unsigned groups,
                                       struct sonde_error *err)
{
    struct sonde_buffer      known = { 0 };
    const char              *bad = NULL;
    const struct sonde_word *group;

    for (size_t i = 0; (group = sonde_word(SONDE_WORDS_GROUP, i)) != NULL; i++) {
        if (view->info.groups & (unsigned)group->value)
            snd_buf_format(&known, "%s%s", known.length ? ", " : "", group->name);
        else if (groups & (unsigned)group->value)
            bad = group->name;
    }
    if (bad)
        snd_fail(err, SONDE_E_ARGUMENT, "the view '%s' cannot be grouped by %s: %s%s",
                 view->info.name, bad, known.length ? "its groups are " : "it has no groups",
                 snd_buf_string(&known));
    sonde_buffer_release(&known);
    return bad ? SONDE_E_ARGUMENT : SONDE_OK;
}

/* A column of source text is not in the data. */
static void leave_out_source(struct snd_table *table)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (table->columns[i].key && strcmp(table->columns[i].key, "source") == 0)
            snd_table_leave_out(table, i);
}

/* A view that is made of samples can leave out those of threads without the interpreter's lock. */
static enum sonde_status build_view(struct sonde_trace *trace, const struct snd_view *view,
                                    const struct sonde_report_options *options, struct snd_doc *doc,
                                    struct sonde_error *err)
{
    struct snd_only_gil only = { 0 };

    if (options->at_ns != 0 && view->build != snd_view_heap)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "the view '%s' is not of a moment: --at applies to --view heap",
                        view->info.name);
    if (!options->gil)
        return view->build(trace, options, doc, err);
    if (view->build != snd_view_samples && view->build != snd_view_functions)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "the view '%s' is not made of samples: --gil applies to --view samples "
                        "and --view functions",
                        view->info.name);
    trace->only_gil = &only;
    enum sonde_status st = view->build(trace, options, doc, err);
    trace->only_gil = NULL;
    return st == SONDE_OK ? snd_only_gil_check(&only, err) : st;
}

static enum sonde_status build(struct sonde_trace *trace, const struct snd_view *view,
                               const struct sonde_report_options *options, struct snd_doc *doc,
                               struct sonde_error *err)
{
    enum sonde_status st = refuse_groups(view, options->groups, err);

    if (st == SONDE_OK)
        st = snd_host_clocks_align(trace, err);
    if (st == SONDE_OK)
        st = snd_summary_begin(trace, &doc->summary, err);
    doc->empty = sonde_view_absence(trace, view->info.name);
    if (st == SONDE_OK)
        st = build_view(trace, view, options, doc, err);
    if (options->no_source)
        leave_out_source(&doc->rows);
    if (st == SONDE_OK && options->sort && view->sorting == SND_FIXED)
        st = snd_fail(err, SONDE_E_ARGUMENT,
                      "the view '%s' cannot be sorted; leave out the sort key", view->info.name);
    else if (st == SONDE_OK && options->sort && view->sorting == SND_SORTED)
        st = snd_table_sort(&doc->rows, options->sort, err);
    if (st == SONDE_OK && options->format != SONDE_REPORT_CSV &&
        options->format != SONDE_REPORT_COLUMNS) /* which have no ledger */
        st = snd_doc_summary(doc, err);
    if (st == SONDE_OK && snd_doc_has_failed(doc))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the view '%s'", view->info.name);
    return st;
}

enum sonde_status sonde_report(struct sonde_trace                *trace,
                               const struct sonde_report_options *options,
                               const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_report_options used;
    enum sonde_status           st = snd_report_options(options, &used, err);

    if (st != SONDE_OK)
        return st;
    const char            *name = used.view ? used.view : "ops";
    const struct snd_view *view = find_view(name);
    if (!view)
        return refuse_view(name, err);

    struct snd_doc doc = { .view = view->info.name, .trace = trace };
    st = build(trace, view, &used, &doc, err);
    if (st == SONDE_OK)
        st = snd_render(&doc, &used, sink, err);
    snd_doc_release(&doc);
    return st;
}

const char *sonde_version(void)
{
    return SND_VERSION;
}
