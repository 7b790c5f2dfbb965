/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/data/crc32c.h - CRC-32C (Castagnoli), as iSCSI and ext4 use it.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_DATA_CRC32C_H
#define SND_BASE_DATA_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `length` bytes; `crc` is 0 or the result for the bytes before them. */
uint32_t snd_crc32c(uint32_t crc, const void *data, size_t length);

#endif
