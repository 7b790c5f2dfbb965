/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde model: what a PyTorch model costs, as a whole, by layer, operator and node of its graph.
 *
 * Python loads the model and runs it, recorded, into a folder of traces (python/sonde/model);
 * everything that is shown is read from those, here. What was measured before something failed is
 * shown all the same, and the exit status says that it did.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/files/folders.h"
#include "base/text/buf.h"
#include "base/text/compare.h"
#include "cli/commands.h"
#include "cli/process/find_python.h"
#include "cli/options/view_options.h"
#include "pipe/whole_file.h"
#include "sonde/graph.h"

struct model_args {
    const char *batches, *input, *dtype, *device, *levels, *output, *trace;
    int64_t     warmup, iterations, passes, rows;
    bool        backward, json, wide;
};

#define AT(member) offsetof(struct model_args, member)
static const struct snd_option options[] = {
    { 'b', "batch", "LIST", "batch sizes, comma-separated (1)", SND_OPTION_TEXT, AT(batches), 0 },
    { 's', "input", "SHAPE",
      "input shape without the batch: 3x224x224, ids=128:int64; several: separated by ';' "
      "(default: the model's)",
      SND_OPTION_TEXT, AT(input), 0 },
    { 0, "dtype", "TYPE", "float32, float16, bfloat16, float64 (the model's)", SND_OPTION_TEXT,
      AT(dtype), 0 },
    { 'd', "device", "DEVICE", "cpu, cuda, cuda:1 (cpu)", SND_OPTION_TEXT, AT(device), 0 },
    { 0, "warmup", "N", "warm-up runs (3)", SND_OPTION_NUMBER, AT(warmup), 0 },
    { 'i', "iterations", "N", "timed runs for each batch size (20)", SND_OPTION_NUMBER,
      AT(iterations), 1 },
    { 0, "passes", "N", "passes that record layers and operators (3)", SND_OPTION_NUMBER,
      AT(passes), 1 },
    { 0, "backward", NULL, "also the backward pass: layers and operators of training passes",
      SND_OPTION_FLAG, AT(backward), 0 },
    { 0, "level", "LIST",
      "levels to show, comma-separated: model, layer, op, graph (model,layer,op)", SND_OPTION_TEXT,
      AT(levels), 0 },
    { 'n', "rows", "N", "text: operators and nodes shown (20); -1 shows all", SND_OPTION_NUMBER,
      AT(rows), -1 },
    { 'o', "output", "FILE",
      "write to a file: .yml as pytorch-benchmark, .json the same, any other "
      "name text",
      SND_OPTION_TEXT, AT(output), 0 },
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, AT(json), 0 },
    { 0, "wide", NULL, "text: show all columns, even if wider than the terminal", SND_OPTION_FLAG,
      AT(wide), 0 },
    { 0, "trace", "FOLDER", "keep the traces in a new folder", SND_OPTION_TEXT, AT(trace), 0 },
};

/* ---------------------------------------------------------------- options */

/* -1 to go on, or the exit status. */
static int check_batches(const struct snd_command *self, const char *list)
{
    for (const char *at = list;;) {
        size_t length = strcspn(at, ","), digits = strspn(at, "0123456789");
        if (digits == 0 || digits != length || digits > 7 || strtol(at, NULL, 10) < 1)
            return snd_usage_error(self,
                                   "--batch: expected integers >= 1, comma-separated, got '%.*s'",
                                   (int)length, at);
        if (at[length] == '\0')
            return -1;
        at += length + 1;
    }
}

static int read_levels(const struct snd_command *self, const char *list, unsigned *levels)
{
    static const struct {
        const char *name;
        unsigned    level;
    } names[] = { { "model", SONDE_LEVEL_MODEL },
                  { "layer", SONDE_LEVEL_LAYER },
                  { "op", SONDE_LEVEL_OP },
                  { "graph", SONDE_LEVEL_GRAPH } };

    *levels = 0;
    for (const char *at = list; *at;) {
        size_t   length = strcspn(at, ",");
        unsigned found = 0;
        for (size_t i = 0; i < SND_COUNT_OF(names); i++)
            if (strlen(names[i].name) == length && strncmp(names[i].name, at, length) == 0)
                found = names[i].level;
        if (!found)
            return snd_usage_error(self, "--level: expected model, layer, op or graph, got '%.*s'",
                                   (int)length, at);
        *levels |= found;
        at += length + (at[length] == ',');
    }
    return *levels ? -1
                   : snd_usage_error(self, "--level: expected model, layer, op or graph, got ''");
}

/* ------------------------------------------------------------- the folder */

