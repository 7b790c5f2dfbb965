/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/sampler/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/system/named_thread.h"
#include "base/system/prompt_thread.h"
#include "base/files/own_table.h"
#include "probes/python/common.h"
#include "probes/python/sampler/interrupt.h"
#include "probes/python/sampler/kept_thread_names.h"
#include "pystack/sampling/pace.h"
#include "pystack/unwind/unwind.h"

/* Without a Python thread for so long, the interpreter has ended. A child has none for a moment. */
#define EMPTY_NS 1000000000u
#define FORK_WAITS_NS 100000000 /* for the round that is being made; no longer: see before_fork() */

static struct {
    pthread_t                  thread;
    uint32_t                   quit;  /* a futex: the thread sleeps on it */
    pthread_mutex_t            round; /* held while what is below changes, and during a round */
    bool                       on;
    uint64_t                   period_ns;
    struct snd_sampling       *sampling; /* the thread's, while it runs */
    struct snd_sampling_counts last;
    bool                       interrupts, native;
    bool has_file; /* the recording had a trace file when the sampler was started */
} sampler = { .round = PTHREAD_MUTEX_INITIALIZER };

/* Of a thread that is forking. */
static __thread struct {
    uint32_t tid;   /* in the parent */
    bool     holds; /* sampler.round: the child finds the sampler whole */
} forking;

#define OWN_CODES_MAX 32

/* Only added to, and read as far as it was full when a sampler was started. */
static struct {
    uint64_t codes[OWN_CODES_MAX];
    size_t   count;
} own;

static uint64_t clock_now(void)
{
    return sonde_clock();
}

/* But for what make_sampling() adds. */
static const struct snd_recorder recorder = {
    .clock = clock_now,
    .intern = sonde_intern,
    .frame = sonde_intern_frame_in,
    .native = sonde_intern_native,
    .stack = sonde_intern_stack,
    .thread = snd_threadname_introduce,
    .sample = sonde_sample_run,
    .tally = sonde_tally,
};

/* --------------------------------------------------------------- the thread */

/*
 * False when the sampler is to end. Not by a condition variable: its mutex counts as contended after a
 * wait, so that each round would end with a call to the kernel that wakes nobody.
 */
static bool wait_until(uint64_t ns)
{
    struct timespec at = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    while (!__atomic_load_n(&sampler.quit, __ATOMIC_ACQUIRE) && snd_clock_ns(CLOCK_MONOTONIC) < ns)
        syscall(SYS_futex, &sampler.quit, FUTEX_WAIT_BITSET_PRIVATE, 0, &at, NULL,
                FUTEX_BITSET_MATCH_ANY);
    return !__atomic_load_n(&sampler.quit, __ATOMIC_ACQUIRE);
}

