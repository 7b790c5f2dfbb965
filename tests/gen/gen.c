/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen.c - makes the named traces that golden tests and fuzz seeds are built from.
 *
 *     gen CASE OUT [N]            writes the case to OUT (a folder for `two_processes`)
 *     gen --tiny CASE OUT [N]     the same in chunks of 4 KiB: small files, for fuzzing
 *     gen --packed CASE OUT [N]   packed; as it is where this build cannot pack
 *     gen --list                  names and meanings
 *
 * N scales the cases that are measured (`large`).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/layout.h"
#include "sonde/model.h"
#include "gen_bench.h"
#include "synth.h"

#define CPU SND_DEVICE(0, 0xffff)
#define CUDA0 SND_DEVICE(1, 0)

/* ---------------------------------------------------- a small convolutional network */

static void convolution(struct synth *s, uint32_t t, uint64_t ns, const uint32_t name[3],
                        uint32_t shapes, uint64_t flops, uint64_t address, uint64_t bytes)
{
    synth_begin(s, t, ns, name[0], shapes);
    synth_begin(s, t, ns + 2000, name[1], shapes);
    synth_begin(s, t, ns + 5000, name[2], shapes);
    synth_attr(s, t, SND_ATTR_FLOPS, flops);
    synth_alloc(s, t, ns + 6000, CPU, address, bytes);
    synth_alloc(s, t, ns + 7000, CPU, address + bytes, 4096);
    synth_free(s, t, ns + 900000, CPU, address + bytes, 4096);
    synth_end(s, t, ns + 905000);
    synth_end(s, t, ns + 908000);
    synth_end(s, t, ns + 910000);
}

static void make_convnet(const char *path, uint64_t n)
{
    static const char *const shapes_of[4] = {
        "8,3,224,224;64,3,3,3;64;(#;#);-",
        "8,64,222,222;64,64,3,3;64;(#;#);-",
        "8,64,220,220;64,64,3,3;64;(#;#);-",
        "8,64,218,218;10,64,3,3;10;(#;#);-",
    };
    static const uint64_t flops_of[4] = { 1362672ull * 1000, 28547ull * 1000000, 28035ull * 1000000,
                                          4301ull * 1000000 };
    struct synth         *s = synth_new(path, NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    const uint32_t        conv[3] = { synth_string(s, "aten::conv2d"),
                                      synth_string(s, "aten::convolution"),
                                      synth_string(s, "aten::_convolution") };
    uint32_t forward = synth_string(s, "forward"), relu = synth_string(s, "aten::relu");
    uint32_t file = synth_string(s, "net.c");
    uint32_t stack =
        synth_stack(s, synth_stack(s, 0, synth_frame(s, synth_string(s, "main"), file, 40)),
                    synth_frame(s, forward, file, 17));
    uint64_t ns = 10000;

    (void)n;
    synth_meta(s, "model", "four convolutions");
    for (uint64_t step = 0; step < 3; step++) {
        synth_step(s, t, ns, step);
        synth_begin(s, t, ns + 100, forward, 0);
        synth_attr(s, t, SND_ATTR_STACK, stack);
        for (int layer = 0; layer < 4; layer++) {
            uint64_t at = ns + 1000 + (uint64_t)layer * 1000000;
            uint32_t shapes = synth_shapes(s, shapes_of[layer]);
            convolution(s, t, at, conv, shapes, flops_of[layer],
                        0x10000000u * (unsigned)(layer + 1), (uint64_t)(layer + 1) << 20);
            synth_begin(s, t, at + 920000, relu, shapes);
            synth_end(s, t, at + 960000 + step * 1000);
        }
        for (unsigned layer = 0; layer < 3; layer++)
            synth_free(s, t, ns + 4050000 + layer, CPU, 0x10000000u * (layer + 1),
                       (uint64_t)(layer + 1) << 20);
        synth_end(s, t, ns + 4100000);
        synth_free(s, t, ns + 4200000, CPU, 0x40000000u, 4u << 20);
        ns += 5000000;
    }
    synth_thread_done(s, t, ns, 0);
    synth_close(s, true);
}

/* -------------------------------------------------------------- names of all kinds */

static void make_names(const char *path, uint64_t n)
{
    static const struct {
        const char *bytes;
        size_t      length;
    } names[] = {
#define NAME(text) { text, sizeof text - 1 }
        NAME("plain"),
        NAME("with \"quotes\""),
        NAME("back\\slash"),
        NAME("new\nline and tab\t"),
        NAME("control \x01\x1f\x7f"),
        NAME("nul \0 inside"),
        NAME("\xf0\x9f\x9a\x80 emoji and \xc3\xa9\xc3\xa8"),
        NAME("\xe4\xb8\xad\xe6\x96\x87"),
        NAME("not UTF-8: \xff\xc3"),
        NAME("surrogate \xed\xa0\x80 overlong \xc0\xaf"),
        NAME("a;semicolon and spaces"),
        NAME("comma,separated"),
        NAME("=formula"),
        NAME("a name that is longer than fifty-five characters, so that tables have to cut it off"),
        NAME(""),
#undef NAME
    };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "th\"re\\ad\n\xf0\x9f\x9a\x80", 0);
    uint64_t      ns = 1000;

    (void)n;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t id = synth_string_n(s, names[i].bytes, names[i].length);
        synth_begin(s, t, ns, id, 0);
        synth_mark(s, t, ns + 10, id, 0);
        synth_counter(s, t, ns + 20, id, (double)i + 0.5);
        synth_end(s, t, ns + 500 + i);
        ns += 1000;
    }
    synth_meta(s, "quo\"te", "back\\slash\n\xff");
    synth_close(s, true);
}

/* ----------------------------------------------------------------- several threads */

static void make_threads(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      work = synth_string(s, "work"), part = synth_string(s, "part");
    uint32_t      threads[4];

    (void)n;
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "worker %u", i);
        threads[i] = synth_thread(s, name, i * 100);
    }
    for (unsigned round = 0; round < 5; round++)
        for (unsigned i = 0; i < 4; i++) {
            uint64_t ns = 1000 + round * 10000 + i * 37;
            synth_begin(s, threads[i], ns, work, 0);
            synth_begin(s, threads[i], ns + 100, part, 0);
            synth_end(s, threads[i], ns + 1100 + i * 100);
            synth_end(s, threads[i], ns + 5000);
        }
    for (unsigned i = 0; i < 4; i++)
        synth_thread_done(s, threads[i], 60000, 0);
    synth_close(s, true);
}

