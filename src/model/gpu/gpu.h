/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/gpu/gpu.h - when each GPU worked and when it did not, and what the host did then.
 *
 * The span of a GPU, from the begin of its first work to the end of its last, is divided without rest
 * into: kernels ran; only copies (or fills) ran; nothing ran, for one of the reasons below. Rules:
 * docs/GPU.md, "Views".
 *
 * Layer: model. Threads: one at a time.
 */
#ifndef SND_MODEL_GPU_GPU_H
#define SND_MODEL_GPU_GPU_H

#include "model/gpu/launches.h"

/* Why no kernel ran. */
enum snd_gpu_reason {
    SND_IDLE_COPY,    /* copies or fills ran: kernels waited for them, or nothing else was there */
    SND_IDLE_HOST,    /* the host asked for the next work only after the GPU had run out of it */
    SND_IDLE_SYNC,    /* the same, and the host was still in a call that waits for the GPU */
    SND_IDLE_LAUNCH,  /* the next work had been launched, and had not begun yet */
    SND_IDLE_UNKNOWN, /* the call that launched the next work is not in the trace */
    SND_IDLE_REASONS,
};
extern const char *const snd_gpu_reason_words[SND_IDLE_REASONS];

struct snd_gpu_device {
    uint32_t          process, device; /* SND_DEVICE */
    struct sonde_text name;            /* as its maker calls it, or empty */
    int64_t           first_ns, last_ns;
    int64_t           busy_ns;            /* anything ran */
    int64_t           kernel_ns, copy_ns; /* any kernel ran; any copy or fill ran */
    int64_t           overlap_ns;         /* both */
    int64_t           idle_ns[SND_IDLE_REASONS];
    int64_t           drained_ns; /* of its gaps */
    uint64_t          kernels, copies, fills, copied_bytes;
    uint32_t          streams;
};

/* An interval in which no kernel ran, for one reason. */
struct snd_gpu_gap {
    int64_t  start_ns, duration_ns;
    uint32_t device; /* a number of devices */
    uint32_t reason; /* enum snd_gpu_reason */
    uint32_t where;  /* the host was there: a number of launches.places; SONDE_NONE: not known */
    uint32_t call;   /* in this call of the API: a number of trace->names; SONDE_NONE: in none */
    uint32_t frame;  /* ... and in this Python function, if no range has a line; 0: not known */
    uint32_t item;   /* the work that ended it; of a copy: itself */
    uint32_t next;   /* its name */
    uint32_t asked;  /* where it was launched; SONDE_NONE: not known */
    uint32_t thread; /* that launched it, and when, if the host was late */
    int64_t  launched_ns;
    uint32_t wait; /* it began in this call, which waited: a number of launches; or SONDE_NONE */
    /*
     * Of a wait: how much less late the host would have been after it without it. The host had come
     * to the wait that long before the GPU ran out of work, and could have launched ahead.
     */
    int64_t drained_ns;
};

/* All gaps with one reason and one place. */
struct snd_gpu_cause {
    uint32_t device, reason, where, call, frame;
    uint64_t gaps;
    int64_t  total_ns, longest_ns, drained_ns;
};

struct snd_gpu_step {
    uint32_t device, process;
    uint64_t number;
    int64_t  start_ns, duration_ns; /* of the step, on the host */
    int64_t  busy_ns, kernel_ns;    /* of the GPU in that time */
    int64_t  idle_ns[SND_IDLE_REASONS];
};

struct snd_gpu {
    struct sonde_trace     *trace;
    struct snd_launches    *launches;
    struct snd_gpu_device  *devices;
    struct snd_gpu_gap     *gaps; /* by device and start */
    struct snd_gpu_cause   *causes;
    struct snd_gpu_step    *steps;
    uint32_t                device_count, device_room, gap_count, gap_room, cause_count, cause_room;
    uint32_t                step_count, step_room;
    struct snd_gpu_builder *building; /* until it is finished */
    struct snd_assembly    *assembly; /* while the walk lasts */
};

/*
 * In two parts: what it needs of the trace waits for the next walk (snd_wait()); and it is there, which takes a walk
 * if nobody has made one. An error of the second frees it. Owns: the caller, until snd_gpu_free(); a page of many
 * views has it lent (model/kept.h).
 */
SND_CHECKED enum sonde_status snd_gpu_wait(struct sonde_trace *trace, struct snd_gpu **out,
                                           struct sonde_error *err);
SND_CHECKED enum sonde_status snd_gpu_finish(struct snd_gpu **gpu, struct sonde_error *err);
/* Both. */
SND_CHECKED enum sonde_status snd_gpu_new(struct sonde_trace *trace, struct snd_gpu **out,
                                          struct sonde_error *err);
void                          snd_gpu_free(struct snd_gpu *gpu);

/* ---- shared by the files gpu.c, gpu_host.c and gpu_steps.c alone. False, NULL: memory is out. */

/* What threads did while a GPU had nothing to do. Made once the gaps are known, and sorted. */
struct snd_gpu_host;
struct snd_gpu_host *snd_gpu_host_new(struct snd_gpu *gpu, const struct snd_devices *work);
void                 snd_gpu_host_free(struct snd_gpu_host *host);
/* While the trace is walked, by time: a range opens, closes, turns out to be a call; another event. */
void snd_gpu_host_opened(struct snd_gpu_host *host, struct snd_lane *lane,
                         const struct snd_open_range *range, const struct snd_open_range *parent);
void snd_gpu_host_closed(struct snd_gpu_host *host, const struct snd_lane *lane,
                         const struct snd_open_range *range);
void snd_gpu_host_called(struct snd_gpu_host *host, const struct snd_lane *lane,
                         const struct snd_range *call);
void snd_gpu_host_event(struct snd_gpu_host *host, const struct snd_lane *lane, int64_t ns,
                        const uint64_t *words);
/* Then, once each gap has its reason: where the host was in those in which it was late. */
bool snd_gpu_host_choose(struct snd_gpu_host *host);

struct snd_gpu_spans { /* sorted, none touching the next */
    struct snd_gpu_span {
        int64_t start_ns, end_ns;
    } * items;
    uint32_t count, room;
};

/* The program's steps. While the trace is walked: a range closes; another event. */
struct snd_gpu_seen_steps;
struct snd_gpu_seen_steps *snd_gpu_steps_new(struct snd_gpu *gpu);
void                       snd_gpu_steps_free(struct snd_gpu_seen_steps *steps);
void snd_gpu_steps_closed(struct snd_gpu_seen_steps *steps, const struct snd_lane *lane,
                          const struct snd_range *r);
void snd_gpu_steps_event(struct snd_gpu_seen_steps *steps, const struct snd_lane *lane, int64_t ns,
                         const uint64_t *words);
/* Then: divides them by what each device did. */
bool snd_gpu_steps_divide(struct snd_gpu_seen_steps *steps, const struct snd_gpu_spans *kernels,
                          const struct snd_gpu_spans *busy);

#endif
