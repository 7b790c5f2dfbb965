/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/py_thread_names.c - sys.modules["threading"]._active[ident]._name, step by step.
 *
 * A dict is a table of keys, with the values in it or, of instances, in an array of their own. No
 * step is believed: what cannot be read, or has an absurd size, ends the search.
 */
#include "pystack/interpreter/py_thread_names.h"

#include <stdlib.h>
#include <string.h>

#include "pystack/interpreter/code_objects.h"

/* Where the head of an object takes 16 bytes: see after_head(). */
#define MODULE_DICT 16
#define DICT_KEYS 32
#define DICT_VALUES 40
#define TYPE_BASICSIZE 32
#define TYPE_DICTOFFSET 288
#define INT_DIGITS 24
#define ENTRIES_MAX 100000u

/* A build without the interpreter lock has longer heads; an object's type is their last word. */
static uint32_t after_head(const struct snd_python *python, uint32_t offset)
{
    return offset + python->layout.object_type - 8;
}

static uint64_t read_word(const struct snd_python *python, uint64_t address)
{
    uint64_t value;

    return address && snd_memory_read(python->pid, address, &value, sizeof value) ? value : 0;
}

/* ------------------------------------------------------------------- objects */

/* An ASCII str; false if it is none, or does not fit. */
static bool read_ascii(const struct snd_python *python, uint64_t object, char *text, size_t size)
{
    const struct snd_py_layout *l = &python->layout;
    char                        head[SND_PY_TEXT_READ];

    if (!object || !snd_memory_read(python->pid, object, head, l->unicode_ascii))
        return false;
    uint64_t length = snd_u64(head + l->unicode_length);
    uint32_t state = snd_u32(head + l->unicode_state) >> l->unicode_kind;
    bool     ascii = (state >> 3 & 3) == 3; /* compact, ascii */
    if (!ascii || length == 0 || length >= size ||
        !snd_memory_read(python->pid, object + l->unicode_ascii, text, (size_t)length))
        return false;
    text[length] = '\0';
    return true;
}

/* An int of up to 64 bits; 0 if it is greater. */
static uint64_t read_int(const struct snd_python *python, uint64_t object)
{
    char tail[8 + 3 * 4]; /* how many digits, and they */

    if (!object || !snd_memory_read(python->pid, object + after_head(python, INT_DIGITS - 8), tail,
                                    sizeof tail))
        return 0;
    uint64_t digits = snd_u64(tail) >> (python->layout.minor >= 12 ? 3 : 0), value = 0;
    for (uint64_t i = 0; digits <= 3 && i < digits; i++)
        value |= (uint64_t)snd_u32(tail + 8 + i * 4) << (30 * i);
    return value;
}

/* ------------------------------------------------------------------ the keys */

struct keys {
    char  *bytes; /* the entries, owned */
    size_t count, size, key_at;
};

/* The table of keys at `address`; false when it cannot be read. */
static bool read_keys(const struct snd_python *python, uint64_t address, struct keys *keys)
{
    char     head[40];
    uint64_t entries, index_bytes;

    *keys = (struct keys){ .size = 24, .key_at = 8 }; /* hash, key, value */
    if (!address || !snd_memory_read(python->pid, address, head, sizeof head))
        return false;
    if (python->layout.minor >= 11) {
        uint8_t log2_index = (uint8_t)head[9];
        if (log2_index > 40)
            return false;
        if (head[10] != 0) /* all keys are str: key, value */
            keys->size = 16, keys->key_at = 0;
        index_bytes = UINT64_C(1) << log2_index;
        entries = address + 32 + index_bytes;
        keys->count = (size_t)snd_u64(head + 24);
    } else {
        uint64_t slots = snd_u64(head + 8);
        index_bytes = slots <= 0xff ? slots : slots <= 0xffff ? slots * 2 : slots * 4;
        entries = address + 40 + index_bytes;
        keys->count = (size_t)snd_u64(head + 32);
    }
    if (keys->count == 0 || keys->count > ENTRIES_MAX)
        return false;
    keys->bytes = malloc(keys->count * keys->size);
    if (keys->bytes && snd_memory_read(python->pid, entries, keys->bytes, keys->count * keys->size))
        return true;
    free(keys->bytes);
    return false;
}

static uint64_t key_of(const struct keys *keys, size_t i)
{
    return snd_u64(keys->bytes + i * keys->size + keys->key_at);
}

