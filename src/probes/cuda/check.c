/* SPDX-License-Identifier: Apache-2.0 */
/* probes/cuda/check.c - whether GPU work can be recorded on this machine, for `sonde doctor`. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "probes/cuda/cuda_calls.h"
#include "probes/cuda/cuda.h"
#include "probes/cuda/library.h"

/* The driver's library initialised, and how many devices it has; -1: there is none, or it fails. */
static int count_devices(char *text, size_t size)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW),
         *symbol = driver ? dlsym(driver, "cuInit") : NULL;
    int (*init)(unsigned);
    int count = 0, result = 0;

    memcpy(&init, &symbol, sizeof symbol);
    if (!symbol) {
        snprintf(text, size, "no NVIDIA driver: libcuda.so.1 is not found");
        return -1;
    }
    result = init(0);
    symbol = dlsym(driver, "cuDeviceGetCount");
    int (*get_count)(int *);
    memcpy(&get_count, &symbol, sizeof symbol);
    if (result != 0 || !symbol || get_count(&count) != 0 || count == 0) {
        snprintf(text, size, "the NVIDIA driver has no GPU for us (cuInit gave %d)", result);
        return -1;
    }
    return count;
}

/* Turns on everything that a recording needs: CUPTI may refuse any part. */
static uint32_t try_all(void)
{
    uint32_t result = snd_calls_on(true);

    if (result == CUPTI_OK) {
        result = snd_cupti.ActivityEnable(CUPTI_CONCURRENT_KERNEL);
        snd_cupti.ActivityDisable(CUPTI_CONCURRENT_KERNEL);
    }
    snd_calls_off();
    return result;
}

int sonde_cuda_check(char *text, size_t size)
{
    char why[400];
    int  devices = count_devices(text, size);

    if (devices < 0)
        return -1;
    if (!snd_cupti_open(NULL, why, sizeof why)) {
        snprintf(text, size, "%s", why);
        return -1;
    }
    uint32_t result = try_all();
    if (result != CUPTI_OK) {
        snd_cupti_explain(result, text, size);
        return -1;
    }
    snprintf(text, size, "%d GPU%s, CUPTI version %u of %s", devices, devices == 1 ? "" : "s",
             snd_cupti_version(), snd_cupti_path());
    return 0;
}
