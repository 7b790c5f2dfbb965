/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/shim.cpp - see shim.h.
 *
 * The overhead of an operator is mostly torch's own work around an empty callback, then two clock
 * reads, then the code here. So the common case is one hash of name, inputs and frames, one cache
 * line with the id for it, and one write to the thread's lane. Ids belong to one epoch of the
 * recorder: every cache entry has its epoch, so no cache has to be cleared.
 *
 * Build with the flags of the torch it is for (NDEBUG above all: RecordFunction's layout
 * depends on it).
 */
#include "pystack/interpreter/pyframes.h" /* first: it includes Python.h */

#include <ATen/record_function.h>
#include <torch/version.h>

#include "probes/torch/shim.h"
#include "probes/torch/torch_calls.h"
#include "probes/torch/torch_collectives.h"
#include "probes/torch/torch_hooks.h"
#include "probes/torch/place/torch_kernels.h"
#include "probes/torch/place/torch_modulecalls.h"
#include "probes/torch/place/torch_modules.h"
#include "probes/torch/torch_names.h"
#include "probes/torch/place/torch_places.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

namespace
{

char error_text[256];

/* User ranges that another thread ended: (torch's number of the thread that began it, range). */
std::vector<std::pair<uint64_t, const void *>> ended_elsewhere;
std::atomic<size_t>                            ended_elsewhere_count{ 0 };

/* ---------------------------------------------------------------- callbacks */

inline uint64_t key_of(const at::RecordFunction &fn)
{
    return reinterpret_cast<uintptr_t>(&fn) & VALUE_MASK;
}

/* User ranges may await others, and scripts continue on the thread that completes a future. */
inline bool may_end_elsewhere(const at::RecordFunction &fn)
{
    return UNLIKELY(fn.scope() != at::RecordScope::FUNCTION &&
                    fn.scope() != at::RecordScope::BACKWARD_FUNCTION);
}

NOINLINE bool grow(Thread *thread)
{
    Open *open = static_cast<Open *>(realloc(thread->open, 2 * thread->room * sizeof(Open)));

    if (!open)
        return false;
    thread->open = open;
    thread->room *= 2;
    return true;
}

template <uint32_t FLAGS>
FLATTEN std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction &fn)
{
    uint32_t epoch = sonde_epoch();

    if (UNLIKELY(epoch == 0))
        return nullptr;
    Thread *thread = this_thread(epoch);
    if (UNLIKELY(!thread || (thread->depth == thread->room && !grow(thread))))
        return nullptr;

    Open            *open = &thread->open[thread->depth++];
    const PlaceSlot *place = &NOWHERE;
    open->function = &fn;
#ifndef SND_PYFRAMES_MISSING
    if (FLAGS & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES)) {
        snd_pyframe *top = snd_pyframe_mine();
        /* In a backward function the place is its forward operator's, which the reader looks up. */
        open->resumed = thread->backward_frame;
        if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION)
            thread->backward_frame = top;
        else if (top && top != thread->backward_frame && !thread->is_inside)
            place = place_of<FLAGS>(thread, top);
    }
#endif
    uint32_t call = call_of<FLAGS>(thread, fn, place);
    if (UNLIKELY(call == 0))
        sonde_begin_id(text_id(thread, fn.name()), 0); /* no room for more calls: the name alone */
    else
        begin(thread, epoch, call,
              { fn.seqNr(), may_end_elsewhere(fn) ? key_of(fn) : 0, fn.handle() });
    if (UNLIKELY(fn.scope() == at::RecordScope::USER_SCOPE)) {
#ifndef SND_PYFRAMES_MISSING
        note_depth();
#endif
        if (fn.isAsync())
            note_carried(epoch);
    }
    if (UNLIKELY(is_collective(fn, 0)))
        note_collective(fn);
    if (is_group_call(fn.name()) && fn.scope() == at::RecordScope::FUNCTION)
        return note_group_call(fn, epoch);
    return nullptr;
}

/* Removes the open ranges of this thread that other threads have ended. */
void forget_ended(Thread *thread)
{
    if (ended_elsewhere_count.load() == 0)
        return;
    std::lock_guard<std::mutex> guard(shared);
    for (size_t i = ended_elsewhere.size(); i-- > 0;) {
        if (ended_elsewhere[i].first != thread->number)
            continue;
        for (size_t k = thread->depth; k-- > 0;) {
            if (thread->open[k].function == ended_elsewhere[i].second) {
                memmove(&thread->open[k], &thread->open[k + 1],
                        (--thread->depth - k) * sizeof(Open));
                break;
            }
        }
        ended_elsewhere.erase(ended_elsewhere.begin() + static_cast<long>(i));
    }
    ended_elsewhere_count = ended_elsewhere.size();
}

/*
 * Not the innermost range: an end out of order, or of another thread's range, or of a range that
 * began before the recording.
 */
