/* SPDX-License-Identifier: Apache-2.0 */
/* What a process says of itself: its command line, and what a person calls it. */
#include "read/said/trace_metadata.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_script_gives_its_name) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
