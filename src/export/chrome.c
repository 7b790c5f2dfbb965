/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Chrome trace format, with torch.profiler's names for what ranges carry.
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

#define WAITING_MAX 65536 /* ranges of a thread that wait; only a made-up trace has more */
#define FRAMES_MAX 256

/* Ranges of one thread that start with their parents. */
struct waiting {
    struct snd_span *items;
    uint32_t         count, capacity;
};

struct chrome {
    struct sonde_trace *trace;
    struct snd_out     *out;
    struct snd_json     json;
    struct snd_spans   *spans;
    struct snd_live     live;
    struct waiting     *waiting; /* by thread */
    struct sonde_buffer text;
    bool                failed;
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

static struct sonde_text plain(const char *text)
{
    return (struct sonde_text){ text, strlen(text) };
}

static struct sonde_text name_of(const struct chrome *chrome, const struct sonde_event *event)
{
    return sonde_trace_string(chrome->trace, event->process, event->name);
}

/* ------------------------------------------------------------------ ranges */

static void put_stack(struct chrome *chrome, uint32_t process, uint32_t stack)
{
    struct sonde_frame frames[FRAMES_MAX];
    size_t             count = sonde_trace_stack(chrome->trace, process, stack, frames, FRAMES_MAX);

    if (count == 0)
        return;
    snd_buf_clear(&chrome->text);
    for (size_t i = 0; i < count && i < FRAMES_MAX; i++) {
        snd_buf_text(&chrome->text, i ? ";" : "");
        if (frames[i].file.length > 0) {
            snd_buf_put(&chrome->text, frames[i].file.bytes, frames[i].file.length);
            snd_buf_format(&chrome->text, "(%" PRIu32 "): ", frames[i].line);
        }
        snd_buf_put(&chrome->text, frames[i].function.bytes, frames[i].function.length);
    }
    snd_json_string(&chrome->json, "Call stack", snd_buf_string(&chrome->text),
                    chrome->text.length);
}

/* How an attribute is shown: torch's name for it, and what its number means. */
enum attr_form { ATTR_COUNT, ATTR_STRING, ATTR_STACK, ATTR_TENSORS, ATTR_SKIP };

static const struct {
    const char    *title;
    enum attr_form form;
} attr_forms[SND_SPAN_ATTRS] = {
    [SND_ATTR_FLOPS] = { "FLOPs", ATTR_COUNT },
    [SND_ATTR_SHAPES] = { NULL, ATTR_SKIP }, /* span->shapes has it */
    [SND_ATTR_STACK] = { "Call stack", ATTR_STACK },
    [SND_ATTR_SEQUENCE] = { "Sequence number", ATTR_COUNT },
    [SND_ATTR_FWD_THREAD] = { "Fwd thread id", ATTR_COUNT },
    [SND_ATTR_SCOPE] = { "Scope", ATTR_COUNT },
    [SND_ATTR_OVERLOAD] = { "Overload Name", ATTR_STRING },
    [SND_ATTR_ARGUMENTS] = { "Concrete Inputs", ATTR_STRING },
    [SND_ATTR_STRIDES] = { "Input Strides", ATTR_TENSORS },
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
    case ATTR_TENSORS:
        if (snd_tensors_text(chrome->trace, span->process, id, &chrome->text))
            snd_json_string(&chrome->json, title, chrome->text.bytes, chrome->text.length);
        break;
    case ATTR_SKIP:
        break;
    }
}

#define USER_SCOPE 7 /* at::RecordScope: a range that a person named */

