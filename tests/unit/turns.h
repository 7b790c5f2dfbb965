/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/turns.h - of what a test does many times over, how much where the program is instrumented or emulated.
 *
 * tools/test says so by SONDE_TEST_SLOW: 8 in other builds, 16 where each turn takes long; a test then makes about one turn of so
 * many. Those left out are made by the gate. It is a multiple of 8: of some outputs the gate compares one in 8 as well.
 */
#ifndef UNIT_TURNS_H
#define UNIT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* One of how many turns is made; 1: all. */
static inline unsigned turns_one_of(void)
{
    const char *said = getenv("SONDE_TEST_SLOW");
    long        number = said ? strtol(said, NULL, 10) : 1;

    return number < 1 ? 1 : (unsigned)number;
}

static inline bool turns_are_slow(void)
{
    return turns_one_of() > 1;
}

/* Of turns that `weight` times as many are made of. */
static inline bool turns_leave_out(size_t number, unsigned weight)
{
    unsigned one_of = turns_one_of() / weight;

    return one_of > 1 && number % one_of != 0;
}

#endif
