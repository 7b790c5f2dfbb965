/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/sampler.c - samples of this process: a thread of its own, outside the interpreter.
 *
 * It never takes the interpreter's lock, runs no Python code and holds no object: what it knows it
 * reads from memory, as a stranger would.
 */
#include "probes/python/common.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probes/python/interrupt.h"
#include "probes/python/threadnames.h"
#include "pystack/pace.h"
#include "pystack/sampling.h"

#define HZ_MOST 20000.0
#define HZ_LEAST 0.01

static struct {
    pthread_t            thread;
    pthread_mutex_t      lock;
    pthread_cond_t       wake;
    bool                 on, quit;
    uint64_t             period_ns;
    struct snd_sampling *sampling; /* the thread's, while it runs */
    uint64_t             last[SND_SAMPLER_WORDS];
    bool                 interrupts;
} sampler = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t clock_now(void)
{
    return sonde_clock();
}

static const struct snd_recorder recorder = {
    .epoch = &sonde_epoch_,
    .clock = clock_now,
    .intern = sonde_intern,
    .frame = sonde_intern_frame_in,
    .native = sonde_intern_native,
    .stack = sonde_intern_stack,
    .thread = snd_threadname_introduce,
    .sample = sonde_sample,
    .tally = sonde_tally,
};

/* --------------------------------------------------------------- the thread */

/* False when the sampler is to end. */
static bool wait_until(uint64_t ns)
{
    struct timespec at = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    pthread_mutex_lock(&sampler.lock);
    while (!sampler.quit && snd_pace_now() < ns)
        pthread_cond_timedwait(&sampler.wake, &sampler.lock, &at);
    bool go_on = !sampler.quit;
    pthread_mutex_unlock(&sampler.lock);
    return go_on;
}

static void *run(void *unused)
{
    struct snd_pace pace = snd_pace_begin(sampler.period_ns);
    uint64_t        missed = 0;

    snd_pace_next(&pace); /* what runs at this moment is what started us */
    prctl(PR_SET_NAME, "sonde sampler");
    prctl(PR_SET_TIMERSLACK, 1ul);
    while (wait_until(pace.due_ns) && snd_sampling_round(sampler.sampling, missed)) {
        snd_threadname_catch_up();
        missed = snd_pace_next(&pace); /* or the interpreter has come to its end */
    }
    return unused;
}

/* -------------------------------------------------------------- on and off */

static void init_wake(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sampler.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&sampler.lock, NULL);
}

static enum sonde_status open_self(struct snd_python *python, struct sonde_error *err)
{
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    char        byte;

    if (!runtime)
        return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot sample: this Python hides _PyRuntime");
    if (!snd_memory_read(getpid(), (uint64_t)(uintptr_t)runtime, &byte, 1))
        return snd_fail_os(err, SONDE_E_UNSUPPORTED,
                           "cannot sample: the system does not let a "
                           "process read its own memory with process_vm_readv (a container's "
                           "seccomp profile?)");
    return snd_python_open(python, getpid(), PY_MINOR_VERSION, (uint64_t)(uintptr_t)runtime,
                           (uint64_t)(uintptr_t)&PyCode_Type, err);
}

/* No signal of the program's is ever for this thread. */
static int start_thread(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&sampler.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static enum sonde_status check_native(struct sonde_error *err)
{
#if !defined(__x86_64__) && !defined(__aarch64__)
    return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot sample native frames on this processor");
#endif
    if (!dlsym(RTLD_DEFAULT, "_dl_find_object"))
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "cannot sample native frames: this C library has no "
                        "_dl_find_object (glibc has it from 2.35 on); sample without them");
    return SONDE_OK;
}

static enum sonde_status start_interrupts(const struct snd_python *python, bool native,
                                          struct sonde_error *err)
{
    sampler.interrupts = snd_interrupt_start(python, native);
    if (sampler.interrupts)
        snd_sampling_on_running(sampler.sampling, snd_interrupt_read, NULL);
    else if (native)
        return snd_fail(err, SONDE_E_BUSY,
                        "cannot sample native frames: the program has a handler of its own for "
                        "SIGURG; sample without them");
    if (native && !snd_sampling_with_native(sampler.sampling))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the sampler");
    return SONDE_OK;
}

static enum sonde_status start(double hz, bool native, struct sonde_error *err)
{
    struct snd_python python;

