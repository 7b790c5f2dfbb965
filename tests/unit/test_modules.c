/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: whose time is whose, forward and backward. */
#include "format/layout.h"
#include "scratch.h"

#define CPU SND_DEVICE(0, 0xffff)

static const struct sonde_module *find(const struct sonde_modules *modules, const char *path)
{
    for (size_t i = 0; i < sonde_modules_count(modules); i++)
        if (text_is(sonde_modules_node(modules, i)->path, path))
            return sonde_modules_node(modules, i);
    fail_msg("no module %s", path);
    return NULL;
}

static void op(struct synth *s, uint32_t t, uint64_t start, uint64_t end, const char *name,
               const char *module, uint64_t sequence)
{
    synth_begin(s, t, start, synth_string(s, name), 0);
    if (module)
        synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, module));
    synth_attr(s, t, SND_ATTR_SEQUENCE, sequence);
    synth_alloc(s, t, start + 1, CPU, start, 8);
    synth_end(s, t, end);
}

static void forward_and_backward(void **state)
{
    struct synth         *s = synth_new(scratch_path("modules"), NULL);
    uint32_t              t = synth_thread(s, "main", 0), u = synth_thread(s, "autograd", 0);
    struct sonde_modules *modules;

    (void)state;
    synth_meta(s, "torch.thread 4242", "1");
    synth_meta(s, "module net.a",
               "{\"class\": \"Linear\", \"parameters\": 20, \"parameter_bytes\": 80}");
    synth_meta(s, "module net.b.0",
               "{\"class\": \"C\", \"parameters\": 3, \"parameter_bytes\": 6}");
    for (uint64_t pass = 0; pass < 2; pass++) { /* nothing between the two calls of net */
        uint64_t ns = pass * 10000;
        op(s, t, ns + 1000, ns + 1100, "x::a", "net.a", 10 * pass);
        op(s, t, ns + 2000, ns + 2200, "x::b", "net.b.0", 10 * pass + 1);
        synth_begin(s, t, ns + 3000, synth_string(s, "x::outer"), 0); /* its child has no name */
        synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, "net|Net"));
        synth_begin(s, t, ns + 3100, synth_string(s, "x::inner"), 0);
        synth_end(s, t, ns + 3300);
        synth_end(s, t, ns + 3400);
    }
    op(s, t, 20000, 20500, "x::loss", NULL, 99);
    synth_begin(s, u, 30000, synth_string(s, "autograd::engine::evaluate_function: B"), 0);
    synth_begin(s, u, 30100, synth_string(s, "B"), 0);
    synth_attr(s, u, SND_ATTR_SCOPE, 2);
    synth_attr(s, u, SND_ATTR_SEQUENCE, 11);
    synth_attr(s, u, SND_ATTR_FWD_THREAD, 1);
    synth_begin(s, u, 30200, synth_string(s, "x::bb"), 0);
    synth_end(s, u, 30700);
    synth_end(s, u, 30800);
    synth_end(s, u, 31000);
    /* Without a sequence number: what it accumulates, B made. */
    synth_begin(s, u, 31000, synth_string(s, "autograd::engine::evaluate_function: Acc"), 0);
    synth_begin(s, u, 31000, synth_string(s, "Acc"), 0);
    synth_attr(s, u, SND_ATTR_SCOPE, 2);
    synth_end(s, u, 31040);
    synth_end(s, u, 31050);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("modules"));
    assert_int_equal(sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL), SONDE_OK);
    const struct sonde_module *m = find(modules, "net.a");
    assert_int_equal(m->forward_ns, 200);
    assert_int_equal(m->calls, 2);
    assert_int_equal(m->parameters, 20);
    assert_int_equal(m->activation_bytes, 16);
    assert_true(text_is(m->name, "a"));
    assert_true(text_is(m->kind, "Linear"));
    assert_int_equal(m->depth, 2);
    m = find(modules, "net.b.0");
    assert_true(text_is(m->kind, "C"));
    assert_int_equal(m->forward_ns, 400);
    assert_int_equal(m->backward_ns, 1000 + 50);
    assert_int_equal(m->self_backward_ns, 1050);
    m = find(modules, "net.b");
    assert_int_equal(m->self_forward_ns, 0);
    assert_int_equal(m->forward_ns, 400);
    assert_int_equal(m->calls, 2);
    m = find(modules, "net");
    assert_int_equal(m->self_forward_ns, 800);
    assert_int_equal(m->forward_ns, 200 + 400 + 800);
    assert_int_equal(m->backward_ns, 1050);
    assert_int_equal(m->calls, 2);
    assert_int_equal(m->parameters, 23);
    assert_int_equal(m->parameter_bytes, 86);
    assert_true(text_is(m->kind, "Net"));
    assert_int_equal(sonde_modules_node(modules, 0)->self_forward_ns, 500); /* the loss */
    assert_null(sonde_modules_node(modules, sonde_modules_count(modules)));
    sonde_modules_free(modules);
    sonde_trace_close(trace);
}

