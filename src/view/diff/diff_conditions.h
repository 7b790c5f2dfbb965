/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/diff/diff_conditions.h - `--fail-if 'time>+5%'`: conditions on a diff.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_DIFF_DIFF_CONDITIONS_H
#define SND_VIEW_DIFF_DIFF_CONDITIONS_H

#include "model/diff/diff.h"

#define SND_CONDITIONS_MAX 8

struct snd_condition {
    int    metric; /* index of the table in diff_conditions.c */
    bool   below;  /* '<' */
    double percent;
};

struct snd_conditions {
    struct snd_condition list[SND_CONDITIONS_MAX];
    size_t               count;
};

/* "time>+5%, count>0%". Errors: SONDE_E_ARGUMENT, with what was wrong. */
SND_CHECKED enum sonde_status snd_conditions_parse(const char *text, struct snd_conditions *out,
                                                   struct sonde_error *err);
/* Errors: SONDE_E_STATE where a run does not have what one of them is about. */
SND_CHECKED enum sonde_status snd_conditions_check(const struct snd_conditions *conditions,
                                                   const struct snd_diff       *diff,
                                                   struct sonde_error          *err);
/* Whether one of them holds for a row; for the whole (a step). */
bool snd_conditions_row(const struct snd_conditions *conditions, const struct snd_diff_row *row);
bool snd_conditions_whole(const struct snd_conditions *conditions, const struct snd_diff *diff);

#endif
