/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_compiledcode.h - which line of code that torch.compile generated calls a kernel of
 * which module.
 *
 * A part of shim.cpp, which includes it once. sonde/torch/_compiled.py hands over each piece of code
 * when it is compiled or loaded. It stays known for as long as the process lives: a later profile
 * runs the same code. So the table only grows, and is read without a lock.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_COMPILEDCODE_H
#define SND_PROBES_TORCH_COMPILEDCODE_H

#include <atomic>
#include <string>
#include <vector>

#include "pystack/interpreter/pyframes.h"
#include "probes/torch/shim.h"
#include "probes/torch/torch_thread.h"

namespace
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

constexpr size_t                  CODE_SLOTS = 8192, CODE_MAX = CODE_SLOTS / 2;
std::atomic<const CompiledCode *> compiled_codes[CODE_SLOTS];
std::atomic<size_t>               compiled_code_count{ 0 };

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
bool add_compiled(CompiledCode *compiled)
{
    if (compiled_code_count.load() >= CODE_MAX || find_compiled(compiled->code))
        return false;
    size_t i = code_slot(compiled->code);
    while (compiled_codes[i].load())
        i = (i + 1) % CODE_SLOTS;
    compiled_codes[i].store(compiled, std::memory_order_release);
    compiled_code_count++;
    return true;
}

const CompiledLine *find_line(const CompiledCode *code, int line)
{
    for (const CompiledLine &one : code->lines)
        if (one.first <= line && line <= one.last)
            return &one;
    return nullptr;
}

/* The innermost frame of generated code, unless a module's call is open in what it called. */
CompiledPlace compiled_place(snd_pyframe *top)
{
    int left = SND_PYTHON_FRAMES_MAX;

    for (snd_pyframe *f = snd_pyframe_real(top); f && left > 0 && has_compiled_code();
         f = snd_pyframe_real(snd_pyframe_caller(f)), left--) {
        const CompiledCode *code = find_compiled(snd_pyframe_code(f));
        if (code)
            return { find_line(code, snd_pyframe_line(f)), code->is_backward };
        if (snd_pyframe_code(f) == settings.module_code)
            break;
    }
    return { nullptr, false };
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace

#endif