/* Makes the folder for the traces; -1 to go on, or the exit status. */
static int make_folder(const struct snd_command *self, const char *asked, struct sonde_buffer *path)
{
    if (!asked && snd_folder_scratch("sonde-model", path))
        return -1;
    if (!asked)
        return snd_failure("%s: " SND_NO_SCRATCH, self->name, strerror(errno));
    snd_buf_text(path, asked);
    if (!path->failed && mkdir(path->bytes, 0700) == 0)
        return -1;
    return snd_failure("%s: cannot create %s: %s; give another folder with --trace", self->name,
                       asked, strerror(errno));
}

static bool has_files(const char *path)
{
    DIR *dir = opendir(path);
    bool any = false;

    for (struct dirent *entry; dir && !any && (entry = readdir(dir)) != NULL;)
        any = entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return any;
}

/* ---------------------------------------------------------------- running */

static int measure(const struct snd_command *self, const struct model_args *args, const char *spec,
                   unsigned levels, const char *folder)
{
    char        numbers[3][24];
    const char *list[24], *const pairs[][2] = {
        { "--batches", args->batches }, { "--warmup", numbers[0] }, { "--runs", numbers[1] },
        { "--passes", numbers[2] },     { "--input", args->input }, { "--dtype", args->dtype },
        { "--device", args->device }
    };
    size_t n = 0;

    snprintf(numbers[0], sizeof numbers[0], "%lld", (long long)args->warmup);
    snprintf(numbers[1], sizeof numbers[1], "%lld", (long long)args->iterations);
    snprintf(numbers[2], sizeof numbers[2], "%lld", (long long)args->passes);
    for (size_t i = 0; i < SND_COUNT_OF(pairs); i++) {
        if (!pairs[i][1])
            continue;
        list[n++] = pairs[i][0];
        list[n++] = pairs[i][1];
    }
    if (levels & SONDE_LEVEL_GRAPH)
        list[n++] = "--graph";
    if (args->backward)
        list[n++] = "--backward";
    list[n++] = "--"; /* so that a SPEC with a leading dash is refused as a SPEC */
    list[n++] = spec;
    list[n++] = folder;
    list[n] = NULL;
    return snd_python_run(self, "model._command", "torch", (char *const *)(uintptr_t)list);
}

/* ---------------------------------------------------------------- showing */

/* One view of the largest batch size's passes, under a title. */
static enum sonde_status show_passes(const struct sonde_bench *bench, const char *title,
                                     const struct sonde_report_options *report,
                                     const struct sonde_sink *sink, struct sonde_error *err)
{
    const struct sonde_bench_batch *last = NULL;
    struct sonde_trace             *trace;
    char                            line[160];

    for (size_t i = 0; i < sonde_bench_count(bench); i++)
        if (sonde_bench_batch(bench, i)->path && sonde_bench_batch(bench, i)->passes > 0)
            last = sonde_bench_batch(bench, i);
    if (!last)
        return SONDE_OK;
    bool              trained = last->train_path && last->backward_passes > 0;
    enum sonde_status st = sonde_trace_open(trained ? last->train_path : last->path, &trace, err);
    if (st != SONDE_OK)
        return st;
    snprintf(line, sizeof line, "\n%s, batch size %llu%s\n", title, (unsigned long long)last->size,
             trained ? ", forward and backward" : "");
    sink->write(sink->user, line, strlen(line));
    st = sonde_report(trace, report, sink, err);
    sonde_trace_close(trace);
    return st;
}

/* Whether a run or a pass of any batch size finished. */
static bool has_measured(const struct sonde_bench *bench)
{
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (b->passes > 0 || b->time[SONDE_BENCH_ON_DEVICE].spread.count > 0)
            return true;
    }
    return false;
}

/* Node by node, of the largest batch size; or why there is no graph. */
static enum sonde_status show_graph(struct sonde_trace                *trace,
                                    const struct sonde_report_options *how,
                                    const struct sonde_sink *sink, struct sonde_error *err)
{
    struct sonde_report_options report = *how;
    struct sonde_graph         *graph;
    char                        line[80] = "\nGraph\n";

    enum sonde_status st = sonde_graph_new(trace, &graph, err);
    if (st != SONDE_OK)
        return st;
    const struct sonde_graph_info *info = sonde_graph_info(graph);
    if (info->batch > 0)
        snprintf(line, sizeof line, "\nGraph, batch size %llu\n", (unsigned long long)info->batch);
    sonde_graph_free(graph);
    sink->write(sink->user, line, strlen(line));
    report.view = "graph";
    return sonde_report(trace, &report, sink, err);
}

