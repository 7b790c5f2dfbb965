/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON of everything: processes with their metadata, threads, each event in time order with
 * its names resolved, and the ledger. man/sonde-export.1 lists the members.
 */
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "export/common/exporter.h"
#include "export/timeline/torch_tensors.h"
#include "format/references.h"
#include "read/said/trace_facts.h"
#include "read/walk/trace_walk.h"
#include "sonde/model.h"

struct dump {
    struct sonde_trace *trace;
    struct snd_out     *out;
    struct snd_json     json;
    struct sonde_buffer text;
    struct snd_visitor  visitor;
};

static void put_value(struct dump *dump, uint32_t process, const struct snd_fact *fact,
                      const struct snd_fact_value *value)
{
    struct snd_json *json = &dump->json;
    const char      *word = snd_fact_field_word(fact->kind, value->field);
    char             shape[512];

    snd_json_object(json, NULL);
    snd_json_text(json, "field", word ? word : "(unknown)");
    if (value->type == SND_FACT_TEXT)
        snd_json_string(json, "value", value->text.bytes, value->text.length);
    else if (value->type == SND_FACT_REAL)
        snd_json_real(json, "value", value->real);
    else
        snd_json_int(json, "value", value->number);
    if (value->type == SND_FACT_TENSOR &&
        sonde_trace_shapes(dump->trace, process, value->shape, shape, sizeof shape) < sizeof shape)
        snd_json_text(json, "shape", shape);
    snd_json_end(json);
}

/* Those of records: the others are in the metadata. */
static void put_facts(struct dump *dump, uint32_t process)
{
    struct snd_json       *json = &dump->json;
    const struct snd_fact *fact;
    bool                   any = false;

    for (uint32_t n = 0; (fact = snd_fact_next(dump->trace, process, 0, &n));) {
        if (fact->is_from_text)
            continue;
        if (!any)
            snd_json_array(json, "facts");
        any = true;
        const char *word = snd_fact_word(fact->kind);
        snd_json_object(json, NULL);
        snd_json_text(json, "kind", word ? word : "(unknown)");
        snd_json_string(json, "subject", fact->subject.bytes, fact->subject.length);
        snd_json_uint(json, "number", fact->number);
        snd_json_array(json, "members");
        for (uint32_t i = 0; i < fact->count; i++)
            put_value(dump, process, fact, &fact->values[i]);
        snd_json_end(json);
        snd_json_end(json);
    }
    if (any)
        snd_json_end(json);
}

static void put_process(struct dump *dump, uint32_t index)
{
    const struct sonde_process *process = sonde_trace_process(dump->trace, index);
    struct snd_json            *json = &dump->json;
    struct sonde_text           key, value;

    snd_json_object(json, NULL);
    snd_json_uint(json, "pid", process->pid);
    snd_json_uint(json, "parent_pid", process->parent_pid);
    if (process->rank != SONDE_NONE)
        snd_json_uint(json, "rank", process->rank);
    if (process->local_rank != SONDE_NONE)
        snd_json_uint(json, "local_rank", process->local_rank);
    if (process->world_size != SONDE_NONE)
        snd_json_uint(json, "world_size", process->world_size);
    snd_json_uint(json, "cycle", process->cycle);
    snd_json_text(json, "host", process->host);
    snd_json_text(json, "program", process->program);
    snd_json_int(json, "start_ns", process->start_ns);
    snd_json_int(json, "stop_ns", process->stop_ns);
    snd_json_int(json, "start_real_ns", process->start_real_ns);
    snd_json_real(json, "range_cost_ns", process->range_cost_ns);
    snd_json_bool(json, "closed", process->closed);
    snd_json_uint(json, "size_bytes", process->size_bytes);
    snd_json_array(json, "metadata");
    for (uint32_t n = 0; sonde_trace_metadata(dump->trace, index, n, &key, &value); n++) {
        snd_json_object(json, NULL);
        snd_json_string(json, "key", key.bytes, key.length);
        snd_json_string(json, "value", value.bytes, value.length);
        snd_json_end(json);
    }
    snd_json_end(json);
    put_facts(dump, index);
    snd_json_end(json);
}

