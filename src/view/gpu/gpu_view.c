/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gpu view: how busy each GPU was, in each step too; what it waited for; the longest gaps.
 */
#include <stdlib.h>

#include "format/fields.h"
#include "model/gpu/gpu.h"
#include "model/torch_stacks.h"
#include "read/said/trace_facts.h"
#include "view/gpu/gpu_names.h"
#include "view/render/view.h"

#define TOP_GAPS 10u
#define TOP_STEPS 20 /* in text */

/* What the places of rows and gaps have in common. */
#define PLACE_COLUMNS                                      \
    { "place", "Host in", SND_TEXT, SND_FIT_CONTENT },     \
        { "call", "Call", SND_TEXT, SND_FIT_CONTENT },     \
        { "module", "Module", SND_TEXT, SND_FIT_CONTENT }, \
    {                                                      \
        "line", "Line", SND_TEXT, SND_FIT_CONTENT          \
    }

/* One column for each reason, in its order. */
#define REASON_COLUMNS                                                        \
    { "copy_only_ns", "Copy only", SND_TIME, SND_FIT_FIXED },                 \
        { "host_late_ns", "Host late", SND_TIME, SND_FIT_FIXED },             \
        { "synchronisation_ns", "Synchronisation", SND_TIME, SND_FIT_FIXED }, \
        { "launch_ns", "Launch", SND_TIME, SND_FIT_FIXED },                   \
    {                                                                         \
        "unknown_ns", "Unknown", SND_TIME, SND_FIT_FIXED                      \
    }

static const struct snd_column columns[] = {
    { "process", NULL, SND_COUNT, SND_FIT_FIXED },
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "reason", "Reason", SND_TEXT, SND_FIT_CONTENT },
    { "idle_percent", "Of span", SND_SHARE, SND_FIT_FIXED },
    { "idle_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "gaps", "# of Gaps", SND_COUNT, SND_FIT_FIXED },
    { "longest_ns", "Longest", SND_TIME, SND_FIT_FIXED },
    { "drained_ns", "Drained", SND_TIME, SND_FIT_FIXED },
    PLACE_COLUMNS,
};
enum {
    COLUMN_SHARE = 3,
    COLUMN_TIME,
    COLUMN_DRAINED = 7,
    COLUMN_PLACE,
    COLUMN_CALL,
    COLUMN_MODULE,
    COLUMN_LINE
};

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "Drained",   "Module", "Longest", "Call",
                                     "# of Gaps", "Device", NULL };

static const struct snd_column device_columns[] = {
    { "process", NULL, SND_COUNT, SND_FIT_FIXED },
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "name", "Name", SND_TEXT, SND_FIT_CONTENT },
    { "span_ns", "Span", SND_TIME, SND_FIT_FIXED },
    { "busy_percent", "Busy %", SND_SHARE, SND_FIT_FIXED },
    { "busy_ns", "Busy", SND_TIME, SND_FIT_FIXED },
    { "kernel_ns", "Kernels", SND_TIME, SND_FIT_FIXED },
    { "copy_ns", "Copies", SND_TIME, SND_FIT_FIXED },
    { "overlap_ns", "Overlap", SND_TIME, SND_FIT_FIXED },
    { "idle_ns", "Idle", SND_TIME, SND_FIT_FIXED },
    REASON_COLUMNS,
    { "drained_ns", "Drained", SND_TIME, SND_FIT_FIXED },
    { "kernels", "# of Kernels", SND_COUNT, SND_FIT_FIXED },
    { "copies", "# of Copies", SND_COUNT, SND_FIT_FIXED },
    { "fills", NULL, SND_COUNT, SND_FIT_FIXED },
    { "copied_bytes", NULL, SND_BYTES, SND_FIT_FIXED },
    { "streams", "# of Streams", SND_COUNT, SND_FIT_FIXED },
};
enum { DEVICE_NAME = 2, DEVICE_UNKNOWN = 14, DEVICE_DRAINED };
static const char *const device_spare[] = {
    "# of Streams", "# of Copies", "Overlap", "Drained", "Copies",    "Unknown", "Name",
    "# of Kernels", "Kernels",     "Busy",    "Launch",  "Copy only", "Idle",    NULL
};

