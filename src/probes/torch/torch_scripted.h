/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_scripted.h - the modules inside a scripted module, which Python does not see.
 *
 * A part of shim.cpp, which includes it once. TorchScript's interpreter runs a whole model in one
 * call from Python; only it knows to which of the model's modules an operator belongs.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_SCRIPTED_H
#define SND_PROBES_TORCH_SCRIPTED_H

#include <string>
#include <vector>

#include "probes/torch/torch_thread.h"

namespace torch
{
namespace jit
{
/* torch/csrc/jit/runtime/interpreter.h; weak, for a torch that no longer has it. */
__attribute__((weak)) std::vector<std::string> currentModuleHierarchy();
} // namespace jit
} // namespace torch

namespace
{

/* "layer1.0" of "layer1.0(BasicBlock)::forward"; empty for the module itself, or no module. */
inline std::string instance_of(const std::string &entry)
{
    std::string name = entry.substr(0, entry.find('('));

    if (name == entry || name == "TOP" || name == "SELF" || name == "INSTANCE_NAME_UNKNOWN")
        return std::string();
    return name;
}

/*
 * ".a.fc" in a scripted module, to append to that module's path. Empty, and nothing is allocated,
 * if the interpreter is not running on this thread.
 */
NOINLINE std::string scripted_path()
{
    std::string path;

    try {
        if (!torch::jit::currentModuleHierarchy)
            return path;
        for (const std::string &entry : torch::jit::currentModuleHierarchy()) {
            std::string name = instance_of(entry);
            if (!name.empty())
                path += "." + name;
        }
    } catch (const std::exception &) {
        path.clear();
    }
    return path;
}

} // namespace

#endif
