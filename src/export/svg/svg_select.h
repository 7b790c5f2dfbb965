/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/svg/svg_select.h - what a picture of a process's ranges has: svg_select.c selects, svg_draw.c draws.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_SVG_SVG_SELECT_H
#define SND_EXPORT_SVG_SVG_SELECT_H

#include "base/files/sink.h"
#include "sonde/trace.h"

#define SND_SVG_RANGES 3000 /* drawn at most: the longest */
#define SND_SVG_THREADS 40  /* those with most time */
#define SND_SVG_DEPTH 64

struct snd_svg_range {
    struct sonde_text name; /* the trace's own */
    int64_t           start_ns, duration_ns;
    uint64_t          serial;
    uint32_t          thread, depth;
    bool              unfinished, overlaps; /* overlaps: it does not nest */
};

/* Of a thread of the trace, over all of its ranges. */
struct snd_svg_thread {
    uint64_t count;
    int64_t  top_ns; /* time of its outermost ranges */
    bool     shown;
};

struct snd_svg {
    struct sonde_trace    *trace;
    struct snd_svg_thread *threads; /* by thread of the trace */
    uint32_t               process;
    struct snd_svg_range  *ranges; /* once selected: by thread, depth, start */
    uint32_t               count;
    /* Ranges that are not drawn, by reason. */
    uint64_t shorter, deeper, of_threads, of_processes;
};

/* Drops ranges that could not be seen. Errors: SONDE_E_NOMEM. That a write failed sticks to `out`. */
SND_CHECKED enum sonde_status snd_svg_draw(struct snd_svg *svg, struct snd_out *out,
                                           struct sonde_error *err);

#endif
