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
#include "format/layout.h"
#include "read/said/trace_facts.h"
#include "read/reader.h"
#include "sonde/model.h"

struct dump {
    struct sonde_trace *trace;
    struct snd_out     *out;
    struct snd_json     json;
    struct sonde_buffer text;
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

static void put_name(struct dump *dump, const struct sonde_event *event, uint32_t id)
{
    struct sonde_text name = sonde_trace_string(dump->trace, event->process, id);

    snd_json_string(&dump->json, "name", name.bytes, name.length);
}

static void put_stack(struct dump *dump, const struct sonde_event *event, uint64_t stack)
{
    struct sonde_frame frames[256];
    size_t             room = SND_COUNT_OF(frames), count = 0;

    if (stack <= UINT32_MAX)
        count = sonde_trace_stack(dump->trace, event->process, (uint32_t)stack, frames, room);
    if (count == 0)
        return;
    snd_json_array(&dump->json, "stack");
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

static void put_shapes(struct dump *dump, const struct sonde_event *event, uint64_t shapes)
{
    if (shapes > UINT32_MAX ||
        !snd_tensors_text(dump->trace, event->process, (uint32_t)shapes, &dump->text))
        return;
    if (snd_json_is_int_lists(dump->text.bytes, dump->text.length))
        snd_json_raw(&dump->json, "shapes", dump->text.bytes, dump->text.length);
    else
        snd_json_string(&dump->json, "shapes", dump->text.bytes, dump->text.length);
}

/* --------------------------------------------------- members by event kind */

static void put_begin(struct dump *dump, const struct sonde_event *event)
{
    put_name(dump, event, event->begin.name);
    put_shapes(dump, event, event->begin.shapes);
}

static void put_end(struct dump *dump, const struct sonde_event *event)
{
    (void)dump;
    (void)event;
}

static void put_end_at(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "inner", event->end_at.inner);
}

static void put_end_key(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "key", event->end_key.key);
}

static void put_mark(struct dump *dump, const struct sonde_event *event)
{
    put_name(dump, event, event->mark.name);
    put_stack(dump, event, event->mark.stack);
}

static void put_step(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "number", event->step.number);
}

static void put_gap(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "events_lost", event->gap.events);
    if (event->gap.ends == SND_GAP_ALL)
        snd_json_text(&dump->json, "ends_lost", "all");
    else
        snd_json_uint(&dump->json, "ends_lost", event->gap.ends);
}

static void put_counter(struct dump *dump, const struct sonde_event *event)
{
    put_name(dump, event, event->counter.name);
    snd_json_real(&dump->json, "value", event->counter.value);
}

static void put_link(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "link_kind", event->link.kind);
    snd_json_bool(&dump->json, "arrives", event->link.arrives);
    snd_json_uint(&dump->json, "id", event->link.id);
}

static void put_sample(struct dump *dump, const struct sonde_event *event)
{
    snd_json_uint(&dump->json, "covered_ns", event->sample.covered_ns);
    snd_json_uint(&dump->json, "samples", event->sample.count);
    snd_json_uint(&dump->json, "state", event->sample.state);
    put_stack(dump, event, event->sample.stack);
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
        put_stack(dump, event, event->attr.value);
    } else if (keys[event->attr.key].form == SHAPES) {
        put_shapes(dump, event, event->attr.value);
    } else if (keys[event->attr.key].form == STRING) {
        struct sonde_text text = sonde_trace_string(dump->trace, event->process,
                                                    (uint32_t)event->attr.value);
        snd_json_string(&dump->json, "value", text.bytes, text.length);
    } else {
        snd_json_uint(&dump->json, "value", event->attr.value);
    }
}

/* What a GPU did: the words of its records. */
static void put_device(struct dump *dump, const struct sonde_event *event)
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
    const struct snd_tables *t = &dump->trace->processes[event->process].tables;

    if (event->device.work < t->work_count) {
        const struct snd_work_record *work = &t->works[event->device.work];
        struct sonde_text name = sonde_trace_string(dump->trace, event->process, work->name);
        snd_json_string(&dump->json, "name", name.bytes, name.length);
        if (work->kind < SND_COUNT_OF(kinds) && kinds[work->kind])
            snd_json_text(&dump->json, "work", kinds[work->kind]);
        if (work->bytes != 0)
            snd_json_uint(&dump->json, "size_bytes", work->bytes);
    }
    if (event->device.queue != 0 && event->device.queue < t->queue_count) {
        const struct snd_queue_record *queue = &t->queues[event->device.queue];
        snd_json_uint(&dump->json, "device_type", SND_DEVICE_TYPE(queue->device));
        snd_json_uint(&dump->json, "device_index", SND_DEVICE_INDEX(queue->device));
        snd_json_uint(&dump->json, "stream", queue->stream);
    }
    snd_json_uint(&dump->json, "duration_ns", event->device.duration_ns);
    if (event->device.correlation != 0)
        snd_json_uint(&dump->json, "correlation", event->device.correlation);
}

static bool on_event(const struct sonde_event *event, void *user)
{
    static const struct {
        const char *name;
        void (*put)(struct dump *, const struct sonde_event *);
    } kinds[] = {
        [SONDE_EVENT_BEGIN] = { "begin", put_begin },
        [SONDE_EVENT_END] = { "end", put_end },
        [SONDE_EVENT_END_AT] = { "end_at", put_end_at },
        [SONDE_EVENT_END_KEY] = { "end_key", put_end_key },
        [SONDE_EVENT_MARK] = { "mark", put_mark },
        [SONDE_EVENT_STEP] = { "step", put_step },
        [SONDE_EVENT_GAP] = { "gap", put_gap },
        [SONDE_EVENT_COUNTER] = { "counter", put_counter },
        [SONDE_EVENT_LINK] = { "link", put_link },
        [SONDE_EVENT_SAMPLE] = { "sample", put_sample },
        [SONDE_EVENT_ALLOC] = { "alloc", put_memory },
        [SONDE_EVENT_FREE] = { "free", put_memory },
        [SONDE_EVENT_ATTR] = { "attr", put_attr },
        [SONDE_EVENT_DEVICE] = { "device", put_device },
    };
    struct dump *dump = user;

    if ((size_t)event->kind >= SND_COUNT_OF(kinds) || !kinds[event->kind].name)
        return true;
    snd_json_object(&dump->json, NULL);
    snd_json_text(&dump->json, "kind", kinds[event->kind].name);
    snd_json_uint(&dump->json, "thread", event->thread);
    snd_json_int(&dump->json, "time_ns", event->time_ns);
    kinds[event->kind].put(dump, event);
    snd_json_end(&dump->json);
    return !dump->out->failed && !dump->text.failed;
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
    st = sonde_trace_walk(trace, SONDE_BY_TIME, on_event, &dump, err);
    snd_json_end(&dump.json);
    snd_json_end(&dump.json);
    if (st == SONDE_OK && dump.text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for a tensor list");
    sonde_buffer_release(&dump.text);
    return st;
}
