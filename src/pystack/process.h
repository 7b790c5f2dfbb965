/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/process.h - the threads and frames of a Python process, its own or another.
 *
 * Nothing is stopped here and nothing is written: what is read may change meanwhile. A thread that
 * does not hold the interpreter's lock cannot change its frames; of one that does, a stack counts
 * only if a second look finds the same (snd_python_stack).
 *
 * Layer:   pystack. Threads: one at a time uses a struct snd_python; snd_python_frames also in a
 *          signal handler.
 */
#ifndef SND_PYSTACK_PROCESS_H
#define SND_PYSTACK_PROCESS_H

#include "base/error.h"
#include "pystack/layout.h"
#include "pystack/memory.h"

#define SND_FRAMES_MAX 1024 /* of one stack, innermost first; what is further out is left out */
#define SND_NATIVE_MAX 128
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

struct snd_py_frame {
    uint64_t address, code, instr;
    /*
     * Of the frame that a C function's call of the evaluation loop began with, where the stack is
     * `whole`: an address in the loop's own native frame, or SND_PY_ENTRY. Else 0.
     */
    uint64_t entry;
};
#define SND_PY_ENTRY 1 /* the address is not known in this version */

struct snd_native_frame {
    uint64_t pc;       /* where it is, or where it goes on */
    uint64_t function; /* where its code begins, by the tables for exceptions; 0: not known */
    uint64_t stack;    /* its lowest address; its caller's is where it ends */
};

struct snd_py_stack {
    struct snd_py_frame frames[SND_FRAMES_MAX];
    size_t              count;
    bool                cut;   /* there were more */
    bool                far;   /* they are in several pages */
    bool                ends;  /* the outermost frame can be the start of a stack */
    bool                whole; /* input: fill in the entries */
    bool             still; /* the thread did not have the interpreter's lock while it was read */
    uint64_t         switches; /* of the lock, then: how often it went to another thread; or 0 */
    struct snd_pages pages;

    /* Filled by the caller that asks the thread itself, innermost first. */
    struct snd_native_frame native[SND_NATIVE_MAX];
    size_t                  native_count;
    bool                    native_cut; /* there may be more */
};

/* Where a thread's frames were when they were last read: most often they are there again. */
struct snd_py_hint {
    uint64_t        link; /* address of the pointer to its innermost frame; 0: not known */
    struct snd_part parts[SND_PAGES_MAX];
    uint32_t        count;
};

/* What else is read in the same call to the kernel, after the frames that were found. */
struct snd_py_rider {
    const struct snd_piece *pieces;
    size_t                  count; /* at most SND_RIDER_MAX */
    size_t                  whole; /* output: how many of them are whole; 0: read once more */
};
#define SND_RIDER_MAX 128

enum snd_py_read {
    SND_PY_READ,      /* the frames are valid */
    SND_PY_TORN,      /* it changed meanwhile */
    SND_PY_UNREAD,    /* unreadable memory: the thread is starting or ending */
    SND_PY_NO_MEMORY, /* of ours, for its code objects */
};

/*
 * The interpreter whose _PyRuntime and PyCode_Type lie at these addresses.
 * Errors: SONDE_E_UNSUPPORTED: version unknown, or free-threaded;
 *         SONDE_E_STATE: not started yet, or not laid out as it should be.
 */
SND_CHECKED enum sonde_status snd_python_open(struct snd_python *python, pid_t pid, unsigned minor,
                                              uint64_t runtime, uint64_t code_type,
                                              struct sonde_error *err);

/* The fields of an interpreter that every round reads. */
struct snd_py_interp {
    uint64_t address;
    uint64_t gil;    /* address of its lock, 0: not there yet */
    uint64_t made;   /* how many thread states it has ever had */
    uint64_t head;   /* the one that was made last: a new one often has a former one's address */
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

/* Does the thread hold the lock of its interpreter at this moment? */
bool snd_python_has_lock(const struct snd_python *python, const struct snd_py_interp *interp,
                         uint64_t state);
/* Is this address inside the lock? A thread that waits there waits for it. */
bool snd_python_is_gil(const struct snd_python *python, const struct snd_py_interp *interp,
                       uint64_t address);

/* The frames of a thread that does not change them meanwhile. Also in a signal handler. */
enum snd_py_read snd_python_frames(const struct snd_python *python, uint64_t state,
                                   struct snd_py_stack *stack);
/* Likewise, in one call to the kernel where the hint is right; not in a signal handler. */
enum snd_py_read snd_python_halted(const struct snd_python *python, uint64_t state,
                                   struct snd_py_hint *hint, struct snd_py_rider *rider,
                                   struct snd_py_stack *stack);
/*
 * Those of a thread that may: TORN if they changed. A thread's frames lie one after another, so
 * that its calls and returns write over the same addresses again and again: that the innermost
 * frame is where it was does not mean that nothing happened. The pointer to it is read before and
 * after the frames in the same call to the kernel, the chain must end where stacks begin, and
 * several looks must agree. One look is enough where the lock of its interpreter (`gil`), read
 * before and after the frames, says that this thread did not have it meanwhile (`still`). With a
 * `gil` of 0 that is not asked, and two looks are one call to the kernel: for a thread that has it.
 * `hint` is the thread's, all zero at first; `spare` is the caller's, for the later looks. `rider`
 * may be NULL.
 */
enum snd_py_read snd_python_stack(const struct snd_python *python, uint64_t state, uint64_t gil,
                                  struct snd_py_hint *hint, struct snd_py_rider *rider,
                                  struct snd_py_stack *stack, struct snd_py_stack spare[2]);

#endif
