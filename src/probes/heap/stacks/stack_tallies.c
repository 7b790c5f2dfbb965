/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/stack_tallies.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/hints.h"
#include "format/layout.h"
#include "probes/heap/locks.h"
#include "probes/heap/stacks/loaded_modules.h"
#include "probes/heap/heap_pages.h"
#include "probes/heap/stacks/heap_python.h"
#include "pystack/unwind/cfi.h"
#include "sonde/record.h"

#define BLOCK_STACKS ((uint32_t)1 << 14)
#define BLOCKS ((uint32_t)1 << 10)    /* 16 million stacks: as many as a block's entry can name */
#define SLOTS_FIRST ((size_t)1 << 10) /* small: see heap_pages.h */
#define EARLY_PLACES ((size_t)1 << 16)
#define EARLY_STACKS 2048u
/* A forked child gets a file after so many allocations, or one of so many bytes: most call exec before. */
#define DELAYED 1000u
#define DELAYED_BYTES ((uint64_t)256 << 10)

struct slot {
    uint64_t low, high; /* high 0: free */
    uint32_t stack;
};

struct slots {
    size_t      mask, used;
    struct slot at[];
};

/* A stack counted before the recording begins. */
struct early {
    uint32_t stack, first, count; /* early_places[first..] */
    bool     cut;
};

/* Of one file of one process. */
struct recording {
    uint32_t      epoch;      /* 0: none yet */
    uint32_t      pid, first; /* number of its first stack */
    bool          waits;      /* a forked child: see DELAYED */
    uint64_t      file;       /* file_now() */
    struct slots *slots;
    uint32_t      unknown[SND_HEAP_KINDS];
    uint64_t     *process[SND_HEAP_KINDS], *sampled[SND_HEAP_KINDS];
};

static struct snd_heap_lock    lock; /* held around calls of the recorder */
static struct recording       *now;
static struct snd_heap_counts *stacks[BLOCKS];
static uint32_t                next = SND_HEAP_OWN + 1;
static uint64_t                period;
static struct early            early[EARLY_STACKS];
static uint64_t                early_places[EARLY_PLACES];
static uint32_t                early_count, early_used;

/* ------------------------------------------------------------------- numbers */

struct snd_heap_counts *snd_heap_counts_at(uint32_t stack)
{
    struct snd_heap_counts *block = __atomic_load_n(&stacks[stack / BLOCK_STACKS],
                                                    __ATOMIC_ACQUIRE);

    return block ? &block[stack % BLOCK_STACKS] : NULL;
}

/* A new number; 0: there are no more. Lock held. */
static uint32_t new_stack(const struct snd_heap_counts *counts)
{
    uint32_t stack = next;

    if (stack / BLOCK_STACKS >= BLOCKS)
        return 0;
    if (!stacks[stack / BLOCK_STACKS]) {
        void *block = snd_heap_pages(BLOCK_STACKS * sizeof(struct snd_heap_counts));
        if (!block)
            return 0;
        __atomic_store_n(&stacks[stack / BLOCK_STACKS], block, __ATOMIC_RELEASE);
    }
    *snd_heap_counts_at(stack) = *counts;
    next++;
    return stack;
}

static struct slot *slot_of(struct slots *table, uint64_t low, uint64_t high)
{
    size_t at = low & table->mask;

    for (;; at = (at + 1) & table->mask) {
        uint64_t found = __atomic_load_n(&table->at[at].high, __ATOMIC_ACQUIRE);
        if (found == 0 || (found == high && table->at[at].low == low))
            return &table->at[at];
    }
}

/* The table with room for one more; readers of the old one may go on. Lock held. */
static struct slots *grow(struct recording *r)
{
    struct slots *old = r->slots;

    if (old && old->used * 2 < old->mask)
        return old;
    size_t        count = old ? (old->mask + 1) * 2 : SLOTS_FIRST;
    struct slots *table = snd_heap_pages(sizeof *table + count * sizeof table->at[0]);
    if (!table)
        return NULL;
    table->mask = count - 1;
    for (size_t i = 0; old && i <= old->mask; i++)
        if (old->at[i].high != 0)
            *slot_of(table, old->at[i].low, old->at[i].high) = old->at[i];
    table->used = old ? old->used : 0;
    __atomic_store_n(&r->slots, table, __ATOMIC_RELEASE);
    return table;
}

static void keep(struct recording *r, uint64_t low, uint64_t high, uint32_t stack)
{
    struct slots *table = grow(r);

    if (!table)
        return;
    struct slot *slot = slot_of(table, low, high);
    if (slot->high != 0)
        return;
    slot->low = low;
    slot->stack = stack;
    __atomic_store_n(&slot->high, high, __ATOMIC_RELEASE);
    table->used++;
}

