/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/ways/set_profile.c - calls seen by a profile function in every thread: CPython 3.9 to
 * 3.11, when functions in C are to be seen too, or the frame-evaluation function cannot stay.
 *
 * A thread has one profile function. One that is there already is called after us. One that is set
 * later by sys.setprofile() is put behind ours at once. One that is set in C (cProfile's), or ours
 * being taken away (by cProfile's disable()), shows as an audit event; as soon as the interpreter
 * lets us we are in front again. Threads that begin later are found in the interpreter's list, whose
 * newest is looked at on every event.
 */
#include "probes/python/ways/call_probe.h"

#if PY_VERSION_HEX < 0x030C0000

#include "base/hints.h"
#include "pystack/interpreter/eval_frames.h"

/* The profile function that was there before ours, of one thread: our own's object. */
struct link {
    PyObject_HEAD
    Py_tracefunc function;
    PyObject    *object;  /* owned */
    bool         is_late; /* set by a call whose begin it has not seen: its end is not for it */
};

static struct {
    PyInterpreterState *interpreter;
    uint64_t            newest; /* id of the thread state that was the newest when we looked */
    bool                on, builtins;
    bool                audited;
} state;

static int on_event(PyObject *self, PyFrameObject *object, int what, PyObject *arg);

static void release_link(PyObject *self)
{
    Py_XDECREF(((struct link *)self)->object);
    PyObject_Free(self);
}

/* What sys.getprofile() gives can be called, as the program's own function that it stands for. */
static PyObject *call_link(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *object = ((struct link *)self)->object;

    if (!object)
        Py_RETURN_NONE;
    return PyObject_Call(object, args, kwargs);
}

static PyTypeObject link_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "sonde._python.link",
    .tp_basicsize = sizeof(struct link),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = release_link,
    .tp_call = call_link,
};

/* ----------------------------------------------------------------- every thread */

/*
 * As PyEval_SetProfile(), without calling the program's audit hooks: they are not for what we do.
 */
static void set_function(PyThreadState *thread, Py_tracefunc function, PyObject *object)
{
    PyObject *before = thread->c_profileobj;

    Py_XINCREF(object);
    thread->c_profilefunc = function;
    thread->c_profileobj = object;
    snd_py_update_tracing(thread);
    Py_XDECREF(before);
}

/* If the program set one of our links again, returns the function that it wraps. Borrowed. */
static PyObject *skip_links(Py_tracefunc function, PyObject *object)
{
    while (object && Py_TYPE(object) == &link_type && ((struct link *)object)->function == function)
        object = ((struct link *)object)->object;
    return object;
}

static void put_in_front(PyThreadState *thread)
{
    struct link *link = NULL;

    if (thread->c_profilefunc == on_event)
        return;
    if (thread->c_profilefunc) {
        link = PyObject_New(struct link, &link_type);
        if (!link) {
            PyErr_Clear();
            return; /* keeps their function; calls of this thread are not seen */
        }
        link->function = thread->c_profilefunc;
        link->is_late = false;
        link->object = skip_links(thread->c_profilefunc, thread->c_profileobj);
        Py_XINCREF(link->object);
    }
    set_function(thread, on_event, (PyObject *)link);
    Py_XDECREF(link);
}

static void take_away(PyThreadState *thread)
{
    if (thread->c_profilefunc != on_event)
        return;
    struct link *link = (struct link *)thread->c_profileobj;
    Py_XINCREF(link);
    set_function(thread, link ? link->function : NULL, link ? link->object : NULL);
    Py_XDECREF(link);
}

static void for_every_thread(void (*function)(PyThreadState *))
{
    PyThreadState *thread = PyInterpreterState_ThreadHead(state.interpreter);

    state.newest = thread ? thread->id : 0;
    for (; thread; thread = PyThreadState_Next(thread))
        function(thread);
}

static void look_for_threads(void)
{
    PyThreadState *newest = PyInterpreterState_ThreadHead(state.interpreter);

    if (SND_UNLIKELY(newest && newest->id != state.newest))
        for_every_thread(put_in_front);
}

/* ---------------------------------------------------------------------- events */

static void enter_function(struct snd_calls_thread *t, snd_evalframe *frame, PyCodeObject *code,
                           uint32_t number)
{
    bool resumed = code->co_flags & SND_PY_GENERATES && snd_evalframe_is_resumed(frame);

    if (snd_calls_enter(t, number, code, resumed) && resumed && code->co_flags & SND_PY_AWAITS)
        snd_calls_resume(t, frame);
}

static void leave_function(struct snd_calls_thread *t, snd_evalframe *frame, PyCodeObject *code,
                           PyObject *result)
{
    if (snd_calls_leave_key(t, code) && code->co_flags & SND_PY_AWAITS &&
        snd_evalframe_is_suspended(frame))
        snd_py_suspend(code, frame, result);
}

static void record(struct snd_calls_thread *t, snd_evalframe *frame, int what, PyObject *arg)
{
    PyCodeObject *code = snd_evalframe_code(frame);
    uint32_t      number = snd_py_number(code);
    PyMethodDef  *method;

    if (number == 0)
        return;
    switch (what) {
    case PyTrace_CALL:
        enter_function(t, frame, code, number);
        break;
    case PyTrace_RETURN:
        leave_function(t, frame, code, arg);
        break;
    case PyTrace_C_CALL:
        if (!state.builtins || !PyCFunction_Check(arg))
            break;
        method = ((PyCFunctionObject *)arg)->m_ml;
        number = snd_py_builtin_number(method, arg, ((PyCFunctionObject *)arg)->m_self);
        if (number != 0)
            snd_calls_enter_c(t, number, method, frame);
        break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
        if (state.builtins && PyCFunction_Check(arg))
            snd_calls_leave_key(t, ((PyCFunctionObject *)arg)->m_ml);
        break;
    default:
        break;
    }
}

static int on_event(PyObject *self, PyFrameObject *object, int what, PyObject *arg)
{
    struct snd_calls_thread *t = state.on ? snd_calls_mine(what == PyTrace_CALL) : NULL;

    if (t) {
        record(t, snd_evalframe_of(object), what, arg);
        look_for_threads();
    }
    if (SND_UNLIKELY(self)) {
        struct link *link = (struct link *)self;
        if (link->is_late) {
            link->is_late = false;
            if (what == PyTrace_C_RETURN)
                return 0;
        }
        Py_INCREF(link);
        int result = link->function(link->object, object, what, arg);
        Py_DECREF(link);
        return result;
    }
    return 0;
}

/* ------------------------------------------------------- the program's own function */

static PyObject *call_setprofile(PyObject *self, PyObject *function);
static PyObject *call_getprofile(PyObject *self, PyObject *unused);

static struct snd_py_override set = { .module = "sys",
                                      .name = "setprofile",
                                      .ours = call_setprofile };
static struct snd_py_override get = { .module = "sys",
                                      .name = "getprofile",
                                      .ours = call_getprofile };

/* The profile function of this thread that is not ours; borrowed, NULL for none. */
static struct link *link_of(PyThreadState *thread)
{
    return thread->c_profilefunc == on_event ? (struct link *)thread->c_profileobj : NULL;
}

/*
 * Without us the interpreter tells of no call at its end that it has not told of at its begin: the
 * first function that a program sets does not see sys.setprofile() return.
 */
static PyObject *call_setprofile(PyObject *self, PyObject *function)
{
    PyThreadState *thread = PyThreadState_Get();
    bool           is_first = thread->c_profilefunc == on_event && !thread->c_profileobj;
    PyObject      *answer = set.real->ml_meth(self, function);

    if (answer && state.on) {
        put_in_front(thread);
        if (is_first && link_of(thread))
            link_of(thread)->is_late = true;
    }
    return answer;
}

static PyObject *call_getprofile(PyObject *self, PyObject *unused)
{
    struct link *link = link_of(PyThreadState_Get());

    if (!link || !link->object)
        return get.real->ml_meth(self, unused);
    Py_INCREF(link->object);
    return link->object;
}

/* --------------------------------------------------------------------- on and off */

static int come_back(void *unused)
{
    (void)unused;
    if (state.on)
        for_every_thread(put_in_front);
    return 0;
}

/* It comes before the function is set, so that there is nothing to do here yet. */
static int on_audit(const char *event, PyObject *args, void *unused)
{
    (void)args;
    (void)unused;
    if (state.on && strcmp(event, "sys.setprofile") == 0)
        Py_AddPendingCall(come_back, NULL);
    return 0;
}

static bool start(bool builtins)
{
    if (!(link_type.tp_flags & Py_TPFLAGS_READY) && PyType_Ready(&link_type) != 0)
        return false;
    if (!state.audited) {
        if (PySys_AddAuditHook(on_audit, NULL) != 0)
            PyErr_Clear(); /* an audit hook forbids it: a function set by others then replaces ours */
        state.audited = true;
    }
    (void)snd_py_override(&set);
    (void)snd_py_override(&get);
    state.interpreter = PyInterpreterState_Get();
    state.builtins = builtins;
    state.on = true;
    for_every_thread(put_in_front);
    return true;
}

static void stop(void)
{
    state.on = false;
    for_every_thread(take_away);
    snd_py_override_undo(&set);
    snd_py_override_undo(&get);
}

static void renew(void)
{
    memset(&state, 0, sizeof state);
    set.function = get.function = NULL;
}

const struct snd_py_way snd_py_set_profile = { "profile function", start, stop, renew };

#endif
