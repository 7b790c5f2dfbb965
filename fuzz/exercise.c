/* SPDX-License-Identifier: Apache-2.0 */
#include "exercise.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/codec.h"
#include "read/reader.h"
#include "sonde/export.h"
#include "sonde/layers.h"
#include "sonde/model.h"
#include "sonde/tables.h"

static uint64_t sink; /* what was looked at, so that looking is not optimised away */

static void look(struct sonde_text text)
{
    sink += text.length;
    for (size_t i = 0; i <= text.length; i++) /* the NUL as well */
        sink += (unsigned char)text.bytes[i];
}

struct looker {
    const struct sonde_trace *trace;
    uint64_t                  count;
};

static bool look_at_event(const struct sonde_event *event, void *user)
{
    struct looker     *l = user;
    struct sonde_frame frames[4];
    char               text[64];

    if (l->count++ < 1000 && event->kind == SONDE_EVENT_BEGIN) {
        look(sonde_trace_string(l->trace, event->process, event->begin.name));
        sink += sonde_trace_shapes(l->trace, event->process, event->begin.shapes, text,
                                   sizeof text);
    } else if (l->count < 1000 && event->kind == SONDE_EVENT_SAMPLE) {
        if (sonde_trace_stack(l->trace, event->process, event->sample.stack, frames, 4) > 0)
            look(frames[0].function);
    }
    sink += (uint64_t)event->time_ns;
    return true;
}

static void look_at_tables(struct sonde_trace *trace)
{
    struct sonde_text key, value;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        sink += strlen(sonde_trace_process(trace, i)->host);
        sink += strlen(sonde_trace_process(trace, i)->program);
        for (uint32_t k = 0; sonde_trace_metadata(trace, i, k, &key, &value); k++) {
            look(key);
            look(value);
        }
    }
    for (uint32_t i = 0; i < sonde_trace_thread_count(trace); i++)
        look(sonde_trace_thread(trace, i)->name);
}

