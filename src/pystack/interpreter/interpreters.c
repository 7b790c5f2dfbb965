/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/interpreters.h"

#include <errno.h>
#include <string.h>

#include "base/count_of.h"
#include "pystack/task.h"

#define THREADS_MAX 65536 /* more is a loop */

/* ------------------------------------------------------------------ opening */

/* The offsets are right if the first interpreter's first thread state points back to it. */
static bool is_plausible(const struct snd_python *python)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    interp, thread, back, type;

    return snd_memory_word(python->pid, python->runtime + l->runtime_interpreters, &interp) &&
           interp && snd_memory_word(python->pid, interp + l->interp_threads, &thread) && thread &&
           snd_memory_word(python->pid, thread + l->thread_interp, &back) && back == interp &&
           snd_memory_word(python->pid, python->code_type + l->object_type, &type) && type != 0;
}

/*
 * Where the thread states of a version that is not in the table have the thread's number: the main
 * thread's is the process's, and comes after its ident. False if there is no such word.
 */
static bool find_thread_number(struct snd_python *python)
{
    struct snd_py_layout *l = &python->layout;
    uint64_t              interp, thread, next;
    char                  bytes[SND_PY_THREAD_READ];

    if (!snd_memory_word(python->pid, python->runtime + l->runtime_interpreters, &interp) ||
        !snd_memory_word(python->pid, interp + l->interp_threads, &thread))
        return false;
    for (unsigned steps = 0; thread != 0 && steps < THREADS_MAX; steps++, thread = next) {
        if (!snd_memory_read(python->pid, thread, bytes, sizeof bytes))
            return false;
        for (uint32_t at = l->thread_interp + 16; at <= sizeof bytes - 8; at += 8) {
            uint64_t number = snd_u64(bytes + at);
            if (number == 0 || number > INT32_MAX ||
                snd_task_number(python->pid, (uint32_t)number) != (uint32_t)python->pid)
                continue;
            l->thread_native = at;
            l->thread_ident = at - 8;
            return true;
        }
        next = snd_u64(bytes + l->thread_next);
    }
    return false;
}

enum sonde_status snd_python_open(struct snd_python *python, pid_t pid, unsigned minor,
                                  uint64_t runtime, uint64_t code_type, struct sonde_error *err)
{
    const struct snd_py_layout *known = snd_py_layout(minor, false);
    char                        offsets[SND_PY_OFFSETS_SIZE];

    if (!known && minor <= snd_py_minor_most)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "Python 3.%u is not supported; expected 3.%u or later", minor,
                        snd_py_minor_least);
    *python = (struct snd_python){ .pid = pid, .runtime = runtime, .code_type = code_type };
    bool refined = true;
    if (minor < 13)
        python->layout = *known;
    else
        refined = snd_memory_read(pid, runtime, offsets, sizeof offsets) &&
                  snd_py_layout_refine(&python->layout, minor, offsets, sizeof offsets);
    if (!refined || !is_plausible(python) ||
        (minor > snd_py_minor_most && !find_thread_number(python)))
        return snd_fail(err, SONDE_E_STATE,
                        "Python 3.%u: unexpected memory layout, or not started yet", minor);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ threads */

static uint64_t find_gil(const struct snd_python *python, uint64_t interp)
{
    uint64_t gil = 0;

    uint64_t enabled = 0;

    if (!python->layout.interp_gil)
        return python->runtime + python->layout.runtime_gil;
    if (!snd_memory_word(python->pid, interp + python->layout.interp_gil, &gil))
        return 0;
    /* Of a lock that can be turned off, an int before all else says whether it is on. */
    if (python->layout.free_threaded && gil != 0 &&
        (!snd_memory_word(python->pid, gil, &enabled) || (uint32_t)enabled == 0))
        return 0;
    return gil;
}

bool snd_python_is_lockless(const struct snd_python *python, const struct snd_py_interp *interp)
{
    return python->layout.free_threaded && interp->gil == 0;
}

size_t snd_python_interpreters(const struct snd_python *python, struct snd_py_interp *interps,
                               size_t size, bool *whole)
{
    uint64_t interp = 0;
    size_t   count = 0;
    bool read = snd_memory_word(python->pid, python->runtime + python->layout.runtime_interpreters,
                                &interp);

    while (read && interp != 0 && count < size) {
        interps[count++] = (struct snd_py_interp){ .address = interp,
                                                   .gil = find_gil(python, interp) };
        read = snd_memory_word(python->pid, interp + python->layout.interp_next, &interp);
    }
    *whole = read && interp == 0;
    return count;
}

bool snd_python_is_gone(const struct snd_python *python)
{
    char byte;

    return !snd_memory_read(python->pid, python->runtime, &byte, 1) && errno == ESRCH;
}

/* The field of the last holder is kept when the lock is free; -1: the lock does not exist yet. */
static uint64_t holder_of(const struct snd_py_layout *l, const char *lock)
{
    uint32_t locked = snd_u32(lock + (l->gil_locked - l->gil_holder));

    return locked == 1 ? snd_u64(lock) : 0;
}

