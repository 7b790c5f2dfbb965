/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sentinel.c - signals to the process group while the sentinel is replaced.
 *
 * fork() is wrapped by the linker (--wrap): what is sent right before it comes when the old sentinel
 * has been read and the new one is not there yet.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/process/sentinel.h"

pid_t __real_fork(void);
pid_t __wrap_fork(void);

static int before_fork[2]; /* sent to the group by the next fork() */

pid_t __wrap_fork(void)
{
    for (int i = 0; i < 2; i++) {
        if (before_fork[i])
            kill(0, before_fork[i]);
        before_fork[i] = 0;
    }
    return __real_fork();
}

/* Takes the signal, which must be there; whether it was sent to the group. */
static bool take(struct snd_sentinel *sentinel, int number)
{
    const struct timespec now = { 0, 0 };
    sigset_t              set;

    sigemptyset(&set);
    sigaddset(&set, number);
    assert_int_equal(sigtimedwait(&set, NULL, &now), number);
    return snd_sentinel_has(sentinel, number);
}

static int start(void **state)
{
    static struct snd_sentinel sentinel;
    sigset_t                   set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    snd_sentinel_start(&sentinel);
    *state = &sentinel;
    return sentinel.pid > 0 ? 0 : -1;
}

static int end(void **state)
{
    snd_sentinel_end(*state);
    return 0;
}

static void test_to_the_group_or_to_us(void **state)
{
    for (int i = 0; i < 3; i++) {
        kill(0, SIGINT);
        assert_true(take(*state, SIGINT));
        kill(getpid(), SIGINT);
        assert_false(take(*state, SIGINT));
    }
}

static void test_another_while_it_is_replaced(void **state)
{
    kill(0, SIGINT);
    before_fork[0] = SIGUSR1;
    assert_true(take(*state, SIGINT));
    assert_true(take(*state, SIGUSR1));
    kill(getpid(), SIGUSR1);
    assert_false(take(*state, SIGUSR1));
}

static void test_the_same_while_it_is_replaced(void **state)
{
    kill(0, SIGINT);
    before_fork[0] = SIGINT;
    before_fork[1] = SIGUSR1;
    assert_true(take(*state, SIGINT));
    assert_true(take(*state, SIGINT));
    assert_true(take(*state, SIGUSR1));
    kill(getpid(), SIGINT);
    assert_false(take(*state, SIGINT));
}

static void test_the_same_before_and_after_it_is_replaced(void **state)
{
    kill(0, SIGINT);
    before_fork[0] = SIGINT;
    assert_true(take(*state, SIGINT));
    kill(0, SIGINT); /* the kernel makes one of it and of the one before */
    assert_true(take(*state, SIGINT));
    kill(getpid(), SIGINT);
    assert_false(take(*state, SIGINT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_to_the_group_or_to_us, start, end),
        cmocka_unit_test_setup_teardown(test_another_while_it_is_replaced, start, end),
        cmocka_unit_test_setup_teardown(test_the_same_while_it_is_replaced, start, end),
        cmocka_unit_test_setup_teardown(test_the_same_before_and_after_it_is_replaced, start, end),
    };

    if (getenv("SONDE_TEST_NO_FORK")) {
        puts("an emulator keeps pending signals for itself");
        return 77;
    }
    setpgid(0, 0); /* a group of its own: whoever runs the tests gets none of it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
