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

/* `count` bytes of a number, lowest first. */
void snd_put_le(struct snd_out *out, uint64_t value, unsigned count);

/*
 * Text as UTF-8 that Python reads with surrogatepass: a byte 0xNN that is not UTF-8 becomes the
 * lone surrogate U+DCNN, as os.fsdecode gives it. Borrowed until `buf` is used again.
 */
struct sonde_text snd_pytext(struct sonde_buffer *buf, struct sonde_text text);

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
