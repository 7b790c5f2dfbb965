/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/fuzz_import.c - libFuzzer harness: `make fuzz` builds and runs it. */
#include "exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    exercise_import(data, size);
    return 0;
}
