/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/frames.h - the Python frames of a thread.
 *
 * A thread that does not hold the interpreter's lock cannot change its frames; of one that does, a
 * stack counts only if a second look finds the same (snd_python_stack).
 *
 * Layer:   pystack. Threads: one at a time uses a struct snd_python; snd_python_frames also in a
 *          signal handler.
 */
#ifndef SND_PYSTACK_INTERPRETER_FRAMES_H
#define SND_PYSTACK_INTERPRETER_FRAMES_H

#include "format/limits.h"
#include "pystack/interpreter/interpreters.h"

#define SND_NATIVE_MAX 128

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
    uint64_t pc;       /* the current instruction, or where it resumes */
    uint64_t function; /* where its code begins, by the tables for exceptions; 0: not known */
    uint64_t stack;    /* its lowest address; its caller's is where it ends */
    bool     called; /* a call is right before pc: of a frame that a signal interrupted, none is */
};

struct snd_py_stack {
    struct snd_py_frame frames[SND_PYTHON_FRAMES_MAX];
    size_t              count;
    bool                cut;   /* there were more */
    bool                far;   /* they are in several pages */
    bool                ends;  /* the outermost frame can be the start of a stack */
    bool                whole; /* input: fill in the entries */
    bool             still; /* the thread did not have the interpreter's lock while it was read */
    uint64_t         switches; /* of the lock, then: how often it went to another thread; or 0 */
    struct snd_pages pages;

    /* Filled by a caller that runs in the thread itself, innermost first. */
    struct snd_native_frame native[SND_NATIVE_MAX];
    size_t                  native_count;
    bool                    native_cut; /* there may be more */
    bool native_broken;                 /* there are: how to find them the last one does not say */
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
    struct snd_piece        last;  /* read first of these, after the frames; size 0: nothing */
    bool                    has_last;
    uint64_t                at; /* output of who stops the thread: its clock, meanwhile; else 0 */
};
#define SND_RIDER_MAX 128

enum snd_py_read {
    SND_PY_READ,      /* the frames are valid */
    SND_PY_TORN,      /* it changed meanwhile */
    SND_PY_UNREAD,    /* unreadable memory: the thread is starting or ending */
    SND_PY_NO_MEMORY, /* of ours, for its code objects */
};

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
