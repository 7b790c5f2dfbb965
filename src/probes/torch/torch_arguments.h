/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_arguments.h - an operator's inputs as the recorder stores them: shapes,
 * strides and texts, interned once for each distinct set.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_ARGUMENTS_H
#define SND_PROBES_TORCH_ARGUMENTS_H

#include <string>

#include "probes/torch/torch_thread.h"

namespace snd_torch
{

/*
 * The id of a text of arguments; 0 if the limit is reached: numbers may change with each call, and
 * would fill the tables of the trace. A tally in the trace counts what was dropped.
 */
uint32_t intern_arguments(const std::string &text);

/* Shapes, strides, values and keyword arguments of a call. Throws std::bad_alloc. */
void describe_inputs(const at::RecordFunction &fn, struct sonde_op_call *call);

} // namespace snd_torch

#endif
