/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/layout.h"

#include <string.h>

const unsigned snd_py_minor_least = 9, snd_py_minor_most = 13;

/* A column of the table each. */
static const struct snd_py_layout layouts[] = {
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13) .name = (v9),
    {
        .minor = 9,
        .lines = SND_PY_LNOTAB,
#include "pystack/layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13) .name = (v10),
    {
        .minor = 10,
        .lines = SND_PY_LINETABLE,
#include "pystack/layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13) .name = (v11),
    {
        .minor = 11,
        .lines = SND_PY_LOCATIONS,
#include "pystack/layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13) .name = (v12),
    {
        .minor = 12,
        .lines = SND_PY_LOCATIONS,
#include "pystack/layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13) .name = (v13),
    {
        .minor = 13,
        .lines = SND_PY_LOCATIONS,
#include "pystack/layouts.def"
    },
#undef SND_PY_MEMBER
};

const struct snd_py_layout *snd_py_layout(unsigned minor)
{
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].minor == minor)
            return &layouts[i];
    return NULL;
}

/* ------------------------------------------- what 3.13 says of itself (_Py_DebugOffsets) */

#define COOKIE "xdebugpy"
#define FREE_THREADED_AT 16

/*
 * Upper limit of an offset: the kernel checks addresses, but nobody checks an index into a buffer.
 */
#define ADDRESS UINT32_MAX
#define IN_THREAD (SND_PY_THREAD_READ - 8)
#define IN_FRAME (SND_PY_FRAME_READ - 8)
#define IN_CODE (SND_PY_CODE_READ - 8)

/* The index in the block of a member's offset: CPython's order, 8 bytes each. */
static const struct {
    uint16_t at, member;
    uint32_t most;
} places[] = {
#define PLACE(word, name, most)                                  \
    {                                                            \
        (word) * 8, offsetof(struct snd_py_layout, name), (most) \
    }
    PLACE(5, runtime_interpreters, ADDRESS), PLACE(8, interp_next, ADDRESS),
    PLACE(9, interp_threads, ADDRESS),       PLACE(11, interp_modules, ADDRESS),
    PLACE(14, interp_gil, ADDRESS),          PLACE(21, thread_next, IN_THREAD),
    PLACE(22, thread_interp, IN_THREAD),     PLACE(23, thread_frame, ADDRESS),
    PLACE(24, thread_ident, IN_THREAD),      PLACE(25, thread_native, IN_THREAD),
    PLACE(29, frame_previous, IN_FRAME),     PLACE(30, frame_code, IN_FRAME),
    PLACE(31, frame_instr, IN_FRAME),        PLACE(33, frame_owner, SND_PY_FRAME_READ - 1),
    PLACE(35, code_file, IN_CODE),           PLACE(36, code_name, IN_CODE),
    PLACE(37, code_qualname, IN_CODE),       PLACE(38, code_lines, IN_CODE),
    PLACE(39, code_firstline, IN_CODE),      PLACE(43, code_first_instr, ADDRESS),
    PLACE(45, object_type, IN_CODE),
#undef PLACE
};

bool snd_py_layout_refine(struct snd_py_layout *layout, const void *offsets, size_t size,
                          bool *free_threaded)
{
    const char *bytes = offsets;
    uint64_t    value;

    *free_threaded = false;
    if (size < 46 * 8 || memcmp(bytes, COOKIE, 8) != 0)
        return false;
    memcpy(&value, bytes + FREE_THREADED_AT, 8);
    *free_threaded = value != 0;
    if (value != 0)
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        memcpy(&value, bytes + places[i].at, 8);
        if (value > places[i].most)
            return false;
        uint32_t offset = (uint32_t)value;
        memcpy((char *)layout + places[i].member, &offset, sizeof offset);
    }
    /* The block has no offset for it: it is the member before the list of threads. */
    layout->interp_made = layout->interp_threads - 8;
    return true;
}
