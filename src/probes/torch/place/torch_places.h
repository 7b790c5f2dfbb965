/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_places.h - where in the program an operator was called: module and Python
 * stack.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_PLACES_H
#define SND_PROBES_TORCH_PLACE_TORCH_PLACES_H

#include <string>
#include <vector>

#include "pystack/interpreter/pyframes.h"
#include "format/limits.h"
#include "probes/torch/shim.h"
#include "probes/torch/place/torch_compiledcode.h"
#include "probes/torch/place/torch_modules.h"
#include "probes/torch/place/torch_scripted.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

/* Remembers the frames that are open now, by their lines; `wanted` false: none. */
void keep_open_frames(bool wanted);

/*
 * Of a range that Python opens: Python functions run in it, and samples have their frames. It belongs
 * after those that were there when it began.
 */
NOINLINE void note_depth();

/* Modules whose calls are open, outermost first. */
std::vector<PyObject *> open_modules(snd_pyframe *top);

/* Where an operator is in scripted code: see scripted_path() and scripted_stack(). */
struct Scripted {
    std::string path;
    ScriptStack stack;
};

NOINLINE void place_slow(Thread *thread, PlaceSlot *slot, uint64_t hash, snd_pyframe *top,
                         const Scripted &scripted);

/* Hashes all frames, or only the modules' own if no stacks are recorded. */
template <uint32_t FLAGS> inline const PlaceSlot *place_of(Thread *thread, snd_pyframe *top)
{
    uint64_t    hash = thread->seed + 3 + ODD * modules_gone.load(std::memory_order_relaxed);
    const void *module_code = settings.module_code;
    bool        seeks = (FLAGS & SONDE_TORCH_MODULES) && has_compiled_code();
    int         left = SND_PYTHON_FRAMES_MAX;

    for (const snd_pyframe *f = top; f && left > 0; f = snd_pyframe_caller(f), left--) {
        if (FLAGS & SONDE_TORCH_STACKS)
            hash = stir(hash, snd_pyframe_place(f));
        if (snd_pyframe_code(f) == module_code) {
            hash = stir(hash, reinterpret_cast<uintptr_t>(snd_pyframe_self(f)));
            seeks = false;
        } else if (UNLIKELY(seeks) && find_compiled(snd_pyframe_code(f))) {
            hash = stir(hash, snd_pyframe_place(f));
            seeks = false;
        }
    }
    Scripted scripted;
    if (FLAGS & SONDE_TORCH_MODULES) {
        scripted.path = scripted_path();
        if (UNLIKELY(!scripted.path.empty()))
            hash = hash_text(scripted.path.data(), scripted.path.size(), hash);
    }
    if (FLAGS & SONDE_TORCH_STACKS) {
        if (LIKELY(settings.c_calls != nullptr))
            hash = stir(hash, settings.c_calls->known());
        scripted.stack = scripted_stack();
        if (UNLIKELY(!scripted.stack.empty()))
            hash = hash_scripted(scripted.stack, hash);
    }
    PlaceSlot *slot = &thread->places[hash % PLACE_SLOTS];
    if (UNLIKELY(slot->hash != hash))
        place_slow(thread, slot, hash, top, scripted);
    return slot;
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
