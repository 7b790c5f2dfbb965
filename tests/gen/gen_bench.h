/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_bench.h - cases of `gen` about a model's cost. */
#ifndef GEN_BENCH_H
#define GEN_BENCH_H

#include <stdint.h>

void make_bench(const char *path, uint64_t n);        /* a folder, as `sonde model` leaves it */
void make_tensors(const char *path, uint64_t n);      /* as sonde.memory_report leaves it */
void make_tensor_lines(const char *path, uint64_t n); /* as sonde.tensor_lines leaves it */

#endif
