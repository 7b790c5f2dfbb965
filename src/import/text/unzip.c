/* SPDX-License-Identifier: Apache-2.0 */
#include "import/text/unzip.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "snd_config.h"

#if SND_HAVE_ISAL
#include <isa-l/igzip_lib.h>

struct snd_unzip {
    struct inflate_state state;
    bool                 within;
};

enum sonde_status snd_unzip_new(struct snd_unzip **out, struct sonde_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for gzip");
    isal_inflate_init(&(*out)->state);
    (*out)->state.crc_flag = ISAL_GZIP;
    return SONDE_OK;
}

void snd_unzip_free(struct snd_unzip *unzip)
{
    free(unzip);
}

enum snd_unzip_state snd_unzip_run(struct snd_unzip *unzip, const unsigned char *bytes,
                                   size_t length, size_t *at, char *to, size_t room, size_t *got)
{
    struct inflate_state *s = &unzip->state;

    *got = 0;
    if (*at == length)
        return unzip->within ? SND_UNZIP_WITHIN : SND_UNZIP_BETWEEN;
    if (!unzip->within && s->block_state == ISAL_BLOCK_FINISH)
        isal_inflate_reset(s);
    s->crc_flag = ISAL_GZIP;
    s->next_in = (uint8_t *)bytes + *at;
    s->avail_in = (uint32_t)(length - *at);
    s->next_out = (uint8_t *)to;
    s->avail_out = (uint32_t)room;
    int code = isal_inflate(s);
    *at = length - s->avail_in;
    *got = room - s->avail_out;
    unzip->within = s->block_state != ISAL_BLOCK_FINISH;
    if (code < 0)
        return SND_UNZIP_BAD;
    return unzip->within ? SND_UNZIP_WITHIN : SND_UNZIP_BETWEEN;
}

#elif SND_HAVE_ZLIB
#include <zlib.h>

struct snd_unzip {
    z_stream stream;
    bool     within;
};

enum sonde_status snd_unzip_new(struct snd_unzip **out, struct sonde_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out || inflateInit2(&(*out)->stream, 15 + 16) != Z_OK) {
        free(*out);
        *out = NULL;
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for gzip");
    }
    return SONDE_OK;
}

void snd_unzip_free(struct snd_unzip *unzip)
{
    if (unzip)
        inflateEnd(&unzip->stream);
    free(unzip);
}

enum snd_unzip_state snd_unzip_run(struct snd_unzip *unzip, const unsigned char *bytes,
                                   size_t length, size_t *at, char *to, size_t room, size_t *got)
{
    z_stream *s = &unzip->stream;

    *got = 0;
    if (*at == length)
        return unzip->within ? SND_UNZIP_WITHIN : SND_UNZIP_BETWEEN;
    s->next_in = (unsigned char *)bytes + *at;
    s->avail_in = (uInt)(length - *at);
    s->next_out = (unsigned char *)to;
    s->avail_out = (uInt)room;
    int code = inflate(s, Z_NO_FLUSH);
    *at = length - s->avail_in;
    *got = room - s->avail_out;
    unzip->within = code != Z_STREAM_END;
    if (code == Z_STREAM_END)
        return inflateReset(s) == Z_OK ? SND_UNZIP_BETWEEN : SND_UNZIP_BAD;
    return code == Z_OK || code == Z_BUF_ERROR ? SND_UNZIP_WITHIN : SND_UNZIP_BAD;
}

#else

enum sonde_status snd_unzip_new(struct snd_unzip **out, struct sonde_error *err)
{
    *out = NULL;
    return snd_fail(
        err, SONDE_E_UNSUPPORTED,
        "this sonde was built without zlib and ISA-L: unpack the file with gunzip first");
}

void snd_unzip_free(struct snd_unzip *unzip)
{
    (void)unzip;
}

enum snd_unzip_state snd_unzip_run(struct snd_unzip *unzip, const unsigned char *bytes,
                                   size_t length, size_t *at, char *to, size_t room, size_t *got)
{
    (void)unzip, (void)bytes, (void)length, (void)at, (void)to, (void)room;
    *got = 0;
    return SND_UNZIP_BAD;
}

#endif
