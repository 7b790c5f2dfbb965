/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_collectives.h - what a collective transfers, from torch's process groups.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_COLLECTIVES_H
#define SND_PROBES_TORCH_COLLECTIVES_H

#include "probes/torch/torch_thread.h"

namespace snd_torch
{

/* torch before 2.5 may not have it. */
template <typename Function>
auto is_collective(const Function &fn, int) -> decltype(fn.isNcclMeta())
{
    return fn.isNcclMeta();
}
template <typename Function> bool is_collective(const Function &, long)
{
    return false;
}

/*
 * A process group opens the range "record_param_comms" for each collective, and stores its name,
 * numbers of elements, type and group in a thread-local that torch's profiler reads. The values are
 * JSON already.
 */
NOINLINE void note_collective(const at::RecordFunction &fn);

} // namespace snd_torch

#endif
