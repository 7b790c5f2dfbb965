/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_model.c - cases about a model's cost: of its layers, as a whole, its tensors. */
#include "cases.h"

#include <stdio.h>

#include "format/layout.h"
#include "synth.h"

static const char model[] =
    "{\"name\": \"net.py:Net\", \"class\": \"Net\", \"device\": \"cuda:0\", \"dtype\": "
    "\"float32\", "
    "\"parameters\": 144, \"trainable\": 128, \"parameter_bytes\": 576, \"buffer_bytes\": 16}";
static const char machine[] =
    "{\"system\": {\"system\": \"Linux\", \"node\": \"box\", \"release\": \"6.1\"}, \"cpu\": "
    "{\"model\": \"A \\\"good\\\" CPU\", \"architecture\": \"x86_64\", \"physical\": 4, \"total\": "
    "8, \"hertz\": 3700000000}, \"memory\": {\"total\": 34359738368, \"used\": 1073741824, "
    "\"available\": 33285996544}, \"gpus\": [{\"name\": \"Big GPU\", \"memory\": 25769803776}]}";

static struct synth *begin_file(const char *folder, const char *name, uint32_t number)
{
    struct synth_options options = { .pid = 4242, .start_ns = number * 100000000u };
    char                 path[1024];

    snprintf(path, sizeof path, "%s/%s.sonde", folder, name);
    struct synth *s = synth_new(path, &options);
    synth_meta(s, "model", model);
    synth_meta(s, "model.machine", machine);
    return s;
}

/* Four runs of a batch size, each longer than the last, with copies before and after. */
static void make_timing(const char *folder, const char *name, uint32_t number, uint32_t batch)
{
    static const char *const parts[] = { "total", "to_device", "forward", "to_host" };
    struct synth            *s = begin_file(folder, name, number);
    uint32_t                 t = synth_thread(s, "main", 0), names[4];
    char                     text[128];

    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "model.%s batch=%u", parts[i], batch);
        names[i] = synth_string(s, text);
    }
    for (uint64_t run = 0; run < 4; run++) {
        uint64_t at = 1000000 * (run + 1), length = batch * 10000 * (run + 1);
        synth_begin(s, t, at, names[0], 0);
        synth_begin(s, t, at + 100, names[1], 0);
        synth_end(s, t, at + 2100);
        synth_begin(s, t, at + 2200, names[2], 0);
        synth_end(s, t, at + 2200 + length);
        synth_begin(s, t, at + 2300 + length, names[3], 0);
        synth_end(s, t, at + 5300 + length);
        synth_end(s, t, at + 5400 + length);
    }
    snprintf(text, sizeof text, "model.gpu_ns batch=%u", batch);
    for (uint64_t run = 0; run < 4; run++)
        synth_counter(s, t, 9000000 + run, synth_string(s, text),
                      batch * 9000.0 * (double)(run + 1));
    snprintf(text, sizeof text,
             "{\"batch\": %u, \"source\": \"NVML, the whole GPU\", \"before_uj\": 1000000, "
             "\"after_uj\": 3000000, \"runs\": 4}",
             batch);
    synth_meta(s, "model.energy", text);
    synth_close(s, true);
}

/* One operator of a module, which takes `bytes` and gives half of them back. */
static void operate(struct synth *s, uint32_t t, uint64_t at, const char *module, uint64_t address,
                    uint64_t bytes, uint64_t sequence)
{
    synth_begin(s, t, at, synth_string(s, "aten::mm"), synth_shapes(s, "2,8;8,16"));
    synth_attr(s, t, SND_ATTR_MODULE, synth_string(s, module));
    synth_attr(s, t, SND_ATTR_SEQUENCE, sequence);
    synth_alloc(s, t, at + 10, CUDA0, address, bytes / 2);
    synth_alloc(s, t, at + 20, CPU, address, 7); /* of another device: not the model's */
    synth_alloc(s, t, at + 30, CUDA0, address + 1, bytes / 2);
    synth_free(s, t, at + 40, CUDA0, address + 1, bytes / 2);
    synth_free(s, t, at + 50, CPU, address, 7);
    synth_end(s, t, at + 1000);
}

static void note_modules(struct synth *s, const char *batch)
{
    synth_meta(s, "module Net", "{\"class\": \"Net\", \"parameters\": 0, \"parameter_bytes\": 0}");
    synth_meta(s, "module Net.a",
               "{\"class\": \"Linear\", \"parameters\": 128, \"parameter_bytes\": 512}");
    synth_meta(s, "module Net.b",
               "{\"class\": \"Linear\", \"parameters\": 16, \"parameter_bytes\": 64}");
    synth_meta(s, "model.io Net.a",
               "{\"in\": \"[[2, 8]]\", \"out\": \"[[2, 16]]\", \"out_bytes\": 128, \"device_ns\": "
               "[400, 600]}");
    synth_meta(s, "model.batch", batch);
}

