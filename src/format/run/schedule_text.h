/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/run/schedule_text.h - a schedule as text, "wait=1,warmup=1,active=3": what `sonde run` checks and
 * hands to the recorder in SONDE_SCHEDULE.
 *
 * Layer: format. Threads: any.
 */
#ifndef SND_FORMAT_RUN_SCHEDULE_TEXT_H
#define SND_FORMAT_RUN_SCHEDULE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

enum {
#define SND_SCHEDULE(name) SND_SCHEDULE_##name,
#include "format/run/schedule_text.def"
#undef SND_SCHEDULE
    SND_SCHEDULE_FIELDS
};

/*
 * Reads `text`; a field that it does not name is 0. False where a part is not FIELD=N with N below
 * 2^32, and *bad is where it begins; or where active is not given or 0, and *bad is NULL.
 */
bool snd_schedule_read(const char *text, uint32_t values[SND_SCHEDULE_FIELDS], const char **bad);

#endif
