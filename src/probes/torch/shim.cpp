/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/shim.cpp - see shim.h.
 *
 * The overhead of an operator is mostly torch's own work around an empty callback, then two clock
 * reads, then the code here. So an operator that was called like this before is found by its
 * schema's address and a look at its inputs (torch_operators.h), and written to the thread's lane
 * without a call. Any other is one hash of name, inputs and frames, and one cache line with the id
 * for it. Ids belong to one epoch of the recorder: every cache entry has its epoch, so no cache
 * has to be cleared.
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
#include "probes/torch/torch_operators.h"
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
    size_t room = static_cast<size_t>(thread->limit - thread->open);
    size_t used = static_cast<size_t>(thread->top - thread->open);
    Open  *open = static_cast<Open *>(realloc(thread->open, 2 * room * sizeof(Open)));

    if (!open)
        return false;
    thread->open = open;
    thread->top = open + used;
    thread->limit = open + 2 * room;
    return true;
}

using BeginFn = std::unique_ptr<at::ObserverContext> (*)(const at::RecordFunction &);

/* Any range. */
template <uint32_t FLAGS>
FLATTEN NOINLINE std::unique_ptr<at::ObserverContext> begin_any(const at::RecordFunction &fn)
{
    uint32_t epoch = sonde_epoch();

    if (UNLIKELY(epoch == 0))
        return nullptr;
    Thread *thread = this_thread(epoch);
    if (UNLIKELY(!thread || (thread->top == thread->limit && !grow(thread))))
        return nullptr;

    Open            *open = thread->top++;
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
    Name     name = name_of(thread, fn);
    uint32_t call = call_of<FLAGS>(thread, fn, name, place);
    if (call != 0 && !(FLAGS & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES)))
        learn_call(thread, fn, epoch, call, name, FLAGS & SONDE_TORCH_SHAPES);
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

/* Writes the begin of an ordinary range, where the counter is the clock. False: there is no room. */
INLINE bool begin_known(Thread *thread, const at::RecordFunction &fn, uint32_t epoch, uint32_t call)
{
    struct sonde_lane *lane = sonde_lane_own();
    Open              *open = thread->top;

    if (UNLIKELY(open == thread->limit || !sonde_lane_take(lane, epoch, 3)))
        return false;
    open->function = &fn;
    thread->top = open + 1;
    if (fn.seqNr() >= 0 && is_new_sequence(thread, lane, fn.seqNr()))
        write_sequence(lane, fn.seqNr());
    sonde_lane_begin_call(lane, call, true);
    sonde_lane_leave(lane);
    return true;
}

/* Of the options that were started with: never inlined, so that nothing is saved for it. */
BeginFn begin_general;

/* The shortest way if it is possible: without a call. */
template <bool HAS_INPUTS>
FLATTEN std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction &fn)
{
    if (LIKELY(is_ordinary(fn))) {
        Thread  *thread = self;
        uint32_t epoch = sonde_epoch(), call;
        if (LIKELY(find_call<HAS_INPUTS>(thread, fn, epoch, &call) &&
                   begin_known(thread, fn, epoch, call)))
            return nullptr;
    }
    return begin_general(fn);
}

void remove_open(Thread *thread, Open *open)
{
    size_t inner = static_cast<size_t>(thread->top - open) - 1;

    memmove(open, open + 1, inner * sizeof(Open));
    thread->top--;
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
        for (Open *open = thread->top; --open > thread->open;) {
            if (open->function == ended_elsewhere[i].second) {
                remove_open(thread, open);
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
    if (epoch == 0)
        return;
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
    for (Open *open = thread->top; --open > thread->open;) {
        if (open->function != &fn)
            continue;
        uint32_t inner = static_cast<uint32_t>(thread->top - open) - 1;
        thread->backward_frame = inner == 0 ? open->resumed : thread->backward_frame;
        remove_open(thread, open);
        if (inner == 0)
            end(epoch, now);
        else
            sonde_end_at(inner);
        return;
    }
}

template <bool HAS_FRAMES, bool IS_COUNTER>
FLATTEN void on_end(const at::RecordFunction &fn, at::ObserverContext *)
{
    uint64_t now = IS_COUNTER ? sonde_lane_counter() : sonde_clock();
    uint32_t epoch = sonde_epoch();
    Thread  *thread = self;
    Open    *open = thread->top - 1;

    if (UNLIKELY(thread->epoch != epoch || open->function != &fn))
        return end_slow(fn, epoch, now);
    thread->top = open;
    if (HAS_FRAMES)
        thread->backward_frame = open->resumed;
    end(epoch, now);
}

std::unique_ptr<at::ObserverContext> on_begin_empty(const at::RecordFunction &)
{
    return nullptr;
}

void on_end_empty(const at::RecordFunction &, at::ObserverContext *)
{
}

/* One callback for each set of options: none checks options at run time. */
constexpr uint32_t flags_of(uint32_t i)
{
    return (i & 1) * SONDE_TORCH_SHAPES | (i >> 1 & 1) * SONDE_TORCH_STACKS |
           (i >> 2 & 1) * SONDE_TORCH_MODULES | (i >> 3 & 1) * SONDE_TORCH_OVERLOADS;
}

template <uint32_t... I> BeginFn choose(uint32_t flags, std::integer_sequence<uint32_t, I...>)
{
    static const BeginFn functions[] = { begin_any<flags_of(I)>... };
    uint32_t             i = 0;

    while (flags_of(i) != flags)
        i++;
    return functions[i];
}

/* Where an operator was called is of each call: then there is no shorter way. */
BeginFn choose_begin(uint32_t kinds)
{
    begin_general = choose(kinds, std::make_integer_sequence<uint32_t, 16>());
    if (!sonde_clock_is_counter() || kinds & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES))
        return begin_general;
    return kinds & SONDE_TORCH_SHAPES ? on_begin<true> : on_begin<false>;
}

using EndFn = void (*)(const at::RecordFunction &, at::ObserverContext *);

EndFn choose_end(bool has_frames)
{
    if (sonde_clock_is_counter())
        return has_frames ? on_end<true, true> : on_end<false, true>;
    return has_frames ? on_end<true, false> : on_end<false, false>;
}

at::RecordFunctionCallback make_callback(uint32_t flags)
{
    uint32_t kinds = flags & (SONDE_TORCH_SHAPES | SONDE_TORCH_STACKS | SONDE_TORCH_MODULES |
                              SONDE_TORCH_OVERLOADS);
    bool     frames = flags & (SONDE_TORCH_STACKS | SONDE_TORCH_MODULES);
    BeginFn  first = choose_begin(kinds);

    at::RecordFunctionCallback callback =
        flags & SONDE_TORCH_EMPTY ? at::RecordFunctionCallback(on_begin_empty, on_end_empty)
                                  : at::RecordFunctionCallback(first, choose_end(frames));
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
        static Open none[1];
        nobody.top = none + 1;
        nobody.seen[0].next = nobody.seen_last = &nobody.seen[0];
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
    watch_operators();
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
