/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/format.h - values as a person reads them; torch.profiler's forms, to the digit.
 *
 * Layer: view. Threads: any.
 */
#ifndef SND_VIEW_RENDER_FORMAT_H
#define SND_VIEW_RENDER_FORMAT_H

#include "base/text/buf.h"
#include "sonde/export.h"

/* "12.345us", in the requested unit, or in the largest that leaves at least 1. */
void snd_format_time(struct sonde_buffer *buf, double us, enum sonde_time_unit unit);
/* "640 B", "1.50 KB": base 1024. */
void snd_format_bytes(struct sonde_buffer *buf, int64_t bytes);
/* "4.089 G": base 1000, three decimals. */
void snd_format_count(struct sonde_buffer *buf, double value);
/* "12.34%"; "NaN" for a share of nothing. */
void snd_format_share(struct sonde_buffer *buf, double percent);

/* The unit of a column of FLOPs whose smallest positive value is `least`, as torch's. */
struct snd_flops_unit {
    double      scale; /* multiply by it */
    const char *name;  /* "GFLOPs" */
};
struct snd_flops_unit snd_flops_unit(double least);

/*
 * Text of a trace for a terminal (base/text/utf8.h): what could move the cursor, turn the direction of
 * writing or is not UTF-8 is spelled out, so that no name can break a table or drive a terminal.
 */
void snd_format_text(struct sonde_buffer *buf, const char *bytes, size_t length);

/* The same for a line of source, in which tabs stay. */
void snd_format_source(struct sonde_buffer *buf, const char *bytes, size_t length);

#endif