/* A chunk handed from a thread that ended to others. */
static void make_thread_switch(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      short_work = synth_string(s, "short work");
    uint32_t      first = synth_thread(s, "first", 0);

    (void)n;
    for (uint64_t i = 0; i < 6; i++) {
        uint32_t t = i == 0 ? first : synth_thread(s, i == 3 ? NULL : "next", 1000 * i);
        synth_share(s, first, t);
        synth_begin(s, t, 1000 * i + 100, short_work, 0);
        synth_end(s, t, 1000 * i + 200 + i);
        synth_thread_done(s, t, 1000 * i + 300, 0);
    }
    synth_close(s, true);
}

static void make_steps(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), other = synth_thread(s, "loader", 0);
    uint32_t      train = synth_string(s, "train"), load = synth_string(s, "load");
    char          name[32];

    (void)n;
    for (uint64_t i = 0; i < 6; i++) {
        uint64_t ns = 1000 + i * 100000;
        snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)i + 10);
        synth_step(s, t, ns, i + 10);
        synth_begin(s, t, ns + 10, synth_string(s, name), 0);
        synth_begin(s, t, ns + 100, train, 0);
        synth_begin(s, other, ns + 50, load, 0);
        synth_end(s, other, ns + 40050 + i);
        synth_end(s, t, ns + 80000 + i * 1000);
        synth_end(s, t, ns + 90000);
    }
    synth_close(s, true);
}

/* --------------------------------------------------------------- several processes */

static void make_two_processes(const char *path, uint64_t n)
{
    char file[1024];

    (void)n;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct synth_options options = { .pid = 5000 + i,
                                         .parent_pid = i ? 5000 : 4999,
                                         .rank = i,
                                         .world_size = 2,
                                         .start_ns = i * 500000,
                                         .ticks_per_ns_x1000 = i ? 2100 : 0 };
        snprintf(file, sizeof file, "%s/rank%u.sonde", path, i);
        struct synth *s = synth_new(file, &options);
        uint32_t      t = synth_thread(s, "main", 0);
        /* Ids differ between the processes, names do not. */
        uint32_t own = synth_string(s, i ? "only in one" : "only in zero");
        uint32_t both = synth_string(s, "in both");
        synth_clock(s, 1000000, 0);
        for (uint64_t k = 0; k < 3; k++) {
            synth_begin(s, t, 10000 + k * 100000, both, 0);
            synth_begin(s, t, 20000 + k * 100000, own, 0);
            synth_link(s, t, 25000 + k * 100000, SND_LINK_FLOW, i == 1, 100 + k);
            synth_end(s, t, 30000 + k * 100000);
            synth_end(s, t, 60000 + k * 100000 + i);
        }
        synth_thread_done(s, t, 400000, 0);
        synth_close(s, true);
    }
}

/* --------------------------------------------------------------- what went missing */

static void make_unfinished(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      outer = synth_string(s, "outer"), inner = synth_string(s, "inner");

    (void)n;
    synth_begin(s, t, 1000, outer, 0);
    for (uint64_t i = 0; i < 4; i++) {
        synth_begin(s, t, 2000 + i * 1000, inner, 0);
        synth_end(s, t, 2500 + i * 1000);
    }
    synth_begin(s, t, 9000, inner, 0);
    synth_mark(s, t, 9500, outer, 0);
    synth_reserve(s);
    synth_close(s, false);
}

static void make_gaps(const char *path, uint64_t n)
{
    struct synth_options    options = { .flags = SND_FILE_LIMIT, .max_bytes = 1 << 20 };
    struct synth           *s = synth_new(path, &options);
    uint32_t                t = synth_thread(s, "main", 0);
    uint32_t                outer = synth_string(s, "outer"), inner = synth_string(s, "inner");
    struct snd_file_header *h = synth_header(s);

    (void)n;
    synth_begin(s, t, 1000, outer, 0);
    synth_begin(s, t, 2000, inner, 0);
    synth_gap(s, t, 3000, 7, 1); /* inner's end was lost */
    synth_begin(s, t, 4000, inner, 0);
    synth_end(s, t, 5000);
    synth_begin(s, t, 6000, inner, 0);
    synth_gap(s, t, 7000, 0, SND_GAP_ALL); /* a pause: all is closed */
    synth_begin(s, t, 8000, outer, 0);
    synth_end(s, t, 9000);
    synth_thread_done(s, t, 10000, 12);
    h->lost_events = 5;
    h->lost_names = 2;
    h->cut_names = 1;
    h->late_chunks = 3;
    h->failed_reserves = 4;
    h->last_os_error = ENOSPC;
    synth_close(s, true);
}

/* A flight recorder whose first chunks are gone: ends come without a begin. */
static void make_keep_last(const char *path, uint64_t n)
{
    struct synth_options options = { .flags = SND_FILE_KEEP_LAST | SND_FILE_LIMIT,
                                     .max_bytes = 1 << 20 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0);
    uint32_t             outer = synth_string(s, "outer"), inner = synth_string(s, "inner");

    (void)n;
    synth_end(s, t, 1000000);
    synth_begin(s, t, 1001000, inner, 0);
    synth_end(s, t, 1002000);
    synth_end(s, t, 1003000);
    synth_end(s, t, 1004000);
    for (uint64_t i = 0; i < 3; i++) {
        synth_begin(s, t, 1010000 + i * 10000, outer, 0);
        synth_begin(s, t, 1011000 + i * 10000, inner, 0);
        synth_end(s, t, 1012000 + i * 10000);
        synth_end(s, t, 1015000 + i * 10000);
    }
    synth_thread_done(s, t, 1050000, 0);
    synth_header(s)->recycled_chunks = 9;
    synth_header(s)->recycled_events = 12345;
    synth_close(s, true);
}

