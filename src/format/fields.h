/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/fields.h - what the words of an event mean beyond the first.
 *
 *     kind      word 1, low half    word 1, high half     word 2         word 3
 *     BEGIN     name                tensor list           -              -
 *     MARK      name                stack                 -              -
 *     STEP      number (64 bits)                          -              -
 *     THREAD    thread              0                     -              -
 *     GAP       events lost         ends among them       -              -
 *     SPAN      name                ticks, 0 while open   -              -
 *     CALL      call                ticks, 0 while open   -              -
 *     API       name                ticks, 0 while open   call           -
 *     END_AT    ranges inside it    0                     -              -
 *     END_KEY   key (64 bits)                             -              -
 *     COUNTER   name                0                     double         -
 *     LINK      kind                1 if it arrives       id             -
 *     SAMPLE    stack               state, samples << 8   thread, ns     -
 *     SAMPLE_RUN stack              state, samples << 8   thread, ticks  ticks since its end
 *     SAMPLE_RUN: and in word 4 the ticks since its stack was read
 *     ALLOC     device              tag                   address        size
 *     FREE      device              tag                   address        size
 *     FUNCTION  frame               thread                ticks, flags   id, parent
 *     DEVICE    work                queue                 ticks          correlation, 0
 *     DEVICE_SHORT: work          ticks                 correlation, queue
 *     DEVICE_NODE: as DEVICE, and in word 4 the id of the graph's node
 *     RECORD    id                  size, type << 24      48 bytes of it, in words 2 to 7
 *     ATTR      (key and value are in word 0)
 *     ATTR64    value (64 bits); the key is in word 0, as in ATTR
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_FIELDS_H
#define SND_FORMAT_FIELDS_H

#include <stdint.h>

#define SND_LOW(word) ((uint32_t)(word))
#define SND_HIGH(word) ((uint32_t)((uint64_t)(word) >> 32))
#define SND_PAIR(low, high) ((uint64_t)(uint32_t)(high) << 32 | (uint32_t)(low))

#define SND_WORD0(kind, time) ((uint64_t)(time) << 8 | (uint8_t)(kind))
#define SND_WORD0_ATTR(key, value) \
    ((uint64_t)(value) << 16 | (uint64_t)(uint8_t)(key) << 8 | SND_EV_ATTR)
#define SND_WORD0_ATTR64(key) ((uint64_t)(uint8_t)(key) << 8 | SND_EV_ATTR64)

#endif
