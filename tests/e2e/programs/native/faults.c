/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page faults of known shares: each page is written once by the function that it belongs to. Says how many
 * each function had. One of them calls itself, one runs in a child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define STEPS 50
#define DEPTH 4

static char *take_pages(size_t pages)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        exit(1);
    madvise(at, pages * PAGE, MADV_NOHUGEPAGE); /* which are one fault each */
    return at;
}

__attribute__((noinline)) void touch_many(volatile char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        at[i * PAGE] = 1;
}

__attribute__((noinline)) void touch_few(volatile char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        at[i * PAGE] = 2;
}

__attribute__((noinline)) void touch_deep(volatile char *at, size_t pages, int depth)
{
    for (size_t i = 0; i < pages / DEPTH; i++)
        at[i * PAGE] = 3;
    if (depth > 1)
        touch_deep(at + pages / DEPTH * PAGE, pages, depth - 1);
    at[0] = 4; /* no tail call */
}

__attribute__((noinline)) void touch_in_child(volatile char *at, size_t pages)
{
    pid_t child = fork();

    for (size_t i = 0; child == 0 && i < pages; i++)
        at[i * PAGE] = 5;
    if (child == 0)
        _exit(0);
    if (child < 0 || waitpid(child, NULL, 0) != child)
        exit(1);
}

int main(void)
{
    const size_t many = 2000, few = 500, deep = 1000, in_child = 500;

    for (int i = 0; i < STEPS; i++) {
        size_t all = many + few + deep + in_child;
        char  *at = take_pages(all);
        touch_many(at, many);
        touch_few(at + many * PAGE, few);
        touch_deep(at + (many + few) * PAGE, deep, DEPTH);
        touch_in_child(at + (many + few + deep) * PAGE, in_child);
        munmap(at, all * PAGE);
    }
    printf("touch_many %zu\ntouch_few %zu\ntouch_deep %zu\ntouch_in_child %zu\n", many * STEPS,
           few * STEPS, deep * STEPS, in_child * STEPS);
    return 7;
}
