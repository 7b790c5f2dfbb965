/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/fit_lines.h - a sink that cuts the lines written to it to the width of a terminal; paths
 * that are shortened to fit.
 *
 *     struct snd_line_fit fit;
 *     snd_fit_init(&fit, sink, 80, false);
 *     .. write to &fit.sink ..
 *     snd_fit_finish(&fit);
 *
 * Escape sequences take no room and are kept, so that colours end where they did.
 *
 * Layer: view. Threads: one.
 */
#ifndef SND_VIEW_RENDER_FIT_LINES_H
#define SND_VIEW_RENDER_FIT_LINES_H

#include <stdint.h>

#include "sonde/sink.h"

struct snd_line_fit {
    struct sonde_sink        sink; /* what is written here is passed on to `to` */
    const struct sonde_sink *to;   /* borrowed until finish */
    uint32_t                 width;
    bool                     ascii, was_cut;
    struct sonde_buffer      line, shown;
};

void snd_fit_init(struct snd_line_fit *fit, const struct sonde_sink *to, uint32_t width,
                  bool ascii);
/* Writes a last line that has no end, and a sentence if a line was cut. False: that failed. */
bool snd_fit_finish(struct snd_line_fit *fit);

/*
 * Shortens `text`, whose first `path` bytes are a path, to `room` characters: `mark` replaces the begin
 * of the path, up to a slash where that is possible. What follows the path stays whole.
 */
void snd_fit_path(struct sonde_buffer *text, size_t path, size_t room, const char *mark);

#endif
