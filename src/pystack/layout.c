/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/layout.h"

#include <string.h>

const unsigned snd_py_minor_least = 9, snd_py_minor_most = 13;

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
        .frame_size = 72,
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

/* Where in the block the offset of a member lies: CPython's order, 8 bytes each. */
static const struct {
    uint16_t at, member;
} places[] = {
#define PLACE(word, name)                                \
    {                                                    \
        (word) * 8, offsetof(struct snd_py_layout, name) \
    }
    PLACE(5, runtime_interpreters), PLACE(8, interp_next),   PLACE(9, interp_threads),
    PLACE(14, interp_gil),          PLACE(21, thread_next),  PLACE(22, thread_interp),
    PLACE(23, thread_frame),        PLACE(24, thread_ident), PLACE(25, thread_native),
    PLACE(29, frame_previous),      PLACE(30, frame_code),   PLACE(31, frame_instr),
    PLACE(33, frame_owner),         PLACE(35, code_file),    PLACE(36, code_name),
    PLACE(37, code_qualname),       PLACE(38, code_lines),   PLACE(39, code_firstline),
    PLACE(43, code_first_instr),    PLACE(45, object_type),
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
        if (value > UINT32_MAX)
            return false;
        uint32_t offset = (uint32_t)value;
        memcpy((char *)layout + places[i].member, &offset, sizeof offset);
    }
    return true;
}