static void mark_call(struct synth *s, uint32_t t, bool returns, const char *module)
{
    synth_attr(s, t, returns ? SND_ATTR_MODULE_RETURN : SND_ATTR_MODULE_CALL,
               synth_string(s, module));
}

/* Recorded calls count as they are, whatever operators ran; returns may be lost. */
static void recorded_calls(void **state)
{
    static const struct {
        const char *path;
        uint64_t    calls, idle;
        bool        inferred;
    } expected[] = { { "net", 2, 0, false },
                     { "net.a", 3, 1, false },
                     { "net.b", 1, 1, false },
                     { "net.c", 1, 0, false },
                     { "net.script", 1, 0, true } };
    struct synth         *s = synth_new(scratch_path("calls"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct sonde_modules *modules;

    (void)state;
    mark_call(s, t, true, "net"); /* it began before the recording */
    mark_call(s, t, false, "net");
    for (uint64_t i = 0; i < 3; i++) { /* as if one call went on, by its operators */
        mark_call(s, t, false, "net.a");
        if (i > 0)
            op(s, t, 1000 + 100 * i, 1050 + 100 * i, i == 1 ? "x::one" : "x::other", "net.a", i);
        mark_call(s, t, true, "net.a");
    }
    op(s, t, 2000, 2050, "x::op", "net.script", 9); /* nobody recorded its call */
    mark_call(s, t, false, "net.b");                /* its return is lost */
    mark_call(s, t, true, "net");
    mark_call(s, t, false, "net");
    mark_call(s, t, false, "net.c"); /* both are still open at the end */
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("calls"));
    assert_int_equal(sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL), SONDE_OK);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct sonde_module *m = find(modules, expected[i].path);
        assert_int_equal(m->calls, expected[i].calls);
        assert_int_equal(m->idle_calls, expected[i].idle);
        assert_int_equal(m->calls_inferred, expected[i].inferred);
    }
    sonde_modules_free(modules);
    sonde_trace_close(trace);
}

/* Two passes of a benchmark: peaks are of one call, shapes are what the metadata says. */
static void passes_and_peaks(void **state)
{
    struct synth         *s = synth_new(scratch_path("passes"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct sonde_modules *modules;

    (void)state;
    synth_meta(s, "model.io net.b",
               "{\"in\": \"[[2, 3]]\", \"out\": \"[[2, 4]]\", \"out_bytes\": 32}");
    synth_alloc(s, t, 10, CPU, 7, 100000); /* held before: above it is counted */
    for (uint64_t pass = 0; pass < 2; pass++) {
        uint64_t ns = (pass + 1) * 10000, at = ns;
        synth_begin(s, t, ns, synth_string(s, "model.pass batch=2"), 0);
        for (uint64_t i = 0; i < 2; i++) {
            synth_begin(s, t, ns + 1000 * i + 1, synth_string(s, "x::op"), 0);
            synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, i ? "net.b" : "net.a"));
            synth_attr(s, t, SND_ATTR_MACS, 5 + i);
            synth_alloc(s, t, ns + 1000 * i + 2, CPU, at + i * 2, i ? 30 : 100);
            synth_alloc(s, t, ns + 1000 * i + 3, CPU, at + i * 2 + 1, 50);
            synth_free(s, t, ns + 1000 * i + 4, CPU, at + i * 2 + 1, 50);
            synth_end(s, t, ns + 1000 * i + 500);
        }
        synth_free(s, t, ns + 3000, CPU, at, 100);
        synth_end(s, t, ns + 4000);
        synth_alloc(s, t, ns + 5000, CPU, at + 9, 777); /* stays: the next pass begins above it */
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("passes"));
    assert_int_equal(sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL), SONDE_OK);
    assert_int_equal(sonde_modules_passes(modules), 2);
    assert_int_equal(find(modules, "net.a")->peak_bytes, 150);
    assert_int_equal(find(modules, "net.b")->peak_bytes, 80);
    assert_int_equal(find(modules, "net")->peak_bytes, 180);
    const struct sonde_module *m = find(modules, "net.b");
    assert_true(text_is(m->input_shapes, "[[2, 3]]") && text_is(m->output_shapes, "[[2, 4]]"));
    assert_int_equal(m->output_bytes, 32);
    assert_true(m->macs == 12 && m->backward_macs == 0);
    assert_true(find(modules, "net")->macs == 22);
    assert_int_equal(find(modules, "net.a")->output_bytes, -1);
    sonde_modules_free(modules);
    sonde_trace_close(trace);
}

