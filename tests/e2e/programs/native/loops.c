/* SPDX-License-Identifier: Apache-2.0 */
/* Three functions that take 6, 3 and 1 parts of the time; one of them calls itself, one ends in a call. */
#include "parts.h"

PART void long_part(long steps)
{
    burn(6 * steps);
    sink++;
}

PART void deep_part(long steps, int depth)
{
    if (depth > 0)
        deep_part(steps, depth - 1);
    else
        burn(3 * steps);
    sink++;
}

PART void tail_part(long steps)
{
    sink++;
    burn(steps); /* the compiler may jump there */
}

int main(int argc, char **argv)
{
    long   steps = (long)((double)steps_a_second() * (argc > 1 ? atof(argv[1]) : 0.08));
    double at[4];

    at[0] = cpu_now();
    long_part(steps);
    at[1] = cpu_now();
    deep_part(steps, 12);
    at[2] = cpu_now();
    tail_part(steps);
    at[3] = cpu_now();
    TELL("long_part", at[1] - at[0]);
    TELL("deep_part", at[2] - at[1]);
    TELL("rest", at[3] - at[2]);
    return 7;
}