static void put_thread(struct dump *dump, uint32_t index)
{
    const struct sonde_thread *thread = sonde_trace_thread(dump->trace, index);
    struct snd_json           *json = &dump->json;

    snd_json_object(json, NULL);
    snd_json_uint(json, "process", thread->process);
    snd_json_uint(json, "tid", thread->tid);
    snd_json_string(json, "name", thread->name.bytes, thread->name.length);
    snd_json_int(json, "start_ns", thread->start_ns);
    snd_json_int(json, "stop_ns", thread->stop_ns);
    snd_json_uint(json, "lost_events", thread->lost_events);
    snd_json_end(json);
}

static void put_text(struct dump *dump, uint32_t process, const char *key, uint64_t id)
{
    struct sonde_text text = sonde_trace_string(dump->trace, process, (uint32_t)id);

    snd_json_string(&dump->json, key, text.bytes, text.length);
}

static void put_stack(struct dump *dump, uint32_t process, const char *key, uint64_t stack)
{
    struct sonde_frame frames[256];
    size_t             room = SND_COUNT_OF(frames), count = 0;

    if (stack <= UINT32_MAX)
        count = sonde_trace_stack(dump->trace, process, (uint32_t)stack, frames, room);
    if (count == 0)
        return;
    snd_json_array(&dump->json, key);
    for (size_t i = 0; i < count && i < room; i++) {
        snd_json_object(&dump->json, NULL);
        snd_json_string(&dump->json, "function", frames[i].function.bytes,
                        frames[i].function.length);
        snd_json_string(&dump->json, "file", frames[i].file.bytes, frames[i].file.length);
        snd_json_uint(&dump->json, "line", frames[i].line);
        if (frames[i].first_line != 0)
            snd_json_uint(&dump->json, "first_line", frames[i].first_line);
        snd_json_end(&dump->json);
    }
    snd_json_end(&dump->json);
}

static void put_shapes(struct dump *dump, uint32_t process, const char *key, uint64_t shapes)
{
    if (shapes > UINT32_MAX ||
        !snd_tensors_text(dump->trace, process, (uint32_t)shapes, &dump->text))
        return;
    if (snd_json_is_int_lists(dump->text.bytes, dump->text.length))
        snd_json_raw(&dump->json, key, dump->text.bytes, dump->text.length);
    else
        snd_json_string(&dump->json, key, dump->text.bytes, dump->text.length);
}

/* --------------------------------------------------- members by event kind */

static void put_gap(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "events_lost", event->gap.events);
    if (event->gap.ends == SND_GAP_ALL)
        snd_json_text(&dump->json, "ends_lost", "all");
    else
        snd_json_uint(&dump->json, "ends_lost", event->gap.ends);
}

static void put_sample(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "covered_ns", event->sample.covered_ns);
    snd_json_uint(&dump->json, "samples", event->sample.count);
    snd_json_uint(&dump->json, "state", event->sample.state);
    put_stack(dump, event->process, "stack", event->sample.stack);
}

static void put_memory(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "device_type", SND_DEVICE_TYPE(event->memory.device));
    if (SND_DEVICE_INDEX(event->memory.device) != 0xffff)
        snd_json_uint(&dump->json, "device_index", SND_DEVICE_INDEX(event->memory.device));
    snd_json_uint(&dump->json, "address", event->memory.address);
    snd_json_uint(&dump->json, "size_bytes", event->memory.size_bytes);
    if (event->memory.tag != 0)
        snd_json_uint(&dump->json, "tag", event->memory.tag);
}

