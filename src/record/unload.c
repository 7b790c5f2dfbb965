/* SPDX-License-Identifier: Apache-2.0 */
#include "record/unload.h"

#include <link.h>
#include <stdlib.h>

/* Of the program or library that this code was linked into; a static program may have none. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((weak, visibility("hidden"))); /* NOLINT: its name */

static bool process_ends, library_ends;

/* The linker gives DT_DEBUG to programs alone. */
bool snd_unload_is_possible(void)
{
    const ElfW(Dyn) *volatile dynamic = _DYNAMIC;

    for (const ElfW(Dyn) *at = dynamic; at && at->d_tag != DT_NULL; at++)
        if (at->d_tag == DT_DEBUG ||
            (at->d_tag == DT_FLAGS_1 && (at->d_un.d_val & (DF_1_NODELETE | DF_1_PIE))))
            return false;
    return dynamic != NULL;
}

static void note_exit(void)
{
    process_ends = true;
}

/* A destructor of the usual rank: before that of the C runtime, which calls note_exit() in dlclose(). */
__attribute__((destructor)) static void note_end(void)
{
    library_ends = !process_ends;
}

/* exit() calls it before the destructors of libraries. */
void snd_unload_init(void)
{
    if (snd_unload_is_possible() && atexit(note_exit) != 0)
        process_ends = true; /* a leak is the lesser harm */
}

bool snd_unload_is_now(void)
{
    return snd_unload_is_possible() && library_ends;
}