static void make_passes(const char *folder, unsigned before_bytes)
{
    struct synth *s = begin_file(folder, "pass-2", 3);
    uint32_t      t = synth_thread(s, "main", 0), pass = synth_string(s, "model.pass batch=2");
    char          batch[160];

    snprintf(batch, sizeof batch,
             "{\"batch\": 2, \"input_bytes\": 64, \"before_bytes\": %u, \"backward\": 0, "
             "\"input\": \"ids 2x8 int64\", \"input_source\": \"from --input\"}",
             before_bytes);
    note_modules(s, batch);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t at = 100000 * (i + 1), here = 4096 * (i + 1);
        synth_begin(s, t, at, pass, 0);
        operate(s, t, at + 1000, "Net.a", here, 256, 1);
        operate(s, t, at + 3000, "Net.b", here + 16, 1024, 2);
        synth_free(s, t, at + 4500, CUDA0, here, 0); /* the allocator does not say how much */
        synth_end(s, t, at + 5000);
        synth_free(s, t, at + 6000, CUDA0, here + 16, 512);
    }
    synth_close(s, true);
}

static void make_training(const char *folder, unsigned before_bytes)
{
    struct synth *s = begin_file(folder, "train-2", 4);
    uint32_t      t = synth_thread(s, "main", 0);
    char          batch[100];

    snprintf(batch, sizeof batch,
             "{\"batch\": 2, \"input_bytes\": 64, \"before_bytes\": %u, \"backward\": 1}",
             before_bytes);
    synth_meta(s, "torch.thread 4242", "1");
    note_modules(s, batch);
    synth_begin(s, t, 1000, synth_string(s, "model.train batch=2"), 0);
    operate(s, t, 2000, "Net.a", 4096, 256, 5);
    synth_end(s, t, 5000);
    synth_begin(s, t, 6000, synth_string(s, "model.backward batch=2"), 0);
    synth_begin(s, t, 7000, synth_string(s, "autograd::engine::evaluate_function: MmBackward0"), 0);
    synth_begin(s, t, 7100, synth_string(s, "MmBackward0"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, SND_SCOPE_BACKWARD + 1);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
    synth_begin(s, t, 7200, synth_string(s, "aten::mm"), synth_shapes(s, "8,2;2,16"));
    synth_alloc(s, t, 7250, CUDA0, 9000, 512);
    synth_end(s, t, 9000);
    synth_end(s, t, 9100);
    synth_end(s, t, 9200);
    synth_end(s, t, 10000);
    synth_close(s, true);
}

/* n 1: nothing was in use before the first pass. */
void make_bench(const char *path, uint64_t n)
{
    make_folder(path);
    make_timing(path, "timing-2", 1, 2);
    make_timing(path, "timing-1", 2, 1);
    make_passes(path, n == 1 ? 0 : 656);
    make_training(path, n == 1 ? 0 : 656);
    struct synth *s = begin_file(path, "peak", 5);
    uint32_t      t = synth_thread(s, "main", 0);
    for (uint64_t i = 0; i < 2; i++) {
        synth_begin(s, t, 1000 + 100000 * i, synth_string(s, "model.peak flops=1000000"), 0);
        synth_end(s, t, 1000 + 100000 * i + (i ? 20000 : 50000));
    }
    synth_close(s, true);
}

void make_tensors(const char *path, uint64_t n)
{
    static const char *const rows[] = {
        "{\"name\": \"Net.embed.weight\", \"kind\": \"parameter\", \"dtype\": \"float32\", "
        "\"shape\": \"[10, 4]\", \"device\": \"cpu\", \"bytes\": 160, \"storage\": 4096, "
        "\"storage_bytes\": 160}",
        "{\"name\": \"Net.head.weight\", \"kind\": \"parameter\", \"dtype\": \"float32\", "
        "\"shape\": \"[10, 4]\", \"device\": \"cpu\", \"bytes\": 160, \"storage\": 4096, "
        "\"storage_bytes\": 160}",
        "{\"name\": \"Net.embed.weight.grad\", \"kind\": \"gradient\", \"dtype\": \"float32\", "
        "\"shape\": \"[10, 4]\", \"device\": \"cpu\", \"bytes\": 160, \"storage\": 8192, "
        "\"storage_bytes\": 256}",
        "{\"name\": \"Adam.embed.weight.step\", \"kind\": \"optimizer\", \"dtype\": \"float32\", "
        "\"shape\": \"[]\", \"device\": \"cpu\", \"bytes\": 4, \"storage\": 12288, "
        "\"storage_bytes\": 4}",
        "not JSON",
    };
    struct synth *s = synth_new(path, NULL);
    char          key[32];

    (void)n;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(key, sizeof key, "tensor %u", i + 1);
        synth_meta(s, key, rows[i]);
    }
    synth_close(s, true);
}

