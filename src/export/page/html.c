/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report page: one HTML file with all that a trace has, to be opened in a browser, from disk.
 *
 * The page itself is built from report/ and is part of the binary (page_template.h); what is written here
 * is the data at its mark: sections (page.h), compressed, as base64.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "export/encode/base64.h"
#include "export/chrome/chrome.h"
#include "export/common/exporter.h"
#include "export/encode/gzip.h"
#include "export/page/page.h"
#include "export/page/page_template.h"
#include "model/highlights/advice.h"
#include "model/kept.h"
#include "model/ops/ops_wait.h"
#include "model/summary/summary.h"
#include "snd_config.h"

static const struct {
    size_t      offset; /* of a block in struct snd_html */
    const char *kind;
    uint32_t    columns;
} blocks[] = {
    { offsetof(struct snd_html, spans), "SPAN", 8 },
    { offsetof(struct snd_html, works), "WORK", 7 },
    { offsetof(struct snd_html, links), "LINK", 3 },
    { offsetof(struct snd_html, calls), "CALL", 3 },
    { offsetof(struct snd_html, meetings), "MEET", 4 },
    { offsetof(struct snd_html, marks), "MARK", 4 },
    { offsetof(struct snd_html, steps), "STEP", 3 },
    { offsetof(struct snd_html, counters), "COUN", 3 },
    { offsetof(struct snd_html, blocks), "ALLO", 5 },
    { offsetof(struct snd_html, memory), "MEMO", 4 },
    { offsetof(struct snd_html, samples), "SAMP", 5 },
    { offsetof(struct snd_html, stacks), "STAC", 5 },
};

static struct snd_html_block *block_at(struct snd_html *page, size_t i)
{
    return (struct snd_html_block *)(void *)((char *)page + blocks[i].offset);
}

static bool prepare(struct snd_html *page)
{
    uint32_t unused;
    size_t   processes = sonde_trace_process_count(page->trace);
    bool     good = snd_texts_add(&page->texts, "", 0, &unused);

    page->by_name = calloc((size_t)page->trace->names.count + 1, sizeof *page->by_name);
    page->last_ns = calloc((size_t)page->trace->thread_count + 1, sizeof *page->last_ns);
    page->last_sample_ns = calloc((size_t)page->trace->thread_count + 1,
                                  sizeof *page->last_sample_ns);
    page->is_torch = calloc(processes + 1, sizeof *page->is_torch);
    good &= page->by_name && page->last_ns && page->last_sample_ns && page->is_torch;
    good &= snd_arrows_init(&page->arrows, page->trace);
    for (size_t i = 0; i < SND_COUNT_OF(blocks); i++)
        good &= snd_html_block_init(block_at(page, i), blocks[i].kind, blocks[i].columns);
    for (uint32_t i = 0; good && i < processes; i++)
        page->is_torch[i] = snd_export_is_torch(page->trace, i);
    snd_buf_text(&page->counter_names, "[");
    return good;
}

static void release(struct snd_html *page)
{
    for (size_t i = 0; i < SND_COUNT_OF(blocks); i++)
        snd_html_block_release(block_at(page, i));
    snd_arrows_release(&page->arrows);
    snd_map_release(&page->numbers);
    snd_map_release(&page->tracks);
    snd_map_release(&page->held_map);
    free(page->held);
    snd_texts_release(&page->texts);
    sonde_buffer_release(&page->text);
    sonde_buffer_release(&page->counter_names);
    free(page->by_name);
    free(page->last_ns);
    free(page->last_sample_ns);
    free(page->is_torch);
}

/*
 * What may wait to be compressed. Most of a page's bytes are made in the first walk, faster than they are compressed: that goes
 * on while models are made of the walks that follow.
 */
#define AHEAD_BYTES ((size_t)128 << 20)

/* What a page is made of. */
struct content {
    struct sonde_trace          *trace;
    const struct snd_html_sides *sides; /* NULL: nothing is compared */
    bool                         no_source;
};

