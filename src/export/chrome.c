/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome trace format, with torch.profiler's names for what ranges carry.
 *
 * What torch itself writes for its own operators is written for a process whose trace torch's
 * probe made ("torch.probe" in its metadata): the same members, the arrows from forward to
 * backward operators, and the marks around it all that TensorBoard and HTA know.
 *
 * Times are whole nanoseconds written as microseconds with three decimals, so that nothing is
 * rounded and ranges nest as recorded. Ranges are written as they end. A viewer that meets two
 * ranges of one start takes the one it reads first for the outer one; so a range that starts
 * with its parent waits until the parent is written.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "export/exporter.h"
#include "export/live.h"
#include "export/spans.h"
#include "export/tensors.h"
#include "model/stacks.h"
#include "model/threads.h"

#define WAITING_MAX 65536       /* ranges of a thread that wait; only a made-up trace has more */
#define FORWARDS_MAX (1u << 20) /* forward operators whose backward is still awaited */

/* Ranges of one thread that start with their parents. */
struct waiting {
    struct snd_span *items;
    uint32_t         count, capacity;
};

/* Where an arrow to a backward operator leaves. */
struct forward {
    int64_t  start_ns;
    uint32_t thread;
};

struct chrome {
    struct sonde_trace                *trace;
    struct snd_out                    *out;
    struct snd_json                    json;
    struct snd_spans                  *spans;
    struct snd_live                    live;
    struct waiting                    *waiting; /* by thread */
    struct sonde_buffer                text;
    bool                               failed;
    const struct sonde_export_options *options;
    bool                              *is_torch;  /* by process: its operators are torch's */
    uint32_t                          *torch_ids; /* by thread: as torch numbers it, 0 not told */
    struct snd_map  by_sequence; /* (process, torch's thread, sequence) to forwards */
    struct forward *forwards;
    uint32_t        forward_count, forward_room;
    uint32_t       *spare; /* places in forwards to use again */
    uint32_t        spare_count, spare_room;
    uint64_t        numbers, arrows;
    int64_t         first_ns, last_ns;
};

/* ------------------------------------------------------------------ events */

/* Two hosts may use one process id; a viewer would take them for one process. */
static uint64_t pid_of(const struct chrome *chrome, uint32_t process)
{
    const struct sonde_process *own = sonde_trace_process(chrome->trace, process);

    for (uint32_t i = 0; i < process; i++) {
        const struct sonde_process *other = sonde_trace_process(chrome->trace, i);
        if (other->pid == own->pid && strcmp(other->host, own->host) != 0)
            return own->pid + (uint64_t)process * 10000000;
    }
    return own->pid;
}

static void open_event(struct chrome *chrome, const char *phase, const char *category,
                       struct sonde_text name, uint32_t process, uint32_t thread)
{
    snd_json_object(&chrome->json, NULL);
    snd_json_text(&chrome->json, "ph", phase);
    if (category)
        snd_json_text(&chrome->json, "cat", category);
    snd_json_string(&chrome->json, "name", name.bytes, name.length);
    snd_json_uint(&chrome->json, "pid", pid_of(chrome, process));
    snd_json_uint(&chrome->json, "tid",
                  thread == SONDE_NONE ? 0 : sonde_trace_thread(chrome->trace, thread)->tid);
}

static bool starts_with(struct sonde_text text, const char *prefix)
{
    return text.length >= strlen(prefix) && memcmp(text.bytes, prefix, strlen(prefix)) == 0;
}

static struct sonde_text plain(const char *text)
{
    return (struct sonde_text){ text, strlen(text) };
}

static struct sonde_text name_of(const struct chrome *chrome, const struct sonde_event *event)
{
    return sonde_trace_string(chrome->trace, event->process, event->name);
}

/* ------------------------------------------------------------------ ranges */

/* torch ends each entry with a semicolon, the last as well. */
static void put_stack(struct chrome *chrome, uint32_t process, uint32_t stack)
{
    snd_buf_clear(&chrome->text);
    if (snd_stack_text(chrome->trace, process, stack, SIZE_MAX, ';', &chrome->text) == 0)
        return;
    if (chrome->is_torch[process])
        snd_buf_text(&chrome->text, ";");
    snd_json_string(&chrome->json, "Call stack", snd_buf_string(&chrome->text),
                    chrome->text.length);
}

