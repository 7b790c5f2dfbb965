/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/parquet/parquet_pack.h - how Parquet packs numbers: runs and bits (RLE), and differences (DELTA_BINARY_PACKED).
 *
 * As https://parquet.apache.org/docs/file-format/data-pages/encodings/ has them. Failure sticks in the buffer.
 *
 * Layer: export. Threads: any.
 */
#ifndef SND_EXPORT_PARQUET_PARQUET_PACK_H
#define SND_EXPORT_PARQUET_PARQUET_PACK_H

#include <stdint.h>

#include "base/text/buf.h"

/* How many bits the value takes; 0 takes none. */
unsigned snd_bit_width(uint64_t value);
/* Runs of 8 equal values and more, and bits of the others. Values are below 2^width; width: 1 to 32. */
void snd_parquet_runs(struct sonde_buffer *out, const uint32_t *values, size_t count,
                      unsigned width);
/* One run, of any length. */
void snd_parquet_run(struct sonde_buffer *out, uint32_t value, size_t count, unsigned width);
void snd_parquet_deltas(struct sonde_buffer *out, const int64_t *values, size_t count);

#endif
