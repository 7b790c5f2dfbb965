/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/chrome/chrome.h - what the parts of the writer of Chrome's trace format share.
 *
 * chrome.c writes the whole; chrome_event.c what all events have; chrome_ranges.c ranges, and the
 * arrows from forward to backward ones; chrome_events.c what is not a range; chrome_gpu.c what GPUs
 * did; chrome_memory.c what was in use of theirs; chrome_members.c names of processes and threads,
 * and what stands around the events; chrome_job.c of which rank the file is; chrome_ranks.c a file for each.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_CHROME_CHROME_H
#define SND_EXPORT_CHROME_CHROME_H

#include <string.h>

#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/data/map.h"
#include "export/timeline/arrows.h"
#include "export/encode/rendered_texts.h"
#include "export/timeline/spans.h"
#include "sonde/export.h"

/* A range that has ended, with its attributes. */
struct snd_chrome_ended {
    struct snd_span span;
    uint64_t        attrs[SND_SPAN_ATTRS];
};

/* Ranges of one thread that start with their parents. */
struct snd_chrome_waiting {
    struct snd_chrome_ended *items;
    uint32_t                 count, capacity;
};

/* Memory of a GPU that torch's allocator holds. */
struct snd_chrome_memory {
    uint32_t process, index;
    int64_t  before;   /* in use when the recording began */
    int64_t  total;    /* allocated less freed since */
    int64_t  reserved; /* held */
    int64_t  early;    /* freed since, of what was in use then */
    bool     has_before;
};

struct snd_chrome {
    struct sonde_trace                *trace;
    const struct sonde_export_options *options;
    struct snd_out                    *out;
    struct snd_json                    json;
    struct snd_spans_totals            totals;
    struct sonde_buffer                text;
    struct snd_rendered                rendered;
    bool                              *is_torch;    /* by process: its operators are torch's */
    struct snd_chrome_waiting         *waiting;     /* by thread */
    uint32_t                           attrs_shown; /* of ranges: snd_attrs_mask() */
    struct snd_arrows                  arrows;      /* to backward operators */
    uint64_t                           arrow_count; /* written so far */
    uint64_t                           numbers;     /* of torch's events so far */
    struct snd_torch_gpu               gpu;
    struct snd_chrome_memory          *memories;
    uint32_t                           memory_count, memory_room;
    bool                               has_steps; /* ranges of torch's profile: ProfilerStep#N */
    bool                               measures;  /* the first walk, which writes nothing */
};

static inline struct sonde_text snd_chrome_text(const char *text)
{
    return (struct sonde_text){ text, strlen(text) };
}

/* Whether events of the category are left out. */
static inline bool snd_chrome_hides(const struct snd_chrome *chrome, const char *category)
{
    const char *const *hidden = chrome->options ? chrome->options->left_out : NULL;

    while (hidden && *hidden && strcmp(*hidden, category) != 0)
        hidden++;
    return hidden && *hidden;
}

/* What is kept of texts, as the first word of a key. */
enum snd_chrome_rendered { SND_CHROME_HEAD = 1, SND_CHROME_INPUTS, SND_CHROME_ATTR };

/*
 * Opens an event: its members up to the thread. `category` may be NULL, `thread` SONDE_NONE. `name`: in
 * chrome->text, or bytes that stay where they are until the end, as the trace's names and literals do.
 */
void snd_chrome_open(struct snd_chrome *chrome, const char *phase, const char *category,
                     struct sonde_text name, uint32_t process, uint32_t thread);
/* The member "Call stack"; nothing where the stack is empty. */
void snd_chrome_stack(struct snd_chrome *chrome, uint32_t process, uint32_t stack);

/* "prog.py(12): main", as torch names Python functions. Borrowed until the next text. */
struct sonde_text snd_chrome_function(struct snd_chrome *chrome, uint32_t process, uint32_t frame);

/* Callbacks of struct snd_spans_calls; `user` is the snd_chrome. */
bool snd_chrome_on_begin(struct snd_span *span, void *user);
bool snd_chrome_on_end(const struct snd_span *span, void *user);
/* Allocates what ranges need; false when out of memory. */
bool snd_chrome_ranges_init(struct snd_chrome *chrome);
void snd_chrome_ranges_release(struct snd_chrome *chrome);

/* Writes an event that is not part of a range; `user` is the snd_chrome. */
bool snd_chrome_on_event(const struct sonde_event *event, const struct snd_live_change *change,
                         void *user);

/* A call of CUDA's API, and its arrow. */
void snd_chrome_put_call(struct snd_chrome *chrome, const struct snd_span *span);
/* Names of GPUs and streams; the members about GPUs; all that GPUs did, after the walk. */
void snd_chrome_gpu_names(struct snd_chrome *chrome);
void snd_chrome_gpu_properties(struct snd_chrome *chrome);
bool snd_chrome_gpu_works(struct snd_chrome *chrome);

/* Before the walk that writes. Errors: as snd_spans_walk(). */
SND_CHECKED enum sonde_status snd_chrome_measure_memory(struct snd_chrome  *chrome,
                                                        struct sonde_error *err);
/* Whether the event is a counter of GPU memory; notes its value. */
bool snd_chrome_note_counter(struct snd_chrome *chrome, const struct sonde_event *event);
/* What is in use and held on the device of a block, after its event. */
void snd_chrome_note_memory(struct snd_chrome *chrome, const struct sonde_event *event,
                            const struct snd_live_change *change, int64_t *total,
                            int64_t *reserved);

/* The file's members before the events; the events that name processes and threads. */
void snd_chrome_head(struct snd_chrome *chrome);
/* The member distributedInfo, of a file that is one rank's, and the host's name before it. */
void snd_chrome_distributed(struct snd_chrome *chrome, bool with_host);
void snd_chrome_names(struct snd_chrome *chrome);
/* What torch puts around a recording, if it is one of torch's; the members after the events. */
void snd_chrome_window(struct snd_chrome *chrome);
void snd_chrome_tail(struct snd_chrome *chrome);

#endif