    if (sampler.on)
        return snd_fail(err, SONDE_E_BUSY, "cannot sample: this process is being sampled already");
    enum sonde_status status = native ? check_native(err) : SONDE_OK;
    if (status == SONDE_OK)
        status = open_self(&python, err);
    if (status != SONDE_OK)
        return status;
    sampler.period_ns = (uint64_t)(1e9 / hz);
    sampler.quit = false;
    init_wake();
    snd_threadname_clear();
    status = snd_sampling_new(&python, &recorder, sampler.period_ns, &sampler.sampling, err);
    if (status != SONDE_OK)
        return status;
    status = start_interrupts(&python, native, err);
    if (status != SONDE_OK) {
        snd_interrupt_stop();
        snd_sampling_drop(sampler.sampling);
        return status;
    }
    int failed = start_thread();
    if (failed != 0) {
        snd_interrupt_stop();
        snd_sampling_drop(sampler.sampling);
        errno = failed;
        return snd_fail_os(err, SONDE_E_NOMEM, "cannot sample: no thread can be made");
    }
    sampler.on = true;
    return SONDE_OK;
}

static void stop(void)
{
    pthread_mutex_lock(&sampler.lock);
    sampler.quit = true;
    pthread_cond_signal(&sampler.wake);
    pthread_mutex_unlock(&sampler.lock);
    pthread_join(sampler.thread, NULL);
    snd_interrupt_stop();
    snd_threadname_catch_up();
    snd_sampling_counts(sampler.sampling, sampler.last);
    snd_sampling_free(sampler.sampling);
    sampler.sampling = NULL;
    sampler.on = false;
}

/* ------------------------------------------------------------------ methods */

static PyObject *start_sampling(PyObject *self, PyObject *arguments)
{
    struct sonde_error err = { 0 };
    double             hz;
    int                native = 0;

    (void)self;
    if (!PyArg_ParseTuple(arguments, "d|p", &hz, &native))
        return NULL;
    if (!(hz >= HZ_LEAST && hz <= HZ_MOST))
        return PyErr_Format(PyExc_ValueError, "sonde: hz is from 0.01 to 20000, not %R",
                            PyTuple_GET_ITEM(arguments, 0));
    if (start(hz, native != 0, &err) != SONDE_OK) {
        PyErr_SetString(snd_py_error_class, err.message);
        return NULL;
    }
    sonde_metadata("python.sample", sampler.interrupts ? "on" : "on, from outside");
    sonde_metadata("python.sample.native", native ? "yes" : "no");
    Py_RETURN_NONE;
}

static PyObject *stop_sampling(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    if (sampler.on) {
        Py_BEGIN_ALLOW_THREADS
        stop();
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

/* The child has no sampler: the thread stayed behind. Returns the rate that it had, or None. */
static PyObject *forget_sampling(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    if (!sampler.on)
        Py_RETURN_NONE;
    sampler.on = false;
    snd_interrupt_in_child();
    snd_threadname_clear();
    snd_sampling_drop(sampler.sampling);
    sampler.sampling = NULL;
    return PyFloat_FromDouble(1e9 / (double)sampler.period_ns);
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
    else if (tid != 0 && sampler.on)
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
    const uint64_t *w = sampler.last;

    (void)self, (void)unused;
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "rounds", w[SND_SAMPLER_ROUNDS], "missed",
                         w[SND_SAMPLER_MISSED], "torn", w[SND_SAMPLER_TORN], "unread",
                         w[SND_SAMPLER_UNREAD], "period_ns", w[SND_SAMPLER_PERIOD_NS], "cpu_ns",
                         w[SND_SAMPLER_CPU_NS], "native_unmatched", w[SND_SAMPLER_UNMATCHED]);
}

PyMethodDef snd_py_sampler_methods[] = {
    { "start_sampling", start_sampling, METH_VARARGS,
      "start_sampling(hz, native=False): begins to sample" },
    { "stop_sampling", stop_sampling, METH_NOARGS, "ends what start_sampling() began, if it did" },
    { "forget_sampling", forget_sampling, METH_NOARGS,
      "in a forked child: forgets its parent's sampler; returns its hz, or None" },
    { "name_thread", name_thread, METH_VARARGS,
      "name_thread(tid, name, later=False): in the trace; later: when it is sampled" },
    { "naming", naming, METH_O,
      "naming(Thread._set_native_id): one that also tells the sampler the thread's name" },
    { "call_to_the_end", call_to_the_end, METH_O,
      "call_to_the_end(function): calls it, and again as long as it raises KeyboardInterrupt" },
    { "count_samples", count_samples, METH_NOARGS, "what the last sampler did, as a dict" },
    { NULL, NULL, 0, NULL },
};
