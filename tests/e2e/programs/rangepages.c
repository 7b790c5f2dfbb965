/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges whose counters are known, on two threads: "outer" touches 10 pages, "inner" in it 300 in all, "sleep"
 * in it sleeps 20 times; a child process does the same.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/record.h>

static char *pages;

static void touch(long from, long count)
{
    for (long i = from; i < from + count; i++)
        ((volatile char *)pages)[i * 4096] = 1;
}

static void *work(void *place)
{
    const struct timespec rest = { 0, 100000 };
    long                  from = *(long *)place;

    SONDE_RANGE("outer");
    touch(from, 10);
    for (int i = 0; i < 3; i++) {
        SONDE_RANGE("inner");
        touch(from + 10 + 100 * i, 100);
    }
    sonde_begin("sleep");
    for (int i = 0; i < 20; i++)
        nanosleep(&rest, NULL);
    sonde_end();
    return NULL;
}

int main(void)
{
    pthread_t thread;
    long      first = 0, second = 1000, third = 2000;

    pages = mmap(NULL, 3000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    madvise(pages, 3000 * 4096, MADV_NOHUGEPAGE);
    sonde_mark("begin"); /* so that the thread has its chunk */
    work(&first);
    if (pthread_create(&thread, NULL, work, &second) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        work(&third);
        return 0;
    }
    waitpid(pid, NULL, 0);
    return 0;
}
