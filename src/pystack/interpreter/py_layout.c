/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/py_layout.h"

#include <string.h>

const unsigned snd_py_minor_least = 9, snd_py_minor_most = 15;

/* A column of the table each. */
static const struct snd_py_layout layouts[] = {
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v9),
    {
        .minor = 9,
        .lines = SND_PY_LNOTAB,
#include "base/count_of.h"
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v10),
    {
        .minor = 10,
        .lines = SND_PY_LINETABLE,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v11),
    {
        .minor = 11,
        .lines = SND_PY_LOCATIONS,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v12),
    {
        .minor = 12,
        .lines = SND_PY_LOCATIONS,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v13),
    {
        .minor = 13,
        .lines = SND_PY_LOCATIONS,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v14),
    {
        .minor = 14,
        .lines = SND_PY_LOCATIONS,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v15),
    {
        .minor = 15,
        .lines = SND_PY_LOCATIONS,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v13t),
    {
        .minor = 13,
        .lines = SND_PY_LOCATIONS,
        .free_threaded = true,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v14t),
    {
        .minor = 14,
        .lines = SND_PY_LOCATIONS,
        .free_threaded = true,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
#define SND_PY_MEMBER(name, v9, v10, v11, v12, v13, v14, v15, v13t, v14t, v15t) .name = (v15t),
    {
        .minor = 15,
        .lines = SND_PY_LOCATIONS,
        .free_threaded = true,
#include "pystack/interpreter/py_layouts.def"
    },
#undef SND_PY_MEMBER
};

const struct snd_py_layout *snd_py_layout(unsigned minor, bool free_threaded)
{
    for (size_t i = 0; i < SND_COUNT_OF(layouts); i++)
        if (layouts[i].minor == minor && layouts[i].free_threaded == free_threaded)
            return &layouts[i];
    return NULL;
}

/* ------------------------------- what 3.13 and later say of themselves (_Py_DebugOffsets) */

#define COOKIE "xdebugpy"
#define FREE_THREADED 2 /* the word that says so */

/*
 * Upper limit of an offset: the kernel checks addresses, but nobody checks an index into a buffer.
 */
#define ADDRESS UINT32_MAX
#define IN_THREAD (SND_PY_THREAD_READ - 8)
#define IN_FRAME (SND_PY_FRAME_READ - 8)
#define IN_CODE (SND_PY_CODE_READ - 8)
#define IN_TEXT (SND_PY_TEXT_READ - 8)

/*
 * The block is CPython's list of structures, and the offsets of each one's members, 8 bytes each. Every
 * version adds some. A group here is words that have followed each other in all of them.
 */
struct place {
    uint16_t word, member; /* `word`: in its group */
    uint32_t most;
};

#define PLACE(word, name, most)                            \
    {                                                      \
        (word), offsetof(struct snd_py_layout, name), most \
    }
static const struct place runtime_places[] = { PLACE(0, runtime_interpreters, ADDRESS) };
static const struct place interp_places[] = { PLACE(0, interp_next, ADDRESS),
                                              PLACE(1, interp_threads, ADDRESS) };
static const struct place module_places[] = { PLACE(0, interp_modules, ADDRESS),
                                              PLACE(3, interp_gil, ADDRESS) };
static const struct place thread_places[] = { PLACE(0, thread_next, IN_THREAD),
                                              PLACE(1, thread_interp, IN_THREAD),
                                              PLACE(2, thread_frame, ADDRESS) };
static const struct place ident_places[] = { PLACE(0, thread_ident, IN_THREAD),
                                             PLACE(1, thread_native, IN_THREAD) };
static const struct place frame_places[] = { PLACE(0, frame_previous, IN_FRAME),
                                             PLACE(1, frame_code, IN_FRAME),
                                             PLACE(2, frame_instr, IN_FRAME),
                                             PLACE(3, frame_locals, ADDRESS),
                                             PLACE(4, frame_owner, SND_PY_FRAME_READ - 1) };
static const struct place code_places[] = {
    PLACE(0, code_file, IN_CODE),      PLACE(1, code_name, IN_CODE),
    PLACE(2, code_qualname, IN_CODE),  PLACE(3, code_lines, IN_CODE),
    PLACE(4, code_firstline, IN_CODE), PLACE(8, code_first_instr, ADDRESS)
};
static const struct place copy_places[] = { PLACE(0, code_tlbc, IN_CODE) };
static const struct place object_places[] = { PLACE(0, object_type, IN_CODE) };
static const struct place type_places[] = { PLACE(0, type_cached_keys, ADDRESS) };
static const struct place bytes_places[] = { PLACE(0, var_size, SND_PY_BYTES_READ - 8),
                                             PLACE(1, bytes_data, SND_PY_BYTES_READ) };
static const struct place text_places[] = { PLACE(0, unicode_state, IN_TEXT),
                                            PLACE(1, unicode_length, IN_TEXT),
                                            PLACE(2, unicode_ascii, SND_PY_TEXT_READ) };
static const struct place gen_places[] = { PLACE(0, gen_frame, ADDRESS),
                                           PLACE(1, gen_state, ADDRESS) };
#undef PLACE

enum {
    RUNTIME,
    INTERP,
    MODULES,
    THREAD,
    IDENT,
    FRAME,
    CODE,
    COPIES,
    OBJECT,
    TYPE,
    BYTES,
    TEXT,
    GEN,
    GROUPS
};

