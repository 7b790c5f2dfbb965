/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/trace_lease.c - an open trace, lent to one call at a time, and kept open for what borrows from it.
 */
#include "python/read/core.h"

struct sonde_trace *core_take(struct trace_object *self)
{
    if (self->closed) {
        PyErr_SetString(core_error, "the trace is closed");
        return NULL;
    }
    if (self->busy) {
        PyErr_SetString(
            core_error,
            self->lent
                ? "a stream of the trace is being read; read it to its end, or open the trace a "
                  "second time"
                : "the trace is in use by another thread; open it a second time");
        return NULL;
    }
    self->busy = 1;
    return self->trace;
}

void core_let_go(struct trace_object *self)
{
    self->busy = 0;
}

bool core_lend(struct trace_object *self)
{
    if (self->busy)
        return false;
    self->busy = 1;
    self->lent = true;
    return true;
}

void core_lend_back(struct trace_object *self)
{
    self->busy = 0;
    self->lent = false;
}

void core_use(struct trace_object *self)
{
    Py_INCREF(self);
    self->users++;
}

void core_close_unused(struct trace_object *self)
{
    if (!self->closed || self->users > 0)
        return;
    sonde_trace_close(self->trace);
    self->trace = NULL;
}

void core_unuse(struct trace_object *self)
{
    if (!self)
        return;
    self->users--;
    core_close_unused(self);
    Py_DECREF(self);
}