/* How an attribute is shown: torch's name for it, and what its number means. */
enum attr_form { ATTR_COUNT, ATTR_STRING, ATTR_STACK, ATTR_SKIP };

static const struct {
    const char    *title;
    enum attr_form form;
} attr_forms[SND_SPAN_ATTRS] = {
    [SND_ATTR_FLOPS] = { "FLOPs", ATTR_COUNT },
    [SND_ATTR_SHAPES] = { NULL, ATTR_SKIP }, /* span->shapes has it */
    [SND_ATTR_STACK] = { "Call stack", ATTR_STACK },
    [SND_ATTR_SEQUENCE] = { "Sequence number", ATTR_COUNT },
    [SND_ATTR_FWD_THREAD] = { "Fwd thread id", ATTR_COUNT },
    [SND_ATTR_SCOPE] = { NULL, ATTR_SKIP }, /* the category tells */
    [SND_ATTR_OVERLOAD] = { "Overload Name", ATTR_STRING },
    [SND_ATTR_ARGUMENTS] = { NULL, ATTR_SKIP }, /* with the tensors */
    [SND_ATTR_STRIDES] = { NULL, ATTR_SKIP },
    [SND_ATTR_MODULE] = { "Module Hierarchy", ATTR_STRING },
    [SND_ATTR_MACS] = { "MACs", ATTR_COUNT },
    [SND_ATTR_BYTES] = { "Bytes", ATTR_COUNT },
};

static void put_attr(struct chrome *chrome, const struct snd_span *span, unsigned key)
{
    const char       *title = attr_forms[key].title;
    uint32_t          id = (uint32_t)span->attrs[key];
    struct sonde_text text;

    if (!title)
        return;
    switch (attr_forms[key].form) {
    case ATTR_COUNT:
        snd_json_uint(&chrome->json, title, span->attrs[key]);
        break;
    case ATTR_STRING:
        text = sonde_trace_string(chrome->trace, span->process, id);
        snd_json_string(&chrome->json, title, text.bytes, text.length);
        break;
    case ATTR_STACK:
        put_stack(chrome, span->process, id);
        break;
    case ATTR_SKIP:
        break;
    }
}

/* "prog.py(12): main", as torch writes Python's functions; one in C is its name alone. */
static struct sonde_text python_name(struct chrome *chrome, const struct snd_span *span)
{
    struct sonde_frame frame;

    sonde_trace_frame(chrome->trace, span->process, (uint32_t)span->attrs[SND_ATTR_FRAME], &frame);
    snd_buf_clear(&chrome->text);
    if (frame.first_line != 0) {
        snd_buf_put(&chrome->text, frame.file.bytes, frame.file.length);
        snd_buf_format(&chrome->text, "(%" PRIu32 "): ", frame.first_line);
    }
    snd_buf_put(&chrome->text, frame.function.bytes, frame.function.length);
    return (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length };
}

/* "aten::add.Tensor", where torch was asked for overloads. */
static struct sonde_text span_name(struct chrome *chrome, const struct snd_span *span)
{
    struct sonde_text name = sonde_trace_string(chrome->trace, span->process, span->name);

    if (span->attr_mask >> SND_ATTR_FRAME & 1)
        return python_name(chrome, span);
    if (!chrome->is_torch[span->process] || !(span->attr_mask >> SND_ATTR_OVERLOAD & 1))
        return name;
    struct sonde_text overload = sonde_trace_string(chrome->trace, span->process,
                                                    (uint32_t)span->attrs[SND_ATTR_OVERLOAD]);
    snd_buf_clear(&chrome->text);
    snd_buf_put(&chrome->text, name.bytes, name.length);
    snd_buf_text(&chrome->text, ".");
    snd_buf_put(&chrome->text, overload.bytes, overload.length);
    return (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length };
}

static bool has(const struct snd_span *span, unsigned key)
{
    return span->attr_mask >> key & 1;
}

