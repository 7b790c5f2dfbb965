/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/cudacalls.h - the columns of format/cudacalls.def.
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_CUDACALLS_H
#define SND_FORMAT_CUDACALLS_H

#include <stdbool.h>

enum { SND_CUDA_CALLS = 1024 }; /* numbers of functions are below this */

enum snd_cuda_api { SND_CUDA_RUNTIME, SND_CUDA_DRIVER };

#define SND_CUDA_RECORDED true
#define SND_CUDA_NOT_RECORDED false
#define SND_CUDA_ARROW true
#define SND_CUDA_NO_ARROW false

#endif
