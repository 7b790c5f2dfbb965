/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_events.c - cases about what is recorded besides ranges, and what ranges carry. */
#include "cases.h"

#include "format/layout.h"
#include "synth.h"

/* ------------------------------------------------------------------------- memory */

void make_memory(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), other = synth_thread(s, "other", 0);
    uint32_t      load = synth_string(s, "load"), compute = synth_string(s, "compute");

    (void)n;
    synth_free(s, t, 500, CPU, 0x900, 64); /* taken before the recording */
    synth_begin(s, t, 1000, load, 0);
    synth_alloc(s, t, 1100, CPU, 0x1000, 1 << 20);
    synth_alloc(s, t, 1200, CUDA0, 0x1000, 3 << 20); /* the same address on another device */
    synth_end(s, t, 1300);
    synth_begin(s, t, 2000, compute, 0);
    synth_alloc(s, t, 2100, CPU, 0x200000, 2 << 20);
    synth_begin(s, other, 2150, compute, 0);
    synth_alloc(s, other, 2200, CPU, 0x500000, 512 << 10);
    synth_free(s, other, 2300, CPU, 0x1000, 0); /* another thread gives it back, size not told */
    synth_end(s, other, 2400);
    synth_alloc(s, t, 2500, CPU, 0x1000, 100); /* the address is used again */
    synth_free(s, t, 2600, CPU, 0x200000, 2 << 20);
    synth_end(s, t, 2700);
    synth_free(s, t, 3000, CUDA0, 0x1000, 3 << 20);
    synth_alloc(s, t, 3100, CPU, 0x700000, 4096); /* outside any range */
    synth_close(s, true);
}

/* -------------------------------------------------- links, counters, samples, modules */

void make_links(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "forward", 0), other = synth_thread(s, "backward", 0);
    uint32_t      forward = synth_string(s, "forward"), backward = synth_string(s, "backward");

    (void)n;
    for (uint64_t i = 0; i < 4; i++) {
        synth_begin(s, t, 1000 + i * 1000, forward, 0);
        synth_attr(s, t, SND_ATTR_SEQUENCE, i);
        synth_link(s, t, 1100 + i * 1000, SND_LINK_FWD_BWD, false, i);
        synth_end(s, t, 1500 + i * 1000);
    }
    for (uint64_t i = 3; i > 0; i--) { /* the last has no other end */
        synth_begin(s, other, 10000 - i * 1000, backward, 0);
        synth_attr(s, other, SND_ATTR_FWD_THREAD, 1);
        synth_link(s, other, 10100 - i * 1000, SND_LINK_FWD_BWD, true, i);
        synth_end(s, other, 10500 - i * 1000);
    }
    synth_link(s, t, 20000, SND_LINK_FLOW, false, UINT64_MAX);
    synth_link(s, other, 21000, SND_LINK_FLOW, true, UINT64_MAX);
    synth_close(s, true);
}

void make_counters(const char *path, uint64_t n)
{
    static const double values[] = { 0, 1, -1.5, 1e300, 5e-324, 0.1, 1.0 / 0.0, -1.0 / 0.0 };
    struct synth       *s = synth_new(path, NULL);
    uint32_t            t = synth_thread(s, "main", 0);
    uint32_t            loss = synth_string(s, "loss"), rate = synth_string(s, "rate");

    (void)n;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        synth_counter(s, t, 1000 + i * 100, loss, values[i]);
        synth_counter(s, t, 1050 + i * 100, rate, (double)i / 3);
    }
    synth_counter(s, t, 3000, loss, __builtin_nan(""));
    synth_close(s, true);
}

void make_stacks(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      file = synth_string(s, "model.py"), op = synth_string(s, "op");
    uint32_t      functions[3] = { synth_string(s, "main"), synth_string(s, "train"),
                                   synth_string(s, "evaluate") };
    uint32_t      root = synth_stack(s, 0, synth_frame(s, functions[0], file, 10));
    uint32_t      stacks[2] = { synth_stack(s, root, synth_frame(s, functions[1], file, 20)),
                                synth_stack(s, root, synth_frame(s, functions[2], file, 30)) };
    uint32_t      modules[2] = { synth_string(s, "net.layer1"), synth_string(s, "net.layer2") };
    uint32_t      shapes[2] = { synth_shapes(s, "2,3"), synth_shapes(s, "4,5;#") };

    (void)n;
    for (uint64_t i = 0; i < 8; i++) {
        synth_begin(s, t, 1000 + i * 1000, op, 0);
        synth_attr(s, t, SND_ATTR_STACK, stacks[i & 1]);
        synth_attr(s, t, SND_ATTR_MODULE, modules[(i >> 1) & 1]);
        synth_attr(s, t, SND_ATTR_SHAPES, shapes[(i >> 2) & 1]);
        synth_attr(s, t, SND_ATTR_FLOPS, (uint64_t)1 << (46 + i % 3)); /* also beyond 48 bits */
        synth_end(s, t, 1500 + i * 1000 + i);
        synth_sample(s, t, 1600 + i * 1000, stacks[i & 1], 0, 0, 1000);
    }
    synth_close(s, true);
}
