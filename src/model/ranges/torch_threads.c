/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranges/torch_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "read/said/trace_metadata.h"

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
