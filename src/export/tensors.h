/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/tensors.h - a range's inputs, as torch writes them into a Chrome trace.
 *
 * Layer: export (sees read/ for the data types, which trace.h does not tell).
 * Threads: as a trace.
 */
#ifndef SND_EXPORT_TENSORS_H
#define SND_EXPORT_TENSORS_H

#include "base/buf.h"
#include "base/json.h"
#include "sonde/trace.h"

/* "Input Dims" and "Input type" of the tensor list `shapes`; nothing for 0. */
void snd_tensors_json(struct snd_json *json, const struct sonde_trace *trace, uint32_t process,
                      uint32_t shapes, struct sonde_buffer *scratch);

/* The list in torch's notation, into `text`; false when there is none. */
bool snd_tensors_text(const struct sonde_trace *trace, uint32_t process, uint32_t shapes,
                      struct sonde_buffer *text);

#endif
