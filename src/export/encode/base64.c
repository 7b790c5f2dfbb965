/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/base64.h"

#define GROUPS 1024 /* of three bytes, written at once */

static void put_group(char *to, const uint8_t *from)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];

    to[0] = letters[bits >> 18];
    to[1] = letters[bits >> 12 & 63];
    to[2] = letters[bits >> 6 & 63];
    to[3] = letters[bits & 63];
}

static bool write_base64(void *user, const void *data, size_t length)
{
    struct snd_base64 *base64 = user;
    const uint8_t     *at = data;
    char               text[4 * GROUPS];

    while (length > 0 && base64->rest_count > 0 && base64->rest_count < 3) {
        base64->rest[base64->rest_count++] = *at++;
        length--;
    }
    if (base64->rest_count == 3) {
        put_group(text, base64->rest);
        snd_out_put(base64->out, text, 4);
        base64->rest_count = 0;
    }
    while (length >= 3) {
        size_t groups = length / 3 < GROUPS ? length / 3 : GROUPS;
        for (size_t i = 0; i < groups; i++)
            put_group(text + 4 * i, at + 3 * i);
        snd_out_put(base64->out, text, 4 * groups);
        at += 3 * groups;
        length -= 3 * groups;
    }
    while (length-- > 0)
        base64->rest[base64->rest_count++] = *at++;
    return !base64->out->failed;
}

struct sonde_sink snd_base64_sink(struct snd_base64 *base64)
{
    return (struct sonde_sink){ write_base64, base64 };
}

void snd_base64_finish(struct snd_base64 *base64)
{
    uint8_t last[3] = { 0 };
    char    text[4];

    if (base64->rest_count == 0)
        return;
    memcpy(last, base64->rest, base64->rest_count);
    put_group(text, last);
    text[3] = '=';
    if (base64->rest_count == 1)
        text[2] = '=';
    snd_out_put(base64->out, text, sizeof text);
    base64->rest_count = 0;
}
