/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_diff.c - runs of one program with known differences: for sonde diff. */
#include "cases.h"

#include "format/layout.h"
#include "synth.h"

/* What a run differs by: bits of N. Bits from 256 on seed the noise alone. */
enum difference {
    SLOW_CONV = 1,   /* conv takes 5 % longer */
    RENAMED = 2,     /* relu is gelu */
    NEW_GONE = 4,    /* pool is gone, extra is new */
    MORE_MEMORY = 8, /* conv takes twice the bytes and FLOPs, and add is called once more */
    SLOW_ALL = 16,   /* the machine is 10 % slower */
    NO_STEPS = 32,
    NO_RANGES = 64,
    FEW_STEPS = 128, /* 3 */
};

static uint64_t noise_state;

/* Up to 1 % longer than `ns`, as the seed has it. */
static uint64_t noisy(uint64_t ns)
{
    noise_state = noise_state * 6364136223846793005u + 1442695040888963407u;
    return ns + ns / 100 * (noise_state >> 33) % (ns / 100 + 1);
}

static uint64_t put(struct synth *s, uint32_t t, uint64_t at, const char *name, uint64_t ns)
{
    synth_begin(s, t, at, synth_string(s, name), 0);
    synth_end(s, t, at + ns);
    return at + ns + 100;
}

/* conv, with an operator inside it. */
static uint64_t put_conv(struct synth *s, uint32_t t, uint64_t at, uint64_t n, uint64_t scale)
{
    uint64_t inner = noisy(20 * scale), own = noisy((n & SLOW_CONV ? 105 : 100) * scale);
    uint32_t copies = n & MORE_MEMORY ? 2 : 1;

    synth_begin(s, t, at, synth_string(s, "conv"), 0);
    synth_attr(s, t, SND_ATTR_FLOPS, 1000 * copies);
    synth_alloc(s, t, at + 10, CPU, at, 4096 * copies);
    synth_begin(s, t, at + own / 2, synth_string(s, "im2col"), 0);
    synth_end(s, t, at + own / 2 + inner);
    synth_end(s, t, at + own + inner);
    return at + own + inner + 100;
}

void make_diff(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint64_t      at = 1000, scale = n & SLOW_ALL ? 1100 : 1000;

    noise_state = n / 256 + 7;
    if (!(n & NO_RANGES))
        at = put(s, t, at, "setup", 5000000);
    for (uint64_t step = 0; !(n & NO_RANGES) && step < (n & FEW_STEPS ? 3 : 20); step++) {
        if (!(n & NO_STEPS))
            synth_step(s, t, at, step);
        at = put_conv(s, t, at + 50, n, scale);
        at = put(s, t, at, n & RENAMED ? "gelu" : "relu", noisy(30 * scale));
        at = put(s, t, at, "norm", noisy(50 * scale));
        for (uint64_t i = 0; i < (n & MORE_MEMORY ? 3u : 2u); i++)
            at = put(s, t, at, "add", noisy(10 * scale));
        if (!(n & NEW_GONE))
            at = put(s, t, at, "pool", noisy(15 * scale));
        at = put(s, t, at, "linear", noisy(80 * scale));
        if (n & NEW_GONE)
            at = put(s, t, at, "extra", noisy(25 * scale));
        at = put(s, t, at, "loss", noisy(40 * scale));
    }
    synth_close(s, true);
}
