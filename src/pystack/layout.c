/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/layout.h"

#include <string.h>

const unsigned snd_py_minor_least = 9, snd_py_minor_most = 13;

#define FRAME_READ 72 /* of a frame of 3.13 */

static const struct snd_py_layout layouts[] = {
    {
        .minor = 9,
        .lines = SND_PY_LNOTAB,
        .runtime_interpreters = 32,
        .interp_next = 0,
        .interp_threads = 8,
        .runtime_gil = 352,
        .gil_holder = 8,
        .gil_locked = 16,
        .gil_size = 208,
        .thread_next = 8,
        .thread_interp = 16,
        .thread_ident = 176,
        .thread_frame = 24,
        .frame_previous = 24,
        .frame_code = 32,
        .frame_instr = 104,
        .frame_size = 112,
        .code_flags = 36,
        .code_firstline = 40,
        .code_file = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_size = 176,
        .object_type = 8,
        .var_size = 16,
        .bytes_data = 32,
        .unicode_length = 16,
        .unicode_state = 32,
        .unicode_ascii = 48,
        .unicode_compact = 72,
    },
    {
        .minor = 10,
        .lines = SND_PY_LINETABLE,
        .runtime_interpreters = 32,
        .interp_next = 0,
        .interp_threads = 8,
        .runtime_gil = 352,
        .gil_holder = 8,
        .gil_locked = 16,
        .gil_size = 208,
        .thread_next = 8,
        .thread_interp = 16,
        .thread_ident = 176,
        .thread_frame = 24,
        .frame_previous = 24,
        .frame_code = 32,
        .frame_instr = 96,
        .frame_size = 104,
        .code_flags = 36,
        .code_firstline = 40,
        .code_file = 104,
        .code_name = 112,
        .code_lines = 120,
        .code_size = 176,
        .object_type = 8,
        .var_size = 16,
        .bytes_data = 32,
        .unicode_length = 16,
        .unicode_state = 32,
        .unicode_ascii = 48,
        .unicode_compact = 72,
    },
    {
        .minor = 11,
        .lines = SND_PY_LOCATIONS,
        .runtime_interpreters = 40,
        .interp_next = 0,
        .interp_threads = 16,
        .runtime_gil = 360,
        .gil_holder = 8,
        .gil_locked = 16,
        .gil_size = 208,
        .thread_next = 8,
        .thread_interp = 16,
        .thread_ident = 152,
        .thread_native = 160,
        .thread_frame = 56,
        .has_cframe = true,
        .cframe_frame = 8,
        .cframe_previous = 16,
        .frame_previous = 48,
        .frame_code = 32,
        .frame_instr = 56,
        .frame_owner = 69,
        .frame_entry = 68,
        .frame_size = 72,
        .code_firstline = 72,
        .code_file = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_lines = 136,
        .code_first_instr = 184,
        .code_size = 184,
        .object_type = 8,
        .var_size = 16,
        .bytes_data = 32,
        .unicode_length = 16,
        .unicode_state = 32,
        .unicode_ascii = 48,
        .unicode_compact = 72,
    },
    {
        .minor = 12,
        .lines = SND_PY_LOCATIONS,
        .runtime_interpreters = 40,
        .interp_next = 0,
        .interp_threads = 72,
        .interp_gil = 384,
        .gil_holder = 8,
        .gil_locked = 16,
        .gil_size = 208,
        .thread_next = 8,
        .thread_interp = 16,
        .thread_ident = 136,
        .thread_native = 144,
        .thread_frame = 56,
        .has_cframe = true,
        .cframe_frame = 0,
        .frame_previous = 8,
        .frame_code = 0,
        .frame_instr = 56,
        .frame_owner = 70,
        .has_entries = true,
        .frame_size = 72,
        .code_firstline = 68,
        .code_file = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_lines = 136,
        .code_first_instr = 192,
        .code_version = 92,
        .code_size = 192,
        .object_type = 8,
        .var_size = 16,
        .bytes_data = 32,
        .unicode_length = 16,
        .unicode_state = 32,
        .unicode_ascii = 40,
        .unicode_compact = 56,
    },
    {
        .minor = 13,
        .lines = SND_PY_LOCATIONS,
        .runtime_interpreters = 632,
        .interp_next = 7264,
        .interp_threads = 7344,
        .interp_gil = 16,
        .gil_holder = 8,
        .gil_locked = 16,
        .gil_size = 208,
        .thread_next = 8,
        .thread_interp = 16,
        .thread_ident = 152,
        .thread_native = 160,
        .thread_frame = 72,
        .frame_previous = 8,
        .frame_code = 0,
        .frame_instr = 56,
        .frame_owner = 70,
        .has_entries = true,
        .frame_size = FRAME_READ,
        .code_firstline = 68,
        .code_file = 112,
        .code_name = 120,
        .code_qualname = 128,
        .code_lines = 136,
        .code_first_instr = 200,
        .code_version = 92,
        .code_size = 200,
        .object_type = 8,
        .var_size = 16,
        .bytes_data = 32,
        .unicode_length = 16,
        .unicode_state = 32,
        .unicode_ascii = 40,
        .unicode_compact = 56,
    },
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

/* The most that an offset may be: the kernel checks addresses, nobody an index into a buffer. */
#define ADDRESS UINT32_MAX
#define IN_THREAD (SND_PY_THREAD_READ - 8)
#define IN_FRAME (FRAME_READ - 8)
#define IN_CODE (SND_PY_CODE_READ - 8)

/* Where in the block the offset of a member lies: CPython's order, 8 bytes each. */
static const struct {
    uint16_t at, member;
    uint32_t most;
} places[] = {
#define PLACE(word, name, most)                                  \
    {                                                            \
        (word) * 8, offsetof(struct snd_py_layout, name), (most) \
    }
    PLACE(5, runtime_interpreters, ADDRESS), PLACE(8, interp_next, ADDRESS),
    PLACE(9, interp_threads, ADDRESS),       PLACE(14, interp_gil, ADDRESS),
    PLACE(21, thread_next, IN_THREAD),       PLACE(22, thread_interp, IN_THREAD),
    PLACE(23, thread_frame, ADDRESS),        PLACE(24, thread_ident, IN_THREAD),
    PLACE(25, thread_native, IN_THREAD),     PLACE(29, frame_previous, IN_FRAME),
    PLACE(30, frame_code, IN_FRAME),         PLACE(31, frame_instr, IN_FRAME),
    PLACE(33, frame_owner, FRAME_READ - 1),  PLACE(35, code_file, IN_CODE),
    PLACE(36, code_name, IN_CODE),           PLACE(37, code_qualname, IN_CODE),
    PLACE(38, code_lines, IN_CODE),          PLACE(39, code_firstline, IN_CODE),
    PLACE(43, code_first_instr, ADDRESS),    PLACE(45, object_type, IN_CODE),
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
    return true;
}
