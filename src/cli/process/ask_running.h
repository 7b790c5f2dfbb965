/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/process/ask_running.h - has a Python program that is running listen, as one of `sonde run --standby` does.
 *
 * By a script that its interpreter runs (pystack/outside/hand_over.h): Python 3.14 and later.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_PROCESS_ASK_RUNNING_H
#define SND_CLI_PROCESS_ASK_RUNNING_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * It listens in `folder`, record-PID in the current one, which is made; as it may do since the last time. Waits for that for
 * some seconds, not longer than `*quit` is 0. Errors: whatever prevents it, in words for a user.
 */
SND_CHECKED enum sonde_status snd_running_listen(pid_t pid, char folder[static PATH_MAX],
                                                 const volatile int *quit, struct sonde_error *err);

#endif
