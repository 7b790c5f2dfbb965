/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/highlights/amounts.h - numbers of a sentence, with their units, as the reports write them.
 *
 * Layer: model. Threads: no state.
 */
#ifndef SND_MODEL_HIGHLIGHTS_AMOUNTS_H
#define SND_MODEL_HIGHLIGHTS_AMOUNTS_H

#include <stdint.h>

struct snd_amount {
    char text[40];
};

struct snd_amount snd_amount_time(int64_t ns);
struct snd_amount snd_amount_bytes(int64_t bytes);
/* `part` of `whole` in per cent; of nothing, 0. */
double snd_percent(int64_t part, int64_t whole);

#endif
