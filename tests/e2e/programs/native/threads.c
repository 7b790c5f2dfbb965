/* SPDX-License-Identifier: Apache-2.0 */
/* N threads, each with its own share of the time; the last one does nothing but wait. */
#include <pthread.h>
#include <string.h>

#include "parts.h"

static long   steps;
static double seconds[2];

PART static void heavy(long n)
{
    burn(3 * n);
    sink++;
}

PART static void light(long n)
{
    burn(n);
    sink++;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *odd)
{
    double start = cpu_now();

    if (odd)
        light(steps);
    else
        heavy(steps);
    pthread_mutex_lock(&lock);
    seconds[odd != NULL] += cpu_now() - start;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    int       count = argc > 1 ? atoi(argv[1]) : 8;
    pthread_t threads[1024];

    steps = (long)((double)steps_a_second() * (argc > 2 ? atof(argv[2]) : 0.4) / count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, i % 2 ? &lock : NULL) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    TELL("heavy", seconds[0]);
    TELL("light", seconds[1]);
    return 7;
}
