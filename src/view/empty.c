/* SPDX-License-Identifier: Apache-2.0 */
#include "view/empty.h"

#include <stdbool.h>
#include <string.h>

#include "read/said/trace_metadata.h"

/* A view; the metadata by which probes say that they were asked; what to do, and why not. */
static const struct {
    const char   *view;
    enum snd_meta key;  /* SND_META_COUNT: none says so */
    const char   *word; /* that the value has; NULL: any value */
    const char   *unasked, *asked;
} texts[] = {
    { "samples", SND_META_PYTHON_SAMPLE, NULL,
      "The trace has no samples: record them with --sample.",
      "Samples were asked for and none was taken: the program ended before the first, or ran no "
      "Python." },
    { "functions", SND_META_PYTHON_FUNCTIONS, NULL,
      "The trace has no Python functions: record them with --functions.",
      "Functions were asked for and none was called while they were counted." },
    { "lines", SND_META_PYTHON_LINES, NULL, "The trace counts no lines: record them with --lines.",
      "Lines were asked for, and the program has none of the functions that were named: write "
      "module.function, Class.method or file.py:function." },
    { "line-memory", SND_META_PYTHON_LINE_MEMORY, NULL,
      "The trace has no memory by line: record it with --line-memory.",
      "Memory by line was asked for, and the program has none of the functions that were named: "
      "write module.function, Class.method or file.py:function." },
    { "source", SND_META_COUNT, NULL,
      "The trace has no numbers of lines: record them with --lines, --line-memory or --sample.",
      NULL },
    { "roofline", SND_META_COUNT, NULL,
      "The trace has no operators with FLOPs and bytes: record operators and their shapes with "
      "--ops --shapes, or record_shapes=True.",
      NULL },
    { "modules", SND_META_TORCH_OPTIONS, "\"with_modules\": true",
      "The trace names no modules: record them with --modules, or with_modules=True.",
      "Modules were asked for, and no operator ran in one: the program called no "
      "torch.nn.Module." },
    { "depths", SND_META_TORCH_OPTIONS, "\"with_modules\": true",
      "The trace names no modules: record them with --modules, or with_modules=True.",
      "Modules were asked for, and no operator ran in one: the program called no "
      "torch.nn.Module." },
    { "memory", SND_META_TORCH_OPTIONS, "\"profile_memory\": true",
      "The trace has no allocations: record those of tensors with --memory, or "
      "profile_memory=True.",
      "Memory was asked for, and no tensor was allocated." },
    { "layers", SND_META_COUNT, NULL,
      "The trace has no profile of layers: record one with sonde layers.", NULL },
    { "model", SND_META_COUNT, NULL,
      "The trace has no benchmark of a model: record one with sonde model.", NULL },
    { "graph", SND_META_COUNT, NULL,
      "The trace has no graph of a model: record one with sonde model --level graph, or "
      "sonde.graph().",
      NULL },
    { "counters", SND_META_COUNT, NULL,
      "The trace has no counters: record them with sonde run --counters.", NULL },
    { "range-counters", SND_META_COUNTERS_RANGES, NULL,
      "The trace has no counters of ranges: record them with sonde run --counters --per-range.",
      "Counters of ranges were asked for, and the program has no range." },
    { "function-counters", SND_META_COUNTERS_FUNCTIONS, NULL,
      "The trace has no counters of functions: record them with sonde run --counters "
      "--per-function.",
      "Counters of functions were asked for, and no function was called or sampled." },
    { "tensors", SND_META_COUNT, NULL,
      "The trace lists no tensors: sonde.memory_report() records them.", NULL },
    { "tensor-lines", SND_META_COUNT, NULL,
      "The trace has no tensor memory by line: sonde.tensor_lines(f) records it.", NULL },
};

static bool was_asked(const struct sonde_trace *trace, enum snd_meta asked, const char *word)
{
    struct sonde_text value;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        if (snd_meta_find(trace, p, asked, &value) &&
            (!word || memmem(value.bytes, value.length, word, strlen(word))))
            return true;
    return false;
}

const char *snd_empty_text(const struct sonde_trace *trace, const char *view)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].view, view) == 0)
            return texts[i].key != SND_META_COUNT && was_asked(trace, texts[i].key, texts[i].word)
                       ? texts[i].asked
                       : texts[i].unasked;
    return NULL;
}
