/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde/functions.h - functions of Python programs, who calls whom, and what was counted for their lines.
 * model.h includes it.
 *
 * Owns: what sonde_X_new() makes, the caller frees with sonde_X_free(), before it closes the trace.
 * Threads: as a trace: one at a time.
 */
#ifndef SONDE_FUNCTIONS_H
#define SONDE_FUNCTIONS_H

#include "sonde/trace.h"

SONDE_C_BEGIN_

/* -------------------------------------------------------------- functions */

/*
 * The functions of a Python program and who calls whom, by cProfile's rules: self time is a
 * function's own, total time is that of its outermost calls, a call is primitive if the function
 * was not running already. A resumption of a generator or coroutine is not a call; what it runs
 * is counted, what it awaits is kept apart. C functions have the file "~" and the line 0.
 * Counted in place (tallies) or from ranges, whichever a process has; equal functions of several
 * processes are one.
 */
struct sonde_function {
    struct sonde_text file, name;
    uint32_t          line; /* where it begins */
    uint64_t          calls, primitive_calls;
    int64_t           self_ns, total_ns;
    uint64_t          resumptions;
    int64_t           awaiting_ns;
    uint32_t          first_caller, caller_count; /* numbers of sonde_functions_caller */
    uint32_t          first_callee, callee_count; /* numbers of sonde_functions_callee */
};
struct sonde_call {
    uint32_t caller, callee; /* functions; caller SONDE_NONE: called from outside */
    uint64_t calls, primitive_calls;
    int64_t  self_ns, total_ns; /* of the callee, when called by this caller */
};
struct sonde_functions; /* opaque */
/* Owns: the caller, until sonde_functions_free(). */
SONDE_API SONDE_CHECKED enum sonde_status sonde_functions_new(struct sonde_trace      *trace,
                                                              struct sonde_functions **out,
                                                              struct sonde_error      *err);
SONDE_API void                            sonde_functions_free(struct sonde_functions *functions);
SONDE_API size_t sonde_functions_count(const struct sonde_functions *functions);
/* In the order in which they were first seen; NULL past the last. */
SONDE_API const struct sonde_function *sonde_functions_row(const struct sonde_functions *functions,
                                                           size_t                        index);
/* Calls by callee, and the same by caller: of a function, `count` from its `first`. */
SONDE_API const struct sonde_call *sonde_functions_caller(const struct sonde_functions *functions,
                                                          size_t                        index);
SONDE_API const struct sonde_call *sonde_functions_callee(const struct sonde_functions *functions,
                                                          size_t                        index);

/*
 * A call tree from who calls whom: the time of a function with several callers is divided
 * among them in proportion to the time measured for each, as gprof does, so that the sum is
 * preserved. A function is not expanded inside itself. Node 0 is the root, of no
 * function; paths below a thousandth of the whole are left out.
 */
struct sonde_call_node {
    uint32_t function;                          /* SONDE_NONE: the root */
    uint32_t parent, first_child, next_sibling; /* 0: none; children longest first */
    uint32_t depth;
    double   calls; /* divided as the times are */
    int64_t  total_ns, self_ns;
};
struct sonde_call_tree; /* opaque */
SONDE_API SONDE_CHECKED enum sonde_status
sonde_call_tree_new(const struct sonde_functions *functions, struct sonde_call_tree **out,
                    struct sonde_error *err);
SONDE_API void                          sonde_call_tree_free(struct sonde_call_tree *tree);
SONDE_API size_t                        sonde_call_tree_count(const struct sonde_call_tree *tree);
SONDE_API const struct sonde_call_node *sonde_call_tree_node(const struct sonde_call_tree *tree,
                                                             size_t                        index);

/* ------------------------------------------------------------------ lines */

/* What was counted for lines: time (line_profiler's job) or memory (memory_profiler's). */
enum sonde_line_kind { SONDE_LINES_TIME, SONDE_LINES_MEMORY };

struct sonde_line {
    uint32_t line;
    uint64_t hits; /* times it ran */
    int64_t  time_ns;
    int64_t  increment_bytes; /* net, of all its runs */
    uint64_t allocated_bytes, freed_bytes;
    uint64_t usage_bytes; /* of the process after the line: the latest run's */
    uint64_t peak_bytes;  /* peak above what was in use when it began */
};
/* A function whose lines were counted; its lines are `count` from `first`, in their order. */
struct sonde_line_function {
    struct sonde_text file, name;
    uint32_t          line; /* where it begins */
    uint32_t          first, count;
    uint64_t          hits;
    int64_t           time_ns;  /* of its lines */
    struct sonde_text source;   /* source text of code that is in no file (a notebook's cell) */
    bool              has_stat; /* the file's status when it was recorded: */
    uint64_t          stat_size;
    int64_t           stat_mtime_ns;
};
struct sonde_lines; /* opaque */
SONDE_API SONDE_CHECKED enum sonde_status sonde_lines_new(struct sonde_trace  *trace,
                                                          enum sonde_line_kind kind,
                                                          struct sonde_lines **out,
                                                          struct sonde_error  *err);
SONDE_API void                            sonde_lines_free(struct sonde_lines *lines);
SONDE_API size_t sonde_lines_function_count(const struct sonde_lines *lines);
/* In the order in which they were registered; NULL past the last. */
SONDE_API const struct sonde_line_function *sonde_lines_function(const struct sonde_lines *lines,
                                                                 size_t                    index);
SONDE_API const struct sonde_line *sonde_lines_line(const struct sonde_lines *lines, size_t index);

SONDE_C_END_
#endif
