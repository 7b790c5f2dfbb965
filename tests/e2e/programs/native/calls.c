/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks of many kinds, a tenth of a second each: deep recursion, calls that are jumps, frames of
 * variable size, callbacks from the C library, signal handlers, calls through the linkage table.
 */
#include <alloca.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "parts.h"

static long steps;

PART static void even(long depth);

PART static void odd(long depth)
{
    if (depth == 0)
        burn(steps);
    else
        even(depth - 1); /* a jump */
}

PART static void even(long depth)
{
    if (depth == 0)
        burn(steps);
    else
        odd(depth - 1);
}

/* More than the 8 KB of stack that a sample has. */
PART static void deep(int depth)
{
    volatile char room[256];

    room[0] = (char)depth;
    if (depth > 0)
        deep(depth - 1);
    else
        burn(steps);
    sink += (unsigned long)room[0];
}

PART static void sized(size_t bytes)
{
    char *room = alloca(bytes);

    memset(room, 1, bytes);
    burn(steps);
    sink += (unsigned long)room[bytes / 2];
}

static int compare(const void *left, const void *right)
{
    burn(20);
    return *(const int *)left - *(const int *)right;
}

PART static void sorted(void)
{
    static int numbers[5000];

    for (double end = cpu_now() + 0.1; cpu_now() < end;) {
        for (int i = 0; i < 5000; i++)
            numbers[i] = rand();
        qsort(numbers, 5000, sizeof *numbers, compare);
    }
    sink += (unsigned long)numbers[7];
}

static void on_timer(int number)
{
    (void)number;
    burn(steps / 100);
}

PART static void interrupted(void)
{
    struct sigaction action = { .sa_handler = on_timer };
    struct itimerval each = { { 0, 3000 }, { 0, 3000 } }, none = { { 0, 0 }, { 0, 0 } };

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &each, NULL);
    burn(steps);
    setitimer(ITIMER_PROF, &none, NULL);
    sink++;
}

PART static void through_the_table(void)
{
    char text[64];

    for (double end = cpu_now() + 0.1; cpu_now() < end;)
        for (int i = 0; i < 200; i++) {
            snprintf(text, sizeof text, "%d %s %f", i, "words", 0.5 * i);
            sink += strlen(text) + (unsigned long)atoi(text);
        }
}

int main(void)
{
    steps = steps_a_second() / 10;
    even(9);
    deep(60);
    sized(100);
    sized(3000);
    sorted();
    interrupted();
    through_the_table();
    return 7;
}
