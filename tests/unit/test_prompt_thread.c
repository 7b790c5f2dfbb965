/* SPDX-License-Identifier: Apache-2.0 */
/* base/system/prompt_thread.h: of the calling thread alone, and only what it says: policy and niceness stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/utsname.h>

#include <cmocka.h>

#include "base/system/prompt_thread.h"

static struct snd_sched_attr ask(void)
{
    struct snd_sched_attr attr = { .size = sizeof attr };

    assert_int_equal(syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0), 0);
    return attr;
}

/* The kernel takes a slice of an ordinary thread from 6.12 on, and says none before. */
static int has_slices(void)
{
    struct utsname system;
    int            major = 0, minor = 0;

    uname(&system);
    sscanf(system.release, "%d.%d", &major, &minor);
    return major > 6 || (major == 6 && minor >= 12);
}

static void a_thread_is_made_prompt(void **state)
{
    struct snd_sched_attr ordinary = { .size = sizeof ordinary, .policy = SCHED_OTHER, .nice = 5 };

    (void)state;
    assert_int_equal(syscall(SYS_sched_setattr, 0, &ordinary, 0), 0);
    snd_thread_prompt();
    assert_int_equal(prctl(PR_GET_TIMERSLACK, 0ul, 0ul, 0ul, 0ul), 1);
    assert_int_equal(ask().policy, SCHED_OTHER);
    assert_int_equal(ask().nice, 5);
    if (has_slices())
        assert_int_equal(ask().runtime, SND_PROMPT_SLICE_NS);
}

/* A batch thread does not want to be prompt: how it is scheduled is its owner's. */
static void another_policy_stays(void **state)
{
    struct snd_sched_attr batch = { .size = sizeof batch, .policy = SCHED_BATCH, .nice = 5 };

    (void)state;
    assert_int_equal(syscall(SYS_sched_setattr, 0, &batch, 0), 0);
    uint64_t before = ask().runtime;
    snd_thread_prompt();
    assert_int_equal(ask().policy, SCHED_BATCH);
    assert_int_equal(ask().runtime, before);
}

/* Before all others where the user may, and afterwards as before in any case. */
static void preferred_for_a_while(void **state)
{
    int begun = getpriority(PRIO_PROCESS, 0);

    (void)state;
    int before = snd_thread_prefer();
    assert_int_equal(before, begun);
    int now = getpriority(PRIO_PROCESS, 0);
    if (setpriority(PRIO_PROCESS, 0, SND_PROMPT_NICE) == 0)
        assert_int_equal(now, SND_PROMPT_NICE);
    else
        assert_int_equal(now, begun);
    snd_thread_unprefer(before);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), begun);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_made_prompt),
        cmocka_unit_test(another_policy_stays),
        cmocka_unit_test(preferred_for_a_while),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
