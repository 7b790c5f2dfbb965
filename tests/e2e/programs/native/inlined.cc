/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of a template, one of them inlined into the other. */
#include "parts.h"

namespace shapes {
template <typename T> struct Circle {
    __attribute__((always_inline)) inline void inner(long steps)
    {
        for (long i = 0; i < steps; i++)
            sink += (unsigned long)i;
    }
    __attribute__((noinline)) void area(long steps)
    {
        inner(3 * steps);
        sink++;
    }
    __attribute__((noinline)) void edge(long steps)
    {
        for (long i = 0; i < steps; i++)
            sink += (unsigned long)i * 3;
    }
};
}

int main(int argc, char **argv)
{
    long                   steps = (long)((double)steps_a_second() * (argc > 1 ? atof(argv[1]) : 0.2));
    shapes::Circle<double> circle;
    double                 at[3];

    at[0] = cpu_now();
    circle.area(steps);
    at[1] = cpu_now();
    circle.edge(steps);
    at[2] = cpu_now();
    TELL("inner", at[1] - at[0]);
    TELL("edge", at[2] - at[1]);
    return 7;
}