/* ------------------------------------------------------------------ the trace */

/* The stack that was interned last, outermost first: the next one often has its outer frames. Lock held. */
static struct {
    uint32_t epoch, count;
    struct {
        uint64_t place;
        uint32_t id;
    } at[SND_HEAP_PLACES];
} latest;

/* The stack's id in the trace; 0 where there is no room. */
static uint32_t intern(const struct snd_heap_places *places)
{
    uint32_t id = 0, known = 0;

    if (latest.epoch != sonde_epoch())
        latest.count = 0;
    if (places->cut) {
        static const char name[] = "(further frames are not recorded)";
        id = sonde_intern_stack(0, sonde_intern_native(sonde_intern(name, sizeof name - 1), 0));
        latest.count = 0;
    }
    for (uint32_t i = places->count; i-- > 0; known++) {
        uint64_t place = places->at[i];
        if (known < latest.count && latest.at[known].place == place) {
            id = latest.at[known].id;
            continue;
        }
        latest.count = 0;
        uint32_t frame = place & SND_HEAP_PLACE ? snd_heap_pyplace_frame(place)
                                                : snd_heap_frame_of(place);
        id = frame ? sonde_intern_stack(id, frame) : 0;
        if (id == 0)
            return 0;
        latest.at[known].place = place;
        latest.at[known].id = id;
    }
    latest.count = places->cut ? 0 : places->count;
    latest.epoch = sonde_epoch();
    return id;
}

static bool tally(struct snd_heap_counts *counts, uint32_t id)
{
    counts->id = id;
    counts->words = sonde_tally(SONDE_TALLY_HEAP, id, counts->kind, SND_HEAP_WORDS);
    counts->sampled = period == 0 ? NULL
                                  : sonde_tally(SONDE_TALLY_HEAP_SAMPLED, id, counts->kind,
                                                SND_HEAP_SAMPLED_WORDS);
    return counts->words && (period == 0 || counts->sampled);
}

/* Words of our own, for what comes before the recording. */
static uint64_t *private_words(void)
{
    static uint64_t *at;
    static size_t    left;

    if (left < 8) {
        left = 64 * 1024 / sizeof *at;
        at = snd_heap_pages(left * sizeof *at);
    }
    if (!at) {
        left = 0;
        return NULL;
    }
    at += 8;
    left -= 8;
    return at - 8;
}

static bool make_counts(const struct recording *r, struct snd_heap_counts *counts, uint32_t id)
{
    if (r->epoch != 0)
        return tally(counts, id);
    counts->words = private_words();
    counts->sampled = period ? private_words() : NULL;
    return counts->words && (period == 0 || counts->sampled);
}

static bool begin_kind(struct recording *r, enum snd_heap_kind kind)
{
    struct snd_heap_counts counts = { .kind = kind };

    if (r->epoch != 0) {
        r->process[kind] = sonde_tally(SONDE_TALLY_HEAP_PROCESS, 0, kind, SND_HEAP_PROCESS_WORDS);
        r->sampled[kind] = period ? sonde_tally(SONDE_TALLY_HEAP_SAMPLED, 0, kind + SND_HEAP_KINDS,
                                                SND_HEAP_SAMPLED_WORDS)
                                  : NULL;
    } else {
        r->process[kind] = private_words();
        r->sampled[kind] = period ? private_words() : NULL;
    }
    if (!r->process[kind] || (period && !r->sampled[kind]) || !make_counts(r, &counts, 0))
        return false;
    r->process[kind][SND_HEAP_PROCESS_PERIOD] = period;
    r->unknown[kind] = new_stack(&counts);
    return r->unknown[kind] != 0;
}

/* A recording of this epoch: NULL when it cannot be begun. Lock held. */
static struct recording *begin(uint32_t epoch)
{
    struct recording *r = snd_heap_pages(sizeof *r);

    if (!r)
        return NULL;
    r->epoch = epoch;
    r->pid = snd_heap_pid = (uint32_t)getpid();
    r->first = next;
    for (int kind = 0; kind < SND_HEAP_KINDS; kind++)
        if (!begin_kind(r, kind))
            return NULL;
    return grow(r) ? r : NULL;
}

/* ------------------------------------------------- from before to the recording */

static void move(uint64_t **from, uint64_t *to)
{
    if (*from && to && *from != to)
        for (size_t i = 0; i < 8; i++)
            to[i] += (*from)[i];
    if (to)
        *from = to;
}

