/* SPDX-License-Identifier: Apache-2.0 */
/* Where native frames go between Python frames: stacks put together by hand, as 3.11 on has them. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/unwind/native_frames.h"

static struct snd_py_stack stack;
static struct snd_native  *native;

/* A recorder that writes down which names are put onto which stack. */
static char     names[64][64];
static uint32_t name_count;
static char     put[256];

static uint32_t intern(const char *text, size_t length)
{
    snprintf(names[name_count], sizeof names[0], "%.*s", (int)length, text);
    return name_count++;
}

static uint32_t name_native(uint32_t function, uint32_t file)
{
    (void)file;
    return function + 1;
}

static uint32_t go_on(uint32_t parent, uint32_t frame)
{
    strcat(strcat(put, names[frame - 1]), " ");
    return parent * 100 + frame;
}

static const struct snd_recorder recorder = { .intern = intern,
                                              .native = name_native,
                                              .stack = go_on };

static int set_up(void **state)
{
    (void)state;
    memset(&stack, 0, sizeof stack);
    name_count = 0;
    put[0] = '\0';
    native = snd_native_new();
    return native ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    snd_native_free(native);
    return 0;
}

static void add_python(uint64_t entry)
{
    stack.frames[stack.count++].entry = entry;
}

/* Of a function of the C library's, 256 bytes of stack each. */
static void add_native(const char *name)
{
    size_t at = stack.native_count++;

    stack.native[at].pc = (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, name) + (at > 0);
    stack.native[at].called = at > 0;
    stack.native[at].stack = 0x1000 + at * 0x100;
}

static const char *put_at(size_t at)
{
    put[0] = '\0';
    snd_native_stack(native, &recorder, &stack, at, 0);
    return put;
}

/* Two runs of the loop, native frames 1 and 4, with two and with one Python frame. */
static void fill(void)
{
    static const char *const functions[] = { "abs", "atoi", "mblen", "div", "atof", "exit" };

    add_python(0);
    add_python(0x1110);
    add_python(0x1410);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        add_native(functions[i]);
}

static void test_between(void **state)
{
    (void)state;
    fill();
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "div mblen "); /* the loops and what started it all are not */
    assert_string_equal(put_at(1), "");
    assert_string_equal(put_at(0), "abs ");
}

static void test_unmatched(void **state)
{
    (void)state;
    fill();
    stack.frames[2].entry = 0x9000; /* in no frame */
    assert_false(snd_native_match(native, &stack));
    stack.frames[2].entry = 0x1010; /* further in than the one before it */
    assert_false(snd_native_match(native, &stack));
    stack.native_count = 0;
    assert_false(snd_native_match(native, &stack));
}

/* A signal came before the first instruction of a function: the byte before it is another function's. */
static void test_interrupted(void **state)
{
    (void)state;
    fill();
    stack.native[3].pc--;
    stack.native[3].called = false;
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "div mblen ");
}

/* Too many to be taken: those that were are put where they belong. */
static void test_cut(void **state)
{
    (void)state;
    fill();
    add_python(0x9000);
    stack.native_cut = true;
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(3), "exit ");
    assert_string_equal(put_at(2), "div mblen ");
    assert_string_equal(put_at(1), "");
    assert_string_equal(put_at(0), "abs ");
}

/* Code without unwind data: what was found is put behind a frame for what was not. */
static void test_broken(void **state)
{
    (void)state;
    fill();
    stack.native_count = 1;
    stack.native_broken = true;
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "");
    assert_string_equal(put_at(1), "");
    assert_string_equal(put_at(0), "(no unwind data) abs ");
    snd_native_clear(native);
    stack.native_count = 4; /* further out than the first loop */
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "(no unwind data) div mblen ");
    assert_string_equal(put_at(1), "");
    stack.native_count = 0;
    assert_false(snd_native_match(native, &stack));
    stack.native_broken = false;
    stack.native_count = 1;
    assert_false(snd_native_match(native, &stack));
}

/* Each name is asked for once, until the recording is another one. */
static void test_known(void **state)
{
    (void)state;
    fill();
    assert_true(snd_native_match(native, &stack));
    put_at(2);
    uint32_t asked = name_count;
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "");
    assert_int_equal(name_count, asked);
    snd_native_clear(native);
    assert_true(snd_native_match(native, &stack));
    assert_string_equal(put_at(2), "div mblen ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_between, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmatched, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interrupted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_known, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
