/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/torch_rules.c - what names mean to torch, and how it numbers threads. */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "base/text/compare.h"
#include "format/known.h"
#include "model/ranges/open_ranges.h"
#include "model/ranges/torch_rules.h"
#include "read/said/trace_metadata.h"

/* ---------------------------------------------------------------------- names */

/* torch calls them utility operators: profiler_util._filter_name. */
static bool is_hidden(struct snd_text name)
{
    static const char *const hidden[] = {
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
    };

    for (size_t i = 0; i < SND_COUNT_OF(hidden); i++)
        if (snd_equals_at(name.bytes, name.length, hidden[i]))
            return true;
    return false;
}

static bool is_step(struct snd_text name)
{
    static const char prefix[] = "ProfilerStep#";
    size_t            length = sizeof prefix - 1;

    if (name.length <= length || !snd_begins_with_at(name.bytes, name.length, prefix))
        return false;
    for (size_t i = length; i < name.length; i++)
        if (name.bytes[i] < '0' || name.bytes[i] > '9')
            return false;
    return true;
}

static bool is_pass(struct snd_text name)
{
    const char *const forward = snd_known_name(SND_KNOWN_MODEL_PASS),
                      *train = snd_known_name(SND_KNOWN_MODEL_TRAIN);

    return snd_begins_with_at(name.bytes, name.length, forward) ||
           snd_begins_with_at(name.bytes, name.length, train);
}

uint8_t snd_name_judge(struct snd_text name)
{
    static const char evaluate[] = "autograd::engine::evaluate_function: ";
    uint8_t           flags = 0;

    if (name.length > 8 && (name.bytes[0] == 'a' || name.bytes[0] == 'p') && is_hidden(name))
        flags |= SND_NAME_HIDDEN;
    if (snd_begins_with_at(name.bytes, name.length, evaluate))
        flags |= SND_NAME_EVALUATE;
    if (is_step(name))
        flags |= SND_NAME_STEP;
    if (is_pass(name))
        flags |= SND_NAME_PASS;
    return flags;
}

bool snd_assembly_names(struct snd_assembly *a)
{
    uint32_t count = a->trace->names.count;

    a->name_flags = calloc((size_t)count + 1, sizeof *a->name_flags);
    for (uint32_t i = 0; a->name_flags && i < count; i++)
        a->name_flags[i] = snd_name_judge(a->trace->names.items[i]);
    return a->name_flags != NULL;
}

/* -------------------------------------------------------------------- threads */

static bool read_notes(const struct sonde_trace *trace, uint32_t process, struct snd_map *numbers)
{
    struct sonde_text tid, value;

    for (uint32_t n = 0; snd_meta_next(trace, process, SND_META_TORCH_THREAD, &n, &tid, &value);) {
        unsigned long  number = strtoul(value.bytes, NULL, 10);
        struct snd_key where = { process, strtoul(tid.bytes, NULL, 10), 0 };
        if (number < UINT32_MAX && !snd_map_put(numbers, where, (uint32_t)number))
            return false;
    }
    return true;
}

uint32_t *snd_torch_threads(const struct sonde_trace *trace)
{
    uint32_t       count = sonde_trace_thread_count(trace);
    uint32_t      *threads = calloc((size_t)count + 1, sizeof *threads);
    struct snd_map numbers = { 0 };
    bool           good = threads != NULL;

    for (uint32_t p = 0; good && p < sonde_trace_process_count(trace); p++)
        good = read_notes(trace, p, &numbers);
    for (uint32_t i = 0; good && numbers.count > 0 && i < count; i++) {
        const struct sonde_thread *thread = sonde_trace_thread(trace, i);
        snd_map_get(&numbers, (struct snd_key){ thread->process, thread->tid, 0 }, &threads[i]);
    }
    snd_map_release(&numbers);
    if (!good) {
        free(threads);
        return NULL;
    }
    return threads;
}
