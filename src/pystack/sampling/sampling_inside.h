/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/sampling/sampling_inside.h - what the files of sampling.h share.
 *
 *     sampling.c          making; rounds: whose turn it is to be looked at
 *     sampling_threads.c   which threads there are
 *     sampling_states.c    a look at one thread: does it run, what does it wait for
 *     sampling_stacks.c    its stack, read and named
 *     sampling_account.c   what it did with its time: runs of equal samples
 *
 * Layer:   pystack.
 * Threads: as sampling.h.
 */
#ifndef SND_PYSTACK_SAMPLING_SAMPLING_INSIDE_H
#define SND_PYSTACK_SAMPLING_SAMPLING_INSIDE_H

#include <time.h>

#include "base/hints.h"
#include "base/system/clock_ns.h"
#include "pystack/interpreter/code_objects.h"
#include "pystack/interpreter/stack_ids.h"
#include "pystack/unwind/native_frames.h"
#include "pystack/sampling/sampling.h"
#include "pystack/task.h"
#include "pystack/interpreter/py_thread_names.h"

#define SND_OWN_FILTER 16            /* words of the filter of our own code objects */
#define SND_FRAMES_NAMED 32          /* of a thread's stack, that need not be named again */
#define SND_CODES_EXPECTED 24        /* of a thread's stack, which are read along with it */
#define SND_WRITE_NS 100000000u      /* a run of equal samples is written at least so often */
#define SND_WRITE_FIRST_NS 10000000u /* the same, of a new thread: it may be killed soon */

/* A frame of a thread's last stack, and the id of the stack up to it. */
struct snd_sampling_named {
    uint64_t code, instr;
    uint64_t serial; /* of the code object: another may be at the address */
    uint32_t id;
};

/* How far a thread had got in what it records, as its lane says. All zero: it has recorded nothing. */
struct snd_sampling_mark {
    uint64_t cur, leaf;
    uint32_t epoch, chunks;
};

/* A stack as it was found. */
struct snd_sampling_stack {
    uint32_t                 id;   /* 0: none */
    uint64_t                 read; /* the recorder's clock when it was read */
    struct snd_sampling_mark mark; /* of the thread, then */
};

/* What a thread was doing, in a run of samples that found the same, between which it recorded nothing. */
struct snd_sampling_run {
    struct snd_sampling_stack stack; /* the last */
    uint32_t                  state, samples;
    uint64_t                  covered_ns;
    uint64_t                  begin; /* the recorder's clock; the end is the thread's seen_clock */
};

struct snd_sampling_thread {
    struct snd_py_thread python;
    uint64_t             looked_ns;  /* the last round in which it was looked at */
    uint64_t             free_ns;    /* the last one, by then, in which it did not hold the lock */
    uint32_t             record;     /* the recorder's number, 0: not asked yet */
    bool                 held;       /* it holds the lock, in this round */
    uint64_t             stopped_ns; /* of the process's, what it is accounted for */
    uint64_t             held_ns;    /* since when it has, as far as that is accounted for */
    bool                 awaited;    /* before that it waited for it */

    struct snd_task           task;
    struct snd_py_hint        hint;
    uint64_t                  codes[SND_CODES_EXPECTED]; /* of its stack when it was last named */
    uint32_t                  code_count;
    struct snd_sampling_named named[SND_FRAMES_NAMED]; /* of the same stack, outermost first */
    uint32_t                  named_count;
    uint64_t                  cpu_ns;     /* its clock, when that was last read */
    uint64_t                  unasked_ns; /* accounted for as run since then */
    uint64_t                  ran_ns;     /* by its clock, between the last two times */
    uint64_t asked_ns, lag_ns;            /* when it was read; so late it was, if it ran then */
    uint64_t known_ns;                    /* up to when it was exact, the time before */
    uint64_t top_at, top_instr;           /* its innermost frame, when it was last read */
    uint64_t seen_ns;                     /* up to when its time is accounted for */
    uint64_t seen_clock;                  /* the same moment, by the recorder's clock */
    uint64_t write_ns; /* its longest run; doubled with each, up to SND_WRITE_NS */
    uint32_t off;      /* its state while it is ready but does not run */
    int64_t  debt_ns;  /* what was accounted for as run, and has not been by its clock */
    uint64_t busy_ns, busy_ran_ns; /* while it was found running: so long, so much of it ran */
    bool     known;                /* stack and state are those it has now, if it has not run */
    bool     blocked;              /* when last asked, it waited */
    bool     listed;
    bool     native;     /* the stack has native frames */
    bool     moves;      /* it recorded something between its last two stacks */
    uint32_t vain_looks; /* of its last stacks: so many in a row needed an interruption */
    uint32_t state;
    struct snd_sampling_stack stack;
    struct snd_sampling_mark  mark; /* the latest that was read */
    struct snd_sampling_run   run;
};

