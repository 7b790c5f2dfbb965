/* SPDX-License-Identifier: Apache-2.0 */
/* The views of the report page, as sonde_report() has them, and the page's head. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/page/page.h"
#include "export/timeline/gpu_streams.h"
#include "read/said/trace_metadata.h"

/* --------------------------------------------------------------------- views */

/* The groups that are useful for a view: those that the trace has more than one of. */
static unsigned useful_groups(const struct snd_html *page, const struct sonde_averages_totals *all,
                              unsigned groups)
{
    unsigned useful = SONDE_GROUP_MODULE | SONDE_GROUP_OPERATOR | SONDE_GROUP_GRID;

    if (all->has_shapes)
        useful |= SONDE_GROUP_SHAPE;
    if (all->has_stacks)
        useful |= SONDE_GROUP_STACK;
    if (sonde_trace_thread_count(page->trace) > 1)
        useful |= SONDE_GROUP_THREAD;
    if (sonde_trace_process_count(page->trace) > 1)
        useful |= SONDE_GROUP_PROCESS;
    if (!(page->content & SND_HAS_MODULES))
        useful &= ~(unsigned)SONDE_GROUP_MODULE;
    return groups & useful;
}

/* What the page does with a view besides showing its table; the words of them in its data. */
enum {
    SND_PAGE_FINDS = 1,      /* a row's click finds its name in the timeline */
    SND_PAGE_BLANK = 2,      /* rows may lack a share */
    SND_PAGE_INDENTS = 4,    /* names are set in by their depth */
    SND_PAGE_PART = 8,       /* has a part of its own, where it has rows */
    SND_PAGE_ELSEWHERE = 16, /* is shown in another part */
    SND_PAGE_LEFT_OUT = 32,  /* is not in the page: it takes long */
};
static const char *const traits[] = { "finds", "blank", "indents", "part", "elsewhere" };

#define SND_ALWAYS UINT_MAX
#define SND_PAGE(title, traits, needs) title, traits, needs
#define SND_VIEW(name, function, summary, groups, sorting, page, absence) { page },
static const struct page_view {
    const char *title;
    unsigned    traits, needs; /* any of enum snd_content; SND_ALWAYS */
} page_views[] = {
#include "view/views.def"
};
#undef SND_VIEW

static void put_traits(struct sonde_buffer *text, unsigned has)
{
    const char *comma = "";

    snd_buf_text(text, "\"traits\":[");
    for (size_t i = 0; i < SND_COUNT_OF(traits); i++)
        if (has & 1u << i) {
            snd_buf_format(text, "%s\"%s\"", comma, traits[i]);
            comma = ",";
        }
    snd_buf_text(text, "],");
}

/* A view without rows; the member `key` gives the reason. */
static void put_without(struct sonde_buffer *text, const char *view, const char *key,
                        const char *message)
{
    struct sonde_sink sink = sonde_sink_buffer(text);
    struct snd_out    out;
    struct snd_json   json;

    snd_out_init(&out, &sink);
    snd_json_init(&json, &out);
    snd_json_object(&json, NULL);
    snd_json_text(&json, "view", view);
    snd_json_text(&json, key, message);
    static const char *const lists[] = { "totals", "sections", "columns", "rows" };
    for (size_t i = 0; i < SND_COUNT_OF(lists); i++)
        snd_json_raw(&json, lists[i], "[]", 2);
    snd_json_uint(&json, "row_count", 0);
    snd_json_end(&json);
    text->failed |= snd_out_finish(&out, NULL) != SONDE_OK;
}

