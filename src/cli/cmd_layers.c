/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde layers: measures the layers of a model, for PipeEdge's scheduler.
 *
 * The options are judged here and handed on as they were written: the model is built and run by
 * the Python package (sonde._layers), in a Python that has torch.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/pyfind.h"

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
    { 'd', "device", "DEVICE", "where to run it: cpu (the default), cuda, cuda:1", SND_OPTION_TEXT,
      AT(device), 0 },
    { 'm', "model-name", "NAME", "the model, as SPEC", SND_OPTION_TEXT, AT(name), 0 },
    { 'M', "model-file", "FILE", "its weights, as PipeEdge saves them (random ones)",
      SND_OPTION_TEXT, AT(file), 0 },
    { 'l', "layer-start", "N", "the first layer to measure (1)", SND_OPTION_NUMBER, AT(first), 1 },
    { 'L', "layer-end", "N", "the last layer to measure (the model's last)", SND_OPTION_NUMBER,
      AT(last), 1 },
    { 's', "input", "SHAPE",
      "what goes in, without the batch: 3x224x224; several with ';', or once for each (by the "
      "model)",
      SND_OPTION_TEXT, AT(shape), 0 },
    { 0, "shape-input", "SHAPE", "the same as --input", SND_OPTION_TEXT, AT(shape), 0 },
    { 'b', "batch", "LIST", "batch sizes, with commas: 1,8 (8)", SND_OPTION_TEXT, AT(batch), 0 },
    { 0, "batch-size", "LIST", "the same as --batch", SND_OPTION_TEXT, AT(batch), 0 },
    { 'w', "warmup", NULL, "run everything once before (the default)", SND_OPTION_FLAG, AT(warmup),
      0 },
    { 0, "no-warmup", NULL, "do not", SND_OPTION_FLAG, AT(no_warmup), 0 },
    { 'i', "iterations", "N", "how often every layer is measured (1)", SND_OPTION_NUMBER,
      AT(iterations), 1 },
    { 0, "cut", "NAMES", "begin a layer at these modules, with commas, and nowhere else",
      SND_OPTION_TEXT, AT(cut), 0 },
    { 0, "paired", NULL, "two tensors at every inner border, as PipeEdge had it in 2022",
      SND_OPTION_FLAG, AT(paired), 0 },
    { 0, "memory", "KIND", "what memory means: weights (exact bytes, the default) or rss",
      SND_OPTION_TEXT, AT(memory), 0 },
    { 0, "repeat-once", NULL, "measure layers that do the same once, and say so", SND_OPTION_FLAG,
      AT(repeat_once), 0 },
    { 0, "resume", NULL, "measure what is missing in the results", SND_OPTION_FLAG, AT(resume), 0 },
    { 0, "backward", NULL, "measure the backward pass of every layer too", SND_OPTION_FLAG,
      AT(backward), 0 },
    { 0, "whole", NULL, "run the uncut model beside its layers, to compare", SND_OPTION_FLAG,
      AT(whole), 0 },
    { 0, "trace", "FILE", "keep the trace: sonde report FILE --view layers", SND_OPTION_TEXT,
      AT(trace), 0 },
};

/* "1,8,32": whole numbers from 1. */
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
        return snd_usage_error(self, "one model at a time, not '%s' and '%s'", argv[0], argv[1]);
    if (operands == 1 && args->name)
        return snd_usage_error(self, "SPEC or --model-name, not both");
    if (args->batch && !is_list(args->batch))
        return snd_usage_error(self, "--batch needs whole numbers from 1, as 1,8, not '%s'",
                               args->batch);
    if (args->memory && strcmp(args->memory, "weights") != 0 && strcmp(args->memory, "rss") != 0)
        return snd_usage_error(self, "--memory is weights or rss, not '%s'", args->memory);
    if (args->last && args->last < args->first)
        return snd_usage_error(self, "--layer-end %lld is before --layer-start %lld",
                               (long long)args->last, (long long)args->first);
    if (operands == 0 && !args->name)
        return snd_usage_error(self, "no model is given: SPEC, as google/vit-base-patch16-224 or "
                                     "module:function");
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
        status = snd_python_run(self, "_layers", given);
    free(given);
    return status;
}

const struct snd_command snd_command_layers = {
    "layers",
    "SPEC",
    "measure the layers of a model, for PipeEdge's scheduler",
    options,
    SND_OPTION_COUNT(options),
    false,
    run,
};
