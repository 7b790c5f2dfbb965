/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Chrome trace format has besides events of the program: names of processes and threads,
 * and members of the file, torch's own among them.
 */
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/count_of.h"
#include "export/common/exporter.h"
#include "read/said/trace_metadata.h"

/* The first process that torch's probe recorded; NULL: none. */
static const struct sonde_process *find_torch(const struct snd_chrome *chrome)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        if (chrome->is_torch[i])
            return sonde_trace_process(chrome->trace, i);
    return NULL;
}

/* ----------------------------------------------------- processes, threads */

static void put_meta(struct snd_chrome *chrome, uint32_t process, uint32_t thread, const char *what,
                     const char *key, struct sonde_text value, int64_t number)
{
    snd_chrome_open(chrome, "M", NULL, snd_chrome_text(what), process, thread);
    snd_json_int(&chrome->json, "ts", 0);
    snd_json_object(&chrome->json, "args");
    if (value.bytes)
        snd_json_string(&chrome->json, key, value.bytes, value.length);
    else
        snd_json_int(&chrome->json, key, number);
    snd_json_end(&chrome->json);
    snd_json_end(&chrome->json);
}

static void put_process(struct snd_chrome *chrome, uint32_t i)
{
    const struct sonde_process *process = sonde_trace_process(chrome->trace, i);
    const struct sonde_text     none = { NULL, 0 };

    snd_export_name(chrome->trace, i, &chrome->text);
    put_meta(chrome, i, SONDE_NONE, "process_name", "name",
             snd_chrome_text(snd_buf_string(&chrome->text)), 0);
    /* HTA and TensorBoard recognise the host by "CPU". */
    put_meta(chrome, i, SONDE_NONE, "process_labels", "labels",
             snd_chrome_text(chrome->is_torch[i] ? "CPU" : process->host), 0);
    put_meta(chrome, i, SONDE_NONE, "process_sort_index", "sort_index", none,
             chrome->is_torch[i] ? (int64_t)snd_export_pid(chrome->trace, i) : i);
}

static void put_thread(struct snd_chrome *chrome, uint32_t i)
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

void snd_chrome_names(struct snd_chrome *chrome)
{
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        put_process(chrome, i);
    for (uint32_t i = 0; i < sonde_trace_thread_count(chrome->trace); i++)
        put_thread(chrome, i);
}

/* ------------------------------------------------------- before the events */

/* Whether the caller gives a member of this name itself. */
static bool is_given(const struct snd_chrome *chrome, const char *key)
{
    const char *const *at = chrome->options->metadata;

    for (; at && at[0] && at[1]; at += 2)
        if (strcmp(at[0], key) == 0)
            return true;
    return false;
}

/* Whether a pair is left out: its key is one of ours, or a later pair has the same key. */
static bool is_taken(const char *const *at)
{
    static const char *const ours[] = { "schemaVersion",   "deviceProperties",
                                        "displayTimeUnit", "baseTimeNanoseconds",
                                        "traceEvents",     "traceName",
                                        "metadata",        "rangesTooDeep" };

    for (size_t i = 0; i < SND_COUNT_OF(ours); i++)
        if (strcmp(at[0], ours[i]) == 0)
            return true;
    for (const char *const *later = at + 2; later[0] && later[1]; later += 2)
        if (strcmp(at[0], later[0]) == 0)
            return true;
    return false;
}

static void put_given(struct snd_chrome *chrome)
{
    const char *const *at = chrome->options->metadata;

    for (; at && at[0] && at[1]; at += 2) {
        if (is_taken(at))
            continue;
        if (snd_json_is_value(at[1], strlen(at[1])))
            snd_json_raw(&chrome->json, at[0], at[1], strlen(at[1]));
        else
            snd_json_text(&chrome->json, at[0], at[1]);
    }
}

/* torch's marks of what was recorded, by the probe's note {"record_shapes": true, ..}. */
static void put_flags(struct snd_chrome *chrome, const char *note)
{
    static const char *const flags[] = { "record_shapes", "profile_memory", "with_stack",
                                         "with_flops", "with_modules" };

    for (size_t i = 0; i < SND_COUNT_OF(flags); i++) {
        char on[40];
        snprintf(on, sizeof on, "\"%s\": true", flags[i]);
        if (strstr(note, on) && !is_given(chrome, flags[i]))
            snd_json_int(&chrome->json, flags[i], 1);
    }
}

/* The first note of torch's options in the trace; "": none. */
static const char *find_options(const struct snd_chrome *chrome)
{
    struct sonde_text value;

    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        if (snd_meta_find(chrome->trace, i, SND_META_TORCH_OPTIONS, &value))
            return value.bytes;
    return "";
}

