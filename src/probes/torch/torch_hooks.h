/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_hooks.h - calls inside torch that are redirected to the probe while it is on.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_HOOKS_H
#define SND_PROBES_TORCH_HOOKS_H

namespace snd_torch
{

/* Memory of the CPU and of GPUs: false if torch's calls cannot be redirected. */
bool divert_cpu();
bool divert_cuda();
/* If those of the CPU cannot: an allocator that wraps torch's own. */
void put_on_allocator();
void take_off_allocator();

/* "Is a profiler on?": torch's own parts that ask are told so. Whether it went well. */
bool divert_state();
/* Spares autograd's threads from rebuilding their lists of callbacks for each node. */
void divert_set_state();

/* Puts all calls back. */
void undo_diversions();

} // namespace snd_torch

#endif
