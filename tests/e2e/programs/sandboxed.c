/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records with threads and a child under a seccomp filter that kills at any system call but those
 * of docs/SANDBOX.md.
 *
 *     sandboxed TRACE        records 2 x 1,000 ranges, and 1,000 in a child; its descriptors closed
 *     sandboxed --list       prints the names of the calls, one a line
 */
#define _GNU_SOURCE /* close_range */

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sonde/record.h>

#define CALL(name)         \
    {                      \
#name, __NR_##name \
    }

static const struct {
    const char *name;
    int         number;
} of_the_recorder[] = {
    CALL(adjtimex),       CALL(clock_gettime),
    CALL(clone),          CALL(clone3),
    CALL(close),          CALL(close_range),
    CALL(exit),           CALL(fallocate),
    CALL(fcntl),          CALL(fstat),
    CALL(fstatfs),        CALL(ftruncate),
    CALL(futex),          CALL(getcwd),
    CALL(getpid),         CALL(getppid),
    CALL(getrandom),      CALL(gettid),
    CALL(ioctl),          CALL(madvise),
    CALL(mmap),           CALL(mprotect),
    CALL(mremap),         CALL(munmap),
    CALL(newfstatat),     CALL(openat),
    CALL(pidfd_getfd),    CALL(pidfd_open),
    CALL(prctl),          CALL(prlimit64),
    CALL(pread64),        CALL(pwrite64),
    CALL(read),           CALL(readlink),
    CALL(rseq),           CALL(rt_sigaction),
    CALL(rt_sigprocmask), CALL(sched_getaffinity),
    CALL(sched_yield),    CALL(set_robust_list),
    CALL(uname),          CALL(unlinkat),
    CALL(write),
};
/* of this program itself */
static const int of_its_own[] = { __NR_exit_group, __NR_wait4, __NR_brk };

enum {
    RECORDERS = sizeof of_the_recorder / sizeof of_the_recorder[0],
    OWN = sizeof of_its_own / sizeof of_its_own[0]
};

static int enter_sandbox(void)
{
    struct sock_filter filter[2 * (RECORDERS + OWN) + 2];
    unsigned short     n = 0;

    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < RECORDERS + OWN; i++) {
        int number = i < RECORDERS ? of_the_recorder[i].number : of_its_own[i - RECORDERS];
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0,
                                                   1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = { n, filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *mark(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        SONDE_RANGE("range");
    }
    return argument;
}

int main(int argc, char **argv)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    pthread_t            thread;
    int                  status = 1;

    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "--list") == 0) {
        for (unsigned i = 0; i < RECORDERS; i++)
            puts(of_the_recorder[i].name);
        return 0;
    }
    if (!enter_sandbox())
        return 77;
    options.path = argv[1];
    if (sonde_start(&options, NULL) != SONDE_OK)
        return 1;
    close_range(3, ~0U, 0); /* as daemons do: the trace has to be opened again */
    if (pthread_create(&thread, NULL, mark, NULL) != 0)
        return 1;
    mark(NULL);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        mark(NULL);
        _exit(sonde_stop(NULL) == SONDE_OK ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return sonde_stop(NULL) == SONDE_OK && status == 0 ? 0 : 1;
}
