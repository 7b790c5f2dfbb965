/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/eval_hook.c - calls seen by a hook of the evaluation of frames (PEP 523).
 *
 * The fastest mechanism in every CPython so far, but it does not see functions written in C. An
 * interpreter has one such hook. A tool that installs its own later and calls the previous one
 * (TorchDynamo does) works with us. One that does not is noticed when calls end but none begins any
 * more; then another mechanism takes over. Since 3.11 a Python call
 * costs no C stack of its own, but one that goes through here does: a program that recurses
 * deeper than the C stack allows is handed over likewise.
 */
#include "probes/python/ways/call_probe.h"

#ifdef SND_PY_HAS_EVAL_HOOK

#include "base/hints.h"
#include "pystack/interpreter/eval_frames.h"

#define STACK_KEPT_FREE ((ptrdiff_t)256 * 1024)
#define LEVELS_KEPT_FREE 300 /* of CPython's own count of the C stack: 3.12, 3.13 */
#define ENDS_UNTIL_LOOK 64u
#define ENDS_WITHOUT_BEGIN 8u /* after this many, our hook is not called any more */

#if PY_VERSION_HEX >= 0x030C0000
#define OTHER_WAY snd_py_monitoring
#else
#define OTHER_WAY snd_py_set_profile
#endif

static struct {
    PyInterpreterState  *interpreter;
    _PyFrameEvalFunction before; /* the previous hook, which we call; usually CPython's own */
    bool                 on;
    bool                 left;    /* it was turned off while another hook was installed over ours */
    bool                 reached; /* we were called while we were off */
    uint32_t             until_look; /* ends until we check whether ours is still installed */
    uint32_t             doubts; /* ends since the last begin, while another hook is installed */
} hook;

static PyObject *evaluate(PyThreadState *thread, snd_evalframe *frame, int throwing);

static bool is_ours(void)
{
    return _PyInterpreterState_GetEvalFrameFunc(hook.interpreter) == evaluate;
}

static void hand_over(const char *why)
{
    snd_py_functions_switch(&OTHER_WAY, why);
}

/* Calls that arrive reset `doubts`: then a hook over ours passes them on. */
static void look_who_is_there(void)
{
    hook.until_look = ENDS_UNTIL_LOOK;
    if (!hook.on || is_ours())
        return;
    hook.until_look = 1;
    if (++hook.doubts > ENDS_WITHOUT_BEGIN)
        hand_over("another tool replaced the frame-evaluation function");
}

static bool has_stack_left(const PyThreadState *thread, const struct snd_calls_thread *t)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    if (SND_UNLIKELY(thread->c_recursion_remaining < LEVELS_KEPT_FREE))
        return false;
#else
    (void)thread;
#endif
    return (char *)__builtin_frame_address(0) - t->stack_low > STACK_KEPT_FREE;
}

/*
 * Repairs the stack if it is not at `depth`: the probe was turned off meanwhile (then it is lower),
 * or ends of inner calls were not seen. False: there is nothing to leave.
 */
static bool put_right(struct snd_calls_thread *t, uint32_t depth)
{
    for (; t->depth > depth; snd_calls.unbalanced++)
        snd_calls_leave(t);
    return t->depth == depth;
}

static PyObject *evaluate_generator(PyThreadState *thread, snd_evalframe *frame, int throwing,
                                    struct snd_calls_thread *t, uint32_t number)
{
    PyCodeObject *code = snd_evalframe_code(frame);
    bool          resumed = snd_evalframe_is_resumed(frame);

    if (snd_evalframe_only_makes(frame) || !snd_calls_enter(t, number, code, resumed))
        return hook.before(thread, frame, throwing);
    if (resumed && code->co_flags & SND_PY_AWAITS)
        snd_calls_resume(t, frame);
    uint32_t  depth = t->depth;
    PyObject *result = hook.before(thread, frame, throwing);
    if (SND_UNLIKELY(t->depth != depth) && !put_right(t, depth))
        return result;
    snd_calls_leave(t);
    if (code->co_flags & SND_PY_AWAITS && snd_evalframe_is_suspended(frame))
        snd_py_suspend(code, frame, result);
    return result;
}

static PyObject *evaluate(PyThreadState *thread, snd_evalframe *frame, int throwing)
{
    PyCodeObject            *code = snd_evalframe_code(frame);
    uint32_t                 number = hook.on ? snd_py_number(code) : 0;
    struct snd_calls_thread *t = number != 0 ? snd_calls_mine(false) : NULL;

    if (SND_UNLIKELY(hook.doubts))
        hook.doubts = 0;
    if (SND_UNLIKELY(!t)) {
        hook.reached = true;
        return hook.before(thread, frame, throwing);
    }
    if (SND_UNLIKELY(!has_stack_left(thread, t))) {
        hand_over("the program recurses deeper than its C stack allows");
        return hook.before(thread, frame, throwing);
    }
    if (SND_UNLIKELY(code->co_flags & SND_PY_GENERATES))
        return evaluate_generator(thread, frame, throwing, t, number);
    if (!snd_calls_enter(t, number, code, false))
        return hook.before(thread, frame, throwing);
    uint32_t  depth = t->depth;
    PyObject *result = hook.before(thread, frame, throwing);
    if (SND_UNLIKELY(t->depth != depth) && !put_right(t, depth))
        return result;
    snd_calls_leave(t);
    if (SND_UNLIKELY(--hook.until_look == 0))
        look_who_is_there();
    return result;
}

static bool start(bool builtins)
{
    (void)builtins;
    hook.interpreter = PyInterpreterState_Get();
    hook.until_look = ENDS_UNTIL_LOOK;
    hook.doubts = 0;
    if (!is_ours() && !(hook.left && snd_py_is_reached(&hook.reached))) {
        hook.before = _PyInterpreterState_GetEvalFrameFunc(hook.interpreter);
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, evaluate);
    }
    hook.on = true;
    return true;
}

/* If another hook is installed over ours, ours stays and only passes calls on. */
static void stop(void)
{
    hook.on = false;
    hook.left = !is_ours();
    if (!hook.left)
        _PyInterpreterState_SetEvalFrameFunc(hook.interpreter, hook.before);
}

static void renew(void)
{
    memset(&hook, 0, sizeof hook);
}

const struct snd_py_way snd_py_eval_hook = { "frame evaluation", start, stop, renew };

#endif
