/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/interpreters.h - the interpreters and threads of a Python process, its own or another.
 *
 * Nothing is stopped here and nothing is written: what is read may change meanwhile. Their frames:
 * frames.h.
 *
 * Layer: pystack. Threads: one at a time uses a struct snd_python.
 */
#ifndef SND_PYSTACK_INTERPRETER_INTERPRETERS_H
#define SND_PYSTACK_INTERPRETER_INTERPRETERS_H

#include "base/error.h"
#include "pystack/interpreter/py_layout.h"
#include "pystack/process_memory.h"

#define SND_INTERPRETERS_MAX 32

struct snd_python {
    pid_t                pid;
    uint64_t             runtime;   /* address of _PyRuntime */
    uint64_t             code_type; /* of PyCode_Type */
    struct snd_py_layout layout;
};

struct snd_py_thread {
    uint64_t state;  /* address of its PyThreadState */
    uint64_t interp; /* of its interpreter */
    uint64_t ident;  /* pthread_t */
    uint32_t tid;    /* 0: not known before 3.11 */
};

/*
 * The interpreter whose _PyRuntime and PyCode_Type lie at these addresses.
 * Errors: SONDE_E_UNSUPPORTED: a version before those that are known;
 *         SONDE_E_STATE: not started yet, or not laid out as it should be.
 */
SND_CHECKED enum sonde_status snd_python_open(struct snd_python *python, pid_t pid, unsigned minor,
                                              uint64_t runtime, uint64_t code_type,
                                              struct sonde_error *err);

/* The fields of an interpreter that every round reads. */
struct snd_py_interp {
    uint64_t address;
    uint64_t gil;    /* address of its lock, 0: not there yet, or off: see snd_python_is_lockless */
    uint64_t made;   /* how many thread states it has ever had */
    uint64_t head;   /* address of the newest thread state; a new one often reuses an old one's */
    uint64_t holder; /* the one that holds the lock, 0: none */
};
/* Those there are, at most `size`; returns how many were stored. *whole: there are no others. */
size_t snd_python_interpreters(const struct snd_python *python, struct snd_py_interp *interps,
                               size_t size, bool *whole);
/*
 * Brings made, head and holder up to date, in one call to the kernel; false when they cannot be
 * read, or there is another interpreter, which is to be listed first.
 */
bool snd_python_update(const struct snd_python *python, struct snd_py_interp *interps,
                       size_t count);
/*
 * Stores at most `size`; returns how many there are, as far as the lists can be read. *whole: none of
 * them went while the lists were walked, so that they were walked to their ends. `known`: those of
 * the last time, which are read in one call to the kernel; not where `threads` are stored.
 */
size_t snd_python_threads(const struct snd_python *python, const struct snd_py_interp *interps,
                          size_t interp_count, const struct snd_py_thread *known,
                          size_t known_count, struct snd_py_thread *threads, size_t size,
                          bool *whole);

/* Has the process ended? Then it has no memory, which is to say that nothing of it can be read. */
bool snd_python_is_gone(const struct snd_python *python);

/* Has the interpreter no lock, so that all of its threads may run Python at the same time? */
bool snd_python_is_lockless(const struct snd_python *python, const struct snd_py_interp *interp);
/* Does the thread hold the lock of its interpreter at this moment, or needs none to run Python? */
bool snd_python_has_lock(const struct snd_python *python, const struct snd_py_interp *interp,
                         uint64_t state);
/* Is this address inside the lock? A thread that waits there waits for it. */
bool snd_python_is_gil(const struct snd_python *python, const struct snd_py_interp *interp,
                       uint64_t address);

#endif
