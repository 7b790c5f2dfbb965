/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose counters are known: what it does is its first argument. It does not know sonde.
 *
 *     counted pages N      touches N pages
 *     counted threads N    N threads touch 100 pages each
 *     counted children N   N children touch 100 pages each
 *     counted exec N       becomes `counted pages N`
 *     counted sleeps N     sleeps N times
 *     counted spin N       computes for N ms of processor time
 *     counted exit N, counted raise N, counted wait
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int touch(long count)
{
    char *at = mmap(NULL, (size_t)count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);

    if (at == MAP_FAILED)
        return 1;
    madvise(at, (size_t)count * 4096, MADV_NOHUGEPAGE);
    for (long i = 0; i < count; i++)
        ((volatile char *)at)[i * 4096] = 1;
    return munmap(at, (size_t)count * 4096);
}

static void *touch_some(void *unused)
{
    touch(100);
    return unused;
}

static int do_threads(long count)
{
    pthread_t thread;

    for (long i = 0; i < count; i++)
        if (pthread_create(&thread, NULL, touch_some, NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 1;
    return 0;
}

static int do_children(long count)
{
    for (long i = 0; i < count; i++)
        if (fork() == 0)
            _exit(touch(100));
    while (wait(NULL) > 0)
        ;
    return 0;
}

static int do_sleeps(long count)
{
    const struct timespec rest = { 0, 1000000 };

    for (long i = 0; i < count; i++)
        nanosleep(&rest, NULL);
    return 0;
}

static int do_spin(long ms)
{
    struct timespec now;

    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_sec * 1000 + now.tv_nsec / 1000000 < ms);
    return 0;
}

static int do_exit(long status)
{
    return (int)status;
}

static int do_raise(long number)
{
    return raise((int)number);
}

static int do_wait(long unused)
{
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
    return (int)unused;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(long number);
    } modes[] = {
        { "pages", touch },      { "threads", do_threads }, { "children", do_children },
        { "sleeps", do_sleeps }, { "spin", do_spin },       { "exit", do_exit },
        { "raise", do_raise },   { "wait", do_wait },
    };
    const char *mode = argc > 1 ? argv[1] : "";

    if (strcmp(mode, "exec") == 0 && argc > 2)
        return execl("/proc/self/exe", argv[0], "pages", argv[2], (char *)NULL);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(mode, modes[i].name) == 0)
            return modes[i].run(argc > 2 ? atol(argv[2]) : 0);
    return 2;
}
