/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/exercise.h - everything that the reading side does with a trace, on bytes in memory.
 *
 * Nothing is written to disk. What is built is also looked at, so that a wrong pointer shows.
 */
#ifndef FUZZ_EXERCISE_H
#define FUZZ_EXERCISE_H

#include <stddef.h>
#include <stdint.h>

/* Opens, walks both ways, builds every model. Any input is fine; errors are expected. */
void exercise_trace(const uint8_t *data, size_t size);
/* Unpacks; and packs and unpacks again, which must give the same: aborts if it does not. */
void exercise_codec(const uint8_t *data, size_t size);
/*
 * Reads a pipeline file; writes it, reads that and writes it again, which must give the same:
 * aborts if it does not.
 */
void exercise_yaml(const uint8_t *data, size_t size);
/* Imports a trace of another tool's, and does with the result all that is done with a trace; aborts if that is damaged. */
void exercise_import(const uint8_t *data, size_t size);
/* Takes it for an ELF file, a perf map, the kernel's list of symbols and for mangled names of Rust's. */
void exercise_symbols(const uint8_t *data, size_t size);

/* A file with DWARF: functions and lines at its addresses. */
void exercise_dwarf(const uint8_t *data, size_t size);

#endif
