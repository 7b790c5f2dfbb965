/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/highlights/highlights.h - the few things about a trace that are worth knowing first.
 *
 * Each is a sentence with its numbers, a second one that explains it, and the place in the report page
 * where it is seen. What the trace has nothing of is not spoken of. docs/REPORT_PAGE.md has the rules.
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_HIGHLIGHTS_HIGHLIGHTS_H
#define SND_MODEL_HIGHLIGHTS_HIGHLIGHTS_H

#include "base/error.h"
#include "sonde/model.h"

#define SND_HIGHLIGHTS_MAX 5

struct snd_highlight {
    char        text[320], detail[320];
    char        link[64]; /* "table/ops": a part of the page */
    const char *advice;   /* name of the pattern of advice that says the same; NULL: none does */
};

struct snd_highlights {
    unsigned             content; /* of the trace: enum snd_content, or-ed */
    struct snd_highlight items[SND_HIGHLIGHTS_MAX];
    size_t               count;
};

/* What a trace has, beside ranges: what it has not is not looked for. */
enum snd_content {
    SND_HAS_MODULES = 1,
    SND_HAS_SAMPLES = 2,
    SND_HAS_STEPS = 4,
    SND_HAS_MEMORY = 8,
    SND_HAS_FUNCTIONS = 16,
    SND_HAS_WORK = 32,     /* of GPUs */
    SND_HAS_HEAP = 1 << 6, /* allocations by call stack */
    SND_HAS_LINES = 1 << 7,
    SND_HAS_LINE_MEMORY = 1 << 8,
    SND_HAS_COUNTERS = 1 << 9, /* of the program; of its ranges, of its functions: */
    SND_HAS_RANGE_COUNTERS = 1 << 10,
    SND_HAS_FUNCTION_COUNTERS = 1 << 11,
    SND_HAS_BENCHMARK = 1 << 12, /* of a model */
    SND_HAS_GRAPH = 1 << 13,
    SND_HAS_LAYERS = 1 << 14,
    SND_HAS_TENSORS = 1 << 15,
    SND_HAS_TENSOR_LINES = 1 << 16,
    SND_HAS_JOB = 1 << 17, /* more than one process, or a rank */
    SND_HAS_COLLECTIVES = 1 << 18,
};

/* Errors: SONDE_E_NOMEM and those of the models that it uses. */
SND_CHECKED enum sonde_status snd_highlights_find(struct sonde_trace *trace, unsigned content,
                                                  struct snd_highlights *out,
                                                  struct sonde_error    *err);

#endif
