/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/dwarf/libdw.c - see libdw.h */
#include <dlfcn.h>
#include <string.h>

#include "symbols/dwarf/libdw.h"

bool snd_libdw_open(struct snd_libdw *dw)
{
    void *library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *function;
    bool  ok = library != NULL;

#define X(result, name, arguments)                 \
    function = ok ? dlsym(library, #name) : NULL;  \
    memcpy(&dw->name, &function, sizeof function); \
    ok = ok && function != NULL;
    SND_LIBDW(X)
#undef X
    return ok;
}
