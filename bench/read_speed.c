/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/read_speed.c - how fast a trace becomes key averages, and how fast its bytes can be read at all.
 *
 *     read_speed TRACE [ROUNDS [PROCESSORS]]     by the first PROCESSORS that it may use; 0: by all
 *
 * In each round the trace is read to key averages, and then its file (one) by as many threads, which add up its words and do nothing
 * else. Prints events, best seconds and events/s of both, largest memory.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rounds.h"
#include "sonde/model.h"
#include "sonde/trace.h"

#define THREADS_MAX 64u
#define WINDOW_WORDS ((size_t)1 << 15) /* as the reader has it: fits the second-level cache */

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static _Noreturn void stop(const char *why)
{
    fprintf(stderr, "read_speed: %s\n", why);
    exit(1);
}

/* Opens, averages and closes once; returns the number of events. */
static uint64_t read_once(const char *path)
{
    struct sonde_error     err;
    struct sonde_trace    *trace;
    struct sonde_averages *averages;

    if (sonde_trace_open(path, &trace, &err) != SONDE_OK ||
        sonde_averages_new(trace, NULL, &averages, &err) != SONDE_OK)
        stop(err.message);
    uint64_t events = sonde_averages_totals(averages)->events;
    sonde_averages_free(averages);
    sonde_trace_close(trace);
    return events;
}

/* ------------------------------------------------------------------- the limit */

struct part {
    pthread_t thread;
    int       fd;
    off_t     begin, end;
    uint64_t  sum;
};

static void *sum_part(void *user)
{
    struct part *part = user;
    uint64_t    *words = malloc(WINDOW_WORDS * sizeof *words), sum = 0;

    if (!words)
        stop("out of memory");
    for (off_t at = part->begin; at < part->end;) {
        size_t  want = WINDOW_WORDS * sizeof *words;
        ssize_t got = pread(part->fd, words, want, at);
        if (got <= 0)
            break;
        for (size_t i = 0; i < (size_t)got / 8; i++)
            sum += words[i];
        at += got;
    }
    part->sum = sum;
    free(words);
    return NULL;
}

/* Reads and adds up the words of the file; returns their sum, so that they are. */
static uint64_t sum_once(const char *path, unsigned threads)
{
    struct part parts[THREADS_MAX];
    struct stat st;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t    sum = 0;

    if (fd < 0 || fstat(fd, &st) != 0)
        stop("the trace is not a file");
    for (unsigned i = 0; i < threads; i++) {
        parts[i] = (struct part){ .fd = fd,
                                  .begin = st.st_size / threads * i,
                                  .end = i + 1 < threads ? st.st_size / threads * (i + 1)
                                                         : st.st_size };
        if (pthread_create(&parts[i].thread, NULL, sum_part, &parts[i]) != 0)
            stop("no threads");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(parts[i].thread, NULL);
        sum += parts[i].sum;
    }
    close(fd);
    return sum;
}

/* Leaves so many of the processors that the process may use, or all if 0; returns how many there are then. */
static unsigned use_processors(unsigned count)
{
    cpu_set_t all, some;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        stop("processors are not known");
    if (count == 0 || count > (unsigned)CPU_COUNT(&all))
        count = (unsigned)CPU_COUNT(&all);
    CPU_ZERO(&some);
    for (int i = 0; i < CPU_SETSIZE && (unsigned)CPU_COUNT(&some) < count; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &some);
    if (sched_setaffinity(0, sizeof some, &some) != 0)
        stop("processors are not to be chosen");
    return count < THREADS_MAX ? count : THREADS_MAX;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    double        best = 1e9, limit = 1e9;
    uint64_t      events = 0, sum = 0;
    int           rounds = argc > 2 ? atoi(argv[2]) : 3;

    int status = print_usage(argc, argv, "read_speed TRACE [ROUNDS [PROCESSORS]]");
    if (status >= 0)
        return status;
    unsigned threads = use_processors(argc > 3 ? (unsigned)atoi(argv[3]) : 0);
    for (int i = 0; i < rounds; i++) {
        double start = now_s();
        events = read_once(argv[1]);
        double between = now_s();
        sum ^= sum_once(argv[1], threads);
        double end = now_s();
        best = between - start < best ? between - start : best;
        limit = end - between < limit ? end - between : limit;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("events %" PRIu64 "\nseconds %.4f\nevents_per_s %.0f\nmax_rss_kib %ld\n", events, best,
           (double)events / best, usage.ru_maxrss);
    printf("processors %u\nlimit_per_s %.0f\nsum %" PRIu64 "\n", threads, (double)events / limit,
           sum);
    return 0;
}
