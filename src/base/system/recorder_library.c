/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/recorder_library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/package.h"

#define LIBRARY "libsonde_record.so.1"

static const uint32_t *clock_trust;
static uint64_t (*clock_fallback)(void);

/* As it is installed below PREFIX, and as it is built. */
static void *open_beside(void)
{
    static const char *const places[] = {
        "lib/" LIBRARY,
        "lib64/" LIBRARY,
#if defined(__x86_64__)
        "lib/x86_64-linux-gnu/" LIBRARY,
#elif defined(__aarch64__)
        "lib/aarch64-linux-gnu/" LIBRARY,
#endif
        LIBRARY,
    };
    char    folder[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    void   *library = NULL;

    folder[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && !library && i < SND_COUNT_OF(places); i++) {
        snprintf(path, sizeof path, "%s/../%s", folder, places[i]);
        library = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    }
    return library;
}

/* In the Python package: where pip puts it. */
static void *open_packaged(void)
{
    struct sonde_buffer path = { 0 };
    void               *library = NULL;

    if (snd_package_find("_native/" LIBRARY, &path))
        library = dlopen(path.bytes, RTLD_NOW | RTLD_LOCAL);
    sonde_buffer_release(&path);
    return library;
}

static void *open_library(void)
{
    void *library = open_beside();

    if (!library)
        library = open_packaged();
    return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

uint64_t snd_recorder_clock(void)
{
#if defined(__x86_64__)
    if (*clock_trust)
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (*clock_trust) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return clock_fallback();
}

static enum sonde_status find(void *library, const struct snd_recorder_symbol *wanted, size_t count,
                              struct sonde_error *err)
{
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, wanted[i].name);
        if (!found)
            return snd_fail(err, SONDE_E_UNSUPPORTED,
                            "the recorder " LIBRARY " is of another "
                            "version: it has no %s",
                            wanted[i].name);
        memcpy(wanted[i].into, &found, sizeof found);
    }
    return SONDE_OK;
}

enum sonde_status snd_recorder_load(const struct snd_recorder_symbol *wanted, size_t count,
                                    struct sonde_error *err)
{
    const struct snd_recorder_symbol clock[] = {
        { "sonde_clock_trust_", &clock_trust },
        { "sonde_clock_fallback_", &clock_fallback },
    };

    unsetenv("SONDE_TRACE");
    unsetenv("SONDE_TRACE_OTHERS");
    void *library = open_library();
    if (!library)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "the recorder " LIBRARY " cannot be loaded (%s); "
                        "install it beside this program or in the system's library path",
                        dlerror());
    enum sonde_status status = find(library, clock, SND_COUNT_OF(clock), err);
    return status == SONDE_OK ? find(library, wanted, count, err) : status;
}