/* A schedule's warm-up: what is older than valid_from is not shown. */
static void make_warmup(const char *path, uint64_t n)
{
    struct synth_options options = { .cycle = 2 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0);
    uint32_t             warm = synth_string(s, "warming"), astride = synth_string(s, "astride"),
             shown = synth_string(s, "shown");

    (void)n;
    synth_begin(s, t, 1000, warm, 0);
    synth_end(s, t, 2000);
    synth_begin(s, t, 3000, astride, 0);
    synth_end(s, t, 6000);
    synth_step(s, t, 6500, 3);
    synth_begin(s, t, 7000, shown, 0);
    synth_end(s, t, 8000);
    synth_header(s)->valid_from = synth_raw_clock(s, 5000);
    synth_close(s, true);
}

/* ------------------------------------------------------------ folding and recursion */

static void make_fold(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      f = synth_string(s, "f"), g = synth_string(s, "g");

    (void)n;
    synth_begin(s, t, 1000, f, 0); /* f > f > f > g: folds into f > g */
    synth_begin(s, t, 1100, f, 0);
    synth_begin(s, t, 1200, f, 0);
    synth_begin(s, t, 1300, g, 0);
    synth_end(s, t, 1400);
    synth_end(s, t, 1500);
    synth_end(s, t, 1600);
    synth_end(s, t, 1700);
    synth_begin(s, t, 2000, f, 0); /* two children: none folds */
    synth_begin(s, t, 2100, f, 0);
    synth_end(s, t, 2200);
    synth_begin(s, t, 2300, f, 0);
    synth_end(s, t, 2500);
    synth_end(s, t, 2600);
    synth_begin(s, t, 3000, f, 0); /* f > g > f: recursion, nothing folds */
    synth_begin(s, t, 3100, g, 0);
    synth_begin(s, t, 3200, f, 0);
    synth_end(s, t, 3300);
    synth_end(s, t, 3400);
    synth_end(s, t, 3500);
    synth_close(s, true);
}

/* ---------------------------------------------- spans, and ends out of their order */

static void make_async(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    /* The loop's chunk comes first: by thread, its ends would be met before the begins. */
    uint32_t loop = synth_thread(s, "loop", 0), t = synth_thread(s, "main", 0);
    uint32_t request = synth_string(s, "request"), work = synth_string(s, "work"),
             leaf = synth_string(s, "leaf"), poll = synth_string(s, "poll");

    (void)n;
    synth_span(s, loop, 500, poll, 200);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t ns = 1000 + i * 10000;
        synth_begin(s, t, ns, request, 0);
        synth_attr(s, t, SND_ATTR_KEY, 100 + i);
        synth_begin(s, t, ns + 1000, work, 0);
        synth_span(s, t, ns + 1500, leaf, 300);
        synth_end_key(s, loop, ns + 3000, 100 + i); /* work goes on */
        synth_begin(s, t, ns + 4000, leaf, 0);
        synth_begin(s, t, ns + 5000, poll, 0);
        synth_end_at(s, t, ns + 6000, 1); /* leaf ends before poll */
        synth_end(s, t, ns + 7000);
        synth_end(s, t, ns + 8000);
    }
    synth_end_key(s, loop, 40000, 999); /* nobody's */
    synth_close(s, true);
}

/* ------------------------------------------------------------------------- memory */

static void make_memory(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), other = synth_thread(s, "other", 0);
    uint32_t      load = synth_string(s, "load"), compute = synth_string(s, "compute");

    (void)n;
    synth_free(s, t, 500, CPU, 0x900, 64); /* taken before the recording */
    synth_begin(s, t, 1000, load, 0);
    synth_alloc(s, t, 1100, CPU, 0x1000, 1 << 20);
    synth_alloc(s, t, 1200, CUDA0, 0x1000, 3 << 20); /* the same address on another device */
    synth_end(s, t, 1300);
    synth_begin(s, t, 2000, compute, 0);
    synth_alloc(s, t, 2100, CPU, 0x200000, 2 << 20);
    synth_begin(s, other, 2150, compute, 0);
    synth_alloc(s, other, 2200, CPU, 0x500000, 512 << 10);
    synth_free(s, other, 2300, CPU, 0x1000, 0); /* another thread gives it back, size not told */
    synth_end(s, other, 2400);
    synth_alloc(s, t, 2500, CPU, 0x1000, 100); /* the address is used again */
    synth_free(s, t, 2600, CPU, 0x200000, 2 << 20);
    synth_end(s, t, 2700);
    synth_free(s, t, 3000, CUDA0, 0x1000, 3 << 20);
    synth_alloc(s, t, 3100, CPU, 0x700000, 4096); /* outside any range */
    synth_close(s, true);
}

/* -------------------------------------------------- links, counters, samples, modules */

static void make_links(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "forward", 0), other = synth_thread(s, "backward", 0);
    uint32_t      forward = synth_string(s, "forward"), backward = synth_string(s, "backward");

    (void)n;
    for (uint64_t i = 0; i < 4; i++) {
        synth_begin(s, t, 1000 + i * 1000, forward, 0);
        synth_attr(s, t, SND_ATTR_SEQUENCE, i);
        synth_link(s, t, 1100 + i * 1000, SND_LINK_FWD_BWD, false, i);
        synth_end(s, t, 1500 + i * 1000);
    }
    for (uint64_t i = 3; i > 0; i--) { /* the last has no other end */
        synth_begin(s, other, 10000 - i * 1000, backward, 0);
        synth_attr(s, other, SND_ATTR_FWD_THREAD, 1);
        synth_link(s, other, 10100 - i * 1000, SND_LINK_FWD_BWD, true, i);
        synth_end(s, other, 10500 - i * 1000);
    }
    synth_link(s, t, 20000, SND_LINK_FLOW, false, UINT64_MAX);
    synth_link(s, other, 21000, SND_LINK_FLOW, true, UINT64_MAX);
    synth_close(s, true);
}

static void make_counters(const char *path, uint64_t n)
{
    static const double values[] = { 0, 1, -1.5, 1e300, 5e-324, 0.1, 1.0 / 0.0, -1.0 / 0.0 };
    struct synth       *s = synth_new(path, NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    uint32_t            loss = synth_string(s, "loss"), rate = synth_string(s, "rate");

    (void)n;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        synth_counter(s, t, 1000 + i * 100, loss, values[i]);
        synth_counter(s, t, 1050 + i * 100, rate, (double)i / 3);
    }
    synth_counter(s, t, 3000, loss, __builtin_nan(""));
    synth_close(s, true);
}

