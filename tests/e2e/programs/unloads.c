/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unloads PLUGIN TRACE HOW COUNT: loads PLUGIN, has it record from four threads, unloads it; COUNT
 * times. HOW: "recording", the threads end afterwards; "stopped", the recording was ended before;
 * "threads", they end while it is unloaded; "exit", it is left to the end of the process.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, RANGES = 10000 };

static void (*work)(int);
static pthread_barrier_t worked, may_end;

static void *run(void *unused)
{
    (void)unused;
    work(RANGES);
    pthread_barrier_wait(&worked);
    pthread_barrier_wait(&may_end);
    return NULL;
}

/* A process that is made afterwards has no handler of fork() in what is unmapped. */
static int fork_works(void)
{
    int   status = 1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

static void unload(void *plugin, const char *path)
{
    if (dlclose(plugin) != 0 || dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {
        fprintf(stderr, "not unloaded\n");
        exit(1);
    }
}

static int turn(char **argv, int number)
{
    int       at_exit = strcmp(argv[3], "exit") == 0, at_once = strcmp(argv[3], "threads") == 0;
    pthread_t threads[THREADS];
    char      trace[4096];
    void     *plugin = dlopen(argv[1], RTLD_NOW);

    snprintf(trace, sizeof trace, "%s%d.sonde", argv[2], number);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    work = (void (*)(int))dlsym(plugin, "plugin_work");
    if (((int (*)(const char *))dlsym(plugin, "plugin_start"))(trace) != 0)
        return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    work(RANGES);
    pthread_barrier_wait(&worked);
    if (strcmp(argv[3], "stopped") == 0)
        ((void (*)(void))dlsym(plugin, "plugin_stop"))();
    if (at_once || at_exit)
        pthread_barrier_wait(&may_end);
    if (!at_exit)
        unload(plugin, argv[1]);
    if (!at_once && !at_exit)
        pthread_barrier_wait(&may_end);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return !fork_works();
}

/* The first key that nobody has: a process has some thousand. */
static pthread_key_t free_key(void)
{
    pthread_key_t key;

    if (pthread_key_create(&key, NULL) != 0)
        exit(1);
    pthread_key_delete(key);
    return key;
}

int main(int argc, char **argv)
{
    int           stays = argc > 3 && strcmp(argv[3], "exit") == 0;
    int           count = argc > 4 ? stays ? 1 : atoi(argv[4]) : 0;
    pthread_key_t before;

    pthread_barrier_init(&worked, NULL, THREADS + 1);
    pthread_barrier_init(&may_end, NULL, THREADS + 1);
    for (int i = 0; i < count; i++) {
        if (turn(argv, i) != 0)
            return 1;
        if (i == 0)
            before = free_key(); /* dlopen() itself may keep one */
    }
    if (!stays && count > 0 && free_key() != before) {
        fprintf(stderr, "a key of threads was left\n");
        return 1;
    }
    return 0;
}
