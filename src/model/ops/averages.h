/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ops/averages.h - what the files behind sonde_averages_new() share.
 *
 * averages.c       the walk that adds ranges up, and the public face
 * average_groups.c  which group a range belongs to, and that group's row
 * average_rows.c    rows as they are kept, and as they are shown
 * average_gpu.c     rows of what GPUs did
 * average_parts.c   those of some threads, made by one of several workers, and added up; those by name, of those by shape
 *
 * A trace may have a million names: a row holds what every group has, and the rest (memory, FLOPs,
 * what it is grouped by) lies beside it for the rows that have some.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_OPS_AVERAGES_H
#define SND_MODEL_OPS_AVERAGES_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "model/gpu/torch_gpu.h"

/*
 * Memory that no range took, until it is known whether a Python function did: a call of one is recorded
 * when it returns, after the memory that it took. As in torch.profiler, that memory is the function's, and has no
 * row "[memory]". All zero is an empty one.
 */
struct snd_unclaimed_item {
    int64_t ns, bytes;
    bool    is_cpu;
};
struct snd_unclaimed_list {
    struct snd_unclaimed_item *items; /* by time */
    uint32_t                   count, room;
};
struct snd_unclaimed {
    struct snd_unclaimed_list *threads;
    uint32_t                   count;
};

/* Names of our own, numbered after those of the trace. */
enum snd_average_name { SND_AVERAGE_STEP, SND_AVERAGE_MEMORY, SND_AVERAGE_NAMES };

/* What a row is of: numbers of texts, of processes and threads; SONDE_NONE where not grouped by it. */
struct snd_average_group {
    uint32_t name, process, thread, shapes, stack, module, overload;
    bool     user;      /* a user-named range is not an operator of that name */
    bool     on_device; /* and GPU work is not a host range of that name */
};

struct snd_average_row {
    int64_t  first_ns;     /* start of its earliest range: rows are listed by it, ... */
    int64_t  first_end_ns; /* ... of two that begin together the longer one first */
    uint64_t first_serial, count;
    int64_t  total_ns, self_ns, min_ns, max_ns;
    uint32_t first_thread;
    uint32_t group; /* a name's number; if grouped by more, an index of group_list */
    uint32_t more;  /* plus one: index of struct snd_average_more; 0: all 0 */
    uint8_t  scope;
    bool     is_async : 1, has_parent : 1, user : 1, on_device : 1;
};

/* What few ranges of many programs have. */
struct snd_average_more {
    int64_t cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes;
    int64_t device_ns, self_device_ns; /* of GPUs */
    double  flops, macs, moved_bytes;
};

struct snd_average_latest {
    struct snd_key key;
    uint32_t       row; /* plus one */
};

/* Where the forward operator of a sequence number was called from. */
struct snd_average_forward {
    int64_t  start_ns;
    uint32_t stack;
};

/* Text ids of a process's shapes or stacks, plus one; made when first needed. */
struct snd_average_texts {
    uint32_t *shapes, *stacks;
};

/* What leaves of one kind have in common. */
struct snd_average_kind {
    double   flops, macs, moved_bytes;
    uint32_t name, shapes, stack, module, overload;
    uint32_t row; /* plus one; 0: none was counted yet */
    uint8_t  scope;
    bool     is_op, has_more;
};

/* Rows that sonde_averages_row() has handed out. */
struct snd_average_shown {
    struct sonde_average **rows; /* by index; NULL: not yet */
    struct snd_arena       arena;
};

struct sonde_averages {
    struct sonde_trace           *trace;
    struct sonde_averages_options options;
    struct sonde_averages_totals  totals;
    struct snd_average_row       *rows;
    struct snd_average_more      *mores;
    struct snd_average_group     *group_list; /* when grouped by more than the name */
    uint32_t                      row_count, row_room, more_count, more_room, group_room;
    uint32_t                   *by_name; /* row of a name, plus one; when grouped by nothing else */
    uint32_t                    name_count;
    struct snd_average_latest  *latest; /* by name, when grouped by more */
    struct snd_map              groups;
    struct snd_texts            texts;  /* shapes and stacks as shown */
    struct snd_average_texts   *caches; /* by process */
    struct snd_live             live;   /* live blocks: kept only if frees do not have their size */
    bool                        tracks_live;
    struct snd_unclaimed        unclaimed;   /* of a trace with calls of Python functions */
    struct snd_map              by_sequence; /* (process, torch's thread, sequence) to forwards */
    struct snd_average_forward *forwards;
    uint32_t                    forward_count, forward_room;
    struct snd_assembly        *assembly; /* while the walk lasts */
    struct snd_torch_gpu        gpu;
    struct snd_average_shown   *shown;
    const struct snd_consumer  *beside;      /* or NULL; while the walk lasts */
    bool                        only_beside; /* nobody else looks at the rows: none are made */
    struct snd_average_kind    *kinds;       /* of leaves */
    uint32_t                    kind_count, kind_room;
    bool                        is_part;    /* of others (average_parts.c) */
    bool                        is_inexact; /* sums of FLOPs may differ in another order */
    bool                        is_done;    /* the walk that they waited for */
    struct snd_consumer         consumer;   /* of those that wait */
};