bool snd_python_update(const struct snd_python *python, struct snd_py_interp *interps, size_t count)
{
    const struct snd_py_layout *l = &python->layout;
    struct snd_piece            pieces[3 * SND_INTERPRETERS_MAX + 1];
    char                        locks[SND_INTERPRETERS_MAX][16];
    uint64_t                    newest = 0;
    size_t                      n = 0;

    pieces[n++] = (struct snd_piece){ python->runtime + l->runtime_interpreters, &newest, 8 };
    for (size_t i = 0; i < count && i < SND_INTERPRETERS_MAX; i++) {
        memset(locks[i], 0, sizeof locks[i]);
        /* In this order, since in most versions one is near the other: see process_memory.c. */
        if (interps[i].gil != 0)
            pieces[n++] = (struct snd_piece){ interps[i].gil + l->gil_holder, locks[i], 16 };
        pieces[n++] = (struct snd_piece){ interps[i].address + l->interp_made, &interps[i].made,
                                          8 };
        pieces[n++] = (struct snd_piece){ interps[i].address + l->interp_threads, &interps[i].head,
                                          8 };
    }
    if (count == 0 || snd_memory_read_many(python->pid, pieces, n) != n ||
        newest != interps[0].address)
        return false;
    for (size_t i = 0; i < count && i < SND_INTERPRETERS_MAX; i++)
        interps[i].holder = holder_of(l, locks[i]);
    return true;
}

bool snd_python_has_lock(const struct snd_python *python, const struct snd_py_interp *interp,
                         uint64_t state)
{
    char lock[16];

    if (snd_python_is_lockless(python, interp))
        return true;
    return interp->gil != 0 &&
           snd_memory_read(python->pid, interp->gil + python->layout.gil_holder, lock,
                           sizeof lock) &&
           holder_of(&python->layout, lock) == state;
}

bool snd_python_is_gil(const struct snd_python *python, const struct snd_py_interp *interp,
                       uint64_t address)
{
    return interp->gil != 0 && address >= interp->gil &&
           address < interp->gil + python->layout.gil_size;
}

/* How much of a thread state is read: up to the last of what is wanted. */
static size_t thread_size(const struct snd_py_layout *l)
{
    const uint32_t ends[] = { l->thread_next, l->thread_interp, l->thread_ident, l->thread_native };
    size_t         most = 0;

    for (size_t i = 0; i < SND_COUNT_OF(ends); i++)
        most = ends[i] > most ? ends[i] : most;
    return most + 8;
}

#define BATCH 64 /* thread states in one call to the kernel */

/* Thread states that were in the list before, read in one call: most often they are there again. */
struct batch {
    const struct snd_py_thread *known;
    size_t                      known_count;
    size_t                      first, count, next; /* of those known: what is in `bytes` */
    char                        bytes[BATCH][SND_PY_THREAD_READ];
};

static void read_batch(const struct snd_python *python, struct batch *batch, size_t first,
                       size_t need)
{
    struct snd_piece pieces[BATCH];
    size_t           n = 0;

    for (; n < BATCH && first + n < batch->known_count; n++)
        pieces[n] = (struct snd_piece){ batch->known[first + n].state, batch->bytes[n], need };
    batch->first = batch->next = first;
    batch->count = snd_memory_read_many(python->pid, pieces, n);
}

/* The thread state at this address; NULL if it cannot be read. Valid until the next call. */
static const char *state_at(const struct snd_python *python, struct batch *batch, uint64_t state,
                            size_t need, char *spare)
{
    size_t at = batch->next;

    while (at < batch->known_count && batch->known[at].state != state)
        at++;
    if (at == batch->known_count) /* new */
        return snd_memory_read(python->pid, state, spare, need) ? spare : NULL;
    if (at >= batch->first + batch->count)
        read_batch(python, batch, at, need);
    batch->next = at + 1;
    return at < batch->first + batch->count ? batch->bytes[at - batch->first] : NULL;
}

static size_t list_threads(const struct snd_python *python, const struct snd_py_interp *interp,
                           struct batch *batch, struct snd_py_thread *threads, size_t size,
                           size_t count, bool *whole)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    state;
    char                        spare[SND_PY_THREAD_READ];
    const char                 *bytes;
    size_t                      need = thread_size(l);

    if (!snd_memory_word(python->pid, interp->address + l->interp_threads, &state) ||
        need > sizeof spare) {
        *whole = false;
        return count;
    }
    while (state != 0 && count < THREADS_MAX &&
           (bytes = state_at(python, batch, state, need, spare)) != NULL) {
        if (snd_u64(bytes + l->thread_interp) != interp->address)
            break; /* freed while we read the list */
        if (count < size)
            threads[count] = (struct snd_py_thread){
                .state = state,
                .interp = interp->address,
                .ident = snd_u64(bytes + l->thread_ident),
                .tid = l->thread_native ? snd_u32(bytes + l->thread_native) : 0,
            };
        count++;
        state = snd_u64(bytes + l->thread_next);
    }
    *whole &= state == 0;
    return count;
}

size_t snd_python_threads(const struct snd_python *python, const struct snd_py_interp *interps,
                          size_t interp_count, const struct snd_py_thread *known,
                          size_t known_count, struct snd_py_thread *threads, size_t size,
                          bool *whole)
{
    struct batch batch;
    size_t       count = 0;

    batch.known = known;
    batch.known_count = known_count;
    read_batch(python, &batch, 0, thread_size(&python->layout));
    *whole = true;
    for (size_t i = 0; i < interp_count; i++)
        count = list_threads(python, &interps[i], &batch, threads, size, count, whole);
    return count;
}
