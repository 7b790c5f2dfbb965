/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/assembly.h - from events to ranges: what every model is built on.
 *
 * Keeps a stack of open ranges for each thread, applies attributes and memory to the innermost
 * one, closes what gaps and the end of the trace leave open, and hands every range over once,
 * when it closes, children first. Nothing is kept of a range after that.
 *
 * torch's rules are applied where a range is one of torch's: its utility operators are left out
 * (what they did is their parent's), and a backward engine's range borrows the sequence number
 * of the function that it runs. A range that closes around others that stay open is not their
 * parent from then on. One that another thread closes is asynchronous: it has no self time, and its
 * children move to its parent.
 *
 * This is the only place where begins and ends become ranges: every view and every export with
 * durations is built on it, and so all agree. Exports that write ranges "as recorded"
 * (consumer.as_recorded) get torch's utility operators too, and each range's attributes by key.
 * What is open at the end of a closed file ends where its thread stopped; of a file that was not
 * closed, at the thread's last event.
 *
 * Layer: model (sees base/, format/, read/). Threads: one at a time.
 */
#ifndef SND_MODEL_RANGES_ASSEMBLY_H
#define SND_MODEL_RANGES_ASSEMBLY_H

#include "format/fields.h"
#include "model/flops/flops.h"
#include "model/ranges/live_memory.h"
#include "read/walk/device_work.h"
#include "read/walk/trace_walk.h"
#include "sonde/model.h"

#define SND_INNER_MAX 1024u  /* descendants still open when a range closes; no program has more */
#define SND_DEPTH_MAX 65536u /* depth of one thread's stack; deeper ranges are only counted */

/* What a name means to torch, or to us. */
enum snd_name_flag {
    SND_NAME_HIDDEN = 1,   /* a utility operator that torch's lists leave out */
    SND_NAME_EVALUATE = 2, /* autograd::engine::evaluate_function: X */
    SND_NAME_STEP = 4,     /* ProfilerStep#N */
    SND_NAME_FORMULA = 8,  /* FLOPs are counted, and there is a formula for it */
    SND_NAME_NO_WORK = 16, /* which says that it computes nothing itself */
    SND_NAME_LEARNS = 32,  /* which may need the arguments of what is inside */
    SND_NAME_PASS = 64,    /* a pass that a benchmark of a model marks (docs/MODEL.md) */
};

#define SND_NO_SEQUENCE ((int64_t)-1)

/* A range's values. Ids are the process's; name is an index of trace->names. */
struct snd_range {
    int64_t  start_ns, total_ns;                  /* total: once closed */
    int64_t  child_ns;                            /* direct children's total */
    int64_t  cpu_bytes, device_bytes;             /* net, children included */
    int64_t  child_cpu_bytes, child_device_bytes; /* of the direct children */
    int64_t  told_cpu_bytes; /* cpu_bytes as events tell them, whatever a consumer has put right */
    int64_t  device_ns;      /* GPU time of work that it launched, descendants included */
    int64_t  own_device_ns;  /* of that, launched by itself or by API calls directly inside it */
    uint64_t api;            /* API attribute of a GPU API call; 0: not an API call */
    int64_t  launched_ns;    /* as torch counts: work given to it ... */
    int64_t  launched_inside_ns; /* ... and to ranges in it. The consumer's: torch_gpu.h */
    double   flops, child_flops; /* its own; of everything inside */
    double   macs, moved_bytes;  /* its own, by formula or as marked */
    int64_t  sequence;           /* autograd's, or SND_NO_SEQUENCE */
    int64_t  back_sequence;      /* of the backward function that contains it ... */
    uint32_t back_thread;        /* ... or is, and the thread of its forward */
    bool     is_back;            /* there is such a function */
    uint64_t serial;             /* begins of its thread, from 1 */
    uint64_t key;                /* by which an END_KEY finds it; 0 none */
    uint64_t frame;              /* FRAME attribute of a Python call; 0 none */
    uint64_t awaited;            /* AWAITED attribute: raw ticks */
    uint32_t name, shapes, stack, module, compiled;
    uint32_t strides, arguments, overload, fwd_thread, keywords;
    uint32_t collective;          /* COLLECTIVE attribute: a string's id; 0: it is none */
    int64_t  collective_sequence; /* of its group, or SND_NO_SEQUENCE */
    uint32_t children;            /* direct ones so far */
    uint32_t node;                /* the consumer's own: tree.c, events.c, modules.c */
    uint32_t python_depth;        /* Python frames on the stack when it began; 0: not recorded */
    uint8_t  scope;               /* enum sonde_scope */
    uint8_t  formula;             /* enum snd_flops_answer, once judged */
    bool     judged;              /* its FLOPs are known */
    bool     claimed;             /* an ancestor's FLOPs are counted already */
    bool     hidden;              /* not handed over */
    bool     is_op;               /* made by a framework: a CALL, or it has a scope */
    bool     is_async, unfinished;
};

#define SND_RANGE_ATTRS 28 /* attributes with keys below it are kept as recorded */
/* What tells kinds of ranges apart, and so is handed to consumers as it comes: bits of enum snd_attr_key. */
#define SND_ATTRS_HANDED                                                                           \
    ((uint64_t)1 << SND_ATTR_FRAME | (uint64_t)1 << SND_ATTR_API | (uint64_t)1 << SND_ATTR_ASYNC | \
     (uint64_t)1 << SND_ATTR_PYTHON_DEPTH)

/* An open range. `held`: an only child of the same name, kept back by averages.c. */
struct snd_open_range {
    struct snd_range range, held;
    bool             holds;
    uint32_t         place; /* its number of ancestors, when it closes */
    uint64_t         order; /* of begins over the walk, from 1 */
    uint32_t         mark;  /* of one consumer of a walk, its own, as is `number` */
    uint64_t         number;
    struct {
        uint32_t module, stack;
    } around; /* of the ranges that it lies in (snd_where_open()), where it has none itself */
    uint32_t attr_mask;              /* the rest only where ranges are handed over as recorded */
    uint64_t attrs[SND_RANGE_ATTRS]; /* by key, where attr_mask has the bit */
};

/* Memory totals are not clamped: differences of sums are exact. */
struct snd_bytes {
    uint64_t cpu, device;
};

/* Memory allocated by a process's threads, to charge to user-named ranges of its other threads. */
struct snd_shared_memory {
    struct snd_bytes sum;
    uint32_t         lanes; /* with such a range */
};

struct snd_lane {
    struct snd_open_range    *open; /* outermost first */
    uint32_t                  depth, room;
    uint64_t                  deeper; /* open ranges beyond SND_DEPTH_MAX */
    uint32_t                  thread, process;
    const struct snd_process *from;
    int64_t                   first_ns, last_ns;
    int64_t                   lost_ns; /* of the last gap from which on events were lost */
    bool                      loses;   /* there is one */
    uint64_t                  events, begins;
    uint32_t                  torch_thread; /* torch's id of the thread, 0 if not recorded */
    struct snd_known_leaf    *leaves;       /* of its process; NULL: they are not taken */
    uint32_t                  named;        /* open ranges that the user named */
    bool             shares;  /* one of them is charged memory that other threads allocate */
    struct snd_bytes own;     /* the part of the shared total that it allocated itself */
    struct snd_bytes settled; /* of other threads, up to here: its ranges have it */
};

struct snd_assembly;

#define SND_CONSUMERS_MAX 12u /* of one walk: a model, what is beside it, those that wait */
#define SND_LEAF_CALLS_MAX 6u /* of those that take leaves */

/* What ranges of one call record, or spans of one name, share: once with and once without FLOPs that an outer range has. */
struct snd_known_leaf {
    double   flops;
    uint32_t kinds[SND_LEAF_CALLS_MAX]; /* the consumers' numbers; not asked for until `known` */
    bool     known;
    bool     has_sequence; /* each has a number of autograd's */
};

typedef void snd_range_fn(void *user, struct snd_lane *lane, struct snd_open_range *range,
                          struct snd_open_range *parent);
typedef void snd_leaf_fn(void *user, const struct snd_lane *lane, const struct snd_leaf *leaf,
                         const struct snd_known_leaf *known, uint32_t kind,
                         const struct snd_open_range *above, struct snd_open_range *parent);

/*
 * How a consumer's walk may be divided by threads, among several threads of ours (divided.c). A part of it is a consumer that is
 * handed what some of the trace's threads did, in order; what parts have found is added up by join(), one after the other, and comes to
 * what the consumer would have found itself, to the bit: else a part says so (snd_assembly_undivide()), and one walk is made as
 * if there had been none. Memory, links, ends by other threads and what GPUs did tell of several threads: such a trace is not divided.
 */
struct snd_division {
    /* Puts another user, and what functions it needs, into `part`, a copy of the consumer. False: out of memory. */
    bool (*split)(void *user, struct snd_consumer *part);
    /* Adds what a part has found; false: out of memory. */
    bool (*join)(void *user, void *part);
    void (*free_part)(void *part);
    /* Memory that a part may take at most. */
    uint64_t (*part_bytes)(const void *user);
};

/*
 * Who is handed what a walk meets. Those of one walk are called in turn, in the order of their list: what one
 * sets in a range the next ones find there. Any function may be NULL. `parent` is NULL for a root.
 */
struct snd_consumer {
    void                 *user;
    enum sonde_flops_mode flops;       /* what to count beyond what is marked */
    bool                  any_flops;   /* it does not look at them: they may be counted */
    bool                  as_recorded; /* no range is left out; attributes are kept by key */
    bool                  no_ranges;   /* it looks at none, and memory's may be NULL */
    bool                  no_leaves;   /* it looks at none that has nothing inside */
    bool                  by_time;     /* events of threads must come in the order of time */
    bool by_process; /* those of each process must: a walk by time may be by process
                                          within stretches, if all of its list do with that */
    bool
        early_rows; /* row() may have a leaf when it begins: before what other threads do until its end */
    struct snd_consumer *next; /* of those that wait at the trace */
    /* The walk begins, and lasts until `end`. */
    void (*begin)(void *user, struct snd_assembly *assembly);
    snd_range_fn *open;
    snd_range_fn *close; /* the range is complete */
    /* Memory allocated (freed: `bytes` negative); `innermost` NULL: outside any range. */
    void (*memory)(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                   struct snd_open_range *innermost);
    /* Marks, steps, gaps (before they close ranges), counters, links, samples. */
    void (*other)(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words);
    /* An open range was given an attribute of SND_ATTRS_HANDED, which it has from now on. */
    void (*attribute)(void *user, struct snd_lane *lane, struct snd_open_range *range, uint8_t key);
    /* A counter of the thread has risen: COUNTED of format/attrs.def. */
    void (*counted)(void *user, struct snd_lane *lane, uint64_t value);
    /* A call of a module begins or returns: MODULE_CALL, MODULE_RETURN; `path` is a string's id. */
    void (*module_call)(void *user, struct snd_lane *lane, bool returns, uint32_t path);
    /* An open range has a new parent from now on. */
    snd_range_fn *move;
    /*
     * Ranges without anything inside, which most are, in one piece instead of open() and close(), if all
     * consumers of the walk have it or need it not. `kind` is asked once for all of one call record or span's
     * name and gives them a number (UINT32_MAX: out of memory); the range has what they share: no times, no
     * sequence, not what it lies in. leaf() has a range's own, and that number. `above`: the range that it
     * lies in, even if that is hidden. Where ranges are handed over as recorded, nothing of another thread
     * happens during a leaf.
     */
    uint32_t (*kind)(void *user, const struct snd_lane *lane, const struct snd_range *shared);
    snd_leaf_fn *leaf;
    /*
     * A model that the consumer is beside has added a range, once it is folded, to a row: of averages (then
     * r->node is how many ranges it lies in) snd_average_id(), of modules the node. False ends the walk.
     */
    bool (*row)(void *user, uint32_t id, const struct snd_lane *lane, const struct snd_range *r);
    /*
     * Averages that the consumer is beside have found how many bytes an ALLOC or FREE comes to: of one that does not say, what is
     * known to be held there. Instead of memory().
     */
    void (*sized)(void *user, const struct snd_lane *lane, int64_t ns, const uint64_t *words,
                  int64_t net_bytes);
    /* What comes from now on is of `ns` or later (snd_visitor.settled): where the walk is by_process. */
    void (*settled)(void *user, int64_t ns);
    /* The walk went to its end, and all ranges are closed. */
    void (*end)(void *user, const struct snd_assembly *assembly);
    const struct snd_division
        *division; /* NULL: its walk cannot be divided. `end` is not called of parts */
};

struct snd_assembly_stats {
    struct snd_walk_stats walk;
    uint64_t              ranges;
    uint64_t              unfinished;         /* closed by a gap or by the end of the trace */
    uint64_t              ends_without_begin; /* of ranges already open when the recording began */
    uint64_t              too_deep;
    uint64_t              gaps;          /* among the walk's events, and none of the program's */
    uint64_t              missing_names; /* ids that the trace does not define */
};

/* Functions of consumers, with their users. */
struct snd_range_calls {
    uint32_t count;
    struct snd_range_call {
        snd_range_fn *call;
        void         *user;
    } items[SND_CONSUMERS_MAX];
};

struct snd_leaf_calls {
    uint32_t count;
    struct {
        uint32_t (*kind)(void *user, const struct snd_lane *lane, const struct snd_range *shared);
        snd_leaf_fn *call;
        void        *user;
    } items[SND_LEAF_CALLS_MAX];
};

struct snd_assembly {
    struct sonde_trace       *trace;
    struct snd_consumer       consumers[SND_CONSUMERS_MAX];
    uint32_t                  consumer_count;
    struct snd_range_calls    opens, closes; /* of them: what is called most */
    struct snd_leaf_calls     leaf_calls;
    enum sonde_flops_mode     flops_mode;
    bool                      as_recorded;
    bool                      by_process;
    struct snd_lane          *lanes;  /* one for each thread of the trace */
    struct snd_shared_memory *shared; /* one for each process */
    struct snd_assembly_stats stats;
    struct snd_visitor        visitor;
    struct snd_map            keys;       /* open ranges with a key: to their thread */
    uint64_t                  begins;     /* over the walk */
    uint8_t                  *name_flags; /* enum snd_name_flag of each name of the trace */
    struct snd_flops         *flops;      /* NULL: only what is marked counts */
    const struct snd_devices *devices;    /* what GPUs did; NULL: nothing */
    struct snd_known_leaf   **leaves;     /* of each process (leaf_calls.c), or NULL */
    bool                      out_of_memory;
    bool                      undivided; /* a part that cannot be one */
};

/* Called by parts (struct snd_division) that could not be added up to the bit. */
static inline void snd_assembly_undivide(struct snd_assembly *assembly)
{
    assembly->undivided = true;
    assembly->visitor.stop = true;
}

/* Called by consumers that run out of memory. */
static inline void snd_assembly_stop(struct snd_assembly *assembly)
{
    assembly->out_of_memory = true;
    assembly->visitor.stop = true;
}

/*
 * Adds memory that `lane` allocated (or freed) to the innermost range of every other thread of the process
 * that a person named; they have it when they close. True: there is one.
 */
bool snd_share_memory(struct snd_assembly *assembly, struct snd_lane *lane, const uint64_t *words,
                      int64_t counted);

/*
 * Walks the trace, once, for the consumers of the list and for those that wait at the trace (snd_wait(): the
 * summary, on which the ledger under every view is based, and the advice), if this walk counts the FLOPs that
 * they look at: they come first, and wait no longer. By thread is what a consumer does with: a trace of several threads goes by
 * time all the same if another consumer needs it, where another thread ends a range (END_KEY), or memory is looked at and some is freed.
 * That is known before the walk begins (kinds.h), so that none starts over. `assembly` need not be initialised; its lanes are there until it is
 * released, which must be done whatever this returns.
 * Errors: SONDE_E_NOMEM, SONDE_E_UNSUPPORTED.
 */
SND_CHECKED enum sonde_status snd_assemble(struct snd_assembly *assembly, struct sonde_trace *trace,
                                           enum sonde_order           order,
                                           const struct snd_consumer *consumers, uint32_t count,
                                           struct sonde_error *err);
void                          snd_assembly_release(struct snd_assembly *assembly);

/* Has `consumer` wait at the trace, after those that do already: it is on the list of the next walk. */
void snd_wait(struct sonde_trace *trace, struct snd_consumer *consumer);
/* It waits no longer, whether or not there was a walk. */
void snd_wait_end(struct sonde_trace *trace, const struct snd_consumer *consumer);
/* Walks for those that wait, if nobody has: `done` tells of the one that asks. */
SND_CHECKED enum sonde_status snd_wait_walk(struct sonde_trace *trace, bool done,
                                            struct sonde_error *err);

/*
 * Whether a range that is the only child of another of the same name is a wrapper's, which lists
 * show as one, as torch does (profiler_util._remove_dup_nodes: record_function included). What a
 * program marks itself is recursion: each call counts.
 */
static inline bool snd_range_folds(const struct snd_range *parent, const struct snd_range *child)
{
    return parent->is_op && child->is_op;
}

/* enum sonde_scope of a SCOPE attribute: torch's number plus one. */
static inline uint8_t snd_scope_of(uint64_t value)
{
    return value > 0 && value <= 256 ? (uint8_t)(value - 1) : 0;
}

#define SND_EACH_CONSUMER(a, c)                                                             \
    for (const struct snd_consumer *c = (a)->consumers, *c##_end = c + (a)->consumer_count; \
         c < c##_end; c++)

/* The attributes of a call as recorded, as an open range has them. */
void snd_call_keep(const struct snd_table_call *call, const uint64_t *sequence, uint32_t *attr_mask,
                   uint64_t attrs[SND_RANGE_ATTRS]);

/* enum snd_name_flag, or-ed. */
uint8_t snd_name_judge(struct snd_text name);

/* torch's id of the thread; the operating system's id if torch's was not recorded. */
uint32_t snd_torch_thread(const struct snd_assembly *assembly, const struct snd_lane *lane);

/* Puts a range's memory right, to which the assembly has added what the event told. */
static inline void snd_range_memory(struct snd_range *r, const uint64_t *words, int64_t counted)
{
    int64_t *sum = SND_DEVICE_TYPE(SND_LOW(words[1])) == 0 ? &r->cpu_bytes : &r->device_bytes;

    if (counted != snd_net_bytes(words))
        *sum = snd_add(*sum, counted);
}

#endif
