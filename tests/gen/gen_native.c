/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_native.c - cases about programs that are not Python: frames by address, many processes. */
#include "cases.h"
#include "format/layout.h"
#include "synth.h"

#define APP "/app/prog"
#define APP_ID "00112233445566778899aabbccddeeff00112233"
#define LIBM "/usr/lib/libm.so.6"

static uint32_t address(struct synth *s, const char *file, const char *build_id, uint64_t at)
{
    return synth_address(s, synth_string(s, file), build_id ? synth_string(s, build_id) : 0, at);
}

/* main() -> inner(), inlined into outer() -> a function of a library without symbols. */
void make_native(const char *path, uint64_t n)
{
    struct synth_options options = { .pid = 5000, .parent_pid = 4999 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             sampler = synth_thread_of(s, "sonde", 4998, 0);
    uint32_t             t = synth_thread_in(s, "prog", 0, 5000, 0);
    uint32_t             child = synth_thread_in(s, "child", 5001, 5001, 20000000);
    uint32_t             worker = synth_thread_in(s, "worker", 5001, 5002, 30000000);
    uint32_t             source = synth_string(s, "/src/prog.c");
    uint32_t start = address(s, APP, APP_ID, 0x1139), leaf = address(s, APP, APP_ID, 0x1180);
    uint32_t library = address(s, LIBM, NULL, 0x2abc);
    uint32_t at_main = synth_stack(s, 0, start), at_leaf = synth_stack(s, at_main, leaf);
    uint32_t at_exp = synth_stack(s, at_leaf, library);

    (void)n;
    synth_meta(s, "command", "./prog");
    synth_sample(s, sampler, 30000000, at_leaf, 10 | 30 << 8, t, 30000000);
    synth_sample(s, sampler, 40000000, at_exp, 10 | 10 << 8, t, 10000000);
    synth_sample(s, sampler, 45000000, at_main, 10 | 5 << 8, t, 5000000);
    synth_sample(s, sampler, 50000000, at_exp, 10 | 20 << 8, child, 20000000);
    synth_sample(s, sampler, 60000000, synth_stack(s, 0, library), 10 | 10 << 8, worker, 10000000);
    const struct snd_symbol_entry main_at[] = { { synth_string(s, "main"), source, 20, 18 } };
    const struct snd_symbol_entry leaf_at[] = { { synth_string(s, "inner"), source, 5, 3 },
                                                { synth_string(s, "outer"), source, 12, 10 } };
    synth_symbol(s, start, main_at, 1);
    synth_symbol(s, leaf, leaf_at, 2);
    synth_thread_done(s, child, 55000000, 0);
    synth_close(s, true);
}

/*
 * work() and an operator in turn. The samples are written a while after they were read, when something else
 * is open; what they stand for began before. Written last: a thread that has waited since it began.
 */
void make_runs(const char *path, uint64_t n)
{
    struct synth_options options = { .pid = 5100 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             sampler = synth_thread_of(s, "sonde", 5098, 0);
    uint32_t             t = synth_thread_of(s, "main", 5100, 0);
    uint32_t             waits = synth_thread_of(s, "waits", 5101, 0);
    uint32_t             file = synth_string(s, "/app/turns.py");
    uint32_t             main_at = synth_frame_in(s, synth_string(s, "main"), 10, file, 12, false);
    uint32_t             work_at = synth_frame_in(s, synth_string(s, "work"), 20, file, 25, false);
    uint32_t       in_main = synth_stack(s, 0, main_at), in_work = synth_stack(s, in_main, work_at);
    uint32_t       mm = synth_string(s, "aten::mm");
    const uint64_t ms = 1000000;

    (void)n;
    synth_meta(s, "python.sample", "from inside");
    synth_begin(s, waits, ms, synth_string(s, "queue"), 0);
    for (uint64_t at = 0; at < 40 * ms; at += 20 * ms) { /* ten of work, ten of the operator */
        synth_span(s, t, at + 10 * ms, mm, 10 * ms);
        const struct synth_run work = { in_work, 3 | 1 << 8, t, at, at + 9 * ms, at + 9 * ms };
        synth_sample_run(s, sampler, at + 12 * ms, &work);
        const struct synth_run product = { in_main,     3 | 2 << 8,   t,
                                           at + 9 * ms, at + 20 * ms, at + 19 * ms };
        synth_sample_run(s, sampler, at + 25 * ms, &product);
    }
    const struct synth_run first = { in_main, 0 | 3 << 8, waits, 0, 30 * ms, 2 * ms };
    const struct synth_run more = { in_main, 0, waits, 30 * ms, 45 * ms, 2 * ms };
    synth_end(s, waits, 50 * ms);
    synth_sample_run(s, sampler, 52 * ms, &first);
    synth_sample_run(s, sampler, 53 * ms, &more); /* goes on with the one before */
    synth_close(s, true);
}

/*
 * train() -> step() -> native gemm(), under a range and an operator; a thread whose samples are native
 * alone; samples in a row over which the operators change. Two asynchronous ranges, which are no frames:
 * one says so, the other is ended by another thread.
 */
void make_mixed(const char *path, uint64_t n)
{
    struct synth_options options = { .pid = 5000 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             sampler = synth_thread_of(s, "sonde", 4998, 0);
    uint32_t             t = synth_thread_of(s, "main", 5000, 0);
    uint32_t             pool = synth_thread_of(s, "pool", 5001, 0);
    uint32_t             file = synth_string(s, "/app/train.py");
    uint32_t             train = synth_frame_in(s, synth_string(s, "train"), 10, file, 12, false);
    uint32_t             step = synth_frame_in(s, synth_string(s, "step"), 20, file, 25, false);
    uint32_t             gemm = address(s, "/lib/libblas.so", NULL, 0x100);
    uint32_t in_train = synth_stack(s, 0, train), in_step = synth_stack(s, in_train, step);
    uint32_t in_gemm = synth_stack(s, in_step, gemm), alone = synth_stack(s, 0, gemm);
    const struct snd_symbol_entry at[] = {
        { synth_string(s, "void blas::kernel<float, 8>(float const*, int)"), 0, 0, 0 },
        { synth_string(s, "blas::gemm(int)"), 0, 0, 0 }
    };

    (void)n;
    synth_meta(s, "python.sample", "from inside");
    synth_begin(s, t, 10000000, synth_string(s, "epoch"), 0);
    synth_begin(s, t, 20000000, synth_string(s, "aten::mm"), 0);
    synth_begin(s, pool, 15000000, synth_string(s, "job"), 0);
    synth_begin(s, pool, 16000000, synth_string(s, "waits for others"), 0);
    synth_attr(s, pool, SND_ATTR_ASYNC, 1);
    synth_begin(s, t, 21000000, synth_string(s, "ended elsewhere"), 0);
    synth_attr(s, t, SND_ATTR_KEY, 77);
    synth_begin(s, t, 22000000, synth_string(s, "inside"), 0);
    synth_sample(s, sampler, 5000000, in_step, 3 | 1 << 8, t, 5000000);    /* nothing is open */
    synth_sample(s, sampler, 30000000, in_gemm, 10 | 3 << 8, t, 15000000); /* at 20, 25 and 30 ms */
    synth_sample(s, sampler, 30000000, alone, 10 | 1 << 8, pool, 5000000);
    synth_end_key(s, pool, 32000000, 77);
    synth_end(s, pool, 33000000);
    synth_end(s, t, 35000000);
    synth_end(s, t, 40000000);
    synth_span(s, t, 45000000, synth_string(s, "aten::relu"), 5000000);
    synth_sample(s, sampler, 60000000, in_step, 3 | 4 << 8, t, 20000000); /* at 45, 50, 55, 60 ms */
    synth_end(s, t, 70000000);
    synth_end(s, pool, 70000000);
    synth_sample(s, sampler, 80000000, in_train, 3 | 1 << 8, t, 5000000);
    synth_symbol(s, gemm, at, 2);
    synth_close(s, true);
}