/* 65,536 are kept, the root among them; the time of others is their ancestor's. */
static void more_modules_than_are_kept(void **state)
{
    struct synth         *s = synth_new(scratch_path("many"), NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    struct sonde_modules *modules;
    char                  name[64];

    (void)state;
    for (unsigned i = 0; i < 66000; i++) {
        snprintf(name, sizeof name, "net.m%u.inner", i < 40000 ? i : 90000 - i);
        op(s, t, 1000 + 100ull * i, 1010 + 100ull * i, "x::op", name, i);
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("many"));
    assert_int_equal(sonde_modules_new(trace, SONDE_FLOPS_NONE, &modules, NULL), SONDE_OK);
    assert_int_equal(sonde_modules_count(modules), 65536);
    assert_int_equal(find(modules, "net")->forward_ns, 66000 * 10);
    assert_int_equal(find(modules, "net.m5.inner")->forward_ns, 10);
    sonde_modules_free(modules);
    sonde_trace_close(trace);
}

/* A call of compiled code: `module` is where it runs, NULL in what runs backward. */
static void kernel(struct synth *s, uint32_t t, uint64_t start, uint64_t end, const char *module,
                   const char *compiled)
{
    struct snd_call_record call = { .name = synth_string(s, "kernel"),
                                    .module = module ? synth_string(s, module) : 0,
                                    .compiled = synth_string(s, compiled) };

    synth_call_range(s, t, start, synth_call(s, &call), end - start);
}

static void begin_backward(struct synth *s, uint32_t t, uint64_t start, uint64_t sequence)
{
    synth_begin(s, t, start, synth_string(s, "CompiledFunctionBackward"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 2);
    synth_attr(s, t, SND_ATTR_SEQUENCE, sequence);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
}

/* Backward code is compiled once for all modules that run it, so that its records have the rest of the path. */
static void compiled_backward(void **state)
{
    struct synth         *s = synth_new(scratch_path("compiled"), NULL);
    uint32_t              t = synth_thread(s, "main", 0), u = synth_thread(s, "autograd", 0);
    struct sonde_modules *modules;

    (void)state;
    synth_meta(s, "torch.thread 4242", "1");
    op(s, t, 1000, 1100, "CompiledFunction", "net.0", 1);
    op(s, t, 2000, 2100, "CompiledFunction", "net.1", 2);
    op(s, t, 3000, 3100, "CompiledFunction", NULL, 3);
    kernel(s, t, 4000, 4030, "net.0.a", "a|Block.a");
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t ns = 10000 * i;
        begin_backward(s, u, ns, i);
        kernel(s, u, ns + 100, ns + 200 * i, NULL, "a|Block.a");
        kernel(s, u, ns + 1000, ns + 1007, NULL, "|");
        synth_end(s, u, ns + 2000);
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("compiled"));
    assert_int_equal(sonde_modules_new(trace, SONDE_FLOPS_FULL, &modules, NULL), SONDE_OK);
    assert_int_equal(find(modules, "net.0.a")->forward_ns, 30);
    assert_int_equal(find(modules, "net.0.a")->calls, 0); /* compiled code calls no modules */
    assert_int_equal(find(modules, "net.0.a")->calls_inferred, false);
    assert_int_equal(find(modules, "net.0.a")->backward_ns, 100);
    assert_int_equal(find(modules, "net.1.a")->backward_ns, 300);
    assert_int_equal(find(modules, "Block.a")->backward_ns, 500);
    assert_int_equal(find(modules, "net.1")->self_backward_ns, 2000 - 300);
    sonde_modules_free(modules);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_and_backward), cmocka_unit_test(recorded_calls),
        cmocka_unit_test(passes_and_peaks),     cmocka_unit_test(more_modules_than_are_kept),
        cmocka_unit_test(compiled_backward),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