static const struct snd_column step_columns[] = {
    { "process", NULL, SND_COUNT, SND_FIT_FIXED },
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "step", "Step", SND_COUNT, SND_FIT_FIXED },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "duration_ns", "Duration", SND_TIME, SND_FIT_FIXED },
    { "busy_percent", "Busy %", SND_SHARE, SND_FIT_FIXED },
    { "busy_ns", "Busy", SND_TIME, SND_FIT_FIXED },
    { "kernel_ns", "Kernels", SND_TIME, SND_FIT_FIXED },
    REASON_COLUMNS,
};
enum { STEP_UNKNOWN = 12 };
static const char *const step_spare[] = { "Kernels", "Unknown",   "Start",  "Busy",
                                          "Launch",  "Copy only", "Device", NULL };

static const struct snd_column gap_columns[] = {
    { "process", NULL, SND_COUNT, SND_FIT_FIXED },
    { "device", "Device", SND_TEXT, SND_FIT_CONTENT },
    { "start_ns", "Start", SND_TIME, SND_FIT_FIXED },
    { "duration_ns", "Duration", SND_TIME, SND_FIT_FIXED },
    { "reason", "Reason", SND_TEXT, SND_FIT_CONTENT },
    { "drained_ns", "Drained", SND_TIME, SND_FIT_FIXED },
    PLACE_COLUMNS,
    { "next", "Next work", SND_TEXT, SND_FIT_NAME },
    { "launched_by", "Launched by", SND_TEXT, SND_FIT_CONTENT },
};
enum { GAP_DRAINED = 5, GAP_PLACE, GAP_CALL, GAP_MODULE, GAP_LINE, GAP_NEXT, GAP_LAUNCHED };
static const char *const gap_spare[] = { "Drained",     "Module", "Call", "Next work",
                                         "Launched by", "Device", NULL };

static struct snd_cell *put_device(struct snd_doc *doc, struct snd_cell *cell,
                                   const struct snd_gpu *g, uint32_t device)
{
    const struct snd_gpu_device *d = &g->devices[device];

    *cell++ = snd_cell_number(sonde_trace_process(doc->trace, d->process)->pid);
    *cell++ = snd_cell_string(snd_gpu_name(doc, d->device));
    return cell;
}

static struct snd_cell name_cell(const struct snd_gpu *g, uint32_t name)
{
    const struct snd_text *text;

    if (name == SONDE_NONE)
        return snd_cell_none();
    text = &g->trace->names.items[name];
    return snd_cell_text((struct sonde_text){ text->bytes, text->length });
}

/* "train.py(12): step", by where the function begins. */
static struct snd_cell function_cell(struct snd_doc *doc, uint32_t process, uint32_t frame)
{
    struct sonde_buffer text = { 0 };

    snd_function_text(doc->trace, process, frame, &text);
    return snd_cell_string(snd_doc_take(doc, &text));
}

static struct snd_cell *put_place(struct snd_doc *doc, struct snd_cell *cell,
                                  const struct snd_gpu *g, uint32_t device, uint32_t where,
                                  uint32_t call, uint32_t frame)
{
    const struct snd_where *place = where == SONDE_NONE ? NULL : &g->launches->places[where];
    struct sonde_text       module = { "", 0 };

    if (place)
        module = snd_where_module(g->launches, place);
    *cell++ = place ? snd_cell_text(snd_where_name(g->launches, place)) : snd_cell_none();
    *cell++ = name_cell(g, call);
    *cell++ = module.length > 0 ? snd_cell_text(module) : snd_cell_none();
    *cell = place ? snd_gpu_line_cell(doc, g->launches, place) : snd_cell_none();
    if (cell->none && frame != 0)
        *cell = function_cell(doc, g->devices[device].process, frame);
    cell++;
    return cell;
}

