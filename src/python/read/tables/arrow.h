/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python/read/tables/arrow.h - Arrow's C data interface as published, for the files that hand tables out by it.
 *
 * arrow.c         a table that Python owns, in one batch
 * table_stream.c  a table of a trace in batches, as they are read
 */
#ifndef SONDE_CORE_ARROW_H
#define SONDE_CORE_ARROW_H

#include "python/read/core.h"

struct ArrowSchema {
    const char          *format, *name, *metadata;
    int64_t              flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t             length, null_count, offset, n_buffers, n_children;
    const void        **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* The schema of a table, without the interpreter lock; 0, or ENOMEM with nothing to release. */
int core_arrow_schema(struct ArrowSchema *schema, const struct core_table *table);
/* Releases what an array has inside; its own memory is its maker's. */
void core_arrow_release_parts(struct ArrowArray *array);
/* Takes the stream, of malloc(): releases and frees it if it fails, too. */
PyObject *core_arrow_capsule(struct ArrowArrayStream *stream);

#endif
