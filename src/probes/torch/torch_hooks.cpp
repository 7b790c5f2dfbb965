/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_hooks.cpp - see torch_hooks.h. */
#include "probes/torch/torch_hooks.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <dlfcn.h>

#include "format/known.h"
#include "hook/slots.h"
#include "probes/torch/shim.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

namespace
{

/* ------------------------------------------------------------------- memory */

/*
 * torch reports memory to its profiler through a thread-local slot, which has room for one listener
 * and is not set on most threads. The allocators' calls to it cross a library boundary, so they can
 * be redirected: this covers every thread, at a third of the cost, and still calls the original.
 */
snd_redirects diverted;

using ReporterNew = void (*)(void *, void *, size_t);
using ReporterDelete = void (*)(void *, void *);
using ReportOutOfMemory = void (*)(void *, size_t);
using ReportUsage = void (*)(void *, int64_t, size_t, size_t, c10::Device);
ReporterNew       reporter_new;
ReporterDelete    reporter_delete;
ReportOutOfMemory reporter_out_of_memory;
ReportUsage       report_usage;

void new_diverted(void *reporter, void *address, size_t size)
{
    memory(false, SONDE_CPU, address, size);
    reporter_new(reporter, address, size);
}

void delete_diverted(void *reporter, void *address)
{
    memory(true, SONDE_CPU, address, 0);
    reporter_delete(reporter, address);
}

void out_of_memory_diverted(void *reporter, size_t size)
{
    sonde_mark("[OutOfMemory]");
    reporter_out_of_memory(reporter, size);
}

constexpr unsigned COUNTED_DEVICES = 64, ALLOCATED_EVERY = 64;

/* The values of a GPU that were written last, in this epoch. Its allocator holds a lock. */
struct Counted {
    std::atomic<uint32_t> epoch;
    std::atomic<size_t>   reserved;
    std::atomic<uint32_t> reports;
};
Counted counted[COUNTED_DEVICES];

void count_device(snd_known known, unsigned index, size_t bytes)
{
    char name[64];

    snprintf(name, sizeof name, "%s%u", snd_known_name(known), index);
    sonde_counter(name, static_cast<double>(bytes));
}

/*
 * Writes the reserved bytes if they changed, before the block that changed them. True: the first
 * time.
 */
bool note_reserved(unsigned index, size_t reserved)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0 || index >= COUNTED_DEVICES)
        return false;
    Counted &last = counted[index];
    bool     first = last.epoch.exchange(epoch, std::memory_order_relaxed) != epoch;
    if (last.reserved.exchange(reserved, std::memory_order_relaxed) != reserved || first)
        count_device(SND_KNOWN_DEVICE_RESERVED, index, reserved);
    return first;
}

/*
 * The reader computes the bytes in use from the blocks and a start value: that is written after the
 * first block, and now and then, as the reader skips warm-up steps.
 */
void note_allocated(unsigned index, size_t allocated, bool first)
{
    if (sonde_epoch() == 0 || index >= COUNTED_DEVICES)
        return;
    if (first ||
        counted[index].reports.fetch_add(1, std::memory_order_relaxed) % ALLOCATED_EVERY == 0)
        count_device(SND_KNOWN_DEVICE_ALLOCATED, index, allocated);
}

/* A negative size is a free. CPU memory comes through the reporter above. */
void usage_diverted(void *address, int64_t size, size_t allocated, size_t reserved,
                    c10::Device device)
{
    bool is_gpu = device.type() == c10::kCUDA && device.index() >= 0;
    bool first = is_gpu && note_reserved(static_cast<unsigned>(device.index()), reserved);

    if (device.type() != c10::kCPU)
        memory(size < 0, sonde_device(static_cast<unsigned>(device.type()), device.index()),
               address, static_cast<uint64_t>(size < 0 ? -size : size));
    if (is_gpu)
        note_allocated(static_cast<unsigned>(device.index()), allocated, first);
    report_usage(address, size, allocated, reserved, device);
}

/* Memory that processes share (a DataLoader's batches), and files: libtorch_cpu maps it itself. */
void mapped_diverted(void *address, int64_t size, size_t allocated, size_t reserved,
                     c10::Device device)
{
    if (device.type() == c10::kCPU)
        memory(size < 0, SONDE_CPU, address, static_cast<uint64_t>(size < 0 ? -size : size));
    report_usage(address, size, allocated, reserved, device);
}