static struct snd_cell *put_reasons(struct snd_cell *cell, const int64_t idle_ns[SND_IDLE_REASONS])
{
    for (int i = 0; i < SND_IDLE_REASONS; i++)
        *cell++ = snd_cell_number(idle_ns[i]);
    return cell;
}

static struct snd_cell *put_drained(struct snd_cell *cell, struct snd_table *table, size_t column,
                                    int64_t ns)
{
    *cell = snd_cell_number(ns);
    table->hidden[column] &= ns == 0;
    return cell + 1;
}

static void add_device(struct snd_doc *doc, struct snd_table *table, const struct snd_gpu *g,
                       uint32_t device)
{
    const struct snd_gpu_device *d = &g->devices[device];
    struct snd_cell             *cell = put_device(doc, snd_table_add(table), g, device);
    int64_t                      span = snd_sub(d->last_ns, d->first_ns);

    *cell++ = d->name.length > 0 ? snd_cell_text(d->name) : snd_cell_none();
    *cell++ = snd_cell_number(span);
    *cell++ = snd_cell_share(d->busy_ns, span);
    *cell++ = snd_cell_number(d->busy_ns);
    *cell++ = snd_cell_number(d->kernel_ns);
    *cell++ = snd_cell_number(d->copy_ns);
    *cell++ = snd_cell_number(d->overlap_ns);
    *cell++ = snd_cell_number(snd_sub(span, d->busy_ns));
    cell = put_reasons(cell, d->idle_ns);
    cell = put_drained(cell, table, DEVICE_DRAINED, d->drained_ns);
    *cell++ = snd_cell_number((int64_t)d->kernels);
    *cell++ = snd_cell_number((int64_t)d->copies);
    *cell++ = snd_cell_number((int64_t)d->fills);
    *cell++ = snd_cell_number((int64_t)d->copied_bytes);
    *cell++ = snd_cell_number(d->streams);
    table->hidden[DEVICE_UNKNOWN] &= d->idle_ns[SND_IDLE_UNKNOWN] == 0;
}

static void add_step(struct snd_doc *doc, struct snd_table *table, const struct snd_gpu *g,
                     const struct snd_gpu_step *step)
{
    struct snd_cell *cell = put_device(doc, snd_table_add(table), g, step->device);

    *cell++ = snd_cell_number((int64_t)step->number);
    *cell++ = snd_cell_number(step->start_ns);
    *cell++ = snd_cell_number(step->duration_ns);
    *cell++ = snd_cell_share(step->busy_ns, step->duration_ns);
    *cell++ = snd_cell_number(step->busy_ns);
    *cell++ = snd_cell_number(step->kernel_ns);
    put_reasons(cell, step->idle_ns);
    table->hidden[STEP_UNKNOWN] &= step->idle_ns[SND_IDLE_UNKNOWN] == 0;
}

static void add_gap(struct snd_doc *doc, struct snd_table *table, const struct snd_gpu *g,
                    const struct snd_gpu_gap *gap)
{
    struct snd_cell *cell = put_device(doc, snd_table_add(table), g, gap->device);

    *cell++ = snd_cell_number(gap->start_ns);
    *cell++ = snd_cell_number(gap->duration_ns);
    *cell++ = snd_cell_string(snd_gpu_reason_words[gap->reason]);
    cell = put_drained(cell, table, GAP_DRAINED, gap->drained_ns);
    cell = put_place(doc, cell, g, gap->device, gap->where, gap->call, gap->frame);
    *cell++ = name_cell(g, gap->next);
    *cell++ = gap->asked == SONDE_NONE
                  ? snd_cell_none()
                  : snd_cell_text(snd_where_name(g->launches, &g->launches->places[gap->asked]));
}