/* What torch writes of each of its ranges, beyond their attributes. */
static void put_torch_args(struct chrome *chrome, const struct snd_span *span)
{
    snd_json_uint(&chrome->json, "Record function id", 0);
    if (has(span, SND_ATTR_SEQUENCE) && !has(span, SND_ATTR_FWD_THREAD))
        snd_json_uint(&chrome->json, "Fwd thread id", 0);
    snd_json_uint(&chrome->json, "Ev Idx", span->number);
}

static bool is_shown(const struct chrome *chrome, const struct snd_span *span, unsigned key)
{
    if (!has(span, key))
        return false;
    if (!chrome->is_torch[span->process])
        return true;
    if (key == SND_ATTR_FWD_THREAD)
        return has(span, SND_ATTR_SEQUENCE);
    return key != SND_ATTR_OVERLOAD; /* it is in the name */
}

static void put_span(struct chrome *chrome, const struct snd_span *span)
{
    bool user = has(span, SND_ATTR_SCOPE) && span->attrs[SND_ATTR_SCOPE] == SONDE_SCOPE_USER + 1;
    struct snd_call_ids inputs = {
        .shapes = span->shapes,
        .strides = has(span, SND_ATTR_STRIDES) ? (uint32_t)span->attrs[SND_ATTR_STRIDES] : 0,
        .arguments = has(span, SND_ATTR_ARGUMENTS) ? (uint32_t)span->attrs[SND_ATTR_ARGUMENTS] : 0,
        .all = chrome->is_torch[span->process],
    };

    bool        python = has(span, SND_ATTR_FRAME);
    const char *category = python ? "python_function" : user ? "user_annotation" : "cpu_op";

    open_event(chrome, "X", category, span_name(chrome, span), span->process, span->thread);
    snd_json_us(&chrome->json, "ts", span->start_ns);
    snd_json_us(&chrome->json, "dur", span->end_ns - span->start_ns);
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "External id", span->serial);
    for (unsigned key = 0; key < SND_SPAN_ATTRS; key++)
        if (is_shown(chrome, span, key))
            put_attr(chrome, span, key);
    if (chrome->is_torch[span->process] && !python)
        put_torch_args(chrome, span);
    snd_tensors_json(&chrome->json, chrome->trace, span->process, &inputs, &chrome->text);
    if (span->unfinished)
        snd_json_bool(&chrome->json, "Unfinished", true);
    if (span->is_async)
        snd_json_bool(&chrome->json, "Async", true);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* -------------------------------------------------- from forward to backward */

static void put_arrow(struct chrome *chrome, bool arrives, uint32_t process, uint32_t thread,
                      int64_t ns)
{
    open_event(chrome, arrives ? "f" : "s", "fwdbwd", plain("fwdbwd"), process, thread);
    snd_json_us(&chrome->json, "ts", ns);
    snd_json_uint(&chrome->json, "id", chrome->arrows);
    if (arrives)
        snd_json_text(&chrome->json, "bp", "e");
    snd_json_end(&chrome->json);
}

static uint32_t take_forward(struct chrome *chrome)
{
    if (chrome->spare_count > 0)
        return chrome->spare[--chrome->spare_count];
    if (chrome->forward_count >= FORWARDS_MAX ||
        !snd_grow(&chrome->forwards, &chrome->forward_room, chrome->forward_count,
                  sizeof *chrome->forwards) ||
        !snd_grow(&chrome->spare, &chrome->spare_room, chrome->forward_count,
                  sizeof *chrome->spare))
        return UINT32_MAX;
    return chrome->forward_count++;
}

/*
 * As torch pairs them: ranges in the order in which they end; of the forward ones with one
 * sequence number that which began last; the first backward one that ends takes it.
 */
