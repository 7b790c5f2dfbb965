/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/gpu/gpu_names.h - devices and places in a program, as views write them.
 *
 * Layer: view. Threads: as a document.
 */
#ifndef SND_VIEW_GPU_GPU_NAMES_H
#define SND_VIEW_GPU_GPU_NAMES_H

#include "model/gpu/launches.h"
#include "view/render/doc.h"

/* "cpu", "cuda:1"; `device` as in ALLOC (SND_DEVICE). Lives as long as the document. */
const char *snd_gpu_name(struct snd_doc *doc, uint32_t device);

/* "train.py(12): step": the line of a place, or none. */
struct snd_cell snd_gpu_line_cell(struct snd_doc *doc, const struct snd_launches *launches,
                                  const struct snd_where *where);

/* Leaves columns out of the text in which no row has anything: `first` to `last`. */
void snd_hide_empty(struct snd_table *table, size_t first, size_t last);

/* What to say where no work of GPUs was recorded: why, if the trace knows. */
const char *snd_gpu_empty(struct snd_doc *doc);

#endif
