/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/find_program.h"
#include "cli/run/preloadable.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 8192u /* of a file: its headers, and the name of its loader */
#define SCRIPTS_MAX 4    /* a script may be run by a script */

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static enum sonde_status check_loader(const unsigned char *bytes, size_t size,
                                      const Elf64_Phdr *part, const char *what,
                                      struct sonde_error *err)
{
    static const char musl[] = "ld-musl";

    if (part->p_offset >= size || part->p_filesz > size - part->p_offset ||
        !memmem(bytes + part->p_offset, part->p_filesz, musl, sizeof musl - 1))
        return SONDE_OK;
    return snd_fail(err, SONDE_E_STATE,
                    "%s: it uses the C library musl, and the library that counts is for glibc",
                    what);
}

enum sonde_status snd_preloadable_elf(const unsigned char *bytes, size_t size, const char *what,
                                      struct sonde_error *err)
{
    Elf64_Ehdr header;
    Elf64_Phdr part;

    if (size < sizeof header || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return SONDE_OK;
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE)
        return snd_fail(err, SONDE_E_STATE,
                        "%s: it is a program for another kind of processor, or of 32 bits", what);
    if (header.e_phentsize != sizeof part || header.e_phoff > size ||
        (size - header.e_phoff) / sizeof part < header.e_phnum)
        return SONDE_OK;
    for (size_t i = 0; i < header.e_phnum; i++) {
        memcpy(&part, bytes + header.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type == PT_INTERP)
            return check_loader(bytes, size, &part, what, err);
    }
    return snd_fail(
        err, SONDE_E_STATE,
        "%s: it is linked statically, so that no library can be loaded into it; link it "
        "dynamically",
        what);
}

/* The loader ignores LD_PRELOAD in a program that runs as another user than the one who runs it. */
static bool changes_user(const struct stat *st)
{
    bool user = st->st_mode & S_ISUID && st->st_uid != getuid();
    bool group = st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getgid();

    return user || group;
}

/* "#!/usr/bin/env python": the name after it. */
static bool read_script(const unsigned char *bytes, size_t size, char path[PATH_MAX])
{
    char   line[PATH_MAX];
    size_t length = size < sizeof line - 1 ? size : sizeof line - 1;

    if (size < 3 || memcmp(bytes, "#!", 2) != 0)
        return false;
    memcpy(line, bytes, length);
    line[length] = '\0';
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\n")] = '\0';
    return (size_t)snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && path[0];
}

enum sonde_status snd_preloadable(const char *program, struct sonde_error *err)
{
    unsigned char bytes[HEAD_BYTES];
    char          path[PATH_MAX], next[PATH_MAX];
    struct stat   st;

    if (!snd_find_program(program, path))
        return SONDE_OK;
    for (int i = 0; i < SCRIPTS_MAX; i++) {
        int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        ssize_t size = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                           ? read(fd, bytes, sizeof bytes)
                           : -1;
        if (fd >= 0)
            close(fd);
        if (size <= 0)
            return SONDE_OK;
        if (read_script(bytes, (size_t)size, next)) {
            memcpy(path, next, sizeof path);
            continue;
        }
        if (changes_user(&st))
            return snd_fail(err, SONDE_E_STATE,
                            "%s: it is a set-user-id program, into which no library can be loaded",
                            path);
        return snd_preloadable_elf(bytes, (size_t)size, path, err);
    }
    return SONDE_OK;
}