static void put_view(struct snd_html *page, const struct sonde_view_info *info,
                     const struct page_view *view, const struct sonde_word *group)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_error          err;
    struct sonde_sink           sink = sonde_sink_buffer(&page->text);

    options.view = info->name;
    options.format = SONDE_REPORT_COLUMNS;
    options.rows = SND_HTML_ROWS;
    options.no_source = page->no_source;
    options.groups = group ? (unsigned)group->value : 0;
    if (strcmp(info->name, "ops") == 0)
        options.sort = "self_cpu_time_total";
    snd_buf_clear(&page->text);
    snd_buf_format(&page->text, "{\"title\":\"%s\",\"summary\":\"%s\",\"group\":\"%s\",",
                   view->title, info->summary, group ? group->name : "");
    put_traits(&page->text, view->traits);
    snd_buf_text(&page->text, "\"document\":");
    size_t head = page->text.length;
    if (page->no_source && strcmp(info->name, "source") == 0) {
        put_without(&page->text, info->name, "empty", "Left out by --no-source.");
    } else if (view->needs != SND_ALWAYS && !(view->needs & page->content)) {
        const char *why = sonde_view_absence(page->trace, info->name);
        put_without(&page->text, info->name, "empty", why ? why : "The trace has nothing of this.");
    } else {
        enum sonde_status st = sonde_report(page->trace, &options, &sink, &err);
        page->failed |= st == SONDE_E_NOMEM;
        if (st != SONDE_OK && !page->text.failed) { /* the view shows why it has no rows */
            page->text.length = head;
            put_without(&page->text, info->name, "error", err.message);
        }
    }
    snd_buf_text(&page->text, "}");
    snd_html_json(page, "VIEW", &page->text);
}

enum sonde_status snd_html_views(struct snd_html *page, struct sonde_error *err)
{
    const struct sonde_view_info *info;
    const struct sonde_word      *group;
    struct sonde_averages        *averages;
    enum sonde_status             st = sonde_averages_new(page->trace, NULL, &averages, err);

    if (st != SONDE_OK)
        return st;
    const struct sonde_averages_totals *all = sonde_averages_totals(averages);
    for (size_t i = 0; (info = sonde_view_info(i)) != NULL; i++) {
        const struct page_view *view = &page_views[i];
        if (view->traits & SND_PAGE_LEFT_OUT)
            continue;
        put_view(page, info, view, NULL);
        unsigned groups = useful_groups(page, all, info->groups);
        bool     ranges = strcmp(info->name, "ops") == 0 || all->uses_gpu;
        for (size_t g = 0; ranges && (group = sonde_word(SONDE_WORDS_GROUP, g)) != NULL; g++)
            if (groups & (unsigned)group->value)
                put_view(page, info, view, group);
    }
    sonde_averages_free(averages);
    return SONDE_OK;
}

/* ---------------------------------------------------------------------- head */

/* What a person calls it; of a job, which rank it is before that. */
static void put_title(struct snd_html *page, uint32_t process, struct snd_json *json)
{
    struct sonde_text   title = snd_meta_title(page->trace, process);
    uint32_t            rank = sonde_trace_process(page->trace, process)->rank;
    struct sonde_buffer text = { 0 };

    if (rank != SONDE_NONE)
        snd_buf_format(&text, "rank %" PRIu32 ": ", rank);
    snd_buf_put(&text, title.bytes, title.length);
    snd_json_string(json, "title", snd_buf_string(&text), text.length);
    page->failed |= text.failed;
    sonde_buffer_release(&text);
}

