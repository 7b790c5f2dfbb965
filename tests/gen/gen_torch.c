/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_torch.c - cases about operators: a network's, and training as torch's probe has it. */
#include "cases.h"

#include <stdio.h>

#include "format/layout.h"
#include "synth.h"

/* ---------------------------------------------------- a small convolutional network */

static void convolve(struct synth *s, uint32_t t, uint64_t ns, const uint32_t name[3],
                     uint32_t shapes, uint64_t flops, uint64_t address, uint64_t bytes)
{
    synth_begin(s, t, ns, name[0], shapes);
    synth_begin(s, t, ns + 2000, name[1], shapes);
    synth_begin(s, t, ns + 5000, name[2], shapes);
    synth_attr(s, t, SND_ATTR_FLOPS, flops);
    synth_alloc(s, t, ns + 6000, CPU, address, bytes);
    synth_alloc(s, t, ns + 7000, CPU, address + bytes, 4096);
    synth_free(s, t, ns + 900000, CPU, address + bytes, 4096);
    synth_end(s, t, ns + 905000);
    synth_end(s, t, ns + 908000);
    synth_end(s, t, ns + 910000);
}

void make_convnet(const char *path, uint64_t n)
{
    static const char *const shapes_of[4] = {
        "8,3,224,224;64,3,3,3;64;(#;#);-",
        "8,64,222,222;64,64,3,3;64;(#;#);-",
        "8,64,220,220;64,64,3,3;64;(#;#);-",
        "8,64,218,218;10,64,3,3;10;(#;#);-",
    };
    static const uint64_t flops_of[4] = { 1362672ull * 1000, 28547ull * 1000000, 28035ull * 1000000,
                                          4301ull * 1000000 };
    struct synth         *s = synth_new(path, NULL);
    uint32_t              t = synth_thread(s, "main", 0);
    const uint32_t        conv[3] = { synth_string(s, "aten::conv2d"),
                                      synth_string(s, "aten::convolution"),
                                      synth_string(s, "aten::_convolution") };
    uint32_t forward = synth_string(s, "forward"), relu = synth_string(s, "aten::relu");
    uint32_t file = synth_string(s, "net.c");
    uint32_t stack =
        synth_stack(s, synth_stack(s, 0, synth_frame(s, synth_string(s, "main"), file, 40)),
                    synth_frame(s, forward, file, 17));
    uint64_t ns = 10000;

    (void)n;
    synth_meta(s, "model", "four convolutions");
    for (uint64_t step = 0; step < 3; step++) {
        synth_step(s, t, ns, step);
        synth_begin(s, t, ns + 100, forward, 0);
        synth_attr(s, t, SND_ATTR_STACK, stack);
        for (int layer = 0; layer < 4; layer++) {
            uint64_t at = ns + 1000 + (uint64_t)layer * 1000000;
            uint32_t shapes = synth_shapes(s, shapes_of[layer]);
            convolve(s, t, at, conv, shapes, flops_of[layer], 0x10000000u * (unsigned)(layer + 1),
                     (uint64_t)(layer + 1) << 20);
            synth_begin(s, t, at + 920000, relu, shapes);
            synth_end(s, t, at + 960000 + step * 1000);
        }
        for (unsigned layer = 0; layer < 3; layer++)
            synth_free(s, t, ns + 4050000 + layer, CPU, 0x10000000u * (layer + 1),
                       (uint64_t)(layer + 1) << 20);
        synth_end(s, t, ns + 4100000);
        synth_free(s, t, ns + 4200000, CPU, 0x40000000u, 4u << 20);
        ns += 5000000;
    }
    synth_thread_done(s, t, ns, 0);
    synth_close(s, true);
}

/* ------------------------------------------------ operators under a machine's measured roof */

void make_roofline(const char *path, uint64_t n)
{
    static const struct {
        const char *name;
        uint64_t    ns, flops, bytes;
    } ops[] = { { "aten::mm", 2000000, 120000000, 1200000 },
                { "aten::relu", 500000, 1000000, 8000000 },
                { "aten::mm", 2500000, 120000000, 1200000 },
                { "<img src=x onerror=fail()>", 100000, 300000, 300000 },
                { "aten::view", 1000, 0, 0 },
                { "user.counted", 40000, 5000, 0 } };
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint64_t      ns = 1000;

    (void)n;
    synth_meta(s, "machine.roof",
               "{\"flops_per_second\": 100000000000, \"bytes_per_second\": 20000000000, "
               "\"threads\": 2}");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        synth_begin(s, t, ns, synth_string(s, ops[i].name), 0);
        if (ops[i].flops)
            synth_attr(s, t, SND_ATTR_FLOPS, ops[i].flops);
        if (ops[i].bytes)
            synth_attr(s, t, SND_ATTR_BYTES, ops[i].bytes);
        synth_end(s, t, ns + ops[i].ns);
        ns += ops[i].ns + 1000;
    }
    synth_close(s, true);
}

