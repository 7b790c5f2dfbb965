/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples view: what sampled stacks add up to. As text it is Pyinstrument's tree, of all
 * threads, of each process or of each thread; as data every node of every thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text/compare.h"
#include "base/text/plural.h"
#include "read/said/trace_metadata.h"
#include "view/render/format.h"
#include "view/samples/sample_page.h"

static const struct snd_column columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "thread", "Thread", SND_COUNT, SND_FIT_FIXED },
    { "depth", "Depth", SND_COUNT, SND_FIT_FIXED },
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "file", "File", SND_TEXT, SND_FIT_CONTENT },
    { "line", "Line", SND_COUNT, SND_FIT_FIXED },
    { "is_native", "Native", SND_FLAG, SND_FIT_FIXED },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "cpu_ns", "On CPU", SND_TIME, SND_FIT_FIXED },
    { "gil_ns", "With GIL", SND_TIME, SND_FIT_FIXED },
    { "off_cpu_ns", "Off CPU", SND_TIME, SND_FIT_FIXED },
};

static const struct snd_column thread_columns[] = {
    { "process", "Process", SND_COUNT, SND_FIT_FIXED },
    { "thread", "Thread", SND_COUNT, SND_FIT_FIXED },
    { "name", "Name", SND_TEXT, SND_FIT_CONTENT },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "cpu_ns", "On CPU", SND_TIME, SND_FIT_FIXED },
    { "gil_ns", "With GIL", SND_TIME, SND_FIT_FIXED },
    { "gil_wait_ns", "Waits for GIL", SND_TIME, SND_FIT_FIXED },
    { "idle_ns", "Idle", SND_TIME, SND_FIT_FIXED },
};

/* ------------------------------------------------------------------ the root */

/* sonde's own files: .../sonde/python/_runner.py; in older traces, .../sonde/_runner.py. */
static bool is_runner(const struct sonde_sample_node *node)
{
    static const char *const folders[] = { "/sonde", "/sonde/python", "/sonde/torch",
                                           "/sonde/model", "/sonde/pipeline" };
    const char              *slash = memrchr(node->file.bytes, '/', node->file.length);

    if (!slash || !snd_ends_with_at(node->file.bytes, node->file.length, ".py") || slash[1] != '_')
        return false;
    struct sonde_text folder = { node->file.bytes, (size_t)(slash - node->file.bytes) };
    for (size_t i = 0; i < SND_COUNT_OF(folders); i++)
        if (snd_ends_with_at(folder.bytes, folder.length, folders[i]))
            return true;
    return false;
}

/* What runs a module or a script for the runner. */
static bool is_runpy(const struct sonde_sample_node *node)
{
    return snd_ends_with_at(node->file.bytes, node->file.length, "/runpy.py") ||
           snd_ends_with_at(node->file.bytes, node->file.length, "<frozen runpy>") ||
           snd_ends_with_at(node->file.bytes, node->file.length, "<string>");
}

/* Whether its longest child is all that would be shown of it: the rest is the interpreter's end. */
static bool is_nearly_all(const struct sonde_samples *samples, const struct sonde_sample_node *root,
                          bool show_all)
{
    const struct sonde_sample_node *child = sonde_samples_node(samples, root->first_child);

    if (show_all)
        return root->self_ns == 0 && child->next_sibling == 0;
    return (double)(root->time_ns - child->time_ns) < 0.01 * (double)root->time_ns;
}

/*
 * The node to begin at: a thread's only outermost function, and not that of what ran the program
 * for us, as Pyinstrument does not show itself.
 */
static uint32_t find_start(const struct sonde_samples *samples, uint32_t root, bool show_all)
{
    const struct sonde_sample_node *node = sonde_samples_node(samples, root);
    uint32_t                        start = root, at = root;

    if (node->first_child != 0 && is_nearly_all(samples, node, show_all))
        start = at = node->first_child;
    bool seen = false;
    for (;;) {
        node = sonde_samples_node(samples, at);
        if (at != root && !is_runner(node) && !is_runpy(node))
            break;
        seen |= at != root && is_runner(node);
        const struct sonde_sample_node *child = node->first_child
                                                    ? sonde_samples_node(samples, node->first_child)
                                                    : NULL;
        if (!child || (double)child->time_ns < 0.8 * (double)node->time_ns)
            break;
        at = node->first_child;
    }
    return seen && !is_runner(node) && !is_runpy(node) ? at : start;
}

/* ------------------------------------------------------------------ the text */

struct page {
    const struct snd_doc              *doc;
    const struct sonde_report_options *options;
    struct snd_out                    *out;
    struct snd_sample_style            style;
};

static const struct sonde_thread *thread_of(const struct page                *page,
                                            const struct sonde_sample_thread *t)
{
    return sonde_trace_thread(page->doc->trace, t->thread);
}

/* "Thread 4244 worker of process 4242: ..", "Process 4242 nginx: 3 threads, ..". */
static void put_heading(struct page *page, const struct sonde_sample_thread *t, bool is_process)
{
    const struct sonde_thread *thread = thread_of(page, t);
    uint32_t                   pid = sonde_trace_process(page->doc->trace, thread->process)->pid;
    struct sonde_buffer        name = { 0 };
    char                       cpu[SND_NUMBER_MAX], idle[SND_NUMBER_MAX];

    struct sonde_text called = is_process ? snd_meta_title(page->doc->trace, thread->process)
                                          : thread->name;
    snd_format_text(&name, called.bytes, called.length);
    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(page->doc->trace, thread->process, text);
    const char *comma = rank[0] ? ", " : "";
    if (is_process)
        snd_out_format(page->out, "Process %" PRIu32 "%s%s%s%s: %" PRIu32 " %s", pid,
                       name.length ? " " : "", snd_buf_string(&name), comma, rank, t->threads,
                       t->threads == 1 ? "thread" : "threads");
    else
        snd_out_format(page->out, "Thread %" PRIu32 "%s%s of process %" PRIu32 "%s%s", thread->tid,
                       name.length ? " " : "", snd_buf_string(&name), pid, comma, rank);
    snd_out_format(page->out, "%s %" PRIu64 " sample%s, %s s on the CPU, %s s idle\n",
                   is_process ? "," : ":", t->samples, snd_plural(t->samples),
                   snd_number_fixed(cpu, 3, (double)t->cpu_ns / 1e9),
                   snd_number_fixed(idle, 3, (double)t->idle_ns / 1e9));
    sonde_buffer_release(&name);
}

