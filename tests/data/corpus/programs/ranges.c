/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that a C program can record: ranges of every kind of end, shapes, FLOPs, memory, counters,
 * marks, links, threads, steps, metadata, calls, samples, tallies. "killed" as argument: it dies
 * with ranges open. "forked": each of two children makes a file.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/record.h>

static void product(int64_t n)
{
    SONDE_RANGE("product");
    struct sonde_tensor in[] = { SONDE_TENSOR(SONDE_FLOAT32, 8, n),
                                 SONDE_TENSOR(SONDE_FLOAT32, n, 64) };
    sonde_range_shapes(in, 2);
    sonde_flops(2.0 * 8 * (double)n * 64);
    static char memory[64];
    sonde_alloc(SONDE_CPU, &memory[n % 64], (uint64_t)n * 4);
    for (int i = 0; i < 3; i++) {
        SONDE_RANGE("leaf");
    }
    if (n % 2 == 0)
        sonde_free(SONDE_CPU, &memory[n % 64], (uint64_t)n * 4);
}

static void *work(void *argument)
{
    sonde_thread_name("worker");
    sonde_begin("thread");
    sonde_link_to(7);
    for (int i = 0; i < 5; i++)
        product(16 + i);
    sonde_end();
    sonde_end_key(99); /* of the main thread */
    return argument;
}

static void out_of_order(void)
{
    sonde_begin("outer");
    sonde_begin("middle");
    sonde_begin("inner");
    sonde_end_at(1); /* middle */
    sonde_end();
    sonde_end();
    sonde_begin("awaited");
    sonde_attr(SONDE_ATTR_KEY, 99);
    sonde_attr(SONDE_ATTR_ASYNC, 1);
}

static void what_probes_record(void)
{
    uint32_t file = sonde_intern("model.py", 8), function = sonde_intern("forward", 7);
    uint32_t frame = sonde_intern_frame_in(function, 10, file, 12);
    uint32_t native = sonde_intern_native(sonde_intern("gemm", 4), sonde_intern("libm.so", 7));
    uint32_t stack = sonde_intern_stack(sonde_intern_stack(0, frame), native);
    struct sonde_op_call call = { .struct_size = sizeof call,
                                  .name = sonde_intern("aten::mm", 8),
                                  .stack = stack,
                                  .scope = 0,
                                  .has_sequence = 1,
                                  .overload = sonde_intern("out", 3) };
    uint32_t             id = sonde_intern_call(&call);
    for (uint64_t i = 0; i < 3; i++) {
        sonde_begin_call(id, i);
        sonde_end();
    }
    struct sonde_sample sample = { .struct_size = sizeof sample,
                                   .stack = stack,
                                   .state = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU,
                                   .samples = 3,
                                   .covered_ns = 3000000 };
    sonde_sample(&sample);
    uint64_t *words = sonde_tally(SONDE_TALLY_LINE, frame, 0, 2);
    if (words)
        words[0] = 4, words[1] = 4000;
    uint64_t                   now = sonde_clock();
    struct sonde_function_call python = {
        .struct_size = sizeof python, .frame = frame, .start = now - 1000, .end = now, .id = 1
    };
    sonde_function_call(&python);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    pthread_t   thread;

    sonde_metadata("purpose", "a trace of the corpus");
    for (int step = 0; step < 3; step++) {
        SONDE_RANGE("step");
        sonde_step();
        sonde_counter("loss", 1.0 / (step + 1));
        product(8 + step);
    }
    sonde_mark("half time");
    sonde_link_from(7);
    out_of_order();
    what_probes_record();
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    for (int child = 0; child < 2 && strcmp(how, "forked") == 0; child++) {
        if (fork() == 0) {
            product(child);
            return 0;
        }
        wait(NULL);
    }
    if (strcmp(how, "killed") == 0) {
        sonde_begin("never ended");
        sonde_begin("nor this");
        raise(SIGKILL);
    }
    return 0;
}