struct snd_sampling {
    struct snd_python           python;
    struct snd_recorder         recorder;
    struct snd_codes            codes;
    struct snd_names            names;
    struct snd_py_active        active; /* where the names of threads are */
    struct snd_native          *native; /* owned; NULL: native frames are not wanted */
    uint64_t                    period_ns;
    struct snd_sampling_thread *threads; /* owned */
    uint64_t             *states; /* owned; of the same threads: what is searched in each round */
    uint32_t              thread_count, thread_room, state_room;
    struct snd_py_thread *list, *known; /* owned; as read last, and the time before */
    size_t                list_count, list_room, known_count;
    struct snd_py_interp  interps[SND_INTERPRETERS_MAX];
    size_t                interp_count;
    uint64_t              holders[SND_INTERPRETERS_MAX]; /* of the locks, in the last round */
    size_t                holder_count;
    uint64_t              list_due_ns, list_sign;
    uint64_t              whole_ns;        /* when the list of threads was last read to its end */
    bool                  has_more;        /* interpreters than those of `interps` */
    bool                  partial;         /* the list has not been whole for long */
    uint64_t        switches, switches_of; /* of the lock, when codes were compared, and whose */
    bool            lock_stayed;           /* with that thread, between the last two looks */
    uint64_t        own_ns;                /* of the sampling thread's clock, when last read */
    uint64_t        process_ns; /* of the clock of the process that is sampled, at that time */
    uint32_t        own_rounds; /* since then */
    uint64_t        round_ns;   /* the round before */
    struct snd_task self;       /* the sampling thread, in the process that it samples */
    uint64_t        delay_ns;   /* of that thread, when last asked */
    uint64_t        stopped_ns; /* in which the process was stopped, it included */
    uint64_t  stop_asked_ns; /* the round in which another process was last asked whether it is */
    bool      is_stopped;    /* it was */
    uint32_t  tid_offset, epoch, turn, restive;
    int64_t   credit_ns;             /* for looks at threads that do not hold the lock */
    uint64_t  now_ns, now_clock;     /* one moment by two clocks: when the round began */
    uint64_t  tick_ns;               /* the kernel's last tick, as of then */
    uint64_t  first_ns, first_clock; /* another: since then this recording has been sampled */
    uint64_t *tally, *gaps;          /* in the trace, or NULL */
    struct snd_sampling_counts counts;
    snd_running_fn            *read_running;
    void                      *user;
    bool                       own_table; /* of descriptors */
    const uint64_t            *own_codes; /* of what starts and stops us */
    size_t                     own_code_count;
    uint64_t own_filter[SND_OWN_FILTER]; /* a bit for each of them: most frames need no more */
    struct snd_py_stack stack, spare[2];
    struct sonde_lane   lane; /* of the thread whose stack that is */
};

/* Counts a word of SAMPLER. */
static inline void snd_sampling_count_(struct snd_sampling *s, enum snd_tally_word word, uint64_t n)
{
    s->counts.words[word] += n;
    if (s->tally)
        s->tally[word] += n;
}

/* Nothing is known of the thread; its time is accounted for from now on. */
void snd_sampling_start_anew_(const struct snd_sampling *s, struct snd_sampling_thread *t);

/* Counts a word of SAMPLER_GAPS, which a trace has only if there is something to count. */
void snd_sampling_count_gap_(struct snd_sampling *s, enum snd_tally_word word);

/* ----------------------------------------------------------- sampling_threads.c */

/*
 * Reads the lists of the interpreters' threads; new ones are added, those that ended are closed. MADE: they
 * are what they were if memory is out, which is counted.
 */
enum snd_round snd_sampling_list_(struct snd_sampling *s, uint64_t now);
/* Likewise, the interpreters first. */
enum snd_round snd_sampling_refresh_(struct snd_sampling *s, uint64_t now);
/* A number that changes when a thread state is created or the newest one is freed. */
uint64_t snd_sampling_sign_(const struct snd_sampling *s);
/* The thread with this state, NULL: it is not known. */
struct snd_sampling_thread *snd_sampling_find_(const struct snd_sampling *s, uint64_t state);
/* Writes what it has; the last of the threads gets its place. */
void snd_sampling_close_thread_(struct snd_sampling *s, uint32_t at);

/* ------------------------------------------------------------ sampling_states.c */

/*
 * Finds what the thread does, and accounts for it. Sets t->held: it holds the lock of its interpreter.
 * False: the thread has ended.
 */
bool snd_sampling_look_(struct snd_sampling *s, struct snd_sampling_thread *t, bool holds,
                        uint64_t now);
/* Which bit of `own_filter` is a code object's. */
static inline uint64_t snd_sampling_own_bit_(uint64_t code)
{
    return (code * 0x9e3779b97f4a7c15u) >> 54; /* 64 * SND_OWN_FILTER of them */
}

/* Reads the thread's CPU clock: has it run since that was last read? False: the thread has ended. */
bool snd_sampling_ask_clock_(const struct snd_sampling *s, struct snd_sampling_thread *t,
                             bool *moved);

/* ------------------------------------------------------------ sampling_stacks.c */

/* The thread's stack now. */
enum snd_py_read snd_sampling_read_stack_(struct snd_sampling *s, struct snd_sampling_thread *t,
                                          bool running, bool on_cpu,
                                          struct snd_sampling_stack *found);
const struct snd_py_interp *snd_sampling_interp_(const struct snd_sampling        *s,
                                                 const struct snd_sampling_thread *t);

/* ----------------------------------------------------------- sampling_account.c */

/*
 * The thread was found with this stack and state when the round began; before that it was as its fields
 * say.
 */
void snd_sampling_account_(struct snd_sampling *s, struct snd_sampling_thread *t,
                           const struct snd_sampling_stack *stack, uint32_t state);
/* Ends the run of equal samples. */
void snd_sampling_write_run_(struct snd_sampling *s, struct snd_sampling_thread *t);
/* Both clocks are read: what follows is of this moment. */
void snd_sampling_set_now_(struct snd_sampling *s);

#endif
