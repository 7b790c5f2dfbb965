/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_compiledcode.h - which line of code that torch.compile generated calls a kernel of
 * which module.
 *
 * sonde/torch/_compiled.py hands over each piece of code
 * when it is compiled or loaded. It stays known for as long as the process lives: a later profile
 * runs the same code. So the table only grows, and is read without a lock.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_COMPILEDCODE_H
#define SND_PROBES_TORCH_PLACE_TORCH_COMPILEDCODE_H

#include <atomic>
#include <string>
#include <vector>

#include "pystack/interpreter/pyframes.h"
#include "probes/torch/shim.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

struct CompiledLine {
    int         first, last; /* lines of the call */
    std::string within;      /* path below the module that the code runs in; "": that one */
    std::string alone;       /* path if it runs in none */
};
struct CompiledCode {
    const void               *code; /* owned for ever */
    bool                      is_backward;
    std::vector<CompiledLine> lines;
};
/* Where a frame is; `line` is NULL if nothing is known of it. */
struct CompiledPlace {
    const CompiledLine *line;
    bool                is_backward;
};

constexpr size_t                         CODE_SLOTS = 8192;
extern std::atomic<const CompiledCode *> compiled_codes[CODE_SLOTS];
extern std::atomic<size_t>               compiled_code_count;

inline bool has_compiled_code()
{
    return compiled_code_count.load(std::memory_order_relaxed) > 0;
}

inline size_t code_slot(const void *code)
{
    return stir(0, reinterpret_cast<uintptr_t>(code)) % CODE_SLOTS;
}

inline const CompiledCode *find_compiled(const void *code)
{
    for (size_t i = code_slot(code);; i = (i + 1) % CODE_SLOTS) {
        const CompiledCode *found = compiled_codes[i].load(std::memory_order_acquire);
        if (!found || found->code == code)
            return found;
    }
}

/* Call it with the interpreter lock. False: it is known already, or there are too many. */
bool add_compiled(CompiledCode *compiled);

/* The innermost frame of generated code, unless a module's call is open in what it called. */
CompiledPlace compiled_place(snd_pyframe *top);

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
