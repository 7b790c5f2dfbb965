/* SPDX-License-Identifier: Apache-2.0 */
/* base/count_of.h - how many elements an array has. */
#ifndef SND_BASE_COUNT_OF_H
#define SND_BASE_COUNT_OF_H

#define SND_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