/* A number of the row that stays when rows are sorted. */
static inline uint32_t snd_average_id(const struct sonde_averages  *a,
                                      const struct snd_average_row *row)
{
    return a->options.groups != 0 ? row->group
                                  : row->group * 4 + (uint32_t)row->user * 2 + row->on_device;
}

/*
 * As sonde_averages_new(), by time; `beside`, or NULL, is a consumer of the same walk, which has the rows of ranges.
 * `out` NULL: it is the only one who wants them, and has 0 for their numbers.
 */
SND_CHECKED enum sonde_status snd_averages_beside(struct sonde_trace                  *trace,
                                                  const struct sonde_averages_options *options,
                                                  const struct snd_consumer           *beside,
                                                  struct sonde_averages              **out,
                                                  struct sonde_error                  *err);

/*
 * In two parts: they wait at the trace for the next walk (snd_wait()), where operators can wait (ops_wait.h); and are there, which takes a
 * walk if nobody has made one. An error of the second frees them. Owns: the caller frees *out with sonde_averages_free(); a page of
 * many views has them lent (model/kept.h).
 */
SND_CHECKED enum sonde_status snd_averages_wait(struct sonde_trace                  *trace,
                                                const struct sonde_averages_options *options,
                                                struct sonde_averages              **out,
                                                struct sonde_error                  *err);
SND_CHECKED enum sonde_status snd_averages_finish(struct sonde_averages **averages,
                                                  struct sonde_error     *err);

/*
 * Fills averages by name with the sums of those by name and shape. False: out of memory. Not `exact`: sums of FLOPs are too
 * large to be the same in any order.
 */
bool snd_average_sum_names(struct sonde_averages *a, const struct sonde_averages *by_shape,
                           bool *exact);

static inline void snd_average_give_up(struct sonde_averages *a)
{
    snd_assembly_stop(a->assembly);
}

/* ProfilerStep#7 is ProfilerStep*. While the walk lasts. */
static inline uint32_t snd_average_canonical(const struct sonde_averages *a, uint32_t name)
{
    return a->assembly->name_flags[name] & SND_NAME_STEP ? a->trace->names.count + SND_AVERAGE_STEP
                                                         : name;
}

/* The row of a range's group; NULL when memory is out. */
struct snd_average_row *snd_average_find_row(struct sonde_averages *a, const struct snd_lane *lane,
                                             const struct snd_range *r, uint32_t name);
/* The same of what a GPU did; `thread` asked for it, or SND_NO_LAUNCH. */
struct snd_average_row *snd_average_find_gpu_row(struct sonde_averages *a, uint32_t process,
                                                 uint32_t thread, uint32_t name, bool user);
/* Adds a range to the row of its group; `is_top`: it has no parent. */
void snd_average_count(struct sonde_averages *a, const struct snd_lane *lane,
                       const struct snd_range *r, bool is_top);
/* The same of ranges without anything inside: functions of a consumer. Not where groups divide what is of one kind. */
bool     snd_average_takes_leaves(const struct sonde_averages *a);
uint32_t snd_average_kind(void *user, const struct snd_lane *lane, const struct snd_range *shared);
void     snd_average_leaf(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                          const struct snd_known_leaf *known, uint32_t kind,
                          const struct snd_open_range *above, struct snd_open_range *parent);
/* Adds rows of what GPUs did and of what their profiling took; false when memory is out. */
bool snd_average_add_gpu(struct sonde_averages *a);
/* The row of a group, whose texts are the averages' own; NULL when memory is out. */
struct snd_average_row *snd_average_group_row(struct sonde_averages          *a,
                                              const struct snd_average_group *group);
/* For a walk to add ranges to; false: out of memory. */
bool snd_average_begin_groups(struct sonde_averages *a);
/* Frees what only the walk needs. */
void snd_average_end_groups(struct sonde_averages *a);
/* That, and the rows. */
void snd_average_release_rows(struct sonde_averages *a);

/* Adds a row; its number plus one, 0 when memory is out. */
uint32_t snd_average_add_row(struct sonde_averages *a, const struct snd_average_group *group);
/* Adds to what few rows have; false when memory is out. */
bool snd_average_add_more(struct sonde_averages *a, struct snd_average_row *row,
                          const struct snd_average_more *more);
/* Whether the range with these first_ .. comes before that of the row, which then has them. */
bool snd_average_is_first(const struct snd_average_row *row, int64_t first_ns, int64_t first_end_ns,
                          uint32_t thread, uint64_t serial);
extern const struct snd_division snd_average_division;
/* In the order in which their first ranges began. */
void snd_average_sort(struct sonde_averages *a);

#endif
