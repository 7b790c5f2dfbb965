/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_range.c - what a range costs, beside the two clock reads that it cannot do without.
 *
 *     bench_range TRACE [THREADS [ROUNDS [RANGES_PER_ROUND]]]
 *
 * Each thread times two raw clock reads and a recorded range in turn. Then, with nothing
 * recording, the same range once more. The trace stays, for its size.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sys/stat.h>

#include "ranges.h"

struct worker {
    pthread_t          thread;
    pthread_barrier_t *start;
    uint64_t           rounds, ranges;
    struct cost       *reads, *range; /* one a round */
};

static void *run_worker(void *argument)
{
    struct worker *w = argument;

    (void)time_ranges(1); /* attaches the thread */
    pthread_barrier_wait(w->start);
    for (uint64_t i = 0; i < w->rounds; i++) {
        w->reads[i] = time_two_reads(w->ranges);
        w->range[i] = time_ranges(w->ranges);
    }
    return NULL;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        fprintf(stderr, "bench_range: out of memory\n");
        exit(1);
    }
    return memory;
}

static void run_workers(uint64_t threads, uint64_t rounds, uint64_t ranges)
{
    struct worker    *workers = allocate(threads, sizeof *workers);
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (uint64_t i = 0; i < threads; i++) {
        struct worker *w = &workers[i];
        w->start = &start;
        w->rounds = rounds;
        w->ranges = ranges;
        w->reads = allocate(rounds, sizeof *w->reads);
        w->range = allocate(rounds, sizeof *w->range);
        if (pthread_create(&w->thread, NULL, run_worker, w) != 0)
            exit(1);
    }
    for (uint64_t i = 0; i < threads; i++) {
        struct worker *w = &workers[i];
        pthread_join(w->thread, NULL);
        for (uint64_t r = 0; r < rounds; r++) {
            print_round("two_reads", threads, r, w->reads[r]);
            print_round("range", threads, r, w->range[r]);
        }
        free(w->reads);
        free(w->range);
    }
    free(workers);
    pthread_barrier_destroy(&start);
}

int main(int argc, char **argv)
{
    int usage = print_usage(argc, argv, "bench_range TRACE [THREADS [ROUNDS [RANGES_PER_ROUND]]]");
    if (usage >= 0)
        return usage;
    uint64_t threads = argument(argc, argv, 2, 1), rounds = argument(argc, argv, 3, 100);
    uint64_t ranges = argument(argc, argv, 4, 20000);

    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err;
    options.path = argv[1];
    if (sonde_start(&options, &err) != SONDE_OK) {
        fprintf(stderr, "bench_range: %s\n", err.message);
        return 1;
    }
    run_workers(threads, rounds, ranges);
    if (sonde_stop(&err) != SONDE_OK)
        fprintf(stderr, "bench_range: %s\n", err.message);

    for (uint64_t r = 0; r < rounds; r++)
        print_round("disabled", threads, r, time_ranges(ranges));

    struct stat file;
    if (stat(argv[1], &file) == 0)
        printf("= file_bytes %lld\n", (long long)file.st_size);
    printf("= events %" PRIu64 "\n", 2 * threads * (rounds * ranges + 1));
    return 0;
}
