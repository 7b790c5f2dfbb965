/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_threads.c - the stacks of threads: made at a thread's first call, used again after its end. */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probes/python/calls/call_inside.h"

static pthread_key_t end_key;

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
