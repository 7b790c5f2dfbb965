/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_collectives.h - what a collective transfers, from torch's process groups.
 *
 * A part of shim.cpp, which includes it once.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_COLLECTIVES_H
#define SND_PROBES_TORCH_COLLECTIVES_H

#include <torch/csrc/profiler/util.h>

#include <map>
#include <string>

#include "probes/torch/torch_arguments.h"

namespace
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
NOINLINE void note_collective(const at::RecordFunction &fn)
{
    try {
        std::map<std::string, std::string> sorted; /* so that equal ones have equal texts */
        for (const auto &one : torch::profiler::impl::saveNcclMeta(fn))
            sorted.insert(one);
        std::string text = "{";
        for (const auto &one : sorted)
            text += (text.size() > 1 ? ", \"" : "\"") + one.first + "\": " + one.second;
        uint32_t id = sorted.empty() ? 0 : intern_arguments(text + "}");
        if (id)
            sonde_attr(SONDE_ATTR_COLLECTIVE, id);
    } catch (const std::exception &) {
        /* out of memory: without its sizes */
    }
}

} // namespace

#endif
