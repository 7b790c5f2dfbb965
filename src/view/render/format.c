/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/utf8.h"

static void put_fixed(struct sonde_buffer *buf, int decimals, double value, const char *unit)
{
    char text[SND_NUMBER_MAX];

    snd_buf_text(buf, snd_number_fixed(text, decimals, value));
    snd_buf_text(buf, unit);
}

void snd_format_time(struct sonde_buffer *buf, double us, enum sonde_time_unit unit)
{
    char text[SND_NUMBER_MAX];

    if (unit == SONDE_TIME_S)
        put_fixed(buf, 3, us / 1e6, "s");
    else if (unit == SONDE_TIME_MS)
        put_fixed(buf, 3, us / 1e3, "ms");
    else if (unit == SONDE_TIME_US)
        put_fixed(buf, 3, us, "us");
    else
        snd_buf_text(buf, snd_time_text(text, us, ""));
}

void snd_format_bytes(struct sonde_buffer *buf, int64_t bytes)
{
    static const struct {
        double      size;
        const char *name;
    } units[] = { { 1073741824.0, " GB" }, { 1048576.0, " MB" }, { 1024.0, " KB" } };

    for (size_t i = 0; i < SND_COUNT_OF(units); i++) {
        if (fabs((double)bytes) >= units[i].size) {
            put_fixed(buf, 2, (double)bytes / units[i].size, units[i].name);
            return;
        }
    }
    snd_buf_format(buf, "%" PRId64 " B", bytes);
}

void snd_format_count(struct sonde_buffer *buf, double value)
{
    static const char *const units[] = { "", " K", " M", " G", " T", " P" };
    size_t                   unit = 0;

    while (fabs(value) >= 1000 && unit + 1 < SND_COUNT_OF(units)) {
        value /= 1000;
        unit++;
    }
    put_fixed(buf, unit ? 3 : 0, value, units[unit]);
}

void snd_format_share(struct sonde_buffer *buf, double percent)
{
    if (isfinite(percent))
        put_fixed(buf, 2, percent, "%");
    else
        snd_buf_text(buf, "NaN");
}

struct snd_flops_unit snd_flops_unit(double least)
{
    static const char *const names[] = {
        "FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"
    };
    double step = fmax(0, fmin(log10(least) / 3, 5.0));

    return (struct snd_flops_unit){ pow(10, floor(step) * -3.0), names[(int)step] };
}

void snd_format_text(struct sonde_buffer *buf, const char *bytes, size_t length)
{
    snd_plain_put(buf, SND_PLAIN_TERMINAL, bytes, length);
}

void snd_format_source(struct sonde_buffer *buf, const char *bytes, size_t length)
{
    while (length > 0) {
        const char *tab = memchr(bytes, '\t', length);
        size_t      part = tab ? (size_t)(tab - bytes) : length;
        snd_format_text(buf, bytes, part);
        snd_buf_text(buf, tab ? "\t" : "");
        part += tab != NULL;
        bytes += part;
        length -= part;
    }
}
