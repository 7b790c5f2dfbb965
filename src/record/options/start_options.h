/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/options/start_options.h - what sonde_start() was given: checked, completed, stored.
 *
 * Layer:   record.
 * Threads: with the control lock held, while nothing records.
 */
#ifndef SND_RECORD_OPTIONS_START_OPTIONS_H
#define SND_RECORD_OPTIONS_START_OPTIONS_H

#include "record/state.h"

/*
 * Stores the options (NULL: the defaults) in snd_rec, for a recording that begins.
 * Errors: SONDE_E_ARGUMENT, SONDE_E_IO (the current folder is unknown).
 */
SND_CHECKED enum sonde_status snd_options_take(const struct sonde_options *o,
                                               struct sonde_error         *err);

#endif
