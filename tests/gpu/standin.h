/* SPDX-License-Identifier: Apache-2.0 */
/* tests/gpu/standin.h - what a test tells the stand-in of CUPTI to do (standin.c). */
#ifndef SND_TESTS_STANDIN_H
#define SND_TESTS_STANDIN_H

#include <stdint.h>

/*
 * "version", "runtime" (CUDA's version), "subscribe" and "enable" (CUPTI's results), "dropped", "shift" of its clock
 * in ns, "devices" (1 or 2).
 */
int standin_set(const char *what, long value);
/*
 * "calls", "flushes", "waits", "subscriptions", "kinds": whether kernels are recorded, "zeroed": whether it was told
 * that buffers are zeros, "dirty": bytes of them that were not.
 */
long     standin_get(const char *what);
uint64_t standin_time(void);

/* By hand: a callback; records, which come in the next buffer. */
void standin_call(uint32_t domain, uint32_t id, uint32_t site, uint32_t correlation);
void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t correlation,
                    uint32_t stream, uint64_t node);
void standin_copy(uint32_t kind, uint64_t bytes, uint64_t start, uint64_t end,
                  uint32_t correlation);
void standin_unknown(void);

/* A recording: load it right before the probe starts, and play it. */
int  standin_load(const char *path);
void standin_play(void);

#endif
