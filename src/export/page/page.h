/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/page/page.h - the data of the report page (docs/REPORT_PAGE.md), as sections of a compressed stream.
 *
 * html.c writes the whole; page.c sections, columns and texts; page_spans.c ranges, GPUs' work, links, marks, counters and
 * memory; page_collectives.c what ranks met in; page_samples.c samples and their stacks; page_memory.c blocks of memory; page_trees.c trees; page_heap.c heaps; page_diff.c what differs from another trace; page_views.c tables and findings. The bytes
 * are the page's own business: both ends are in one file, so that there are no old readers.
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_PAGE_PAGE_H
#define SND_EXPORT_PAGE_PAGE_H

#include "base/text/buf.h"
#include "base/text/json.h"
#include "base/data/map.h"
#include "base/files/sink.h"
#include "export/timeline/arrows.h"
#include "export/timeline/spans.h"
#include "model/highlights/highlights.h"

#define SND_HTML_BLOCK 32768u /* entries of a block: what is kept before it is written */
#define SND_HTML_COLUMNS 8
#define SND_HTML_ROWS 5000 /* of a view: the page says how many there are, and where the rest is */
#define SND_VARINT_MAX 10

/* A block of entries, by columns of varints, which a page reads at once. */
struct snd_html_block {
    const char *kind; /* of its section: four letters */
    uint8_t    *bytes[SND_HTML_COLUMNS];
    size_t      length[SND_HTML_COLUMNS];
    uint32_t    columns, count;
};

/* What an entry is, by what was recorded of it: the page's colours (KINDS in report/src/colours.ts). */
enum snd_html_kind {
    SND_HTML_RANGE,
    SND_HTML_PYTHON,
    SND_HTML_OPERATOR,
    SND_HTML_BACKWARD,
    SND_HTML_COLLECTIVE,
    SND_HTML_API,
    SND_HTML_KERNEL,
    SND_HTML_COPY,
    SND_HTML_NATIVE,
    SND_HTML_OF_MODULE
};
#define SND_HTML_KIND_BITS 4
#define SND_HTML_STATE_BITS 4 /* of a sample: enum sonde_sample_state */

/* A block of memory that is held, or a spare place. */
struct snd_html_held {
    int64_t  start_ns;
    uint64_t bytes;
    uint32_t thread, track;
    uint32_t next_spare; /* plus one */
    bool     is_held;
};

/* What an id is numbered, of those that were met lately; all 0: none. */
#define SND_HTML_RECENT 256u
struct snd_html_recent {
    uint32_t what, process, id, number;
};

/* Runs that the page compares: of A, then of B. */
struct snd_html_sides {
    struct sonde_trace *const *traces;
    size_t                     a_runs, b_runs;
};

struct snd_html {
    struct sonde_trace          *trace;
    const struct snd_html_sides *sides;     /* NULL: nothing is compared */
    struct snd_out              *out;       /* of sections */
    bool                         no_source; /* leave the text of source files out */
    struct sonde_buffer          text;
    struct snd_map               numbers; /* (what, process, id) to a number of texts */
    struct snd_html_recent       recent[SND_HTML_RECENT];
    struct snd_texts             texts;          /* what entries name by number */
    uint32_t                    *by_name;        /* by number in trace->names: plus one, in texts */
    int64_t                     *last_ns;        /* by thread: end of its latest range */
    int64_t                     *last_sample_ns; /* by thread: end of its latest sample */
    struct snd_html_block        spans, works, links, calls, marks, steps, counters, memory, blocks;
    struct snd_html_block        samples, stacks, meetings;
    uint64_t                     meeting_count;
    uint32_t                     stack_count; /* of `stacks`, so far */
    int64_t        last_work_ns, last_mark_ns, last_counter_ns, last_memory_ns, last_block_ns;
    struct snd_map held_map; /* (process, device, address) to a place in held */
    struct snd_html_held *held;
    uint32_t              held_count, held_room, spare;
    bool                 *is_torch;
    struct snd_arrows     arrows;
    uint64_t              span_count; /* so far: a range is known by its number */
    struct snd_map        tracks;     /* of counters */
    struct sonde_buffer   counter_names;
    unsigned              content; /* enum snd_content, known once the timeline is written */
    bool                  has_memory_of[2]; /* the CPU, GPUs: as torch numbers kinds of devices */
    bool                  failed;           /* memory ran out */
};

