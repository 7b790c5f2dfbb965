/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde layers: measures the layers of a model, for PipeEdge's scheduler.
 *
 * The options are checked here and passed on unchanged: the model is built and run by
 * the Python package (sonde/pipeline), in a Python that has torch.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/process/find_python.h"

struct layers_args {
    const char *results, *device, *name, *file, *shape, *batch, *cut, *memory, *trace;
    int64_t     first, last, iterations;
    bool        warmup, no_warmup, paired, repeat_once, resume, backward, whole;
};

#define AT(member) offsetof(struct layers_args, member)
static const struct snd_option options[] = {
    { 'o', "output", "FILE", "the results to write (profiler_results.yml)", SND_OPTION_TEXT,
      AT(results), 0 },
    { 0, "results-yml", "FILE", "the same as --output", SND_OPTION_TEXT, AT(results), 0 },
    { 'd', "device", "DEVICE", "device to run on: cpu (the default), cuda, cuda:1", SND_OPTION_TEXT,
      AT(device), 0 },
    { 'm', "model-name", "NAME", "the model, as SPEC", SND_OPTION_TEXT, AT(name), 0 },
    { 'M', "model-file", "FILE", "weights, as PipeEdge saves them (random)", SND_OPTION_TEXT,
      AT(file), 0 },
    { 'l', "layer-start", "N", "the first layer to measure (1)", SND_OPTION_NUMBER, AT(first), 1 },
    { 'L', "layer-end", "N", "the last layer to measure (the model's last)", SND_OPTION_NUMBER,
      AT(last), 1 },
    { 's', "input", "SHAPE",
      "input shape without the batch: 3x224x224; with a name, a type: ids=128:int64; several: "
      "separated by ';', or repeat the option "
      "(default: the model's)",
      SND_OPTION_TEXT, AT(shape), 0 },
    { 0, "shape-input", "SHAPE", "the same as --input", SND_OPTION_TEXT, AT(shape), 0 },
    { 'b', "batch", "LIST", "batch sizes, comma-separated: 1,8 (8)", SND_OPTION_TEXT, AT(batch),
      0 },
    { 0, "batch-size", "LIST", "the same as --batch", SND_OPTION_TEXT, AT(batch), 0 },
    { 'w', "warmup", NULL, "run everything once first (the default)", SND_OPTION_FLAG, AT(warmup),
      0 },
    { 0, "no-warmup", NULL, "no warm-up run", SND_OPTION_FLAG, AT(no_warmup), 0 },
    { 'i', "iterations", "N", "measurements of each layer (1)", SND_OPTION_NUMBER, AT(iterations),
      1 },
    { 0, "cut", "NAMES", "begin layers only at these modules, comma-separated", SND_OPTION_TEXT,
      AT(cut), 0 },
    { 0, "paired", NULL, "pass two tensors at every inner boundary, as PipeEdge did in 2022",
      SND_OPTION_FLAG, AT(paired), 0 },
    { 0, "memory", "KIND", "memory to report: weights (exact bytes, the default) or rss",
      SND_OPTION_TEXT, AT(memory), 0 },
    { 0, "repeat-once", NULL, "measure identical layers once, and mark the others", SND_OPTION_FLAG,
      AT(repeat_once), 0 },
    { 0, "resume", NULL, "measure only the layers missing from the results", SND_OPTION_FLAG,
      AT(resume), 0 },
    { 0, "backward", NULL, "measure the backward pass of every layer too", SND_OPTION_FLAG,
      AT(backward), 0 },
    { 0, "whole", NULL, "also run the whole model, for comparison", SND_OPTION_FLAG, AT(whole), 0 },
    { 0, "trace", "FILE", "keep the trace: sonde report FILE --view layers", SND_OPTION_TEXT,
      AT(trace), 0 },
};

/* "1,8,32": integers >= 1. */
static bool is_list(const char *text)
{
    for (char *end;; text = end + 1) {
        if (*text < '0' || *text > '9' || strtoll(text, &end, 10) < 1)
            return false;
        if (*end != ',')
            return *end == '\0';
    }
}

/* -1 to go on, or the exit status. */
static int judge(const struct snd_command *self, const struct layers_args *args, int operands,
                 char **argv)
{
    if (operands > 1)
        return snd_usage_error(self, "expected one model, got '%s' and '%s'", argv[0], argv[1]);
    if (operands == 1 && args->name)
        return snd_usage_error(self, "give SPEC or --model-name, not both");
    if (args->batch && !is_list(args->batch))
        return snd_usage_error(self, "--batch: expected integers >= 1 such as 1,8, got '%s'",
                               args->batch);
    if (args->memory && strcmp(args->memory, "weights") != 0 && strcmp(args->memory, "rss") != 0)
        return snd_usage_error(self, "--memory: expected weights or rss, got '%s'", args->memory);
    if (args->last && args->last < args->first)
        return snd_usage_error(self, "--layer-end %lld is before --layer-start %lld",
                               (long long)args->last, (long long)args->first);
    if (operands == 0 && !args->name)
        return snd_usage_error(self, "missing SPEC: expected a model such as "
                                     "google/vit-base-patch16-224 or module:function");
    return -1;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct layers_args args = { .first = 1 };
    char             **given = calloc((size_t)argc + 1, sizeof *given);
    int                operands;

    if (!given)
        return snd_failure("layers: out of memory");
    memcpy(given, argv + 1, (size_t)(argc - 1) * sizeof *given); /* parsing moves operands */
    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status < 0)
        status = judge(self, &args, operands, argv);
    if (status < 0)
        status = snd_python_run(self, "pipeline._layers", "torch", given);
    free(given);
    return status;
}

const struct snd_command snd_command_layers = {
    .name = "layers",
    .operands = "SPEC",
    .summary = "measure the layers of a model, for PipeEdge's scheduler",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
