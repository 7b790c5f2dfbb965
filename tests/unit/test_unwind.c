/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk through native frames finds what the C library's backtrace() finds, and from registers
 * and stacks that are anything at all it comes back.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cmocka.h>

#include "readable.h"
#include "pystack/unwind/unwind.h"
#include "turns.h"

static struct snd_unwind   unwind;
static struct snd_py_stack ours;
static ucontext_t          seen; /* of the last signal */
static void               *theirs[2 * SND_NATIVE_MAX];
static int                 their_count;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    snd_unwind(&unwind, context, &ours);
    memcpy(&seen, context, sizeof seen);
    their_count = backtrace(theirs, 2 * SND_NATIVE_MAX);
}

static int set_up(void **state)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO };

    (void)state;
    action.sa_sigaction = on_signal;
    backtrace(theirs, 1); /* loads what it needs */
    return snd_unwind_init() && sigaction(SIGUSR1, &action, NULL) == 0 ? 0 : -1;
}

/* Theirs begin in the handler. */
static void assert_same(void)
{
    int first = 0;

    assert_true(ours.native_count > 3);
    while (first < their_count && (uint64_t)(uintptr_t)theirs[first] != ours.native[0].pc)
        first++;
    assert_true(first < their_count);
    for (size_t i = 0; i < ours.native_count; i++) {
        assert_true(first + (int)i < their_count);
        assert_int_equal(ours.native[i].pc, (uintptr_t)theirs[first + (int)i]);
        if (i > 0)
            assert_true(ours.native[i].stack >= ours.native[i - 1].stack);
    }
    if (!ours.native_cut)
        assert_int_equal(first + (int)ours.native_count, their_count);
}

/* ------------------------------------------------------------------- alike */

__attribute__((noinline)) static int nest(int depth, volatile char *keep)
{
    volatile char room[64 + 16 * 7];

    room[depth % 64] = *keep;
    if (depth == 0)
        raise(SIGUSR1);
    else
        nest(depth - 1, room);
    return room[depth % 64];
}

static void test_nested_calls(void **state)
{
    volatile char one = 1;

    (void)state;
    skip_unless_readable();
    for (int depth = 0; depth < 60; depth++) {
        nest(depth, &one);
        assert_same();
    }
    assert_false(ours.native_cut);
    nest(2 * SND_NATIVE_MAX - 50, &one);
    assert_true(ours.native_cut);
    assert_int_equal(ours.native_count, SND_NATIVE_MAX);
    assert_same();
}

static int compare(const void *a, const void *b)
{
    if (ours.native_count == 0)
        raise(SIGUSR1);
    return *(const int *)a - *(const int *)b;
}

static void test_through_the_c_library(void **state)
{
    int numbers[] = { 3, 1, 2 };

    (void)state;
    skip_unless_readable();
    ours.native_count = 0;
    qsort(numbers, 3, sizeof numbers[0], compare);
    assert_same();
}

static void on_other(int number)
{
    (void)number;
    raise(SIGUSR1);
}

/* ThreadSanitizer runs a handler later, from its own code: the context is not where the program is. */
static void skip_where_handlers_are_late(void)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
}

/* Of ours, innermost first: raise() .. on_other, the trampoline, what was interrupted. Its caller called. */
static void assert_interrupted(void)
{
    size_t at = 0;

    while (at + 2 < ours.native_count && (!ours.native[at].called || ours.native[at + 1].called))
        at++;
    assert_true(at > 0 && at + 3 < ours.native_count);
    for (size_t i = 0; i < ours.native_count; i++)
        assert_int_equal(ours.native[i].called, i != 0 && i != at + 1 && i != at + 2);
}

static void test_out_of_a_handler(void **state)
{
    (void)state;
    skip_where_handlers_are_late();
    skip_unless_readable();
    signal(SIGUSR2, on_other);
    raise(SIGUSR2);
    assert_same();
    assert_interrupted();
}

/* Wherever it is interrupted: first and last instructions, lazy binding, the kernel's own code. */
static void test_at_any_instruction(void **state)
{
    /* Where a handler takes longer than that, nothing else would ever run. */
    long                    apart = turns_are_slow() ? 20000000 : 100000;
    const struct itimerspec often = { { 0, apart }, { 0, apart } };
    struct sigevent         event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    struct timespec         now, end;
    timer_t                 timer;
    int                     whole = 0, all = 0;
    volatile char           one = 1;

    (void)state, (void)one;
    skip_where_handlers_are_late();
    skip_unless_readable();
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        free(malloc((size_t)now.tv_nsec % 5000));
        if (ours.native_count > 0) {
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_BLOCK, &set, NULL);
            all++;
            whole += ours.native[ours.native_count - 1].pc ==
                     (uint64_t)(uintptr_t)theirs[their_count - 1];
            ours.native_count = 0;
            sigprocmask(SIG_UNBLOCK, &set, NULL);
        }
    } while (now.tv_sec - end.tv_sec < 2 && all < 500);
    timer_delete(timer);
    assert_true(all > 0);
    assert_true(whole >= all * 9 / 10);
}

/* ------------------------------------------------------------- anything at all */

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 16;
}

static uint64_t any_code(uint64_t *seed)
{
    static const char *const names[] = { "qsort", "malloc", "printf", "fopen", "getaddrinfo" };
    char                    *from = dlsym(RTLD_DEFAULT, names[next(seed) % 5]);

    return (uint64_t)(uintptr_t)from + next(seed) % 2000;
}

/* Into the block, or near it, or nowhere. */
static uint64_t any_word(uint64_t *seed, uint64_t block, size_t size)
{
    uint64_t random = next(seed);

    if (random % 8 == 0)
        return random * random;
    if (random % 8 == 1)
        return any_code(seed);
    return block + random % (size + 4096) / 8 * 8;
}

static void set_registers(ucontext_t *context, uint64_t *seed, uint64_t block, size_t size)
{
#if defined(__x86_64__)
    for (int i = 0; i < 16; i++)
        context->uc_mcontext.gregs[i] = (greg_t)any_word(seed, block, size);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)any_code(seed);
#elif defined(__aarch64__)
    for (int i = 0; i < 31; i++)
        context->uc_mcontext.regs[i] = any_word(seed, block, size);
    context->uc_mcontext.sp = any_word(seed, block, size);
    context->uc_mcontext.pc = any_code(seed);
#else
    (void)context, (void)seed, (void)block, (void)size;
#endif
}

/* The block ends where memory does: a word beyond it cannot be read. */
static void test_what_is_no_stack(void **state)
{
    const size_t size = 16384;
    uint64_t     seed = 1, longest = 0;
    char *block = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);

    (void)state;
    skip_unless_readable();
    raise(SIGUSR1); /* a context to begin with */
    assert_int_equal(munmap(block + size, 4096), 0);
    for (int round = 0; round < 20000 / (int)turns_one_of(); round++) {
        if (round % 100 == 0)
            for (size_t i = 0; i < size; i += 8) {
                uint64_t word = any_word(&seed, (uint64_t)(uintptr_t)block, size);
                memcpy(block + i, &word, sizeof word);
            }
        set_registers(&seen, &seed, (uint64_t)(uintptr_t)block, size);
        snd_unwind(&unwind, &seen, &ours);
        longest = ours.native_count > longest ? ours.native_count : longest;
    }
    assert_true(longest > 2); /* they do go somewhere */
    munmap(block, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested_calls),     cmocka_unit_test(test_through_the_c_library),
        cmocka_unit_test(test_out_of_a_handler), cmocka_unit_test(test_at_any_instruction),
        cmocka_unit_test(test_what_is_no_stack),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