static void put_attr(struct dump *dump, const struct sonde_event *event)
{
    /* By format/attrs.def: what kind of number each key has. */
    enum { COUNT, STRING, SHAPES, STACK };
    static const struct {
        const char *name;
        int         form;
    } keys[] = {
#define SND_ATTR(name, key, value, summary) [key] = { #name, value },
#include "format/attrs.def"
#undef SND_ATTR
    };
    bool known = event->attr.key < SND_COUNT_OF(keys) && keys[event->attr.key].name;

    if (!known) {
        snd_json_uint(&dump->json, "key", event->attr.key);
        snd_json_uint(&dump->json, "value", event->attr.value);
        return;
    }
    snd_json_text(&dump->json, "key", keys[event->attr.key].name);
    if (keys[event->attr.key].form == STACK) {
        put_stack(dump, event->process, "stack", event->attr.value);
    } else if (keys[event->attr.key].form == SHAPES) {
        put_shapes(dump, event->process, "shapes", event->attr.value);
    } else if (keys[event->attr.key].form == STRING) {
        put_text(dump, event->process, "value", event->attr.value);
    } else {
        snd_json_uint(&dump->json, "value", event->attr.value);
    }
}

/* Any other kind: by the fields that format/events.def lists. */
static void put_field(struct dump *dump, uint32_t process, const struct snd_event_field *field,
                      uint64_t value)
{
    double real;

    switch (field->form) {
    case SND_FORM_STRING:
        put_text(dump, process, field->name, value);
        break;
    case SND_FORM_SHAPES:
        put_shapes(dump, process, field->name, value);
        break;
    case SND_FORM_STACK:
        put_stack(dump, process, field->name, value);
        break;
    case SND_FORM_F64:
        memcpy(&real, &value, sizeof real);
        snd_json_real(&dump->json, field->name, real);
        break;
    case SND_FORM_FLAG:
        snd_json_bool(&dump->json, field->name, value != 0);
        break;
    default:
        snd_json_uint(&dump->json, field->name, value);
    }
}

/* ------------------------------------------------------------------ events */

/* The members that each event has; the event ends with end_event(). */
static void begin_event(struct dump *dump, const char *kind, uint32_t thread, int64_t ns)
{
    snd_json_object(&dump->json, NULL);
    snd_json_text(&dump->json, "kind", kind);
    snd_json_uint(&dump->json, "thread", thread);
    snd_json_int(&dump->json, "time_ns", ns);
}

static void end_event(struct dump *dump)
{
    snd_json_end(&dump->json);
    dump->visitor.stop |= dump->out->failed || dump->text.failed;
}

static void on_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    struct dump *dump = user;
    uint32_t     process = dump->trace->threads[thread].shown.process;

    begin_event(dump, "begin", thread, ns);
    put_text(dump, process, "name", name);
    put_shapes(dump, process, "shapes", shapes);
    end_event(dump);
}

static void on_end(void *user, uint32_t thread, int64_t ns)
{
    begin_event(user, "end", thread, ns);
    end_event(user);
}

/* The name of a kind as events.def has it, in small letters. */
static void write_kind(uint8_t kind, char *to, size_t size)
{
    static const char *const names[256] = {
#define SND_EVENT(name, code, words, timed, summary) [SND_KIND(code, words)] = #name,
#include "format/events.def"
    };
    size_t at = 0;

    for (; names[kind][at] != '\0' && at + 1 < size; at++)
        to[at] = (char)(names[kind][at] | (names[kind][at] != '_' ? 0x20 : 0));
    to[at] = '\0';
}

static void put_by_fields(struct dump *dump, uint32_t thread, int64_t ns, const uint64_t *words)
{
    uint8_t kind = SND_EVENT_KIND(words[0]);
    char    name[32];

    write_kind(kind, name, sizeof name);
    begin_event(dump, name, thread, ns);
    for (size_t i = 0; i < SND_EVENT_FIELDS; i++)
        if (snd_event_fields[i].kind == kind)
            put_field(dump, dump->trace->threads[thread].shown.process, &snd_event_fields[i],
                      snd_event_field_read(&snd_event_fields[i], words));
    end_event(dump);
}