NOINLINE void end_slow(const at::RecordFunction &fn, uint32_t epoch, uint64_t now)
{
    Thread *thread = this_thread(epoch);

    if (!thread)
        return;
    if (fn.threadId() != thread->number) {
        std::lock_guard<std::mutex> guard(shared);
        sonde_end_key(key_of(fn));
        ended_elsewhere.emplace_back(fn.threadId(), &fn);
        ended_elsewhere_count = ended_elsewhere.size();
        return;
    }
    forget_ended(thread);
    for (size_t i = thread->depth; i-- > 0;) {
        if (thread->open[i].function != &fn)
            continue;
        size_t inner = thread->depth - 1 - i;
        thread->backward_frame = inner == 0 ? thread->open[i].resumed : thread->backward_frame;
        memmove(&thread->open[i], &thread->open[i + 1], inner * sizeof(Open));
        thread->depth--;
        if (inner == 0)
            end(epoch, now);
        else
            sonde_end_at(static_cast<uint32_t>(inner));
        return;
    }
}

template <bool HAS_FRAMES> FLATTEN void on_end(const at::RecordFunction &fn, at::ObserverContext *)
{
    uint32_t epoch = sonde_epoch();

    if (UNLIKELY(epoch == 0))
        return;
    uint64_t now = sonde_clock();
    Thread  *thread = self;
    if (UNLIKELY(!thread || thread->epoch != epoch || thread->depth == 0 ||
                 thread->open[thread->depth - 1].function != &fn))
        return end_slow(fn, epoch, now);
    thread->depth--;
    if (HAS_FRAMES)
        thread->backward_frame = thread->open[thread->depth].resumed;
    end(epoch, now);
}

std::unique_ptr<at::ObserverContext> on_begin_empty(const at::RecordFunction &)
{
    return nullptr;
}

void on_end_empty(const at::RecordFunction &, at::ObserverContext *)
{
}

using BeginFn = std::unique_ptr<at::ObserverContext> (*)(const at::RecordFunction &);

/* One callback for each set of options: none checks options at run time. */
constexpr uint32_t flags_of(uint32_t i)
{
    return (i & 1) * SONDE_TORCH_SHAPES | (i >> 1 & 1) * SONDE_TORCH_STACKS |
           (i >> 2 & 1) * SONDE_TORCH_MODULES | (i >> 3 & 1) * SONDE_TORCH_OVERLOADS;
}

template <uint32_t... I> BeginFn choose(uint32_t flags, std::integer_sequence<uint32_t, I...>)
{
    static const BeginFn functions[] = { on_begin<flags_of(I)>... };
    uint32_t             i = 0;

    while (flags_of(i) != flags)
        i++;
    return functions[i];
}

at::RecordFunctionCallback make_callback(uint32_t flags)
{
    uint32_t kinds = flags & (SONDE_TORCH_SHAPES | SONDE_TORCH_STACKS | SONDE_TORCH_MODULES |
                              SONDE_TORCH_OVERLOADS);
    bool     frames = flags & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES);
    BeginFn  first = choose(kinds, std::make_integer_sequence<uint32_t, 16>());

    at::RecordFunctionCallback callback =
        flags & SONDE_TORCH_EMPTY
            ? at::RecordFunctionCallback(on_begin_empty, on_end_empty)
            : at::RecordFunctionCallback(first, frames ? on_end<true> : on_end<false>);
    /*
     * Only the scopes that occur: the autograd engine allocates for each enabled one at each node.
     */
    callback.needsInputs(flags & (SONDE_TORCH_SHAPES | SONDE_TORCH_COLLECTIVES))
        .scopes({ at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION,
                  at::RecordScope::TORCHSCRIPT_FUNCTION, at::RecordScope::USER_SCOPE });
    return callback;
}

/* ----------------------------------------------------------- start and stop */

at::CallbackHandle handle;
bool               is_on;

void before_fork()
{
    control.lock();
    shared.lock();
}

void after_fork()
{
    shared.unlock();
    control.unlock();
}

bool prepare_once()
{
    static bool is_ready = [] {
        return pthread_key_create(&exit_key, release_thread) == 0 &&
               pthread_atfork(before_fork, after_fork, after_fork) == 0;
    }();
    return is_ready;
}

void describe(uint32_t flags, const char *cpu, bool cuda, bool compiled, const char *missing)
{
    static const struct {
        uint32_t    flag;
        const char *name;
    } names[] = { { SONDE_TORCH_SHAPES, "shapes" },
                  { SONDE_TORCH_MEMORY, "memory" },
                  { SONDE_TORCH_STACKS, "stacks" },
                  { SONDE_TORCH_MODULES, "modules" },
                  { SONDE_TORCH_OVERLOADS, "overloads" } };
    std::string list = "\"ops\"";

    for (const auto &name : names)
        if (flags & name.flag)
            list += std::string(", \"") + name.name + "\"";
    snprintf(description, sizeof description,
             "{\"torch\": \"%s\", \"records\": [%s], \"cpu_memory\": \"%s\", "
             "\"cuda_memory\": %s, \"compiled_ranges\": %s, \"missing\": \"%s\"}",
             TORCH_VERSION, list.c_str(), cpu, cuda ? "true" : "false", compiled ? "true" : "false",
             missing);
}

