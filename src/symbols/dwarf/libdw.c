/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/dwarf/libdw.c - see libdw.h */
#include <string.h>

#include "base/system/open_library.h"
#include "symbols/dwarf/libdw.h"

bool snd_libdw_open(struct snd_libdw *dw)
{
    void *library = snd_open_library("libdw.so.1");
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
