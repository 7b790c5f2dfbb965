/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/lane.h - the fast path: how a mark writes its event into the mapped trace. Not for direct use:
 * sonde/record.h includes it. Names that end in '_' are for these headers alone; sonde_lane_* are for sonde's own
 * probes, which write an event as a mark does: they may change.
 *
 * docs/ARCHITECTURE.md, "The recorder", explains lanes and epochs.
 */
#ifndef SONDE_LANE_H
#define SONDE_LANE_H

#ifndef SONDE_RECORD_H
#error "include <sonde/record.h>, of which this is a part"
#endif

#define SONDE_LIKELY_(x) __builtin_expect(!!(x), 1)
#define SONDE_UNLIKELY_(x) __builtin_expect(!!(x), 0)

/*
 * A thread's place in the trace: the free part of its chunk. `busy` is set while an event
 * is written, so that a signal handler that records cannot tear it. An event counts once
 * its first word is stored (release); until then that word is zero.
 */
struct sonde_lane {
    uint64_t *cur, *end;
    uint64_t *leaf;  /* the range begun last, which can close in place until more is written */
    uint32_t  epoch; /* of the recording that gave the chunk */
    uint32_t  busy;
    uint32_t  chunks; /* counts its chunks: records needed once per chunk are then repeated */
    uint32_t  depth;  /* ranges open; only differences mean something (SONDE_DEPTH_BREAK) */
};

/*
 * What a scope knows of its range: the epoch and the lane's depth just after it began. At its end
 * the depth is the same again, unless ranges inside it were left by a jump.
 */
struct sonde_scope_ {
    uint32_t epoch, depth;
};

/*
 * Added to the depth when ranges begin to end out of order (sonde_end_at, keys): what is open above
 * a scope that began before is then not known, and its end is an ordinary one.
 */
#define SONDE_DEPTH_BREAK (1u << 20)

#define SONDE_THREAD_LOCAL_ __thread __attribute__((tls_model("initial-exec")))
SONDE_API extern SONDE_THREAD_LOCAL_ struct sonde_lane sonde_lane_;

/*
 * The epoch, and one more: 1 while nothing records. It is alone on its page, which the kernel
 * wipes in a new process: 0 there sends the first mark to the slow path, however the process was
 * created.
 */
#if defined(__x86_64__)
#define SONDE_PAGE_ 4096
#else
#define SONDE_PAGE_ 65536
#endif
struct sonde_epoch_page {
    uint32_t value, noticing;
    char     alone[SONDE_PAGE_ - 8];
} __attribute__((aligned(SONDE_PAGE_)));
SONDE_API extern struct sonde_epoch_page sonde_epoch_;
SONDE_API extern uint32_t sonde_clock_trust_; /* 1: the processor's counter is the clock */

static inline struct sonde_lane *sonde_lane_own(void)
{
    return &sonde_lane_;
}

static inline const struct sonde_epoch_page *sonde_lane_epoch_page(void)
{
    return &sonde_epoch_;
}

SONDE_API uint64_t sonde_clock_fallback_(void);
SONDE_API void     sonde_begin_slow_(struct sonde_site *site, const char *name);
SONDE_API void     sonde_begin_id_slow_(uint32_t name, uint32_t shapes);
SONDE_API uint64_t sonde_begin_api_slow_(uint32_t name, uint64_t call);
SONDE_API void     sonde_end_slow_(uint64_t now); /* 0: at the time when it has the lane */
SONDE_API void     sonde_scope_end_slow_(struct sonde_scope_ scope);

/*
 * An id of this bit is described in each chunk that uses it (docs/FORMAT.md, RECORD): the slow way.
 * No chunk has room for so many words more.
 */
#define SONDE_LATE_ID 0x40000000u

#define SONDE_KIND_BEGIN_ 0x21u
#define SONDE_KIND_SPAN_ 0x27u
#define SONDE_KIND_FUNCTION_ 0x63u
#define SONDE_KIND_CALL_ 0x2au
#define SONDE_KIND_API_ 0x44u
#define SONDE_KIND_END_ 0x01u
#define SONDE_KIND_ATTR 0x02u

static inline uint32_t sonde_epoch(void)
{
    return __atomic_load_n(&sonde_epoch_.value, __ATOMIC_RELAXED) - 1;
}