void set_settings(const sonde_torch_options *options, uint32_t flags)
{
    std::lock_guard<std::mutex> guard(shared);

    settings.flags = flags;
    settings.c_calls = options->c_calls;
    settings.notes.clear();
    for (const char *const *note = options->notes; note && note[0] && note[1]; note += 2)
        settings.notes.emplace_back(note[0], note[1]);
#ifndef SND_PYFRAMES_MISSING
    if (options->module_function && PyFunction_Check(options->module_function)) {
        PyObject *code = PyFunction_GET_CODE(static_cast<PyObject *>(options->module_function));
        if (settings.module_code != code)
            Py_INCREF(code); /* never released: its address is compared with those of live frames */
        settings.module_code = code;
    }
#endif
    noted_epoch = 0;
}

void stop()
{
    if (!is_on)
        return;
    is_on = false;
    at::removeCallback(handle);
    undo_diversions();
#ifndef SND_PYFRAMES_MISSING
    take_off_module_calls();
#endif
    if (settings.flags & SONDE_TORCH_MEMORY)
        take_off_allocator();
}

void start(const sonde_torch_options *options)
{
    uint32_t    flags = options->flags;
    const char *missing = "", *cpu = "none";
    bool        cuda = false;

#ifdef SND_PYFRAMES_MISSING
    if (flags & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES))
        missing = "stacks and modules: " SND_PYFRAMES_MISSING;
    flags &= ~static_cast<uint32_t>(SONDE_TORCH_STACKS | SONDE_TORCH_MODULES);
#endif
    set_settings(options, flags);
    if (flags & SONDE_TORCH_MEMORY) {
        if (!(flags & SONDE_TORCH_WRAP_ALLOCATOR) && divert_cpu()) {
            cpu = "diverted";
        } else {
            put_on_allocator();
            cpu = "wrapped";
        }
        cuda = divert_cuda();
    }
    bool compiled = divert_state();
    divert_set_state();
    describe(flags, cpu, cuda, compiled, missing);
    handle = at::addGlobalCallback(make_callback(flags));
#ifndef SND_PYFRAMES_MISSING
    keep_open_frames(flags & SONDE_TORCH_OPEN_FRAMES);
    if (flags & SONDE_TORCH_MODULES)
        put_on_module_calls(static_cast<PyObject *>(options->module_function));
#endif
    is_on = true;
}

} // namespace
} // namespace snd_torch

using namespace snd_torch;

extern "C" int sonde_torch_start(const struct sonde_torch_options *options)
{
    std::lock_guard<std::mutex> guard(control);

    error_text[0] = '\0';
    if (!options || options->struct_size != sizeof *options || !prepare_once()) {
        snprintf(error_text, sizeof error_text,
                 "the torch probe cannot start: options of another "
                 "version, or no thread keys left");
        return -1;
    }
    try {
        stop();
        start(options);
        return 0;
    } catch (const std::exception &e) {
        snprintf(error_text, sizeof error_text, "the torch probe cannot start: %.200s", e.what());
        undo_diversions();
        return -1;
    }
}

extern "C" void sonde_torch_collectives(void)
{
    std::lock_guard<std::mutex> guard(control);

    if (!is_on || settings.flags & (SONDE_TORCH_SHAPES | SONDE_TORCH_COLLECTIVES))
        return;
    settings.flags |= SONDE_TORCH_COLLECTIVES;
    at::removeCallback(handle);
    handle = at::addGlobalCallback(make_callback(settings.flags));
}

extern "C" void sonde_torch_stop(void)
{
    {
        std::lock_guard<std::mutex> guard(control);
        stop();
    }
#ifndef SND_PYFRAMES_MISSING
    release_known(); /* after `control`: a thread that holds the interpreter lock may wait for it */
#endif
}

extern "C" const char *sonde_torch_error(void)
{
    return error_text;
}

extern "C" const char *sonde_torch_describe(void)
{
    return description;
}

extern "C" void sonde_torch_compiled(void *code, int is_backward,
                                     const struct sonde_torch_line *lines, size_t count)
{
#ifndef SND_PYFRAMES_MISSING
    try {
        auto *compiled = new CompiledCode{ code, is_backward != 0, {} };
        for (size_t i = 0; i < count; i++)
            compiled->lines.push_back(
                { lines[i].first, lines[i].last, lines[i].within, lines[i].alone });
        if (add_compiled(compiled))
            Py_INCREF(static_cast<PyObject *>(code));
        else
            delete compiled;
    } catch (const std::exception &) {
        /* out of memory: nothing is known of this code */
    }
#endif
}

extern "C" void *sonde_torch_kernel(void *kernel, const char *name)
{
#ifndef SND_PYFRAMES_MISSING
    return make_kernel(static_cast<PyObject *>(kernel), name);
#else
    return nullptr;
#endif
}