template <typename F> bool find_symbol(const char *library, const char *symbol, F *out)
{
    void *handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);

    if (!handle)
        return false;
    *out = reinterpret_cast<F>(dlsym(handle, symbol));
    dlclose(handle);
    return *out != nullptr;
}

/* torch's libraries are never closed, so an address that was found before is still right. */
template <typename F>
bool divert(const char *caller, const char *owner, const char *symbol, F to, F *original)
{
    return (*original || find_symbol(owner, symbol, original)) &&
           snd_redirect(&diverted, caller, symbol, reinterpret_cast<void *>(to)) > 0;
}

const char *const USAGE = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";

/* If those calls cannot be redirected: an allocator that wraps torch's own. */
class Wrapper final : public c10::Allocator
{
  public:
    static Wrapper &instance()
    {
        static Wrapper *wrapper = new Wrapper(); /* never freed: blocks outlive the recording */
        return *wrapper;
    }

    void put_on()
    {
        c10::Allocator *now = c10::GetCPUAllocator();
        if (now == this)
            return;
        inner_ = now;
        inner_delete_ = now->raw_deleter();
        c10::SetCPUAllocator(this, PRIORITY);
    }

    void take_off()
    {
        if (inner_ && c10::GetCPUAllocator() == this)
            c10::SetCPUAllocator(inner_, PRIORITY);
    }

    c10::DataPtr allocate(size_t size) override
    {
        c10::DataPtr data = inner_->allocate(size);

        /* A block with a context of its own cannot be given another deleter. */
        if (!inner_delete_ || data.get_deleter() != inner_delete_ ||
            data.get_context() != data.get())
            return data;
        void *address = data.release_context();
        memory(false, SONDE_CPU, address, size);
        return c10::DataPtr(address, address, &give_back, c10::Device(c10::kCPU));
    }

    c10::DeleterFnPtr raw_deleter() const override
    {
        return inner_delete_ ? &give_back : nullptr;
    }

    void copy_data(void *to, const void *from, std::size_t size) const override
    {
        memcpy(to, from, size);
    }

  private:
    static constexpr uint8_t PRIORITY = 255;
    c10::Allocator          *inner_ = nullptr;
    c10::DeleterFnPtr        inner_delete_ = nullptr;

    static void give_back(void *address)
    {
        memory(true, SONDE_CPU, address, 0);
        instance().inner_delete_(address);
    }
};

/* --------------------------------------------------------- "is a profiler on?" */

/*
 * Parts of torch check whether a profiler is on, and skip work if not: the ranges that
 * torch.compile's code and Dynamo open (_RecordFunctionFast), DataPipes, RPC. All of them look up
 * the state of torch's own profiler. While ours is on and torch's is not, two callers get a state
 * that does nothing:
 *   libtorch_python's ranges, which look it up directly;
 *   profilerEnabled(), profilerType(), getProfilerConfig(), which the others call. They are in the
 *   same library as torch's profiler, which must not see our state: callers are distinguished by
 *   their return address.
 */
namespace profiler = torch::profiler::impl;

class NoProfiler final : public profiler::ProfilerStateBase
{
  public:
    explicit NoProfiler(bool has_shapes)
        : ProfilerStateBase(profiler::ProfilerConfig(profiler::ProfilerState::KINETO, has_shapes))
    {
    }
    void reportMemoryUsage(void *, int64_t, size_t, size_t, c10::Device) override
    {
    }
    profiler::ActiveProfilerType profilerType() override
    {
        return profiler::ActiveProfilerType::KINETO;
    }
};

using GetState = profiler::ProfilerStateBase *(*)();
using GetStateOf = profiler::ProfilerStateBase *(*)(bool);
GetState    get_state;       /* of this thread: newer torch */
GetStateOf  get_state_of;    /* of all threads, or of this one: older torch */
NoProfiler *no_profilers[2]; /* without, with shapes. Never freed: a range may hold one */

NoProfiler *no_profiler()
{
    return no_profilers[(settings.flags & SONDE_TORCH_SHAPES) != 0];
}

profiler::ProfilerStateBase *state_diverted()
{
    profiler::ProfilerStateBase *state = get_state();

    return state ? state : no_profiler();
}

profiler::ProfilerStateBase *state_of_diverted(bool global)
{
    profiler::ProfilerStateBase *state = get_state_of(global);

    return state || global ? state : no_profiler();
}