static void move_stack(uint32_t stack, uint32_t id)
{
    struct snd_heap_counts *counts = snd_heap_counts_at(stack), fresh = { .kind = counts->kind };

    if (!tally(&fresh, id) && (id == 0 || !tally(&fresh, 0)))
        return;
    snd_heap_lock(&snd_heap_counting);
    move(&counts->words, fresh.words);
    counts->id = fresh.id;
    if (period)
        move(&counts->sampled, fresh.sampled);
    snd_heap_unlock(&snd_heap_counting);
}

/* Moves all counts so far into the trace. Lock held. */
static void move_early(struct recording *r, uint32_t epoch)
{
    r->epoch = epoch;
    for (int kind = 0; kind < SND_HEAP_KINDS; kind++) {
        uint64_t *words = sonde_tally(SONDE_TALLY_HEAP_PROCESS, 0, (uint32_t)kind,
                                      SND_HEAP_PROCESS_WORDS);
        uint64_t *sampled = period ? sonde_tally(SONDE_TALLY_HEAP_SAMPLED, 0,
                                                 (uint32_t)kind + SND_HEAP_KINDS,
                                                 SND_HEAP_SAMPLED_WORDS)
                                   : NULL;
        snd_heap_lock(&snd_heap_counting);
        move(&r->process[kind], words);
        move(&r->sampled[kind], sampled);
        snd_heap_unlock(&snd_heap_counting);
        move_stack(r->unknown[kind], 0);
    }
    for (uint32_t i = 0; i < early_count; i++) {
        struct snd_heap_places places = { early_places + early[i].first, early[i].count,
                                          early[i].cut };
        move_stack(early[i].stack, intern(&places));
    }
    early_count = early_used = 0;
}

static inline uint32_t epoch_now(void)
{
    uint32_t epoch = sonde_epoch();

    return epoch == UINT32_MAX ? 0 : epoch; /* wiped, or not set up yet */
}

/* An identity of the file being written; 0: none. Call it without the lock: the recorder takes its own. */
static uint64_t file_now(void)
{
    char     path[4096];
    uint64_t hash = 1;

    size_t length = sonde_trace_path(path, sizeof path);
    for (size_t i = 0; i < length && i < sizeof path; i++)
        hash = (hash ^ (unsigned char)path[i]) * 0x100000001b3u;
    return length ? hash : 0;
}

/* The recording of this epoch; NULL: none can be begun. */
static SND_NOINLINE struct recording *turn(uint32_t epoch)
{
    int      before = errno;
    uint64_t file = epoch != 0 ? file_now() : 0;

    snd_heap_lock(&lock);
    struct recording *r = now;
    epoch = epoch_now();
    bool is_new = epoch != 0 && (!r || r->epoch != epoch);
    if (!r) {
        r = begin(epoch);
    } else if (is_new) {
        bool is_own = r->pid == (uint32_t)getpid();
        if (is_own && r->epoch == 0)
            move_early(r, epoch);
        else if (is_own && r->file == file)
            r->epoch = epoch; /* it was paused: its file, and the tallies in it, are still mapped */
        else
            r = begin(epoch);
    }
    if (r)
        __atomic_store_n(&now, r, __ATOMIC_RELEASE);
    snd_heap_unlock(&lock);
    if (r && is_new)
        r->file = file_now(); /* a forked child's is made with its first record */
    errno = before;
    return r;
}

/* Has a forked child so little that its file can wait? A child that is killed would lose it. */
static bool is_small(const struct recording *r)
{
    for (int kind = 0; kind < SND_HEAP_KINDS; kind++)
        if (r->process[kind][SND_HEAP_PROCESS_ALLOCATIONS] >= DELAYED ||
            r->process[kind][SND_HEAP_PROCESS_PEAK] >= DELAYED_BYTES)
            return false;
    return early_count < EARLY_STACKS / 2;
}

static struct recording *recording_now(void)
{
    struct recording *r = __atomic_load_n(&now, __ATOMIC_ACQUIRE);
    uint32_t          epoch = epoch_now();

    if (SND_LIKELY(r && r->epoch == epoch))
        return r;
    if (r && r->waits && is_small(r))
        return r;
    if (sonde_epoch() == UINT32_MAX && r && r->epoch != 0) {
        sonde_mark("heap: a new process"); /* the recorder notices that it is another process */
        epoch = epoch_now();
    }
    if (r && r->epoch != 0 && epoch == 0)
        return NULL; /* paused, or at the end */
    return turn(epoch);
}

/* ------------------------------------------------------------------- the face */

void snd_heap_stacks_init(uint64_t of)
{
    struct snd_cfi_object found;

    period = of;
    snd_heap_pid = (uint32_t)getpid();
    if (snd_cfi_object((uint64_t)(uintptr_t)sonde_intern, &found)) {
        snd_heap_own_low = found.begin;
        snd_heap_own_high = found.end;
    }
}

