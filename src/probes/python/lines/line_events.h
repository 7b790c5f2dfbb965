/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_events.h - which line of a chosen function runs, and since when.
 *
 * A chosen function's code object has a table: for each of its lines the place of its tally in
 * the trace. A source (sys.monitoring, or a trace function before 3.12) says when a line begins
 * and when a frame is left; each thread has a stack of the frames of chosen functions that have a
 * line under way. Time and memory are two uses of the same events.
 *
 *     thread -> [frame, table, line, since] [frame, table, line, since] ..
 *                        |
 *                        +-> time[line]   -> hits, ticks in the trace
 *                        +-> memory[line] -> occurrences, increment, .. in the trace
 *
 * A line's time is that from its beginning to the next line's of the same frame, or to the
 * frame's end: what it calls is in it. It is counted when it ends, as line_profiler does. A session
 * that is not alone has places of its own besides (line_shares.c).
 *
 * Layer:   probes.
 * Threads: with the interpreter lock held.
 */
#ifndef SND_PROBES_PYTHON_LINES_LINE_EVENTS_H
#define SND_PROBES_PYTHON_LINES_LINE_EVENTS_H

#include "probes/python/common.h"
#include "base/hints.h"

enum { SND_LINE_TIME = 1, SND_LINE_MEMORY = 2 };

/* The counts of a function for one session that counts for itself. */
struct snd_line_share {
    uint32_t               number; /* the session's, in the trace */
    unsigned               use;    /* SND_LINE_TIME or SND_LINE_MEMORY */
    bool                   on, has_base;
    uint32_t               epoch; /* of the places */
    int                    process;
    uint64_t               stamp; /* lines that began with an earlier one are not the session's */
    uint64_t             **places;
    struct snd_line_share *next;
};

struct snd_line_table {
    PyCodeObject *code;
    PyCodeObject *owner; /* the function that the lines are shown for; of a nested one, the outer */
    uint32_t      first, count;
    uint32_t      epoch; /* of the recording that the places belong to */
    uint32_t      wanted;
    uint32_t      uses[2];        /* by how many sessions, for time and for memory */
    uint32_t      function, file; /* ids of names in the recording */
    bool          has_base;       /* memory in use at its first call is counted */
    bool          has_more;       /* more than time is counted: memory, or for a session */
    int           process;        /* that has it */
    uint64_t    **time, **memory; /* places, NULL until a line is run */
    struct snd_line_share *shares;
};

/* Counters of the thread (memory_counts.h) when a line began. */
struct snd_line_memory {
    uint64_t allocated_bytes, freed_bytes;
    int64_t  net_bytes, outer_peak_bytes;
    uint64_t inner_allocated_bytes, inner_freed_bytes; /* by lines of the same table, inside it */
    bool     is_begun;
};

struct snd_line_run {
    const void            *frame;
    struct snd_line_table *table;
    uint32_t               line;  /* index in the table */
    uint64_t               since; /* 0: not to be counted as time */
    uint64_t               stamp; /* snd_line_stamp when it began; older if no session counted */
    struct snd_line_memory memory;
};

#define SND_LINE_LEFT 16u

/* A function that the thread has left, and what the thread held then. */
struct snd_line_left {
    const struct snd_line_table *table;
    uint32_t                     epoch;
    uint64_t                     stamp;
    int64_t                      net_bytes;
};

/* A frame that was entered and has not reached its first line, and what the thread held then. */
struct snd_line_entry {
    const void *frame; /* NULL: none */
    uint32_t    line;  /* of its `def`, as an index of the table */
    int64_t     net_bytes;
};

struct snd_line_thread {
    struct snd_line_run    *base, *top, *end; /* top: the innermost, base - 1 when there is none */
    void                   *outer;            /* the trace function that ours replaced, and calls */
    const void             *adopted;          /* a frame that was under way when tracing began */
    char                   *stack_low;        /* where the C stack must not reach */
    struct snd_line_left    left[SND_LINE_LEFT]; /* the latest ones */
    uint32_t                left_next;
    struct snd_line_entry   entry;
    struct snd_line_thread *next, **link; /* in the list of threads */
};

extern Py_ssize_t                       snd_line_index; /* of code objects' extra words */
extern bool                             snd_lines_on;
extern uint64_t                         snd_line_stamp; /* numbers the begins of sessions */
extern __thread struct snd_line_thread *snd_line_thread_ __attribute__((tls_model("initial-exec")));

/* The table of a chosen function; NULL for any other. */
static inline struct snd_line_table *snd_line_table_of(PyCodeObject *code)
{
    struct snd_line_table *table = snd_py_extra(code, snd_line_index);

    return SND_UNLIKELY(table != NULL) && table->wanted ? table : NULL;
}

/* NULL when memory ran out. */
struct snd_line_thread               *snd_line_thread_new(void);
static inline struct snd_line_thread *snd_line_mine(void)
{
    struct snd_line_thread *mine = snd_line_thread_;

    return SND_LIKELY(mine != NULL) ? mine : snd_line_thread_new();
}

/* Python was started again: forgets all open frames. */
void snd_line_tables_renew(void);

/* Lines of `table` that are under way, in any thread, are not counted; NULL: of every table. */
void snd_line_give_up(const struct snd_line_table *table);

uint64_t *snd_line_place(struct snd_line_table *table, uint32_t line, unsigned use);
/* The tally of a session, or of the process (0); NULL: no room. */
uint64_t *snd_line_words(const struct snd_line_table *table, uint32_t line, unsigned use,
                         uint32_t session);
unsigned  snd_line_word_count(unsigned use);
void      snd_line_renew(struct snd_line_table *table);
bool snd_line_push(struct snd_line_thread *mine, const void *frame, struct snd_line_table *table);
bool snd_line_find(struct snd_line_thread *mine, const void *frame);

