/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/calls/call_count.h - counts of calls: caller, callee, how often, how long.
 *
 * Each thread has a stack of the calls under way on it. An entry is a function and the edge
 * (caller, callee) by which it was called. Entering it adds the call to the edge's tally, which
 * lives in the trace; leaving it adds the time. So the trace of a killed program has its open
 * calls. Recursion of a function and of an edge is counted as cProfile does, for each thread
 * separately. In other modes calls are ranges or events of the timeline, and nothing is counted.
 *
 * The process counts while any session does, and a trace shows its counts. Where sessions overlap,
 * each also has counts of its own, as if it were alone: its stack for a thread is the process's
 * without the calls that were open when the session began (call_sessions.c).
 *
 * The hot path is here, inline: one clock read and a handful of loads and stores at each end.
 *
 * Layer:   probes. Knows nothing of Python: functions are numbers.
 * Threads: a caller holds one lock around everything (the interpreter's), but for a thread's end.
 */
#ifndef SND_PROBES_PYTHON_CALLS_CALL_COUNT_H
#define SND_PROBES_PYTHON_CALLS_CALL_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sonde/record.h>

#include "base/data/map.h"
#include "base/hints.h"
#include "format/layout.h"
#include "pystack/interpreter/c_calls.h"

struct snd_calls_edge {
    uint64_t *words; /* in the trace; or snd_calls_unused_words_, while nothing records */
    uint32_t  caller, callee;
    uint32_t  open;  /* it is on the stack: set and cleared by its outermost entry */
    uint32_t  epoch; /* of words */
};

/* A function on a thread: whether it is on the stack, and the edge by which it was called last. */
struct snd_calls_function {
    uint32_t               open;
    uint32_t               caller; /* of the edge, plus one; 0: no edge yet */
    struct snd_calls_edge *edge;
};

struct snd_calls_entry {
    struct snd_calls_edge *edge;    /* NULL in entry 0: the caller that is not recorded */
    const void            *key;     /* what must return to end it: a code object, a method */
    uint64_t               start;   /* ticks */
    uint64_t               inner;   /* ticks in its callees */
    const uint64_t        *counted; /* the words in which the call is counted */
    uint32_t               function;
    uint32_t               id;                        /* as an event of the timeline */
    uint8_t                calls;                     /* 1, or 0: a resumption */
    bool                   outermost, edge_outermost; /* of its function, its edge */
    /* Where calls are events: of a function in C (call_c.c), and of all those that are open. */
    struct snd_c_call c;
    uint64_t          c_known;
};

struct snd_calls_thread {
    struct snd_calls_entry    *stack;
    struct snd_calls_function *functions; /* by number */
    uint32_t                   depth, room, function_room;
    uint32_t                   epoch;
    uint32_t                   session; /* that it was last prepared for */
    uint32_t                   ended;   /* its thread is gone: another may have it */
    uint32_t                   tid;
    bool  is_main;   /* its first and last calls are the interpreter's start-up and exit */
    char *stack_low; /* lowest address of the thread's C stack */
    struct snd_calls_edges    *edges;
    struct snd_calls_counters *counters; /* call_counters.c; NULL: none yet */
    struct snd_calls_thread   *next;
    /* Of a session's stack: its session, and how many open calls of the process are not in it. */
    struct snd_calls_session *owner;
    uint32_t                  below;
    struct snd_calls_thread
        *sessions; /* of the process's stack: the sessions' stacks for this thread */
};

/* A session with counts of its own. */
struct snd_calls_session {
    uint32_t                  number;  /* in the trace, from 1; 0: the process */
    uint32_t                  session; /* numbers the times that it was on */
    bool                      on;
    uint64_t                  since;   /* ticks */
    struct snd_calls_session *next;    /* of all */
    struct snd_calls_session *next_on; /* of those that are on */
    struct snd_map            pairs;   /* (caller, callee) with counts in the session */
};

/* What is recorded of a call. */
enum snd_calls_mode {
    SND_CALLS_COUNTED,  /* words of its edge's tally */
    SND_CALLS_RANGES,   /* a range: it must nest with all others of its thread */
    SND_CALLS_EVENTS,   /* an event when it returns */
    SND_CALLS_COUNTERS, /* as COUNTED, and counters of the thread for its function */
};

/* One process, one probe. */
struct snd_calls_state {
    bool on;
    bool
        whole; /* on before the program's first line: the interpreter's start-up and exit are not counted */
    bool                      begun; /* the program has begun since */
    enum snd_calls_mode       mode;
    uint32_t                  session;    /* numbers the times it was on */
    uint32_t                  ids;        /* given to calls that are events, so far */
    uint64_t                  unbalanced; /* calls whose return was not seen */
    uint64_t                  lost;       /* calls for which there was no memory */
    struct snd_calls_session *sessions_on;
    bool                      has_more; /* there is more to do than counting for the process */

    /*
     * Enters the calls that were open before a thread's first event of the session; NULL: they are
     * not recorded. `entering`: the event is a call, whose own frame is on the stack already.
     */
    void (*adopt)(struct snd_calls_thread *t, bool entering);
};
extern struct snd_calls_state                    snd_calls;
extern SND_THREAD_LOCAL struct snd_calls_thread *snd_calls_self_;

/* ------------------------------------------------------------------- functions */

struct snd_calls_name {
    const char *name, *file;
    size_t      name_length, file_length;
    uint32_t    line;
    uint64_t    body;    /* distinguishes functions of one name and line */
    bool        outside; /* not part of the program, unless the program called it */
    bool        module;  /* the code of a file: the first one begins the program */
};

/* The number of a function, from 1; the same for equal names. 0: no memory. */
uint32_t snd_calls_function(const struct snd_calls_name *name);

/* ---------------------------------------------------------------- on and off */

/* `whole`: the program has not begun; what the interpreter does before and after it is left out. */
void snd_calls_start(enum snd_calls_mode mode, bool whole);
/* Calls still open count as if they ended now. */
void snd_calls_stop(void);

/* ------------------------------------------------------------------ sessions */

/* Calls are also counted for the session `number`, from now on. False: no memory. */
bool snd_calls_session_start(uint32_t number);
/* Its calls still open count as if they ended now. */
void snd_calls_session_stop(uint32_t number);
/*
 * Copies the process's counts to the session `number`: until now it was the only one, and needed
 * none of its own. `on`: it keeps counting. False: no memory.
 */
bool snd_calls_session_split(uint32_t number, bool on);
/* Ends the session; resets its counts to 0 if the recording still `has` them. Frees its number. */
void snd_calls_session_forget(uint32_t number, bool has);
/* Forgets all sessions. Their counts stay in the recording. */
void snd_calls_sessions_renew(void);
/* Records that the process's counts are exactly those of the session `number`; 0: of no session. */
void snd_calls_set_owner(uint32_t number);

/* ------------------------------------------------------------------ hot path */

/* Sets has_more, after the mode or the sessions have changed. */
static inline void snd_calls_set_more_(void)
{
    snd_calls.has_more = snd_calls.mode != SND_CALLS_COUNTED || snd_calls.sessions_on;
}

/* snd_calls_enter() and snd_calls_leave() where has_more is set. */
bool snd_calls_enter_more_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed);
void snd_calls_leave_more_(struct snd_calls_thread *t);

