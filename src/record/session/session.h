/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session/session.h - start, stop, step, pause: the life of a recording (sonde/record.h), and the
 * two ways into and out of it that are no calls of the program.
 *
 * Layer:   record.
 * Threads: any; one at a time is served.
 */
#ifndef SND_RECORD_SESSION_SESSION_H
#define SND_RECORD_SESSION_SESSION_H

#include "record/state.h"

/* Begins the recording that `sonde run` asks for; reports on stderr why it cannot. */
void snd_session_from_run(const struct sonde_options *options);

/* Ends a recording if there is one; for the end of the process. */
/* Callbacks of sonde_before_end() run now; the recording ends later. */
void snd_session_tell(void);
void snd_session_end(void);

#endif
