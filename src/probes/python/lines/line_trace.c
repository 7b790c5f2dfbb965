/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_trace.c - lines seen by a trace function: CPython 3.9 to 3.11.
 *
 * A trace function makes every instruction of a thread slow. Ours is on in frames of chosen
 * functions only: a hook of the evaluation of frames (PEP 523) installs it when such a frame
 * begins, removes it for the calls inside, and installs it again. Another tool's trace function (a
 * debugger's, coverage's) stays in place elsewhere, and is called by ours in chosen frames;
 * sys.gettrace() returns it.
 *
 * In 3.11 a Python call costs no C stack of its own, but one that goes through here does: where
 * the stack gets low, frames are no longer evaluated through here, and ours is on in all of them.
 */

#include "probes/python/lines/line_events.h"

#if PY_VERSION_HEX < 0x030C0000

#include "base/hints.h"
#include "pystack/interpreter/eval_frames.h"

#include <pthread.h>
#include <string.h>

#define STACK_KEPT_FREE ((ptrdiff_t)192 * 1024)

static struct {
    PyInterpreterState  *interpreter;
    _PyFrameEvalFunction before;
    bool                 on;
    bool                 left;    /* another hook was installed over ours when we were turned off */
    bool                 reached; /* we were called while we were off */
} hook;

static int trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument);

static void set_tracing(PyThreadState *thread, Py_tracefunc function)
{
    thread->c_tracefunc = function;
    snd_py_update_tracing(thread);
}

static Py_tracefunc outer_of(const struct snd_line_thread *mine)
{
    Py_tracefunc function;

    memcpy(&function, &mine->outer, sizeof function);
    return function;
}

static void set_outer(struct snd_line_thread *mine, Py_tracefunc function)
{
    memcpy(&mine->outer, &function, sizeof function);
}

/* -------------------------------------------------------------------------- events */

static int line_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030B0000
    return PyFrame_GetLineNumber(frame);
#else
    return frame->f_lineno; /* set before each event */
#endif
}

static int trace(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
    struct snd_line_thread *mine = snd_line_thread_;
    snd_evalframe          *data = snd_evalframe_of(frame);

    if (SND_UNLIKELY(!mine))
        return 0;
    if (SND_LIKELY(what == PyTrace_LINE)) {
        if (SND_LIKELY(snd_lines_on))
            snd_line_begin(mine, data, snd_evalframe_code(data), line_of(frame));
    } else if (what == PyTrace_RETURN) {
        snd_line_end(mine, data);
    } else if (what == PyTrace_CALL && snd_lines_on) {
        struct snd_line_table *table = snd_line_table_of(snd_evalframe_code(data));
        if (table && table->wanted & SND_LINE_MEMORY)
            snd_line_enter(mine, data, table, line_of(frame), snd_evalframe_is_resumed(data));
    }
    Py_tracefunc outer = outer_of(mine);
    int          result = outer ? outer(object, frame, what, argument) : 0;
    if (SND_UNLIKELY(what == PyTrace_RETURN && mine->adopted == data)) {
        PyThreadState *thread = PyThreadState_Get();
        mine->adopted = NULL;
        if (thread->c_tracefunc == trace) /* what follows from it is set when we return */
            thread->c_tracefunc = outer;
    }
    return result;
}

/* ---------------------------------------------------------------- where it is on */

static char *find_stack_low(void)
{
    pthread_attr_t attributes;
    void          *low = NULL;
    size_t         size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return (char *)__builtin_frame_address(0) - (ptrdiff_t)1024 * 1024;
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    return low;
}

static PyObject *evaluate(PyThreadState *thread, snd_evalframe *frame, int throwing);

/* Calls inside this one do not go through evaluate(): the trace function sees them all. */
static PyObject *evaluate_deep(PyThreadState *thread, snd_evalframe *frame, int throwing)
{
    bool      ours = _PyInterpreterState_GetEvalFrameFunc(hook.interpreter) == evaluate;
    PyObject *result;

    if (ours)
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, hook.before);
    result = hook.before(thread, frame, throwing);
    if (ours && hook.on)
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, evaluate);
    return result;
}