static void make_stacks(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      file = synth_string(s, "model.py"), op = synth_string(s, "op");
    uint32_t      functions[3] = { synth_string(s, "main"), synth_string(s, "train"),
                                   synth_string(s, "evaluate") };
    uint32_t      root = synth_stack(s, 0, synth_frame(s, functions[0], file, 10));
    uint32_t      stacks[2] = { synth_stack(s, root, synth_frame(s, functions[1], file, 20)),
                                synth_stack(s, root, synth_frame(s, functions[2], file, 30)) };
    uint32_t      modules[2] = { synth_string(s, "net.layer1"), synth_string(s, "net.layer2") };
    uint32_t      shapes[2] = { synth_shapes(s, "2,3"), synth_shapes(s, "4,5;#") };

    (void)n;
    for (uint64_t i = 0; i < 8; i++) {
        synth_begin(s, t, 1000 + i * 1000, op, 0);
        synth_attr(s, t, SND_ATTR_STACK, stacks[i & 1]);
        synth_attr(s, t, SND_ATTR_MODULE, modules[(i >> 1) & 1]);
        synth_attr(s, t, SND_ATTR_SHAPES, shapes[(i >> 2) & 1]);
        synth_attr(s, t, SND_ATTR_FLOPS, (uint64_t)1 << (46 + i % 3)); /* also beyond 48 bits */
        synth_end(s, t, 1500 + i * 1000 + i);
        synth_sample(s, t, 1600 + i * 1000, stacks[i & 1], 0, 0, 1000);
    }
    synth_close(s, true);
}

/* ----------------------------------------------------------------- nothing, or strange */

static void make_empty(const char *path, uint64_t n)
{
    (void)n;
    synth_close(synth_new(path, NULL), true);
}

/* Chunks and events of a later version, a reserved chunk, ids that nothing defines. */
static void make_unknown(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       t = synth_thread(s, "main", 0), known = synth_string(s, "known");
    const uint64_t later[5] = { SND_KIND(31, 5) | 1500 << 8, 1, 2, 3, 4 };

    (void)n;
    synth_begin(s, t, 1000, known, 0);
    synth_raw(s, t, later, 5);
    synth_attr(s, t, 200, 1);
    synth_end(s, t, 2000);
    synth_chunk(s, 77, "later", 5);
    synth_reserve(s);
    synth_record(s, 99, 1, "later", 6);
    synth_begin(s, t, 3000, 4000, 4000);
    synth_end(s, t, 4000);
    synth_close(s, true);
}