void snd_calls_sessions_enter_(struct snd_calls_thread *t, uint32_t function, const void *key,
                               bool resumed);
void snd_calls_sessions_leave_(struct snd_calls_thread *t);
void snd_calls_sessions_resume_(struct snd_calls_thread *t, uint64_t since);

void snd_calls_forget_suspended_(void);

struct snd_calls_thread *snd_calls_attach_(bool entering);
bool                     snd_calls_is_outside_(const struct snd_calls_thread *t, uint32_t function);
struct snd_calls_edge   *snd_calls_edge_(struct snd_calls_thread *t, uint32_t caller,
                                         uint32_t callee);
bool                     snd_calls_room_(struct snd_calls_thread *t, uint32_t function);
void                     snd_calls_renew_(struct snd_calls_thread *t);
/* What modes other than COUNTED do in addition: a range, or counters. */
void snd_calls_begin_more_(struct snd_calls_thread *t, uint32_t function, bool resumed);
void snd_calls_end_more_(struct snd_calls_thread *t, const struct snd_calls_entry *entry);
void snd_calls_counters_begin_(struct snd_calls_thread *t);
void snd_calls_counters_end_(struct snd_calls_thread *t, const struct snd_calls_entry *entry);
void snd_calls_counters_renew_(struct snd_calls_thread *t); /* open calls restart from now */
void snd_calls_counters_free_(struct snd_calls_thread *t);
/* The function's frame in the recording that is on. */
uint32_t snd_calls_frame_(uint32_t function);
/* Calls as events: they have no edge, and are not counted. */
bool snd_calls_push_event_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed);
void snd_calls_write_event_(struct snd_calls_thread *t, const struct snd_calls_entry *entry,
                            uint64_t now);
/* The innermost call is of a function in C. Once a call is pushed: in the thread's own recording. */
void snd_calls_set_c_(struct snd_calls_thread *t, const void *caller);
void snd_calls_renew_c_(struct snd_calls_thread *t);
/* Unwinds to the entry of `key`, if there is one; no return was seen of the entries above it. */
bool snd_calls_unwind_(struct snd_calls_thread *t, const void *key);

/* The calling thread's; NULL: no memory. `entering`: as adopt() takes it. */
static inline struct snd_calls_thread *snd_calls_mine(bool entering)
{
    struct snd_calls_thread *t = snd_calls_self_;

    if (SND_UNLIKELY(!t || t->session != snd_calls.session))
        t = snd_calls_attach_(entering);
    return t;
}

/* Adds the call itself, without its time. */
static inline void snd_calls_count_(struct snd_calls_entry *entry)
{
    uint64_t *words = entry->edge->words;

    entry->counted = words;
    words[SND_CALLS_CALLS] += entry->calls;
    if (entry->edge_outermost)
        words[SND_CALLS_PRIMITIVE] += entry->calls;
    if (entry->outermost)
        words[SND_CALLS_OUTERMOST] += entry->calls;
    if (SND_UNLIKELY(!entry->calls))
        words[SND_CALLS_RESUMPTIONS]++;
}