static void follow_sequence(struct chrome *chrome, const struct snd_span *span)
{
    bool     backward = has(span, SND_ATTR_FWD_THREAD) && span->attrs[SND_ATTR_FWD_THREAD] != 0;
    uint64_t thread = backward ? span->attrs[SND_ATTR_FWD_THREAD] : chrome->torch_ids[span->thread];
    struct snd_key key = { span->process, thread, span->attrs[SND_ATTR_SEQUENCE] };
    uint32_t       at;
    bool           found = snd_map_get(&chrome->by_sequence, key, &at);

    if (backward && found) {
        chrome->arrows++;
        put_arrow(chrome, false, span->process, chrome->forwards[at].thread,
                  chrome->forwards[at].start_ns);
        put_arrow(chrome, true, span->process, span->thread, span->start_ns);
        snd_map_remove(&chrome->by_sequence, key);
        chrome->spare[chrome->spare_count++] = at;
    } else if (!backward && found) {
        if (span->start_ns > chrome->forwards[at].start_ns)
            chrome->forwards[at] = (struct forward){ span->start_ns, span->thread };
    } else if (!backward) {
        at = take_forward(chrome);
        if (at == UINT32_MAX || !snd_map_put(&chrome->by_sequence, key, at))
            return; /* an arrow less */
        chrome->forwards[at] = (struct forward){ span->start_ns, span->thread };
    }
}

static void on_begin(struct snd_span *span, void *user)
{
    struct chrome *chrome = user;

    span->mark = chrome->waiting[span->thread].count;
    span->number = chrome->numbers++;
}

static bool wait_for_parent(struct waiting *waiting, const struct snd_span *span)
{
    if (waiting->count == waiting->capacity) {
        uint32_t capacity = waiting->capacity ? waiting->capacity * 2 : 16;
        void    *items = capacity > WAITING_MAX
                             ? NULL
                             : realloc(waiting->items, capacity * sizeof *waiting->items);
        if (!items)
            return false;
        waiting->items = items;
        waiting->capacity = capacity;
    }
    waiting->items[waiting->count++] = *span;
    return true;
}

static int compare_serials(const void *left, const void *right)
{
    const struct snd_span *x = left, *y = right;

    return (x->serial > y->serial) - (x->serial < y->serial);
}

static void on_end(const struct snd_span *span, void *user)
{
    struct chrome  *chrome = user;
    struct waiting *waiting = &chrome->waiting[span->thread];

    if (chrome->is_torch[span->process] && has(span, SND_ATTR_SEQUENCE))
        follow_sequence(chrome, span);
    if (span->starts_with_parent && wait_for_parent(waiting, span))
        return;
    put_span(chrome, span);
    if (span->mark >= waiting->count)
        return;
    /* They came in the order of their ends. */
    qsort(waiting->items + span->mark, waiting->count - span->mark, sizeof *waiting->items,
          compare_serials);
    for (uint32_t i = span->mark; i < waiting->count; i++)
        put_span(chrome, &waiting->items[i]);
    waiting->count = span->mark;
}

/* ------------------------------------------------- what is not a range */

static void put_instant(struct chrome *chrome, const struct sonde_event *event,
                        const char *category, const char *scope, struct sonde_text name)
{
    open_event(chrome, "i", category, name, event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "s", scope);
}

static void put_mark(struct chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "mark", "t", name_of(chrome, event));
    if (event->aux != 0) {
        snd_json_object(&chrome->json, "args");
        put_stack(chrome, event->process, event->aux);
        snd_json_end(&chrome->json);
    }
    snd_json_end(&chrome->json);
}

static void put_step(struct chrome *chrome, const struct sonde_event *event)
{
    char name[48];

    snprintf(name, sizeof name, "ProfilerStep#%" PRIu64, event->value);
    put_instant(chrome, event, "user_annotation", "p", plain(name));
    snd_json_end(&chrome->json);
}

