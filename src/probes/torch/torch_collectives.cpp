/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_collectives.cpp - see torch_collectives.h. */
#include "probes/torch/torch_collectives.h"

#include <torch/csrc/profiler/util.h>

#include <map>
#include <string>

#include "probes/torch/torch_arguments.h"

namespace snd_torch
{

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

} // namespace snd_torch
