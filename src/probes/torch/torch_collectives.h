/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_collectives.h - what a collective transfers, among whom, and which one it is.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_COLLECTIVES_H
#define SND_PROBES_TORCH_COLLECTIVES_H

#include <string_view>

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
 * NCCL's process group opens the range "record_param_comms" for each collective, and stores its name,
 * numbers of elements, type and group in a thread-local that torch's profiler reads. The values are
 * JSON already.
 */
NOINLINE void note_collective(const at::RecordFunction &fn);

constexpr std::string_view GROUP_CALL = "c10d::"; /* operators that are given a process group */

INLINE bool is_group_call(const char *name)
{
    return UNLIKELY(name[0] == 'c' && name[1] == '1' && name[2] == '0' && name[3] == 'd' &&
                    name[4] == ':');
}

/*
 * Of any backend: the operator that calls a process group, which is among its inputs. What it returns
 * (or nullptr) is to be kept until the call ends: meanwhile, work that it hands to other threads knows
 * which collective it carries out.
 */
NOINLINE std::unique_ptr<at::ObserverContext> note_group_call(const at::RecordFunction &fn,
                                                              uint32_t                  epoch);

/* Of a range of such work, on the thread that does it: the same attributes as the call's. */
NOINLINE void note_carried(uint32_t epoch);

} // namespace snd_torch

#endif