static void put_counter(struct chrome *chrome, const struct sonde_event *event)
{
    double value;

    memcpy(&value, &event->value, sizeof value);
    open_event(chrome, "C", NULL, name_of(chrome, event), event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_object(&chrome->json, "args");
    snd_json_real(&chrome->json, "value", value);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* `change`: of what is known to be held; a free that does not tell its size gives back that. */
static void put_memory(struct chrome *chrome, const struct sonde_event *event, int64_t change,
                       int64_t total)
{
    int64_t size = event->size < INT64_MAX ? (int64_t)event->size : INT64_MAX;
    int64_t bytes = event->kind == SONDE_EVENT_ALLOC ? size : size > 0 ? -size : change;
    char    address[24];

    put_instant(chrome, event, "cpu_instant_event", "t", plain("[memory]"));
    snd_json_object(&chrome->json, "args");
    snprintf(address, sizeof address, "%" PRIu64, event->value);
    /* An address need not fit the 53 bits of a JavaScript number. */
    if (event->value < (uint64_t)1 << 53)
        snd_json_uint(&chrome->json, "Addr", event->value);
    else
        snd_json_text(&chrome->json, "Addr", address);
    snd_json_int(&chrome->json, "Bytes", bytes);
    snd_json_uint(&chrome->json, "Device Type", SND_DEVICE_TYPE(event->aux));
    snd_json_int(&chrome->json, "Device Id",
                 SND_DEVICE_INDEX(event->aux) == 0xffff ? -1
                                                        : (int64_t)SND_DEVICE_INDEX(event->aux));
    snd_json_int(&chrome->json, "Total Allocated", total);
    if (chrome->is_torch[event->process]) {
        snd_json_int(&chrome->json, "Total Reserved", 0);
        snd_json_bool(&chrome->json, "finished", false);
        snd_json_uint(&chrome->json, "Ev Idx", chrome->numbers++);
    }
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* An arrow of a person's own may lead to another process; the others' ids are a process's. */
static void put_link(struct chrome *chrome, const struct sonde_event *event)
{
    static const char *const categories[] = { "flow", "flow", "fwdbwd", "ac2g" };
    const char              *category = categories[event->aux < 4 ? event->aux : 0];
    uint64_t                 id = event->value;
    char                     text[24];

    if (event->aux == SND_LINK_FWD_BWD || event->aux == SND_LINK_LAUNCH)
        id += event->process * 0x9e3779b97f4a7c15u;
    snprintf(text, sizeof text, "0x%" PRIx64, id);
    open_event(chrome, event->size ? "f" : "s", category, plain(category), event->process,
               event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "id", text);
    if (event->size)
        snd_json_text(&chrome->json, "bp", "e");
    snd_json_end(&chrome->json);
}

static void put_sample(struct chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "sample", "t", plain("sample"));
    snd_json_object(&chrome->json, "args");
    put_stack(chrome, event->process, event->aux);
    snd_json_uint(&chrome->json, "Covered ns", event->value);
    snd_json_uint(&chrome->json, "Samples", event->name);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_gap(struct chrome *chrome, const struct sonde_event *event)
{
    if (event->value == 0)
        return;
    put_instant(chrome, event, "ledger", "t", plain("events lost"));
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "Events", event->value);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static bool on_event(const struct sonde_event *event, void *user)
{
    static void (*const puts[])(struct chrome *, const struct sonde_event *) = {
        [SONDE_EVENT_MARK] = put_mark,       [SONDE_EVENT_STEP] = put_step,
        [SONDE_EVENT_COUNTER] = put_counter, [SONDE_EVENT_LINK] = put_link,
        [SONDE_EVENT_SAMPLE] = put_sample,   [SONDE_EVENT_GAP] = put_gap,
    };
    struct chrome *chrome = user;
    int64_t        bytes = 0, total = 0;

    chrome->last_ns = event->time_ns > chrome->last_ns ? event->time_ns : chrome->last_ns;
    if (event->kind == SONDE_EVENT_ALLOC || event->kind == SONDE_EVENT_FREE) {
        bytes = snd_live_event(&chrome->live, event, &total);
        /* Memory from before the recording, of unknown size: torch says nothing of it. */
        if (bytes != 0 || event->size != 0 || !chrome->is_torch[event->process])
            put_memory(chrome, event, bytes, total);
    } else if ((size_t)event->kind < sizeof puts / sizeof puts[0] && puts[event->kind]) {
        puts[event->kind](chrome, event);
    }
    if (!snd_spans_event(chrome->spans, event, bytes) || chrome->live.failed || chrome->text.failed)
        chrome->failed = true;
    return !chrome->failed && !chrome->out->failed;
}

/* ---------------------------------------------------------------- metadata */

static void put_meta(struct chrome *chrome, uint32_t process, uint32_t thread, const char *what,
                     const char *key, struct sonde_text value, int64_t number)
{
    open_event(chrome, "M", NULL, plain(what), process, thread);
    snd_json_int(&chrome->json, "ts", 0);
    snd_json_object(&chrome->json, "args");
    if (value.bytes)
        snd_json_string(&chrome->json, key, value.bytes, value.length);
    else
        snd_json_int(&chrome->json, key, number);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_process(struct chrome *chrome, uint32_t i)
{
    const struct sonde_process *process = sonde_trace_process(chrome->trace, i);
    const struct sonde_text     none = { NULL, 0 };

    snd_buf_clear(&chrome->text);
    if (chrome->is_torch[i])
        snd_buf_text(&chrome->text, "CPU"); /* what HTA and TensorBoard tell host from device by */
    else
        snd_buf_text(&chrome->text, process->host);
    if (process->rank != SONDE_NONE && !chrome->is_torch[i])
        snd_buf_format(&chrome->text, ", rank %" PRIu32, process->rank);
    put_meta(chrome, i, SONDE_NONE, "process_name", "name", plain(process->program), 0);
    put_meta(chrome, i, SONDE_NONE, "process_labels", "labels",
             plain(snd_buf_string(&chrome->text)), 0);
    put_meta(chrome, i, SONDE_NONE, "process_sort_index", "sort_index", none,
             chrome->is_torch[i] ? (int64_t)pid_of(chrome, i) : i);
}

static void put_thread(struct chrome *chrome, uint32_t i)
{
    const struct sonde_thread *thread = sonde_trace_thread(chrome->trace, i);
    const struct sonde_text    none = { NULL, 0 };
    bool                       torch = chrome->is_torch[thread->process];
    struct sonde_text          name = thread->name;

    snd_buf_clear(&chrome->text);
    snd_buf_format(&chrome->text, "thread %" PRIu32, thread->tid);
    if (torch && name.length > 0) {
        snd_buf_text(&chrome->text, " (");
        snd_buf_put(&chrome->text, name.bytes, name.length);
        snd_buf_text(&chrome->text, ")");
    }
    if (torch || name.length == 0)
        name = (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length };
    put_meta(chrome, thread->process, i, "thread_name", "name", name, 0);
    put_meta(chrome, thread->process, i, "thread_sort_index", "sort_index", none,
             torch ? thread->tid : i);
}

static void put_names(struct chrome *chrome)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        put_process(chrome, i);
    for (uint32_t i = 0; i < sonde_trace_thread_count(chrome->trace); i++)
        put_thread(chrome, i);
}

/* The first process that torch's probe recorded; NULL: none. */
static const struct sonde_process *find_torch(const struct chrome *chrome)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        if (chrome->is_torch[i])
            return sonde_trace_process(chrome->trace, i);
    return NULL;
}

/* What torch puts around a recording. */
static void put_window(struct chrome *chrome, const struct sonde_process *process)
{
    struct snd_json *json = &chrome->json;
    int64_t end_ns = process->stop_ns > chrome->last_ns ? process->stop_ns : chrome->last_ns;

    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "X");
    snd_json_text(json, "cat", "Trace");
    snd_json_text(json, "name", "PyTorch Profiler (0)");
    snd_json_text(json, "pid", "Spans");
    snd_json_text(json, "tid", "PyTorch Profiler");
    snd_json_us(json, "ts", process->start_ns);
    snd_json_us(json, "dur", end_ns - process->start_ns);
    snd_json_object(json, "args");
    snd_json_int(json, "Op count", 0);
    snd_json_end(json);
    snd_json_end(json);
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "M");
    snd_json_text(json, "name", "process_sort_index");
    snd_json_us(json, "ts", process->start_ns);
    snd_json_text(json, "pid", "Spans");
    snd_json_int(json, "tid", 0);
    snd_json_object(json, "args");
    snd_json_int(json, "sort_index", 536870912);
    snd_json_end(json);
    snd_json_end(json);
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "i");
    snd_json_text(json, "s", "g");
    snd_json_text(json, "name", "Iteration Start: PyTorch Profiler");
    snd_json_text(json, "pid", "Traces");
    snd_json_text(json, "tid", "Trace PyTorch Profiler");
    snd_json_us(json, "ts", process->start_ns);
    snd_json_end(json);
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "i");
    snd_json_text(json, "s", "g");
    snd_json_text(json, "name", "Record Window End");
    snd_json_text(json, "pid", "");
    snd_json_text(json, "tid", "");
    snd_json_us(json, "ts", end_ns);
    snd_json_end(json);
}

