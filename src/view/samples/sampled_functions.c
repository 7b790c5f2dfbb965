/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions view of a trace that counts no calls but has samples: where the time went, one row
 * per function. Threads and processes are merged as in the tree of the samples.
 */
#include "view/samples/sampled_functions.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "view/samples/sample_page.h"

#define FLAT_ROWS 20u
#define LEAST_SHARE 0.01 /* as in the tree */

/* Time off the CPU has a column of its own where it was recorded for it; data always have it. */
#define COLUMNS(off_cpu)                                            \
    {                                                               \
        { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },             \
            { "self_share", "Self %", SND_SHARE, SND_FIT_FIXED },   \
            { "total_ns", "Total", SND_TIME, SND_FIT_FIXED },       \
            { "total_share", "Total %", SND_SHARE, SND_FIT_FIXED }, \
            { "off_cpu_ns", off_cpu, SND_TIME, SND_FIT_FIXED },     \
            { "samples", NULL, SND_COUNT, SND_FIT_FIXED },          \
            { "function", "Function", SND_TEXT, SND_FIT_CONTENT },  \
            { NULL, "Where", SND_TEXT, SND_FIT_CONTENT },           \
            { "file", NULL, SND_TEXT, SND_FIT_CONTENT },            \
            { "line", NULL, SND_COUNT, SND_FIT_FIXED },             \
            { "is_native", NULL, SND_FLAG, SND_FIT_FIXED },         \
    }
static const struct snd_column columns[] = COLUMNS(NULL), off_cpu_columns[] = COLUMNS("Off CPU");

/* pstats' keys, which this view has by other names. */
static const char *find_key(const char *sort)
{
    static const struct {
        const char *pstats, *ours;
    } keys[] = { { "time", "self_ns" },     { "tottime", "self_ns" }, { "cumulative", "total_ns" },
                 { "cumtime", "total_ns" }, { "name", "function" },   { "filename", "file" } };

    for (size_t i = 0; i < SND_COUNT_OF(keys); i++)
        if (strcmp(sort, keys[i].pstats) == 0)
            return keys[i].ours;
    return sort;
}

static const char *format_place(struct snd_doc *doc, const struct snd_pypaths *paths,
                                const struct sonde_sample_function *f)
{
    struct sonde_buffer text = { 0 };
    const char         *slash = f->is_native ? memrchr(f->file.bytes, '/', f->file.length) : NULL;

    if (slash)
        snd_buf_text(&text, slash + 1);
    else
        snd_pypaths_shorten(paths, f->file, &text);
    if (f->line != 0)
        snd_buf_format(&text, ":%" PRIu32, f->line);
    return snd_doc_take(doc, &text);
}

static void add_row(struct snd_doc *doc, const struct snd_pypaths *paths,
                    const struct sonde_sample_function *f, int64_t whole_ns, bool text)
{
    const struct sonde_sample_node node = { .function = f->function, .is_native = f->is_native };
    struct snd_cell               *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_number(f->self_ns);
    *cell++ = snd_cell_share(f->self_ns, whole_ns);
    *cell++ = snd_cell_number(f->total_ns);
    *cell++ = snd_cell_share(f->total_ns, whole_ns);
    *cell++ = snd_cell_number(f->off_cpu_ns);
    *cell++ = snd_cell_number((int64_t)f->samples);
    *cell++ = text ? snd_cell_text(snd_sample_function(&node)) : snd_cell_text(f->function);
    *cell++ = snd_cell_string(format_place(doc, paths, f));
    *cell++ = snd_cell_text(f->file);
    *cell++ = snd_cell_number(f->line);
    *cell++ = snd_cell_number(f->is_native);
}

static const char *sort_key(const struct sonde_report_options *options)
{
    return options->sort ? find_key(options->sort) : "self_ns";
}

/* Whether a function's own time decides if it is shown, or all the time in which it was running. */
static bool is_by_self(const struct sonde_report_options *options)
{
    return strcmp(sort_key(options), "self_ns") == 0;
}

