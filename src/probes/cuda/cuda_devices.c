/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/cuda_devices.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/count_of.h"
#include "format/layout.h"
#include "probes/cuda/cuda_calls.h"
#include "probes/cuda/library.h"
#include "sonde/record.h"

enum { FIELDS_MOST = 24, NAME_SIZE = 256 };

static atomic_bool is_written;

/* Facts that are an attribute of the device: CUdevice_attribute. */
#define DEVICE_ATTRIBUTE(field, attribute)  \
    {                                       \
        SND_FIELD_DEVICE_##field, attribute \
    }
static const struct {
    uint16_t field;
    int      attribute;
} attributes[] = {
    DEVICE_ATTRIBUTE(CAPABILITY_MAJOR, 75),
    DEVICE_ATTRIBUTE(CAPABILITY_MINOR, 76),
    DEVICE_ATTRIBUTE(SMS, 16),
    DEVICE_ATTRIBUTE(CLOCK_KHZ, 13),
    DEVICE_ATTRIBUTE(MEMORY_CLOCK_KHZ, 36),
    DEVICE_ATTRIBUTE(BUS_BITS, 37),
    DEVICE_ATTRIBUTE(WARP, 10),
    DEVICE_ATTRIBUTE(THREADS_PER_SM, 39),
    DEVICE_ATTRIBUTE(THREADS_PER_BLOCK, 1),
    DEVICE_ATTRIBUTE(REGISTERS_PER_SM, 82),
    DEVICE_ATTRIBUTE(REGISTERS_PER_BLOCK, 12),
    DEVICE_ATTRIBUTE(SHARED_PER_SM, 81),
    DEVICE_ATTRIBUTE(SHARED_PER_BLOCK, 8),
    DEVICE_ATTRIBUTE(SHARED_PER_BLOCK_OPTIN, 97),
    DEVICE_ATTRIBUTE(BLOCKS_PER_SM, 106),
    DEVICE_ATTRIBUTE(SHARED_RESERVED, 111),
};

struct members {
    struct sonde_fact_member all[FIELDS_MOST];
    size_t                   count;
};

static void add_number(struct members *members, uint16_t field, uint64_t value)
{
    if (members->count < FIELDS_MOST)
        members->all[members->count++] = (struct sonde_fact_member){ field, SONDE_FACT_NUMBER, 0,
                                                                     value };
}

static void add_text(struct members *members, uint16_t field, const char *text)
{
    if (members->count < FIELDS_MOST)
        members->all[members->count++] = (struct sonde_fact_member){
            field, SONDE_FACT_TEXT, sonde_intern(text, strlen(text)), 0
        };
}

static void write_device(int index)
{
    struct members members = { .count = 0 };
    char           name[NAME_SIZE] = "";
    size_t         bytes = 0;
    int            device, value;

    if (snd_driver.cuDeviceGet(&device, index) != 0)
        return;
    if (snd_driver.cuDeviceGetName(name, sizeof name, device) == 0)
        add_text(&members, SND_FIELD_DEVICE_NAME, name);
    if (snd_driver.cuDeviceTotalMem_v2(&bytes, device) == 0)
        add_number(&members, SND_FIELD_DEVICE_MEMORY_BYTES, bytes);
    for (size_t i = 0; i < SND_COUNT_OF(attributes); i++)
        if (snd_driver.cuDeviceGetAttribute(&value, attributes[i].attribute, device) == 0)
            add_number(&members, attributes[i].field, (uint64_t)(int64_t)value);
    sonde_fact(SND_FACT_OF_DEVICE, 0, (uint32_t)index + 1, members.all, members.count);
}

static int runtime_version; /* 0: not known */

int snd_devices_ask_runtime(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "cudaRuntimeGetVersion");
    int (*ask)(int *);

    memcpy(&ask, &symbol, sizeof symbol);
    if (symbol && ask(&runtime_version) != 0)
        runtime_version = 0;
    return runtime_version;
}

static void write_versions(void)
{
    struct members members = { .count = 0 };
    int            version = 0;

    if (snd_driver.cuDriverGetVersion && snd_driver.cuDriverGetVersion(&version) == 0)
        add_number(&members, SND_FIELD_CUDA_DRIVER_VERSION, (uint64_t)version);
    if (runtime_version)
        add_number(&members, SND_FIELD_CUDA_RUNTIME_VERSION, (uint64_t)runtime_version);
    add_number(&members, SND_FIELD_CUDA_CUPTI_VERSION, snd_cupti_version());
    if (!snd_calls_are_asked())
        add_text(&members, SND_FIELD_CUDA_LEVEL, "light");
    sonde_fact(SND_FACT_OF_CUDA, 0, 0, members.all, members.count);
}

static bool has_driver(void)
{
    return snd_driver.cuDeviceGetCount && snd_driver.cuDeviceGet && snd_driver.cuDeviceGetName &&
           snd_driver.cuDeviceTotalMem_v2 && snd_driver.cuDeviceGetAttribute;
}

void snd_devices_write(void)
{
    int count = 0;

    if (atomic_exchange(&is_written, true))
        return;
    write_versions();
    if (has_driver() && snd_driver.cuDeviceGetCount(&count) == 0)
        for (int i = 0; i < count; i++)
            write_device(i);
}

void snd_devices_forget(void)
{
    atomic_store(&is_written, false);
}

void snd_devices_write_absent(const char *why)
{
    struct members members = { .count = 0 };

    if (sonde_epoch() == 0)
        return;
    add_text(&members, SND_FIELD_CUDA_ABSENT, why);
    sonde_fact(SND_FACT_OF_CUDA, 0, 0, members.all, members.count);
}
