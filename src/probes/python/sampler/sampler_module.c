/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/sampler/sampler_module.c - the sampler as Python has it: sonde._python.start_sampling, ..
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count_of.h"
#include "probes/python/common.h"
#include "probes/python/sampler/sampler.h"
#include "probes/python/sampler/kept_thread_names.h"

#define HZ_MOST 20000.0
#define HZ_LEAST 0.01

static PyObject *start_sampling(PyObject *self, PyObject *arguments)
{
    struct sonde_error err = { 0 };
    double             hz;
    int                native = 0;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "d|p", &hz, &native))
        return NULL;
    if (!(hz >= HZ_LEAST && hz <= HZ_MOST))
        return PyErr_Format(PyExc_ValueError, "sonde: hz must be 0.01..20000, got %R",
                            PyTuple_GET_ITEM(arguments, 0));
    if (snd_sampler_start(hz, native != 0, &err) != SONDE_OK) {
        PyErr_SetString(snd_py_error_class(), err.message);
        return NULL;
    }
    sonde_metadata(snd_meta_key(SND_META_PYTHON_SAMPLE),
                   snd_sampler_interrupts() ? "on" : "on, from outside");
    sonde_metadata(snd_meta_key(SND_META_PYTHON_SAMPLE_NATIVE), native ? "yes" : "no");
    Py_RETURN_NONE;
}

static PyObject *stop_sampling(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    snd_sampler_stop();
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* What is sampled from now on is an event of its own. Returns when that was. */
static PyObject *flush_sampling(PyObject *self, PyObject *unused)
{
    uint64_t clock;

    (void)self, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    clock = snd_sampler_flush();
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(clock);
}

/* Each is kept for good, so that its address is never another's. */
static PyObject *own_codes(PyObject *self, PyObject *codes)
{
    PyObject *list = PySequence_Fast(codes, "own_codes() takes code objects");

    (void)self;
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *code = PySequence_Fast_GET_ITEM(list, i);
        if (PyCode_Check(code) && snd_sampler_own_code(code))
            Py_INCREF(code);
    }
    Py_XDECREF(list);
    if (!list)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *is_sampling(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(snd_sampler_is_on());
}

/* Of a thread that is this process's: in a forked child Python may have its parent's number. */
static PyObject *name_thread(PyObject *self, PyObject *arguments)
{
    unsigned    tid;
    const char *name;
    int         later = 0;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "Is|p", &tid, &name, &later))
        return NULL;
    if (syscall(SYS_tgkill, getpid(), tid, 0) == 0) {
        snd_threadname_tell(tid, name);
        if (!later)
            sonde_thread_of(tid, name);
    }
    Py_RETURN_NONE;
}

/* In place of Thread._set_native_id, which a thread calls as it begins; `self` is what it was. */
static PyObject *set_native_id(PyObject *self, PyObject *thread)
{
    PyObject *result = PyObject_CallOneArg(self, thread);

    if (!result)
        return NULL;
    PyObject     *number = PyObject_GetAttrString(thread, "_native_id");
    PyObject     *name = number ? PyObject_GetAttrString(thread, "_name") : NULL;
    const char   *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    unsigned long tid = text && PyLong_Check(number) ? PyLong_AsUnsignedLong(number) : 0;
    if (PyErr_Occurred())
        PyErr_Clear();
    else if (tid != 0 && snd_sampler_is_on())
        snd_threadname_tell((uint32_t)tid, text);
    Py_XDECREF(name);
    Py_XDECREF(number);
    return result;
}

/* In C, so that no stack ever has a frame of it. */
static PyObject *naming(PyObject *self, PyObject *function)
{
    static PyMethodDef method = { "_set_native_id", set_native_id, METH_O, NULL };
    PyObject          *callable = PyCFunction_New(&method, function);
    PyObject          *bound = callable ? PyInstanceMethod_New(callable) : NULL;

    (void)self;
    Py_XDECREF(callable);
    return bound;
}

/*
 * Calls it again if Ctrl-C came in between. In C, where nothing is raised between two attempts, nor
 * before the first.
 */
static PyObject *call_to_the_end(PyObject *self, PyObject *function)
{
    PyObject *result = NULL;

    (void)self;
    for (int tries = 0; !result && tries < 100; tries++) {
        PyErr_Clear();
        result = PyObject_CallNoArgs(function);
        if (!result && !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
            break;
    }
    return result;
}

static PyObject *count_samples(PyObject *self, PyObject *unused)
{
    const struct snd_sampling_counts *c = snd_sampler_counts();
    const struct {
        const char *name;
        uint64_t    count;
    } words[] = {
        { "rounds", c->words[SND_SAMPLER_ROUNDS] },
        { "missed", c->words[SND_SAMPLER_MISSED] },
        { "torn", c->words[SND_SAMPLER_TORN] },
        { "unread", c->words[SND_SAMPLER_UNREAD] },
        { "period_ns", c->words[SND_SAMPLER_PERIOD_NS] },
        { "cpu_ns", c->words[SND_SAMPLER_CPU_NS] },
        { "native_unmatched", c->words[SND_SAMPLER_UNMATCHED] },
        { "unlisted", c->gaps[SND_SAMPLER_GAPS_UNLISTED] },
        { "no_memory", c->gaps[SND_SAMPLER_GAPS_NO_MEMORY] },
        { "interrupted", c->interrupted },
    };
    PyObject *dict = PyDict_New();

    (void)self, (void)unused;
    for (size_t i = 0; dict && i < SND_COUNT_OF(words); i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(words[i].count);
        if (!count || PyDict_SetItemString(dict, words[i].name, count) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(count);
    }
    return dict;
}

void snd_py_sampler_renew(void)
{
    snd_sampler_stop();
}

PyMethodDef snd_py_sampler_methods[] = {
    { "start_sampling", start_sampling, METH_VARARGS,
      "start_sampling(hz, native=False): starts sampling" },
    { "stop_sampling", stop_sampling, METH_NOARGS, "stops sampling, if started" },
    { "flush_sampling", flush_sampling, METH_NOARGS,
      "flush_sampling() -> int: samples so far are in the trace; the recorder's clock" },
    { "own_codes", own_codes, METH_O,
      "own_codes(codes): threads in these functions are left out by samplers that start from now "
      "on" },
    { "is_sampling", is_sampling, METH_NOARGS, "whether this process is being sampled" },
    { "name_thread", name_thread, METH_VARARGS,
      "name_thread(tid, name, later=False): in the trace; later: when it is sampled" },
    { "naming", naming, METH_O,
      "naming(Thread._set_native_id): one that also tells the sampler the thread's name" },
    { "call_to_the_end", call_to_the_end, METH_O,
      "call_to_the_end(function): calls it, and again as long as it raises KeyboardInterrupt" },
    { "count_samples", count_samples, METH_NOARGS, "what the last sampler did, as a dict" },
    { NULL, NULL, 0, NULL },
};
