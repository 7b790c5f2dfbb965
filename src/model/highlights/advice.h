/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/highlights/advice.h - patterns of slow programs, found in a trace: each with its numbers, the place, and
 * what to try.
 *
 * One list for the summary, the view `advice`, what is printed after a run, and the page. A pattern is a line of
 * advice.def; what it needs of a trace is looked for by a finder of advice_gpu.c, advice_memory.c,
 * advice_ranges.c, advice_ranks.c or advice_samples.c. Nothing is said that the numbers do not carry.
 *
 * Finders make no walk of their own: what they need waits at the trace (snd_wait()) for the one that the summary makes,
 * or the model beside it. Only which steps are slow, and why, takes others, of a trace in which they differ much.
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_HIGHLIGHTS_ADVICE_H
#define SND_MODEL_HIGHLIGHTS_ADVICE_H

#include "base/error.h"
#include "sonde/model.h"

enum snd_pattern {
#define SND_ADVICE(NAME, name, when, tries) SND_ADVICE_##NAME,
#include "model/highlights/advice.def"
#undef SND_ADVICE
    SND_PATTERNS
};

#define SND_ADVICE_TEXT 320

struct snd_advice {
    enum snd_pattern pattern;
    const char      *name, *tries;
    char             text[SND_ADVICE_TEXT];
    char   place[SND_ADVICE_TEXT]; /* "/path/train.py:42", or the name of a range; may be empty */
    char   link[64];               /* a part of the page */
    double share;                  /* per cent of the time that it is about; of memory: 0 */
};

struct snd_advices {
    struct snd_advice items[SND_PATTERNS]; /* a pattern at most once; the greatest share first */
    size_t            count;
};

struct snd_advisor; /* advisor.h */

/*
 * Before the walk. Owns: the caller frees *out with snd_advisor_free(), before the trace is closed; a page of many
 * views has it lent (model/kept.h). Errors: SONDE_E_NOMEM and those of the models that it asks.
 */
SND_CHECKED enum sonde_status snd_advisor_new(struct sonde_trace *trace, struct snd_advisor **out,
                                              struct sonde_error *err);
/* After it, which is made if nobody has: what others ask of the trace, too, is there from now on. */
SND_CHECKED enum sonde_status snd_advisor_finish(struct snd_advisor *advisor,
                                                 struct sonde_error *err);
/* Then. `summary`: of the trace, finished. `out` is the advisor's. */
SND_CHECKED enum sonde_status snd_advice_find(struct snd_advisor        *advisor,
                                              struct sonde_summary      *summary,
                                              const struct snd_advices **out,
                                              struct sonde_error        *err);
void                          snd_advisor_free(struct snd_advisor *advisor); /* or NULL */

#endif