static enum sonde_status put_sections(const struct content *content, const struct sonde_sink *sink,
                                      bool apart, struct sonde_error *err)
{
    struct snd_out        out;
    struct snd_html       page = { .trace = content->trace,
                                   .sides = content->sides,
                                   .out = &out,
                                   .no_source = content->no_source };
    struct sonde_summary *summary;
    struct snd_advisor   *advisor = NULL;
    struct snd_ops        ops = { 0 };
    enum sonde_status     st = snd_summary_begin(content->trace, &summary, err);

    snd_out_init(&out, sink);
    snd_out_apart(&out, apart ? AHEAD_BYTES : 0);
    snd_kept_begin(content->trace);
    page.failed = !prepare(&page);
    if (st ==
        SONDE_OK) /* what views will ask for is there after the first walk that may have others */
        st = snd_advisor_new(content->trace, &advisor, err);
    if (st == SONDE_OK)
        st = snd_ops_wait(content->trace, &ops, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_html_timeline(&page, err);
    if (st == SONDE_OK && !page.failed && (page.content & SND_HAS_COLLECTIVES))
        st = snd_html_collectives(&page, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_html_memory(&page, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_ops_finish(content->trace, &ops,
                            err); /* the advice is there after the same walk */
    if (st == SONDE_OK && !page.failed)
        st = snd_advisor_finish(advisor, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_html_trees(&page, err);
    if (st == SONDE_OK && !page.failed && (page.content & SND_HAS_HEAP))
        st = snd_html_heap_moments(&page, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_summary_finish(summary, true, err);
    if (st == SONDE_OK && !page.failed) {
        snd_summary_share(summary);
        st = snd_html_views(&page, err);
    }
    if (st == SONDE_OK && !page.failed && content->sides)
        st = snd_html_diff(&page, err);
    if (st == SONDE_OK && !page.failed)
        st = snd_html_head(&page, err); /* last: it has the texts of all */
    if (st == SONDE_OK && (page.failed || page.text.failed || page.counter_names.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the report page");
    release(&page);
    snd_advisor_free(advisor);
    snd_ops_release(&ops);
    snd_kept_end(content->trace);
    sonde_summary_free(summary);
    return snd_out_end(&out, st, err);
}

/*
 * Without zlib the page is larger; nothing else differs. What compresses the sections also writes to `out`,
 * which nobody else uses meanwhile.
 */
static enum sonde_status put_data(const struct content *content, struct snd_out *out,
                                  struct sonde_error *err)
{
    struct snd_base64 base64 = { .out = out };
    struct sonde_sink sink = snd_base64_sink(&base64);
    enum sonde_status st;

    if (SND_HAVE_ZLIB) {
        struct snd_gzip *gzip;
        st = snd_gzip_new(&sink, SND_GZIP_FAST, &gzip, err);
        if (st != SONDE_OK)
            return st;
        struct sonde_sink inner = snd_gzip_sink(gzip);
        st = put_sections(content, &inner, out->ahead > 0, err);
        if (st == SONDE_OK)
            st = snd_gzip_finish(gzip, err);
        snd_gzip_free(gzip);
    } else {
        st = put_sections(content, &sink, false, err);
    }
    snd_base64_finish(&base64);
    return st;
}

static enum sonde_status put_page(const struct content *content, struct snd_out *out,
                                  struct sonde_error *err)
{
    const char *mark = strstr(snd_html_template, SND_HTML_DATA_MARK);

    if (!mark)
        return snd_fail(err, SONDE_E_UNSUPPORTED, "this build's report page has no place for data");
    snd_out_put(out, snd_html_template, (size_t)(mark - snd_html_template));
    enum sonde_status st = put_data(content, out, err);
    snd_out_text(out, mark + strlen(SND_HTML_DATA_MARK));
    return st;
}

SND_EXPORT_WRITE(snd_export_html)
{
    struct content content = { .trace = trace, .no_source = options->no_source };

    return put_page(&content, out, err);
}

enum sonde_status sonde_diff_page(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                                  const struct sonde_export_options *options,
                                  const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_html_sides       sides = { traces, a_runs, b_runs };
    struct sonde_export_options used;
    enum sonde_status           st = snd_export_options(options, &used, err);
    struct snd_out              out;

    if (st != SONDE_OK)
        return st;
    if (a_runs == 0 || b_runs == 0)
        return snd_fail(err, SONDE_E_ARGUMENT, "expected a trace of each side, got %zu and %zu",
                        a_runs, b_runs);
    snd_out_init(&out, sink);
    snd_out_apart(&out, snd_sink_is_fd(sink) ? SND_AHEAD_FEW : 0);
    struct content content = { .trace = traces[a_runs],
                               .sides = &sides,
                               .no_source = used.no_source };
    return snd_out_end(&out, put_page(&content, &out, err), err);
}
