/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/stacks/speedscope.h - what profiles of samples and of ranges share in speedscope's format.
 *
 * speedscope_file.c: frames and heads; speedscope_gpu.c: streams of GPUs; speedscope_ranges.c: ranges;
 * speedscope.c: samples, and which of them a trace has.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_STACKS_SPEEDSCOPE_H
#define SND_EXPORT_STACKS_SPEEDSCOPE_H

#include "base/error.h"
#include "base/text/json.h"
#include "base/data/map.h"
#include "read/walk/device_work.h"
#include "sonde/trace.h"

struct snd_speedscope_frame {
    struct sonde_text name, file;
    uint32_t          line;
};

struct snd_speedscope {
    const struct sonde_trace    *trace;
    struct snd_speedscope_frame *frames;
    uint32_t                     frame_count, frame_room;
    struct snd_map               by_place;
    bool                         failed;
};

/* The number of a frame; texts are the trace's own, each there once. Sets `failed`. */
uint32_t snd_speedscope_frame(struct snd_speedscope *s, struct sonde_text name,
                              struct sonde_text file, uint32_t line);
/* Opens the file, writes its frames, opens the list of profiles. */
void snd_speedscope_begin(struct snd_speedscope *s, struct snd_json *json);
/* Opens a thread's profile and writes its head. */
void snd_speedscope_profile(struct snd_speedscope *s, struct snd_json *json, uint32_t thread,
                            const char *type, int64_t end_ns);
void snd_speedscope_release(struct snd_speedscope *s);

/* Frames of kernels, copies and fills: before snd_speedscope_begin(). */
void snd_speedscope_add_work(struct snd_speedscope *s, const struct snd_devices *devices);
/* A profile for each stream. Sets `failed`. */
void snd_speedscope_put_work(struct snd_speedscope *s, const struct snd_devices *devices,
                             struct snd_json *json);

/* The ranges of a trace without samples. */
SND_CHECKED enum sonde_status snd_speedscope_ranges(struct sonde_trace *trace, struct snd_out *out,
                                                    struct sonde_error *err);

#endif