/* Where the machine code of a function of torch is. */
struct Code {
    uintptr_t start, size;
};
Code askers[3];
bool has_askers;

bool find_code(const char *symbol, Code *code)
{
    void   *address;
    Dl_info info;
    ElfW(Sym) *found = nullptr;

    if (!find_symbol("libtorch_cpu.so", symbol, &address) ||
        !dladdr1(address, &info, reinterpret_cast<void **>(&found), RTLD_DL_SYMENT) || !found)
        return false;
    *code = { reinterpret_cast<uintptr_t>(address), found->st_size };
    return true;
}

/* False while recording is paused: torch's profiler is off during warm-up, too. */
bool is_asker(const void *caller)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(caller);

    for (const Code &asker : askers)
        if (at - asker.start < asker.size)
            return sonde_epoch() != 0;
    return false;
}

profiler::ProfilerStateBase *state_asked()
{
    const void                  *caller = __builtin_return_address(0);
    profiler::ProfilerStateBase *state = get_state();

    return !state && is_asker(caller) ? no_profiler() : state;
}

profiler::ProfilerStateBase *state_of_asked(bool global)
{
    const void                  *caller = __builtin_return_address(0);
    profiler::ProfilerStateBase *state = get_state_of(global);

    return !state && !global && is_asker(caller) ? no_profiler() : state;
}

const char *const STATE = "_ZN5torch8profiler4impl17ProfilerStateBase6getTLSEv";
const char *const STATE_OF = "_ZN5torch8profiler4impl17ProfilerStateBase3getEb"; /* before 2.8 */

/* -------------------------------------------------------- autograd's threads */

/*
 * For each node, the autograd engine sets the thread's state to that of the thread that built the
 * graph, and restores it afterwards: with a callback registered, torch then rebuilds its lists of
 * callbacks, a dozen allocations. This is skipped if both states are equal.
 */
using SetState = void (*)(const at::RecordFunctionTLS &);
SetState set_state;

void set_state_diverted(const at::RecordFunctionTLS &state)
{
    const at::RecordFunctionTLS &now = at::get_record_function_tls_();

    if (!state.sorted_tls_callbacks_.empty() || !now.sorted_tls_callbacks_.empty() ||
        state.tls_record_function_enabled_ != now.tls_record_function_enabled_)
        set_state(state);
}

} // namespace

bool divert_cpu()
{
    bool both = divert("libc10.so", "libc10.so", "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm",
                       new_diverted, &reporter_new) &&
                divert("libc10.so", "libc10.so", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv",
                       delete_diverted, &reporter_delete);
    if (both) {
        divert("libc10.so", "libc10.so", "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm",
               out_of_memory_diverted, &reporter_out_of_memory);
        divert("libtorch_cpu.so", "libc10.so", USAGE, mapped_diverted, &report_usage);
    }
    return both;
}

bool divert_cuda()
{
    return divert("libc10_cuda.so", "libc10.so", USAGE, usage_diverted, &report_usage);
}

void put_on_allocator()
{
    Wrapper::instance().put_on();
}

void take_off_allocator()
{
    Wrapper::instance().take_off();
}

bool divert_state()
{
    const char *library = "libtorch_cpu.so";

    if (!no_profilers[1]) { /* once: looking up a function's size takes a millisecond */
        no_profilers[0] = new NoProfiler(false);
        no_profilers[1] = new NoProfiler(true);
        has_askers = find_code("_ZN5torch8profiler4impl15profilerEnabledEv", &askers[0]) &&
                     find_code("_ZN5torch8profiler4impl12profilerTypeEv", &askers[1]) &&
                     find_code("_ZN5torch8profiler4impl17getProfilerConfigEv", &askers[2]);
    }
    if (has_askers && !divert(library, library, STATE, state_asked, &get_state))
        divert(library, library, STATE_OF, state_of_asked, &get_state_of);
    return divert("libtorch_python.so", library, STATE, state_diverted, &get_state) ||
           divert("libtorch_python.so", library, STATE_OF, state_of_diverted, &get_state_of);
}

void divert_set_state()
{
    divert("libtorch_cpu.so", "libtorch_cpu.so",
           "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE", set_state_diverted,
           &set_state);
}

void undo_diversions()
{
    snd_redirects_undo(&diverted);
}

} // namespace snd_torch
