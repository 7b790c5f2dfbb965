/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/py_bytes.h - values as Python's marshal and pickle write them.
 *
 * Layer: export. Threads: as the writer.
 */
#ifndef SND_EXPORT_ENCODE_PY_BYTES_H
#define SND_EXPORT_ENCODE_PY_BYTES_H

#include "base/text/buf.h"
#include "base/files/sink.h"
#include "sonde/trace.h"

/* marshal: readable by every Python 3. A dict is '{', its keys and values, then '0'. */
void snd_marshal_text(struct snd_out *out, struct sonde_text text, struct sonde_buffer *buf);
void snd_marshal_int(struct snd_out *out, uint64_t value);
void snd_marshal_real(struct snd_out *out, double value);
void snd_marshal_tuple(struct snd_out *out, uint32_t count); /* then its items */

/* pickle, protocol 2. */
void snd_pickle_text(struct snd_out *out, struct sonde_text text, struct sonde_buffer *buf);
void snd_pickle_int(struct snd_out *out, uint64_t value);
void snd_pickle_real(struct snd_out *out, double value);

#endif
