/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_scripted.h - modules and source lines inside a scripted module, which Python
 * does not see.
 *
 * A part of shim.cpp, which includes it once. TorchScript's interpreter runs a whole model in one
 * call from Python; only it knows to which of the model's modules an operator belongs.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_SCRIPTED_H
#define SND_PROBES_TORCH_SCRIPTED_H

#include <torch/csrc/jit/frontend/source_range.h>

#include <string>
#include <vector>

#include "probes/torch/torch_thread.h"

namespace torch
{
namespace jit
{
/* torch/csrc/jit/runtime/interpreter.h; weak, for a torch that no longer has it. */
__attribute__((weak)) std::vector<std::string> currentModuleHierarchy();
__attribute__((weak)) std::vector<StackEntry>  currentCallstack();
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

using ScriptStack = std::vector<torch::jit::StackEntry>;

/* The lines of the script that run on this thread, innermost first; none outside the interpreter. */
NOINLINE ScriptStack scripted_stack()
{
    try {
        if (torch::jit::currentCallstack)
            return torch::jit::currentCallstack();
    } catch (const std::exception &) {
        /* out of memory: the Python frames alone */
    }
    return ScriptStack();
}

inline uint64_t hash_scripted(const ScriptStack &stack, uint64_t hash)
{
    for (const auto &entry : stack) {
        hash = hash_text(entry.filename.data(), entry.filename.size(), hash);
        hash = stir(hash, reinterpret_cast<uintptr_t>(entry.range.source().get()));
        hash = stir(hash, entry.range.start());
    }
    return hash;
}

/* As torch's profiler has them: the function, and its line in the file that was scripted. */
uint32_t scripted_frame(const torch::jit::StackEntry &entry)
{
    const auto &source = entry.range.source();

    if (!source || !source->filename())
        return 0;
    const std::string &file = *source->filename();
    size_t line = source->starting_line_no() + source->lineno_for_offset(entry.range.start());
    return sonde_intern_frame(sonde_intern(entry.filename.data(), entry.filename.size()),
                              sonde_intern(file.data(), file.size()), static_cast<uint32_t>(line));
}

} // namespace

#endif
