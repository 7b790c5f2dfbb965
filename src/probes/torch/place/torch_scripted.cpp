/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_scripted.cpp - see torch_scripted.h. */
#include "probes/torch/place/torch_scripted.h"

namespace torch
{
namespace jit
{
/* torch/csrc/jit/runtime/interpreter.h; weak, for a torch that no longer has it. */
__attribute__((weak)) std::vector<std::string> currentModuleHierarchy();
__attribute__((weak)) std::vector<StackEntry>  currentCallstack();
} // namespace jit
} // namespace torch

namespace snd_torch
{

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

} // namespace

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

} // namespace snd_torch
