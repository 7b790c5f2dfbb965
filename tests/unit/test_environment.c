/* SPDX-License-Identifier: Apache-2.0 */
/* record/options/environment.c: a program that is started with SONDE_TRACE and its like is recorded as they say. */
#include <sys/wait.h>

#include "recorded.h"

#define STEPS 6

/* What the program does that is recorded: this one, started again. */
static int work(void)
{
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        snprintf(name, sizeof name, "step %d", i);
        sonde_mark(name);
        sonde_step();
    }
    return 0;
}

static void start(const char *const *variables)
{
    int   status;
    char  self[4096] = ""; /* read, since to execute the link would run valgrind instead */
    pid_t child;

    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    child = fork();
    if (child == 0) {
        for (; variables[0]; variables += 2)
            setenv(variables[0], variables[1], 1);
        setenv("SONDE_TEST_WORK", "1", 1);
        execl(self, "test_environment", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

struct marks {
    struct sonde_trace *trace;
    char                names[256];
};

static bool keep_marks(const struct sonde_event *event, void *user)
{
    struct marks *marks = user;

    if (event->kind == SONDE_EVENT_MARK) {
        struct sonde_text text = sonde_trace_string(marks->trace, event->process, event->mark.name);
        strncat(marks->names, text.bytes, text.length);
        strcat(marks->names, ";");
    }
    return true;
}

static void expect_marks(const char *name, const char *expected)
{
    struct marks marks = { .trace = recorded_open(name) };

    recorded_walk(marks.trace, keep_marks, &marks);
    assert_string_equal(marks.names, expected);
    sonde_trace_close(marks.trace);
}

static void a_program_is_recorded_from_its_start(void **state)
{
    (void)state;
    skip_where_forks_fail();
    start((const char *[]){ "SONDE_TRACE", recorded_path("all.sonde"), NULL });
    expect_marks("all.sonde", "step 0;step 1;step 2;step 3;step 4;step 5;");
}

static void by_a_schedule(void **state)
{
    (void)state;
    skip_where_forks_fail();
    start((const char *[]){ "SONDE_TRACE", recorded_path("some.sonde"), "SONDE_SCHEDULE",
                            "wait=2,active=2,repeat=1", NULL });
    expect_marks("some.sonde", "step 2;step 3;");
}

/* What cannot be understood records more, not less. */
static void by_a_schedule_that_is_none(void **state)
{
    (void)state;
    skip_where_forks_fail();
    start((const char *[]){ "SONDE_TRACE", recorded_path("wrong.sonde"), "SONDE_SCHEDULE", "often",
                            NULL });
    expect_marks("wrong.sonde", "step 0;step 1;step 2;step 3;step 4;step 5;");
}

static void without_a_path_nothing_is(void **state)
{
    (void)state;
    skip_where_forks_fail();
    start((const char *[]){ "SONDE_TRACE", "", "SONDE_MAX_BYTES", "1048576", NULL });
    assert_int_not_equal(access("sonde.sonde", F_OK), 0);
}

static void within_a_limit(void **state)
{
    struct stat st;

    (void)state;
    skip_where_forks_fail();
    start((const char *[]){ "SONDE_TRACE", recorded_path("last.sonde"), "SONDE_MAX_BYTES",
                            "1048576", "SONDE_LIMIT", "keep-last", NULL });
    assert_int_equal(stat(recorded_path("last.sonde"), &st), 0);
    assert_true(st.st_size <= 1048576);
    expect_marks("last.sonde", "step 0;step 1;step 2;step 3;step 4;step 5;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_recorded_from_its_start),
        cmocka_unit_test(by_a_schedule),
        cmocka_unit_test(by_a_schedule_that_is_none),
        cmocka_unit_test(without_a_path_nothing_is),
        cmocka_unit_test(within_a_limit),
    };

    if (getenv("SONDE_TEST_WORK"))
        return work();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