static enum sonde_status show_text(struct sonde_trace *trace, unsigned levels,
                                   const struct model_args *args, const struct sonde_sink *sink,
                                   struct sonde_error *err)
{
    struct sonde_report_options report = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_bench         *bench;
    enum sonde_status           st = sonde_bench_new(trace, &bench, err);

    if (st != SONDE_OK)
        return st;
    if (!args->output)
        snd_fit_stdout(args->wide, &report);
    report.rows = -1;
    report.view = "model";
    if (!has_measured(bench)) { /* the line on stderr says why */
        sonde_bench_free(bench);
        return SONDE_OK;
    }
    if (levels & SONDE_LEVEL_MODEL)
        st = sonde_report(trace, &report, sink, err);
    report.view = "modules";
    if (st == SONDE_OK && levels & SONDE_LEVEL_LAYER)
        st = show_passes(bench, "Layers", &report, sink, err);
    report.view = "depths";
    if (st == SONDE_OK && levels & SONDE_LEVEL_LAYER)
        st = show_passes(bench, "Kinds of module, by depth", &report, sink, err);
    report.view = "ops";
    report.sort = "self_cpu_time_total";
    report.rows = args->rows;
    report.width = 0; /* torch's table stays as it is */
    if (st == SONDE_OK && levels & SONDE_LEVEL_OP)
        st = show_passes(bench, "Operators", &report, sink, err);
    sonde_bench_free(bench);
    report.sort = NULL;
    if (!args->output)
        snd_fit_stdout(args->wide, &report);
    if (st == SONDE_OK && levels & SONDE_LEVEL_GRAPH)
        st = show_graph(trace, &report, sink, err);
    return st;
}

static int show(const struct snd_command *self, const struct model_args *args, const char *spec,
                unsigned levels, const char *folder)
{
    struct sonde_export_options exporting = SONDE_EXPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct sonde_trace         *trace;
    struct sonde_error          err;
    bool                        is_yaml = args->output &&
                   (snd_ends_with(args->output, ".yml") || snd_ends_with(args->output, ".yaml"));
    bool is_json = args->json || (args->output && snd_ends_with(args->output, ".json"));

    if (sonde_trace_open(folder, &trace, &err) != SONDE_OK)
        return snd_report_error(self, spec, &err);
    exporting.levels = levels;
    enum sonde_status st = is_json || is_yaml
                               ? sonde_export(trace, is_yaml ? "benchmark" : "benchmark-json",
                                              &exporting, &sink, &err)
                               : show_text(trace, levels, args, &sink, &err);
    sonde_trace_close(trace);
    int status;
    if (st != SONDE_OK) {
        status = snd_report_error(self, spec, &err);
    } else if (text.failed) {
        status = snd_failure("%s: out of memory", self->name);
    } else if (args->output) {
        st = snd_whole_file_write(args->output, snd_buf_string(&text), text.length, &err);
        status = st == SONDE_OK ? SND_EXIT_OK : snd_report_error(self, spec, &err);
    } else {
        fwrite(snd_buf_string(&text), 1, text.length, stdout);
        status = snd_finish_stdout(self);
    }
    sonde_buffer_release(&text);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct model_args   args = { .batches = "1",
                                 .levels = "model,layer,op",
                                 .warmup = 3,
                                 .iterations = 20,
                                 .passes = 3,
                                 .rows = 20 };
    struct sonde_buffer folder = { 0 };
    struct sonde_error  err;
    unsigned            levels;
    int                 operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands != 1)
        return snd_usage_error(self, operands == 0 ? "missing SPEC" : "expected one model");
    if ((status = check_batches(self, args.batches)) >= 0 ||
        (status = read_levels(self, args.levels, &levels)) >= 0)
        return status;
    if (snd_ends_with(argv[0], ".onnx"))
        return snd_failure("model %s: ONNX models cannot be run yet; give a PyTorch model",
                           argv[0]);
    if (args.output && snd_whole_file_check(args.output, &err) != SONDE_OK)
        return snd_report_error(self, argv[0], &err); /* before anything is measured for it */
    status = make_folder(self, args.trace, &folder);
    if (status < 0) {
        status = measure(self, &args, argv[0], levels, folder.bytes);
        if (has_files(folder.bytes)) {
            int shown = show(self, &args, argv[0], levels, folder.bytes);
            status = status ? status : shown;
        }
        if (!args.trace || !has_files(folder.bytes))
            snd_folder_remove(folder.bytes);
    }
    sonde_buffer_release(&folder);
    return status;
}

const struct snd_command snd_command_model = {
    .name = "model",
    .operands = "SPEC",
    .summary = "what a PyTorch model costs: as a whole, by layer, by operator",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