void make_tensor_lines(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), file = synth_string(s, "pkg/net.py");
    uint32_t      outer = synth_frame(s, synth_string(s, "main"), synth_string(s, "run.py"), 3);
    uint32_t      stacks[2];

    (void)n;
    synth_meta(
        s, "model.lines 1",
        "{\"function\": \"Net.step\", \"name\": \"step\", \"file\": \"/home/me/pkg/net.py\", "
        "\"first\": 10, \"lines\": [\"def step(x):\", \"    y = x + 1\", "
        "\"    return y * \\\"2\\\"\"]}");
    for (uint32_t i = 0; i < 2; i++)
        stacks[i] = synth_stack(s, synth_stack(s, 0, outer),
                                synth_frame(s, synth_string(s, "step"), file, 11 + i));
    for (uint64_t i = 0; i < 3; i++) { /* the third is of no chosen line */
        synth_begin(s, t, 1000 * (i + 1), synth_string(s, "aten::add"), 0);
        synth_attr(s, t, SND_ATTR_STACK, i < 2 ? stacks[i] : synth_stack(s, 0, outer));
        synth_begin(s, t, 1000 * (i + 1) + 100, synth_string(s, "aten::empty"), 0);
        synth_alloc(s, t, 1000 * (i + 1) + 150, CPU, 64 * (i + 1), 1000 * (i + 1));
        synth_end(s, t, 1000 * (i + 1) + 200);
        synth_end(s, t, 1000 * (i + 1) + 500);
    }
    synth_free(s, t, 5000, CPU, 64, 0);
    synth_close(s, true);
}

/* ------------------------------------------------------------- a profile of layers */

static void layer(struct synth *s, uint32_t t, uint64_t ns, const char *name, uint64_t duration)
{
    synth_span(s, t, ns, synth_string(s, name), duration);
}

void make_layers(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), pass = synth_string(s, "pass");

    (void)n;
    synth_meta(s, "layers",
               "model_name=test/net\ndtype=torch.float32\nbatch_size=2\nlayers=4\ndevice=cpu\n"
               "memory=weights\npaired=0\nlater=unknown\nenvironment.torch=2.0\n"
               "environment.threads=1");
    synth_meta(s, "layer 1",
               "name=stem\nin=torch.float32 [3, 8, 8] 1536\nout=torch.float32 [16, 4] 512\n"
               "out=torch.int64 [] 16\nparameter_count=112\nparameter_bytes=448\nbuffer_bytes=0");
    synth_meta(s, "layer 2",
               "name=block.0\nin=torch.float32 [16, 4] 512\nin=torch.int64 [] 16\n"
               "out=torch.float32 [16, 4] 512\nparameter_count=64\nparameter_bytes=256\n"
               "buffer_bytes=8\nrss_bytes=4096");
    synth_meta(s, "layer 3",
               "name=block.1\nin=torch.float32 [16, 4] 512\nout=torch.float32 [16, 4] 512\n"
               "parameter_count=64\nparameter_bytes=256\nbuffer_bytes=8\nsame_as=2");
    synth_meta(s, "layer 4",
               "name=never run\nparameter_count=1\nparameter_bytes=4\n"
               "buffer_bytes=0");
    synth_meta(s, "layer x", "name=none");
    layer(s, t, 1000, "layer 1 warmup", 90000);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t ns = 100000 + i * 100000;
        synth_begin(s, t, ns, pass, 0);
        layer(s, t, ns + 100, "layer 1", 10000 + 1000 * i);
        layer(s, t, ns + 20100, "layer 2", 20000 + i * i * 1000);
        layer(s, t, ns + 60100, "layer 2 backward", 30000);
        synth_end(s, t, ns + 95000);
        synth_counter(s, t, ns + 96000, synth_string(s, "layer 2 device_copy_ns"), 2500);
    }
    layer(s, t, 600000, "model", 33000);
    synth_begin(s, t, 700000, synth_string(s, "layer 4"), 0); /* killed meanwhile */
    synth_close(s, false);
}

