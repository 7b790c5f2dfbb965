/* SPDX-License-Identifier: Apache-2.0 */
/* model/diff/diff_sources.c - what sonde diff compares, from each model; declared in diff.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "model/ops/averages.h"
#include "model/diff/diff.h"
#include "model/memory/heap_stacks.h"
#include "model/network/module_parts.h"
#include "sonde/layers.h"
#include "sonde/memory.h"

static struct sonde_text text_of(const char *text)
{
    return (struct sonde_text){ text, strlen(text) };
}

static enum sonde_status no_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the rows to compare");
}

/* Adds a row, named `name` and matched by `key`. NULL: out of memory. */
static struct snd_diff_item *add_item(struct snd_diff_run *run, struct sonde_text key,
                                      struct sonde_text name)
{
    uint32_t key_at, name_at;

    if (!snd_grow(&run->items, &run->room, run->count, sizeof *run->items) ||
        !snd_texts_add(&run->texts, key.bytes, key.length, &key_at) ||
        !snd_texts_add(&run->texts, name.bytes, name.length, &name_at))
        return NULL;
    const struct snd_text *k = &run->texts.items[key_at], *n = &run->texts.items[name_at];
    run->items[run->count] = (struct snd_diff_item){ .key = { k->bytes, k->length },
                                                     .name = { n->bytes, n->length } };
    return &run->items[run->count++];
}

void snd_diff_run_release(struct snd_diff_run *run)
{
    free(run->items);
    snd_texts_release(&run->texts);
    snd_arena_release(&run->arena);
}

/* A row of which a trace has one sum: the run's only sample. */
static bool set_sum(struct snd_diff_run *run, struct snd_diff_item *item, uint64_t count,
                    int64_t time_ns, int64_t bytes)
{
    double *ns = snd_arena_take(&run->arena, sizeof *ns);

    if (!ns)
        return false;
    *ns = (double)time_ns;
    item->all = item->in_steps = (struct snd_diff_sums){ count, time_ns, bytes, 0 };
    item->steps = item->calls = (struct snd_diff_series){ ns, 1 };
    return true;
}

/* ------------------------------------------------------ operators and modules */

static bool fill_averages(const struct sonde_averages   *averages,
                          const struct snd_diff_sampler *sampler, struct snd_diff_run *run)
{
    for (size_t i = 0; i < sonde_averages_count(averages); i++) {
        struct sonde_average  row = sonde_averages_get(averages, i);
        struct snd_diff_item *item = add_item(run, row.name, row.name);
        if (!item)
            return false;
        bool kept = row.on_device
                        ? set_sum(run, item, row.count, row.self_device_ns, 0)
                        : snd_diff_sampler_give(sampler,
                                                snd_average_id(averages, &averages->rows[i]), run,
                                                item);
        if (!kept)
            return false;
        if (item->all.count == 0) { /* memory outside any range: no time */
            item->all.count = item->in_steps.count = row.count;
            item->all.bytes = item->in_steps.bytes = snd_add(row.self_cpu_bytes,
                                                             row.self_device_bytes);
        }
    }
    return snd_diff_sampler_steps(sampler, run);
}

static enum sonde_status fill_ops(struct sonde_trace *trace, struct snd_diff_run *run,
                                  struct sonde_error *err)
{
    struct snd_diff_sampler sampler = { .trace = trace };
    struct snd_consumer     beside = snd_diff_sampler_consumer(&sampler);
    struct sonde_averages  *averages = NULL;
    enum sonde_status       st = snd_averages_beside(trace, NULL, &beside, &averages, err);

    if (st == SONDE_OK && (sampler.failed || !fill_averages(averages, &sampler, run)))
        st = no_memory(err);
    sonde_averages_free(averages);
    snd_diff_sampler_release(&sampler);
    return st;
}

static bool fill_nodes(const struct sonde_modules *modules, const struct snd_diff_sampler *sampler,
                       struct snd_diff_run *run)
{
    for (uint32_t i = 1; i < sonde_modules_count(modules); i++) {
        const struct sonde_module *node = sonde_modules_node(modules, i);
        struct snd_diff_item      *item = add_item(run, node->path, node->path);
        if (!item || !snd_diff_sampler_give(sampler, i, run, item))
            return false;
    }
    return snd_diff_sampler_steps(sampler, run);
}

static enum sonde_status fill_modules(struct sonde_trace *trace, struct snd_diff_run *run,
                                      struct sonde_error *err)
{
    struct snd_diff_sampler sampler = { .trace = trace };
    struct snd_consumer     beside = snd_diff_sampler_consumer(&sampler);
    struct sonde_modules   *modules = NULL;
    enum sonde_status st = snd_modules_beside(trace, SONDE_FLOPS_FULL, &beside, &modules, err);

