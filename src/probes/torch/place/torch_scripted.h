/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_scripted.h - modules and source lines inside a scripted module, which Python
 * does not see.
 *
 * TorchScript's interpreter runs a whole model in one
 * call from Python; only it knows to which of the model's modules an operator belongs.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_SCRIPTED_H
#define SND_PROBES_TORCH_PLACE_TORCH_SCRIPTED_H

#include <torch/csrc/jit/frontend/source_range.h>

#include <string>
#include <vector>

#include "probes/torch/torch_thread.h"

namespace snd_torch
{

/*
 * ".a.fc" in a scripted module, to append to that module's path. Empty, and nothing is allocated,
 * if the interpreter is not running on this thread.
 */
NOINLINE std::string scripted_path();

using ScriptStack = std::vector<torch::jit::StackEntry>;

/* The lines of the script that run on this thread, innermost first; none outside the interpreter. */
NOINLINE ScriptStack scripted_stack();

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
uint32_t scripted_frame(const torch::jit::StackEntry &entry);

} // namespace snd_torch

#endif