/* Begin and end of eight names on four threads, four deep, jittered like a real run. */
static void make_large(const char *path, uint64_t n)
{
    struct synth_options options = { .chunk_bytes = 1 << 20, .ticks_per_ns_x1000 = 2100 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             names[8], threads[4];
    uint64_t             at[4] = { 0 }, random = 88172645463325252u;

    for (unsigned i = 0; i < 8; i++) {
        char text[32];
        snprintf(text, sizeof text, "operator_%u", i);
        names[i] = synth_string(s, text);
    }
    for (unsigned i = 0; i < 4; i++)
        threads[i] = synth_thread(s, "worker", 0);
    for (uint64_t made = 0; made < n;)
        for (unsigned i = 0; i < 4; i++, made += 8) {
            for (unsigned k = 0; k < 8; k++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                at[i] += 40 + random % 400;
                if (k < 4)
                    synth_begin(s, threads[i], at[i], names[(random >> 32) & 7], 0);
                else
                    synth_end(s, threads[i], at[i]);
            }
        }
    synth_close(s, true);
}

/* ------------------------------------------- a training step, as torch's probe records it */

struct torch_op {
    const char *name, *shapes, *arguments, *module;
    uint64_t    sequence; /* plus one; 0: none */
};

static void torch_attr(struct synth *s, uint32_t t, uint8_t key, const char *text)
{
    if (text)
        synth_attr(s, t, key, synth_string(s, text));
}

static void torch_begin(struct synth *s, uint32_t t, uint64_t ns, const struct torch_op *op)
{
    synth_begin(s, t, ns, synth_string(s, op->name), op->shapes ? synth_shapes(s, op->shapes) : 0);
    torch_attr(s, t, SND_ATTR_ARGUMENTS, op->arguments);
    torch_attr(s, t, SND_ATTR_MODULE, op->module);
    if (op->sequence > 0)
        synth_attr(s, t, SND_ATTR_SEQUENCE, op->sequence - 1);
}

/* The engine's range, the function in it, and one operator in that. */
static uint64_t torch_backward(struct synth *s, uint32_t t, uint64_t ns, const char *function,
                               uint64_t sequence, const struct torch_op *op)
{
    char engine[96];

    snprintf(engine, sizeof engine, "autograd::engine::evaluate_function: %s", function);
    synth_begin(s, t, ns, synth_string(s, engine), 0);
    synth_begin(s, t, ns + 1000, synth_string(s, function), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 2);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
    if (sequence > 0)
        synth_attr(s, t, SND_ATTR_SEQUENCE, sequence - 1);
    if (op) {
        torch_begin(s, t, ns + 2000, op);
        synth_alloc(s, t, ns + 2500, CPU, 0x900000 + ns, 4096);
        synth_end(s, t, ns + 12000);
    }
    synth_end(s, t, ns + 13000);
    synth_end(s, t, ns + 14000);
    return ns + 15000;
}

static void make_torch(const char *path, uint64_t n)
{
    static const struct torch_op
        conv = { "aten::conv2d", "2,3,8,8;4,3,3,3;4;-;-;-;#",
                 "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", "
                 "\"[1, 1]\", \"1\"]",
                 "Net.features.0", 1 },
        convolution = { "aten::convolution", "2,3,8,8;4,3,3,3;4;-;-;-;#;-;#",
                        "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"False\", "
                        "\"[0, 0]\", \"1\"]",
                        "Net.features.0", 1 },
        leaf = { "aten::is_leaf", NULL, NULL, NULL, 0 },
        relu = { "aten::relu", "2,4,8,8", NULL, "Net.features.1", 2 },
        linear = { "aten::linear", "2,256;10,256;10", NULL, "Net.fc", 3 },
        addmm = { "aten::addmm", "10;2,256;256,10;#;#", "[\"\", \"\", \"\", \"1\", \"1\"]",
                  "Net.fc", 3 },
        loss = { "aten::sum", "2,10", NULL, NULL, 4 },
        mm = { "aten::mm", "10,2;2,256", NULL, NULL, 0 },
        threshold = { "aten::threshold_backward", "2,4,8,8;2,4,8,8;#", "[\"\", \"\", \"0\"]", NULL,
                      0 },
        convolution_backward = { "aten::convolution_backward",
                                 "2,4,8,8;2,3,8,8;4,3,3,3;-;-;-;-;#;-;#;-",
                                 "[\"\", \"\", \"\", \"[4]\", \"[1, 1]\", \"[1, 1]\", "
                                 "\"[1, 1]\", \"False\", \"[0, 0]\", \"1\", "
                                 "\"[False, True, True]\"]",
                                 NULL, 0 },
        update = { "aten::add_", "4,3,3,3;4,3,3,3;#", "[\"\", \"\", \"-0.1\"]", NULL, 0 },
        strange = { "mylib::rotate", "2,4", NULL, NULL, 0 };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "python", 0), loop = synth_thread(s, "pt_autograd_0", 0);
    uint32_t file = synth_string(s, "/usr/lib/python3/loss.py"), mean = synth_string(s, "mean");
    uint32_t stack = synth_stack(s, 0, synth_frame(s, mean, file, 12));
    uint64_t ns = 10000;

    (void)n;
    synth_meta(s, "torch.probe", "{\"shapes\": true}");
    synth_meta(s, "torch.options", "{\"record_shapes\": true, \"with_stack\": false}");
    synth_meta(s, "python.prefixes", "[\"/usr/lib/python3/\", \"/usr/\"]");
    synth_meta(s, "torch.thread 4242", "1");
    synth_meta(s, "torch.thread 4243", "2");
    synth_meta(s, "module Net", "{\"class\": \"Net\", \"parameters\": 0}");
    synth_meta(s, "module Net.features", "{\"class\": \"Sequential\", \"parameters\": 0}");
    synth_meta(s, "module Net.features.0",
               "{\"class\": \"Conv2d\", \"parameters\": 112, \"parameter_bytes\": 448}");
    synth_meta(s, "module Net.features.1", "{\"class\": \"ReLU\", \"parameters\": 0}");
    synth_meta(s, "module Net.fc",
               "{\"class\": \"Linear\", \"parameters\": 2570, \"parameter_bytes\": 10280}");
    for (uint64_t step = 0; step < 2; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)step);
        synth_begin(s, t, ns, synth_string(s, name), 0);
        synth_attr(s, t, SND_ATTR_SCOPE, 8);
        synth_attr(s, t, SND_ATTR_KEY, 0x7000 + step);
        torch_begin(s, t, ns + 1000, &conv);
        torch_begin(s, t, ns + 2000, &convolution);
        torch_begin(s, t, ns + 2100, &leaf);
        synth_end(s, t, ns + 2200);
        synth_alloc(s, t, ns + 3000, CPU, 0x100000, 2048);
        synth_end(s, t, ns + 42000);
        synth_end(s, t, ns + 43000);
        torch_begin(s, t, ns + 44000, &relu);
        synth_alloc(s, t, ns + 44500, CPU, 0x200000, 2048);
        synth_end(s, t, ns + 46000);
        torch_begin(s, t, ns + 50000, &linear);
        torch_begin(s, t, ns + 51000, &addmm);
        synth_alloc(s, t, ns + 51500, CPU, 0x300000, 80);
        synth_end(s, t, ns + 60000);
        synth_end(s, t, ns + 61000);
        torch_begin(s, t, ns + 62000, &loss);
        synth_attr(s, t, SND_ATTR_STACK, stack);
        synth_end(s, t, ns + 63000);
        ns = torch_backward(s, t, ns + 70000, "SumBackward0", 4, NULL);
        ns = torch_backward(s, t, ns, "AddmmBackward0", 3, &mm);
        ns = torch_backward(s, t, ns, "torch::autograd::AccumulateGrad", 0, NULL);
        ns = torch_backward(s, t, ns, "ReluBackward0", 2, &threshold);
        ns = torch_backward(s, t, ns, "ConvolutionBackward0", 1, &convolution_backward);
        synth_free(s, t, ns, CPU, 0x100000, 0); /* as the probe has it: without a size */
        synth_free(s, t, ns + 1, CPU, 0x200000, 0);
        synth_free(s, t, ns + 2, CPU, 0x300000, 0);
        synth_free(s, t, ns + 3, CPU, 0x999999, 0); /* taken before */
        synth_begin(s, t, ns + 1000, synth_string(s, "Optimizer.step#SGD.step"), 0);
        synth_attr(s, t, SND_ATTR_SCOPE, 8);
        torch_begin(s, t, ns + 2000, &update);
        synth_end(s, t, ns + 5000);
        synth_end(s, t, ns + 6000);
        synth_end(s, t, ns + 7000);
        torch_begin(s, loop, ns + 7500, &strange);
        synth_end(s, loop, ns + 9500);
        ns += 20000;
    }
    synth_alloc(s, t, ns, CPU, 0x500000, 64); /* outside any range */
    synth_close(s, true);
}

/* ------------------------------------------------------------ a Python program */

static const char python_source[] = "def fib(n):\n"
                                    "    if n < 2:\n"
                                    "        return n\n"
                                    "    return fib(n - 1) + fib(n - 2)\n"
                                    "\n"
                                    "def main():\n"
                                    "    for i in range(3):  # three times\n"
                                    "        fib(3)\n"
                                    "\tlen([])\n"
                                    "\n"
                                    "    # the end\n"
                                    "async def never():\n"
                                    "    pass\n";
#define PROG "/app/prog.py"

static uint32_t python_frame(struct synth *s, const char *name, uint32_t first, const char *file,
                             uint32_t line)
{
    return synth_frame_in(s, synth_string(s, name), first, synth_string(s, file), line, false);
}

