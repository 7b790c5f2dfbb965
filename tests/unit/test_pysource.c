/* SPDX-License-Identifier: Apache-2.0 */
/* Where a function ends; tests/e2e compares with Python itself on real files. */
#include "scratch.h"

#include <sys/stat.h>

#include "view/source/py_source.h"

static struct snd_pysource open_text(const char *text)
{
    struct sonde_line_function f = { .file = { "x.py", 4 }, .source = { text, strlen(text) } };
    struct snd_pysource        source;

    assert_true(snd_pysource_open(&source, &f));
    return source;
}

static size_t block_of(const char *text, size_t first)
{
    struct snd_pysource source = open_text(text);
    size_t              count = snd_pysource_block(&source, first);

    snd_pysource_close(&source);
    return count;
}

static void blocks_end_where_python_says(void **state)
{
    static const struct {
        size_t      lines;
        const char *text;
    } cases[] = {
        { 2, "def f():\n  pass\nx = 1\n" },
        { 2, "def f():\n  pass\n\n\n# a comment outside\ndef g():\n  pass\n" },
        { 3, "def f():\n  pass\n  # inside\n\nx = 1\n" },
        { 4, "@deco(1,\n  2)\ndef f():\n  pass\nx\n" },
        { 3, "@deco\nasync def f():\n  await x\nx\n" },
        { 1, "x = lambda: 1\ny = 2\n" },
        { 2, "f(lambda x:\n  x)\ny = 2\n" },
        { 4, "def f():\n  '''doc\nnot indented\n'''\nx\n" },
        { 3, "def f():\n  x = \"a\\\n  b\"\ny\n" },
        { 4, "def f(a,\n b):\n  x = [1,\n2]\ny\n" },
        { 3, "class A:\n  def f(self):\n    pass\nx\n" },
        { 2, "def f():\n  return f'{x['''a''']} {{ {y:\">3} {z!r}'\ny\n" },
        { 2, "def f():\n  return f\"{x['a']} {y:'>{z}} it's\"\ny\n" },
        { 2, "def f():\n  return f'({x:{w}}{d['a']}'\ny\n" },  /* 3.12: quotes in a field */
        { 2, "def f():\n  return f\"{d[a:'\"((((']}\"\ny\n" }, /* no format follows the colon */
        { 2, "def f():\n  return f\"{)}\"\ny\n" },             /* SyntaxError */
        { 2, "def f():\n  return 'it\\'s'  # don't\ny\n" },
        { 2, "def f(): return 1; \\\n  x\ny\n" },
        { 3, "def f(): return 1; \\\n(x,\n 1)\ny\n" },
        { 1, "def f(): pass\ny\n" },
        { 2, "def f():\n  pass" },
        { 1, "def f():" },
        { 3, "def f():\n\tif x:\n\t\ty\nz\n" },
        { 2, "def f():\n    pass\n  odd\n" }, /* IndentationError */
        { 3, "def f():\r\n  x\r\n  y\r\nz\r\n" },
        { 3, "def f():\n  # first\n  pass\nx\n" },
        { 4, "def f():\n  a\n# outside\n  b\nx\n" },
        { 4, "def f():\n  a\n\n  b\nx\n" },
        { 2, "def f():\n  a\n# outside\nx\n" },
        { 3, "def f():\n  a\n    # further in\nx\n" },
        { 2, "def f():\n  a\n # less far in\nx\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (block_of(cases[i].text, 1) != cases[i].lines)
            fail_msg("%zu lines, not %zu: %s", block_of(cases[i].text, 1), cases[i].lines,
                     cases[i].text);
    assert_int_equal(block_of("class A:\n  def f(self):\n    pass\n  def g(self):\n    pass\n", 2),
                     2);
    assert_int_equal(block_of("x\n", 2), 0);
    assert_int_equal(block_of("x\n", 0), 0);
}

/* Any bytes give lines, or none, and end. */
static void anything_ends(void **state)
{
    static const char *const odd[] = { "def f(:\n'''",
                                       "f'{{{{{'''{f'{",
                                       "((((((((\n\n\n",
                                       "\\",
                                       "def f():\n f\"{x:\n",
                                       ")))]]]}}}\n:\n",
                                       "\"\\",
                                       "@",
                                       "\f\t \n#" };
    char                     deep[400];

    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_true(block_of(odd[i], 1) <= 4);
    for (size_t i = 0; i + 2 < sizeof deep; i += 3)
        memcpy(deep + i, "f'{", 3);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(block_of(deep, 1), 1);
}

/* Each quote begins a string that does not end: looked through from each, it would take hours. */
static void strings_that_do_not_end(void **state)
{
    static char text[1 << 20];

    (void)state;
    memcpy(text, "def f():\n  ", 11);
    for (size_t i = 11; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "'\\", 2);
    memcpy(text + sizeof text - 4, "\ny\n", 4);
    text[sizeof text - 1] = '\0';
    assert_int_equal(block_of(text, 1), 2);
    memset(text + sizeof text - 4, '\\', 3);
    assert_int_equal(block_of(text, 1), 2);
}

/* Of two functions of a file it is read once; another file, or a recorded text, is another. */
static void turns_to_the_next_function(void **state)
{
    const char                *a = scratch_path("a.py"), *b = scratch_path("b.py");
    struct sonde_line_function f = { .file = { a, strlen(a) }, .source = { "", 0 } };
    struct sonde_line_function g = { .file = { b, strlen(b) }, .source = { "", 0 } };
    struct sonde_line_function text = { .file = { a, strlen(a) }, .source = { "t\n", 2 } };
    struct snd_pysource        source = { 0 };

    (void)state;
    scratch_save(a, "a\n", 2);
    assert_true(snd_pysource_turn(&source, &f));
    assert_int_equal(unlink(a), 0);
    assert_true(snd_pysource_turn(&source, &f));
    assert_true(text_is(snd_pysource_line(&source, 1), "a"));
    assert_true(snd_pysource_turn(&source, &text));
    assert_true(text_is(snd_pysource_line(&source, 1), "t"));
    assert_false(snd_pysource_turn(&source, &f));
    assert_int_equal(source.line_count, 0);
    scratch_save(b, "b\n", 2);
    assert_true(snd_pysource_turn(&source, &g));
    assert_true(text_is(snd_pysource_line(&source, 1), "b"));
    snd_pysource_close(&source);
}

static void lines_are_pythons(void **state)
{
    struct snd_pysource source = open_text("\xef\xbb\xbf"
                                           "one\r\ntwo\rthree\n\nlast");

    (void)state;
    assert_int_equal(source.line_count, 5);
    assert_true(text_is(snd_pysource_line(&source, 1), "one"));
    assert_true(text_is(snd_pysource_line(&source, 2), "two"));
    assert_true(text_is(snd_pysource_line(&source, 4), ""));
    assert_true(text_is(snd_pysource_line(&source, 5), "last"));
    assert_true(text_is(snd_pysource_line(&source, 6), ""));
    assert_true(text_is(snd_pysource_line(&source, 0), ""));
    snd_pysource_close(&source);
}

static void a_changed_file_does_not_fit(void **state)
{
    const char                *path = scratch_path("f.py");
    struct snd_pysource        source;
    struct stat                st;
    struct sonde_line_function f = { .file = { path, strlen(path) }, .source = { "", 0 } };

    (void)state;
    assert_false(snd_pysource_open(&source, &f));
    assert_int_equal(snd_pysource_block(&source, 1), 0);
    scratch_save(path, "x\n", 2);
    assert_int_equal(stat(path, &st), 0);
    assert_true(snd_pysource_open(&source, &f));
    assert_true(snd_pysource_fits(&source, &f)); /* nothing is known of it */
    f.has_stat = true;
    f.stat_size = 2;
    f.stat_mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    assert_true(snd_pysource_fits(&source, &f));
    f.stat_size = 3;
    assert_false(snd_pysource_fits(&source, &f));
    f.stat_size = 2;
    f.stat_mtime_ns++;
    assert_false(snd_pysource_fits(&source, &f));
    snd_pysource_close(&source);
    f.file = (struct sonde_text){ scratch_folder, strlen(scratch_folder) };
    assert_false(snd_pysource_open(&source, &f)); /* a folder */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_end_where_python_says),
        cmocka_unit_test(anything_ends),
        cmocka_unit_test(strings_that_do_not_end),
        cmocka_unit_test(turns_to_the_next_function),
        cmocka_unit_test(lines_are_pythons),
        cmocka_unit_test(a_changed_file_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