/* ---- sections */

/* A section of JSON; the buffer is emptied. */
void snd_html_json(struct snd_html *page, const char *kind, struct sonde_buffer *text);

/* False: memory is out. */
bool snd_html_block_init(struct snd_html_block *block, const char *kind, uint32_t columns);
void snd_html_block_release(struct snd_html_block *block);
/* Ends an entry: each column got one value. A full block is written. */
void snd_html_entry(struct snd_html *page, struct snd_html_block *block);
void snd_html_flush(struct snd_html *page, struct snd_html_block *block);

static inline void snd_html_value(struct snd_html_block *block, uint32_t column, uint64_t value)
{
    uint8_t *at = block->bytes[column] + block->length[column], *from = at;

    for (; value >= 128; value >>= 7)
        *at++ = (uint8_t)(value | 128);
    *at++ = (uint8_t)value;
    block->length[column] += (size_t)(at - from);
}

static inline void snd_html_signed(struct snd_html_block *block, uint32_t column, int64_t value)
{
    snd_html_value(block, column, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline void snd_html_raw(struct snd_html_block *block, uint32_t column, const void *data,
                                size_t length)
{
    memcpy(block->bytes[column] + block->length[column], data, length); /* SND_VARINT_MAX at most */
    block->length[column] += length;
}

/* ---- texts */

/* The number of a text; 0 is the empty one. Sets `failed`. */
uint32_t snd_html_text(struct snd_html *page, struct sonde_text text);
/* The same of a number in trace->names. */
uint32_t snd_html_name(struct snd_html *page, uint32_t name);
/* Kinds of ids whose text has a number. */
enum snd_html_what {
    SND_HTML_SHAPES = 1,
    SND_HTML_STACK,
    SND_HTML_MODULE,
    SND_HTML_FUNCTION,
    SND_HTML_SAMPLED /* a stack of samples, by its number plus one: not a text */
};
uint32_t snd_html_id(struct snd_html *page, enum snd_html_what what, uint32_t process, uint32_t id);

/* ---- what is written */

/* Ranges, marks, counters, memory: a walk; then GPUs' work. */
SND_CHECKED enum sonde_status snd_html_timeline(struct snd_html *page, struct sonde_error *err);
void snd_html_sample(struct snd_html *page, const struct sonde_event *event);
/* ALLOC or FREE, of the counter `track`. */
void snd_html_block_event(struct snd_html *page, const struct sonde_event *event, uint32_t track);
/* Which ranges are one collective of a job: a walk, of a job alone. */
SND_CHECKED enum sonde_status snd_html_collectives(struct snd_html *page, struct sonde_error *err);
/* Blocks that are still held, and the categories of all. */
SND_CHECKED enum sonde_status snd_html_memory(struct snd_html *page, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_html_trees(struct snd_html *page, struct sonde_error *err);
/* Of heaps: moments of the run, and what stacks held at them. */
SND_CHECKED enum sonde_status snd_html_heap_moments(struct snd_html *page, struct sonde_error *err);
SND_CHECKED enum sonde_status snd_html_views(struct snd_html *page, struct sonde_error *err);
/* What differs between `sides`: trees of both, merged, and the views of sonde_diff(). */
SND_CHECKED enum sonde_status snd_html_diff(struct snd_html *page, struct sonde_error *err);
/* Processes, threads, streams, counters, findings. */
SND_CHECKED enum sonde_status snd_html_head(struct snd_html *page, struct sonde_error *err);

#endif
