/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_details.c - cases about all that one event can carry: calls of functions, and of operators. */
#include "cases.h"

#include "format/fields.h"
#include "format/layout.h"
#include "synth.h"

/* ------------------------------------------------ calls of Python functions, on a timeline */

#define PROG "/app/prog.py"

/* As synth_function(), of a generator that goes on. */
static void resumed(struct synth *s, uint32_t t, uint64_t ns, uint32_t frame, uint64_t duration_ns,
                    uint32_t id, uint32_t parent)
{
    const uint64_t words[4] = { SND_EV_FUNCTION, SND_PAIR(frame, 0),
                                duration_ns | (uint64_t)SND_FUNCTION_RESUMED << 56,
                                SND_PAIR(id, parent) };

    synth_event(s, t, ns, words, 4);
}

/*
 * outer() calls inner() twice, with an operator in the second; a generator is called and resumed; a call that another thread
 * recorded; one that was open when the recording began.
 */
void make_calls(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      module = python_frame(s, "<module>", 1, PROG, 1);
    uint32_t      outer = python_frame(s, "outer", 10, PROG, 10);
    uint32_t      inner = python_frame(s, "Class.inner", 20, "/app/lib/part.py", 20);
    uint32_t      numbers = python_frame(s, "numbers", 30, PROG, 30);
    uint32_t      length = python_frame(s, "<built-in method builtins.len>", 0, "~", 0);

    (void)n;
    synth_meta(s, "command", "prog.py");
    synth_meta(s, "torch.options", "{\"with_stack\": true}");
    synth_meta(s, "python.sys_path", "[\"/app\"]");
    synth_function(s, t, 3000, inner, 0, 1000, 3, 2);
    synth_begin(s, t, 4500, synth_string(s, "aten::add"), synth_shapes(s, "2,3;2,3"));
    synth_end(s, t, 4900);
    synth_function(s, t, 5000, inner, 0, 1500, 4, 2);
    synth_function(s, t, 5300, length, 0, 100, 5, 2);
    synth_function(s, t, 6000, outer, 0, 4500, 2, 1);
    synth_function(s, t, 6500, numbers, 0, 200, 6, 1);
    resumed(s, t, 7000, numbers, 300, 7, 1);
    synth_function(s, t, 7600, inner, u, 400, 8, 0);
    synth_function(s, u, 8000, inner, 0, 300, 9, 0);
    synth_function(s, t, 9000, module, 0, 9000, 1, 0);
    synth_close(s, true);
}

/* ------------------------------------------------------------------ operators with everything */

/*
 * The first as one record that they share, the second with an attribute for each thing. n 0: with overloads, which Chrome traces have in
 * names, and with ranges that are called as sonde calls rows of its own.
 */
void make_op_details(const char *path, uint64_t n)
{
    static const char arguments[] = "[\"\", \"a \\\"[b\", \"0.5\", \"[1, 2]\"]";
    static const char keywords[] = "{\"alpha\": 2, \"name\": \"a \\\"b\\\"\"}";
    struct synth     *s = synth_new(path, NULL);
    uint32_t          t = synth_thread(s, "main", 0);
    uint32_t          file = synth_string(s, "/app/net.py");
    uint32_t stack = synth_stack(s, 0, synth_frame(s, synth_string(s, "forward"), file, 7));
    uint32_t shapes = synth_shapes(s, "2,3,4;(2,2;3,3);#;-"),
             strides = synth_shapes(s, "12,4,1;(2,1;3,1);#;-");
    const struct snd_call_record call = { .name = synth_string(s, "aten::add"),
                                          .shapes = shapes,
                                          .strides = strides,
                                          .arguments = synth_string(s, arguments),
                                          .overload = n ? 0 : synth_string(s, "Tensor"),
                                          .stack = stack,
                                          .module = synth_string(s, "Net.part"),
                                          .scope = SND_SCOPE_FUNCTION + 1,
                                          .keywords = synth_string(s, keywords) };
    uint32_t                     id = synth_call(s, &call);

    synth_meta(s, "torch.probe", "{\"shapes\": true}");
    synth_begin(s, t, 500, synth_string(s, "ProfilerStep#3"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, SND_SCOPE_USER + 1);
    synth_call_range(s, t, 1000, id, 300);
    synth_begin(s, t, 2000, synth_string(s, "aten::mul"), shapes);
    synth_attr(s, t, SND_ATTR_STRIDES, strides);
    synth_attr(s, t, SND_ATTR_ARGUMENTS, synth_string(s, arguments));
    if (n == 0)
        synth_attr(s, t, SND_ATTR_OVERLOAD, synth_string(s, "Scalar"));
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "Net.part"));
    synth_attr(s, t, SND_ATTR_SCOPE, SND_SCOPE_FUNCTION + 1);
    synth_attr(s, t, SND_ATTR_KEYWORDS, synth_string(s, keywords));
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_alloc(s, t, 2100, CPU, 0x1000, 96);
    synth_alloc(s, t, 2150, CUDA0, 0x2000, 64);
    synth_end(s, t, 2500);
    synth_begin(s, t, 3000, synth_string(s, "aten::div"), 0);
    synth_attr(s, t, SND_ATTR_KEYWORDS, synth_string(s, "not an object"));
    synth_end(s, t, 3200);
    if (n == 0) {
        synth_begin(s, t, 3300, synth_string(s, "[memory]"), 0);
        synth_end(s, t, 3400);
        synth_begin(s, t, 3500, synth_string(s, "ProfilerStep*"), 0);
        synth_end(s, t, 3600);
    }
    synth_mark(s, t, 3700, synth_string(s, "here"), stack);
    synth_end(s, t, 4000);
    synth_alloc(s, t, 4100, CPU, 0x3000, 32); /* outside any range */
    synth_free(s, t, 4200, CPU, 0x1000, 0);
    synth_free(s, t, 4300, CPU, 0x9000, 48); /* allocated before */
    synth_close(s, true);
}

