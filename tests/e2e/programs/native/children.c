/* SPDX-License-Identifier: Apache-2.0 */
/* N children, one after the other, each for some milliseconds; the parent ignores signals. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "parts.h"

PART static void in_child(long steps)
{
    burn(steps);
    sink++;
}

PART static void in_parent(long steps)
{
    burn(steps);
    sink += 3; /* not the same code: the compiler would make one function of the two */
}

int main(int argc, char **argv)
{
    int    count = argc > 1 ? atoi(argv[1]) : 20;
    double total = argc > 2 ? atof(argv[2]) : 0.6, start;
    long   steps = (long)((double)steps_a_second() * total);

    for (int i = 1; i < 32; i++)
        signal(i, i == SIGCHLD ? SIG_DFL : SIG_IGN);
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            in_child(steps / count);
            _exit(0);
        }
        wait(NULL);
    }
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    start = cpu_now();
    in_parent(steps / 2);
    TELL("in_child", (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6);
    TELL("in_parent", cpu_now() - start);
    return 7;
}
