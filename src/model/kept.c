/* SPDX-License-Identifier: Apache-2.0 */
#include "model/kept.h"

#include <stdlib.h>

#include "read/reader.h"

/* A list, of few. */
struct snd_kept {
    struct snd_kept  *next;
    snd_kept_free_fn *free_model;
    uint64_t          options;
    void             *model;
};

void snd_kept_begin(struct sonde_trace *trace)
{
    trace->keeps = true;
}

void snd_kept_end(struct sonde_trace *trace)
{
    struct snd_kept *latest;

    trace->keeps = false;
    while ((latest = trace->kept) != NULL) {
        trace->kept =
            latest->next; /* so that it is really freed; what it was made of is still kept */
        latest->free_model(latest->model);
        free(latest);
    }
}

void *snd_kept_lend(const struct sonde_trace *trace, snd_kept_free_fn *free_model, uint64_t options)
{
    for (const struct snd_kept *one = trace->kept; one; one = one->next)
        if (one->free_model == free_model && one->options == options)
            return one->model;
    return NULL;
}

void snd_kept_add(struct sonde_trace *trace, snd_kept_free_fn *free_model, uint64_t options,
                  void *model)
{
    struct snd_kept *one = trace->keeps ? malloc(sizeof *one) : NULL;

    if (!one)
        return;
    *one = (struct snd_kept){ trace->kept, free_model, options, model };
    trace->kept = one;
}

bool snd_kept_return(const struct sonde_trace *trace, const void *model)
{
    const struct snd_kept *one = trace->kept;

    while (one && one->model != model)
        one = one->next;
    return one != NULL;
}