/* Whether the caller gives a member of this name itself. */
static bool is_given(const struct chrome *chrome, const char *key)
{
    const char *const *at = chrome->options->metadata;

    for (; at && at[0] && at[1]; at += 2)
        if (strcmp(at[0], key) == 0)
            return true;
    return false;
}

/* A later one of a name replaces an earlier one, and none replaces what is ours. */
static void put_given(struct chrome *chrome)
{
    static const char *const ours[] = { "schemaVersion",   "deviceProperties",
                                        "displayTimeUnit", "baseTimeNanoseconds",
                                        "traceEvents",     "traceName",
                                        "metadata",        "rangesTooDeep" };
    const char *const       *at = chrome->options->metadata;

    for (; at && at[0] && at[1]; at += 2) {
        bool taken = false;
        for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
            taken |= strcmp(at[0], ours[i]) == 0;
        for (const char *const *later = at + 2; later[0] && later[1]; later += 2)
            taken |= strcmp(at[0], later[0]) == 0;
        if (taken)
            continue;
        if (snd_json_is_value(at[1], strlen(at[1])))
            snd_json_raw(&chrome->json, at[0], at[1], strlen(at[1]));
        else
            snd_json_text(&chrome->json, at[0], at[1]);
    }
}

/* torch's marks of what was recorded, by the probe's note {"record_shapes": true, ..}. */
static void put_flags(struct chrome *chrome)
{
    static const char *const flags[] = { "record_shapes", "profile_memory", "with_stack",
                                         "with_flops", "with_modules" };
    struct sonde_text        key, value;

    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        for (uint32_t n = 0; sonde_trace_metadata(chrome->trace, i, n, &key, &value); n++) {
            if (!starts_with(key, "torch.options"))
                continue;
            for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
                char on[40];
                snprintf(on, sizeof on, "\"%s\": true", flags[k]);
                if (strstr(value.bytes, on) && !is_given(chrome, flags[k]))
                    snd_json_int(&chrome->json, flags[k], 1);
            }
            return;
        }
}

