/* SPDX-License-Identifier: Apache-2.0 */
/* Cycles of a schedule that cannot be recorded, and recordings of a process that was forked. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "recorded.h"

/* How many lines with `words` in them the recorder writes while `work` runs. */
static int count_said(void (*work)(void), const char *words)
{
    char text[8192];
    int  ends[2], kept = dup(STDERR_FILENO), count = 0;

    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    work();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    for (const char *at = text; (at = strstr(at, words)); at++)
        count++;
    return count;
}

/* A recording whose folder is gone after the first of its cycles. */
static void lose_the_folder(void)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    char                 folder[] = "/tmp/sonde-cycles-XXXXXX", path[64], command[64];

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.sonde", folder);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    options.path = path;
    options.schedule.active = 1;
    recorded_start(&options);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 4; i++)
        sonde_step();
    (void)sonde_stop(NULL);
    assert_int_equal(system(command), 0);
}

/* Each cycle fails for the same reason: one line says so; and one of the next recording. */
static void failed_cycles_are_said_once(void **state)
{
    (void)state;
    assert_int_equal(count_said(lose_the_folder, "this cycle is not recorded"), 1);
    assert_int_equal(count_said(lose_the_folder, "this cycle is not recorded"), 1);
}

/* Of each cycle, which step it says it ended with; 0: it says none. */
static void note_ended(const struct sonde_cycle *cycle, void *user)
{
    uint64_t           *ended = user;
    struct sonde_trace *trace;
    struct sonde_text   key, value;

    assert_int_equal(sonde_trace_open(cycle->path, &trace, NULL), SONDE_OK);
    ended[cycle->index] = 0;
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &value); n++)
        if (strcmp(key.bytes, "steps.ended") == 0)
            ended[cycle->index] = strtoull(value.bytes, NULL, 10);
    sonde_trace_close(trace);
}

/* Two steps wait, two are recorded, and again: the last of each is whole, its file says so. */
static void cycles_say_which_step_they_ended_with(void **state)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    uint64_t             ended[2] = { 99, 99 };

    (void)state;
    options.path = recorded_path("ended.sonde");
    options.schedule = (struct sonde_schedule){ .wait = 2, .active = 2, .repeat = 2 };
    options.on_cycle = note_ended;
    options.user = ended;
    recorded_start(&options);
    for (int i = 0; i < 8; i++)
        sonde_step();
    recorded_stop();
    assert_int_equal(ended[0], 3);
    assert_int_equal(ended[1], 7);
}

static int record_again(const char *path)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err = { 0 };

    (void)sonde_stop(NULL); /* the child's part of its parent's recording */
    options.path = path;
    options.overwrite = false;
    if (sonde_start(&options, &err) == SONDE_OK)
        return 1; /* it has replaced what was there */
    options.path = recorded_path("new.sonde");
    if (sonde_start(&options, &err) != SONDE_OK)
        return 2;
    sonde_mark("the child's own");
    return sonde_stop(&err) == SONDE_OK ? 0 : 3;
}

/* What a forked child starts itself is its own: it replaces no file that it is told to leave, and has the name that it is given. */
static void a_child_starts_its_own(void **state)
{
    struct sonde_options options = recorded_options("parent.sonde");
    char                 other[PATH_MAX];
    int                  status;

    (void)state;
    skip_where_forks_fail();
    struct sonde_options before = recorded_options("other.sonde");
    recorded_start(&before);
    sonde_mark("kept");
    recorded_stop();
    snprintf(other, sizeof other, "%s", recorded_path("other.sonde"));
    options = recorded_options("parent.sonde");
    recorded_start(&options);
    sonde_mark("the parent's");
    pid_t child = fork();
    if (child == 0)
        _exit(record_again(other));
    assert_int_equal(waitpid(child, &status, 0), child);
    recorded_stop();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct sonde_trace *trace = recorded_open("new.sonde");
    assert_int_equal(sonde_trace_process_count(trace), 1);
    assert_int_equal(sonde_trace_process(trace, 0)->pid, child);
    sonde_trace_close(trace);
}

/* Whether a thread of this process has the name, and which signals it blocks. */
static bool find_thread(const char *name, uint64_t *blocked)
{
    DIR           *tasks = opendir("/proc/self/task");
    struct dirent *task;
    bool           found = false;

    assert_non_null(tasks);
    while (!found && (task = readdir(tasks))) {
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = task->d_name[0] == '.' ? NULL : fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            if (strncmp(line, "Name:\t", 6) == 0 && strncmp(line + 6, name, strlen(name)) == 0)
                found = true;
            if (found && strncmp(line, "SigBlk:\t", 8) == 0)
                *blocked = strtoull(line + 8, NULL, 16);
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    return found;
}

/* Waits until there is one, or none: it is told to end, and nobody waits for it. */
static bool wait_for_helper(bool wanted, uint64_t *blocked)
{
    for (int i = 0; i < 1000 && find_thread("sonde-supply", blocked) != wanted; i++)
        usleep(10000);
    return find_thread("sonde-supply", blocked) == wanted;
}

/* Chunks are reserved ahead by a thread of the recorder's own, which takes no signal that is meant for the program. */
static void a_thread_reserves_ahead(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* it has a thread of its own, created with the first of ours and named like it */
#endif
    struct sonde_options options = recorded_options("helper.sonde");
    uint64_t             blocked = 0;

    (void)state;
    assert_true(wait_for_helper(false, &blocked)); /* of the recordings before */
    recorded_start(&options);
    sonde_mark("begun");
    assert_true(wait_for_helper(true, &blocked));
    /* It has its name at once, and its own mask when it begins to run. */
    for (int i = 0; i < 1000 && (blocked & 1u << (SIGBUS - 1)); i++) {
        usleep(10000);
        assert_true(find_thread("sonde-supply", &blocked));
    }
    assert_true(blocked & 1u << (SIGINT - 1));
    assert_true(blocked & 1u << (SIGALRM - 1));
    assert_false(blocked & 1u << (SIGBUS - 1)); /* its own fault, when the file is truncated */
    recorded_stop();
    assert_true(wait_for_helper(false, &blocked));
}

/* A file that was closed has no room reserved for what never came. */
static void a_closed_file_is_as_long_as_what_it_has(void **state)
{
    struct sonde_options options = recorded_options("short.sonde");
    struct stat          st;

    (void)state;
    options.chunk_bytes = (size_t)1 << 20;
    recorded_start(&options);
    sonde_mark("the only one");
    usleep(100000); /* the helper has reserved more by now */
    recorded_stop();
    assert_int_equal(stat(recorded_path("short.sonde"), &st), 0);
    assert_true(st.st_size < (off_t)1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_say_which_step_they_ended_with),
        cmocka_unit_test(failed_cycles_are_said_once),
        cmocka_unit_test(a_child_starts_its_own),
        cmocka_unit_test(a_thread_reserves_ahead),
        cmocka_unit_test(a_closed_file_is_as_long_as_what_it_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
