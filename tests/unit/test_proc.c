/* SPDX-License-Identifier: Apache-2.0 */
/* base/system/proc_files.c: the state and the parent of a process, whatever its name is; threads by their names. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/system/proc_files.h"

/* A child with a name that looks like the end of the name's field, stopped. */
static pid_t start_stopped(void)
{
    int   status;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_NAME, "a) Z 1 (b");
        raise(SIGSTOP);
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    return pid;
}

static void end(pid_t pid)
{
    siginfo_t info;

    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* leaves the zombie */
}

static void follows_a_process_to_its_end(void **state)
{
    (void)state;
    pid_t pid = start_stopped();
    assert_int_equal(snd_proc_state(pid), 'T');
    assert_int_equal(snd_proc_parent(pid), getpid());
    end(pid);
    assert_int_equal(snd_proc_state(pid), 'Z');
    assert_int_equal(snd_proc_parent(pid), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(snd_proc_state(pid), 'X');
    assert_int_equal(snd_proc_parent(pid), 0);
}

static void reads_what_fits_and_ends_it(void **state)
{
    char text[8];

    (void)state;
    pid_t pid = start_stopped();
    assert_int_equal(snd_proc_read(pid, "status", text, sizeof text), 7);
    assert_string_equal(text, "Name:\ta");
    assert_int_equal(snd_proc_read(pid, "no-such-file", text, sizeof text), 0);
    assert_string_equal(text, "");
    end(pid);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void reads_the_first_line(void **state)
{
    char text[64] = "before";

    (void)state;
    snd_proc_line("/proc/sys/kernel/ostype", text, sizeof text);
    assert_string_equal(text, "Linux");
    snd_proc_line("/proc/sys/kernel/no-such-setting", text, sizeof text);
    assert_string_equal(text, "");
}

static void *end_when_told(void *pipe)
{
    char byte;

    return read(*(int *)pipe, &byte, 1) < 0 ? pipe : NULL;
}

static void counts_threads_by_name(void **state)
{
    int       ends[2];
    pthread_t other;

#ifdef __SANITIZE_THREAD__
    skip(); /* it creates a thread of its own with the first of the program's */
#endif
    (void)state;
    size_t before = snd_proc_threads_besides("sonde");
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pthread_create(&other, NULL, end_when_told, ends), 0);
    assert_int_equal(snd_proc_threads_besides("sonde"), before + 1);
    assert_int_equal(pthread_setname_np(other, "sonde-other"), 0);
    assert_int_equal(snd_proc_threads_besides("sonde"), before);
    assert_int_equal(snd_proc_threads_besides("sonde-another"), before + 1);
    close(ends[1]);
    assert_int_equal(pthread_join(other, NULL), 0);
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_a_process_to_its_end),
        cmocka_unit_test(reads_what_fits_and_ends_it),
        cmocka_unit_test(reads_the_first_line),
        cmocka_unit_test(counts_threads_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
