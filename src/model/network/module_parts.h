/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/module_parts.h - what the files of the modules share.
 *
 *     modules.c      ranges added up by module
 *     module_calls.c  how often each was called, and the memory that a call took
 *     module_paths.c  modules by their paths
 *     module_facts.c  what the trace says of modules in facts
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_NETWORK_MODULE_PARTS_H
#define SND_MODEL_NETWORK_MODULE_PARTS_H

#include "base/data/map.h"
#include "model/ranges/assembly.h"
#include "model/ranges/live_memory.h"

#define SND_NO_MODULE 0u /* the root: what belongs to none */

struct snd_module_own { /* of one module, without its children's */
    int64_t  forward_ns, backward_ns, cpu_bytes, device_bytes, activation_bytes;
    int64_t  gpu_forward_ns, gpu_backward_ns;
    double   flops, backward_flops, macs, backward_macs;
    int64_t  base_bytes, peak_bytes; /* held when its latest call began; most above that */
    uint64_t calls, idle_calls;      /* recorded; of these, without an operator */
    uint64_t inferred_calls;         /* by its operators, and those of what lies in it */
    uint32_t last_child;
    uint32_t first_module, first_name; /* the operator that it began with */
    bool     has_operators;            /* forward, of its own */
    bool     holds_inferred;           /* calls of a module in it are inferred */
};

struct snd_module_forward {
    int64_t  start_ns;
    uint32_t module;
};

/* A recorded call that has not returned. */
struct snd_module_call {
    uint32_t module;
    bool     has_operator; /* one began in it */
    int64_t  base_bytes;   /* held when it began */
};

/* What a thread is doing. */
struct snd_module_visitor {
    uint32_t module;   /* of the latest outermost forward operator */
    uint32_t backward; /* module of the latest backward function */
    uint32_t taker;    /* of the latest memory allocated or freed by a forward operator */
    struct snd_module_call *open; /* outermost first; owned */
    uint32_t                open_count, open_room;
};

struct sonde_modules {
    struct sonde_trace    *trace;
    struct sonde_module   *nodes;
    struct snd_module_own *owns;
    uint32_t               count, node_room, own_room;
    struct snd_map         by_name; /* (parent, text of the last part) */
    struct snd_texts       texts;   /* parts of paths, paths, classes */
    struct snd_map
        by_path; /* number of the whole path's text in trace->names; module, 1: within it */
    struct snd_map             by_sequence;
    struct snd_module_forward *forwards;
    uint32_t                   forward_count, forward_room;
    struct snd_module_visitor *visitors; /* by thread */
    struct snd_live            live;
    int64_t                    live_bytes; /* of all that was seen taken */
    uint64_t                   passes;
    struct snd_assembly        assembly;
    const struct snd_consumer *beside; /* or NULL */
};

/* As sonde_modules_new(); `beside`, or NULL, is a consumer of the same walk, which has the rows of ranges. */
SND_CHECKED enum sonde_status snd_modules_beside(struct sonde_trace        *trace,
                                                 enum sonde_flops_mode      flops,
                                                 const struct snd_consumer *beside,
                                                 struct sonde_modules     **out,
                                                 struct sonde_error        *err);

/* The root, or a child of `parent`; `name`, `path`: numbers in texts. SND_NO_MODULE: out of memory. */
uint32_t snd_module_add(struct sonde_modules *m, uint32_t parent, uint32_t name, uint32_t path);

/* The module of a path, added with its ancestors; SND_NO_MODULE for none. */
uint32_t snd_module_find(struct sonde_modules *m, struct sonde_text path);

/* The module whose path a string of the lane's process is. */
uint32_t snd_module_of(struct sonde_modules *m, const struct snd_lane *lane, uint32_t id);

/*
 * The module of a range in compiled code: `compiled` is its COMPILED attribute (0: it has none), a string of
 * the lane's process; `module` is the one that the code runs in.
 */
uint32_t snd_module_within(struct sonde_modules *m, const struct snd_lane *lane, uint32_t module,
                           uint32_t compiled);

/* Whether a module is `ancestor`, or one inside it. */
bool snd_module_lies_in(const struct sonde_modules *m, uint32_t module, uint32_t ancestor);

/* A forward operator of `module`, in which `name` is the first: it may begin calls that nobody recorded. */
void snd_module_infer(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module,
                      uint32_t name);

/* Calls as they were recorded: MODULE_CALL and MODULE_RETURN. */
void snd_module_called(struct sonde_modules *m, const struct snd_lane *lane, bool returns,
                       uint32_t path);

/* An operator ran in the calls that are open on its thread. */
void snd_module_worked(struct snd_module_visitor *v);

/* Memory was taken or freed; by a forward operator of `module`, unless that is SND_NO_MODULE. */
void snd_module_took(struct sonde_modules *m, struct snd_module_visitor *v, uint32_t module,
                     int64_t bytes);

/* What the nodes show as calls, recorded or inferred. */
void snd_module_calls_show(struct sonde_modules *m);

/* Parameters, shapes and times that the probe or a benchmark recorded as facts. */
void snd_modules_read_facts(struct sonde_modules *m);

#endif
