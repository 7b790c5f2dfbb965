/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/recorder_library.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/linked_recorder.h"
#include "base/system/open_library.h"
#include "base/system/package.h"

#define LIBRARY "libsonde_record.so.1"

static const uint32_t *clock_trust;
static uint64_t (*clock_fallback)(void);

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

#if SND_STATIC_PROGRAM
static enum sonde_status open_recorder(void **library, struct sonde_error *err)
{
    (void)err;
    *library = NULL;
    return SONDE_OK;
}

static void *find_symbol(void *library, const char *name)
{
    const struct snd_linked_symbol *symbol = snd_linked_recorder;

    (void)library;
    while (symbol->name && strcmp(symbol->name, name) != 0)
        symbol++;
    return symbol->address;
}
#else
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
    char folder[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
    void *library = NULL;

    folder[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && !library && i < SND_COUNT_OF(places); i++) {
        snprintf(path, sizeof path, "%s/../%s", folder, places[i]);
        library = access(path, R_OK) == 0 ? snd_open_library(path) : NULL;
    }
    return library;
}

/* In the Python package: where pip puts it. */
static void *open_packaged(void)
{
    struct sonde_buffer path = { 0 };
    void *library = NULL;

    if (snd_package_find("_native/" LIBRARY, &path))
        library = snd_open_library(path.bytes);
    sonde_buffer_release(&path);
    return library;
}

static void *open_library(void)
{
    void *library = open_beside();

    if (!library)
        library = open_packaged();
    return library ? library : snd_open_library(LIBRARY);
}

static enum sonde_status open_recorder(void **library, struct sonde_error *err)
{
    *library = open_library();
    return *library ? SONDE_OK
                    : snd_fail(err, SONDE_E_UNSUPPORTED,
                               "the recorder " LIBRARY " cannot be loaded (%s); "
                               "install it beside this program or in the system's library path",
                               dlerror());
}

static void *find_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}
#endif

static enum sonde_status find(void *library, const struct snd_recorder_symbol *wanted, size_t count,
                              struct sonde_error *err)
{
    for (size_t i = 0; i < count; i++) {
        void *found = find_symbol(library, wanted[i].name);
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
    void *library;

    unsetenv("SONDE_TRACE");
    unsetenv("SONDE_TRACE_OTHERS");
    enum sonde_status status = open_recorder(&library, err);
    if (status == SONDE_OK)
        status = find(library, clock, SND_COUNT_OF(clock), err);
    return status == SONDE_OK ? find(library, wanted, count, err) : status;
}
