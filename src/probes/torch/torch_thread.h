/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_thread.h - the probe's state of each thread, and how it writes events.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_THREAD_H
#define SND_PROBES_TORCH_THREAD_H

#include <ATen/record_function.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/metadata.h"
#include "pystack/interpreter/c_calls.h"
#include "sonde/record.h"

#define NOINLINE __attribute__((noinline))
/* For functions on the path of each operator: a call would cost as much as its work. */
#define INLINE inline __attribute__((always_inline))
/* Everything that the function calls is inlined, except what is NOINLINE. */
#define FLATTEN __attribute__((flatten))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace snd_torch
{

/* ------------------------------------------------------------------- hashes */

inline uint64_t stir(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 29;
}

/* Mixes two words by one multiplication: the halves of their product. */
inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;

    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t ODD = 0xE7037ED1A0B428DBull;
constexpr size_t   WORD = sizeof(uint64_t);

inline uint64_t word_at(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
    return word;
}

inline uint64_t hash_text(const char *text, size_t length, uint64_t hash)
{
    for (; length >= 2 * WORD; length -= 2 * WORD, text += 2 * WORD)
        hash = fold(hash ^ word_at(text), ODD ^ word_at(text + WORD));
    if (length >= WORD) /* the last two words, which may overlap */
        return fold(hash ^ word_at(text), ODD ^ word_at(text + length - WORD));
    for (; length > 0; length--)
        hash = stir(hash, static_cast<unsigned char>(*text++));
    return hash;
}

/* ------------------------------------------------------------------ threads */

constexpr size_t NAME_SLOTS = 1024, TEXT_SLOTS = 1024, CALL_LINES = 4096, CALL_WAYS = 4,
                 PLACE_SLOTS = 4096, FRAME_SLOTS = 4096, OPEN_FIRST = 256, NAME_WORDS = 5,
                 OPERATOR_SLOTS = 4096, SEEN_SLOTS = 2048, SEEN_WORDS = 28;

/*
 * Found by the address of an operator's name, then by its text: addresses are reused. A cache line.
 */
struct alignas(64) NameSlot {
    const char *address;
    uint32_t    epoch;
    uint32_t    length : 6;      /* of the text */
    uint32_t    is_operator : 1; /* of the dispatcher, so it has no keyword arguments */
    uint32_t    id : 25;         /* of the text, in the trace */
    uint32_t    calls[2]; /* if only the name is recorded: without and with a sequence number */
    uint64_t    text[NAME_WORDS]; /* whole words, then the last eight bytes with the NUL */
};
/* Found by a hash of 64 bits that includes the epoch; equal hashes are taken as equal keys. */
struct IdSlot {
    uint64_t hash;
    uint32_t id;
};
/* Ways of calling an operator: a cache with four entries a line, so that few evict each other. */
struct alignas(64) CallLine {
    IdSlot ways[CALL_WAYS];
};
struct PlaceSlot {
    uint64_t hash;
    uint32_t stack, module, compiled;
};
/* An operator of torch's dispatcher, of which only the name is recorded: torch_operators.h. */
struct OperatorSlot {
    uint64_t key;
    uint32_t epoch, call;
};
/* A call of one with its inputs, word by word, and the call that came after it. A few cache lines. */
struct alignas(64) Seen {
    uint64_t key;
    uint32_t epoch, call;
    Seen    *next;
    uint64_t count; /* of inputs */
    uint64_t words[SEEN_WORDS];
};

struct Open {
    const void *function; /* the address of the at::RecordFunction */
    const void *resumed;  /* of a backward function: Thread::backward_frame as it was before */
};

constexpr int64_t NO_SEQUENCE = -1;

struct Thread {
    uint32_t     epoch;
    uint64_t     seed;      /* of the hashes: the epoch, mixed */
    bool         is_inside; /* in our own slow path: operators that it runs are not recorded */
    uint64_t     number;    /* torch's */
    int64_t      sequence;  /* that was recorded last, in the lane's `chunk`-th chunk */
    uint32_t     chunk;
    Open        *open;           /* innermost last, below it one of no range */
    Open        *top;            /* behind the innermost */
    Open        *limit;          /* behind the last that there is room for */
    const void  *backward_frame; /* innermost Python frame when a backward function began */
    Seen        *seen_last;
    NameSlot     names[NAME_SLOTS];
    IdSlot       texts[TEXT_SLOTS];
    CallLine     calls[CALL_LINES];
    PlaceSlot    places[PLACE_SLOTS];
    IdSlot       frames[FRAME_SLOTS];
    OperatorSlot operators[OPERATOR_SLOTS];
    uint64_t certain[NAME_SLOTS]; /* the key of the operator in the name's slot, if it has one */
    Seen     seen[SEEN_SLOTS];    /* the first is of no call */
};

/* initial-exec: otherwise each access would call __tls_get_addr, several times per operator. */
extern __thread Thread *self __attribute__((tls_model("initial-exec")));
extern Thread           nobody;   /* of a thread that has no state yet: nothing is known in it */
extern pthread_key_t    exit_key; /* of release_thread() */

constexpr uint64_t ARGUMENT_BYTES_MAX = 24u << 20;

/* Set by start(), read by the callbacks. */
struct Settings {
    uint32_t                                         flags = 0;
    std::vector<std::pair<std::string, std::string>> notes;
    void                                            *module_code = nullptr;
    const snd_c_calls                               *c_calls = nullptr;
};
extern Settings              settings;
extern std::mutex            control; /* of start and stop */
extern std::mutex            shared;  /* of what follows; never held while Python runs */
extern std::atomic<uint32_t> noted_epoch;
extern std::atomic<uint64_t> argument_bytes;
extern char                  description[512];

void release_thread(void *argument);

/* The thread's first range in an epoch, which is not 0. */
NOINLINE Thread *renew(uint32_t epoch);

INLINE Thread *this_thread(uint32_t epoch)
{
    Thread *thread = self;

    return LIKELY(thread->epoch == epoch) ? thread : renew(epoch);
}

/* ------------------------------------------------------------------ writing */

constexpr uint64_t EVENT_ALLOC = 0x61, EVENT_FREE = 0x62;
constexpr uint64_t VALUE_MASK = (UINT64_C(1) << 48) - 1;

inline uint64_t attr_word(enum sonde_attr key, uint64_t value)
{
    return value << 16 | static_cast<uint64_t>(key) << 8 | SONDE_KIND_ATTR;
}

/* Values of a single range, not shared with others of the same call; 0, NO_SEQUENCE: none. */
struct Own {
    int64_t  sequence; /* autograd's number */
    uint64_t key;      /* for an end by another thread */
    uint64_t id;       /* of the at::RecordFunction, if someone asked torch for ids */
};

NOINLINE void begin_slow(uint32_t epoch, uint32_t call, Own own);

/* Whether the number is to be written before a range: it is not the one that was written last. */
INLINE bool is_new_sequence(Thread *thread, const struct sonde_lane *lane, int64_t sequence)
{
    if (thread->sequence == sequence && thread->chunk == lane->chunks)
        return false;
    thread->sequence = sequence;
    thread->chunk = lane->chunks;
    return true;
}

INLINE void write_sequence(struct sonde_lane *lane, int64_t sequence)
{
    *lane->cur++ = attr_word(SONDE_ATTR_CALLS_SEQUENCE,
                             static_cast<uint64_t>(sequence) & VALUE_MASK);
}

/*
 * Writes a range: before it autograd's sequence number if that has changed, after it key and id
 * if it has them. The range's first word is stored last, and the clock is read right before that:
 * the time for writing is not charged to the range.
 */
INLINE void begin(Thread *thread, uint32_t epoch, uint32_t call, const Own &own)
{
    struct sonde_lane *lane = sonde_lane_own();

    if (UNLIKELY(!sonde_lane_take(lane, epoch, 5 | (call & SONDE_LATE_ID))))
        return begin_slow(epoch, call, own);
    if (own.sequence >= 0 && is_new_sequence(thread, lane, own.sequence))
        write_sequence(lane, own.sequence);
    uint64_t *behind = lane->cur + 2;
    if (UNLIKELY(own.key | own.id)) {
        if (own.key)
            *behind++ = attr_word(SONDE_ATTR_KEY, own.key);
        if (own.id)
            *behind++ = attr_word(SONDE_ATTR_RECORD_FUNCTION, own.id & VALUE_MASK);
    }
    sonde_lane_begin_call(lane, call, false);
    if (UNLIKELY(own.key | own.id)) {
        lane->leaf = nullptr;
        lane->cur = behind;
        if (own.key)
            lane->depth += SONDE_DEPTH_BREAK; /* another thread may end it */
    }
    sonde_lane_leave(lane);
}

INLINE void end(uint32_t epoch, uint64_t now)
{
    sonde_lane_end_now(epoch, now);
}

inline void memory(bool is_free, struct sonde_device device, const void *address, uint64_t size)
{
    uint32_t           epoch = sonde_epoch();
    struct sonde_lane *lane = sonde_lane_own();

    if (epoch == 0 || !address)
        return;
    if (UNLIKELY(!sonde_lane_take(lane, epoch, 4)))
        return is_free ? sonde_free(device, address, size) : sonde_alloc(device, address, size);
    uint64_t *at = lane->cur;
    lane->cur = at + 4;
    lane->leaf = nullptr;
    at[1] = static_cast<uint32_t>(device.type) << 16 | static_cast<uint16_t>(device.index);
    at[2] = reinterpret_cast<uintptr_t>(address);
    at[3] = size;
    __atomic_store_n(at, sonde_clock() << 8 | (is_free ? EVENT_FREE : EVENT_ALLOC),
                     __ATOMIC_RELEASE);
    sonde_lane_leave(lane);
}

} // namespace snd_torch

#endif