/* The table of `code`, made if there is none; NULL with an exception set. */
struct snd_line_table *snd_line_table_get(PyCodeObject *code, PyCodeObject *owner);

/* line_tallies.c */
struct snd_line_bytes {
    uint64_t allocated, freed, in_use;
    int64_t  peak;
};
void snd_line_add_bytes(uint64_t *place, const struct snd_line_bytes *bytes);
/* All counts of the process, of time or of memory, are that session's from now on; 0: several sessions'. */
void snd_line_set_owner(bool memory, uint32_t session);

/* line_shares.c */
void snd_line_free_shares(struct snd_line_table *table);
void snd_line_share_time(struct snd_line_run *run, uint64_t ticks);
void snd_line_share_memory(struct snd_line_run *run, const struct snd_line_bytes *bytes);
/* left: what the thread left the function with, or NULL. */
void snd_line_share_call(struct snd_line_table *table, uint32_t line, uint64_t in_use,
                         bool is_outermost, const struct snd_line_left *left);
/* The line has `bytes` more. */
void snd_line_share_more(struct snd_line_table *table, uint32_t line, int64_t bytes);
/* False: no memory. */
bool snd_line_share_choose(struct snd_line_table *table, uint32_t number, unsigned use, bool on);
void snd_line_share_announce(struct snd_line_table *table, uint32_t line);
/* Gives all counts so far to that session. `on`: it goes on, with the current lines too. False: no memory. */
bool snd_line_share_split(struct snd_line_table *table, uint32_t number, unsigned use, bool on);
/* Drops the session's share; `has`: its counts are in the recording, and go to 0. */
void snd_line_share_forget(struct snd_line_table *table, uint32_t number, bool has);

/* line_memory.c */
void snd_line_memory_leave(struct snd_line_thread *mine, struct snd_line_table *table);
/* A chosen function is called, or resumes, at `line`. */
void snd_line_enter(struct snd_line_thread *mine, const void *frame, struct snd_line_table *table,
                    int line, bool resumed);

/* Sets has_more, after `wanted` or the shares have changed. */
static inline void snd_line_set_more(struct snd_line_table *table)
{
    table->has_more = table->wanted & SND_LINE_MEMORY || table->shares;
}

/* -------------------------------------------------------------------- the hot path */

/* What a line begins and ends besides its time. */
void snd_line_begin_more_(struct snd_line_run *run);
void snd_line_close_more_(struct snd_line_run *run, uint64_t now);

/*
 * The current line ends at `now`. Returns when the next one begins: the time to find a line's
 * tally, which in a forked child may create its file, is not counted.
 */
static inline uint64_t snd_line_close(struct snd_line_run *run, uint64_t now)
{
    struct snd_line_table *table = run->table;
    uint64_t               next = now;

    if (SND_UNLIKELY(table->epoch != sonde_epoch()) && table->wanted)
        snd_line_renew(table);
    if (SND_LIKELY(table->wanted & SND_LINE_TIME && run->since)) {
        uint64_t *place = table->time[run->line];
        if (SND_UNLIKELY(!place)) {
            place = snd_line_place(table, run->line, SND_LINE_TIME);
            next = sonde_clock();
        }
        if (SND_LIKELY(place != NULL)) {
            place[SND_LINE_RUNS]++;
            place[SND_LINE_TICKS] += now - run->since;
        }
    }
    if (SND_UNLIKELY(table->has_more))
        snd_line_close_more_(run, now);
    return next;
}

/* Line number `line` of `frame`, which runs `code`, begins. */
static inline void snd_line_begin(struct snd_line_thread *mine, const void *frame,
                                  PyCodeObject *code, long line)
{
    uint64_t             now = sonde_clock();
    struct snd_line_run *run = mine->top;

    if (SND_LIKELY(run >= mine->base && run->frame == frame && run->table->code == code)) {
        now = snd_line_close(run, now);
    } else if (snd_line_find(mine, frame) && mine->top->table->code == code) {
        run = mine->top;
        now = snd_line_close(run, now);
    } else {
        struct snd_line_table *table = snd_line_table_of(code);
        if (!table || !snd_line_push(mine, frame, table))
            return;
        run = mine->top;
    }
    uint32_t index = (uint32_t)(line - (long)run->table->first);
    if (SND_UNLIKELY(index >= run->table->count)) {
        mine->top--;
        return;
    }
    run->line = index;
    run->since = now;
    if (SND_UNLIKELY(run->table->has_more))
        snd_line_begin_more_(run);
}

/* The frame is left: it returns, yields or is unwound. Without effect if no line is under way. */
static inline void snd_line_end(struct snd_line_thread *mine, const void *frame)
{
    uint64_t now = sonde_clock();

    if (mine->top < mine->base)
        return;
    if (SND_UNLIKELY(mine->top->frame != frame) && !snd_line_find(mine, frame))
        return;
    snd_line_close(mine->top, now);
    struct snd_line_table *table = mine->top->table;
    mine->top--;
    if (SND_UNLIKELY(table->wanted & SND_LINE_MEMORY))
        snd_line_memory_leave(mine, table);
}

/* ------------------------------------------------------------------------- sources */

/* False with an exception set. `watch`: one more chosen code object, or one less. */
struct snd_line_source {
    const char *name;
    bool (*start)(void);
    void (*stop)(void);
    bool (*watch)(PyCodeObject *code, uint32_t wanted);
    void (*adopt)(void); /* chosen functions that run already are recorded too; or NULL */
    void (*renew)(void); /* Python begins anew: see common.h */
};
extern const struct snd_line_source snd_line_monitoring; /* 3.12 and later */
extern const struct snd_line_source snd_line_tracing;    /* before */

#endif