static void try_averages(struct sonde_trace *trace, unsigned groups)
{
    struct sonde_averages_options options = { .struct_size = sizeof options, .groups = groups };
    struct sonde_averages        *averages;

    if (sonde_averages_new(trace, &options, &averages, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        const struct sonde_average row = sonde_averages_get(averages, i);
        look(row.name);
        look(row.shapes);
        look(row.stack);
        look(row.module);
    }
    sonde_averages_free(averages);
}

static void try_tree(struct sonde_trace *trace)
{
    struct sonde_tree *tree;

    if (sonde_tree_new(trace, true, &tree, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_tree_count(tree); i++) {
        const struct sonde_node *node = sonde_tree_node(tree, i);
        look(node->name);
        if (node->parent >= sonde_tree_count(tree) || node->first_child >= sonde_tree_count(tree) ||
            node->next_sibling >= sonde_tree_count(tree))
            abort();
    }
    sonde_tree_free(tree);
}

static void try_memory(struct sonde_trace *trace)
{
    struct sonde_memory *memory;

    if (sonde_memory_new(trace, &memory, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++) {
        look(sonde_memory_holder(memory, i)->name);
        if (sonde_memory_holder(memory, i)->device >= sonde_memory_device_count(memory))
            abort();
    }
    if (sonde_memory_point_count(memory) > 1024 * sonde_memory_device_count(memory))
        abort();
    sonde_memory_free(memory);
}

static void try_summary(struct sonde_trace *trace)
{
    struct sonde_summary *summary;

    if (sonde_summary_new(trace, &summary, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        sink += strlen(sonde_summary_ledger(summary, i)->text);
    for (size_t i = 0; i < sonde_summary_step_count(summary); i++)
        sink += sonde_summary_step(summary, i)->ranges;
    sonde_summary_free(summary);
}

static void try_events(struct sonde_trace *trace, enum sonde_flops_mode flops)
{
    struct sonde_events_options options = { .struct_size = sizeof options, .flops = flops };
    struct sonde_events        *events;

    if (sonde_events_new(trace, &options, &events, NULL) != SONDE_OK)
        return;
    const struct sonde_events_columns *c = sonde_events_columns(events);
    for (size_t i = 0; i < c->count; i++) {
        look(sonde_events_text(events, c->name[i]));
        look(sonde_events_text(events, c->arguments[i]));
        sink += (uint64_t)c->self_ns[i] + c->stack[i];
        if (c->parent[i] >= 0 &&
            ((size_t)c->parent[i] >= c->count || c->start_ns[c->parent[i]] > c->start_ns[i]))
            abort();
        if (i > 0 && c->start_ns[i - 1] > c->start_ns[i])
            abort();
    }
    sonde_events_free(events);
}

static void try_modules(struct sonde_trace *trace)
{
    struct sonde_modules *modules;

    if (sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_modules_count(modules); i++) {
        const struct sonde_module *m = sonde_modules_node(modules, i);
        look(m->path);
        look(m->kind);
        if (i > 0 && m->parent >= i)
            abort();
    }
    sonde_modules_free(modules);
}

static void try_layers(struct sonde_trace *trace)
{
    struct sonde_layers *layers;
    struct sonde_text    key, value;

    if (sonde_layers_new(trace, &layers, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_layers_count(layers); i++) {
        const struct sonde_layer *layer = sonde_layers_row(layers, i);
        look(layer->name);
        for (uint32_t k = 0; k < layer->out_count; k++) {
            look(layer->out[k].dtype);
            for (uint32_t n = 0; n < layer->out[k].ndim; n++)
                sink += (uint64_t)layer->out[k].dims[n];
        }
    }
    for (size_t n = 0; sonde_layers_environment(layers, n, &key, &value); n++) {
        look(key);
        look(value);
    }
    sonde_layers_free(layers);
}

static bool look_at_output(void *user, const void *data, size_t length);

static void try_timeline(struct sonde_trace *trace)
{
    struct sonde_sink      out = { look_at_output, NULL };
    struct sonde_timeline *timeline;

    if (sonde_timeline_new(trace, 0, SONDE_NONE, &timeline, NULL) != SONDE_OK)
        return;
    for (int format = SONDE_TIMELINE_JSON; format <= SONDE_TIMELINE_HTML; format++)
        if (sonde_timeline_write(trace, timeline, (enum sonde_timeline_format)format, false, &out,
                                 NULL) != SONDE_OK)
            break; /* memory is out */
    sonde_timeline_free(timeline);
}

static bool look_at_output(void *user, const void *data, size_t length)
{
    (void)user;
    look((struct sonde_text){ data, length - 1 });
    return true;
}

/* What views have besides their main part. */
static void try_parts(struct sonde_trace *trace, const struct sonde_sink *out)
{
    static const char *const views[] = { "functions", "lines", "line-memory", "samples" };

    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        for (int part = SONDE_PART_CALLERS; part <= SONDE_PART_SUMMARY; part++) {
            struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
            options.view = views[i];
            options.part = (enum sonde_report_part)part;
            options.show_all = options.peak = options.colour = part % 2;
            if (sonde_report(trace, &options, out, NULL) == SONDE_E_ARGUMENT)
                abort();
        }
    }
}

/* Every view in every form, and every export. */
/* Every number of a text leads to one. */
static void look_at_column(const struct sonde_table *table, const struct sonde_table_column *column)
{
    const uint32_t *texts = column->data;

    for (size_t i = 0; column->type == SONDE_COLUMN_TEXT && i < sonde_table_row_count(table); i++)
        if (texts[i] < sonde_table_text_count(table))
            look(sonde_table_text(table, texts[i]));
        else if (!column->valid || column->valid[i / 8] >> i % 8 & 1)
            abort();
}

static void try_tables(struct sonde_trace *trace)
{
    const struct sonde_table_column *column;
    const char                      *name;

    for (size_t i = 0; (name = sonde_table_name(i)) != NULL; i++) {
        struct sonde_table *table;
        if (sonde_table_new(trace, name, &table, NULL) != SONDE_OK)
            continue;
        for (size_t k = 0; (column = sonde_table_column(table, k)) != NULL; k++)
            look_at_column(table, column);
        sonde_table_free(table);
    }
}

static int remove_entry(const char *path, const struct stat *at, int kind, struct FTW *walk)
{
    (void)at, (void)kind, (void)walk;
    return remove(path);
}

/* A format that is a folder of files: not each time, since files take longer than all the rest. */
static void try_folder(struct sonde_trace *trace, const char *format)
{
    static unsigned turn;
    const char     *temporary = getenv("TMPDIR");
    char            folder[512];

    if (turn++ % 16 != 0)
        return;
    snprintf(folder, sizeof folder, "%.400s/sonde-fuzz-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return;
    if (sonde_export_folder(trace, format, NULL, folder, NULL) == SONDE_E_ARGUMENT)
        abort();
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void try_exporter(struct sonde_trace *trace, const char *format,
                         const struct sonde_sink *out)
{
    if (sonde_exporter_is_folder(format))
        try_folder(trace, format);
    else if (sonde_export(trace, format, NULL, out, NULL) == SONDE_E_ARGUMENT)
        abort();
}

static void try_outputs(struct sonde_trace *trace)
{
    struct sonde_sink                 out = { look_at_output, NULL };
    const struct sonde_view_info     *view;
    const struct sonde_exporter_info *exporter;
    const char                       *found[SONDE_CONTENT_VIEWS];

    if (sonde_views_with_content(trace, found, SONDE_CONTENT_VIEWS) > SONDE_CONTENT_VIEWS)
        abort();
    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++) {
        for (int format = SONDE_REPORT_TEXT; format <= SONDE_REPORT_CSV; format++) {
            struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
            options.view = view->name;
            options.format = (enum sonde_report_format)format;
            options.groups = view->groups &
                             (SONDE_GROUP_SHAPE | SONDE_GROUP_STACK | SONDE_GROUP_THREAD);
            if (sonde_report(trace, &options, &out, NULL) == SONDE_E_ARGUMENT)
                abort();
        }
    }
    try_parts(trace, &out);
    for (size_t i = 0; (exporter = sonde_exporter_info(i)) != NULL; i++)
        try_exporter(trace, exporter->name, &out);
    try_tables(trace);
}

void exercise_trace(const uint8_t *data, size_t size)
{
    struct sonde_trace *trace;

    if (snd_trace_open_memory(data, size, &trace, NULL) != SONDE_OK)
        return;
    struct looker by_thread = { trace, 0 }, by_time = { trace, 0 };
    look_at_tables(trace);
    enum sonde_status one = sonde_trace_walk(trace, SONDE_BY_THREAD, look_at_event, &by_thread,
                                             NULL);
    enum sonde_status two = sonde_trace_walk(trace, SONDE_BY_TIME, look_at_event, &by_time, NULL);
    /* Both orders deliver the same events; breaks may differ where no time is known yet. */
    if (one != two)
        abort();
    try_averages(trace, 0);
    try_averages(trace, SONDE_GROUP_SHAPE | SONDE_GROUP_STACK | SONDE_GROUP_MODULE |
                            SONDE_GROUP_THREAD | SONDE_GROUP_PROCESS);
    try_tree(trace);
    try_memory(trace);
    try_summary(trace);
    try_events(trace, SONDE_FLOPS_FULL);
    try_events(trace, SONDE_FLOPS_TORCH);
    try_modules(trace);
    try_layers(trace);
    try_timeline(trace);
    try_outputs(trace);
    sonde_trace_close(trace);
}

/* Whole events at the start of any words. */
static size_t whole_events(const uint64_t *words, size_t count)
{
    size_t at = 0;

    while (at < count && SND_KIND_WORDS(SND_EVENT_KIND(words[at])) <= count - at)
        at += SND_KIND_WORDS(SND_EVENT_KIND(words[at]));
    return at;
}

static void check_round_trip(struct snd_codec *codec, const uint64_t *words, size_t count)
{
    const uint8_t  *packed;
    const uint64_t *back;
    size_t          size, back_count;

    if (snd_codec_pack_lane(codec, words, count, 1, &packed, &size, NULL) != SONDE_OK)
        return;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return;
    memcpy(copy, packed, size);
    if (snd_codec_unpack_lane(codec, copy, size, &back, &back_count, NULL) != SONDE_OK ||
        back_count != count || (count > 0 && memcmp(back, words, count * 8) != 0))
        abort();
    free(copy);
}

void exercise_codec(const uint8_t *data, size_t size)
{
    struct snd_codec *codec;
    const uint64_t   *words;
    const uint8_t    *bytes;
    size_t            count;

    if (snd_codec_new(&codec, NULL) != SONDE_OK)
        return;
    if (snd_codec_unpack_lane(codec, data, size, &words, &count, NULL) == SONDE_OK && count > 0)
        sink += words[count - 1];
    if (snd_codec_unpack_bytes(codec, data, size, &bytes, &count, NULL) == SONDE_OK && count > 0)
        sink += bytes[count - 1];
    uint64_t *copy = malloc(size + 8);
    if (copy) {
        memcpy(copy, data, size);
        check_round_trip(codec, copy, whole_events(copy, size / 8));
        free(copy);
    }
    snd_codec_free(codec);
}
