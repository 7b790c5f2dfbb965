/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/halt.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/*
 * Waits until it stands; *signal is the one that came first and is still to be delivered, or 0.
 * False when it has ended, or this program was told to: then what is still traced is let go by its
 * end, which also spares it a wait for a thread that the kernel does not let stop.
 */
static bool wait_for_stop(pid_t tid, int *signal)
{
    int status;

    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
        return false;
    /* Our stop, or that of a process that was stopped anyway and stays so, is no signal. */
    *signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return true;
}

/* One that was killed while it stood is ours to bury, before its own parent can. */
static void let_go(pid_t tid, int signal)
{
    if (ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal) != 0 && errno == ESRCH)
        waitpid(tid, NULL, __WALL);
}

enum snd_py_read snd_halt_read(void *python, uint32_t tid, uint64_t state,
                               struct snd_py_stack *stack)
{
    pid_t task = (pid_t)tid;
    int   signal;

    if (ptrace(PTRACE_SEIZE, task, NULL, NULL) != 0)
        return errno == ESRCH ? SND_PY_UNREAD : SND_PY_TORN;
    if (ptrace(PTRACE_INTERRUPT, task, NULL, NULL) != 0 || !wait_for_stop(task, &signal))
        return SND_PY_UNREAD;
    enum snd_py_read read = snd_python_frames(python, state, stack);
    let_go(task, signal);
    return read;
}
