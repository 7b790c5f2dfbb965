/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/crash/kill.c - killed at a random moment, again and again: nothing published is lost.
 *
 * A child records from several threads and, after each begin and after each end, notes in
 * memory it shares with its parent how far it has come. The parent kills it (SIGKILL) after a
 * random time, reads the trace, and demands of every thread at least what was noted, at most
 * one event more, in unbroken order.
 *
 *     kill ROUNDS [SEED]
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

#include "sonde/model.h"
#include "sonde/record.h"
#include "sonde/trace.h"

#define THREADS 4

struct progress {
    uint32_t tid;
    uint32_t begins, ends; /* published so far; only ever grow */
    uint32_t leaves;       /* of bare ranges, which close in place */
} __attribute__((aligned(64)));

static struct progress *shared;

static void *record(void *argument)
{
    struct progress *mine = argument;

    __atomic_store_n(&mine->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
    for (uint32_t i = 1;; i++) {
        char name[16];
        int  n = snprintf(name, sizeof name, "name %u", i % 500);
        sonde_begin_id(sonde_intern(name, (size_t)n), i);
        __atomic_store_n(&mine->begins, i, __ATOMIC_RELEASE);
        sonde_begin("leaf");
        sonde_end();
        __atomic_store_n(&mine->leaves, i, __ATOMIC_RELEASE);
        if (i % 3 == 0)
            sonde_alloc(SONDE_CPU, name, i); /* longer events in between */
        sonde_end();
        __atomic_store_n(&mine->ends, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void run_child(const char *path)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    pthread_t            thread;

    options.path = path;
    options.chunk_bytes = 65536; /* many changes of chunk */
    if (sonde_start(&options, NULL) != SONDE_OK)
        _exit(1);
    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&thread, NULL, record, &shared[i]) != 0)
            _exit(1);
    record(&shared[0]);
}

struct found {
    struct sonde_trace *trace;
    uint32_t            begins[64], ends[64], leaves[64];
    bool                in_leaf[64];
    bool                bad;
};

static bool is_named(const struct found *found, const struct sonde_event *event, const char *name)
{
    return strcmp(sonde_trace_string(found->trace, event->process, event->begin.name).bytes,
                  name) == 0;
}

static bool check(const struct sonde_event *event, void *user)
{
    struct found *found = user;
    uint32_t      t = event->thread;

    if (t >= 64) {
        found->bad = true;
    } else if (event->kind == SONDE_EVENT_BEGIN && event->begin.shapes == 0) {
        found->bad |= !is_named(found, event, "leaf") || found->leaves[t] + 1 != found->begins[t];
        found->in_leaf[t] = true;
    } else if (event->kind == SONDE_EVENT_BEGIN) {
        char expected[16];
        found->bad |= event->begin.shapes != ++found->begins[t] ||
                      found->ends[t] != event->begin.shapes - 1;
        snprintf(expected, sizeof expected, "name %u", event->begin.shapes % 500);
        found->bad |= !is_named(found, event, expected);
    } else if (event->kind == SONDE_EVENT_END) {
        *(found->in_leaf[t] ? &found->leaves[t] : &found->ends[t]) += 1;
        found->in_leaf[t] = false;
    } else if (event->kind == SONDE_EVENT_ALLOC) {
        found->bad |= event->memory.size_bytes != found->begins[t] ||
                      event->memory.size_bytes % 3 != 0;
    } else {
        found->bad = true; /* nothing else was recorded, no gap either */
    }
    return !found->bad;
}

static bool verify(const char *path, uint64_t *events)
{
    struct found       found = { .bad = false };
    struct sonde_error err;
    struct sonde_check sum;

    if (sonde_trace_open(path, &found.trace, &err) != SONDE_OK) {
        bool none = true; /* killed before there was a file: then nothing was published */
        for (int i = 0; i < THREADS; i++)
            none &= shared[i].begins == 0;
        if (!none)
            fprintf(stderr, "kill: %s\n", err.message);
        return none;
    }
    bool good = sonde_trace_walk(found.trace, SONDE_BY_THREAD, check, &found, &err) == SONDE_OK &&
                !found.bad;
    for (uint32_t t = 0; good && t < sonde_trace_thread_count(found.trace); t++) {
        const struct progress *its = NULL;
        for (int i = 0; i < THREADS; i++)
            if (shared[i].tid == sonde_trace_thread(found.trace, t)->tid)
                its = &shared[i];
        good = its && found.begins[t] >= its->begins && found.begins[t] <= its->begins + 1 &&
               found.ends[t] >= its->ends && found.ends[t] <= its->ends + 1 &&
               found.leaves[t] >= its->leaves && found.leaves[t] <= its->leaves + 1;
        if (!good && its)
            fprintf(stderr,
                    "kill: thread %u: noted %u begins, %u ends, %u leaves; read %u, %u, %u\n", t,
                    its->begins, its->ends, its->leaves, found.begins[t], found.ends[t],
                    found.leaves[t]);
        *events += found.begins[t] + found.ends[t] + 2 * found.leaves[t];
    }
    /* A thread that noted something must be there at all. */
    for (int i = 0; good && i < THREADS; i++) {
        bool there = shared[i].begins == 0;
        for (uint32_t t = 0; t < sonde_trace_thread_count(found.trace); t++)
            there |= sonde_trace_thread(found.trace, t)->tid == shared[i].tid;
        good = there;
    }
    good = good && sonde_check(path, &sum, &err) == SONDE_OK && sum.damaged_chunks == 0;
    sonde_trace_close(found.trace);
    return good;
}

int main(int argc, char **argv)
{
    int      rounds = argc > 1 ? atoi(argv[1]) : 100;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
    uint64_t events = 0;
    char     path[64];

    printf("seed %u\n", seed);
    srandom(seed);
    snprintf(path, sizeof path, "/tmp/sonde-kill-%d.sonde", (int)getpid());
    shared = mmap(NULL, THREADS * sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < THREADS; i++)
            shared[i] = (struct progress){ 0, 0, 0, 0 };
        unlink(path);
        pid_t child = fork();
        if (child == 0)
            run_child(path);
        struct timespec time = { 0, random() % 60000000 };
        nanosleep(&time, NULL);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        if (!WIFSIGNALED(status) || !verify(path, &events)) {
            fprintf(stderr, "kill: round %d failed; the trace is %s\n", round, path);
            return 1;
        }
    }
    unlink(path);
    printf("%d kills, %llu events published and read back, none torn\n", rounds,
           (unsigned long long)events);
    return events > 0 ? 0 : 1;
}