/* ----------------------------------------------------- one thing that does not nest, by itself */

/*
 * A range in which another begins. n 1: the first ends before it; 2: by another thread; 3: it waits for work done elsewhere; 4: it
 * runs backward what another ran forward; 5 and 6: as 3 and 4, of calls; 7: it is a call of a GPU's API.
 */
void make_crossing(const char *path, uint64_t n)
{
    struct synth                *s = synth_new(path, NULL);
    uint32_t                     t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t                     outer = synth_string(s, "outer"), inner = synth_string(s, "inner");
    uint32_t                     forward = synth_string(s, "forward");
    const struct snd_call_record call = { .name = outer,
                                          .flags = n == 5 ? SND_CALL_ASYNC : 0,
                                          .fwd_thread = n == 6 };

    synth_begin(s, u, 500, forward, 0);
    if (n == 4 || n == 6)
        synth_attr(s, u, SND_ATTR_SEQUENCE, 3);
    synth_end(s, u, 900);
    if (n == 5 || n == 6) {
        synth_call_range(s, t, 1000, synth_call(s, &call), 3000);
    } else {
        synth_begin(s, t, 1000, outer, 0);
        if (n == 2)
            synth_attr(s, t, SND_ATTR_KEY, 77);
        if (n == 3)
            synth_attr(s, t, SND_ATTR_ASYNC, 1);
        if (n == 4) {
            synth_attr(s, t, SND_ATTR_SCOPE, SND_SCOPE_BACKWARD + 1);
            synth_attr(s, t, SND_ATTR_SEQUENCE, 3);
            synth_attr(s, t, SND_ATTR_FWD_THREAD, 2);
        }
        if (n == 7)
            synth_attr(s, t, SND_ATTR_API, (uint64_t)211 << 32 | 5);
        synth_begin(s, t, 2000, inner, 0);
        if (n == 1)
            synth_end_at(s, t, 3000, 1);
        else if (n == 2)
            synth_end_key(s, u, 3000, 77);
        synth_end(s, t, 4000);
        if (n != 1 && n != 2)
            synth_end(s, t, 5000);
    }
    synth_close(s, true);
}

/* --------------------------------------------------------------------- room for a name, and less */

/* Ranges each a little longer than the one before: a picture has room for more and more of their names. */
void make_widths(const char *path, uint64_t n)
{
    static const char *const names[] = { "letters", "scope::of::name",
                                         "\xc3\xa9\xc3\xa8\xe6\x97\xa5\xe6\x9c\xac", "ab" };
    struct synth            *s = synth_new(path, NULL);
    uint32_t                 t = synth_thread(s, "main", 0);
    uint64_t                 ns = 1000;

    for (uint64_t tenths = 0; n == 0 && tenths < 14; tenths++)
        synth_span(s, t, ns + tenths * 50000, synth_string(s, names[tenths % 4]), tenths * 100);
    if (n == 0) /* a picture of 1180 pixels: 1000 ns each */
        synth_span(s, t, ns + 1000000, synth_string(s, names[0]), 180000);
    for (uint32_t i = 0; n != 0 && i < 60; i++) {
        synth_span(s, t, ns, synth_string(s, names[i % 4]), 100 + i * 40);
        ns += 100 + i * 40;
    }
    synth_close(s, true);
}
