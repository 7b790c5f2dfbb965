/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/counts/heap_samples.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/heap/locks.h"
#include "probes/heap/counts/heap_notes.h"
#include "probes/heap/heap_pages.h"
#include "sonde/record.h"

#define SLOTS_FIRST ((size_t)1 << 10) /* small: see heap_pages.h */

struct live {
    const void            *block; /* NULL: unused slot; GONE: removed */
    uint32_t               stack;
    struct snd_heap_weight weight;
};
#define GONE ((const void *)1)

uint8_t snd_heap_near[SND_HEAP_PAGES];
uint8_t snd_heap_filter[1 << 16];

static double               period;
static uint64_t             seed;
static uint32_t             threads; /* seeded so far */
static struct snd_heap_lock lock;
static struct live         *slots;
static size_t               mask, used; /* of slots; used counts those that are gone, too */

/* ------------------------------------------------------------------ numbers
 *
 * The mathematical library is not loaded for this.
 */

/* exp(-x), x >= 0. */
static double exp_minus(double x)
{
    double term = 1, sum = 1;
    int    halvings = 0;

    if (x > 700)
        return 0;
    while (x > 0.03125) {
        x /= 2;
        halvings++;
    }
    for (int n = 1; n <= 8; n++)
        sum += term *= -x / n;
    while (halvings-- > 0)
        sum *= sum;
    return sum;
}

/* 1 - exp(-x) with all its digits, for small x too. */
static double hit(double x)
{
    double term = x, sum = x;

    if (x > 0.03125)
        return 1 - exp_minus(x);
    for (int n = 2; n <= 8; n++)
        sum += term *= -x / n;
    return sum;
}

/* -log(x), 0 < x <= 1. */
static double minus_log(double x)
{
    double sum = 0, power;
    int    doublings = 0;

    while (x < 0.70710678) {
        x *= 2;
        doublings++;
    }
    double y = (1 - x) / (1 + x), square = y * y;
    power = y;
    for (int n = 1; n < 20; n += 2) {
        sum += power / n;
        power *= square;
    }
    return 2 * sum + doublings * 0.6931471805599453;
}

/* splitmix64. */
static uint64_t next_random(struct snd_heap_thread *self)
{
    uint64_t z = self->random += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In (0, 1]. */
static double next_fraction(struct snd_heap_thread *self)
{
    return (double)((next_random(self) >> 11) + 1) * 0x1p-53;
}

static void place_point(struct snd_heap_thread *self)
{
    double gap = minus_log(next_fraction(self)) * period;

    self->left = gap < 1e19 ? (uint64_t)gap : UINT64_MAX;
}

void snd_heap_samples_init(uint64_t of)
{
    const char *text = getenv("SONDE_HEAP_SEED");

    period = (double)of;
    seed = text ? strtoull(text, NULL, 10) : sonde_clock() ^ (uint64_t)getpid() << 32;
}

bool snd_heap_sample_begin(size_t size)
{
    struct snd_heap_thread *self = &snd_heap_self;

    if (self->random == 0) {
        uint64_t number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
        self->random = (seed + number) * 0xd1342543de82ef95u | 1;
        place_point(self);
        if (snd_heap_passes(size))
            return false;
    }
    place_point(self);
    return true;
}

/* A number whose mean is `value`: sums of it are not biased by rounding. */
static uint64_t round_fairly(double value)
{
    uint64_t whole = (uint64_t)value;

    return whole + (next_fraction(&snd_heap_self) <= value - (double)whole);
}

struct snd_heap_weight snd_heap_sample_weight(size_t size)
{
    double s = (double)size, p = hit((double)snd_heap_length(size) / period);

    return (struct snd_heap_weight){ .count = round_fairly(1 / p),
                                     .bytes = round_fairly(s / p),
                                     .variance = s / 1024 / p * (s / 1024 / p) * (1 - p) };
}

/* -------------------------------------------------------------- live samples */

static struct live *slot_of(const void *block)
{
    size_t       at = snd_heap_filter_at(block) * 0x9e3779b1u & mask;
    struct live *gone = NULL;

    for (;; at = (at + 1) & mask) {
        if (slots[at].block == block)
            return &slots[at];
        if (slots[at].block == GONE && !gone)
            gone = &slots[at];
        if (!slots[at].block)
            return gone ? gone : &slots[at];
    }
}

static bool grow(void)
{
    struct live *old = slots;
    size_t       before = slots ? mask + 1 : 0, lives = 0;

    for (size_t i = 0; i < before; i++)
        lives += old[i].block && old[i].block != GONE;
    size_t count = lives * 4 > SLOTS_FIRST ? lives * 4 : SLOTS_FIRST;
    while (count & (count - 1))
        count &= count - 1;
    struct live *fresh = snd_heap_pages(count * sizeof *fresh);
    if (!fresh)
        return false;
    slots = fresh;
    mask = count - 1;
    used = lives;
    for (size_t i = 0; i < before; i++)
        if (old[i].block && old[i].block != GONE)
            *slot_of(old[i].block) = old[i];
    if (old)
        snd_heap_pages_free(old, before * sizeof *old);
    return true;
}

static void change_count(uint8_t *at, int change)
{
    if (*at != SND_HEAP_ALWAYS) /* full: it stays so */
        __atomic_store_n(at, (uint8_t)(*at + change), __ATOMIC_RELAXED);
}

static void filter(const void *block, int change)
{
    change_count(&snd_heap_filter[snd_heap_filter_at(block)], change);
    change_count(snd_heap_near_at(block), change);
}

static enum snd_heap_inside enter(void)
{
    enum snd_heap_inside before = snd_heap_self.inside;

    snd_heap_self.inside = SND_COUNTING;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    snd_heap_lock(&lock);
    return before;
}

static void leave(enum snd_heap_inside before)
{
    snd_heap_unlock(&lock);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    snd_heap_self.inside = before;
}

bool snd_heap_sample_put(const void *block, uint32_t stack, struct snd_heap_weight weight)
{
    enum snd_heap_inside before = enter();
    bool                 ready = (slots && used * 2 < mask) || grow();

    if (ready) {
        struct live *slot = slot_of(block);
        if (slot->block != block)
            filter(block, 1);
        used += slot->block == NULL;
        *slot = (struct live){ block, stack, weight };
    }
    leave(before);
    return ready;
}

uint32_t snd_heap_sample_take(const void *block, struct snd_heap_weight *weight)
{
    uint32_t stack = 0;

    enum snd_heap_inside before = enter();
    struct live         *slot = slots ? slot_of(block) : NULL;
    if (slot && slot->block == block) {
        stack = slot->stack;
        *weight = slot->weight;
        slot->block = GONE;
        filter(block, -1);
    }
    leave(before);
    return stack;
}

void snd_heap_samples_lock(void)
{
    snd_heap_lock(&lock);
}

void snd_heap_samples_unlock(void)
{
    snd_heap_unlock(&lock);
}
