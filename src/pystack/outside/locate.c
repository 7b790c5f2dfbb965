/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/outside/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNTIME, CODE_TYPE, VERSION, SYMBOLS };

/* Yama's setting; -1: not there. */
static int read_ptrace_scope(void)
{
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int   scope = -1;

    if (file) {
        if (fscanf(file, "%d", &scope) != 1)
            scope = -1;
        fclose(file);
    }
    return scope;
}

/* The process is there, and its memory may be read: or why not, and what to do. */
static enum sonde_status check_access(pid_t pid, uint64_t address, struct sonde_error *err)
{
    char byte;

    if (snd_memory_read(pid, address, &byte, 1))
        return SONDE_OK;
    if (errno == ESRCH)
        return snd_fail(err, SONDE_E_IO, "no such process");
    if (errno != EPERM && errno != EACCES)
        return snd_fail_os(err, SONDE_E_IO, "cannot read its memory");
    int scope = read_ptrace_scope();
    if (geteuid() != 0 && scope > 0)
        return snd_fail(err, SONDE_E_IO,
                        "not permitted (kernel.yama.ptrace_scope is %d): run as "
                        "root, give the program CAP_SYS_PTRACE, or set it to 0",
                        scope);
    return snd_fail(err, SONDE_E_IO,
                    "not permitted: it belongs to another user, or this "
                    "process lacks CAP_SYS_PTRACE (in a container: --cap-add SYS_PTRACE); run as "
                    "its user or as root");
}

/* The file of a mapping as that process sees it, which may be in a container of its own. */
static void path_in(pid_t pid, const char *path, char out[PATH_MAX])
{
    int n = snprintf(out, PATH_MAX, "/proc/%d/root%s", (int)pid, path);

    if (n < 0 || n >= PATH_MAX || access(out, R_OK) != 0)
        snprintf(out, PATH_MAX, "%s", path);
}

struct mapping {
    uint64_t start;
    char     path[PATH_MAX];
};

/* The next mapping of the beginning of a file; false at the end. */
static bool next_file(FILE *maps, struct mapping *mapping)
{
    char line[PATH_MAX + 128];

    while (fgets(line, sizeof line, maps)) {
        unsigned long long start, offset;
        int                at = 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %n", &start, &offset, &at) != 2 || at == 0 ||
            line[at] != '/' || offset != 0)
            continue;
        mapping->start = start;
        snprintf(mapping->path, sizeof mapping->path, "%s", line + at);
        return true;
    }
    return false;
}

/* Only the program and Python's own library can hold it: other libraries are not even opened. */
static bool may_hold_python(const char *path, const char *exe)
{
    const char *name = strrchr(path, '/');

    return strcmp(path, exe) == 0 || strncmp(name + 1, "libpython3", 10) == 0 ||
           strncmp(name + 1, "python3", 7) == 0;
}

static unsigned tell_minor(pid_t pid, const char *file, uint64_t version_at)
{
    uint64_t version = 0;

    if (version_at != 0 && snd_memory_read(pid, version_at, &version, sizeof version))
        return (unsigned)(version >> 16 & 0xff); /* PY_VERSION_HEX */
    return snd_elf_python_minor(file);
}

enum sonde_status snd_python_find(struct snd_python *python, pid_t pid, struct sonde_error *err)
{
    char           path[PATH_MAX], exe[PATH_MAX] = "", file[PATH_MAX];
    struct mapping mapping;
    bool           any = false;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps && errno == ENOENT)
        return snd_fail(err, SONDE_E_IO, "no such process");
    if (!maps)
        return check_access(pid, 0, err);
    enum sonde_status status = SONDE_E_UNSUPPORTED;
    while (status == SONDE_E_UNSUPPORTED && next_file(maps, &mapping)) {
        struct snd_symbol symbols[SYMBOLS] = { { "_PyRuntime", 0 },
                                               { "PyCode_Type", 0 },
                                               { "Py_Version", 0 } };
        if (!any) {
            any = true;
            status = check_access(pid, mapping.start, err);
            if (status != SONDE_OK)
                break;
            status = SONDE_E_UNSUPPORTED;
            snd_fail(err, status,
                     "it is not a Python program (no interpreter of 3.%u or later was "
                     "found in it)",
                     snd_py_minor_least);
        }
        if (strcmp(mapping.path, exe) == 0) /* also when it has been deleted meanwhile */
            snprintf(file, sizeof file, "/proc/%d/exe", (int)pid);
        else
            path_in(pid, mapping.path, file);
        if (!may_hold_python(mapping.path, exe) ||
            !snd_elf_symbols(file, mapping.start, symbols, SYMBOLS) ||
            symbols[RUNTIME].address == 0 || symbols[CODE_TYPE].address == 0)
            continue;
        unsigned minor = tell_minor(pid, file, symbols[VERSION].address);
        status = minor == 0
                     ? snd_fail(err, SONDE_E_UNSUPPORTED, "cannot determine its Python version")
                     : snd_python_open(python, pid, minor, symbols[RUNTIME].address,
                                       symbols[CODE_TYPE].address, err);
        break;
    }
    fclose(maps);
    if (!any) /* a process that has ended, or one of the kernel's */
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "it has no user memory: it has ended, or is a kernel thread");
    return status;
}
