/* SPDX-License-Identifier: Apache-2.0 */
/* What is not a range in the Chrome trace format: marks, counters, memory, arrows, samples. */
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/fields.h"
#include "model/torch_stacks.h"

static struct sonde_text name_of(const struct snd_chrome *chrome, const struct sonde_event *event)
{
    return sonde_trace_string(chrome->trace, event->process, event->name);
}

static void put_instant(struct snd_chrome *chrome, const struct sonde_event *event,
                        const char *category, const char *scope, struct sonde_text name)
{
    snd_chrome_open(chrome, "i", category, name, event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "s", scope);
}

static void put_mark(struct snd_chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "mark", "t", name_of(chrome, event));
    if (event->aux != 0) {
        snd_json_object(&chrome->json, "args");
        snd_chrome_stack(chrome, event->process, event->aux);
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
                   event->value);
    put_instant(chrome, event, is_torch ? "mark" : "user_annotation", "p",
                (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length });
    snd_json_end(&chrome->json);
}

static void put_counter(struct snd_chrome *chrome, const struct sonde_event *event)
{
    double value;

    /* torch writes GPU memory with each block instead. */
    if (snd_chrome_note_counter(chrome, event) && chrome->is_torch[event->process])
        return;
    memcpy(&value, &event->value, sizeof value);
    snd_chrome_open(chrome, "C", NULL, name_of(chrome, event), event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_object(&chrome->json, "args");
    snd_json_real(&chrome->json, "value", value);
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
    int64_t size = event->size < INT64_MAX ? (int64_t)event->size : INT64_MAX;
    int64_t bytes = event->kind == SONDE_EVENT_ALLOC ? size : size > 0 ? -size : change;

    if (snd_chrome_hides(chrome, "cpu_instant_event"))
        return;
    put_instant(chrome, event, "cpu_instant_event", "t", snd_chrome_text("[memory]"));
    snd_json_object(&chrome->json, "args");
    put_address(&chrome->json, event->value);
    snd_json_int(&chrome->json, "Bytes", bytes);
    snd_json_uint(&chrome->json, "Device Type", SND_DEVICE_TYPE(event->aux));
    snd_json_int(&chrome->json, "Device Id",
                 SND_DEVICE_INDEX(event->aux) == 0xffff ? -1
                                                        : (int64_t)SND_DEVICE_INDEX(event->aux));
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
    const char              *category = categories[event->aux < 4 ? event->aux : 0];
    uint64_t                 id = event->value;
    char                     text[24];

    if (event->aux == SND_LINK_FWD_BWD || event->aux == SND_LINK_LAUNCH)
        id += event->process * 0x9e3779b97f4a7c15u;
    snprintf(text, sizeof text, "0x%" PRIx64, id);
    snd_chrome_open(chrome, event->size ? "f" : "s", category, snd_chrome_text(category),
                    event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns);
    snd_json_text(&chrome->json, "id", text);
    if (event->size)
        snd_json_text(&chrome->json, "bp", "e");
    snd_json_end(&chrome->json);
}

static void put_sample(struct snd_chrome *chrome, const struct sonde_event *event)
{
    put_instant(chrome, event, "sample", "t", snd_chrome_text("sample"));
    snd_json_object(&chrome->json, "args");
    snd_chrome_stack(chrome, event->process, event->aux);
    snd_json_uint(&chrome->json, "Covered ns", event->value);
    snd_json_uint(&chrome->json, "Samples", event->name);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_function(struct snd_chrome *chrome, const struct sonde_event *event)
{
    int64_t           ns = event->size < INT64_MAX ? (int64_t)event->size : INT64_MAX;
    struct sonde_text name = snd_chrome_function(chrome, event->process, event->name);
    int32_t           module = snd_module_number(name);

    if (snd_chrome_hides(chrome, "python_function"))
        return;
    snd_chrome_open(chrome, "X", "python_function", name, event->process, event->thread);
    snd_json_us(&chrome->json, "ts", event->time_ns - ns);
    snd_json_us(&chrome->json, "dur", ns);
    snd_json_object(&chrome->json, "args");
    if (SND_HIGH(event->value) != 0)
        snd_json_uint(&chrome->json, "Python parent id", SND_HIGH(event->value));
    else if (chrome->is_torch[event->process])
        snd_json_null(&chrome->json, "Python parent id");
    snd_json_uint(&chrome->json, "Python id", SND_LOW(event->value));
    if (module >= 0)
        snd_json_int(&chrome->json, "Python module id", module);
    snd_json_uint(&chrome->json, "Ev Idx", chrome->numbers++);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_gap(struct snd_chrome *chrome, const struct sonde_event *event)
{
    if (event->value == 0)
        return;
    put_instant(chrome, event, "ledger", "t", snd_chrome_text("events lost"));
    snd_json_object(&chrome->json, "args");
    snd_json_uint(&chrome->json, "Events", event->value);
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
        if (change->held != 0 || event->size != 0 || !chrome->is_torch[event->process])
            put_memory(chrome, event, change->held, total, reserved);
    } else if ((size_t)event->kind < sizeof puts / sizeof puts[0] && puts[event->kind]) {
        puts[event->kind](chrome, event);
    }
    return !chrome->text.failed && !chrome->out->failed;
}
