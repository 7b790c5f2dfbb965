/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/roof.c - measures what a machine can do at most, and finds it in a trace.
 *
 * FLOPS: each processor that the process may use runs chains of fused multiply-adds of 32-bit numbers
 * in the widest registers that it has; no memory is touched. Bandwidth: each reads two arrays and
 * writes a third (STREAM's triad), together larger than the caches. Of several rounds the best counts.
 */
#include "model/network/roof.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/error.h"
#include "base/system/clock_ns.h"
#include "base/system/libc.h"
#include "base/system/processors.h"
#include "base/text/json_member.h"
#include "read/said/trace_metadata.h"

#define ROUNDS 3
#define ROUND_NS INT64_C(20000000)
#define CHAINS 10    /* of a thread, independent: more than are under way at once */
#define TURNS 20000u /* of the loop between two looks at the clock */
#define THREADS_MAX 1024
#define ARRAY_LEAST ((size_t)16 << 20) /* bytes of each of the three, of all threads together */
#define ARRAY_MOST ((size_t)128 << 20)

/* ------------------------------------------------------------------- FLOPS */

/* Runs the chains `turns` times; returns FLOPs. `sink` keeps the result alive. */
typedef double chains_fn(uint32_t turns, float *sink);

#define EACH(do) \
    do           \
    (0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9)

/* Each chain is a variable, so that it is in a register however this is compiled. */
#define DEFINE_CHAINS(name, attribute, type, lanes, fill, step) \
    attribute static double name(uint32_t turns, float *sink)   \
    {                                                           \
        type factor = fill(0.999f), more = fill(0.001f), all;   \
        EACH(DECLARE_CHAIN_##step)                              \
        for (uint32_t n = 0; n < turns; n++) {                  \
            EACH(STEP_CHAIN_##step)                             \
        }                                                       \
        all = chain0;                                           \
        EACH(ADD_CHAIN_##step)                                  \
        memcpy(sink, &all, sizeof *sink);                       \
        return 2.0 * (lanes)*CHAINS * turns;                    \
    }

/* clang-format off */
#if defined(__x86_64__)
#define DECLARE_CHAIN_WIDE(i) __m512 chain##i = _mm512_set1_ps(i);
#define STEP_CHAIN_WIDE(i) chain##i = _mm512_fmadd_ps(chain##i, factor, more);
#define ADD_CHAIN_WIDE(i) all = _mm512_add_ps(all, chain##i);
#define DECLARE_CHAIN_FUSED(i) __m256 chain##i = _mm256_set1_ps(i);
#define STEP_CHAIN_FUSED(i) chain##i = _mm256_fmadd_ps(chain##i, factor, more);
#define ADD_CHAIN_FUSED(i) all = _mm256_add_ps(all, chain##i);
#define DECLARE_CHAIN_PLAIN(i) __m128 chain##i = _mm_set1_ps(i);
#define STEP_CHAIN_PLAIN(i) chain##i = _mm_add_ps(_mm_mul_ps(chain##i, factor), more);
#define ADD_CHAIN_PLAIN(i) all = _mm_add_ps(all, chain##i);
DEFINE_CHAINS(run_avx512, __attribute__((target("avx512f"))), __m512, 16, _mm512_set1_ps, WIDE)
DEFINE_CHAINS(run_avx2, __attribute__((target("avx2,fma"))), __m256, 8, _mm256_set1_ps, FUSED)
DEFINE_CHAINS(run_plain, , __m128, 4, _mm_set1_ps, PLAIN)
#elif defined(__aarch64__)
#define DECLARE_CHAIN_NEON(i) float32x4_t chain##i = vdupq_n_f32(i);
#define STEP_CHAIN_NEON(i) chain##i = vfmaq_f32(more, chain##i, factor);
#define ADD_CHAIN_NEON(i) all = vaddq_f32(all, chain##i);
DEFINE_CHAINS(run_plain, , float32x4_t, 4, vdupq_n_f32, NEON)
#else
#define DECLARE_CHAIN_ONE(i) float chain##i = i;
#define STEP_CHAIN_ONE(i) chain##i = chain##i * factor + more;
#define ADD_CHAIN_ONE(i) all += chain##i;
DEFINE_CHAINS(run_plain, , float, 1, (float), ONE)
#endif
/* clang-format on */

static chains_fn *find_chains(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return run_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return run_avx2;
#endif
    return run_plain;
}

/* ----------------------------------------------------------------- threads */

struct team {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    enum {
        WAIT,
        GO,
        GIVE_UP
    } state; /* a barrier waits for all: none is met before all have started */
    pthread_barrier_t together;
    chains_fn        *chains;
    size_t            numbers; /* of each array of a thread */
    uint32_t          size;
    atomic_uint       next; /* thread to be numbered */
    struct member {
        double *a, *b, *c;                    /* NULL: there was no memory for them */
        double  flops[ROUNDS], bytes[ROUNDS]; /* a second */
        float   sink;
    } * members;
};

static double measure_flops(struct team *team, struct member *me)
{
    double  done = 0;
    int64_t begin = (int64_t)snd_clock_ns(CLOCK_MONOTONIC), now;

    do {
        done += team->chains(TURNS, &me->sink);
        now = (int64_t)snd_clock_ns(CLOCK_MONOTONIC);
    } while (now - begin < ROUND_NS);
    return done * 1e9 / (double)(now - begin);
}

static double measure_bytes(struct team *team, struct member *me)
{
    double  done = 0, *a = me->a, *b = me->b, *c = me->c;
    int64_t begin = (int64_t)snd_clock_ns(CLOCK_MONOTONIC), now;

    if (!a)
        return 0;
    do {
        for (size_t i = 0; i < team->numbers; i++)
            a[i] = b[i] + 3.0 * c[i];
        __asm__ volatile("" ::"r"(a) : "memory"); /* the stores are made */
        double *last = a;
        a = b, b = c, c = last;
        done += 3.0 * sizeof *a * (double)team->numbers;
        now = (int64_t)snd_clock_ns(CLOCK_MONOTONIC);
    } while (now - begin < ROUND_NS);
    return done * 1e9 / (double)(now - begin);
}

static bool may_go(struct team *team)
{
    pthread_mutex_lock(&team->lock);
    while (team->state == WAIT)
        pthread_cond_wait(&team->changed, &team->lock);
    bool go = team->state == GO;
    pthread_mutex_unlock(&team->lock);
    return go;
}

static void *work(void *object)
{
    struct team *team = object;

    if (!may_go(team))
        return NULL;
    struct member *me = &team->members[atomic_fetch_add(&team->next, 1)];
    size_t         size = 3 * team->numbers * sizeof(double);
    double *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory != MAP_FAILED) {
        for (size_t i = 0; i < 3 * team->numbers; i++)
            memory[i] = 1;
        me->a = memory;
        me->b = memory + team->numbers;
        me->c = memory + 2 * team->numbers;
    }
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&team->together);
        me->flops[round] = measure_flops(team, me);
        pthread_barrier_wait(&team->together);
        me->bytes[round] = measure_bytes(team, me);
    }
    if (memory != MAP_FAILED)
        munmap(memory, size);
    return NULL;
}

/* Of each array, over all threads: twice the last cache, within bounds. */
static size_t array_bytes(void)
{
    long   cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t wanted = cache > 0 ? (size_t)cache * 2 : ARRAY_LEAST;

    return wanted < ARRAY_LEAST ? ARRAY_LEAST : wanted > ARRAY_MOST ? ARRAY_MOST : wanted;
}

/* Starts all but one thread, and is that one. False: they could not all be started. */
static bool run_team(struct team *team)
{
    pthread_t *threads = calloc(team->size, sizeof *threads);
    uint32_t   started = 1;

    while (threads && started < team->size &&
           pthread_create(&threads[started], NULL, work, team) == 0)
        started++;
    bool good = threads && started == team->size;
    pthread_mutex_lock(&team->lock);
    team->state = good ? GO : GIVE_UP;
    pthread_cond_broadcast(&team->changed);
    pthread_mutex_unlock(&team->lock);
    work(team);
    for (uint32_t i = 1; threads && i < started; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    return good;
}

static void add_up(const struct team *team, struct sonde_roof *out)
{
    *out = (struct sonde_roof){ .threads = team->size };
    for (int round = 0; round < ROUNDS; round++) {
        double flops = 0, bytes = 0;
        for (uint32_t i = 0; i < team->size; i++) {
            flops += team->members[i].flops[round];
            bytes += team->members[i].bytes[round];
        }
        out->flops_per_second = fmax(out->flops_per_second, flops);
        out->bytes_per_second = fmax(out->bytes_per_second, bytes);
    }
}

enum sonde_status sonde_roof_measure(struct sonde_roof *out, struct sonde_error *err)
{
    uint32_t          processors = snd_processors();
    struct team       team = { .chains = find_chains(),
                               .size = processors < THREADS_MAX ? processors : THREADS_MAX,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .changed = PTHREAD_COND_INITIALIZER };
    enum sonde_status st = SONDE_OK;

    *out = (struct sonde_roof){ 0 };
    team.numbers = array_bytes() / sizeof(double) / team.size;
    team.members = calloc(team.size, sizeof *team.members);
    if (!team.members || pthread_barrier_init(&team.together, NULL, team.size) != 0) {
        free(team.members);
        return snd_fail(err, SONDE_E_NOMEM, "cannot measure the machine: out of memory");
    }
    if (run_team(&team))
        add_up(&team, out);
    else
        st = snd_fail(err, SONDE_E_NOMEM,
                      "cannot measure the machine: cannot start %" PRIu32 " threads", team.size);
    pthread_barrier_destroy(&team.together);
    free(team.members);
    return st;
}

/* --------------------------------------------------------------- metadata */

void sonde_roof_text(const struct sonde_roof *roof, char out[SONDE_ROOF_TEXT])
{
    /* Whole numbers: the same in every locale, and exact enough. */
    snprintf(out, SONDE_ROOF_TEXT,
             "{\"flops_per_second\": %.0f, \"bytes_per_second\": %.0f, \"threads\": %" PRIu32 "}",
             roof->flops_per_second, roof->bytes_per_second, roof->threads);
}

bool snd_roof_find(const struct sonde_trace *trace, struct sonde_roof *roof)
{
    struct sonde_text text;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        if (!snd_meta_find(trace, i, SND_META_MACHINE_ROOF, &text))
            continue;
        double  flops = snd_member_real(text.bytes, text.length, "flops_per_second", 0);
        double  bytes = snd_member_real(text.bytes, text.length, "bytes_per_second", 0);
        int64_t threads = snd_member_number(text.bytes, text.length, "threads", 0);
        if (!(flops > 0) || !(bytes > 0) || !isfinite(flops) || !isfinite(bytes))
            continue;
        *roof = (struct sonde_roof){ flops, bytes,
                                     threads > 0 && threads < UINT32_MAX ? (uint32_t)threads : 0 };
        return true;
    }
    return false;
}