    if (st == SONDE_OK && (sampler.failed || !fill_nodes(modules, &sampler, run)))
        st = no_memory(err);
    sonde_modules_free(modules);
    snd_diff_sampler_release(&sampler);
    return st;
}

/* ------------------------------------------------------- functions and lines */

/* A file may be in another folder, and a function on another line, of the other side. */
static struct sonde_text base_name(struct sonde_text file)
{
    const char *slash = file.length ? memrchr(file.bytes, '/', file.length) : NULL;

    if (!slash)
        return file;
    return (struct sonde_text){ slash + 1, file.length - (size_t)(slash + 1 - file.bytes) };
}

/* As pstats: "file:line(function)". Native functions have no line, ranges no file either. */
static void name_place(struct sonde_buffer *name, struct sonde_text base, uint32_t line,
                       struct sonde_text function)
{
    if (base.length == 0) {
        snd_buf_put(name, function.bytes, function.length);
        return;
    }
    snd_buf_put(name, base.bytes, base.length);
    if (line > 0 || base.bytes[0] == '~')
        snd_buf_format(name, ":%" PRIu32, line);
    snd_buf_text(name, "(");
    snd_buf_put(name, function.bytes, function.length);
    snd_buf_text(name, ")");
}

static struct snd_diff_item *add_place(struct snd_diff_run *run, struct sonde_text file,
                                       uint32_t line, struct sonde_text function, int64_t offset)
{
    struct sonde_buffer key = { 0 }, name = { 0 };
    struct sonde_text   base = base_name(file);

    snd_buf_put(&key, base.bytes, base.length);
    snd_buf_text(&key, ":");
    snd_buf_put(&key, function.bytes, function.length);
    if (offset >= 0)
        snd_buf_format(&key, "+%" PRId64, offset);
    name_place(&name, base, offset >= 0 ? line + (uint32_t)offset : line, function);
    struct snd_diff_item *item = NULL;
    if (!key.failed && !name.failed)
        item = add_item(run, (struct sonde_text){ key.bytes, key.length },
                        (struct sonde_text){ name.bytes, name.length });
    sonde_buffer_release(&key);
    sonde_buffer_release(&name);
    return item;
}

static enum sonde_status fill_sampled(struct sonde_trace *trace, struct snd_diff_run *run,
                                      struct sonde_error *err)
{
    const struct sonde_samples_options merged = { .struct_size = sizeof merged,
                                                  .by = SONDE_SAMPLES_MERGED };
    struct sonde_samples              *samples = NULL;
    struct sonde_sample_functions     *functions = NULL;
    enum sonde_status                  st = sonde_samples_new(trace, &merged, &samples, err);

    run->is_sampled = true;
    if (st == SONDE_OK)
        st = sonde_sample_functions_new(samples, &functions, err);
    for (size_t i = 0; st == SONDE_OK && i < functions->count; i++) {
        const struct sonde_sample_function *f = &functions->rows[i];
        struct snd_diff_item *item = add_place(run, f->file, f->line, f->function, -1);
        if (!item || !set_sum(run, item, f->samples, f->self_ns, 0))
            st = no_memory(err);
    }
    sonde_sample_functions_free(functions);
    sonde_samples_free(samples);
    return st;
}

static enum sonde_status fill_functions(struct sonde_trace *trace, struct snd_diff_run *run,
                                        struct sonde_error *err)
{
    struct sonde_functions *functions = NULL;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    for (size_t i = 0; st == SONDE_OK && i < sonde_functions_count(functions); i++) {
        const struct sonde_function *f = sonde_functions_row(functions, i);
        struct snd_diff_item        *item = add_place(run, f->file, f->line, f->name, -1);
        if (!item || !set_sum(run, item, f->calls, f->self_ns, 0))
            st = no_memory(err);
    }
    sonde_functions_free(functions);
    return st == SONDE_OK && run->count == 0 ? fill_sampled(trace, run, err) : st;
}

static bool fill_function_lines(const struct sonde_lines         *lines,
                                const struct sonde_line_function *f, struct snd_diff_run *run)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const struct sonde_line *line = sonde_lines_line(lines, f->first + i);
        int64_t offset = line->line >= f->line ? (int64_t)(line->line - f->line) : 0;
        if (line->hits == 0)
            continue;
        struct snd_diff_item *item = add_place(run, f->file, f->line, f->name, offset);
        if (!item || !set_sum(run, item, line->hits, line->time_ns, line->increment_bytes))
            return false;
    }
    return true;
}

