/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/ranks/clocks_note.h - what is to be known of the clocks behind a table of ranks.
 *
 * Layer: view. Threads: one at a time.
 */
#ifndef SND_VIEW_RANKS_CLOCKS_NOTE_H
#define SND_VIEW_RANKS_CLOCKS_NOTE_H

#include "view/render/view.h"

/* Totals, of a trace of several hosts: how many they are, whose clocks are aligned, and how well. */
void snd_clocks_note(struct snd_doc *doc);

#endif
