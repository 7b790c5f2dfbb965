/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/highlights/advisor.h - what the finders of advice share: places, sums by place, amounts, the sentence that is added.
 *
 * Layer: model. Threads: as the trace.
 */
#ifndef SND_MODEL_HIGHLIGHTS_ADVISOR_H
#define SND_MODEL_HIGHLIGHTS_ADVISOR_H

#include "base/data/map.h"
#include "model/highlights/advice.h"
#include "read/said/library_paths.h"

/* Where something is. The texts are the trace's. */
struct snd_spot {
    struct sonde_text file, function;
    uint32_t          line; /* 0: the function is a range's name */
};

/* What torch itself does in ranges that it names so: none of it is the program's own work. */
enum snd_torch_range {
    SND_TORCH_NONE,
    SND_TORCH_LOADS_ALONE,
    SND_TORCH_LOADS_WITH_WORKERS,
    SND_TORCH_COMPILES,
    SND_TORCH_COMPILES_PART /* inside of the last */
};
enum snd_torch_range snd_torch_range(const char *name, size_t length);

/* Sums by place. */
struct snd_spots {
    struct snd_spot_sum {
        struct snd_spot at;
        int64_t         ns; /* or bytes */
        uint64_t        count;
    } * items;
    uint32_t       count, room;
    struct snd_map numbers;
};

struct snd_advisor {
    struct sonde_trace      *trace;
    struct sonde_summary    *summary;
    struct snd_library_paths libraries;
    struct snd_advices       found;
    bool                     is_finished, is_found;
    /* Of the main thread, by samples; 0: they do not stand out. What takes a share of the time takes it of the rest. */
    int64_t import_ns;
    /* What waits for the walk, of finders that have something to look for; else NULL. */
    struct snd_gpu             *gpu;
    struct snd_sample_counts   *counts;
    struct sonde_memory        *memory;
    struct snd_range_advice    *ranges;
    struct snd_operator_advice *operators;
    /* What ranges without a stack of their own have of samples: where the program was in them. */
    struct snd_sampled_ranges {
        struct snd_map    numbers; /* of the name's bytes, by their address */
        struct snd_spots *spots;
        uint32_t          count, room;
    } sampled;
};

#define SND_HOT_PERCENT 25.0 /* of the time: a line that has so much is hot */

/* Numbers of a sentence, with their units, as the reports write them. */
struct snd_amount {
    char text[40];
};
struct snd_amount snd_amount_time(int64_t ns);
struct snd_amount snd_amount_bytes(int64_t bytes);
/* `part` of `whole` in per cent; of nothing, 0. */
double snd_percent(int64_t part, int64_t whole);

#define SND_SPOT_TEXT 128
/* "train.py:42", or the name of the range; borrowed from `text`. */
const char *snd_spot_short(const struct snd_spot *spot, char text[static SND_SPOT_TEXT]);

/* The innermost frame of a stack that is the program's own; false: it has none. */
bool snd_spot_of_frames(const struct sonde_trace *trace, const struct snd_library_paths *libraries,
                        uint32_t process, uint32_t stack, struct snd_spot *spot);
bool snd_spot_of_stack(const struct snd_advisor *advisor, uint32_t process, uint32_t stack,
                       struct snd_spot *spot);

/* False: no memory. */
bool snd_spots_add(struct snd_spots *spots, const struct snd_spot *at, int64_t ns, uint64_t count);
/* The greatest; NULL: there is none. */
const struct snd_spot_sum *snd_spots_most(const struct snd_spots *spots);
/* What a place has of them. */
int64_t snd_spots_ns(const struct snd_spots *spots, const struct snd_spot *at);
void    snd_spots_release(struct snd_spots *spots);

/* The time of a sample in a range of this name (its bytes are the trace's); false: no memory. */
bool snd_sampled_ranges_add(struct snd_sampled_ranges *sampled, const char *name,
                            const struct snd_spot *at, int64_t ns, uint64_t count);
/* The line that most of these have; false: there are none. */
bool snd_spot_of_samples(const struct snd_advisor *advisor, const char *name,
                         struct snd_spot *spot);
void snd_sampled_release(struct snd_sampled_ranges *sampled);

/* As JSON has it: "slow-steps". */
const char *snd_pattern_name(enum snd_pattern pattern);

/* Adds a sentence, unless the pattern was found before. `spot` may be NULL. */
void snd_advise(struct snd_advisor *advisor, enum snd_pattern pattern, double share,
                const char *link, const struct snd_spot *spot, const char *format, ...)
    SONDE_PRINTF(6, 7);

/* Before the walk, and after it: what only the ranges' finder has, and that of operators' stacks. */
SND_CHECKED enum sonde_status snd_advise_ranges_wait(struct snd_advisor *advisor,
                                                     struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_ranges_finish(struct snd_advisor *advisor,
                                                       struct sonde_error *err);
void                          snd_range_advice_free(struct snd_range_advice *ranges); /* or NULL */
/* Whether there are such ranges: how often and how long each was is known then, and not from samples alone. */
bool snd_advise_ranges_have(const struct snd_advisor *advisor, enum snd_torch_range range);
SND_CHECKED enum sonde_status snd_advise_operators_wait(struct snd_advisor *advisor,
                                                        struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_operators_finish(struct snd_advisor *advisor,
                                                          struct sonde_error *err);
void snd_operator_advice_free(struct snd_operator_advice *operators); /* or NULL */

/* Once all is finished. */
SND_CHECKED enum sonde_status snd_advise_gpu(struct snd_advisor *advisor, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_memory(struct snd_advisor *advisor,
                                                struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_heap(struct snd_advisor *advisor, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_ranges(struct snd_advisor *advisor,
                                                struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_operators(struct snd_advisor *advisor,
                                                   struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_ranks(struct snd_advisor *advisor,
                                               struct sonde_error *err);
SND_CHECKED enum sonde_status snd_advise_samples(struct snd_advisor *advisor,
                                                 struct sonde_error *err);

#endif
