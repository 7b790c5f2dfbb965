/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/inject.c - into any CUDA program: the driver loads this library and calls us.
 *
 * The recorder, which this library is linked with, has begun its recording by then: it reads what
 * `sonde run` put into the environment when it is loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/cuda/cuda.h"
#include "probes/cuda/library.h"

int InitializeInjection(void)
{
    const char               *how = getenv("SONDE_GPU"); /* `sonde run` has checked it */
    struct sonde_cuda_options options = { .struct_size = sizeof options,
                                          .light = how && strcmp(how, "light") == 0 };

    if (sonde_cuda_start(&options) != 0)
        fprintf(stderr, "sonde: %s\n", sonde_cuda_error());
    return 1;
}
