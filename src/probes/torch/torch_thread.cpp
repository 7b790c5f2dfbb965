/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_thread.cpp - see torch_thread.h. */
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

Thread           nobody;
__thread Thread *self __attribute__((tls_model("initial-exec"))) = &nobody;
pthread_key_t    exit_key;

Settings              settings;
std::mutex            control;
std::mutex            shared;
std::atomic<uint32_t> noted_epoch{ 0 };
std::atomic<uint64_t> argument_bytes{ 0 };
char                  description[512];

static __thread bool has_ended __attribute__((tls_model("initial-exec")));

void release_thread(void *argument)
{
    Thread *thread = static_cast<Thread *>(argument);

    self = &nobody;
    has_ended = true; /* other destructors of this thread may still run operators */
    free(thread->open);
    munmap(thread, sizeof *thread);
}

namespace
{

/* Fresh pages: only the used parts of the tables take memory. */
Thread *make_thread()
{
    if (has_ended)
        return nullptr;
    void *pages = mmap(nullptr, sizeof(Thread), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (pages == MAP_FAILED)
        return nullptr;
    Thread *thread = static_cast<Thread *>(pages);
    thread->open = static_cast<Open *>(malloc(OPEN_FIRST * sizeof(Open)));
    if (!thread->open || pthread_setspecific(exit_key, thread) != 0) {
        free(thread->open);
        munmap(pages, sizeof(Thread));
        return nullptr;
    }
    thread->open[0] = { nullptr, nullptr };
    thread->limit = thread->open + OPEN_FIRST;
    thread->number = at::RecordFunction::currentThreadId();
    self = thread;
    return thread;
}

/* Each trace file has a description of the probe, written by the first thread of an epoch. */
void write_notes(uint32_t epoch)
{
    uint32_t before = noted_epoch.load();

    if (before == epoch || !noted_epoch.compare_exchange_strong(before, epoch))
        return;
    argument_bytes = 0;
    std::lock_guard<std::mutex> guard(shared);
    sonde_metadata(snd_meta_key(SND_META_TORCH_PROBE), description);
    for (const auto &note : settings.notes)
        sonde_metadata(note.first.c_str(), note.second.c_str());
}

} // namespace

NOINLINE Thread *renew(uint32_t epoch)
{
    Thread *thread = self != &nobody ? self : make_thread();

    if (!thread)
        return nullptr;
    sonde_intern("torch",
                 5); /* creates the file of a forked child, before metadata is written to it */
    thread->top = thread->open + 1; /* the ends of another epoch's ranges are not recorded */
    thread->seen[0].next = thread->seen_last = &thread->seen[0];
    thread->backward_frame = nullptr;
    thread->sequence = NO_SEQUENCE;
    thread->epoch = epoch;
    thread->seed = stir(stir(0x243F6A8885A308D3ull, epoch), epoch);
    write_notes(epoch);
    char key[40], value[24];
    snprintf(key, sizeof key, "%s%ld", snd_meta_key(SND_META_TORCH_THREAD),
             static_cast<long>(syscall(SYS_gettid)));
    snprintf(value, sizeof value, "%llu", static_cast<unsigned long long>(thread->number));
    sonde_metadata(key, value);
    return thread;
}

NOINLINE void begin_slow(uint32_t epoch, uint32_t call, Own own)
{
    if (sonde_epoch() != epoch) /* these ids are another recording's */
        return;
    sonde_begin_call(call, static_cast<uint64_t>(own.sequence) & VALUE_MASK);
    if (own.key)
        sonde_attr(SONDE_ATTR_KEY, own.key);
    if (own.id)
        sonde_attr(SONDE_ATTR_RECORD_FUNCTION, own.id);
}

} // namespace snd_torch