static void quit(void)
{
    __atomic_store_n(&sampler.quit, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &sampler.quit, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* False when no thread that runs Python was found; one that could not be read may be there. */
static bool make_round(uint64_t missed)
{
    pthread_mutex_lock(&sampler.round);
    enum snd_round round = snd_sampling_round(sampler.sampling, missed);
    if (round == SND_ROUND_MADE)
        snd_threadname_catch_up();
    pthread_mutex_unlock(&sampler.round);
    return round != SND_ROUND_NO_PYTHON;
}

/*
 * What this thread reads in /proc gets numbers that the program does not see. Not before the trace
 * file exists: in a forked child this thread may be the one that creates it, for all threads.
 */
static bool enter_own_table(void)
{
    if (!sampler.has_file && !sonde_lane_own()->cur)
        return false;
    if (snd_owntable_enter()) /* where it is refused, the program may see a number for a moment */
        snd_sampling_own_table(sampler.sampling);
    return true;
}

/* Has the interpreter ended? `empty_ns`: since when rounds have found none, 0: they do. */
static bool has_ended(uint64_t *empty_ns, bool found)
{
    uint64_t now = found ? 0 : snd_clock_ns(CLOCK_MONOTONIC);

    if (found || *empty_ns == 0)
        *empty_ns = now;
    return now - *empty_ns >= EMPTY_NS;
}

static void *run(void *unused)
{
    struct snd_pace pace = snd_pace_begin(sampler.period_ns);
    uint64_t        missed = 0, empty_ns = 0;
    bool            apart = false, ended = false;

    snd_pace_next(&pace); /* what runs at this moment is what started us */
    snd_thread_prompt();
    while (!ended && wait_until(pace.due_ns)) {
        apart = apart || enter_own_table();
        ended = has_ended(&empty_ns, make_round(missed));
        missed = snd_pace_next(&pace);
    }
    pthread_mutex_lock(&sampler.round);
    snd_sampling_count_own(sampler.sampling);
    pthread_mutex_unlock(&sampler.round);
    return unused;
}

/* -------------------------------------------------------------- on and off */

static enum sonde_status open_self(struct snd_python *python, struct sonde_error *err)
{
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    char        byte;

    if (!runtime)
        return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot sample: this Python hides _PyRuntime");
    if (!snd_memory_read(getpid(), (uint64_t)(uintptr_t)runtime, &byte, 1))
        return snd_fail_os(err, SONDE_E_UNSUPPORTED,
                           "cannot sample: the system does not let a "
                           "process read its own memory with process_vm_readv (a container's "
                           "seccomp profile?)");
    return snd_python_open(python, getpid(), PY_MINOR_VERSION, (uint64_t)(uintptr_t)runtime,
                           (uint64_t)(uintptr_t)&PyCode_Type, err);
}

/* No signal of the program's is ever for this thread. */
static int start_thread(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = snd_named_thread(&sampler.thread, NULL, run, NULL, "sonde sampler");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static enum sonde_status check_native(struct sonde_error *err)
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot sample native frames on this processor");
#endif
    if (!snd_unwind_init())
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "cannot sample native frames: this C library has no "
                        "_dl_find_object (glibc has it from 2.35 on); sample without them");
    return SONDE_OK;
}

static enum sonde_status start_interrupts(const struct snd_python *python, bool native,
                                          struct sonde_error *err)
{
    sampler.interrupts = snd_interrupt_start(python, native);
    if (sampler.interrupts)
        snd_sampling_on_running(sampler.sampling, snd_interrupt_read, NULL);
    else if (native)
        return snd_fail(err, SONDE_E_BUSY,
                        "cannot sample native frames: the program has a handler of its own for "
                        "SIGURG; sample without them");
    if (native && !snd_sampling_with_native(sampler.sampling))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the sampler");
    return SONDE_OK;
}

/* A lane is as far from its thread's pthread_t in every thread: libraries' variables are laid out so. */
static enum sonde_status make_sampling(const struct snd_python *python, struct sonde_error *err)
{
    struct snd_recorder with_lanes = recorder;

    with_lanes.epoch = sonde_lane_epoch_page();
    with_lanes.lane_offset = (int64_t)((uintptr_t)sonde_lane_own() - (uintptr_t)pthread_self());
    enum sonde_status status = snd_sampling_new(python, &with_lanes, sampler.period_ns,
                                                &sampler.sampling, err);
    if (status == SONDE_OK)
        snd_sampling_own_codes(sampler.sampling, own.codes, own.count);
    return status;
}

bool snd_sampler_own_code(const void *code)
{
    uint64_t address = (uint64_t)(uintptr_t)code;

    for (size_t i = 0; i < own.count; i++)
        if (own.codes[i] == address)
            return false;
    if (own.count == OWN_CODES_MAX)
        return false;
    own.codes[own.count++] = address;
    return true;
}

static enum sonde_status start_all(struct sonde_error *err)
{
    struct snd_python python;
    enum sonde_status status = sampler.native ? check_native(err) : SONDE_OK;

    if (status == SONDE_OK)
        status = open_self(&python, err);
    if (status == SONDE_OK)
        status = make_sampling(&python, err);
    if (status != SONDE_OK)
        return status;
    status = start_interrupts(&python, sampler.native, err);
    int failed = status == SONDE_OK ? start_thread() : 0;
    if (failed != 0) {
        errno = failed;
        status = snd_fail_os(err, SONDE_E_NOMEM, "cannot sample: cannot create a thread");
    }
    if (status != SONDE_OK) {
        snd_interrupt_stop();
        snd_sampling_drop(sampler.sampling);
        sampler.sampling = NULL;
    }
    return status;
}

static void watch_forks(void);

enum sonde_status snd_sampler_start(double hz, bool native, struct sonde_error *err)
{
    if (sampler.on)
        return snd_fail(err, SONDE_E_BUSY, "cannot sample: this process is already being sampled");
    watch_forks();
    pthread_mutex_lock(&sampler.round);
    sampler.period_ns = (uint64_t)(1e9 / hz);
    sampler.native = native;
    sampler.quit = 0;
    sampler.has_file = sonde_trace_path(NULL, 0) > 0;
    snd_threadname_clear();
    enum sonde_status status = start_all(err);
    sampler.on = status == SONDE_OK;
    pthread_mutex_unlock(&sampler.round);
    return status;
}

void snd_sampler_stop(void)
{
    if (!sampler.on)
        return;
    quit();
    pthread_join(sampler.thread, NULL);
    pthread_mutex_lock(&sampler.round);
    snd_interrupt_stop();
    snd_threadname_catch_up();
    sampler.last = snd_sampling_counts(sampler.sampling);
    snd_sampling_free(sampler.sampling);
    sampler.sampling = NULL;
    sampler.on = false;
    pthread_mutex_unlock(&sampler.round);
}

uint64_t snd_sampler_flush(void)
{
    pthread_mutex_lock(&sampler.round);
    uint64_t clock = sampler.sampling ? snd_sampling_flush(sampler.sampling) : sonde_clock();
    pthread_mutex_unlock(&sampler.round);
    return clock;
}

bool snd_sampler_is_on(void)
{
    return sampler.on;
}

bool snd_sampler_interrupts(void)
{
    return sampler.interrupts;
}

const struct snd_sampling_counts *snd_sampler_counts(void)
{
    return &sampler.last;
}

/* -------------------------------------------------------------------- forks */

/*
 * Not in the middle of a round, so that the child can give back what its parent's sampler had. One
 * that does not come to an end is not waited for: it may itself wait for a lock of the thread that
 * forks (the loader's, in a library's constructor). Then the child leaves all of it where it is.
 */
static void before_fork(void)
{
    struct timespec until;

    forking.tid = (uint32_t)syscall(SYS_gettid);
    if (!sampler.on)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += FORK_WAITS_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    forking.holds = pthread_mutex_clocklock(&sampler.round, CLOCK_MONOTONIC, &until) == 0;
}

static void after_fork_in_parent(void)
{
    if (forking.holds)
        pthread_mutex_unlock(&sampler.round);
    forking.holds = false;
}

/* The thread stayed in the parent: the child has one of its own, in its own file. */
static void after_fork_in_child(void)
{
    struct sonde_error err = { 0 };
    bool               was_whole = forking.holds;

    forking.holds = false;
    pthread_mutex_init(&sampler.round, NULL);
    if (!sampler.on)
        return;
    snd_interrupt_in_child();
    snd_threadname_in_child(forking.tid, (uint32_t)syscall(SYS_gettid));
    if (was_whole)
        snd_sampling_drop(sampler.sampling);
    sampler.sampling = NULL;
    sampler.quit = 0;
    sampler.has_file = false;
    sampler.on = start_all(&err) == SONDE_OK;
    if (!sampler.on)
        fprintf(stderr, "sonde: process %d is not sampled: %s\n", (int)getpid(), err.message);
}

static void watch_forks(void)
{
    static bool done;

    if (!done)
        done = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}
