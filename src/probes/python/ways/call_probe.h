/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/call_probe.h - the probe of Python calls, and the mechanisms (ways) to see a call.
 *
 * A way turns what CPython reports (sys.monitoring, a profile function, the evaluation of a frame)
 * into snd_calls_enter() and snd_calls_leave(); one way is on at a time.
 *
 * Layer:   probes.
 * Threads: with the interpreter lock held.
 */
#ifndef SND_PROBES_PYTHON_WAYS_CALL_PROBE_H
#define SND_PROBES_PYTHON_WAYS_CALL_PROBE_H

#include "probes/python/common.h"

#include <string.h>

#include "base/hints.h"
#include "probes/python/calls/call_count.h"

/* False with an exception set. `builtins`: functions written in C too. */
struct snd_py_way {
    const char *name;
    bool (*start)(bool builtins);
    void (*stop)(void);
    void (*renew)(void); /* Python begins anew: see common.h */
};
extern const struct snd_py_way snd_py_monitoring;  /* sys.monitoring, 3.12 and later */
extern const struct snd_py_way snd_py_set_profile; /* PyEval_SetProfile, before */
/* PEP 523: faster, does not see functions in C; of known frames, one thread at a time. */
#if !defined(SND_PYFRAMES_MISSING) && !defined(Py_GIL_DISABLED)
#define SND_PY_HAS_EVAL_HOOK 1
extern const struct snd_py_way snd_py_eval_hook;
#endif

/* The program's own sys.setprofile(), while sys.monitoring is our way (own_profile.c). */
void snd_py_own_profile_start(void);
void snd_py_own_profile_stop(void);
void snd_py_own_profile_renew(void);

/* What is on, since functions_start(). */
struct snd_py_on {
    const struct snd_py_way *way;
    bool                     builtins;
    const char              *switched; /* why it is not the way that was chosen first; or NULL */
};
extern struct snd_py_on snd_py_on;

/* Switches to `way`, because the current one no longer works. */
void snd_py_functions_switch(const struct snd_py_way *way, const char *why);

/* ------------------------------------------------------------------- functions */

#define SND_PY_GENERATES (CO_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)
#define SND_PY_AWAITS (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR)

/*
 * A frame of SND_PY_AWAITS stops with this value. An asynchronous generator does at its own `yield`,
 * too: then it awaits nothing. The interpreter wraps what it yields.
 */
static inline void snd_py_suspend(const PyCodeObject *code, const void *frame, PyObject *value)
{
    if (code->co_flags & CO_ASYNC_GENERATOR && value &&
        strcmp(Py_TYPE(value)->tp_name, "async_generator_wrapped_value") == 0)
        snd_calls_yield(frame);
    else
        snd_calls_suspend(frame);
}

extern Py_ssize_t snd_py_functions_index; /* of code objects' extra words */

/* Folders: of this package, whose functions are not shown, and of Python's own modules. The first time counts. */
void snd_py_numbers_prepare(const char *package, const char *library);

uint32_t snd_py_number_slow(PyCodeObject *code);
/* Of the function as if it were defined in that line. */
uint32_t snd_py_number_at(PyCodeObject *code, uint32_t line);

/* The function's number; 0: not to be recorded, it is one of this package. */
static inline uint32_t snd_py_number(PyCodeObject *code)
{
    uintptr_t word = (uintptr_t)snd_py_extra(code, snd_py_functions_index);

    return SND_LIKELY(word != 0) ? (uint32_t)(word >> 1) : snd_py_number_slow(code);
}

/*
 * Frames of the timeline of a torch profile, between start and stop (open_frames.c): those that were
 * open when it began are in it, and a call of `module_code` (nn.Module.__call__, or NULL) has the
 * name of its module, "nn.Module: Linear_0". Keeps `module_code`.
 */
void snd_py_open_frames_start(PyCodeObject *module_code);
void snd_py_open_frames_stop(void);
/* collection(phase, info), for gc.callbacks. */
PyObject *snd_py_collection(PyObject *module, PyObject *args);
/* module_numbers.c: calls of `code`, which is kept until the stop, have the names of their modules. */
void snd_py_modules_start(PyCodeObject *code);
void snd_py_modules_stop(void);
/* The number of the module that `frame` is a call of, or the innermost frame; 0: `code` is another function. */
struct snd_pyframe;
uint32_t snd_py_module_number(const PyCodeObject *code, const struct snd_pyframe *frame);
uint32_t snd_py_module_number_here(const PyCodeObject *code);

/*
 * Of a function in C; `callable`: PyCFunction, or a method descriptor that is called for `self`. Where calls are
 * counted it has the name that cProfile gives it, as events of a torch profile torch's, without the address.
 */
uint32_t snd_py_builtin_number(PyMethodDef *method, PyObject *callable, PyObject *self);

#endif
