/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session/recording.h - opens and closes one file of a recording with all that belongs to it:
 * tables, chunks, the helper thread.
 *
 * Layer:   record.
 * Threads: with snd_rec.lock held; they may let go of it.
 */
#ifndef SND_RECORD_SESSION_RECORDING_H
#define SND_RECORD_SESSION_RECORDING_H

#include "record/state.h"

/*
 * Makes the file of the current cycle. It can be written to when this returns SONDE_OK.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM, SONDE_E_ARGUMENT; no file remains then.
 */
SND_CHECKED enum sonde_status snd_recording_open(struct sonde_error *err);

/* Seals every chunk and closes the file. Marking is off. The phase is SND_WAITING afterwards. */
void snd_recording_close(void);

/* Frees what is kept from one recording to the next: nobody records here again. */
void snd_recording_release(void);

#endif
