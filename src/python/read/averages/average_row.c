/* SPDX-License-Identifier: Apache-2.0 */
/* python/read/averages/average_row.c - rows of averages: made, and added up. */
#include "python/read/averages/average.h"

PyTypeObject *core_average_type;

PyObject *core_make_average(PyObject *owner, const struct sonde_average *row, bool by_shape)
{
    struct average_object *self = (struct average_object *)core_new_object(core_average_type);

    if (!self)
        return NULL;
    Py_INCREF(owner);
    self->base.owner = owner;
    self->row = *row;
    self->by_shape = by_shape;
    return (PyObject *)self;
}

void core_add_up(struct sonde_average *sum, const struct sonde_average *row)
{
    sum->count += row->count;
    sum->total_ns += row->total_ns;
    sum->self_ns += row->self_ns;
    sum->cpu_bytes += row->cpu_bytes;
    sum->self_cpu_bytes += row->self_cpu_bytes;
    sum->device_bytes += row->device_bytes;
    sum->self_device_bytes += row->self_device_bytes;
    sum->device_ns += row->device_ns;
    sum->self_device_ns += row->self_device_ns;
    sum->uses_gpu |= row->uses_gpu;
    sum->flops += row->flops;
    sum->macs += row->macs;
    sum->moved_bytes += row->moved_bytes;
}

const struct sonde_average core_no_average = {
    .name = { "Total", 5 },
    .process = SONDE_NONE,
    .thread = SONDE_NONE,
    .shapes = { "", 0 },
    .stack = { "", 0 },
    .module = { "", 0 },
    .overload = { "", 0 },
};