static void put_torch_head(struct snd_chrome *chrome, const struct sonde_process *process)
{
    put_flags(chrome, find_options(chrome));
    snd_chrome_gpu_properties(chrome);
    if (!is_given(chrome, "host_name"))
        snd_json_text(&chrome->json, "host_name", process->host);
}

void snd_chrome_head(struct snd_chrome *chrome)
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
    else if (chrome->gpu.devices)
        snd_chrome_gpu_properties(chrome);
    if (!is_given(chrome, "distributedInfo"))
        snd_chrome_distributed(chrome, !torch && !is_given(chrome, "host_name"));
    put_given(chrome);
    snd_json_text(&chrome->json, "displayTimeUnit", "ms");
    snd_json_int(&chrome->json, "baseTimeNanoseconds", base_ns);
}

/* --------------------------------------------------- torch's, around the events */

static void put_recording(struct snd_json *json, int64_t start_ns, int64_t end_ns)
{
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "X");
    snd_json_text(json, "cat", "Trace");
    snd_json_text(json, "name", "PyTorch Profiler (0)");
    snd_json_text(json, "pid", "Spans");
    snd_json_text(json, "tid", "PyTorch Profiler");
    snd_json_us(json, "ts", start_ns);
    snd_json_us(json, "dur", end_ns - start_ns);
    snd_json_object(json, "args");
    snd_json_int(json, "Op count", 0);
    snd_json_end(json);
    snd_json_end(json);
}

/* Puts the recording's row below all processes. */
static void put_recording_place(struct snd_json *json, int64_t start_ns)
{
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "M");
    snd_json_text(json, "name", "process_sort_index");
    snd_json_us(json, "ts", start_ns);
    snd_json_text(json, "pid", "Spans");
    snd_json_int(json, "tid", 0);
    snd_json_object(json, "args");
    snd_json_int(json, "sort_index", 536870912);
    snd_json_end(json);
    snd_json_end(json);
}

static void put_moment(struct snd_json *json, const char *name, const char *process,
                       const char *thread, int64_t ns)
{
    snd_json_object(json, NULL);
    snd_json_text(json, "ph", "i");
    snd_json_text(json, "s", "g");
    snd_json_text(json, "name", name);
    snd_json_text(json, "pid", process);
    snd_json_text(json, "tid", thread);
    snd_json_us(json, "ts", ns);
    snd_json_end(json);
}

void snd_chrome_window(struct snd_chrome *chrome)
{
    const struct sonde_process *torch = find_torch(chrome);

    if (!torch)
        return;
    int64_t start_ns = torch->start_ns;
    int64_t end_ns = torch->stop_ns > chrome->totals.last_ns ? torch->stop_ns
                                                             : chrome->totals.last_ns;
    put_recording(&chrome->json, start_ns, end_ns);
    put_recording_place(&chrome->json, start_ns);
    put_moment(&chrome->json, "Iteration Start: PyTorch Profiler", "Traces",
               "Trace PyTorch Profiler", start_ns);
    put_moment(&chrome->json, "Record Window End", "", "", end_ns);
}

/* -------------------------------------------------------- after the events */

/* Metadata that the probe writes for our reader: modules and threads, shown elsewhere. */
static bool is_note(struct sonde_text key)
{
    return snd_meta_is(key, SND_META_MODULE) || snd_meta_is(key, SND_META_TORCH_THREAD);
}

/* A key comes from the trace and may hold any bytes, so it is escaped like a value. */
static void put_metadata(struct snd_chrome *chrome, uint32_t process)
{
    struct sonde_text key, value;

    for (uint32_t n = 0; sonde_trace_metadata(chrome->trace, process, n, &key, &value); n++) {
        if (chrome->is_torch[process] && is_note(key))
            continue;
        snd_json_object(&chrome->json, NULL);
        snd_json_uint(&chrome->json, "pid", snd_export_pid(chrome->trace, process));
        snd_json_string(&chrome->json, "key", key.bytes, key.length);
        snd_json_string(&chrome->json, "value", value.bytes, value.length);
        snd_json_end(&chrome->json);
    }
}

/* The name that the caller gave the trace, or that of its file. */
static const char *trace_name(const struct snd_chrome *chrome)
{
    if (chrome->options->name)
        return chrome->options->name;
    if (sonde_trace_process_count(chrome->trace) == 0)
        return "";
    const char *path = sonde_trace_process(chrome->trace, 0)->path;
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void snd_chrome_tail(struct snd_chrome *chrome)
{
    snd_json_text(&chrome->json, "traceName", trace_name(chrome));
    snd_json_array(&chrome->json, "metadata");
    for (uint32_t i = 0; i < sonde_trace_process_count(chrome->trace); i++)
        put_metadata(chrome, i);
    snd_json_end(&chrome->json);
    if (chrome->totals.too_deep > 0)
        snd_json_uint(&chrome->json, "rangesTooDeep", chrome->totals.too_deep);
}