static void put_head(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    struct snd_pypaths paths;
    size_t             all = snd_samples_data(doc)->functions->count, shown = doc->rows.row_count;

    if (!snd_pypaths_read(&paths, doc->trace, snd_samples_data(doc)->shown)) {
        snd_out_fail(out, ENOMEM);
        return;
    }
    snd_samples_head(doc, options, &paths, out);
    if (shown < all)
        snd_out_format(out,
                       "%zu of %zu functions: those with less than 1 %% of %s time are left out; "
                       "--show-all shows them\n",
                       shown, all, is_by_self(options) ? "self" : "total");
    snd_pypaths_release(&paths);
}

static bool is_shown(const struct sonde_report_options  *options,
                     const struct sonde_sample_function *f, int64_t whole_ns)
{
    int64_t ns = is_by_self(options) ? f->self_ns : f->total_ns;

    return options->show_all || options->format != SONDE_REPORT_TEXT ||
           (double)ns >= LEAST_SHARE * (double)whole_ns;
}

/*
 * The total that a hundredth refers to: with waiting, which was requested, all that runs would be
 * hidden.
 */
static int64_t busy_time(const struct sonde_trace *trace, const struct sonde_samples *samples,
                         int64_t whole_ns)
{
    if (!snd_samples_has_waits(trace))
        return whole_ns;
    for (size_t i = 0; i < sonde_samples_thread_count(samples); i++) {
        const struct sonde_sample_thread *t = sonde_samples_thread(samples, i);
        whole_ns -= t->time_ns - t->cpu_ns;
    }
    return whole_ns > 0 ? whole_ns : 0;
}

static enum sonde_status add_functions(struct sonde_trace                *trace,
                                       const struct sonde_report_options *options,
                                       struct snd_doc *doc, struct sonde_error *err)
{
    const char        *key = sort_key(options);
    struct snd_pypaths paths;

    snd_table_init(&doc->rows, snd_samples_has_waits(trace) ? off_cpu_columns : columns,
                   SND_COUNT_OF(columns));
    enum sonde_status st = sonde_sample_functions_new(snd_samples_data(doc)->shown,
                                                      &snd_samples_data(doc)->functions, err);
    if (st != SONDE_OK)
        return st;
    if (!snd_pypaths_read(&paths, trace, snd_samples_data(doc)->shown))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the names of files");
    const struct sonde_sample_functions *all = snd_samples_data(doc)->functions;
    int64_t busy_ns = busy_time(trace, snd_samples_data(doc)->samples, all->whole_ns);
    for (size_t i = 0; i < all->count; i++)
        if (is_shown(options, &all->rows[i], busy_ns))
            add_row(doc, &paths, &all->rows[i], all->whole_ns,
                    options->format == SONDE_REPORT_TEXT);
    bool is_flat = doc->rows.row_count == 0; /* none has a hundredth: the first ones */
    for (size_t i = 0; is_flat && i < all->count && i < FLAT_ROWS; i++)
        add_row(doc, &paths, &all->rows[i], all->whole_ns, true);
    snd_pypaths_release(&paths);
    snd_doc_total(doc, "source", NULL, SND_TEXT, snd_cell_string("samples"));
    snd_doc_total(doc, "time_ns", NULL, SND_TIME, snd_cell_number(all->whole_ns));
    doc->head = put_head;
    return snd_table_sort(&doc->rows, key, err);
}

enum sonde_status snd_sampled_functions(struct sonde_trace                *trace,
                                        const struct sonde_report_options *options,
                                        struct snd_doc *doc, bool *found, struct sonde_error *err)
{
    void             *before = doc->data;
    bool              is_main = options->part == SONDE_PART_MAIN;
    enum sonde_status st = snd_samples_load(trace, options, is_main, doc, err);

    *found = st == SONDE_OK && sonde_samples_thread_count(snd_samples_data(doc)->samples) > 0;
    if (*found && is_main)
        return add_functions(trace, options, doc, err);
    doc->data = before;
    return st;
}
