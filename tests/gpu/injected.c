/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/gpu/injected.c - a program that does what CUDA's driver does with CUDA_INJECTION64_PATH, and then
 * launches 50 kernels on the stand-in (SONDE_CUPTI). "kill": it is killed then; "fork": it has a child.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/standin.h"

static void launch(uint32_t correlation)
{
    standin_call(2, 211, 0, correlation);
    uint64_t now = standin_time();
    standin_kernel("_Z4gemmPfi", now + 1000, now + 2000, correlation, 7, 0);
    standin_call(2, 211, 1, correlation);
}

int main(int argc, char **argv)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    const char *what = argc > 1 ? argv[1] : "";
    void       *library = path ? dlopen(path, RTLD_NOW) : NULL;
    void       *symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    int (*initialize)(void);

    if (!symbol) {
        fprintf(stderr, "not injected: %s\n",
                path ? dlerror() : "CUDA_INJECTION64_PATH is not set");
        return 3;
    }
    memcpy(&initialize, &symbol, sizeof symbol);
    if (initialize() != 1)
        return 4;
    for (uint32_t i = 1; i <= 50; i++)
        launch(i);
    if (strcmp(what, "kill") == 0) {
        /* one that began before the last launch may lack it */
        for (long before = standin_get("flushes"); standin_get("flushes") == before;)
            usleep(1000);
        usleep(20000); /* the flush that was begun */
        raise(SIGKILL);
    }
    if (strcmp(what, "fork") == 0) {
        if (fork() == 0)
            exit(0);
        wait(NULL);
    }
    puts("done");
    return 0;
}
