/* SPDX-License-Identifier: Apache-2.0 */
/* Waits in three functions: for a clock, for a lock that another thread holds, for a pipe. Says how long. */
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "parts.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t           held;
static int             ends[2];

static double wall_now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

PART static void rest(long ms)
{
    struct timespec left = { 0, ms * 1000000 };

    nanosleep(&left, NULL);
    sink++;
}

/* Holds the lock for a while, then writes to the pipe after another. */
static void *other(void *nothing)
{
    pthread_mutex_lock(&lock);
    sem_post(&held);
    rest(200);
    pthread_mutex_unlock(&lock);
    rest(150);
    if (write(ends[1], "x", 1) != 1)
        abort();
    return nothing;
}

PART static void sleeps(void)
{
    rest(300);
    sink++;
}

PART static void wants_the_lock(void)
{
    pthread_mutex_lock(&lock);
    sink++;
    pthread_mutex_unlock(&lock);
}

PART static void reads_the_pipe(void)
{
    char c;

    if (read(ends[0], &c, 1) != 1)
        abort();
    sink++;
}

int main(void)
{
    pthread_t thread;
    double    at[4];

    burn(steps_a_second() / 10);
    sem_init(&held, 0, 0);
    if (pipe(ends) != 0)
        return 1;
    at[0] = wall_now();
    sleeps();
    at[1] = wall_now();
    if (pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    sem_wait(&held);
    double begin = wall_now();
    wants_the_lock();
    at[2] = wall_now();
    reads_the_pipe();
    at[3] = wall_now();
    pthread_join(thread, NULL);
    TELL("sleeps", at[1] - at[0]);
    TELL("wants_the_lock", at[2] - begin);
    TELL("reads_the_pipe", at[3] - at[2]);
    return 7;
}