static void put_processes(struct snd_html *page, struct snd_json *json)
{
    snd_json_array(json, "processes");
    for (uint32_t i = 0; i < sonde_trace_process_count(page->trace); i++) {
        const struct sonde_process *process = sonde_trace_process(page->trace, i);
        snd_json_object(json, NULL);
        snd_json_uint(json, "pid", snd_export_pid(page->trace, i));
        put_title(page, i, json);
        snd_json_text(json, "host", process->host);
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_json_array(json, "threads");
    for (uint32_t i = 0; i < sonde_trace_thread_count(page->trace); i++) {
        const struct sonde_thread *thread = sonde_trace_thread(page->trace, i);
        snd_json_object(json, NULL);
        snd_json_uint(json, "process", thread->process);
        snd_json_uint(json, "tid", thread->tid);
        snd_json_string(json, "name", thread->name.bytes, thread->name.length);
        snd_json_end(json);
    }
    snd_json_end(json);
}

/* The queues of GPUs that work ran on. */
static enum sonde_status put_streams(struct snd_html *page, struct snd_json *json,
                                     struct sonde_error *err)
{
    const struct snd_devices *devices;
    struct snd_map            known = { 0 };
    uint32_t                  unused;
    enum sonde_status         st = snd_trace_devices_by_time(page->trace, &devices, err);

    snd_json_array(json, "streams");
    for (uint32_t i = 0; st == SONDE_OK && devices && i < devices->count; i++) {
        const struct snd_device_item *item = &devices->items[devices->by_time[i]];
        struct snd_key                key = { item->process, item->queue, 0 };
        if (snd_map_get(&known, key, &unused) ||
            !snd_work_counts(snd_device_work(page->trace, item)))
            continue;
        page->failed |= !snd_map_put(&known, key, 0);
        snd_buf_clear(&page->text);
        snd_stream_name(snd_device_queue(page->trace, item), &page->text);
        snd_json_object(json, NULL);
        snd_json_uint(json, "process", item->process);
        snd_json_uint(json, "queue", item->queue);
        snd_json_text(json, "name", snd_buf_string(&page->text));
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_map_release(&known);
    return st;
}

static void put_highlights(const struct snd_highlights *highlights, struct snd_json *json)
{
    snd_json_array(json, "highlights");
    for (size_t i = 0; i < highlights->count; i++) {
        snd_json_object(json, NULL);
        snd_json_text(json, "text", highlights->items[i].text);
        snd_json_text(json, "detail", highlights->items[i].detail);
        snd_json_text(json, "link", highlights->items[i].link);
        if (highlights->items[i].advice)
            snd_json_text(json, "advice", highlights->items[i].advice);
        snd_json_end(json);
    }
    snd_json_end(json);
}

/* The files that are compared: what is seen of them elsewhere is of the first of B. */
static void put_sides(const struct snd_html *page, struct snd_json *json)
{
    const struct snd_html_sides *sides = page->sides;

    if (!sides)
        return;
    snd_json_array(json, "a");
    for (size_t i = 0; i < sides->a_runs + sides->b_runs; i++) {
        if (i == sides->a_runs) {
            snd_json_end(json);
            snd_json_array(json, "b");
        }
        bool is_empty = sonde_trace_process_count(sides->traces[i]) == 0;
        snd_json_text(json, NULL, is_empty ? "" : sonde_trace_process(sides->traces[i], 0)->path);
    }
    snd_json_end(json);
}

static void put_texts(struct snd_html *page, struct snd_json *json)
{
    snd_json_array(json, "texts");
    for (uint32_t i = 0; i < page->texts.count; i++)
        snd_json_string(json, NULL, page->texts.items[i].bytes, page->texts.items[i].length);
    snd_json_end(json);
}

enum sonde_status snd_html_head(struct snd_html *page, struct sonde_error *err)
{
    struct sonde_buffer   text = { 0 };
    struct sonde_sink     sink = sonde_sink_buffer(&text);
    struct snd_out        out;
    struct snd_json       json;
    struct snd_highlights highlights;
    enum sonde_status     st = snd_highlights_find(page->trace, page->content, &highlights, err);

    if (st != SONDE_OK)
        return st;
    snd_out_init(&out, &sink);
    snd_json_init(&json, &out);
    snd_json_object(&json, NULL);
    snd_json_text(&json, "version", sonde_version());
    snd_json_uint(&json, "spans", page->span_count);
    put_processes(page, &json);
    st = put_streams(page, &json, err);
    snd_buf_text(&page->counter_names, "]");
    snd_json_raw(&json, "counters", snd_buf_string(&page->counter_names),
                 page->counter_names.length);
    put_highlights(&highlights, &json);
    put_sides(page, &json);
    put_texts(page, &json);
    snd_json_end(&json);
    page->failed |= snd_out_finish(&out, NULL) != SONDE_OK;
    snd_html_json(page, "HEAD", &text);
    sonde_buffer_release(&text);
    return st;
}