static void put_tree(struct page *page, const struct sonde_sample_thread *t)
{
    const struct sonde_samples *samples = snd_samples_data(page->doc)->shown;

    if (sonde_samples_node(samples, t->root)->time_ns > 0 &&
        !snd_sample_tree_put(samples, find_start(samples, t->root, page->style.show_all),
                             &page->style, page->out))
        snd_out_fail(page->out, ENOMEM);
    snd_out_text(page->out, "\n");
}

/* Digits of a second that the sampling interval resolves. */
static int count_decimals(double rate)
{
    double interval = rate > 0 ? 1 / rate : 0.001;

    interval = interval < 1e-9 ? 1e-9 : interval > 1 ? 1 : interval;
    return (int)ceil(-log10(interval));
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    struct snd_pypaths    paths;
    enum sonde_samples_by by = snd_samples_by(options);

    if (!snd_pypaths_read(&paths, doc->trace, snd_samples_data(doc)->shown)) {
        snd_out_fail(out, ENOMEM);
        return;
    }
    struct page page = { doc,
                         options,
                         out,
                         { &paths,
                           count_decimals(sonde_samples_rate(snd_samples_data(doc)->samples)),
                           options->colour, options->show_all, options->ascii, options->width } };
    snd_samples_head(doc, options, &paths, out);
    for (size_t i = 0; i < sonde_samples_thread_count(snd_samples_data(doc)->shown) && !out->failed;
         i++) {
        const struct sonde_sample_thread *t = sonde_samples_thread(snd_samples_data(doc)->shown, i);
        if (by != SONDE_SAMPLES_MERGED)
            put_heading(&page, t, by == SONDE_SAMPLES_BY_PROCESS);
        put_tree(&page, t);
    }
    snd_pypaths_release(&paths);
}

/* ---------------------------------------------------------------------- rows */

static void add_nodes(struct snd_doc *doc, const struct sonde_thread *thread, uint32_t pid,
                      uint32_t root)
{
    for (uint32_t at = root; at != 0;
         at = sonde_samples_next(snd_samples_data(doc)->samples, at, root)) {
        const struct sonde_sample_node *n = sonde_samples_node(snd_samples_data(doc)->samples, at);
        struct snd_cell                *cell = snd_table_add(&doc->rows);
        *cell++ = snd_cell_number(pid);
        *cell++ = snd_cell_number(thread->tid);
        *cell++ = snd_cell_number(n->depth);
        *cell++ = at == root ? snd_cell_string("[root]") : snd_cell_text(n->function);
        *cell++ = at == root ? snd_cell_none() : snd_cell_text(n->file);
        *cell++ = snd_cell_number(n->line);
        *cell++ = snd_cell_number(n->is_native);
        *cell++ = snd_cell_number((int64_t)n->samples);
        *cell++ = snd_cell_number(n->time_ns);
        *cell++ = snd_cell_number(n->self_ns);
        *cell++ = snd_cell_number(n->cpu_ns);
        *cell++ = snd_cell_number(n->gil_ns);
        *cell++ = snd_cell_number(n->time_ns - n->cpu_ns);
    }
}

static void add_thread(struct snd_table *threads, const struct sonde_sample_thread *t,
                       const struct sonde_thread *thread, uint32_t pid)
{
    struct snd_cell *cell = snd_table_add(threads);

    *cell++ = snd_cell_number(pid);
    *cell++ = snd_cell_number(thread->tid);
    *cell++ = snd_cell_text(thread->name);
    *cell++ = snd_cell_number((int64_t)t->samples);
    *cell++ = snd_cell_number(t->time_ns);
    *cell++ = snd_cell_number(t->cpu_ns);
    *cell++ = snd_cell_number(t->gil_ns);
    *cell++ = snd_cell_number(t->gil_wait_ns);
    *cell++ = snd_cell_number(t->idle_ns);
}

SND_VIEW_BUILD(snd_view_samples)
{
    uint64_t samples = 0;

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct snd_table *threads = snd_doc_section(doc, "threads", NULL, thread_columns,
                                                SND_COUNT_OF(thread_columns));
    enum sonde_status st = snd_samples_load(trace, options, options->format == SONDE_REPORT_TEXT,
                                            doc, err);
    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; i < sonde_samples_thread_count(snd_samples_data(doc)->samples); i++) {
        const struct sonde_sample_thread *t = sonde_samples_thread(snd_samples_data(doc)->samples,
                                                                   i);
        const struct sonde_thread        *thread = sonde_trace_thread(trace, t->thread);
        uint32_t                          pid = sonde_trace_process(trace, thread->process)->pid;
        samples += t->samples;
        add_thread(threads, t, thread, pid);
        if (options->format != SONDE_REPORT_TEXT)
            add_nodes(doc, thread, pid, t->root);
    }
    snd_doc_total(doc, "samples", NULL, SND_COUNT, snd_cell_number((int64_t)samples));
    doc->text = samples > 0 ? put_page : NULL;
    return SONDE_OK;
}
