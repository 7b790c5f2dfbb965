/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_threads.c - the stacks of threads: made at a thread's first call, used again after its end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/python/calls/call_inside.h"

#define STACK_FIRST 256u

SONDE_THREAD_LOCAL_ struct snd_calls_thread *snd_calls_self_;
struct snd_calls_thread                     *snd_calls_threads_;
static pthread_key_t                         end_key;

/* Runs without the interpreter's lock: only marks the context as free for another thread. */
static void end_thread(void *context)
{
    struct snd_calls_thread *t = context;

    __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
}

/* Only the thread that forked lives on. */
static void forget_others_in_child(void)
{
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next)
        if (t != snd_calls_self_) {
            t->session = snd_calls.session - 1; /* their open calls are the parent's */
            t->ended = 1;
            snd_calls_sessions_in_child_(t);
        }
}

static bool make_key(void)
{
    static int made; /* 1 yes, -1 failed */

    if (made == 0)
        made = pthread_key_create(&end_key, end_thread) == 0 &&
                       pthread_atfork(NULL, NULL, forget_others_in_child) == 0
                   ? 1
                   : -1;
    return made > 0;
}

static char *find_stack_low(void)
{
    pthread_attr_t attr;
    void          *low = NULL;
    size_t         size;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &size) != 0)
            low = NULL;
        pthread_attr_destroy(&attr);
    }
    return low;
}

void snd_calls_reset_(struct snd_calls_thread *t)
{
    snd_calls_drop_edges_(t->edges);
    free(t->functions);
    t->functions = NULL;
    t->function_room = 0;
    t->depth = 0;
    t->epoch = sonde_epoch();
    t->session = t->owner ? t->owner->session : snd_calls.session;
}

struct snd_calls_thread *snd_calls_new_thread_(struct snd_calls_session *session)
{
    struct snd_calls_thread *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->edges = snd_calls_new_edges_();
    t->stack = calloc(STACK_FIRST, sizeof *t->stack);
    t->room = STACK_FIRST;
    t->owner = session;
    t->session = (session ? session->session : snd_calls.session) - 1;
    if (!t->edges || !t->stack) {
        snd_calls_free_thread_(t);
        return NULL;
    }
    return t;
}

void snd_calls_free_thread_(struct snd_calls_thread *t)
{
    if (t->edges)
        snd_calls_drop_edges_(t->edges);
    snd_calls_counters_free_(t);
    free(t->edges);
    free(t->functions);
    free(t->stack);
    free(t);
}

/* Open calls of a thread that ended must not pass to the thread that takes its context. */
void snd_calls_close_all_(struct snd_calls_thread *t)
{
    while (t->depth > 0)
        snd_calls_pop_(t, true);
}

struct snd_calls_thread *snd_calls_attach_(bool entering)
{
    struct snd_calls_thread *t = snd_calls_self_;

    if (!t) {
        if (!make_key())
            return NULL;
        for (t = snd_calls_threads_; t && !__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE);
             t = t->next)
            ;
        if (!t && (t = snd_calls_new_thread_(NULL))) {
            t->next = snd_calls_threads_;
            snd_calls_threads_ = t;
        }
        if (!t || pthread_setspecific(end_key, t) != 0)
            return NULL;
        t->stack_low = find_stack_low();
        t->tid = (uint32_t)syscall(SYS_gettid);
        t->is_main = t->tid == (uint32_t)getpid();
        if (t->ended)
            snd_calls_sessions_ended_(t);
        if (t->ended && t->session == snd_calls.session)
            snd_calls_close_all_(t);
        t->ended = 0;
        snd_calls_self_ = t;
    }
    if (t->session != snd_calls.session) {
        snd_calls_reset_(t);
        if (snd_calls.adopt)
            snd_calls.adopt(t, entering);
    }
    return t;
}

bool snd_calls_room_(struct snd_calls_thread *t, uint32_t function)
{
    if (t->depth + 1 >= t->room) {
        size_t                  room = (size_t)t->room * 2;
        struct snd_calls_entry *stack = realloc(t->stack, room * sizeof *stack);
        if (!stack)
            goto fail;
        t->stack = stack;
        t->room = (uint32_t)room;
    }
    if (function >= t->function_room) {
        size_t room = snd_calls_function_room_ > function ? snd_calls_function_room_
                                                          : (size_t)function + 1;
        struct snd_calls_function *list = realloc(t->functions, room * sizeof *list);
        if (!list)
            goto fail;
        memset(list + t->function_room, 0, (room - t->function_room) * sizeof *list);
        t->functions = list;
        t->function_room = (uint32_t)room;
    }
    return true;

fail:
    snd_calls.lost++;
    return false;
}
