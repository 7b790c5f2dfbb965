/* SPDX-License-Identifier: Apache-2.0 */
/* read/said/library_paths.c: which files are a program's own, and which an interpreter's or a library's. */
#include "read/said/library_paths.h"

#include <sys/stat.h>

#include "scratch.h"

static struct sonde_text text(const char *bytes)
{
    return (struct sonde_text){ bytes, strlen(bytes) };
}

static void a_file_lies_in_folders_above_it(void **state)
{
    static const struct {
        const char *file, *folder;
        bool        lies;
    } cases[] = {
        { "/usr/lib/x.py", "/usr", true },    { "/usr/lib/x.py", "/usr/", true },
        { "/usr/lib/x.py", "/usr///", true }, { "/usr/lib/x.py", "/usr/lib", true },
        { "/usr/lib/x.py", "/us", false },    { "/usr/lib/x.py", "/usr/lib/x.py", false },
        { "/usr/lib/x.py", "", false },       { "/x.py", "/", true },
        { "/opt/lib/x.py", "/usr", false },   { "", "/", false },
        { "/usr", "/usr/", false },           { "x", "/usr", false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (snd_path_lies_in(text(cases[i].file), text(cases[i].folder)) != cases[i].lies)
            fail_msg("%s in %s", cases[i].file, cases[i].folder);
}

static void lists_are_read_from_json(void **state)
{
    struct snd_path_list list = { 0 };
    struct snd_arena     arena = { 0 };

    (void)state;
    assert_true(snd_path_list_add(&list, &arena, text("[\"/a\", \"/b\\\"\\\\c\", \"\"]")));
    assert_true(snd_path_list_add(&list, &arena, text("[\"/d")));
    assert_true(snd_path_list_add(&list, &arena, text("[\"/e\\")));
    assert_true(snd_path_list_add(&list, &arena, text("[]")));
    assert_true(snd_path_list_add(&list, &arena, text("")));
    assert_true(snd_path_list_add(&list, &arena, text("\"")));
    assert_int_equal(list.count, 6);
    assert_true(text_is(list.items[0], "/a"));
    assert_true(text_is(list.items[1], "/b\"\\c"));
    assert_true(text_is(list.items[2], ""));
    assert_true(text_is(list.items[3], "/d"));
    assert_true(text_is(list.items[4], "/e\\"));
    assert_true(text_is(list.items[5], ""));
    free(list.items);
    snd_arena_release(&arena);
}

/* A folder of processes, each with the prefixes of its interpreter; NULL: it says nothing. */
static struct sonde_trace *open_said(const char *name, const char *const *said, uint32_t count)
{
    char path[256], file[280];

    snprintf(path, sizeof path, "%s", scratch_path(name));
    assert_int_equal(mkdir(path, 0700), 0);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(file, sizeof file, "%s/%u", path, i);
        struct synth_options options = { .pid = 100 + i };
        struct synth        *s = synth_new(file, &options);
        if (said[i])
            synth_meta(s, "python.sys_prefixes", said[i]);
        synth_close(s, true);
    }
    return scratch_open(path);
}

static void each_interpreter_of_a_trace_counts(void **state)
{
    static const char *const said[] = { "[\"/py\"]", NULL, "[\"/other\", \"/third\"]",
                                        "[\"/py\"]" };
    struct snd_library_paths paths;

    (void)state;
    struct sonde_trace *trace = open_said("several", said, 4);
    assert_true(snd_library_paths_read(&paths, trace));
    assert_true(snd_library_paths_has(&paths, text("/py/x.py")));
    assert_true(snd_library_paths_has(&paths, text("/other/x.py")));
    assert_true(snd_library_paths_has(&paths, text("/third/x.py")));
    assert_false(snd_library_paths_has(&paths, text("/own/x.py")));
    assert_false(
        snd_library_paths_has(&paths, text("/own/site-packages/x.py"))); /* they were said */
    snd_library_paths_release(&paths);
    assert_int_equal(paths.prefixes.count, 0);
    sonde_trace_close(trace);
}

static void where_nobody_said_the_usual_folders_count(void **state)
{
    static const char *const said[] = { NULL };
    struct snd_library_paths paths;

    (void)state;
    struct sonde_trace *trace = open_said("silent", said, 1);
    assert_true(snd_library_paths_read(&paths, trace));
    assert_true(snd_library_paths_has(&paths, text("/usr/lib/python3.11/json/decoder.py")));
    assert_true(snd_library_paths_has(&paths, text("/venv/site-packages/x.py")));
    assert_false(snd_library_paths_has(&paths, text("/usr/lib/x.py")));
    snd_library_paths_release(&paths);
    sonde_trace_close(trace);
}

static void a_programs_own_code_has_a_line_outside_of_libraries(void **state)
{
    static const struct {
        const char *file;
        uint32_t    line;
        bool        own_python, own_native;
    } cases[] = {
        { "/home/me/x", 7, true, true },
        { "/home/me/x", 1, true, true },
        { "/home/me/x", 0, false, false },
        { "", 7, false, false },
        { "/py/x", 7, false, false },
        { "/home/me/site-packages/x", 7, false, false },
        { "<frozen runpy>", 7, false, true },
        { "<frozen", 7, true, true },
        { "~", 7, false, true },
        { "/usr/src/x", 7, true, false },
        { "/lib/x", 7, true, false },
        { "/lib64/x", 7, true, false },
        { "/build/glibc/x", 7, true, false },
        { "./csu/x", 7, true, false },
        { "../x", 7, true, false },
        { "x.c", 7, true, true },
    };
    static const char *const said[] = { "[\"/py\"]" };
    struct snd_library_paths paths;

    (void)state;
    struct sonde_trace *trace = open_said("own", said, 1);
    assert_true(snd_library_paths_read(&paths, trace));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct sonde_frame frame = { .file = text(cases[i].file), .line = cases[i].line };
        if (snd_library_paths_own(&paths, &frame, false) != cases[i].own_python ||
            snd_library_paths_own(&paths, &frame, true) != cases[i].own_native)
            fail_msg("%s:%u", cases[i].file, cases[i].line);
    }
    snd_library_paths_release(&paths);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_lies_in_folders_above_it),
        cmocka_unit_test(lists_are_read_from_json),
        cmocka_unit_test(each_interpreter_of_a_trace_counts),
        cmocka_unit_test(where_nobody_said_the_usual_folders_count),
        cmocka_unit_test(a_programs_own_code_has_a_line_outside_of_libraries),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
