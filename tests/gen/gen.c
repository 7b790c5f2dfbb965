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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "sonde/model.h"
#include "synth.h"

static int make(const char *name, const char *path, const char *n, bool packed)
{
    struct sonde_error err;

    if (!make_case(name, path, n ? strtoull(n, NULL, 10) : USUAL_N)) {
        fprintf(stderr, "gen: no case %s; gen --list shows them\n", name);
        return 2;
    }
    enum sonde_status status = packed ? sonde_pack(path, path, 0, &err) : SONDE_OK;
    if (status == SONDE_OK || status == SONDE_E_UNSUPPORTED)
        return 0;
    fprintf(stderr, "gen: %s\n", err.message);
    return 1;
}

int main(int argc, char **argv)
{
    bool packed = false;

    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_cases();
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
