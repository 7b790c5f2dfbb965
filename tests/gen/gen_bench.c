/* SPDX-License-Identifier: Apache-2.0 */
#include "gen_bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "format/layout.h"
#include "synth.h"

#define GPU SND_DEVICE(1, 0)
#define HOST SND_DEVICE(0, 0xffff)

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
    synth_alloc(s, t, at + 10, GPU, address, bytes / 2);
    synth_alloc(s, t, at + 20, HOST, address, 7); /* of another device: not the model's */
    synth_alloc(s, t, at + 30, GPU, address + 1, bytes / 2);
    synth_free(s, t, at + 40, GPU, address + 1, bytes / 2);
    synth_free(s, t, at + 50, HOST, address, 7);
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

static void make_passes(const char *folder)
{
    struct synth *s = begin_file(folder, "pass-2", 3);
    uint32_t      t = synth_thread(s, "main", 0), pass = synth_string(s, "model.pass batch=2");

    note_modules(s, "{\"batch\": 2, \"input_bytes\": 64, \"before_bytes\": 656, \"backward\": 0}");
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t at = 100000 * (i + 1), here = 4096 * (i + 1);
        synth_begin(s, t, at, pass, 0);
        operate(s, t, at + 1000, "Net.a", here, 256, 1);
        operate(s, t, at + 3000, "Net.b", here + 16, 1024, 2);
        synth_free(s, t, at + 4500, GPU, here, 0); /* the allocator does not say how much */
        synth_end(s, t, at + 5000);
        synth_free(s, t, at + 6000, GPU, here + 16, 512);
    }
    synth_close(s, true);
}

static void make_training(const char *folder)
{
    struct synth *s = begin_file(folder, "train-2", 4);
    uint32_t      t = synth_thread(s, "main", 0);

    synth_meta(s, "torch.thread 4242", "1");
    note_modules(s, "{\"batch\": 2, \"input_bytes\": 64, \"before_bytes\": 656, \"backward\": 1}");
    synth_begin(s, t, 1000, synth_string(s, "model.train batch=2"), 0);
    operate(s, t, 2000, "Net.a", 4096, 256, 5);
    synth_end(s, t, 5000);
    synth_begin(s, t, 6000, synth_string(s, "model.backward batch=2"), 0);
    synth_begin(s, t, 7000, synth_string(s, "autograd::engine::evaluate_function: MmBackward0"), 0);
    synth_begin(s, t, 7100, synth_string(s, "MmBackward0"), 0);
    synth_attr(s, t, SND_ATTR_SCOPE, 1);
    synth_attr(s, t, SND_ATTR_SEQUENCE, 5);
    synth_attr(s, t, SND_ATTR_FWD_THREAD, 1);
    synth_begin(s, t, 7200, synth_string(s, "aten::mm"), synth_shapes(s, "8,2;2,16"));
    synth_alloc(s, t, 7250, GPU, 9000, 512);
    synth_end(s, t, 9000);
    synth_end(s, t, 9100);
    synth_end(s, t, 9200);
    synth_end(s, t, 10000);
    synth_close(s, true);
}

void make_bench(const char *path, uint64_t n)
{
    (void)n;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
    make_timing(path, "timing-2", 1, 2);
    make_timing(path, "timing-1", 2, 1);
    make_passes(path);
    make_training(path);
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
        synth_alloc(s, t, 1000 * (i + 1) + 150, HOST, 64 * (i + 1), 1000 * (i + 1));
        synth_end(s, t, 1000 * (i + 1) + 200);
        synth_end(s, t, 1000 * (i + 1) + 500);
    }
    synth_free(s, t, 5000, HOST, 64, 0);
    synth_close(s, true);
}