static uint64_t value_of(const struct keys *keys, size_t i)
{
    return snd_u64(keys->bytes + i * keys->size + keys->key_at + 8);
}

/* The number of a key; keys->count if it is not there. */
static size_t find_text(const struct snd_python *python, const struct keys *keys,
                        const char *wanted)
{
    char text[32];

    for (size_t i = 0; i < keys->count; i++)
        if (read_ascii(python, key_of(keys, i), text, sizeof text) && strcmp(text, wanted) == 0)
            return i;
    return keys->count;
}

static size_t find_int(const struct snd_python *python, const struct keys *keys, uint64_t wanted)
{
    for (size_t i = 0; i < keys->count; i++)
        if (value_of(keys, i) != 0 && read_int(python, key_of(keys, i)) == wanted)
            return i;
    return keys->count;
}

/* `values`: where those of a table are that keeps them apart; 0: in the table. */
static uint64_t look_up(const struct snd_python *python, uint64_t table, uint64_t values,
                        const char *name)
{
    struct keys keys;
    uint64_t    found = 0;

    if (!read_keys(python, table, &keys))
        return 0;
    size_t i = find_text(python, &keys, name);
    if (i < keys.count)
        found = values ? read_word(python, values + i * 8) : value_of(&keys, i);
    free(keys.bytes);
    return found;
}

/* The values that an object or a dict keeps apart have a head from 3.13 on. */
static uint64_t skip_head(const struct snd_python *python, uint64_t values)
{
    return values ? values + (python->layout.minor >= 13 ? 8 : 0) : 0;
}

static uint64_t look_up_dict(const struct snd_python *python, uint64_t dict, const char *name)
{
    uint64_t values = read_word(python, dict + after_head(python, DICT_VALUES));

    return dict ? look_up(python, read_word(python, dict + after_head(python, DICT_KEYS)),
                          skip_head(python, values), name)
                : 0;
}

/* -------------------------------------------------------------- an attribute */

/* Of an instance of a class that is written in Python. Each version keeps them elsewhere. */
static uint64_t read_attribute(const struct snd_python *python, uint64_t object, const char *name)
{
    unsigned minor = python->layout.minor;
    uint64_t type = read_word(python, object + python->layout.object_type), dict = 0, values = 0;

    if (!type)
        return 0;
    if (minor <= 10) {
        dict = read_word(python, object + read_word(python, type + TYPE_DICTOFFSET));
    } else if (minor == 11) {
        values = read_word(python, object - 32);
        dict = read_word(python, object - 24);
    } else if (minor == 12) {
        uint64_t either = read_word(python, object - 24);
        values = either & 1 ? either + 1 : 0;
        dict = either & 1 ? 0 : either;
    } else {
        dict = read_word(python, object - (python->layout.free_threaded ? 8 : 24));
        values = dict ? 0 : object + read_word(python, type + after_head(python, TYPE_BASICSIZE));
    }
    if (!values)
        return look_up_dict(python, dict, name);
    return look_up(python, read_word(python, type + python->layout.type_cached_keys),
                   skip_head(python, values), name);
}

static void find_active(const struct snd_python *python, uint64_t interp,
                        struct snd_py_active *active)
{
    uint64_t modules = read_word(python, interp + python->layout.interp_modules);
    uint64_t module = look_up_dict(python, modules, "threading");

    active->interp = interp;
    active->dict = module
                       ? look_up_dict(python,
                                      read_word(python, module + after_head(python, MODULE_DICT)),
                                      "_active")
                       : 0;
}

char *snd_python_thread_name(const struct snd_python *python, const struct snd_py_thread *thread,
                             struct snd_py_active *active)
{
    struct keys keys;
    uint64_t    object = 0, unused;
    bool        no_memory = false;

    if (active->interp != thread->interp || active->dict == 0)
        find_active(python, thread->interp, active);
    if (!active->dict ||
        !read_keys(python, read_word(python, active->dict + after_head(python, DICT_KEYS)), &keys))
        return NULL;
    size_t i = find_int(python, &keys, thread->ident);
    if (i < keys.count)
        object = value_of(&keys, i);
    free(keys.bytes);
    return object ? snd_py_text(python->pid, &python->layout,
                                read_attribute(python, object, "_name"), &unused, &no_memory)
                  : NULL;
}