static inline bool sonde_clock_is_counter(void)
{
    return sonde_clock_trust_ != 0;
}

/* The clock, for who has asked sonde_clock_is_counter(), which stays as it is. */
static inline uint64_t sonde_lane_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return sonde_clock_fallback_();
#endif
}

static inline uint64_t sonde_clock(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    if (SONDE_LIKELY_(sonde_clock_trust_))
        return sonde_lane_counter();
#endif
    return sonde_clock_fallback_();
}

/*
 * Takes the lane for one event of `words` words; false: take the slow path. It is taken before
 * it is inspected, or a signal handler could use up the room in between; and before the clock is
 * read, or the handler's events would be older than the one written after them.
 */
static inline bool sonde_lane_take(struct sonde_lane *lane, uint32_t epoch, size_t words)
{
    if (SONDE_UNLIKELY_(lane->busy))
        return false;
    lane->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SONDE_LIKELY_(lane->epoch == epoch && SONDE_CAST_(size_t, lane->end - lane->cur) >= words))
        return true;
    lane->busy = 0;
    return false;
}

static inline void sonde_lane_leave(struct sonde_lane *lane)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    lane->busy = 0;
}

/* A range with a tensor list (payload's upper half) is a BEGIN, a bare one a SPAN. */
static inline void sonde_begin_at_(struct sonde_lane *lane, uint64_t payload)
{
    uint64_t *at = lane->cur;
    bool      bare = payload >> 32 == 0;

    lane->cur = at + 2;
    lane->depth++;
    lane->leaf = bare ? at : SONDE_NULL_;
    at[1] = payload;
    __atomic_store_n(at, sonde_clock() << 8 | (bare ? SONDE_KIND_SPAN_ : SONDE_KIND_BEGIN_),
                     __ATOMIC_RELEASE);
}

static inline void sonde_lane_function(struct sonde_lane                *lane,
                                       const struct sonde_function_call *call)
{
    uint64_t *at = lane->cur, ticks = (call->end - call->start) & (UINT64_MAX >> 8);

    lane->cur = at + 4;
    lane->leaf = SONDE_NULL_;
    at[1] = SONDE_CAST_(uint64_t, call->thread) << 32 | call->frame;
    at[2] = ticks | SONDE_CAST_(uint64_t, call->resumed) << 56;
    at[3] = SONDE_CAST_(uint64_t, call->parent) << 32 | call->id;
    __atomic_store_n(at, call->end << 8 | SONDE_KIND_FUNCTION_, __ATOMIC_RELEASE);
}

/* `is_counter`: of sonde_clock_is_counter(), if the caller knows it to be true. */
static inline void sonde_lane_begin_call(struct sonde_lane *lane, uint32_t call, bool is_counter)
{
    uint64_t *at = lane->cur;

    lane->cur = at + 2;
    lane->depth++;
    lane->leaf = at;
    at[1] = call;
    uint64_t now = is_counter ? sonde_lane_counter() : sonde_clock();
    __atomic_store_n(at, now << 8 | SONDE_KIND_CALL_, __ATOMIC_RELEASE);
}

static inline uint64_t sonde_begin_api_at_(struct sonde_lane *lane, uint32_t name, uint64_t call)
{
    uint64_t *at = lane->cur, now = sonde_clock();

    lane->cur = at + 3;
    lane->depth++;
    lane->leaf = at;
    at[1] = name;
    at[2] = call;
    __atomic_store_n(at, now << 8 | SONDE_KIND_API_, __ATOMIC_RELEASE);
    return now;
}

/* Half a word of the file, which is little-endian. */
typedef uint32_t __attribute__((may_alias)) sonde_half_;

/*
 * A range without tensor list in which nothing was recorded ends in place: its duration goes into
 * the upper half of its second word, so that a leaf takes 16 bytes and no further event.
 */
static inline bool sonde_end_leaf_(struct sonde_lane *lane, uint64_t now)
{
    uint64_t *leaf = lane->leaf;

    if (!leaf)
        return false;
    lane->leaf = SONDE_NULL_;
    uint64_t ticks = ((now << 8) - leaf[0]) >> 8; /* one less, for the kind that is borrowed from */
    if (SONDE_UNLIKELY_(ticks >= UINT32_MAX))
        return false;
    __atomic_store_n(SONDE_POINTER_(sonde_half_ *, &leaf[1]) + 1, SONDE_CAST_(uint32_t, ticks) + 1,
                     __ATOMIC_RELEASE);
    return true;
}

