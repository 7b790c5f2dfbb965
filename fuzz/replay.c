/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz/replay.c - the harnesses without libFuzzer, as an ordinary test.
 *
 *     replay ROUNDS FILE...     each file as it is, truncated, and changed ROUNDS times;
 *                               NAME.yml is a pipeline file, NAME.json a trace of another tool's, NAME.dwarf an ELF file of which the
 *                               DWARF matters, NAME.map, NAME.names,
 *                               NAME.frames (.eh_frame) and ELF files are symbols, anything else a trace
 *
 * Changes are drawn from a fixed seed: a failure comes back.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exercise.h"

static uint64_t seed = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static uint8_t *load(const char *path, size_t *size)
{
    FILE    *file = fopen(path, "rb");
    uint8_t *bytes = NULL;

    if (!file || fseek(file, 0, SEEK_END) != 0)
        goto fail;
    *size = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size)
        goto fail;
    fclose(file);
    return bytes;

fail:
    perror(path);
    exit(1);
}

/* Where something stands: header, chunk headers and what follows them, not the empty rest. */
static size_t pick(const uint8_t *bytes, size_t size)
{
    for (int i = 0; i < 64; i++) {
        size_t at = (size_t)draw(size);
        if (bytes[at] != 0)
            return at;
    }
    return (size_t)draw(size);
}

static void change(uint8_t *bytes, size_t size)
{
    static const uint64_t odd[] = { 0,          1,          0x7fffffff, 0xffffffff,
                                    1ull << 32, 1ull << 63, UINT64_MAX, 0x3fffffffffffffff };

    for (uint64_t n = 1 + draw(4); n > 0; n--) {
        size_t at = pick(bytes, size);
        switch (draw(4)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 1:
            bytes[at] = (uint8_t)draw(256);
            break;
        case 2:
            at &= ~(size_t)7;
            if (at + 8 <= size)
                memcpy(bytes + at, &odd[draw(sizeof odd / sizeof odd[0])], 8);
            break;
        default: { /* a piece from elsewhere */
            size_t from = pick(bytes, size), length = (size_t)draw(256);
            if (at + length <= size && from + length <= size)
                memmove(bytes + at, bytes + from, length);
        }
        }
    }
}

static void try_trace(const uint8_t *bytes, size_t size)
{
    exercise_trace(bytes, size);
    if (size > 4096 + 64)
        exercise_codec(bytes + 4096 + 64, size - 4096 - 64 < 65536 ? size - 4096 - 64 : 65536);
}

typedef void exercise_fn(const uint8_t *bytes, size_t size);

/* What a file is, by its name or by its first bytes. */
static exercise_fn *choose(const char *path, const uint8_t *bytes, size_t size)
{
    static const struct {
        const char  *suffix;
        exercise_fn *exercise;
    } kinds[] = { { ".yml", exercise_yaml },      { ".json", exercise_import },
                  { ".dwarf", exercise_dwarf },   { ".map", exercise_symbols },
                  { ".names", exercise_symbols }, { ".frames", exercise_symbols } };
    const char *suffix = strrchr(path, '.');

    for (size_t i = 0; suffix && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(suffix, kinds[i].suffix) == 0)
            return kinds[i].exercise;
    return size >= 4 && memcmp(bytes, "\177ELF", 4) == 0 ? exercise_symbols : try_trace;
}

/* Thousands of traces are opened and closed: memory that one has given back, and the library of the exports
 * to SQLite, stay for the next. A third of the time otherwise. */
static void keep_resources(void)
{
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 25); /* the most that glibc takes */
    if (!dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL))
        fprintf(stderr, "replay: nothing is exported to SQLite: %s\n", dlerror());
}

int main(int argc, char **argv)
{
    keep_resources();
    if (argc < 3) {
        fprintf(stderr, "usage: replay ROUNDS FILE...\n");
        return 2;
    }
    long rounds = strtol(argv[1], NULL, 10);
    if (getenv("SONDE_TEST_SLOW")) /* sanitizers, emulation */
        rounds /= 10;
    for (int i = 2; i < argc; i++) {
        size_t       size;
        uint8_t     *bytes = load(argv[i], &size);
        exercise_fn *exercise = choose(argv[i], bytes, size);
        exercise(bytes, size);
        for (long k = 0; k < rounds && size > 0; k++) {
            /* Exactly as large as it claims, so that a byte too far is seen. */
            size_t   length = draw(8) ? size : (size_t)draw(size);
            uint8_t *copy = malloc(length + !length);
            if (!copy)
                return 1;
            memcpy(copy, bytes, length);
            if (length > 0)
                change(copy, length);
            exercise(copy, length);
            free(copy);
        }
        free(bytes);
    }
    return 0;
}
