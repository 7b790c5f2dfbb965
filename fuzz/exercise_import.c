/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/exercise_import.c - traces of other tools: imported; what is written must be a trace without damage. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/fd_io.h"
#include "exercise.h"
#include "import/import.h"
#include "read/reader.h"

/* Every record that the importer wrote is as readers want it. */
static void check_whole(const uint8_t *bytes, size_t size)
{
    struct sonde_trace *trace;
    struct sonde_error  err;

    if (snd_trace_open_memory(bytes, size, &trace, &err) != SONDE_OK) {
        fprintf(stderr, "an imported trace cannot be read: %s\n", err.message);
        abort();
    }
    const struct snd_damage *d = &trace->processes[0].damage;
    if (d->chunks || d->skipped_bytes || d->unknown_chunks || d->unknown_records || d->bad_ids ||
        d->header) {
        fprintf(stderr, "an imported trace is damaged\n");
        abort();
    }
    sonde_trace_close(trace);
}

void exercise_import(const uint8_t *data, size_t size)
{
    struct sonde_error err;
    int                to = memfd_create("imported", MFD_CLOEXEC);

    if (to < 0)
        return;
    if (snd_import_text(data, size, "fuzz", to, -1, &err) == SONDE_OK) {
        size_t   length = (size_t)lseek(to, 0, SEEK_END);
        uint8_t *bytes = malloc(length);
        if (bytes && snd_read_at(to, 0, bytes, length) == length) {
            check_whole(bytes, length);
            exercise_trace(bytes, length);
        }
        free(bytes);
    }
    close(to);
}