static PyObject *evaluate_chosen(PyThreadState *thread, snd_evalframe *frame, int throwing,
                                 _PyFrameEvalFunction next)
{
    struct snd_line_thread *mine = snd_line_mine();

    if (!mine)
        return next(thread, frame, throwing);
    Py_tracefunc before = thread->c_tracefunc, outer = outer_of(mine);
    set_outer(mine, before);
    set_tracing(thread, trace);
    PyObject *result = next(thread, frame, throwing);
    /* The program may have set another by now, which then stays. */
    set_tracing(thread, thread->c_tracefunc == trace ? outer_of(mine) : thread->c_tracefunc);
    set_outer(mine, outer);
    return result;
}

static PyObject *evaluate_other(PyThreadState *thread, snd_evalframe *frame, int throwing)
{
    struct snd_line_thread *mine = snd_line_thread_;

    set_tracing(thread, outer_of(mine));
    PyObject *result = hook.before(thread, frame, throwing);
    if (thread->c_tracefunc != trace) /* or it is ours: a session began in it */
        set_outer(mine, thread->c_tracefunc);
    set_tracing(thread, trace);
    return result;
}

static PyObject *evaluate(PyThreadState *thread, snd_evalframe *frame, int throwing)
{
    bool chosen = hook.on && snd_line_table_of(snd_evalframe_code(frame));
    bool tracing = thread->c_tracefunc == trace;

    hook.reached = true;
    struct snd_line_thread *mine = chosen || tracing ? snd_line_mine() : snd_line_thread_;
    if (mine && SND_UNLIKELY(!mine->stack_low))
        mine->stack_low = find_stack_low() + STACK_KEPT_FREE;
    if (mine && SND_UNLIKELY((char *)__builtin_frame_address(0) < mine->stack_low))
        return tracing ? evaluate_deep(thread, frame, throwing)
                       : evaluate_chosen(thread, frame, throwing, evaluate_deep);
    if (chosen == tracing)
        return hook.before(thread, frame, throwing);
    return chosen ? evaluate_chosen(thread, frame, throwing, hook.before)
                  : evaluate_other(thread, frame, throwing);
}

/* --------------------------------------------------------------------- on and off */

#if PY_VERSION_HEX < 0x030A0000
/* 3.9 looks for trace functions only where one was set the ordinary way, in any thread. */
static void announce(PyThreadState *thread, bool on)
{
    Py_tracefunc function = thread->c_tracefunc;
    PyObject    *object = thread->c_traceobj;

    thread->c_traceobj = NULL; /* or its reference would be dropped */
    thread->c_tracefunc = on ? NULL : trace;
    PyEval_SetTrace(on ? trace : NULL, NULL);
    thread->c_traceobj = object;
    set_tracing(thread, function);
}
#else
static void announce(PyThreadState *thread, bool on)
{
    (void)thread;
    (void)on;
}
#endif

/* A function that turned the probe on: its following lines count. */
static void adopt(void)
{
    PyThreadState          *thread = PyThreadState_Get();
    struct snd_pyframe     *frame = snd_pyframe_top(thread);
    struct snd_line_thread *mine = snd_line_mine();

    while (frame && !snd_line_table_of(snd_pyframe_code(frame)))
        frame = snd_pyframe_caller(frame);
    if (!frame || !mine || thread->c_tracefunc == trace)
        return;
    mine->adopted = frame;
    set_outer(mine, thread->c_tracefunc);
    set_tracing(thread, trace);
}

static bool start(void)
{
    hook.interpreter = PyInterpreterState_Get();
    hook.on = true;
    announce(PyThreadState_Get(), true);
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(hook.interpreter);
    if (now != evaluate && !(hook.left && snd_py_is_reached(&hook.reached))) {
        hook.before = now;
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, evaluate);
    }
    hook.left = false;
    return true;
}

/* If another hook is installed over ours, ours stays and only passes calls on. */
static void stop(void)
{
    PyThreadState          *thread = PyThreadState_Get();
    struct snd_line_thread *mine = snd_line_thread_;

    hook.on = false;
    if (mine && mine->adopted && thread->c_tracefunc == trace) {
        mine->adopted = NULL;
        set_tracing(thread, outer_of(mine));
    }
    announce(thread, false);
    hook.left = _PyInterpreterState_GetEvalFrameFunc(hook.interpreter) != evaluate;
    if (!hook.left)
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, hook.before);
}

static bool watch(PyCodeObject *code, uint32_t wanted)
{
    (void)code;
    (void)wanted;
    return true;
}

static void renew(void)
{
    memset(&hook, 0, sizeof hook);
}

const struct snd_line_source snd_line_tracing = {
    "trace function", start, stop, watch, adopt, renew
};

#endif
