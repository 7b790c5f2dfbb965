/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schedule.c - records only some steps of a long run, one trace file for each cycle.
 *
 *     ./schedule [FOLDER]
 *
 * Of every cycle of 10 steps, 7 are not recorded, 1 warms up and 2 are kept; two cycles in
 * all. The program is told of each finished file while it goes on.
 */
#include <stdio.h>
#include <sys/stat.h>

#include <sonde/record.h>

static double work(int step)
{
    SONDE_RANGE("work");
    double sum = 0;

    for (int i = 1; i <= 200000 + 1000 * step; i++)
        sum += 1.0 / i;
    return sum;
}

/* Called by the thread in sonde_step() or sonde_stop(), once the file is closed. */
static void tell(const struct sonde_cycle *cycle, void *user)
{
    int *count = user;

    printf("cycle %u ended with step %llu: %s\n", cycle->index, (unsigned long long)cycle->step,
           cycle->path);
    ++*count;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "schedule-traces";
    int         cycles = 0;
    double      sum = 0;
    char        path[4096];

    if ((size_t)snprintf(path, sizeof path, "%s/", folder) >= sizeof path)
        return 1;
    (void)mkdir(folder, 0700); /* if it cannot be made, sonde_start says so */

    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err;
    options.path = path;
    options.schedule = (struct sonde_schedule){ .wait = 7, .warmup = 1, .active = 2, .repeat = 2 };
    options.on_cycle = tell;
    options.user = &cycles;
    if (sonde_start(&options, &err) != SONDE_OK) {
        fprintf(stderr, "schedule: %s\n", err.message);
        return 1;
    }
    for (int step = 0; step < 30; step++) {
        sum += work(step);
        sonde_step();
    }
    (void)sonde_stop(NULL);
    printf("%d cycles recorded; sum %.3f\n", cycles, sum);
    return cycles == 2 ? 0 : 1;
}