/* ------------------------------------------- a training step, as torch's probe records it */

struct torch_op {
    const char *name, *shapes, *arguments, *module;
    uint64_t    sequence; /* plus one; 0: none */
};

static const struct torch_op conv = { "aten::conv2d", "2,3,8,8;4,3,3,3;4;-;-;-;#",
                                      "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", "
                                      "\"[1, 1]\", \"1\"]",
                                      "Net.features.0", 1 };
static const struct torch_op convolution = {
    "aten::convolution", "2,3,8,8;4,3,3,3;4;-;-;-;#;-;#",
    "[\"\", \"\", \"\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"False\", "
    "\"[0, 0]\", \"1\"]",
    "Net.features.0", 1
};
static const struct torch_op leaf = { "aten::is_leaf", NULL, NULL, NULL, 0 };
static const struct torch_op relu = { "aten::relu", "2,4,8,8", NULL, "Net.features.1", 2 };
static const struct torch_op linear = { "aten::linear", "2,256;10,256;10", NULL, "Net.fc", 3 };
static const struct torch_op addmm = { "aten::addmm", "10;2,256;256,10;#;#",
                                       "[\"\", \"\", \"\", \"1\", \"1\"]", "Net.fc", 3 };
static const struct torch_op loss = { "aten::sum", "2,10", NULL, NULL, 4 };
static const struct torch_op mm = { "aten::mm", "10,2;2,256", NULL, NULL, 0 };
static const struct torch_op threshold = { "aten::threshold_backward", "2,4,8,8;2,4,8,8;#",
                                           "[\"\", \"\", \"0\"]", NULL, 0 };
static const struct torch_op convolution_backward = {
    "aten::convolution_backward", "2,4,8,8;2,3,8,8;4,3,3,3;-;-;-;-;#;-;#;-",
    "[\"\", \"\", \"\", \"[4]\", \"[1, 1]\", \"[1, 1]\", "
    "\"[1, 1]\", \"False\", \"[0, 0]\", \"1\", "
    "\"[False, True, True]\"]",
    NULL, 0
};
static const struct torch_op update = { "aten::add_", "4,3,3,3;4,3,3,3;#", "[\"\", \"\", \"-0.1\"]",
                                        NULL, 0 };
static const struct torch_op strange = { "mylib::rotate", "2,4", NULL, NULL, 0 };

static void torch_attr(struct synth *s, uint32_t t, uint8_t key, const char *text)
{
    if (text)
        synth_attr(s, t, key, synth_string(s, text));
}

static void torch_begin(struct synth *s, uint32_t t, uint64_t ns, const struct torch_op *op)
{
    synth_begin(s, t, ns, synth_string(s, op->name), op->shapes ? synth_shapes(s, op->shapes) : 0);
    torch_attr(s, t, SND_ATTR_ARGUMENTS, op->arguments);
    torch_attr(s, t, SND_ATTR_MODULE, op->module);
    if (op->sequence > 0)
        synth_attr(s, t, SND_ATTR_SEQUENCE, op->sequence - 1);
}

/* The engine's range, the function in it, and one operator in that. */
static uint64_t torch_backward(struct synth *s, uint32_t t, uint64_t ns, const char *function,
                               uint64_t sequence, const struct torch_op *op)
{
    char engine[96];

    snprintf(engine, sizeof engine, "autograd::engine::evaluate_function: %s", function);
    synth_begin(s, t, ns, synth_string(s, engine), 0);
    synth_begin(s, t, ns + 1000, synth_string(s, function), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 2);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
    if (sequence > 0)
        synth_attr(s, t, SND_ATTR_SEQUENCE, sequence - 1);
    if (op) {
        torch_begin(s, t, ns + 2000, op);
        synth_alloc(s, t, ns + 2500, CPU, 0x900000 + ns, 4096);
        synth_end(s, t, ns + 12000);
    }
    synth_end(s, t, ns + 13000);
    synth_end(s, t, ns + 14000);
    return ns + 15000;
}

