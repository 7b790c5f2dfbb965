/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/averages/average.h - what the files of Average share.
 *
 *     average_row.c     rows: made, added up
 *     average_pickle.c  the members that are pickled and are columns of the list
 *     average_sum.c     add(): adding up two rows
 *     average.c         the type and its attributes
 *     average_list.c    key_averages()
 */
#ifndef SONDE_CORE_AVERAGE_H
#define SONDE_CORE_AVERAGE_H

#include "python/read/rows.h"

struct average_object {
    struct core_row      base;
    struct sonde_average row;
    bool                 by_shape;
};

extern PyTypeObject *core_average_type;

/* Average.__reduce__() */
PyObject *core_average_reduce(PyObject *self, PyObject *unused);
/* make_average({name: value}, by_shape): a row that belongs to no list. */
PyObject *core_average_unpickle(PyObject *module, PyObject *args);
/* Average.add(other), in place. */
PyObject *core_average_add(PyObject *self, PyObject *other);

#endif
