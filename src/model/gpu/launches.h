/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/launches.h - calls of a GPU's API, and where in the program they were made.
 *
 * A GPU's work is found by its correlation; the call that asked for it lies in the range, module and
 * Python line to which the work belongs. What runs backward belongs to the module and line of its
 * forward operator.
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_GPU_LAUNCHES_H
#define SND_MODEL_GPU_LAUNCHES_H

#include "base/text/buf.h"
#include "model/ranges/assembly.h"

#define SND_WHERE_STEP (SONDE_NONE - 1) /* name of all ProfilerStep#N */
#define SND_WHERE_WITHIN 0x40000000u    /* a module that is a text of snd_launches.within */

/* Where the host was. Names are numbers of trace->names, ids are the process's; or none. */
struct snd_where {
    uint32_t process;
    uint32_t name;          /* the innermost range that is no call of the API; SONDE_NONE: none */
    uint32_t module;        /* path; SONDE_NONE: none */
    uint32_t stack, shapes; /* 0: none */
};

struct snd_launch {
    int64_t  begin_ns, end_ns;
    uint32_t process, thread, correlation;
    uint32_t name;  /* of the function: a number of trace->names */
    uint32_t where; /* a number of places */
    bool     waits; /* a call in which the host waits for the GPU */
};

struct snd_launches {
    struct sonde_trace *trace;
    struct snd_launch  *items; /* by thread, then by begin */
    uint32_t            count, room;
    struct snd_where   *places;
    uint32_t            place_count, place_room;
    uint32_t           *first; /* of each thread, and one more */
    struct snd_map      by_correlation, by_place;
    struct snd_texts
                   within; /* paths that no record has whole: of backward code that was compiled */
    struct snd_map by_sequence;
    struct snd_forward {
        int64_t  outer_ns, inner_ns;
        uint32_t stack, module;
    } * forwards;
    uint32_t             forward_count, forward_room;
    struct snd_consumer  consumer;
    struct snd_assembly *assembly; /* while the walk lasts */
    bool                 is_done;
};

/*
 * In two parts: they wait at the trace for the next walk (snd_wait()), unless there can be none; and are there, which
 * takes a walk if nobody has made one. An error of the second frees them. Owns: the caller frees *out with
 * snd_launches_free(); a page of many views has them lent (model/kept.h).
 */
SND_CHECKED enum sonde_status snd_launches_wait(struct sonde_trace   *trace,
                                                struct snd_launches **out, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_launches_finish(struct snd_launches **l, struct sonde_error *err);
/* Both. */
SND_CHECKED enum sonde_status snd_launches_new(struct sonde_trace *trace, struct snd_launches **out,
                                               struct sonde_error *err);
void                          snd_launches_free(struct snd_launches *l); /* or NULL */
/* What snd_where_now() needs, without launches: frees what belongs to `l`. */
void snd_launches_release(struct snd_launches *l);

/* The call that launched this work; NULL: it is not in the trace. */
const struct snd_launch *snd_launch_of(const struct snd_launches *l, uint32_t process,
                                       uint32_t correlation);
/* A call of the thread in which the host waited at this moment; NULL: it did not wait. */
const struct snd_launch *snd_launch_waiting(const struct snd_launches *l, uint32_t thread,
                                            int64_t ns);

/* The innermost open range of a thread that is no call of the API; NULL: none. */
const struct snd_open_range *snd_where_caller(const struct snd_lane *lane);
/* The index of the call site of a thread's innermost range; UINT32_MAX: out of memory. */
uint32_t snd_where_now(struct snd_launches *l, const struct snd_lane *lane,
                       const struct snd_open_range *innermost);

/* Passes a parent's call site to its child: the open() of a consumer that asks snd_where_now(). `user` is not used. */
void snd_where_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent);
/* Notes a forward operator, to which what runs backward belongs: for its close(). */
void snd_where_closed(struct snd_launches *l, const struct snd_lane *lane,
                      const struct snd_open_range *range);
/* Whether there can be such operators. */
SND_CHECKED enum sonde_status snd_where_needs_close(struct sonde_trace *trace, bool *needs,
                                                    struct sonde_error *err);

struct sonde_text snd_where_name(const struct snd_launches *l, const struct snd_where *where);
struct sonde_text snd_where_module(const struct snd_launches *l, const struct snd_where *where);
/* Appends "file(line): function" of its innermost Python frame: where in it, not where it begins. */
void snd_where_line(const struct snd_launches *l, const struct snd_where *where,
                    struct sonde_buffer *text);

#endif
