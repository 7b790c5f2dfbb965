/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a range in the Chrome trace format: marks, counters, memory, arrows, samples. */
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "format/fields.h"
#include "model/torch_stacks.h"

static void put_instant(struct snd_chrome *chrome, const struct sonde_event *event,
                        const char *category, const char *scope, struct sonde_text name)
{
    snd_chrome_open(chrome, "i", category, name, event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "s", scope);
}

static void put_mark(struct snd_chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "mark", "t",
                sonde_trace_string(chrome->trace, event->process, event->mark.name));
    if (event->mark.stack != 0) {
        snd_json_object(&chrome->json, "args");
        snd_chrome_stack(chrome, event->process, event->mark.stack);
        snd_json_end(&chrome->json);
    }
    snd_json_end(&chrome->json);
}

/*
 * Of a torch program, its profile's ranges are the steps. Steps that it has without one must not have their name:
 * tools pair ProfilerStep# with what torch's other traces have.
 */
static void put_step(struct snd_chrome *chrome, const struct sonde_event *event)
{
    bool is_torch = chrome->is_torch[event->process];

    if (is_torch && chrome->has_steps)
        return;
    snd_buf_clear(&chrome->text);
    snd_buf_format(&chrome->text, is_torch ? "step %" PRIu64 : "ProfilerStep#%" PRIu64,
                   event->step.number);
    put_instant(chrome, event, is_torch ? "mark" : "user_annotation", "p",
                (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length });
    snd_json_end(&chrome->json);
}

static void put_counter(struct snd_chrome *chrome, const struct sonde_event *event)
{
    /* torch writes GPU memory with each block instead. */
    if (snd_chrome_note_counter(chrome, event) && chrome->is_torch[event->process])
        return;
    snd_chrome_open(chrome, "C", NULL,
                    sonde_trace_string(chrome->trace, event->process, event->counter.name),
                    event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_object(&chrome->json, "args");
    snd_json_real(&chrome->json, "value", event->counter.value);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* An address need not fit the 53 bits of a JavaScript number. */
static void put_address(struct snd_json *json, uint64_t address)
{
    char text[24];

    if (address < (uint64_t)1 << 53) {
        snd_json_uint(json, "Addr", address);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, address);
    snd_json_text(json, "Addr", text);
}

/* `change`: of the known live bytes; a free without a size frees what was allocated there. */
static void put_memory(struct snd_chrome *chrome, const struct sonde_event *event, int64_t change,
                       int64_t total, int64_t reserved)
{
    int64_t size = event->memory.size_bytes < INT64_MAX ? (int64_t)event->memory.size_bytes
                                                        : INT64_MAX;
    int64_t bytes = event->kind == SONDE_EVENT_ALLOC ? size : size > 0 ? -size : change;

    if (snd_chrome_hides(chrome, "cpu_instant_event"))
        return;
    put_instant(chrome, event, "cpu_instant_event", "t", snd_chrome_text("[memory]"));
    snd_json_object(&chrome->json, "args");
    put_address(&chrome->json, event->memory.address);
    snd_json_int(&chrome->json, "Bytes", bytes);
    snd_json_uint(&chrome->json, "Device Type", SND_DEVICE_TYPE(event->memory.device));
    snd_json_int(&chrome->json, "Device Id",
                 SND_DEVICE_INDEX(event->memory.device) == 0xffff
                     ? -1
                     : (int64_t)SND_DEVICE_INDEX(event->memory.device));
    snd_json_int(&chrome->json, "Total Allocated", total);
    if (chrome->is_torch[event->process]) {
        snd_json_int(&chrome->json, "Total Reserved", reserved);
        snd_json_bool(&chrome->json, "finished", false);
        snd_json_uint(&chrome->json, "Ev Idx", chrome->numbers++);
    }
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

/* Arrows that a program marks may lead to another process; ids of other arrows are per process. */
static void put_link(struct snd_chrome *chrome, const struct sonde_event *event)
{
    static const char *const categories[] = { "flow", "flow", "fwdbwd", "ac2g" };
    const char              *category = categories[event->link.kind < 4 ? event->link.kind : 0];
    uint64_t                 id = event->link.id;
    char                     text[24];

    if (event->link.kind == SND_LINK_FWD_BWD || event->link.kind == SND_LINK_LAUNCH)
        id += event->process * 0x9e3779b97f4a7c15u;
    snprintf(text, sizeof text, "0x%" PRIx64, id);
    snd_chrome_open(chrome, event->link.arrives ? "f" : "s", category, snd_chrome_text(category),
                    event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "id", text);
    if (event->link.arrives)
        snd_json_text(&chrome->json, "bp", "e");
    snd_json_end(&chrome->json);
}

static void put_sample(struct snd_chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "sample", "t", snd_chrome_text("sample"));
    snd_json_object(&chrome->json, "args");
    snd_chrome_stack(chrome, event->process, event->sample.stack);
    snd_json_uint(&chrome->json, "Covered ns", event->sample.covered_ns);
    snd_json_uint(&chrome->json, "Samples", event->sample.count);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_function(struct snd_chrome *chrome, const struct sonde_event *event)
{
    int64_t ns = event->function.duration_ns < INT64_MAX ? (int64_t)event->function.duration_ns
                                                         : INT64_MAX;
    struct sonde_text name = snd_chrome_function(chrome, event->process, event->function.frame);
    int32_t           module = snd_module_number(name);

    if (snd_chrome_hides(chrome, "python_function"))
        return;
    snd_chrome_open(chrome, "X", "python_function", name, event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns - ns);
    snd_json_us(&chrome->json, "dur", ns);
    snd_json_object(&chrome->json, "args");
    if (event->function.parent != 0)
        snd_json_uint(&chrome->json, "Python parent id", event->function.parent);
    else if (chrome->is_torch[event->process])
        snd_json_null(&chrome->json, "Python parent id");
    snd_json_uint(&chrome->json, "Python id", event->function.id);
    if (module >= 0)
        snd_json_int(&chrome->json, "Python module id", module);
    snd_json_uint(&chrome->json, "Ev Idx", chrome->numbers++);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_gap(struct snd_chrome *chrome, const struct sonde_event *event)
{
    if (event->gap.events == 0)
        return;
    put_instant(chrome, event, "ledger", "t", snd_chrome_text("events lost"));
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "Events", event->gap.events);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

bool snd_chrome_on_event(const struct sonde_event *event, const struct snd_live_change *change,
                         void *user)
{
    static void (*const puts[])(struct snd_chrome *, const struct sonde_event *) = {
        [SONDE_EVENT_MARK] = put_mark,         [SONDE_EVENT_STEP] = put_step,
        [SONDE_EVENT_COUNTER] = put_counter,   [SONDE_EVENT_LINK] = put_link,
        [SONDE_EVENT_SAMPLE] = put_sample,     [SONDE_EVENT_GAP] = put_gap,
        [SONDE_EVENT_FUNCTION] = put_function,
    };
    struct snd_chrome *chrome = user;

    if (change) {
        int64_t total, reserved;
        snd_chrome_note_memory(chrome, event, change, &total, &reserved);
        /* A free of memory from before the recording, of unknown size: torch leaves it out. */
        if (change->held != 0 || event->memory.size_bytes != 0 || !chrome->is_torch[event->process])
            put_memory(chrome, event, change->held, total, reserved);
    } else if ((size_t)event->kind < SND_COUNT_OF(puts) && puts[event->kind]) {
        puts[event->kind](chrome, event);
    }
    return !chrome->text.failed && !chrome->out->failed;
}
