/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/failing_memory.h - one allocation of a test fails, whichever it wants. Such a test links
 * `failing_memory` of tests/meson.build: --wrap for malloc, calloc and realloc.
 */
#ifndef SND_TESTS_FAILING_MEMORY_H
#define SND_TESTS_FAILING_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

/* Until one fails; negative: none does. Exports allocate in several threads. */
static atomic_long allocations_left = -1;

/* A test may look at each allocation before it is made. */
static void (*allocation_seen)(void);

static bool allocation_fails(void)
{
    if (allocation_seen)
        allocation_seen();
    return atomic_load(&allocations_left) >= 0 && atomic_fetch_sub(&allocations_left, 1) == 0;
}

void *__wrap_malloc(size_t size)
{
    return allocation_fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return allocation_fails() ? NULL : __real_realloc(old, size);
}

#endif
