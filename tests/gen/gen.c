/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen.c - makes the named traces that golden tests and fuzz seeds are built from.
 *
 *     gen CASE OUT [N]            writes the case to OUT (a folder for `two_processes`, `bench`)
 *     gen --tiny CASE OUT [N]     the same in chunks of 4 KiB: small files, for fuzzing
 *     gen --packed CASE OUT [N]   packed; as it is where this build cannot pack
 *     gen --list                  names and meanings
 *     gen --dump WHAT FILE ..     prints what the library tells of a trace (dump.c)
 *
 * N scales what is measured (`large`), and is where chance begins (`python_random`).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cases.h"
#include "sonde/model.h"
#include "synth.h"

static const struct {
    const char *name;
    void (*make)(const char *path, uint64_t n);
    uint64_t    usual; /* N where the command has none */
    const char *summary;
} cases[] = {
#define SIZED(name, n, summary) { #name, make_##name, n, summary },
#define CASE(name, summary) SIZED(name, 1000, summary)
#include "cases.def"
#undef CASE
};

void make_folder(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
}

static int make(const char *name, const char *path, const char *n, bool packed)
{
    struct sonde_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        cases[i].make(path, n ? strtoull(n, NULL, 10) : cases[i].usual);
        enum sonde_status status = packed ? sonde_pack(path, path, 0, &err) : SONDE_OK;
        if (status == SONDE_OK || status == SONDE_E_UNSUPPORTED)
            return 0;
        fprintf(stderr, "gen: %s\n", err.message);
        return 1;
    }
    fprintf(stderr, "gen: no case %s; gen --list shows them\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    bool packed = false;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            printf("%-15s %s\n", cases[i].name, cases[i].summary);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--dump") == 0)
        return dump(argc - 1, argv + 1);
    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        if (strcmp(argv[1], "--tiny") == 0)
            synth_grain = 4096;
        else if (strcmp(argv[1], "--packed") == 0)
            packed = true;
        else
            break;
    }
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: gen [--tiny] [--packed] CASE OUT [N] | gen --list\n");
        return 2;
    }
    return make(argv[1], argv[2], argc == 4 ? argv[3] : NULL, packed);
}
