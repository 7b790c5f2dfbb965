/* SPDX-License-Identifier: Apache-2.0 */
#include "cases.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count_of.h"

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

bool make_case(const char *name, const char *path, uint64_t n)
{
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        if (strcmp(cases[i].name, name) != 0)
            continue;
        cases[i].make(path, n == USUAL_N ? cases[i].usual : n);
        return true;
    }
    return false;
}

void list_cases(void)
{
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++)
        printf("%-15s %s\n", cases[i].name, cases[i].summary);
}
