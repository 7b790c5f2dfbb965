/* SPDX-License-Identifier: Apache-2.0 */
/* What a process says of itself: its command line, and what a person calls it. */
#include "read/said/trace_metadata.h"

#include <sys/stat.h>

#include "scratch.h"

static const struct {
    const char *program, *command, *title;
} cases[] = {
    { "/usr/bin/make", "make -j2 all", "make" },
    { "/usr/bin/python3.11", NULL, "python3.11" },
    { "/usr/bin/python3.11", "python train.py --epochs 3", "train.py" },
    { "/usr/bin/python3.11", "/x/bin/python /home/me/train.py", "train.py" },
    { "/usr/bin/python3", "python -u -X dev -W error ./a/b.py -m", "b.py" },
    { "/usr/bin/python3", "python -Xdev -Werror b.py", "b.py" },
    { "/usr/bin/python3", "python -m torch.distributed.run train.py", "torch.distributed.run" },
    { "/usr/bin/python3", "python -um pytest", "pytest" },
    { "/usr/bin/python3", "python -c print(1)", "python3" },
    { "/usr/bin/python3", "python", "python3" },
    { "/usr/bin/python3", "python -", "python3" },
    { "/usr/bin/python3", "python -m", "python3" },
    { "/usr/bin/python3", "   ", "python3" },
    { "prog", "other", "prog" },
    /* one of our own commands that is Python */
    { "/usr/bin/python3", "sonde layers net.py:make -b 8", "sonde layers" },
    { "/usr/bin/python3", "sonde", "sonde" },
    { "/usr/bin/python3", "sondes train.py", "train.py" },
};

static void check(size_t i)
{
    struct synth_options options = { .program = cases[i].program };
    struct synth        *s = synth_new(scratch_path("title"), &options);

    if (cases[i].command)
        synth_meta(s, "command", cases[i].command);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("title"));
    struct sonde_text   title = snd_meta_title(trace, 0), command = snd_meta_command(trace, 0);
    const char         *whole = cases[i].command ? cases[i].command : cases[i].program;
    assert_int_equal(title.length, strlen(cases[i].title));
    assert_memory_equal(title.bytes, cases[i].title, title.length);
    assert_int_equal(command.length, strlen(whole));
    assert_memory_equal(command.bytes, whole, command.length);
    sonde_trace_close(trace);
}

static void a_script_gives_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(i);
}

/* A key that this version has no name for is found by its whole text. */
static void any_key_is_found(void **state)
{
    struct synth     *s = synth_new(scratch_path("keys"), NULL);
    struct sonde_text value;

    (void)state;
    synth_meta(s, "mine.longer", "1");
    synth_meta(s, "mine", "2");
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("keys"));
    assert_true(snd_meta_other(trace, 0, "mine", &value) && text_is(value, "2"));
    assert_true(snd_meta_other(trace, 0, "mine.longer", &value) && text_is(value, "1"));
    assert_false(snd_meta_other(trace, 0, "min", &value));
    assert_false(snd_meta_other(trace, 0, "", &value));
    sonde_trace_close(trace);
}

static void a_rank_has_its_host(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct synth_options options = { .rank = 3,
                                         .world_size = which ? 8 : 0,
                                         .host = which == 2 ? "node7" : "" };
        struct synth        *s = synth_new(scratch_path("rank"), &options);
        char                 text[SND_RANK_TEXT];
        synth_close(s, true);
        struct sonde_trace *trace = scratch_open(scratch_path("rank"));
        assert_string_equal(snd_meta_rank(trace, 0, text), which == 2   ? "rank 3 on node7"
                                                           : which == 1 ? "rank 3"
                                                                        : "");
        sonde_trace_close(trace);
    }
}

/* A process is of the one that started it, and so on, within its session. */
static void roots_are_found(void **state)
{
    static const struct synth_options options[] = {
        { .pid = 10, .parent_pid = 1 },
        { .pid = 11, .parent_pid = 10 },
        { .pid = 12, .parent_pid = 11 },
        { .pid = 13, .parent_pid = 99 },
        { .pid = 14, .parent_pid = 15 },
        { .pid = 15, .parent_pid = 14 }, /* each other's: a pid that came again */
    };
    static const uint32_t roots[] = { 10, 10, 10, 13 };

    (void)state;
    assert_int_equal(mkdir(scratch_path("roots"), 0700), 0);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char path[64];
        snprintf(path, sizeof path, "roots/%zu.sonde", i);
        synth_close(synth_new(scratch_path(path), &options[i]), true);
    }
    struct sonde_trace *trace = scratch_open(scratch_path("roots"));
    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        uint32_t pid = sonde_trace_process(trace, i)->pid;
        uint32_t root = sonde_trace_process(trace, snd_meta_root(trace, i))->pid;
        if (pid < 14)
            assert_int_equal(root, roots[pid - 10]);
        else
            assert_true(root == 14 || root == 15);
    }
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_gives_its_name),
        cmocka_unit_test(any_key_is_found),
        cmocka_unit_test(a_rank_has_its_host),
        cmocka_unit_test(roots_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
