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
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/common/exporter.h"
#include "model/torch_stacks.h"

/* ------------------------------------------------------------------- whole */

static enum sonde_status write_events(struct snd_chrome *chrome, struct sonde_error *err)
{
    snd_json_init(&chrome->json, chrome->out);
    snd_json_break_at(&chrome->json, 2);
    snd_json_object(&chrome->json, NULL);
    snd_chrome_head(chrome);
    snd_json_array(&chrome->json, "traceEvents");
    snd_chrome_names(chrome);
    snd_chrome_gpu_names(chrome);
    struct snd_spans_calls calls = { .begin = snd_chrome_on_begin,
                                     .end = snd_chrome_on_end,
                                     .event = snd_chrome_on_event,
                                     .user = chrome,
                                     .gpu = &chrome->gpu,
                                     .ahead = true };
    enum sonde_status      st = snd_spans_walk(chrome->trace, &calls, &chrome->totals, err);
    if (st == SONDE_OK && chrome->text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for a name or a stack");
    if (st == SONDE_OK && !snd_chrome_gpu_works(chrome))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what the GPUs did");
    if (st != SONDE_OK)
        return st;
    snd_chrome_window(chrome);
    snd_json_end(&chrome->json);
    snd_chrome_tail(chrome);
    snd_json_end(&chrome->json);
    return SONDE_OK;
}

static bool prepare(struct snd_chrome *chrome)
{
    uint32_t processes = sonde_trace_process_count(chrome->trace);

    chrome->is_torch = calloc((size_t)processes + 1, sizeof *chrome->is_torch);
    if (!chrome->is_torch || !snd_chrome_ranges_init(chrome))
        return false;
    for (uint32_t i = 0; i < processes; i++)
        chrome->is_torch[i] = snd_export_is_torch(chrome->trace, i);
    for (uint32_t i = 0; i < chrome->trace->names.count && !chrome->has_steps; i++)
        chrome->has_steps = snd_name_judge(chrome->trace->names.items[i]) & SND_NAME_STEP;
    return true;
}

SND_EXPORT_WRITE(snd_export_chrome)
{
    struct snd_chrome chrome = { .trace = trace, .options = options, .out = out };
    enum sonde_status st = SONDE_OK;

    if (!prepare(&chrome))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for %" PRIu32 " threads",
                      sonde_trace_thread_count(trace));
    if (st == SONDE_OK)
        st = snd_torchgpu_begin(&chrome.gpu, trace, err);
    if (st == SONDE_OK)
        st = snd_trace_devices_by_time(trace, &chrome.gpu.devices, err);
    if (st == SONDE_OK)
        st = snd_chrome_measure_memory(&chrome, err);
    if (st == SONDE_OK)
        st = write_events(&chrome, err);
    snd_chrome_ranges_release(&chrome);
    snd_torchgpu_release(&chrome.gpu);
    free(chrome.memories);
    free(chrome.is_torch);
    snd_rendered_release(&chrome.rendered);
    sonde_buffer_release(&chrome.text);
    return st;
}
