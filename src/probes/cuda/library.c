/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"

struct cupti       snd_cupti;
struct cuda_driver snd_driver;

static void    *library;
static char     library_path[PATH_MAX];
static uint32_t version;

/* ---------------------------------------------------------------- where it is */

/* What the process has loaded: libcupti itself, and folders to look for it in. */
struct loaded {
    char cupti[PATH_MAX];
    char runtime[PATH_MAX]; /* the folder of libcudart */
};

static int look_at(struct dl_phdr_info *info, size_t size, void *user)
{
    struct loaded *loaded = user;
    const char    *path = info->dlpi_name, *slash = path ? strrchr(path, '/') : NULL;

    (void)size;
    if (!slash)
        return 0;
    if (strncmp(slash, "/libcupti.so", 12) == 0)
        snprintf(loaded->cupti, sizeof loaded->cupti, "%s", path);
    if (strncmp(slash, "/libcudart.so", 13) == 0)
        snprintf(loaded->runtime, sizeof loaded->runtime, "%.*s", (int)(slash - path), path);
    return 0;
}

/* libcupti in `folder`, by any of the names that it has had. */
static void *open_in(const char *folder)
{
    static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                         "libcupti.so" };
    char                     path[PATH_MAX + 256];
    void                    *found = NULL;

    for (size_t i = 0; i < SND_COUNT_OF(names) && !found; i++) {
        snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", names[i]);
        if (!*folder || access(path, R_OK) == 0)
            found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return found;
}

/* Opens it in the first folder of `beside`, relative to `folder`, that has it. */
static void *open_beside(const char *folder, const char *const *beside)
{
    char  path[PATH_MAX + 64];
    void *found = NULL;

    for (; *folder && *beside && !found; beside++) {
        snprintf(path, sizeof path, "%s%s", folder, *beside);
        found = open_in(path);
    }
    return found;
}

/* The folder that this library is in, which is sonde/_native. */
static const char *own_folder(void)
{
    static char folder[PATH_MAX];
    Dl_info     info;

    if (!*folder && dladdr(folder, &info) && info.dli_fname) {
        snprintf(folder, sizeof folder, "%s", info.dli_fname);
        char *slash = strrchr(folder, '/');
        if (slash)
            *slash = '\0';
    }
    return folder;
}

/* Beside the runtime, in the package next to the runtime's or to ours, or the toolkit's. */
static void *open_elsewhere(const struct loaded *loaded)
{
    static const char *const of_runtime[] = { "", "/../../cuda_cupti/lib", "/../extras/CUPTI/lib64",
                                              NULL };
    static const char *const of_package[] = { "/../../nvidia/cu13/lib",
                                              "/../../nvidia/cuda_cupti/lib", NULL };
    static const char *const of_toolkit[] = { "/extras/CUPTI/lib64", "/lib64", NULL };
    void                    *found = open_beside(loaded->runtime, of_runtime);

    if (!found)
        found = open_beside(own_folder(), of_package);
    if (!found)
        found = open_beside("/usr/local/cuda", of_toolkit);
    return found ? found : open_in("");
}

static void *find_cupti(const char *path)
{
    struct loaded loaded = { "", "" };
    const char   *forced = secure_getenv("SONDE_CUPTI");
    void         *found = NULL;

    if (forced && *forced)
        return dlopen(forced, RTLD_NOW | RTLD_LOCAL);
    dl_iterate_phdr(look_at, &loaded);
    if (*loaded.cupti)
        found = dlopen(loaded.cupti, RTLD_NOW | RTLD_LOCAL);
    if (!found && path && *path)
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return found ? found : open_elsewhere(&loaded);
}

/* ------------------------------------------------------------------ opening it */

/* dlsym gives an object's pointer: as a function's it is copied, which C17 leaves to POSIX. */
static bool bind(void *from, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(from, name);

    memcpy(function, &symbol, size);
    return symbol != NULL;
}