static void put_torch_head(struct chrome *chrome, const struct sonde_process *process)
{
    put_flags(chrome);
    snd_json_array(&chrome->json, "deviceProperties");
    snd_json_end(&chrome->json);
    if (!is_given(chrome, "host_name"))
        snd_json_text(&chrome->json, "host_name", process->host);
    if (process->rank == SONDE_NONE || is_given(chrome, "distributedInfo"))
        return;
    snd_json_object(&chrome->json, "distributedInfo");
    snd_json_uint(&chrome->json, "rank", process->rank);
    if (process->world_size != SONDE_NONE)
        snd_json_uint(&chrome->json, "world_size", process->world_size);
    snd_json_end(&chrome->json);
}

static void put_head(struct chrome *chrome)
{
    const struct sonde_process *torch = find_torch(chrome);
    int64_t                     base_ns = 0;

    if (sonde_trace_process_count(chrome->trace) > 0) {
        const struct sonde_process *first = sonde_trace_process(chrome->trace, 0);
        base_ns = (int64_t)((uint64_t)first->start_real_ns - (uint64_t)first->start_ns);
    }
    snd_json_int(&chrome->json, "schemaVersion", 1);
    if (torch)
        put_torch_head(chrome, torch);
    put_given(chrome);
    snd_json_text(&chrome->json, "displayTimeUnit", "ms");
    snd_json_int(&chrome->json, "baseTimeNanoseconds", base_ns);
}

/* What the probe notes for readers: modules and threads, which are shown elsewhere. */
static bool is_note(struct sonde_text key)
{
    return starts_with(key, "module ") || starts_with(key, "torch.thread ");
}

