/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_compiledcode.cpp - see torch_compiledcode.h. */
#include "probes/torch/place/torch_compiledcode.h"

#include "format/limits.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

std::atomic<const CompiledCode *> compiled_codes[CODE_SLOTS];
std::atomic<size_t>               compiled_code_count{ 0 };

static constexpr size_t CODE_MAX = CODE_SLOTS / 2;

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

namespace
{

const CompiledLine *find_line(const CompiledCode *code, int line)
{
    for (const CompiledLine &one : code->lines)
        if (one.first <= line && line <= one.last)
            return &one;
    return nullptr;
}

} // namespace

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

} // namespace snd_torch
