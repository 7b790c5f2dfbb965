/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/recorder_library.h - the recorder's shared library, loaded when it is needed: the program `sonde`
 * reads traces, and links no recorder.
 *
 * Layer: base. Threads: one.
 */
#ifndef SND_BASE_SYSTEM_RECORDER_LIBRARY_H
#define SND_BASE_SYSTEM_RECORDER_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* A function of sonde/record.h, and the pointer that it is put into. */
struct snd_recorder_symbol {
    const char *name;
    void       *into;
};

/*
 * Loads the library and finds all of them. Takes SONDE_TRACE out of the environment: under `sonde run`
 * the caller would be recorded itself.
 * Errors: SONDE_E_UNSUPPORTED, with where it was looked for, or what it does not have.
 */
SND_CHECKED enum sonde_status snd_recorder_load(const struct snd_recorder_symbol *wanted,
                                                size_t count, struct sonde_error *err);

/* As sonde_clock() of record.h, once it is loaded: by its own word on the processor's counter. */
uint64_t snd_recorder_clock(void);

#endif
