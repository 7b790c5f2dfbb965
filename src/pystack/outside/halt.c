/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/outside/halt.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/system/recorder_library.h"

/*
 * Waits until the thread has stopped; *signal is a signal that arrived first and must still be
 * delivered, or 0. False if the thread has ended, or if this program was asked to end: the kernel
 * then resumes the thread when we exit, and we do not wait for a thread that cannot be stopped.
 */
static bool wait_for_stop(pid_t tid, int *signal)
{
    int status;

    if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
        return false;
    /*
     * Our own stop, and the stop of a process that was stopped already, is not a signal to deliver.
     */
    *signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    return true;
}

/* A thread that was killed while stopped must be reaped by us before its parent can reap it. */
static void let_go(pid_t tid, int signal)
{
    if (ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal) != 0 && errno == ESRCH)
        waitpid(tid, NULL, __WALL);
}

enum snd_py_read snd_halt_read(void *python, struct snd_task *thread, uint64_t state,
                               struct snd_py_hint *hint, struct snd_py_rider *rider,
                               struct snd_py_stack *stack)
{
    pid_t task = (pid_t)thread->tid;
    int   signal;

    if (ptrace(PTRACE_SEIZE, task, NULL, NULL) != 0)
        return errno == ESRCH ? SND_PY_UNREAD : SND_PY_TORN;
    if (ptrace(PTRACE_INTERRUPT, task, NULL, NULL) != 0 || !wait_for_stop(task, &signal))
        return SND_PY_UNREAD;
    rider->at = snd_recorder_clock();
    enum snd_py_read read = snd_python_halted(python, state, hint, rider, stack);
    let_go(task, signal);
    return read;
}
