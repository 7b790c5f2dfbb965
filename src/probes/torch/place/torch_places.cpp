/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/place/torch_places.cpp - see torch_places.h. */
#include "probes/torch/place/torch_places.h"

#include "probes/torch/place/torch_modulewalk.h"
#include "pystack/interpreter/range_depth.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

namespace
{

/*
 * Frames of the thread that started a profile which were open then, outermost first: torch names them
 * by the line that they were in. Under `shared`; one that has returned is not the frame that has its
 * place now, so it goes, with those that it had called, as soon as it is missed.
 */
struct OpenFrame {
    const snd_pyframe *frame;
    const void        *code;
    uint32_t           line;
};
std::vector<OpenFrame> open_frames;
pthread_t              open_frames_owner;

} // namespace

void keep_open_frames(bool wanted)
{
    std::lock_guard<std::mutex> guard(shared);

    open_frames.clear();
    open_frames_owner = pthread_self();
    for (snd_pyframe *f = wanted ? snd_pyframe_real(snd_pyframe_mine()) : nullptr; f;
         f = snd_pyframe_real(snd_pyframe_caller(f))) {
        int line = snd_pyframe_line(f);
        open_frames.insert(open_frames.begin(),
                           { f, snd_pyframe_code(f), line > 0 ? static_cast<uint32_t>(line) : 0 });
    }
}

namespace
{

/* Lines of those of `frames` (innermost first) that are still open since then, outermost first. */
std::vector<uint32_t> open_lines(const std::vector<snd_pyframe *> &frames)
{
    std::lock_guard<std::mutex> guard(shared);
    std::vector<uint32_t>       lines;
    size_t                      count = 0;

    if (open_frames.empty() || !pthread_equal(open_frames_owner, pthread_self()))
        return lines;
    while (count < open_frames.size() && count < frames.size() &&
           frames[frames.size() - 1 - count] == open_frames[count].frame &&
           snd_pyframe_code(open_frames[count].frame) == open_frames[count].code)
        lines.push_back(open_frames[count++].line);
    open_frames.resize(count);
    return lines;
}

/* `open_line`: of a frame that was open when the profile began; 0: it was not. */
uint32_t frame_id(Thread *thread, const snd_pyframe *frame, PyObject *module, uint32_t open_line)
{
    uint64_t hash = stir(stir(thread->seed + 1 + open_line, snd_pyframe_place(frame)),
                         reinterpret_cast<uintptr_t>(module));
    if (module)
        hash = stir(hash, modules_gone.load(std::memory_order_relaxed));
    IdSlot *slot = &thread->frames[hash % FRAME_SLOTS];

    if (slot->hash == hash)
        return slot->id;
    if (module) {
        std::string label = module_label(thread, module);
        slot->id = sonde_intern_frame(sonde_intern(label.data(), label.size()), 0, 0);
    } else {
        PyCodeObject *code = snd_pyframe_code(frame);
        std::string   function = text_of(code->co_name), file = text_of(code->co_filename);
        int           line = snd_pyframe_line(frame);
        slot->id = sonde_intern_frame_in(sonde_intern(function.data(), function.size()),
                                         open_line ? open_line
                                                   : static_cast<uint32_t>(code->co_firstlineno),
                                         sonde_intern(file.data(), file.size()),
                                         line > 0 ? static_cast<uint32_t>(line) : 0);
    }
    slot->hash = slot->id ? hash : 0;
    return slot->id;
}

uint32_t stack_id(Thread *thread, uint32_t parent, uint32_t frame)
{
    uint64_t hash = stir(thread->seed + 2, static_cast<uint64_t>(parent) << 32 | frame);
    IdSlot  *slot = &thread->frames[hash % FRAME_SLOTS];

    if (slot->hash != hash) {
        slot->id = sonde_intern_stack(parent, frame);
        slot->hash = slot->id ? hash : 0;
    }
    return slot->id;
}

/* The outermost frame of a stack that has more than are recorded. */
uint32_t left_out_stack(Thread *thread)
{
    uint32_t name = sonde_intern(SND_FRAMES_LEFT_OUT, sizeof SND_FRAMES_LEFT_OUT - 1);

    return stack_id(thread, 0, sonde_intern_frame(name, 0, 0));
}

} // namespace

NOINLINE void note_depth()
{
    unsigned depth = snd_range_depth();

    if (depth != 0)
        sonde_attr(SONDE_ATTR_PYTHON_DEPTH, depth);
}

