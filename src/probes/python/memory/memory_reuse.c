/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/memory/memory_reuse.c - numbers that CPython keeps for reuse.
 *
 * Since 3.14 it keeps dropped ints, as it always did floats: the memory of the next one is that of one that some other
 * line has dropped, and no allocator is called. It tells of each object that is made and dropped, though
 * (PyRefTracer): a number's bytes are freed when it is dropped and allocated when its memory is used again, as in
 * tracemalloc. Of other objects only the heads are kept, and few of them.
 *
 * CPython has one such function: tracemalloc's is called by ours, and takes its place when it is started meanwhile.
 * Then reuse is not seen, and each block counts once, as the allocators see it.
 */
#include "probes/python/memory/memory_counts.h"

#if PY_VERSION_HEX >= 0x030E0000

static struct {
    PyRefTracer call;
    void       *data;
} before;

static void drop(const PyObject *number)
{
    size_t size = snd_blocks_size(number);

    if (size != 0 && !(size & SND_BLOCK_KEPT) && snd_blocks_put(number, size | SND_BLOCK_KEPT))
        snd_memory_count(0, (int64_t)size);
}

static void use_again(const PyObject *number)
{
    size_t size = snd_blocks_size(number);

    if (size & SND_BLOCK_KEPT && snd_blocks_put(number, size & ~SND_BLOCK_KEPT))
        snd_memory_count((int64_t)(size & ~SND_BLOCK_KEPT), 0);
}

static int on_object(PyObject *object, PyRefTracerEvent event, void *data)
{
    bool is_made = event == PyRefTracer_CREATE;

    (void)data;
    if (!is_made && event != PyRefTracer_DESTROY) /* 3.15 tells that we are replaced */
        return 0;
    if ((PyLong_CheckExact(object) || PyFloat_CheckExact(object)) && snd_memory_counts()) {
        if (is_made)
            use_again(object);
        else
            drop(object);
    }
    return before.call ? before.call(object, event, before.data) : 0;
}

/* An exception of the program's, which may be on its way, stays: 3.15 takes it for one of the function that is replaced. */
static void set_tracer(PyRefTracer call, void *data)
{
    PyObject *raised = PyErr_GetRaisedException();

    if (PyRefTracer_SetTracer(call, data) != 0)
        PyErr_Clear();
    PyErr_SetRaisedException(raised);
}

void snd_reuse_start(void)
{
    void       *data = NULL;
    PyRefTracer call = PyRefTracer_GetTracer(&data);

    if (call == on_object)
        return;
    before.call = call;
    before.data = data;
    set_tracer(on_object, NULL);
}

void snd_reuse_stop(void)
{
    void *data;

    if (PyRefTracer_GetTracer(&data) == on_object)
        set_tracer(before.call, before.data);
}

#else

void snd_reuse_start(void)
{
}

void snd_reuse_stop(void)
{
}

#endif
