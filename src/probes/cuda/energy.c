/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/energy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* Opened once, when first asked for, and kept: other parts of the process may use it. */
static struct {
    int (*init)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*energy)(void *device, unsigned long long *millijoules);
    bool is_ready;
} nvml;

static bool find(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, size);
    return symbol != NULL;
}
#define FIND(library, name, member) find(library, name, &nvml.member, sizeof nvml.member)

static void open_nvml(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    nvml.is_ready = library && FIND(library, "nvmlInit_v2", init) &&
                    FIND(library, "nvmlDeviceGetHandleByUUID", by_uuid) &&
                    FIND(library, "nvmlDeviceGetTotalEnergyConsumption", energy) &&
                    nvml.init() == 0;
}

bool snd_gpu_energy(const char *uuid, uint64_t *microjoules)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned long long    millijoules = 0;
    void                 *device = NULL;

    pthread_once(&once, open_nvml);
    if (!nvml.is_ready || nvml.by_uuid(uuid, &device) != 0 ||
        nvml.energy(device, &millijoules) != 0)
        return false;
    *microjoules = (uint64_t)millijoules * 1000;
    return true;
}
