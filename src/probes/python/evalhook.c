/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/evalhook.c - calls seen by standing before the evaluation of frames (PEP 523):
 * CPython 3.9 to 3.11, where it costs a third of a profile function. Sees no functions in C.
 *
 * There is one place for such a function in an interpreter. Whoever takes it after us and calls
 * the one before (TorchDynamo does) is welcome. Whoever does not is noticed when a call that we
 * saw begin ends while none begins any more; then a profile function goes on in our place.
 * In 3.11 a Python call costs no C stack of its own, but one that goes through here does: a
 * program that recurses deeper than the C stack allows is handed over in the same way.
 */
#include "probes/python/oldframes.h"

#if PY_VERSION_HEX < 0x030C0000

#define STACK_KEPT_FREE ((ptrdiff_t)256 * 1024)
#define ENDS_WITHOUT_BEGIN 8u /* that many: nobody calls us any more */

static struct {
    PyInterpreterState  *interpreter;
    _PyFrameEvalFunction before; /* us: calls it; the default one for most */
    bool                 on;
    uint32_t             unannounced; /* ends since the last begin, while another holds our place */
} hook;

static PyObject *evaluate(PyThreadState *thread, snd_py_frame *frame, int throwing);

static bool is_ours(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(hook.interpreter) == evaluate;
}

static void hand_over(const char *why)
{
    snd_py_functions_switch(&snd_py_set_profile, why);
}

/* Someone stands before us. As long as calls begin here, they pass them on. */
static void look_who_is_there(void)
{
    if (++hook.unannounced > ENDS_WITHOUT_BEGIN)
        hand_over("another tool took the place of the frame-evaluation function");
}

static PyObject *evaluate(PyThreadState *thread, snd_py_frame *frame, int throwing)
{
    PyCodeObject            *code = snd_oldframe_code(frame);
    uint32_t                 number = hook.on ? snd_py_number(code) : 0;
    struct snd_calls_thread *t = number != 0 ? snd_calls_mine() : NULL;
    bool                     generates = code->co_flags & SND_PY_GENERATES;

    hook.unannounced = 0;
    if (!t || (generates && snd_oldframe_only_makes(frame)))
        return hook.before(thread, frame, throwing);
    if (SONDE_UNLIKELY_((char *)__builtin_frame_address(0) - t->stack_low < STACK_KEPT_FREE)) {
        hand_over("the program recurses deeper than its C stack allows");
        return hook.before(thread, frame, throwing);
    }
    bool resumed = generates && snd_oldframe_is_resumed(frame);
    if (!snd_calls_enter(t, number, frame, resumed))
        return hook.before(thread, frame, throwing);
    if (resumed && code->co_flags & SND_PY_AWAITS)
        snd_calls_resume(t, frame);
    uint32_t  depth = t->depth, session = t->session;
    PyObject *result = hook.before(thread, frame, throwing);
    /* The probe may have been turned off meanwhile, and on again. */
    if (SONDE_UNLIKELY_(t->session != session || t->depth < depth || !snd_calls.on))
        return result;
    while (SONDE_UNLIKELY_(t->depth > depth)) {
        snd_calls.unbalanced++;
        snd_calls_leave(t);
    }
    snd_calls_leave(t);
    if (generates && code->co_flags & SND_PY_AWAITS && snd_oldframe_is_suspended(frame))
        snd_calls_suspend(frame);
    if (SONDE_UNLIKELY_(!is_ours()) && hook.on)
        look_who_is_there();
    return result;
}

static bool start(bool builtins)
{
    (void)builtins;
    hook.interpreter = PyInterpreterState_Get();
    hook.unannounced = 0;
    hook.on = true;
    if (is_ours())
        return true; /* left there since someone stood before us */
    hook.before = _PyInterpreterState_GetEvalFrameFunc(hook.interpreter);
    _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, evaluate);
    return true;
}

/* Where another stands before us, we stay, and only pass on. */
static void stop(void)
{
    hook.on = false;
    if (is_ours())
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, hook.before);
}

const struct snd_py_way snd_py_eval_hook = { "frame evaluation", start, stop };

#endif
