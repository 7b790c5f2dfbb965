/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_random.c - a Python program of chance, by its number N. */
#include "cases.h"

#include <stdio.h>

#include "format/layout.h"
#include "synth.h"

#define RANDOM_FUNCTIONS 12 /* of ten lines each, in prog.py: f0 begins at line 1, f1 at 11, .. */

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static void random_name(char name[16], uint32_t i)
{
    snprintf(name, 16, i % 4 == 3 ? "Thing.f%u" : "f%u", (unsigned)i);
}

/* Who calls whom: numbers that fit together as little as a person could make them by hand. */
static void random_calls(struct synth *s, const uint32_t *frames)
{
    for (uint32_t callee = 0; callee < RANDOM_FUNCTIONS; callee++) {
        for (uint32_t caller = 0; caller <= RANDOM_FUNCTIONS; caller++) {
            uint64_t calls = 1 + draw(1u << draw(20)), primitive = 1 + draw(calls);
            if (draw(3) != 0)
                continue;
            uint64_t words[8] = {
                calls,   primitive,         draw(3000000000u), draw(900000000u),
                draw(3), draw(1000000000u), primitive,         draw(5000000000u)
            };
            synth_tally(s, SND_TALLY_CALLS, frames[callee], caller ? frames[caller - 1] : 0, words,
                        8);
        }
    }
}

static void random_lines(struct synth *s)
{
    char name[16];

    for (uint32_t i = 0; i < RANDOM_FUNCTIONS; i++) {
        uint32_t first = 1 + i * 10;
        random_name(name, i);
        for (uint32_t line = first; line < first + 9; line++) {
            uint32_t frame = python_frame(s, name, first, "prog.py", line);
            bool     runs = line > first && i % 5 != 4 && draw(4) != 0;
            uint64_t time[2] = { runs ? 1 + draw((uint64_t)1 << draw(34)) : 0,
                                 runs ? draw((uint64_t)1 << draw(45)) : 0 };
            uint64_t memory[6] = { 1 + draw(5000), draw(1u << 28) - (1u << 27),
                                   draw(1u << 30), draw(1u << 30),
                                   draw(1u << 31), draw(1u << 28) };
            if (runs || line == first)
                synth_tally(s, SND_TALLY_LINE, frame, 0, time, 2);
            if (runs)
                synth_tally(s, SND_TALLY_LINE_MEMORY, frame, 0, memory, 6);
        }
    }
}

/* Where frames of samples may lie: the program, two libraries, native code, the import system. */
static uint32_t random_frame(struct synth *s, uint32_t depth)
{
    static const char *const files[] = { "/app/prog.py",
                                         "/app/tools/part.py",
                                         "/py/lib/json/encoder.py",
                                         "/py/lib/site/lib.one/two.py",
                                         "/py/lib/libm.so",
                                         "<frozen importlib._bootstrap>" };
    uint32_t                 kind = depth == 0 ? 0 : (uint32_t)draw(6);
    uint32_t                 which = (uint32_t)draw(5);
    char                     name[16];

    random_name(name, which + kind * 5);
    return synth_frame_in(s, synth_string(s, name), kind == 4 ? 0 : 1 + which * 10,
                          synth_string(s, files[kind]), 0, kind == 4);
}

static void random_samples(struct synth *s, uint32_t sampler, uint32_t thread)
{
    uint32_t stacks[60], depths[60] = { 0 };
    uint64_t ns = 0;

    stacks[0] = synth_stack(s, 0, random_frame(s, 0));
    for (uint32_t i = 1; i < 60; i++) {
        uint32_t below = (uint32_t)draw(i);
        depths[i] = depths[below] + 1;
        stacks[i] = synth_stack(s, stacks[below], random_frame(s, depths[i]));
    }
    for (int i = 0; i < 200; i++) {
        uint32_t weight = (uint32_t)(1000000 + draw(20000000));
        ns += weight;
        synth_sample(s, sampler, ns, stacks[draw(60)], 3 | 1 << 8, thread, weight);
    }
}

void make_python_random(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    uint32_t      frames[RANDOM_FUNCTIONS];
    char          name[16];

    random_state = n * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < RANDOM_FUNCTIONS; i++) {
        random_name(name, i);
        frames[i] = i == 5 ? python_frame(s, "<method 'x' of 'y' objects>", 0, "~", 0)
                           : python_frame(s, name, 1 + i * 10, "prog.py", 1 + i * 10);
    }
    synth_meta(s, "command", "prog.py");
    synth_meta(s, "python.sample.hz", "1000");
    synth_meta(s, "python.sys_path", "[\"/app\", \"/py/lib\", \"/py/lib/site\"]");
    synth_meta(s, "python.sys_prefixes", "[\"/py\"]");
    random_calls(s, frames);
    random_lines(s);
    random_samples(s, sampler, t);
    synth_close(s, true);
}
