/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/torch_stacks.h - a stack as torch writes it, and the same with the lines of the calls.
 *
 * Layer: model. Threads: as a trace.
 */
#ifndef SND_MODEL_TORCH_STACKS_H
#define SND_MODEL_TORCH_STACKS_H

#include "base/text/buf.h"
#include "sonde/trace.h"

/*
 * Appends "file(line): function" of the `most` innermost frames, innermost first, with
 * `separator` between them; `line` is where the function begins and `file` is without the folder
 * that packages lie in, where those were recorded, as in torch. Frames of autograd's own entry are left out, as torch leaves them. Returns how many.
 */
size_t snd_stack_text(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                      char separator, struct sonde_buffer *text);

/* The same, a frame a line, each with the line that it was at: for what torch has no table of. */
size_t snd_stack_lines(const struct sonde_trace *trace, uint32_t process, uint32_t id, size_t most,
                       struct sonde_buffer *text);

/* Whether a frame is a call of a function in C: in an operator's stack it has a name alone. */
bool snd_frame_is_c(const struct sonde_frame *frame);

/* The innermost of them that has a line; returns false for a stack without a frame to show. */
bool snd_line_text(const struct sonde_trace *trace, uint32_t process, uint32_t id,
                   struct sonde_buffer *text);

/* Appends a function by its frame, in the same way; one written in C, or a module, by name alone. */
void snd_function_text(const struct sonde_trace *trace, uint32_t process, uint32_t frame,
                       struct sonde_buffer *text);

/* Of "nn.Module: Linear_3", which is a module's call: 3. Any other function: -1. */
int32_t snd_module_number(struct sonde_text function);

#endif