static void tell_graph(struct synth *s, unsigned batch)
{
    char text[64];

    snprintf(text, sizeof text, "{\"batch\": %u, \"tracer\": \"torch.fx\"}", batch);
    synth_meta(s, "model.graph", text);
}

static uint32_t name_of(struct synth *s, const char *what, unsigned batch)
{
    char text[64];

    snprintf(text, sizeof text, "model.%s batch=%u", what, batch);
    return synth_string(s, text);
}

/* Of the graph of a small net: a module, a function, a method between input and output. */
static void note_nodes(struct synth *s, unsigned batch)
{
    static const char *const nodes[] = {
        "{\"name\": \"x\", \"kind\": \"placeholder\", \"target\": \"x\", \"module\": \"\", \"in\": "
        "\"[]\", \"out\": \"[[2, 8]]\", \"in_bytes\": 0, \"out_bytes\": 64, \"parameter_bytes\": "
        "0}",
        "{\"name\": \"head\", \"kind\": \"call_module\", \"target\": \"head\", \"module\": "
        "\"Linear\", \"in\": \"[[2, 8]]\", \"out\": \"[[2, 16]]\", \"in_bytes\": 64, "
        "\"out_bytes\": "
        "128, \"parameter_bytes\": 512}",
        "{\"name\": \"add\", \"kind\": \"call_function\", \"target\": \"operator.add\", "
        "\"module\": "
        "\"\", \"in\": \"[[2, 16], [2, 16]]\", \"out\": \"[[2, 16]]\", \"in_bytes\": 256, "
        "\"out_bytes\": 128, \"parameter_bytes\": 0}",
        "{\"name\": \"output\", \"kind\": \"output\", \"target\": \"output\", \"module\": \"\", "
        "\"in\": \"[[2, 16]]\", \"out\": \"[[2, 16]]\", \"in_bytes\": 128, \"out_bytes\": 128, "
        "\"parameter_bytes\": 0}",
    };
    char key[32];

    tell_graph(s, batch);
    for (unsigned i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        snprintf(key, sizeof key, "model.node %u", i);
        synth_meta(s, key, nodes[i]);
    }
}

static uint32_t node_name(struct synth *s, uint32_t number)
{
    char name[32];

    snprintf(name, sizeof name, "model.node %u", number);
    return synth_string(s, name);
}

static void make_graph_times(const char *folder, unsigned batch)
{
    static const uint64_t lengths[] = { 100, 6000, 2000, 100 };
    struct synth         *s = begin_file(folder, "graph-time-2", 1);
    uint32_t              t = synth_thread(s, "main", 0);

    tell_graph(s, batch);
    for (uint64_t run = 0; run < 3; run++) {
        uint64_t at = 200000 * (run + 1);
        synth_begin(s, t, at, name_of(s, "graph", batch), 0);
        for (uint32_t i = 0; i < 4; i++) {
            synth_begin(s, t, at + 100 + 20000 * i, node_name(s, i), 0);
            synth_end(s, t, at + 100 + 20000 * i + lengths[i] * (run + 1));
        }
        synth_end(s, t, at + 90000);
    }
    synth_close(s, true);
}

void make_graph(const char *path, uint64_t n)
{
    unsigned batch = n == 0 ? 1 : 2;

    make_folder(path);
    make_graph_times(path, batch);
    struct synth *s = begin_file(path, "graph-2", 2);
    uint32_t      t = synth_thread(s, "main", 0);
    note_nodes(s, batch);
    synth_begin(s, t, 1000, name_of(s, "graph_pass", batch), 0);
    synth_begin(s, t, 1100, node_name(s, 0), 0);
    synth_end(s, t, 1200);
    synth_begin(s, t, 2000, node_name(s, 1), 0);
    operate(s, t, 2100, "head", 4096, 256, 1);
    synth_end(s, t, 4000);
    synth_begin(s, t, 5000, node_name(s, 2), 0);
    synth_alloc(s, t, 5100, CUDA0, 8192, 128);
    synth_end(s, t, 6000);
    synth_free(s, t, 6100, CUDA0, 4096, 128);
    synth_begin(s, t, 7000, node_name(s, 3), 0);
    synth_end(s, t, 7100);
    synth_end(s, t, 8000);
    synth_close(s, true);
}

void make_no_graph(const char *path, uint64_t n)
{
    (void)n;
    make_folder(path);
    struct synth *s = begin_file(path, "graph-2", 1);
    synth_meta(s, "model.graph", "{\"absent\": \"The model cannot be traced. torch.fx: no\"}");
    synth_close(s, true);
}
