/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_state.c - what all files of the folder see: the process's state, its threads. */
#include "probes/python/calls/call_inside.h"
#include "base/hints.h"

struct snd_calls_state                    snd_calls;
struct snd_calls_thread                  *snd_calls_threads_;
SND_THREAD_LOCAL struct snd_calls_thread *snd_calls_self_;