/* A key is text of the trace: it may hold anything, so it goes where values go as well. */
static void put_tail(struct chrome *chrome)
{
    struct sonde_text key, value;
    const char       *path = sonde_trace_process_count(chrome->trace) > 0
                                 ? sonde_trace_process(chrome->trace, 0)->path
                                 : "";

    const char *slash = strrchr(path, '/');
    const char *own = slash ? slash + 1 : path;
    snd_json_text(&chrome->json, "traceName", chrome->options->name ? chrome->options->name : own);
    snd_json_array(&chrome->json, "metadata");
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++) {
        for (uint32_t n = 0; sonde_trace_metadata(chrome->trace, i, n, &key, &value); n++) {
            if (chrome->is_torch[i] && is_note(key))
                continue;
            snd_json_object(&chrome->json, NULL);
            snd_json_uint(&chrome->json, "pid", pid_of(chrome, i));
            snd_json_string(&chrome->json, "key", key.bytes, key.length);
            snd_json_string(&chrome->json, "value", value.bytes, value.length);
            snd_json_end(&chrome->json);
        }
    }
    snd_json_end(&chrome->json);
    if (snd_spans_deeper(chrome->spans) > 0)
        snd_json_uint(&chrome->json, "rangesTooDeep", snd_spans_deeper(chrome->spans));
}

/* torch's probe says so in a process's metadata. */
static bool is_torch(const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text key, value;

    for (uint32_t n = 0; sonde_trace_metadata(trace, process, n, &key, &value); n++)
        if (starts_with(key, "torch.probe"))
            return true;
    return false;
}

/* ------------------------------------------------------------------- whole */

static enum sonde_status write_events(struct chrome *chrome, struct sonde_error *err)
{
    snd_json_init(&chrome->json, chrome->out);
    snd_json_break_at(&chrome->json, 2);
    snd_json_object(&chrome->json, NULL);
    put_head(chrome);
    snd_json_array(&chrome->json, "traceEvents");
    put_names(chrome);
    enum sonde_status st = sonde_trace_walk(chrome->trace, SONDE_BY_TIME, on_event, chrome, err);
    if (st == SONDE_OK && chrome->failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what is open or held at once");
    if (st != SONDE_OK)
        return st;
    snd_spans_finish(chrome->spans);
    if (find_torch(chrome))
        put_window(chrome, find_torch(chrome));
    snd_json_end(&chrome->json);
    put_tail(chrome);
    snd_json_end(&chrome->json);
    return SONDE_OK;
}

static bool prepare(struct chrome *chrome)
{
    uint32_t threads = sonde_trace_thread_count(chrome->trace);
    uint32_t processes = sonde_trace_process_count(chrome->trace);

    chrome->waiting = calloc((size_t)threads + 1, sizeof *chrome->waiting);
    chrome->torch_ids = snd_torch_threads(chrome->trace);
    chrome->is_torch = calloc((size_t)processes + 1, sizeof *chrome->is_torch);
    if (!chrome->waiting || !chrome->torch_ids || !chrome->is_torch)
        return false;
    for (uint32_t i = 0; i < processes; i++)
        chrome->is_torch[i] = is_torch(chrome->trace, i);
    return true;
}

SND_EXPORT_WRITE(snd_export_chrome)
{
    struct chrome          chrome = { .trace = trace, .options = options, .out = out };
    struct snd_spans_calls calls = { on_begin, on_end, &chrome };
    uint32_t               threads = sonde_trace_thread_count(trace);

    enum sonde_status st = snd_spans_new(trace, &calls, &chrome.spans, err);
    if (st == SONDE_OK && !prepare(&chrome))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for %" PRIu32 " threads", threads);
    if (st == SONDE_OK)
        st = write_events(&chrome, err);
    for (uint32_t i = 0; chrome.waiting && i < threads; i++)
        free(chrome.waiting[i].items);
    free(chrome.waiting);
    free(chrome.torch_ids);
    free(chrome.is_torch);
    free(chrome.forwards);
    free(chrome.spare);
    snd_map_release(&chrome.by_sequence);
    snd_spans_free(chrome.spans);
    snd_live_release(&chrome.live);
    sonde_buffer_release(&chrome.text);
    return st;
}
