/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/torch_tensors.h - a range's inputs, as torch writes them into a Chrome trace.
 *
 * Layer: export. Threads: as a trace.
 */
#ifndef SND_EXPORT_TIMELINE_TORCH_TENSORS_H
#define SND_EXPORT_TIMELINE_TORCH_TENSORS_H

#include "base/text/buf.h"
#include "base/text/json.h"
#include "sonde/trace.h"

/* What a trace has of a call's inputs, by id; 0: nothing. */
struct snd_call_ids {
    uint32_t shapes, strides; /* tensor lists */
    uint32_t arguments;       /* string: JSON list of texts */
    bool all; /* torch's: what follows from the shapes or is empty was not recorded, but is shown */
};

/* "Input Dims", "Input type", "Input Strides", "Concrete Inputs"; nothing without shapes. */
void snd_tensors_json(struct snd_json *json, const struct sonde_trace *trace, uint32_t process,
                      const struct snd_call_ids *ids, struct sonde_buffer *scratch);

/* The list in torch's notation, into `text`; false when there is none. */
bool snd_tensors_text(const struct sonde_trace *trace, uint32_t process, uint32_t shapes,
                      struct sonde_buffer *text);

#endif
