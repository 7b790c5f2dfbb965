/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/numbered.h - threads that mark numbered ranges, and the proof that all are there.
 *
 * Range n of a thread carries n where the id of its tensor list would be, so that a reader can
 * tell a lost, repeated or torn event from a good one.
 */
#ifndef SND_TESTS_NUMBERED_H
#define SND_TESTS_NUMBERED_H

#include "recorded.h"

#define NUMBERED_THREADS 4096

struct numbered {
    uint32_t last[NUMBERED_THREADS]; /* number of the last begin, by thread */
    uint32_t depth[NUMBERED_THREADS];
    uint64_t begins, ends;
    bool     gaps; /* numbers may be missing, but must rise */
};

static inline void numbered_mark(uint32_t number)
{
    sonde_begin_id(sonde_intern("numbered", 8), number);
    sonde_end();
}

static inline bool numbered_check(const struct sonde_event *event, void *user)
{
    struct numbered *n = user;

    assert_true(event->thread < NUMBERED_THREADS);
    if (event->kind == SONDE_EVENT_BEGIN) {
        uint32_t expected = n->last[event->thread] + 1;
        if (n->gaps ? event->begin.shapes < expected : event->begin.shapes != expected)
            fail_msg("thread %u: range %u after %u", event->thread, event->begin.shapes,
                     expected - 1);
        assert_int_equal(n->depth[event->thread], 0);
        n->last[event->thread] = event->begin.shapes;
        n->depth[event->thread]++;
        n->begins++;
    } else if (event->kind == SONDE_EVENT_END) {
        if (n->depth[event->thread] > 0)
            n->depth[event->thread]--;
        else
            assert_true(n->gaps);
        n->ends++;
    } else if (event->kind == SONDE_EVENT_GAP) {
        n->depth[event->thread] = 0;
    }
    return true;
}

static inline struct numbered *numbered_read(struct sonde_trace *trace, bool gaps)
{
    struct numbered *n = calloc(1, sizeof *n);

    assert_non_null(n);
    n->gaps = gaps;
    recorded_walk(trace, numbered_check, n);
    return n;
}

#endif