static void python_calls(struct synth *s, const uint32_t f[6])
{
    /* calls, primitive, total, self, resumptions, awaited, outermost, their total */
    static const uint64_t words[6][8] = {
        { 1, 1, 5000000, 1000000, 0, 0, 1, 5000000 },      /* the module, from outside */
        { 1, 1, 4000000, 400000, 0, 0, 1, 4000000 },       /* main, by the module */
        { 3, 3, 3500000, 1200000, 0, 0, 3, 3500000 },      /* fib, by main */
        { 12, 6, 2300000, 2300000, 0, 0, 0, 0 },           /* fib, by itself */
        { 1, 1, 100000, 100000, 0, 0, 1, 100000 },         /* len, by main */
        { 2, 2, 900000, 300000, 7, 250000000, 2, 900000 }, /* a coroutine, from outside */
    };

    synth_tally(s, SND_TALLY_CALLS, f[0], 0, words[0], 8);
    synth_tally(s, SND_TALLY_CALLS, f[1], f[0], words[1], 8);
    synth_tally(s, SND_TALLY_CALLS, f[2], f[1], words[2], 8);
    synth_tally(s, SND_TALLY_CALLS, f[2], f[2], words[3], 8);
    synth_tally(s, SND_TALLY_CALLS, f[3], f[1], words[4], 8);
    synth_tally(s, SND_TALLY_CALLS, f[4], 0, words[5], 8);
}

static void python_lines(struct synth *s)
{
    static const struct {
        const char *function;
        uint32_t    first, line;
        uint64_t    time[2], memory[6];
    } lines[] = {
        { "main", 6, 6, { 0, 0 }, { 1, 41943040, 41943040, 0, 41943040, 0 } },
        { "main", 6, 7, { 4, 2400 }, { 4, 0, 512, 512, 41943040, 512 } },
        { "main", 6, 8, { 3, 3500123456 }, { 3, 3145728, 4194304, 1048576, 45088768, 4194304 } },
        { "main", 6, 9, { 1, 150 }, { 1, -1048576, 56, 1048632, 44040192, 56 } },
        { "fib", 1, 1, { 0, 0 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 2, { 1234567890, 123456789012345 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 3, { 9, 1800 }, { 0, 0, 0, 0, 0, 0 } },
        { "fib", 1, 4, { 6, 6600 }, { 0, 0, 0, 0, 0, 0 } },
        { "never", 12, 12, { 0, 0 }, { 0, 0, 0, 0, 0, 0 } },
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        uint32_t frame = python_frame(s, lines[i].function, lines[i].first, PROG, lines[i].line);
        synth_tally(s, SND_TALLY_LINE, frame, 0, lines[i].time, 2);
        if (lines[i].memory[0] > 0)
            synth_tally(s, SND_TALLY_LINE_MEMORY, frame, 0, lines[i].memory, 6);
    }
}

static void make_python(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       t = synth_thread(s, "main", 0), rss = synth_string(s, "process.rss");
    const uint32_t functions[6] = {
        python_frame(s, "<module>", 1, PROG, 1),
        python_frame(s, "main", 6, PROG, 6),
        python_frame(s, "fib", 1, PROG, 1),
        python_frame(s, "<built-in method builtins.len>", 0, "~", 0),
        python_frame(s, "never", 12, PROG, 12),
    };

    (void)n;
    synth_meta(s, "command", "prog.py --fast");
    synth_meta(s, "python.source:" PROG, python_source);
    python_calls(s, functions);
    python_lines(s);
    uint32_t work = synth_string(s, "prog.main");
    for (uint64_t i = 0; i < 4; i++) {
        synth_counter(s, t, 1000000 + i * 100000000, rss, (double)((40 + i) << 20));
        if (i == 1) {
            synth_begin(s, t, 150000000, work, 0);
            synth_attr(s, t, SND_ATTR_SCOPE, 8);
        }
    }
    synth_end(s, t, 350000000);
    synth_close(s, true);
}

/* Names of functions and files that are no plain text, numbers as large as they come. */
static void make_python_names(const char *path, uint64_t n)
{
    static const char *const names[] = { "plain", "not UTF-8: \xff",
                                         "\xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x9a\x80",
                                         "new\nline; and \"quotes\"" };
    static const uint64_t    calls[8] = { UINT64_MAX, (uint64_t)1 << 40, 5, 4, 3, 2, 1, 7 };
    static const uint64_t    time[2] = { UINT64_MAX, UINT64_MAX };
    struct synth            *s = synth_new(path, NULL);

    (void)n;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        uint32_t frame = python_frame(s, names[i], 7, "a.py", 7);
        synth_tally(s, SND_TALLY_CALLS, frame, i ? 1 : 0, calls, 8);
        synth_tally(s, SND_TALLY_LINE, python_frame(s, names[i], 7, "a.py", 8), 0, time, 2);
    }
    synth_close(s, true);
}

/* The same calls, each with a range; a generator that is resumed; an operator in between. */
static void python_call(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, const char *name,
                        bool resumed)
{
    synth_begin(s, t, ns, synth_string(s, name), 0);
    synth_attr(s, t, SND_ATTR_FRAME, frame | (uint64_t)resumed << 32);
}

static uint64_t python_fib(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, unsigned n)
{
    python_call(s, t, ns, frame, "fib", false);
    ns += 100;
    if (n >= 2) {
        ns = python_fib(s, t, ns, frame, n - 1) + 10;
        ns = python_fib(s, t, ns, frame, n - 2) + 10;
    }
    synth_end(s, t, ns);
    return ns;
}

static void make_python_trace(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      module = python_frame(s, "<module>", 1, PROG, 1);
    uint32_t      main_frame = python_frame(s, "main", 6, PROG, 6);
    uint32_t      fib = python_frame(s, "fib", 1, PROG, 1);
    uint32_t      numbers = python_frame(s, "numbers", 20, PROG, 20);
    uint64_t      ns = 1000;

    (void)n;
    python_call(s, t, ns, module, "<module>", false);
    python_call(s, t, ns += 50, main_frame, "main", false);
    for (int i = 0; i < 3; i++)
        ns = python_fib(s, t, ns + 20, fib, 3);
    synth_begin(s, t, ns += 10, synth_string(s, "aten::add"), 0); /* part of main */
    for (int i = 0; i < 3; i++) {
        python_call(s, t, ns += 10, numbers, "numbers", i > 0);
        synth_end(s, t, ns += 30);
    }
    synth_end(s, t, ns += 5);
    synth_end(s, t, ns += 5);
    synth_end(s, t, ns += 50);
    python_fib(s, u, 1200, fib, 1);
    synth_close(s, true);
}

static void make_samples(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       sampler = synth_thread(s, "sonde", 0);
    uint32_t       t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t       lib = synth_string(s, "/usr/lib/libm.so.6");
    const uint32_t stacks[] = {
        synth_stack(s, 0, python_frame(s, "<module>", 1, PROG, 9)),
        synth_stack(s, 1, python_frame(s, "main", 6, PROG, 8)),
        synth_stack(s, 2, python_frame(s, "fib", 1, PROG, 4)),
        synth_stack(s, 3, python_frame(s, "fib", 1, PROG, 2)),
        synth_stack(s, 2, python_frame(s, "dumps", 183, "/py/lib/json/__init__.py", 190)),
        synth_stack(s, 5, python_frame(s, "JSONEncoder.encode", 180, "/py/lib/json/encoder.py", 1)),
        synth_stack(s, 6, python_frame(s, "iterencode", 204, "/py/lib/json/encoder.py", 2)),
        synth_stack(s, 7, synth_frame_in(s, synth_string(s, "exp"), 0, lib, 0, true)),
        synth_stack(s, 6, python_frame(s, "main.<locals>.default", 30, PROG, 31)),
        synth_stack(s, 1, python_frame(s, "_find", 1, "<frozen importlib._bootstrap>", 7)),
        synth_stack(s, 10, python_frame(s, "helper", 3, "/app/lib/helper.py", 4)),
        synth_stack(s, 0, python_frame(s, "run", 40, "/py/lib/threading.py", 44)),
    };
    static const struct {
        unsigned stack, state, count, ms;
        bool     worker;
    } samples[] = {
        { 0, 3, 1, 1, false },   { 2, 3, 10, 10, false },  { 3, 3, 40, 40, false },
        { 1, 3, 2, 2, false },   { 7, 11, 20, 20, false }, { 6, 3, 3, 3, false },
        { 8, 3, 5, 5, false },   { 10, 3, 4, 4, false },   { 9, 3, 1, 1, false },
        { 11, 0, 90, 90, true }, { 11, 4, 5, 5, true },    { 12, 2, 1, 1, true },
    };
    uint64_t ns = 0;

    synth_meta(s, "command", "prog.py");
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_path", "[\"/app\", \"/py/lib\"]");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    (void)n;
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint32_t stack = samples[i].stack < 12 ? stacks[samples[i].stack] : 0;
        ns += samples[i].ms * 1000000u;
        synth_sample(s, sampler, ns, stack, samples[i].state | samples[i].count << 8,
                     samples[i].worker ? u : t, samples[i].ms * 1000000u);
    }
    synth_close(s, true);
}

