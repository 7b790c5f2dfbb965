/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/base64.h - a sink that writes base64 (RFC 4648) into a buffered writer.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_BASE64_H
#define SND_EXPORT_ENCODE_BASE64_H

#include "base/files/sink.h"

struct snd_base64 {
    struct snd_out *out; /* borrowed */
    uint8_t         rest[3];
    size_t          rest_count;
};

/* Keeps: `base64`, until snd_base64_finish() has written the last bytes. */
struct sonde_sink snd_base64_sink(struct snd_base64 *base64);
void              snd_base64_finish(struct snd_base64 *base64);

#endif
