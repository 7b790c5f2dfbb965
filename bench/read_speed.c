/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/read_speed.c - how fast a trace becomes key averages, in one thread.
 *
 *     read_speed TRACE [ROUNDS]     prints events, best seconds, events/s, largest memory
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "rounds.h"
#include "sonde/model.h"
#include "sonde/trace.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Opens, averages and closes once; returns the number of events. */
static uint64_t read_once(const char *path)
{
    struct sonde_error     err;
    struct sonde_trace    *trace;
    struct sonde_averages *averages;

    if (sonde_trace_open(path, &trace, &err) != SONDE_OK ||
        sonde_averages_new(trace, NULL, &averages, &err) != SONDE_OK) {
        fprintf(stderr, "read_speed: %s\n", err.message);
        exit(1);
    }
    uint64_t events = sonde_averages_totals(averages)->events;
    sonde_averages_free(averages);
    sonde_trace_close(trace);
    return events;
}

int main(int argc, char **argv)
{
    struct rusage usage;
    double        best = 1e9;
    uint64_t      events = 0;
    int           rounds = argc > 2 ? atoi(argv[2]) : 3;

    int status = print_usage(argc, argv, "read_speed TRACE [ROUNDS]");
    if (status >= 0)
        return status;
    for (int i = 0; i < rounds; i++) {
        double start = now_s();
        events = read_once(argv[1]);
        double seconds = now_s() - start;
        best = seconds < best ? seconds : best;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("events %" PRIu64 "\nseconds %.4f\nevents_per_s %.0f\nmax_rss_kib %ld\n", events, best,
           (double)events / best, usage.ru_maxrss);
    return 0;
}