/* -------------------------------------- a Python program of chance, by its number N */

#define RANDOM_FUNCTIONS 12 /* of ten lines each, in prog.py: f0 begins at line 1, f1 at 11, .. */

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static void random_name(char name[16], uint32_t i)
{
    snprintf(name, 16, i % 4 == 3 ? "Thing.f%u" : "f%u", (unsigned)i);
}

/* Who calls whom: numbers that fit together as little as a person could make them by hand. */
static void random_calls(struct synth *s, const uint32_t *frames)
{
    for (uint32_t callee = 0; callee < RANDOM_FUNCTIONS; callee++) {
        for (uint32_t caller = 0; caller <= RANDOM_FUNCTIONS; caller++) {
            uint64_t calls = 1 + draw(1u << draw(20)), primitive = 1 + draw(calls);
            if (draw(3) != 0)
                continue;
            uint64_t words[8] = {
                calls,   primitive,         draw(3000000000u), draw(900000000u),
                draw(3), draw(1000000000u), primitive,         draw(5000000000u)
            };
            synth_tally(s, SND_TALLY_CALLS, frames[callee], caller ? frames[caller - 1] : 0, words,
                        8);
        }
    }
}

static void random_lines(struct synth *s)
{
    char name[16];

    for (uint32_t i = 0; i < RANDOM_FUNCTIONS; i++) {
        uint32_t first = 1 + i * 10;
        random_name(name, i);
        for (uint32_t line = first; line < first + 9; line++) {
            uint32_t frame = python_frame(s, name, first, "prog.py", line);
            bool     runs = line > first && i % 5 != 4 && draw(4) != 0;
            uint64_t time[2] = { runs ? 1 + draw((uint64_t)1 << draw(34)) : 0,
                                 runs ? draw((uint64_t)1 << draw(45)) : 0 };
            uint64_t memory[6] = { 1 + draw(5000), draw(1u << 28) - (1u << 27),
                                   draw(1u << 30), draw(1u << 30),
                                   draw(1u << 31), draw(1u << 28) };
            if (runs || line == first)
                synth_tally(s, SND_TALLY_LINE, frame, 0, time, 2);
            if (runs)
                synth_tally(s, SND_TALLY_LINE_MEMORY, frame, 0, memory, 6);
        }
    }
}

/* Where frames of samples may lie: the program, two libraries, native code, the import system. */
static uint32_t random_frame(struct synth *s, uint32_t depth)
{
    static const char *const files[] = { "/app/prog.py",
                                         "/app/tools/part.py",
                                         "/py/lib/json/encoder.py",
                                         "/py/lib/site/lib.one/two.py",
                                         "/py/lib/libm.so",
                                         "<frozen importlib._bootstrap>" };
    uint32_t                 kind = depth == 0 ? 0 : (uint32_t)draw(6);
    uint32_t                 which = (uint32_t)draw(5);
    char                     name[16];

    random_name(name, which + kind * 5);
    return synth_frame_in(s, synth_string(s, name), kind == 4 ? 0 : 1 + which * 10,
                          synth_string(s, files[kind]), 0, kind == 4);
}

static void random_samples(struct synth *s, uint32_t sampler, uint32_t thread)
{
    uint32_t stacks[60], depths[60] = { 0 };
    uint64_t ns = 0;

    stacks[0] = synth_stack(s, 0, random_frame(s, 0));
    for (uint32_t i = 1; i < 60; i++) {
        uint32_t below = (uint32_t)draw(i);
        depths[i] = depths[below] + 1;
        stacks[i] = synth_stack(s, stacks[below], random_frame(s, depths[i]));
    }
    for (int i = 0; i < 200; i++) {
        uint32_t weight = (uint32_t)(1000000 + draw(20000000));
        ns += weight;
        synth_sample(s, sampler, ns, stacks[draw(60)], 3 | 1 << 8, thread, weight);
    }
}