static inline void sonde_lane_end(struct sonde_lane *lane, uint64_t now)
{
    lane->depth--;
    if (SONDE_LIKELY_(sonde_end_leaf_(lane, now)))
        return;
    uint64_t *at = lane->cur;
    lane->cur = at + 1;
    __atomic_store_n(at, now << 8 | SONDE_KIND_END_, __ATOMIC_RELEASE);
}

/* Fills in the scope, if any, of a range that began in the slow path. */
static inline void sonde_scope_note_(struct sonde_scope_ *scope)
{
    if (scope && sonde_epoch() != 0) {
        scope->epoch = sonde_lane_.epoch;
        scope->depth = sonde_lane_.depth;
    }
}

static inline void sonde_begin_named_(struct sonde_site *site, const char *name,
                                      struct sonde_scope_ *scope)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    uint64_t           bound = __atomic_load_n(&site->bound, __ATOMIC_RELAXED);
    if (SONDE_LIKELY_(SONDE_CAST_(uint32_t, bound >> 32) == epoch &&
                      sonde_lane_take(lane, epoch, 2))) {
        sonde_begin_at_(lane, SONDE_CAST_(uint32_t, bound));
        if (scope) {
            scope->epoch = epoch;
            scope->depth = lane->depth;
        }
        sonde_lane_leave(lane);
    } else {
        sonde_begin_slow_(site, name);
        sonde_scope_note_(scope);
    }
}

static inline void sonde_begin_site(struct sonde_site *site)
{
    sonde_begin_named_(site, site->name, SONDE_NULL_);
}

static inline void sonde_begin_id(uint32_t name, uint32_t shapes)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(sonde_lane_take(lane, epoch, 2 | ((name | shapes) & SONDE_LATE_ID)))) {
        sonde_begin_at_(lane, SONDE_CAST_(uint64_t, shapes) << 32 | name);
        sonde_lane_leave(lane);
    } else {
        sonde_begin_id_slow_(name, shapes);
    }
}

static inline uint64_t sonde_begin_api(uint32_t name, uint64_t call)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return 0;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_UNLIKELY_(!sonde_lane_take(lane, epoch, 3 | (name & SONDE_LATE_ID))))
        return sonde_begin_api_slow_(name, call);
    uint64_t began = sonde_begin_api_at_(lane, name, call);
    sonde_lane_leave(lane);
    return began;
}

static inline void sonde_end(void)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(sonde_lane_take(lane, epoch, 1))) {
        sonde_lane_end(lane, sonde_clock());
        sonde_lane_leave(lane);
    } else {
        sonde_end_slow_(0);
    }
}

static inline void sonde_lane_end_now(uint32_t epoch, uint64_t now)
{
    struct sonde_lane *lane = &sonde_lane_;

    if (SONDE_LIKELY_(sonde_lane_take(lane, epoch, 0))) { /* one that ends in place needs no room */
        bool is_leaf = sonde_end_leaf_(lane, now);
        if (SONDE_LIKELY_(is_leaf || lane->cur != lane->end)) {
            if (!is_leaf) {
                uint64_t *at = lane->cur;
                lane->cur = at + 1;
                __atomic_store_n(at, now << 8 | SONDE_KIND_END_, __ATOMIC_RELEASE);
            }
            lane->depth--;
            sonde_lane_leave(lane);
            return;
        }
        sonde_lane_leave(lane);
    }
    sonde_end_slow_(now);
}

static inline void sonde_scope_end_(struct sonde_scope_ *scope)
{
    uint32_t epoch = sonde_epoch();

    if (SONDE_LIKELY_(epoch == 0))
        return;
    struct sonde_lane *lane = &sonde_lane_;
    if (SONDE_LIKELY_(scope->epoch == epoch && scope->depth == lane->depth &&
                      sonde_lane_take(lane, epoch, 1))) {
        sonde_lane_end(lane, sonde_clock());
        sonde_lane_leave(lane);
    } else {
        sonde_scope_end_slow_(*scope);
    }
}

#endif