static void put_span(struct chrome *chrome, const struct snd_span *span)
{
    bool user = (span->attr_mask >> SND_ATTR_SCOPE & 1) &&
                span->attrs[SND_ATTR_SCOPE] == USER_SCOPE;

    open_event(chrome, "X", user ? "user_annotation" : "cpu_op",
               sonde_trace_string(chrome->trace, span->process, span->name), span->process,
               span->thread);
    snd_json_us(&chrome->json, "ts", span->start_ns);
    snd_json_us(&chrome->json, "dur", span->end_ns - span->start_ns);
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "External id", span->serial);
    for (unsigned key = 0; key < SND_SPAN_ATTRS; key++)
        if (span->attr_mask >> key & 1)
            put_attr(chrome, span, key);
    snd_tensors_json(&chrome->json, chrome->trace, span->process, span->shapes, &chrome->text);
    if (span->unfinished)
        snd_json_bool(&chrome->json, "Unfinished", true);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void on_begin(struct snd_span *span, void *user)
{
    struct chrome *chrome = user;

    span->mark = chrome->waiting[span->thread].count;
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
    snd_json_uint(&chrome->json, "Weight", event->value);
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

    if (event->kind == SONDE_EVENT_ALLOC || event->kind == SONDE_EVENT_FREE) {
        bytes = snd_live_event(&chrome->live, event, &total);
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

static void put_names(struct chrome *chrome)
{
    const struct sonde_text none = { NULL, 0 };

    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++) {
        const struct sonde_process *process = sonde_trace_process(chrome->trace, i);
        snd_buf_clear(&chrome->text);
        snd_buf_format(&chrome->text, "%s", process->host);
        if (process->rank != SONDE_NONE)
            snd_buf_format(&chrome->text, ", rank %" PRIu32, process->rank);
        put_meta(chrome, i, SONDE_NONE, "process_name", "name", plain(process->program), 0);
        put_meta(chrome, i, SONDE_NONE, "process_labels", "labels",
                 plain(snd_buf_string(&chrome->text)), 0);
        put_meta(chrome, i, SONDE_NONE, "process_sort_index", "sort_index", none, i);
    }
    for (uint32_t i = 0; i < sonde_trace_thread_count(chrome->trace); i++) {
        const struct sonde_thread *thread = sonde_trace_thread(chrome->trace, i);
        snd_buf_clear(&chrome->text);
        snd_buf_format(&chrome->text, "thread %" PRIu32, thread->tid);
        put_meta(chrome, thread->process, i, "thread_name", "name",
                 thread->name.length ? thread->name : plain(snd_buf_string(&chrome->text)), 0);
        put_meta(chrome, thread->process, i, "thread_sort_index", "sort_index", none, i);
    }
}

static void put_head(struct chrome *chrome)
{
    int64_t base_ns = 0;

    if (sonde_trace_process_count(chrome->trace) > 0) {
        const struct sonde_process *first = sonde_trace_process(chrome->trace, 0);
        base_ns = (int64_t)((uint64_t)first->start_real_ns - (uint64_t)first->start_ns);
    }
    snd_json_int(&chrome->json, "schemaVersion", 1);
    snd_json_text(&chrome->json, "displayTimeUnit", "ms");
    snd_json_int(&chrome->json, "baseTimeNanoseconds", base_ns);
}

/* A key is text of the trace: it may hold anything, so it goes where values go as well. */
static void put_tail(struct chrome *chrome)
{
    struct sonde_text key, value;
    const char       *path = sonde_trace_process_count(chrome->trace) > 0
                                 ? sonde_trace_process(chrome->trace, 0)->path
                                 : "";

    const char *slash = strrchr(path, '/');
    snd_json_text(&chrome->json, "traceName", slash ? slash + 1 : path);
    snd_json_array(&chrome->json, "metadata");
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++) {
        for (uint32_t n = 0; sonde_trace_metadata(chrome->trace, i, n, &key, &value); n++) {
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
    snd_json_end(&chrome->json);
    put_tail(chrome);
    snd_json_end(&chrome->json);
    return SONDE_OK;
}

SND_EXPORT_WRITE(snd_export_chrome)
{
    struct chrome          chrome = { .trace = trace, .out = out };
    struct snd_spans_calls calls = { on_begin, on_end, &chrome };
    uint32_t               threads = sonde_trace_thread_count(trace);

    enum sonde_status st = snd_spans_new(trace, &calls, &chrome.spans, err);
    chrome.waiting = calloc(threads ? threads : 1, sizeof *chrome.waiting);
    if (st == SONDE_OK && !chrome.waiting)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for %" PRIu32 " threads", threads);
    if (st == SONDE_OK)
        st = write_events(&chrome, err);
    for (uint32_t i = 0; chrome.waiting && i < threads; i++)
        free(chrome.waiting[i].items);
    free(chrome.waiting);
    snd_spans_free(chrome.spans);
    snd_live_release(&chrome.live);
    sonde_buffer_release(&chrome.text);
    return st;
}
