/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/scratch.h - for tests of the reading side: a folder of their own, files in memory.
 */
#ifndef UNIT_SCRATCH_H
#define UNIT_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sonde/model.h"
#include "synth.h"

static char scratch_folder[64];

/* A path in the test's folder; good until the next call but three. */
static inline const char *scratch_path(const char *name)
{
    static char     paths[4][256];
    static unsigned turn;
    char           *path = paths[turn++ % 4];

    if (scratch_folder[0] == '\0') {
        strcpy(scratch_folder, "/tmp/sonde-test-XXXXXX");
        if (!mkdtemp(scratch_folder))
            abort();
    }
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

static inline int scratch_remove(void **state)
{
    char command[128];

    (void)state;
    if (scratch_folder[0] == '\0')
        return 0;
    snprintf(command, sizeof command, "rm -rf %s", scratch_folder);
    return system(command);
}

/* The bytes of a file; the caller frees them. */
static inline uint8_t *scratch_load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*size + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void scratch_save(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline struct sonde_trace *scratch_open(const char *path)
{
    struct sonde_trace *trace;
    struct sonde_error  err = { SONDE_OK, 0, "" };

    if (sonde_trace_open(path, &trace, &err) != SONDE_OK)
        fail_msg("%s: %s", path, err.message);
    return trace;
}

static inline bool text_is(struct sonde_text text, const char *expected)
{
    return text.length == strlen(expected) && memcmp(text.bytes, expected, text.length) == 0;
}

static inline const struct sonde_average *find_average(const struct sonde_averages *averages,
                                                       const char                  *name)
{
    for (size_t i = 0; i < sonde_averages_count(averages); i++)
        if (text_is(sonde_averages_row(averages, i)->name, name))
            return sonde_averages_row(averages, i);
    fail_msg("no row %s", name);
    return NULL;
}

/* The count of a ledger key, 0 if it is not listed. */
static inline uint64_t ledger_count(const struct sonde_summary *summary, const char *key)
{
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        if (strcmp(sonde_summary_ledger(summary, i)->key, key) == 0)
            return sonde_summary_ledger(summary, i)->count;
    return 0;
}

#endif
