/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/calls/call_inside.h"

bool snd_calls_unwind_(struct snd_calls_thread *t, const void *key)
{
    uint32_t at = t->depth;

    while (at > 0 && t->stack[at].key != key)
        at--;
    if (at == 0)
        return false;
    for (; t->depth > at; snd_calls.unbalanced++)
        snd_calls_leave(t);
    return true;
}

bool snd_calls_enter_more_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed)
{
    if (!snd_calls_push_(t, function, key, resumed, true))
        return false;
    if (snd_calls.sessions_on)
        snd_calls_sessions_enter_(t, function, key, resumed);
    return true;
}

void snd_calls_leave_more_(struct snd_calls_thread *t)
{
    if (snd_calls.sessions_on)
        snd_calls_sessions_leave_(t);
    snd_calls_pop_(t, true);
}

/* -------------------------------------------------------------------- on and off */

void snd_calls_start(enum snd_calls_mode mode, bool whole)
{
    snd_calls.whole = whole;
    snd_calls.begun = false;
    snd_calls.session++;
    snd_calls.mode = mode;
    snd_calls_set_more_();
    snd_calls.ids = 0;
    snd_calls.unbalanced = 0;
    snd_calls.lost = 0;
    snd_calls.on = true;
}

void snd_calls_stop(void)
{
    while (snd_calls.sessions_on)
        snd_calls_session_stop(snd_calls.sessions_on->number);
    snd_calls.on = false;
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next) {
        if (t->session != snd_calls.session)
            continue;
        snd_calls_close_all_(t);
        snd_calls_reset_(t);
    }
    snd_calls_forget_suspended_();
}
