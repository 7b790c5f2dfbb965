/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak.c - records many events from several threads and watches the memory of its process.
 *
 *     soak TRACE [EVENTS [THREADS]]
 *
 * Ranges nest two deep under 64 names. Prints, as lines `= NAME VALUE`: the events made, the
 * resident size before and the largest seen while recording, the time, the size of the file.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sonde/record.h>

#include "rounds.h"

#define NAMES 64
#define EVENTS_PER_TURN 4

static char         names[NAMES][32];
static _Atomic bool finished;
static _Atomic long largest_bytes;

static long resident_bytes(void)
{
    long  total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%ld %ld", &total, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

static void *watch(void *unused)
{
    (void)unused;
    while (!finished) {
        long now = resident_bytes();
        if (now > largest_bytes)
            largest_bytes = now;
        usleep(2000);
    }
    return NULL;
}

static void *work(void *argument)
{
    uint64_t turns = *(const uint64_t *)argument;

    for (uint64_t i = 0; i < turns; i++) {
        sonde_begin("outer");
        sonde_begin(&names[i % NAMES][0]);
        sonde_end();
        sonde_end();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int usage = print_usage(argc, argv, "soak TRACE [EVENTS [THREADS]]");
    if (usage >= 0)
        return usage;
    uint64_t  events = argument(argc, argv, 2, 100000000), threads = argument(argc, argv, 3, 8);
    uint64_t  turns = events / threads / EVENTS_PER_TURN;
    pthread_t watcher, workers[256];

    if (threads < 1 || threads > sizeof workers / sizeof workers[0])
        return 2;
    for (int i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "inner %d", i);

    long                 before = resident_bytes();
    double               begin = now_ns();
    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err;
    options.path = argv[1];
    if (sonde_start(&options, &err) != SONDE_OK) {
        fprintf(stderr, "soak: %s\n", err.message);
        return 1;
    }
    if (pthread_create(&watcher, NULL, watch, NULL) != 0)
        return 1;
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&workers[i], NULL, work, &turns) != 0)
            return 1;
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(workers[i], NULL);
    double recorded = now_ns();
    if (sonde_stop(&err) != SONDE_OK)
        fprintf(stderr, "soak: %s\n", err.message);
    double stopped = now_ns();
    finished = true;
    pthread_join(watcher, NULL);

    struct stat file = { 0 };
    (void)stat(argv[1], &file);
    printf("= events %" PRIu64 "\n= threads %" PRIu64 "\n", turns * threads * EVENTS_PER_TURN,
           threads);
    printf("= rss_before_bytes %ld\n= rss_largest_bytes %ld\n", before, largest_bytes);
    printf("= record_s %.3f\n= stop_s %.3f\n", (recorded - begin) / 1e9,
           (stopped - recorded) / 1e9);
    printf("= file_bytes %lld\n", (long long)file.st_size);
    return 0;
}
