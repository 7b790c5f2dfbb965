/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/hooks/heap_calls.h - the functions that the program would have called: heap_calls.def.
 */
#ifndef SND_PROBES_HEAP_HOOKS_HEAP_CALLS_H
#define SND_PROBES_HEAP_HOOKS_HEAP_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct snd_heap_next {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    int (*posix_memalign)(void **block, size_t alignment, size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void *(*valloc)(size_t size);
    void *(*pvalloc)(size_t size);
    void (*free)(void *block);
    int (*dlclose)(void *library);
    void *(*mmap)(void *at, size_t size, int protection, int flags, int file, off_t offset);
    int (*munmap)(void *at, size_t size);
    void *(*mremap)(void *at, size_t size, size_t to, int flags, ...);
    void (*_exit)(int status);
    int (*setuid)(uid_t user);
    int (*seteuid)(uid_t user);
    int (*setreuid)(uid_t real, uid_t effective);
    int (*setresuid)(uid_t real, uid_t effective, uid_t saved);
};
extern struct snd_heap_next snd_heap_next;

/* operators.c: when all libraries of the program are loaded. */
void snd_heap_operators_init(void);

/* Looks them up, once. False: that is under way. */
bool snd_heap_ready(void);

/* life.c: a library was unloaded; what a child has not written yet is written; a child has its file. */
void snd_heap_forget_code(void);
void snd_heap_flush(void);
void snd_heap_open_file(void);

#endif