namespace
{

inline PyObject *module_of(const snd_pyframe *frame)
{
    return snd_pyframe_code(frame) == settings.module_code ? snd_pyframe_self(frame) : nullptr;
}

} // namespace

std::vector<PyObject *> open_modules(snd_pyframe *top)
{
    std::vector<PyObject *> modules;
    int                     left = SND_PYTHON_FRAMES_MAX;

    for (snd_pyframe *f = snd_pyframe_real(top); f && left > 0;
         f = snd_pyframe_real(snd_pyframe_caller(f)), left--)
        if (module_of(f))
            modules.insert(modules.begin(), module_of(f));
    return modules;
}

namespace
{

/* The open functions in C, innermost first, each with the frame that called it as an index of `frames`. */
std::vector<std::pair<size_t, uint32_t>> open_c_calls(const std::vector<snd_pyframe *> &frames)
{
    std::vector<snd_c_call> calls(settings.c_calls ? SND_PYTHON_FRAMES_MAX : 0);
    size_t count = calls.empty() ? 0 : settings.c_calls->list(calls.data(), calls.size());
    std::vector<std::pair<size_t, uint32_t>> found;

    for (size_t i = 0, from = 0; i < count; i++) {
        size_t at = from;
        while (at < frames.size() && frames[at] != calls[i].caller)
            at++;
        if (at == frames.size() ||
            calls[i].frame == 0) /* its caller is among the frames left out */
            continue;
        found.emplace_back(at, calls[i].frame);
        from = at;
    }
    return found;
}

NOINLINE uint32_t python_stack(Thread *thread, const std::vector<snd_pyframe *> &frames,
                               bool is_cut)
{
    auto                  calls = open_c_calls(frames);
    std::vector<uint32_t> lines = is_cut ? std::vector<uint32_t>() : open_lines(frames);
    uint32_t              stack = is_cut ? left_out_stack(thread) : 0;

    for (size_t i = frames.size(), n = 0; i-- > 0; n++) {
        stack = stack_id(thread, stack,
                         frame_id(thread, frames[i], module_of(frames[i]),
                                  n < lines.size() ? lines[n] : 0));
        for (; !calls.empty() && calls.back().first == i; calls.pop_back())
            stack = stack_id(thread, stack, calls.back().second);
    }
    return stack;
}

/* Of backward code only `compiled` says where it is: below its forward operator's module. */
void place_module(Thread *thread, PlaceSlot *slot, const std::vector<PyObject *> &modules,
                  const Scripted &scripted, const CompiledPlace &compiled)
{
    std::string path = modules.empty() ? "" : module_path(thread, modules) + scripted.path;

    if (compiled.line) {
        const CompiledLine &line = *compiled.line;
        std::string         text = line.within + "|" + line.alone;
        slot->compiled = sonde_intern(text.data(), text.size());
        if (compiled.is_backward || path.empty())
            path = compiled.is_backward ? path : line.alone;
        else if (!line.within.empty())
            path += "." + line.within;
    }
    if (!path.empty())
        slot->module = sonde_intern(path.data(), path.size());
}

} // namespace

NOINLINE void place_slow(Thread *thread, PlaceSlot *slot, uint64_t hash, snd_pyframe *top,
                         const Scripted &scripted)
{
    try {
        std::vector<snd_pyframe *> frames;
        std::vector<PyObject *>    modules = open_modules(top);
        snd_pyframe               *f = snd_pyframe_real(top);
        for (; f && frames.size() < SND_PYTHON_FRAMES_MAX;
             f = snd_pyframe_real(snd_pyframe_caller(f)))
            frames.push_back(f);
        keep_known(thread, frames, modules);
        slot->stack = slot->module = slot->compiled = 0;
        if (settings.flags & SONDE_TORCH_STACKS) {
            slot->stack = python_stack(thread, frames, f != nullptr);
            for (size_t i = scripted.stack.size(); i-- > 0;)
                if (uint32_t frame = scripted_frame(scripted.stack[i]))
                    slot->stack = stack_id(thread, slot->stack, frame);
        }
        if (settings.flags & SONDE_TORCH_MODULES)
            place_module(thread, slot, modules, scripted, compiled_place(top));
        slot->hash = hash;
    } catch (const std::exception &) {
        *slot = { 0, 0, 0, 0 };
    }
}

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch
