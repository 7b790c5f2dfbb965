/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench/export_limit.c - what no export can do without: reading the trace once, and its bytes in the page cache.
 *
 *     export_limit TRACE BYTES FILE     prints seconds of each
 *
 * Every event is decoded, in the order of time, and handed to a function that does nothing. FILE is written anew, from one
 * block that stays in the processor's cache.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rounds.h"
#include "sonde/trace.h"

#define BLOCK_BYTES ((size_t)256 << 10)

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *why)
{
    fprintf(stderr, "export_limit: %s\n", why);
    exit(1);
}

static bool pass(const struct sonde_event *event, void *user)
{
    uint64_t *count = user;

    (void)event;
    ++*count;
    return true;
}

static uint64_t read_all(const char *path)
{
    struct sonde_error  err;
    struct sonde_trace *trace;
    uint64_t            count = 0;

    if (sonde_trace_open(path, &trace, &err) != SONDE_OK ||
        sonde_trace_walk(trace, SONDE_BY_TIME, pass, &count, &err) != SONDE_OK)
        fail(err.message);
    sonde_trace_close(trace);
    return count;
}

static void write_bytes(const char *path, uint64_t bytes)
{
    char *block = malloc(BLOCK_BYTES);
    int   fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (!block || fd < 0)
        fail("cannot create the file");
    memset(block, 'x', BLOCK_BYTES);
    while (bytes > 0) {
        size_t  length = bytes < BLOCK_BYTES ? (size_t)bytes : BLOCK_BYTES;
        ssize_t written = write(fd, block, length);
        if (written <= 0)
            fail("cannot write the file");
        bytes -= (uint64_t)written;
    }
    close(fd);
    free(block);
}

int main(int argc, char **argv)
{
    int status = print_usage(argc, argv, "export_limit TRACE BYTES FILE");
    if (status >= 0)
        return status;
    if (argc < 4)
        fail("needs TRACE BYTES FILE");
    double   start = now_s();
    uint64_t events = read_all(argv[1]);
    double   middle = now_s();
    write_bytes(argv[3], strtoull(argv[2], NULL, 10));
    printf("events %" PRIu64 "\nread_seconds %.4f\nwrite_seconds %.4f\n", events, middle - start,
           now_s() - middle);
    return 0;
}
