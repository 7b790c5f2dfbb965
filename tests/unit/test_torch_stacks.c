/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks with functions in C in them: which line an operator was at, and how deep a stack is. */
#include "model/torch_stacks.h"
#include "recorded.h"

static uint32_t name(const char *text)
{
    return sonde_intern(text, strlen(text));
}

static uint32_t python_in(uint32_t caller, uint32_t line)
{
    return sonde_intern_stack(caller,
                              sonde_intern_frame_in(name("run"), 1, name("/home/run.py"), line));
}

static uint32_t c_in(uint32_t caller, const char *function)
{
    return sonde_intern_stack(caller, sonde_intern_frame(name(function), 0, 0));
}

static void expect(struct sonde_trace *trace, uint32_t stack, const char *line, const char *all)
{
    struct sonde_buffer text = { 0 };

    assert_int_equal(snd_line_text(trace, 0, stack, &text), *line != '\0');
    assert_string_equal(snd_buf_string(&text), line);
    snd_buf_clear(&text);
    snd_stack_text(trace, 0, stack, SIZE_MAX, ';', &text);
    assert_string_equal(snd_buf_string(&text), all);
    sonde_buffer_release(&text);
}

static void test_the_line_is_python_s(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("line.sonde");

    recorded_start(&options);
    uint32_t outer = python_in(0, 7), sorted = c_in(outer, "<built-in function sorted>");
    uint32_t inner = python_in(sorted, 9), sum = c_in(inner, "<built-in method sum of T object>");
    uint32_t module = c_in(outer, "nn.Module: Net_0");
    sonde_begin("r");
    sonde_end();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("line.sonde");
    expect(trace, sum, "/home/run.py(9): run",
           "<built-in method sum of T object>;/home/run.py(1): run;<built-in function sorted>;"
           "/home/run.py(1): run");
    expect(trace, sorted, "/home/run.py(7): run",
           "<built-in function sorted>;/home/run.py(1): run");
    expect(trace, module, "nn.Module: Net_0", "nn.Module: Net_0;/home/run.py(1): run");
    sonde_trace_close(trace);
}

/* Functions in C come on top of the frames that are recorded of a stack: one that has all of them is deep, once. */
static void test_deep_stacks(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("deep.sonde");

    recorded_start(&options);
    uint32_t stack = c_in(0, "(outer frames left out)");
    for (uint32_t line = 1; line <= 1024; line++) {
        stack = python_in(stack, line);
        if (line % 100 == 0 || line == 1023)
            stack = c_in(stack, "<built-in function map>");
    }
    c_in(stack, "<built-in function sum>");
    c_in(stack, "<built-in function len>");
    python_in(c_in(0, "(outer frames left out)"), 1);
    sonde_begin("r");
    sonde_end();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("deep.sonde");
    assert_int_equal(recorded_ledger(trace, "deep_stacks"), 1);
    sonde_trace_close(trace);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_line_is_python_s),
        cmocka_unit_test(test_deep_stacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