static void make_python_random(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    uint32_t      frames[RANDOM_FUNCTIONS];
    char          name[16];

    random_state = n * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < RANDOM_FUNCTIONS; i++) {
        random_name(name, i);
        frames[i] = i == 5 ? python_frame(s, "<method 'x' of 'y' objects>", 0, "~", 0)
                           : python_frame(s, name, 1 + i * 10, "prog.py", 1 + i * 10);
    }
    synth_meta(s, "command", "prog.py");
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_path", "[\"/app\", \"/py/lib\", \"/py/lib/site\"]");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    random_calls(s, frames);
    random_lines(s);
    random_samples(s, sampler, t);
    synth_close(s, true);
}

/* ------------------------------------------------------------- a profile of layers */

static void layer(struct synth *s, uint32_t t, uint64_t ns, const char *name, uint64_t duration)
{
    synth_span(s, t, ns, synth_string(s, name), duration);
}

static void make_layers(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), pass = synth_string(s, "pass");

    (void)n;
    synth_meta(s, "layers",
               "model_name=test/net\ndtype=torch.float32\nbatch_size=2\nlayers=4\ndevice=cpu\n"
               "memory=weights\npaired=0\nlater=unknown\nenvironment.torch=2.0\n"
               "environment.threads=1");
    synth_meta(s, "layer 1",
               "name=stem\nin=torch.float32 [3, 8, 8] 1536\nout=torch.float32 [16, 4] 512\n"
               "out=torch.int64 [] 16\nparameter_count=112\nparameter_bytes=448\nbuffer_bytes=0");
    synth_meta(s, "layer 2",
               "name=block.0\nin=torch.float32 [16, 4] 512\nin=torch.int64 [] 16\n"
               "out=torch.float32 [16, 4] 512\nparameter_count=64\nparameter_bytes=256\n"
               "buffer_bytes=8\nrss_bytes=4096");
    synth_meta(s, "layer 3",
               "name=block.1\nin=torch.float32 [16, 4] 512\nout=torch.float32 [16, 4] 512\n"
               "parameter_count=64\nparameter_bytes=256\nbuffer_bytes=8\nsame_as=2");
    synth_meta(s, "layer 4",
               "name=never run\nparameter_count=1\nparameter_bytes=4\n"
               "buffer_bytes=0");
    synth_meta(s, "layer x", "name=none");
    layer(s, t, 1000, "layer 1 warmup", 90000);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t ns = 100000 + i * 100000;
        synth_begin(s, t, ns, pass, 0);
        layer(s, t, ns + 100, "layer 1", 10000 + 1000 * i);
        layer(s, t, ns + 20100, "layer 2", 20000 + i * i * 1000);
        layer(s, t, ns + 60100, "layer 2 backward", 30000);
        synth_end(s, t, ns + 95000);
        synth_counter(s, t, ns + 96000, synth_string(s, "layer 2 device_copy_ns"), 2500);
    }
    layer(s, t, 600000, "model", 33000);
    synth_begin(s, t, 700000, synth_string(s, "layer 4"), 0); /* killed meanwhile */
    synth_close(s, false);
}

static const struct {
    const char *name;
    void (*make)(const char *path, uint64_t n);
    const char *summary;
} cases[] = {
    { "convnet", make_convnet, "nested operators with shapes, FLOPs, memory and steps" },
    { "names", make_names, "quotes, control characters, emoji, bytes that are not UTF-8" },
    { "threads", make_threads, "four threads" },
    { "thread_switch", make_thread_switch, "one chunk used by six threads after each other" },
    { "steps", make_steps, "steps, and ProfilerStep#N ranges" },
    { "two_processes", make_two_processes, "a folder with two ranks, clocks of different rates" },
    { "unfinished", make_unfinished, "not closed, ranges still open" },
    { "gaps", make_gaps, "lost events, and every count of the header" },
    { "keep_last", make_keep_last, "a flight recorder: ends without a begin" },
    { "warmup", make_warmup, "events before valid_from" },
    { "fold", make_fold, "sole children of the same name, and recursion" },
    { "async", make_async, "spans, ranges ended by another thread or before what lies in them" },
    { "memory", make_memory, "two devices, two threads, frees that match nothing" },
    { "links", make_links, "arrows between threads, one without an end" },
    { "counters", make_counters, "counters, infinities and NaN among their values" },
    { "stacks", make_stacks, "stacks, modules, shapes and samples" },
    { "torch", make_torch, "two training steps, as torch's probe records them" },
    { "python", make_python, "functions and lines of a Python program, counted; memory over time" },
    { "python_trace", make_python_trace, "a range for each call of a Python function" },
    { "python_names", make_python_names, "functions with names of all kinds, and great numbers" },
    { "python_random", make_python_random, "calls, lines and samples drawn from the number N" },
    { "samples", make_samples, "sampled stacks of two threads, native frames among them" },
    { "layers", make_layers, "a profile of layers, killed in the last one" },
    { "bench", make_bench, "a folder: a model's timed runs and passes, as sonde model records them" },
    { "tensors", make_tensors, "tensors of a model, two of them with one storage" },
    { "tensor_lines", make_tensor_lines, "tensor memory of the lines of a function" },
    { "empty", make_empty, "a trace without a chunk" },
    { "unknown", make_unknown, "kinds of a later version, undefined ids" },
    { "large", make_large, "N begins and ends on four threads" },
};

static int make(const char *name, const char *path, uint64_t n, bool packed)
{
    struct sonde_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        cases[i].make(path, n);
        enum sonde_status status = packed ? sonde_pack(path, path, 0, &err) : SONDE_OK;
        if (status == SONDE_OK || status == SONDE_E_UNSUPPORTED)
            return 0;
        fprintf(stderr, "gen: %s\n", err.message);
        return 1;
    }
    fprintf(stderr, "gen: no case %s; gen --list shows them\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    bool packed = false;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            printf("%-15s %s\n", cases[i].name, cases[i].summary);
        return 0;
    }
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--tiny") == 0)
            synth_grain = 4096;
        else if (strcmp(argv[1], "--packed") == 0)
            packed = true;
        else
            break;
    }
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: gen [--tiny] [--packed] CASE OUT [N] | gen --list\n");
        return 2;
    }
    return make(argv[1], argv[2], argc == 4 ? strtoull(argv[3], NULL, 10) : 1000, packed);
}