static const char *bind_cupti(void)
{
#define CUPTI_BIND(name, ...)                                                  \
    if (!bind(library, "cupti" #name, &snd_cupti.name, sizeof snd_cupti.name)) \
        return "cupti" #name;
    CUPTI_FUNCTIONS(CUPTI_BIND)
#undef CUPTI_BIND
    return NULL;
}

static void bind_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    if (!driver)
        driver = dlsym(library, "cuDeviceGetCount") ? library : NULL; /* a stand-in has both */
    if (!driver)
        return;
#define CUDA_BIND(name, ...) (void)bind(driver, #name, &snd_driver.name, sizeof snd_driver.name);
    CUDA_FUNCTIONS(CUDA_BIND)
#undef CUDA_BIND
}

static bool open_now(const char *path, char *why, size_t size)
{
    Dl_info     info;
    const char *forced = secure_getenv("SONDE_CUPTI");

    library = find_cupti(path);
    if (!library) {
        snprintf(why, size,
                 "no CUPTI was found%s%s: it comes with CUDA builds of torch and with "
                 "the CUDA toolkit; set SONDE_CUPTI to its libcupti.so",
                 forced && *forced ? " at SONDE_CUPTI=" : "", forced && *forced ? forced : "");
        return false;
    }
    const char *missing = bind_cupti();
    snprintf(library_path, sizeof library_path, "libcupti");
    if (!missing && dladdr((void *)(uintptr_t)snd_cupti.GetVersion, &info) && info.dli_fname)
        snprintf(library_path, sizeof library_path, "%s", info.dli_fname);
    if (missing || snd_cupti.GetVersion(&version) != CUPTI_OK || version < CUPTI_VERSION_LEAST ||
        version > CUPTI_VERSION_MOST) {
        snprintf(why, size,
                 "CUPTI version %u of %s is not supported%s%s: set SONDE_CUPTI to "
                 "the libcupti.so of CUDA 11.8 to 13",
                 version, library_path, missing ? ", it has no " : "", missing ? missing : "");
        library = NULL;
        return false;
    }
    bind_driver();
    return true;
}

bool snd_cupti_open(const char *path, char *why, size_t size)
{
    return library || open_now(path, why, size);
}

/* The CUDA that the open library came with. */
static int cuda_major(void)
{
    if (version >= CUPTI_VERSION_13)
        return (int)(version / 10000);
    return version > CUPTI_VERSION_LEAST ? 12 : 11;
}

bool snd_cupti_suits(int runtime, char *why, size_t size)
{
    int major = runtime / 1000;

    if (major <= cuda_major() + 1)
        return true;
    snprintf(why, size,
             "CUPTI version %u of %s is that of CUDA %d, too old for this process, which uses CUDA "
             "%d: set SONDE_CUPTI to the libcupti.so of CUDA %d",
             version, library_path, cuda_major(), major, major);
    return false;
}

uint32_t snd_cupti_version(void)
{
    return version;
}

const char *snd_cupti_path(void)
{
    return library_path;
}

/* ---------------------------------------------------------------------- errors */

static const struct {
    uint32_t    result;
    const char *meaning;
} meanings[] = {
    { CUPTI_E_PRIVILEGES,
      "the driver lets only administrators profile: load the nvidia module with "
      "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN" },
    { CUPTI_E_VIRTUALIZED_PRIVILEGES,
      "the virtual GPU's host does not allow profiling: have its administrator "
      "set enable_profiling=1 for this vGPU" },
    { CUPTI_E_VIRTUALIZED, "this virtual GPU cannot be profiled: use one that is passed through "
                           "whole, or a vGPU with profiling enabled" },
    { CUPTI_E_MULTIPLE_SUBSCRIBERS,
      "another profiler has CUPTI (torch.profiler, Nsight): stop it first" },
    { CUPTI_E_NOT_COMPATIBLE, "the driver is too old for this CUPTI: update the driver" },
    { CUPTI_E_NOT_INITIALIZED, "CUPTI could not be initialised: no GPU, or no driver; "
                               "nvidia-smi tells which" },
    { CUPTI_E_CONFIDENTIAL, "GPUs in confidential-computing mode cannot be profiled: use one in "
                            "devtools mode, or without it" },
    { CUPTI_E_MIG, "this part of a divided GPU (MIG) cannot be profiled: use a whole GPU "
                   "(nvidia-smi -mig 0), or update the driver" },
    { CUPTI_E_WSL, "GPUs under this WSL cannot be profiled: update the NVIDIA driver of Windows" },
};
static const char not_known[] = "update the driver, or look this error up in CUPTI's manual";

void snd_cupti_explain(uint32_t result, char *text, size_t size)
{
    const char *name = NULL, *meaning = not_known;

    if (snd_cupti.GetResultString)
        snd_cupti.GetResultString(result, &name);
    for (size_t i = 0; i < SND_COUNT_OF(meanings); i++)
        if (meanings[i].result == result)
            meaning = meanings[i].meaning;
    if (name)
        snprintf(text, size, "%s: %s", name, meaning);
    else
        snprintf(text, size, "error %u of CUPTI: %s", result, meaning);
}