static enum sonde_status fill_lines(struct sonde_trace *trace, struct snd_diff_run *run,
                                    struct sonde_error *err)
{
    struct sonde_lines *lines = NULL;
    enum sonde_status   st = sonde_lines_new(trace, SONDE_LINES_TIME, &lines, err);

    for (size_t i = 0; st == SONDE_OK && i < sonde_lines_function_count(lines); i++)
        if (!fill_function_lines(lines, sonde_lines_function(lines, i), run))
            st = no_memory(err);
    sonde_lines_free(lines);
    return st;
}

/* -------------------------------------------------------------------- layers */

static enum sonde_status fill_layers(struct sonde_trace *trace, struct snd_diff_run *run,
                                     struct sonde_error *err)
{
    struct sonde_layers *layers = NULL;
    enum sonde_status    st = sonde_layers_new(trace, &layers, err);

    for (size_t i = 0; st == SONDE_OK && i < sonde_layers_count(layers); i++) {
        const struct sonde_layer  *layer = sonde_layers_row(layers, i);
        const struct sonde_spread *time = &layer->time[SONDE_LAYER_FORWARD];
        char                       number[32];
        snprintf(number, sizeof number, "layer %" PRIu32, layer->number);
        struct snd_diff_item *item = add_item(run, text_of(number),
                                              layer->name.length ? layer->name : text_of(number));
        if (!item || !set_sum(run, item, time->count, (int64_t)(time->median_ns + 0.5),
                              layer->parameter_bytes))
            st = no_memory(err);
    }
    sonde_layers_free(layers);
    return st;
}

/* ------------------------------------------------------------------- the run */

/* Of the longest process: from the beginning of its recording to its end. */
static int64_t time_of_run(const struct sonde_trace *trace)
{
    int64_t longest = 0;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        const struct sonde_process *p = sonde_trace_process(trace, i);
        int64_t                     took = snd_sub(p->stop_ns, p->start_ns);
        longest = took > longest ? took : longest;
    }
    return longest;
}

/* The most that was held: the peaks of the heaps; without --heap, those of the devices' tensors. */
static enum sonde_status find_peak(struct sonde_trace *trace, int64_t *bytes,
                                   struct sonde_error *err)
{
    struct snd_heaps      *heaps = NULL;
    struct sonde_memory   *memory = NULL;
    const struct snd_heap *heap;
    enum sonde_status      st = snd_heaps_new(trace, false, &heaps, err);

    *bytes = 0;
    for (uint32_t i = 0; st == SONDE_OK && (heap = snd_heaps_heap(heaps, i)) != NULL; i++)
        *bytes = snd_add(*bytes, (int64_t)heap->sums.peak_bytes);
    if (st == SONDE_OK && *bytes == 0)
        st = sonde_memory_new(trace, &memory, err);
    for (size_t i = 0; memory && i < sonde_memory_device_count(memory); i++)
        *bytes = snd_add(*bytes, sonde_memory_device(memory, i)->peak_bytes);
    sonde_memory_free(memory);
    snd_heaps_free(heaps);
    return st;
}

static enum sonde_status fill_run(struct sonde_trace *trace, struct snd_diff_run *run,
                                  struct sonde_error *err)
{
    int64_t           bytes, took_ns = time_of_run(trace);
    enum sonde_status st = find_peak(trace, &bytes, err);

    if (st != SONDE_OK || took_ns <= 0)
        return st;
    struct snd_diff_item *item = add_item(run, text_of("run"), text_of("the run"));
    return item && set_sum(run, item, 1, took_ns, bytes) ? SONDE_OK : no_memory(err);
}

/* clang-format off */
const struct snd_diff_source snd_diff_sources[] = {
    { "ops",       "call", "operators and ranges, self time",
      SND_DIFF_COUNT | SND_DIFF_MEMORY | SND_DIFF_FLOPS, fill_ops },
    { "modules",   "call", "modules of a network, without their children's",
      SND_DIFF_COUNT | SND_DIFF_MEMORY | SND_DIFF_FLOPS, fill_modules },
    { "layers",    "pass", "layers, the median of their passes",
      SND_DIFF_COUNT | SND_DIFF_MEMORY, fill_layers },
    { "functions", "run",  "functions of Python or of samples, self time", SND_DIFF_COUNT, fill_functions },
    { "lines",     "run",  "lines of Python functions", SND_DIFF_COUNT, fill_lines },
    { "run",       "run",  "the run itself: its time, and the most memory that it held",
      SND_DIFF_MEMORY, fill_run },
};
/* clang-format on */
const size_t snd_diff_source_count = SND_COUNT_OF(snd_diff_sources);
