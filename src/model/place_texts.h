/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/place_texts.h - stacks and shapes by which rows are grouped, as texts with a number each.
 *
 * Equal texts of two processes have one number; so have stacks that differ only beyond the depth.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_PLACE_TEXTS_H
#define SND_MODEL_PLACE_TEXTS_H

#include "base/data/map.h"
#include "sonde/trace.h"

struct snd_place_texts { /* all zero: none */
    struct snd_map   numbers;
    struct snd_texts texts;
    uint32_t         stack_depth; /* 0: 5 */
};

/* A text's number plus one; 0: none. False: memory is out. */
bool snd_place_stack(struct snd_place_texts *texts, const struct sonde_trace *trace,
                     uint32_t process, uint32_t stack, uint32_t *number);
bool snd_place_shapes(struct snd_place_texts *texts, const struct sonde_trace *trace,
                      uint32_t process, uint32_t shapes, uint32_t *number);
/* Borrowed until snd_place_texts_release(). */
struct sonde_text snd_place_text(const struct snd_place_texts *texts, uint32_t number);
void              snd_place_texts_release(struct snd_place_texts *texts);

#endif