static void add_cause(struct snd_doc *doc, const struct snd_gpu *g,
                      const struct snd_gpu_cause *cause)
{
    const struct snd_gpu_device *d = &g->devices[cause->device];
    struct snd_cell *cell = put_device(doc, snd_table_add(&doc->rows), g, cause->device);

    *cell++ = snd_cell_string(snd_gpu_reason_words[cause->reason]);
    *cell++ = snd_cell_share(cause->total_ns, snd_sub(d->last_ns, d->first_ns));
    *cell++ = snd_cell_number(cause->total_ns);
    *cell++ = snd_cell_number((int64_t)cause->gaps);
    *cell++ = snd_cell_number(cause->longest_ns);
    cell = put_drained(cell, &doc->rows, COLUMN_DRAINED, cause->drained_ns);
    put_place(doc, cell, g, cause->device, cause->where, cause->call, cause->frame);
}

/* The longest gaps, of two alike the first. */
static void add_gaps(struct snd_doc *doc, struct snd_table *table, const struct snd_gpu *g)
{
    const struct snd_gpu_gap *top[TOP_GAPS + 1];
    size_t                    count = 0;

    for (uint32_t i = 0; i < g->gap_count; i++) {
        size_t at = count;
        for (; at > 0 && top[at - 1]->duration_ns < g->gaps[i].duration_ns; at--)
            top[at] = top[at - 1];
        if (at < TOP_GAPS) {
            top[at] = &g->gaps[i];
            count += count < TOP_GAPS;
        }
    }
    for (size_t i = 0; i < count; i++)
        add_gap(doc, table, g, top[i]);
}

SND_DOC_RELEASE(free_gpu, snd_gpu_free)

SND_VIEW_BUILD(snd_view_gpu)
{
    struct snd_gpu *g = NULL;

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct snd_table *devices = snd_doc_section(doc, "devices", NULL, device_columns,
                                                SND_COUNT_OF(device_columns));
    struct snd_table *steps = snd_doc_section(doc, "steps", "Steps", step_columns,
                                              SND_COUNT_OF(step_columns));
    struct snd_table *gaps = snd_doc_section(doc, "gaps", "Longest gaps", gap_columns,
                                             SND_COUNT_OF(gap_columns));
    enum sonde_status st = snd_gpu_new(trace, &g, err);
    snd_doc_keep(doc, g, free_gpu);
    if (st != SONDE_OK)
        return st;
    doc->rows.spare = spare;
    doc->rows.share = COLUMN_SHARE + 1;
    doc->rows.time = COLUMN_TIME + 1;
    devices->spare = device_spare;
    steps->spare = step_spare;
    gaps->spare = gap_spare;
    steps->most = TOP_STEPS;
    devices->hidden[DEVICE_UNKNOWN] = steps->hidden[STEP_UNKNOWN] = true;
    devices->hidden[DEVICE_DRAINED] = gaps->hidden[GAP_DRAINED] = true;
    doc->rows.hidden[COLUMN_DRAINED] = true;
    for (uint32_t i = 0; i < g->device_count; i++)
        add_device(doc, devices, g, i);
    for (uint32_t i = 0; i < g->step_count; i++)
        add_step(doc, steps, g, &g->steps[i]);
    add_gaps(doc, gaps, g);
    for (uint32_t i = 0; i < g->cause_count; i++)
        add_cause(doc, g, &g->causes[i]);
    snd_hide_empty(devices, DEVICE_NAME, DEVICE_NAME);
    snd_hide_empty(gaps, GAP_CALL, GAP_LINE);
    snd_hide_empty(&doc->rows, COLUMN_CALL, COLUMN_LINE);
    if (snd_gpus_are_light(trace)) {
        snd_hide_empty(gaps, GAP_PLACE, GAP_LAUNCHED);
        snd_hide_empty(&doc->rows, COLUMN_PLACE, COLUMN_LINE);
    }
    if (g->device_count > 0) {
        doc->rows_title = snd_gpus_are_light(trace)
                              ? "When no kernel ran; why is not known without CUDA's calls"
                              : "Why no kernel ran";
        doc->empty = "A kernel ran from the first to the last moment of each GPU's span.";
    } else {
        doc->empty = snd_gpu_empty(doc);
    }
    return snd_table_sort(&doc->rows, "idle_ns", err);
}