/* Where each group begins, by version; 0: the block of that version does not have it. */
static const struct group {
    const struct place *places;
    uint16_t            count;
    uint16_t            first[3]; /* in 3.13, 3.14, 3.15 */
} groups[GROUPS] = {
#define GROUP(list, v13, v14, v15) \
    {                              \
        list, SND_COUNT_OF(list),  \
        {                          \
            v13, v14, v15          \
        }                          \
    }
    [RUNTIME] = GROUP(runtime_places, 5, 5, 5),   [INTERP] = GROUP(interp_places, 8, 8, 8),
    [MODULES] = GROUP(module_places, 11, 12, 12), [THREAD] = GROUP(thread_places, 21, 24, 24),
    [IDENT] = GROUP(ident_places, 24, 27, 30),    [FRAME] = GROUP(frame_places, 29, 32, 40),
    [CODE] = GROUP(code_places, 35, 40, 48),      [COPIES] = GROUP(copy_places, 0, 49, 57),
    [OBJECT] = GROUP(object_places, 45, 51, 59),  [TYPE] = GROUP(type_places, 0, 0, 67),
    [BYTES] = GROUP(bytes_places, 65, 75, 87),    [TEXT] = GROUP(text_places, 68, 78, 90),
    [GEN] = GROUP(gen_places, 0, 85, 101),
#undef GROUP
};

#define VERSIONS (sizeof groups[0].first / sizeof groups[0].first[0])
#define FIRST_MINOR 13u

static uint64_t word_at(const void *offsets, size_t word)
{
    uint64_t value;

    memcpy(&value, (const char *)offsets + word * 8, sizeof value);
    return value;
}

/*
 * Of a version whose block is not known: its structures are recognized. A thread state begins with its
 * neighbours and its interpreter; a frame's instruction comes before its owner, that before its locals;
 * a code object has file, name, qualified name and line table in a row.
 */
static bool is_thread(const void *offsets, size_t word)
{
    return word_at(offsets, word - 1) == 0 && word_at(offsets, word) == 8 &&
           word_at(offsets, word + 1) == 16 &&
           word_at(offsets, word - 2) > word_at(offsets, word + 2);
}

static bool is_frame(const void *offsets, size_t word)
{
    uint64_t size = word_at(offsets, word - 1), instr = word_at(offsets, word + 2);
    uint64_t locals = word_at(offsets, word + 3), owner = word_at(offsets, word + 4);

    return word_at(offsets, word) == 8 && word_at(offsets, word + 1) == 0 && instr > 8 &&
           instr < owner && owner < locals && locals < size && size < 256;
}

static bool is_code(const void *offsets, size_t word)
{
    uint64_t file = word_at(offsets, word), line = word_at(offsets, word + 4);

    return word_at(offsets, word + 1) == file + 8 && word_at(offsets, word + 2) == file + 16 &&
           word_at(offsets, word + 3) == file + 24 && line > 0 && line < file &&
           word_at(offsets, word + 8) > file && word_at(offsets, word - 1) > file;
}

/* Where a group begins in the block of a version; 0: not there, or not found. */
static size_t find_group(unsigned which, unsigned minor, const void *offsets, size_t words)
{
    static bool (*const tests[GROUPS])(const void *, size_t) = {
        [THREAD] = is_thread, [FRAME] = is_frame, [CODE] = is_code
    };
    const struct group *group = &groups[which];

    if (minor < FIRST_MINOR + VERSIONS)
        return group->first[minor - FIRST_MINOR];
    if (which == RUNTIME || which == INTERP) /* before all that has changed so far */
        return group->first[VERSIONS - 1];
    for (size_t word = groups[INTERP].first[0] + 2; tests[which] && word + 9 < words; word++)
        if (tests[which](offsets, word))
            return word;
    return 0;
}

static bool copy_group(struct snd_py_layout *layout, const struct group *group, const void *offsets,
                       size_t first)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct place *place = &group->places[i];
        uint64_t            value = word_at(offsets, first + place->word);
        if (value > place->most)
            return false;
        uint32_t offset = (uint32_t)value;
        memcpy((char *)layout + place->member, &offset, sizeof offset);
    }
    return true;
}

/* What the block has no offset for, by the members that it has one for. */
static void derive(struct snd_py_layout *layout)
{
    const uint32_t ends[] = { layout->frame_previous + 8, layout->frame_code + 8,
                              layout->frame_instr + 8, layout->frame_owner + 1 };

    layout->interp_made = layout->interp_threads - 8; /* the member before the list of threads */
    layout->unicode_compact = layout->unicode_ascii + 16;
    layout->code_size = layout->code_lines + 8;
    layout->frame_size = 0;
    for (size_t i = 0; i < SND_COUNT_OF(ends); i++)
        layout->frame_size = ends[i] > layout->frame_size ? ends[i] : layout->frame_size;
}

bool snd_py_layout_refine(struct snd_py_layout *layout, unsigned minor, const void *offsets,
                          size_t size)
{
    if (size < SND_PY_OFFSETS_SIZE || memcmp(offsets, COOKIE, sizeof COOKIE - 1) != 0)
        return false;
    bool                        is_new = minor > snd_py_minor_most;
    const struct snd_py_layout *base = snd_py_layout(is_new ? snd_py_minor_most : minor,
                                                     word_at(offsets, FREE_THREADED) != 0);
    if (!base || minor < FIRST_MINOR)
        return false;
    *layout = *base;
    layout->minor = minor;
    for (unsigned i = 0; i < GROUPS; i++) {
        size_t first = find_group(i, minor, offsets, size / 8);
        if (first == 0 && is_new && (i == THREAD || i == FRAME || i == CODE))
            return false;
        if (first != 0 && !copy_group(layout, &groups[i], offsets, first))
            return false;
    }
    if (is_new)
        layout->code_version = 0; /* names are compared instead */
    derive(layout);
    return true;
}