/*
 * On one stack, the process's or a session's. `more` is a constant where this is inlined: false if
 * the mode is COUNTED, so that a call that is only counted pays for no other mode.
 */
static inline __attribute__((always_inline)) bool snd_calls_push_(struct snd_calls_thread *t,
                                                                  uint32_t                 function,
                                                                  const void *key, bool resumed,
                                                                  const bool more)
{
    if (SND_UNLIKELY(t->depth + 1 >= t->room || function >= t->function_room) &&
        !snd_calls_room_(t, function))
        return false;
    if (SND_UNLIKELY(t->epoch != sonde_epoch()))
        snd_calls_renew_(t);
    if (more && snd_calls.mode == SND_CALLS_EVENTS)
        return snd_calls_push_event_(t, function, key, resumed);
    struct snd_calls_entry    *entry = &t->stack[t->depth];
    struct snd_calls_function *f = &t->functions[function];
    struct snd_calls_edge     *edge = f->edge;
    if (SND_UNLIKELY(f->caller != entry->function + 1)) {
        edge = snd_calls_edge_(t, entry->function, function);
        if (!edge)
            return false;
    }
    t->depth++;
    entry++;
    entry->edge = edge;
    entry->key = key;
    entry->inner = 0;
    entry->function = function;
    entry->calls = !resumed;
    entry->outermost = !f->open;
    entry->edge_outermost = !edge->open;
    f->open = 1;
    edge->open = 1;
    snd_calls_count_(entry);
    if (more && snd_calls.mode != SND_CALLS_COUNTED)
        snd_calls_begin_more_(t, function, resumed);
    entry->start = sonde_clock();
    return true;
}

static inline __attribute__((always_inline)) void snd_calls_pop_(struct snd_calls_thread *t,
                                                                 const bool               more)
{
    uint64_t now = sonde_clock();

    if (SND_UNLIKELY(t->epoch != sonde_epoch())) {
        snd_calls_renew_(t);
        now = sonde_clock(); /* open calls restarted after the first reading */
    }
    struct snd_calls_entry *entry = &t->stack[t->depth--];
    if (more && snd_calls.mode == SND_CALLS_EVENTS) {
        snd_calls_write_event_(t, entry, now);
        return;
    }
    struct snd_calls_edge *edge = entry->edge;
    uint64_t               ticks = now - entry->start, *words = edge->words;
    entry[-1].inner += ticks;
    words[SND_CALLS_SELF_TICKS] += ticks - entry->inner;
    if (entry->edge_outermost) {
        edge->open = 0;
        words[SND_CALLS_TOTAL_TICKS] += ticks;
    }
    if (entry->outermost) {
        t->functions[entry->function].open = 0;
        words[SND_CALLS_OUTERMOST_TICKS] += ticks;
    }
    if (more && snd_calls.mode != SND_CALLS_COUNTED)
        snd_calls_end_more_(t, entry);
}

/* A call begins, or goes on after a suspension. False: it is not counted, and must not be left. */
static inline bool snd_calls_enter(struct snd_calls_thread *t, uint32_t function, const void *key,
                                   bool resumed)
{
    if (SND_UNLIKELY(t->depth == 0) && snd_calls_is_outside_(t, function))
        return false;
    if (SND_UNLIKELY(snd_calls.has_more))
        return snd_calls_enter_more_(t, function, key, resumed);
    return snd_calls_push_(t, function, key, resumed, false);
}

/* The call of a function in C begins. `caller`: the Python frame that calls it. */
static inline void snd_calls_enter_c(struct snd_calls_thread *t, uint32_t function, const void *key,
                                     const void *caller)
{
    if (snd_calls_enter(t, function, key, false) &&
        SND_UNLIKELY(snd_calls.mode == SND_CALLS_EVENTS))
        snd_calls_set_c_(t, caller);
}

/* The open ones of the calling thread, where calls are events. */
extern const struct snd_c_calls snd_calls_c;

/* The innermost call ends, or is suspended. */
static inline void snd_calls_leave(struct snd_calls_thread *t)
{
    if (SND_UNLIKELY(snd_calls.has_more))
        snd_calls_leave_more_(t);
    else
        snd_calls_pop_(t, false);
}

/* The call of `key` ends. False if it never began: it was open before all this was on. */
static inline bool snd_calls_leave_key(struct snd_calls_thread *t, const void *key)
{
    if (SND_UNLIKELY(t->stack[t->depth].key != key) && !snd_calls_unwind_(t, key))
        return false;
    snd_calls_leave(t);
    return true;
}

/* ----------------------------------------------------------------- awaiting */

/* A coroutine (`key`: its frame) is suspended now; goes on as the innermost call. */
void snd_calls_suspend(const void *key);
/* It awaits nothing, though it does not run: an asynchronous generator that has yielded a value. */
void snd_calls_yield(const void *key);
void snd_calls_resume(struct snd_calls_thread *t, const void *key);

#endif
