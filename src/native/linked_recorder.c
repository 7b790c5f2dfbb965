/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native/linked_recorder.c - the recorder as a part of this program: of the static `sonde` alone, which loads no library.
 */
#include "base/system/linked_recorder.h"

#include <sonde/record.h>

#include "linked_recorder_names.h" /* what the shared library would export (record/exports.map) */

#define ENTRY(name) { #name, (void *)&name },
const struct snd_linked_symbol snd_linked_recorder[] = { SND_RECORDER_NAMES(ENTRY){ NULL, NULL } };

/* SONDE_TRACE is for the program that `sonde run` starts, and this one only passes it on (record/options/environment.h). */
const bool snd_recorder_is_tool = true;
