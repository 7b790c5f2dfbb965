/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps TRACE SLOWED STEPS [FACTOR]: eight operators in every step; number SLOWED (-1: none) has FACTOR
 * (1.05) times as much to do. For sonde diff: each is a chain of instructions that depend on each other,
 * so that its time is its amount of work. Prints nothing.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include <sonde/record.h>

static volatile uint64_t sink;
static volatile double   real_sink;
static uint8_t           table[1024];

static void multiply(int n)
{
    SONDE_RANGE("multiply");
    uint64_t h = 1;
    for (int i = 0; i < n; i++)
        h = h * 0x9E3779B97F4A7C15u + 1;
    sink = h;
}

static void shift(int n)
{
    SONDE_RANGE("shift");
    uint64_t h = 88172645463325252u;
    for (int i = 0; i < n; i++) {
        h ^= h << 13;
        h ^= h >> 7;
        h ^= h << 17;
    }
    sink = h;
}

static void root(int n)
{
    SONDE_RANGE("root");
    double s = 2;
    for (int i = 0; i < n; i++)
        s = sqrt(s + 1.5);
    real_sink = s;
}

static void divide(int n)
{
    SONDE_RANGE("divide");
    double s = 2;
    for (int i = 0; i < n; i++)
        s = 3.7 / (s + .1);
    real_sink = s;
}

static void walk(int n)
{
    SONDE_RANGE("walk");
    unsigned at = 0;
    for (int i = 0; i < n; i++)
        at = (at << 2 | table[at]) & 1023;
    sink = at;
}

static void add(int n)
{
    SONDE_RANGE("add");
    double s = 0;
    for (int i = 0; i < n; i++)
        s = s * 0.5 + 1.25;
    real_sink = s;
}

static void modulo(int n)
{
    SONDE_RANGE("modulo");
    uint64_t h = 12345;
    for (int i = 0; i < n; i++)
        h = (h * 48271) % 2147483647u;
    sink = h;
}

static void rotate(int n)
{
    SONDE_RANGE("rotate");
    uint32_t h = 1;
    for (int i = 0; i < n; i++) {
        h = (h << 5 | h >> 27) + 0x9E3779B9u;
        h ^= h >> 3;
    }
    sink = h;
}

static const struct {
    void (*run)(int n);
    int size;
} operators[] = {
    { multiply, 50000 }, { shift, 30000 }, { root, 12000 },  { divide, 14000 },
    { walk, 30000 },     { add, 30000 },   { modulo, 8000 }, { rotate, 40000 },
};
#define OPERATORS (sizeof operators / sizeof operators[0])

int main(int argc, char **argv)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;

    if (argc < 4)
        return 2;
    int    slowed = atoi(argv[2]), steps = atoi(argv[3]);
    double factor = argc > 4 ? atof(argv[4]) : 1.05;
    for (size_t i = 0; i < sizeof table; i++)
        table[i] = (uint8_t)(i * 167 + 13);
    options.path = argv[1];
    if (sonde_start(&options, NULL) != SONDE_OK)
        return 1;
    for (int step = 0; step < steps; step++) {
        sonde_step();
        for (int round = 0; round < 3; round++)
            for (size_t i = 0; i < OPERATORS; i++)
                operators[i].run((int)(operators[i].size * ((int)i == slowed ? factor : 1)));
    }
    return sonde_stop(NULL) == SONDE_OK ? 0 : 1;
}