static uint32_t add(struct recording *r, enum snd_heap_kind kind,
                    const struct snd_heap_stack *stack)
{
    struct snd_heap_counts counts = { .kind = kind };
    struct snd_heap_places places = snd_heap_python_places(stack);
    bool                   has_room = r->epoch != 0 ||
                    (early_count < EARLY_STACKS && early_used + places.count <= EARLY_PLACES);
    uint32_t id = r->epoch != 0 ? intern(&places) : 0;

    if (!has_room || (r->epoch != 0 && id == 0) || !make_counts(r, &counts, id))
        return r->unknown[kind];
    uint32_t number = new_stack(&counts);
    if (number == 0)
        return r->unknown[kind];
    if (r->epoch == 0) {
        early[early_count++] = (struct early){ number, early_used, places.count, places.cut };
        memcpy(early_places + early_used, places.at, places.count * sizeof places.at[0]);
        early_used += places.count;
    }
    return number;
}

static SND_NOINLINE uint32_t make(struct recording *r, enum snd_heap_kind kind,
                                  struct snd_heap_stack *stack, uint64_t low, uint64_t high)
{
    int before = errno;

    snd_heap_lock(&lock);
    struct slot *slot = slot_of(r->slots, low, high);
    uint32_t     number = slot->high ? slot->stack : 0;
    if (number == 0) {
        snd_heap_stack_fill(stack);
        number = add(r, kind, stack);
        keep(r, low, high, number);
    }
    snd_heap_unlock(&lock);
    errno = before;
    return number;
}

uint32_t snd_heap_stack_of(enum snd_heap_kind kind, struct snd_heap_stack *stack)
{
    struct snd_heap_thread *self = &snd_heap_self;
    enum snd_heap_inside    before = self->inside;
    uint32_t                number;

    if (SND_UNLIKELY(stack->is_ours))
        return SND_HEAP_OWN;
    self->inside = SND_PREPARING;
    struct recording *r = recording_now();
    if (SND_LIKELY(r != NULL)) {
        uint64_t     low = stack->low + kind, high = stack->high | 1;
        struct slot *slot = slot_of(__atomic_load_n(&r->slots, __ATOMIC_ACQUIRE), low, high);
        number = SND_LIKELY(slot->high != 0) ? slot->stack : make(r, kind, stack, low, high);
    } else {
        number = 0;
    }
    self->inside = before;
    return number;
}

void snd_heap_stacks_in_child(void)
{
    early_count = early_used = 0;
    now = begin(0);
    if (now)
        now->waits = true;
}

static bool has_counts(const struct recording *r)
{
    for (int kind = 0; kind < SND_HEAP_KINDS; kind++)
        if (r->process[kind][SND_HEAP_PROCESS_ALLOCATIONS] > 0)
            return true;
    return false;
}

void snd_heap_stacks_flush(bool even_empty)
{
    struct recording *r = __atomic_load_n(&now, __ATOMIC_ACQUIRE);

    if (r && r->epoch == 0 && (has_counts(r) || (even_empty && r->waits))) {
        r->waits = false;
        recording_now();
    }
}

uint32_t snd_heap_unknown(enum snd_heap_kind kind)
{
    struct recording *r = __atomic_load_n(&now, __ATOMIC_ACQUIRE);

    return r ? r->unknown[kind] : 0;
}

struct snd_heap_counts *snd_heap_counts_of(uint32_t stack)
{
    struct recording *r = __atomic_load_n(&now, __ATOMIC_ACQUIRE);
    uint32_t          epoch = epoch_now();

    if (SND_UNLIKELY(!r || stack < r->first || stack <= SND_HEAP_OWN))
        return NULL;
    /* While the recording is paused frees still count. Another epoch is that of another process. */
    return SND_LIKELY(r->epoch == epoch) || epoch == 0 || r->epoch == 0 ? snd_heap_counts_at(stack)
                                                                        : NULL;
}

uint32_t snd_heap_first_stack(void)
{
    struct recording *r = __atomic_load_n(&now, __ATOMIC_ACQUIRE);

    return r && r->epoch != 0 && r->epoch == epoch_now() ? r->first : 0;
}

uint64_t *snd_heap_process(enum snd_heap_kind kind)
{
    return now->process[kind];
}

uint64_t *snd_heap_process_sampled(enum snd_heap_kind kind)
{
    return now->sampled[kind];
}

void snd_heap_stacks_forget(void)
{
    snd_heap_lock(&lock);
    snd_heap_modules_forget();
    latest.count = 0;
    snd_heap_unlock(&lock);
}

void snd_heap_stacks_lock(void)
{
    snd_heap_lock(&lock);
}

void snd_heap_stacks_unlock(void)
{
    snd_heap_unlock(&lock);
}