static void torch_notes(struct synth *s)
{
    synth_meta(s, "torch.probe", "{\"shapes\": true}");
    synth_meta(s, "torch.options", "{\"record_shapes\": true, \"with_stack\": false}");
    synth_meta(s, "python.prefixes", "[\"/usr/lib/python3/\", \"/usr/\"]");
    synth_meta(s, "torch.thread 4242", "1");
    synth_meta(s, "torch.thread 4243", "2");
    synth_meta(s, "module Net", "{\"class\": \"Net\", \"parameters\": 0}");
    synth_meta(s, "module Net.features", "{\"class\": \"Sequential\", \"parameters\": 0}");
    synth_meta(s, "module Net.features.0",
               "{\"class\": \"Conv2d\", \"parameters\": 112, \"parameter_bytes\": 448}");
    synth_meta(s, "module Net.features.1", "{\"class\": \"ReLU\", \"parameters\": 0}");
    synth_meta(s, "module Net.fc",
               "{\"class\": \"Linear\", \"parameters\": 2570, \"parameter_bytes\": 10280}");
}

static void torch_forward(struct synth *s, uint32_t t, uint64_t ns, uint32_t stack)
{
    torch_begin(s, t, ns + 1000, &conv);
    torch_begin(s, t, ns + 2000, &convolution);
    torch_begin(s, t, ns + 2100, &leaf);
    synth_end(s, t, ns + 2200);
    synth_alloc(s, t, ns + 3000, CPU, 0x100000, 2048);
    synth_end(s, t, ns + 42000);
    synth_end(s, t, ns + 43000);
    torch_begin(s, t, ns + 44000, &relu);
    synth_alloc(s, t, ns + 44500, CPU, 0x200000, 2048);
    synth_end(s, t, ns + 46000);
    torch_begin(s, t, ns + 50000, &linear);
    torch_begin(s, t, ns + 51000, &addmm);
    synth_alloc(s, t, ns + 51500, CPU, 0x300000, 80);
    synth_end(s, t, ns + 60000);
    synth_end(s, t, ns + 61000);
    torch_begin(s, t, ns + 62000, &loss);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_end(s, t, ns + 63000);
}

static uint64_t torch_way_back(struct synth *s, uint32_t t, uint64_t ns)
{
    ns = torch_backward(s, t, ns, "SumBackward0", 4, NULL);
    ns = torch_backward(s, t, ns, "AddmmBackward0", 3, &mm);
    ns = torch_backward(s, t, ns, "torch::autograd::AccumulateGrad", 0, NULL);
    ns = torch_backward(s, t, ns, "ReluBackward0", 2, &threshold);
    ns = torch_backward(s, t, ns, "ConvolutionBackward0", 1, &convolution_backward);
    return ns;
}

static void torch_update(struct synth *s, uint32_t t, uint64_t ns)
{
    synth_begin(s, t, ns + 1000, synth_string(s, "Optimizer.step#SGD.step"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 8);
    torch_begin(s, t, ns + 2000, &update);
    synth_end(s, t, ns + 5000);
    synth_end(s, t, ns + 6000);
}

void make_torch(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "python", 0), loop = synth_thread(s, "pt_autograd_0", 0);
    uint32_t file = synth_string(s, "/usr/lib/python3/loss.py"), mean = synth_string(s, "mean");
    uint32_t stack = synth_stack(s, 0, synth_frame(s, mean, file, 12));
    uint64_t ns = 10000;

    (void)n;
    torch_notes(s);
    for (uint64_t step = 0; step < 2; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%u", (unsigned)step);
        synth_begin(s, t, ns, synth_string(s, name), 0);
        synth_attr(s, t, SND_ATTR_SCOPE, 8);
        synth_attr(s, t, SND_ATTR_KEY, 0x7000 + step);
        torch_forward(s, t, ns, stack);
        ns = torch_way_back(s, t, ns + 70000);
        synth_free(s, t, ns, CPU, 0x100000, 0); /* as the probe has it: without a size */
        synth_free(s, t, ns + 1, CPU, 0x200000, 0);
        synth_free(s, t, ns + 2, CPU, 0x300000, 0);
        synth_free(s, t, ns + 3, CPU, 0x999999, 0); /* taken before */
        torch_update(s, t, ns);
        synth_end(s, t, ns + 7000);
        torch_begin(s, loop, ns + 7500, &strange);
        synth_end(s, loop, ns + 9500);
        ns += 20000;
    }
    synth_alloc(s, t, ns, CPU, 0x500000, 64); /* outside any range */
    synth_close(s, true);
}
