/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_heap.c - cases about allocations: counts by call stack. */
#include <string.h>

#include "cases.h"
#include "format/layout.h"
#include "synth.h"

static uint32_t frame(struct synth *s, const char *function, uint32_t line)
{
    return synth_frame_in(s, synth_string(s, function), line, synth_string(s, "/src/prog.c"),
                          line + 2, true);
}

/* Of the second heap, which is sampled: variances in KiB squared. */
static void put_sampled(struct synth *s, uint32_t key, uint32_t other, uint64_t samples)
{
    double   variance = 4096;
    uint64_t words[SND_HEAP_SAMPLED_WORDS] = { samples, samples / 2 };

    memcpy(&words[SND_HEAP_SAMPLED_VARIANCE], &variance, sizeof variance);
    memcpy(&words[SND_HEAP_SAMPLED_LIVE_VARIANCE], &variance, sizeof variance);
    memcpy(&words[SND_HEAP_SAMPLED_PEAK_VARIANCE], &variance, sizeof variance);
    synth_tally(s, SND_TALLY_HEAP_SAMPLED, key, other, words, SND_HEAP_SAMPLED_WORDS);
}

/* A moment of a heap (0: malloc's, 1: mapped): all that it held, and the most since the moment before. */
static void put_moment(struct synth *s, uint32_t number, uint32_t kind, uint64_t bytes,
                       uint64_t highest, uint64_t at, uint64_t since)
{
    const uint64_t words[SND_HEAP_MOMENT_WORDS] = { 1, bytes, highest, synth_raw_clock(s, at),
                                                    since ? synth_raw_clock(s, since) : 0 };

    synth_tally(s, SND_TALLY_HEAP_MOMENT, 0, number * 2 + kind, words, SND_HEAP_MOMENT_WORDS);
}

static void put_held(struct synth *s, uint32_t number, uint32_t kind, uint32_t stack,
                     uint64_t blocks, uint64_t bytes)
{
    const uint64_t words[SND_HEAP_HELD_WORDS] = { blocks, bytes };

    synth_tally(s, SND_TALLY_HEAP_HELD, stack, number * 2 + kind, words, SND_HEAP_HELD_WORDS);
}

/*
 * The heap over time: load() alone, then both, then load() has freed; at the second moment copy() has not changed,
 * and of the last one only a part was written before the process ended.
 */
static void put_moments(struct synth *s, uint32_t at_main, uint32_t at_load, uint32_t at_copy)
{
    put_held(s, 0, 0, at_load, 3, 30000);
    put_held(s, 0, 0, at_copy, 10, 400);
    put_moment(s, 0, 0, 30400, 30400, 200000, 0);
    put_held(s, 1, 0, at_load, 6, 60000);
    put_moment(s, 1, 0, 60400, 61000, 500000, 300000);
    put_held(s, 1, 1, at_main, 2, 16384);
    put_moment(s, 1, 1, 16384, 16384, 500000, 300000);
    put_held(s, 2, 0, at_load, 1, 10000);
    put_held(s, 2, 0, at_copy, 500, 20000);
    put_moment(s, 2, 0, 30000, 80000, 900000, 899000);
    put_held(s, 3, 0, at_load, 77, 77777);
}

/*
 * main() -> load(), main() -> parse() -> copy(); the peak is over, load() has changed since. N > 1: the
 * same as samples; 7: with a name that some formats cannot hold; 9: of a damaged file, whose last moment lies before others
 * and held more than the most. Mapped memory, whose peak is now; a stack that is not known.
 */
void make_heap(const char *path, uint64_t n)
{
    struct synth_options options = { .pid = 6000 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread_of(s, "main", 6000, 0);
    uint32_t             at_main = synth_stack(s, 0, frame(s, "main", 10));
    uint32_t             at_load = synth_stack(s, at_main, frame(s, "load", 20));
    uint32_t             at_copy =
        synth_stack(s, synth_stack(s, at_main, frame(s, n == 7 ? "par;se\tall" : "parse", 30)),
                    frame(s, "copy", 40));
    const uint64_t load[] = { 10, 100000, 9, 90000, 2, 3, 60000, 6 };
    const uint64_t copy[] = { 1000, 40000, 500, 20000, 400, 2, 7, 7 };
    const uint64_t unknown[] = { 1, 64, 1, 64, 0, 1, 0, 0 };
    const uint64_t mapped[] = { 2, 16384, 1, 4096, 0, 0, 0, 0 };
    const uint64_t all[] = { 1011, 30000, 80000, 3, 0, n > 1 ? 524288 : 0, 4, 5 };
    const uint64_t all_mapped[] = { 2, 12288, 12288, 0, 1, 0, 0, 0 };

    synth_meta(s, "command", "./prog");
    synth_tally(s, SND_TALLY_HEAP_PROCESS, 0, 0, all, SND_HEAP_PROCESS_WORDS);
    synth_tally(s, SND_TALLY_HEAP_PROCESS, 0, 1, all_mapped, SND_HEAP_PROCESS_WORDS);
    synth_tally(s, SND_TALLY_HEAP, 0, 0, unknown, SND_HEAP_WORDS);
    synth_tally(s, SND_TALLY_HEAP, at_load, 0, load, SND_HEAP_WORDS);
    synth_tally(s, SND_TALLY_HEAP, at_copy, 0, copy, SND_HEAP_WORDS);
    if (n == 9) /* a stack of both heaps */
        synth_tally(s, SND_TALLY_HEAP, at_load, 1, mapped, SND_HEAP_WORDS);
    synth_tally(s, SND_TALLY_HEAP, at_main, 1, mapped, SND_HEAP_WORDS);
    if (n > 1) {
        put_sampled(s, 0, 2, 30);
        put_sampled(s, at_load, 0, 20);
        put_sampled(s, at_copy, 0, 10);
    }
    put_moments(s, at_main, at_load, at_copy);
    if (n == 9)
        put_moment(s, 4, 0, 100, 50, 400000, 350000);
    synth_thread_done(s, t, 1000000, 0);
    synth_close(s, true);
}
