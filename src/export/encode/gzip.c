/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/gzip.h"

#include <stdlib.h>

#include "snd_config.h"

#if SND_HAVE_ZLIB
#include <limits.h>
#include <zlib.h>

struct snd_gzip {
    const struct sonde_sink *sink;
    z_stream                 stream;
    Bytef                    bytes[65536];
};

/* Runs zlib until it has consumed all input and, at the end, written all output. */
static bool squeeze(struct snd_gzip *gzip, int flush)
{
    do {
        gzip->stream.next_out = gzip->bytes;
        gzip->stream.avail_out = sizeof gzip->bytes;
        int rc = deflate(&gzip->stream, flush);
        if (rc == Z_STREAM_ERROR)
            return false;
        size_t made = sizeof gzip->bytes - gzip->stream.avail_out;
        if (made > 0 && !gzip->sink->write(gzip->sink->user, gzip->bytes, made))
            return false;
    } while (gzip->stream.avail_out == 0);
    return true;
}

static bool write_gzip(void *user, const void *data, size_t length)
{
    struct snd_gzip *gzip = user;
    const Bytef     *at = data;

    while (length > 0) {
        uInt part = length < UINT_MAX ? (uInt)length : UINT_MAX;
        gzip->stream.next_in = (Bytef *)(size_t)at; /* zlib reads it only */
        gzip->stream.avail_in = part;
        if (!squeeze(gzip, Z_NO_FLUSH))
            return false;
        at += part;
        length -= part;
    }
    return true;
}

enum sonde_status snd_gzip_new(const struct sonde_sink *sink, enum snd_gzip_level level,
                               struct snd_gzip **out, struct sonde_error *err)
{
    struct snd_gzip *gzip = calloc(1, sizeof *gzip);

    *out = NULL;
    /* 15 bits of window; 16 more ask for gzip's own header. */
    if (!gzip || deflateInit2(&gzip->stream, (int)level, Z_DEFLATED, 15 + 16, 8,
                              Z_DEFAULT_STRATEGY) != Z_OK) {
        free(gzip);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for compression");
    }
    gzip->sink = sink;
    *out = gzip;
    return SONDE_OK;
}

struct sonde_sink snd_gzip_sink(struct snd_gzip *gzip)
{
    return (struct sonde_sink){ write_gzip, gzip };
}

enum sonde_status snd_gzip_finish(struct snd_gzip *gzip, struct sonde_error *err)
{
    gzip->stream.next_in = NULL;
    gzip->stream.avail_in = 0;
    return squeeze(gzip, Z_FINISH) ? SONDE_OK
                                   : snd_fail_os(err, SONDE_E_IO, "cannot write the output");
}

void snd_gzip_free(struct snd_gzip *gzip)
{
    if (gzip)
        deflateEnd(&gzip->stream);
    free(gzip);
}

#else

enum sonde_status snd_gzip_new(const struct sonde_sink *sink, enum snd_gzip_level level,
                               struct snd_gzip **out, struct sonde_error *err)
{
    (void)sink, (void)level;
    *out = NULL;
    return snd_fail(err, SONDE_E_UNSUPPORTED,
                    "cannot write .gz: built without zlib; leave .gz off the name");
}

struct sonde_sink snd_gzip_sink(struct snd_gzip *gzip)
{
    return (struct sonde_sink){ NULL, gzip };
}

enum sonde_status snd_gzip_finish(struct snd_gzip *gzip, struct sonde_error *err)
{
    (void)gzip;
    return snd_fail(err, SONDE_E_UNSUPPORTED, "built without zlib");
}

void snd_gzip_free(struct snd_gzip *gzip)
{
    free(gzip);
}
#endif
