/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/samples/sample_places.h - the instructions at which samples found native code, by function.
 *
 * Of each sample the innermost frame: the others are where a call returns to. The function is that
 * which has the instruction in its code, whatever is inlined there.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_SAMPLES_SAMPLE_PLACES_H
#define SND_MODEL_SAMPLES_SAMPLE_PLACES_H

#include "base/error.h"
#include "sonde/model.h"

struct snd_sample_place {
    struct sonde_text function, object, build_id; /* object: the mapped file */
    uint64_t          address, samples;     /* address: as the file's symbol table counts it */
    int64_t           self_ns, function_ns; /* function_ns: of all its instructions */
};

struct snd_sample_places {
    struct snd_sample_place *rows; /* by function, most time first; then by address */
    uint32_t                 count, room;
    int64_t                  whole_ns; /* of all samples of running threads */
};

/* `places` need not be initialised, and must be released whatever this returns. Errors: SONDE_E_NOMEM. */
SND_CHECKED enum sonde_status snd_sample_places_make(struct snd_sample_places *places,
                                                     struct sonde_trace       *trace,
                                                     struct sonde_error       *err);
void                          snd_sample_places_release(struct snd_sample_places *places);

#endif
