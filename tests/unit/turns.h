/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/turns.h - how much a test does of what it does many times over, in builds other than the gate's.
 *
 * tools/test says it by SONDE_TEST_TURNS: a test makes one turn of so many; the gate makes all. It is a multiple of 8, since some
 * outputs are compared of one trace in 8 alone. SONDE_TEST_SLOW is another thing: the program is instrumented or emulated, so that
 * limits of time and memory do not hold.
 */
#ifndef UNIT_TURNS_H
#define UNIT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* One of how many turns is made; 1: all. */
static inline unsigned turns_one_of(void)
{
    const char *said = getenv("SONDE_TEST_TURNS");
    long        number = said ? strtol(said, NULL, 10) : 1;

    return number < 1 ? 1 : (unsigned)number;
}

static inline bool turns_are_fewer(void)
{
    return turns_one_of() > 1;
}

static inline bool turns_are_slow(void)
{
    return getenv("SONDE_TEST_SLOW") != NULL;
}

/* Whether this turn is left out; with a `weight` of 2 twice as many are made. */
static inline bool turns_leave_out(size_t number, unsigned weight)
{
    unsigned one_of = turns_one_of() / weight;

    return one_of > 1 && number % one_of != 0;
}

#endif