static void on_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    static const struct {
        const char *name;
        void (*put)(struct dump *, const struct sonde_event *);
    } kinds[256] = {
        [SND_EV_GAP] = { "gap", put_gap },        [SND_EV_SAMPLE] = { "sample", put_sample },
        [SND_EV_ALLOC] = { "alloc", put_memory }, [SND_EV_SAMPLE_RUN] = { "sample", put_sample },
        [SND_EV_FREE] = { "free", put_memory },   [SND_EV_ATTR] = { "attr", put_attr },
        [SND_EV_ATTR64] = { "attr", put_attr },
    };
    struct dump       *dump = user;
    struct sonde_event event;
    uint8_t            kind = SND_EVENT_KIND(words[0]);

    if (kind == SND_EV_FUNCTION) /* no range, and none of the events that this file has had */
        return;
    if (!kinds[kind].put) {
        put_by_fields(dump, thread, ns, words);
    } else if (snd_event_show(dump->trace, thread, ns, words, &event)) {
        begin_event(dump, kinds[kind].name, event.thread, event.time_ns);
        kinds[kind].put(dump, &event);
        end_event(dump);
    }
}

/* What a GPU did: the words of its records. */
static void on_device(void *user, uint32_t process, const struct snd_device_work *run)
{
    static const char *const kinds[] = {
#define SND_STATE(name, bit, summary)
#define SND_SCOPE(name, number, summary)
#define SND_WORK(name, number, summary) [number] = #name,
#include "format/states.def"
#undef SND_WORK
#undef SND_SCOPE
#undef SND_STATE
    };
    struct dump             *dump = user;
    const struct snd_tables *t = &dump->trace->processes[process].tables;

    begin_event(dump, "device", run->thread, run->start_ns);
    if (run->work < t->work_count) {
        const struct snd_work_record *work = &t->works[run->work];
        put_text(dump, process, "name", work->name);
        if (work->kind < SND_COUNT_OF(kinds) && kinds[work->kind])
            snd_json_text(&dump->json, "work", kinds[work->kind]);
        if (work->bytes != 0)
            snd_json_uint(&dump->json, "size_bytes", work->bytes);
    }
    if (run->queue != 0 && run->queue < t->queue_count) {
        const struct snd_queue_record *queue = &t->queues[run->queue];
        snd_json_uint(&dump->json, "device_type", SND_DEVICE_TYPE(queue->device));
        snd_json_uint(&dump->json, "device_index", SND_DEVICE_INDEX(queue->device));
        snd_json_uint(&dump->json, "stream", queue->stream);
    }
    snd_json_uint(&dump->json, "duration_ns", (uint64_t)run->duration_ns);
    if (run->correlation != 0)
        snd_json_uint(&dump->json, "correlation", run->correlation);
    end_event(dump);
}

static void put_ledger(struct dump *dump, const struct sonde_summary *summary)
{
    snd_json_array(&dump->json, "ledger");
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        snd_json_object(&dump->json, NULL);
        snd_json_text(&dump->json, "key", item->key);
        snd_json_uint(&dump->json, "count", item->count);
        snd_json_text(&dump->json, "text", item->text);
        snd_json_end(&dump->json);
    }
    snd_json_end(&dump->json);
}

SND_EXPORT_WRITE(snd_export_json)
{
    struct dump           dump = { .trace = trace, .out = out };
    struct sonde_summary *summary;

    (void)options;
    enum sonde_status st = sonde_summary_new(trace, &summary, err);
    if (st != SONDE_OK)
        return st;
    snd_json_init(&dump.json, out);
    snd_json_break_at(&dump.json, 2);
    snd_json_object(&dump.json, NULL);
    snd_json_text(&dump.json, "format", "sonde-events");
    snd_json_int(&dump.json, "version", 1);
    snd_json_array(&dump.json, "processes");
    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++)
        put_process(&dump, i);
    snd_json_end(&dump.json);
    snd_json_array(&dump.json, "threads");
    for (uint32_t i = 0; i < sonde_trace_thread_count(trace); i++)
        put_thread(&dump, i);
    snd_json_end(&dump.json);
    put_ledger(&dump, summary);
    sonde_summary_free(summary);

    snd_json_array(&dump.json, "events");
    dump.visitor = (struct snd_visitor){
        .begin = on_begin, .end = on_end, .other = on_other, .device = on_device, .user = &dump
    };
    st = snd_walk(trace, SONDE_BY_TIME, &dump.visitor, NULL, err);
    snd_json_end(&dump.json);
    snd_json_end(&dump.json);
    if (st == SONDE_OK && dump.text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for a tensor list");
    sonde_buffer_release(&dump.text);
    return st;
}
