/* SPDX-License-Identifier: Apache-2.0 */
#include "read/part.h"

#include <stdlib.h>

#include "read/walk/device_work.h"
#include "read/walk/kinds.h"

/* Numbers of the whole's processes in the part; SONDE_NONE: not in it. */
static void number_processes(const struct sonde_trace *whole, const bool *is_chosen,
                             uint32_t *numbers, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < whole->process_count; i++) {
        bool chosen = is_chosen[i];
        for (uint32_t k = 0; whole->processes[i].is_guest && k < i; k++)
            if (!whole->processes[k].is_guest &&
                whole->processes[k].first_thread == whole->processes[i].first_thread)
                chosen = is_chosen[k];
        numbers[i] = chosen ? (*count)++ : SONDE_NONE;
    }
}

/* The threads that a file has records of, which may belong to processes without a file. */
static void copy_threads(struct sonde_trace *part, const struct sonde_trace *whole,
                         const struct snd_process *file, const uint32_t *numbers)
{
    for (uint32_t i = 0; i < file->thread_count; i++) {
        struct snd_reader_thread thread = whole->threads[file->first_thread + i];
        thread.shown.process = numbers[thread.shown.process];
        part->threads[part->thread_count++] = thread;
    }
}

static void copy_processes(struct sonde_trace *part, const struct sonde_trace *whole,
                           const uint32_t *numbers, uint32_t *first_threads)
{
    for (uint32_t i = 0; i < whole->process_count; i++) {
        struct snd_process p = whole->processes[i];
        if (numbers[i] == SONDE_NONE)
            continue;
        if (!p.is_guest) {
            first_threads[p.first_thread] = part->thread_count;
            copy_threads(part, whole, &p, numbers);
        }
        p.first_thread = first_threads[p.first_thread]; /* of guests: they follow their hosts */
        part->processes[part->process_count++] = p;
    }
}

enum sonde_status snd_part_open(struct snd_part *part, struct sonde_trace *whole,
                                const bool *is_chosen, struct sonde_error *err)
{
    uint32_t  count = 0;
    uint32_t *numbers = calloc((size_t)whole->process_count + 1, sizeof *numbers);
    uint32_t *first_threads = calloc((size_t)whole->thread_count + 1, sizeof *first_threads);

    *part = (struct snd_part){ .whole = whole,
                               .trace = { .names = whole->names,
                                          .unknown_name = whole->unknown_name,
                                          .arena = whole->arena,
                                          .is_folder = whole->is_folder } };
    if (numbers)
        number_processes(whole, is_chosen, numbers, &count);
    part->trace.processes = calloc((size_t)count + 1, sizeof *part->trace.processes);
    part->trace.threads = calloc((size_t)whole->thread_count + 1, sizeof *part->trace.threads);
    bool good = numbers && first_threads && part->trace.processes && part->trace.threads;
    if (good)
        copy_processes(&part->trace, whole, numbers, first_threads);
    free(numbers);
    free(first_threads);
    return good ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for a part of the trace");
}

void snd_part_close(struct snd_part *part)
{
    part->whole->names = part->trace.names; /* a model may have added to both */
    part->whole->arena = part->trace.arena;
    snd_devices_free(part->trace.devices);
    snd_kinds_free(part->trace.kinds);
    free(part->trace.processes);
    free(part->trace.threads);
}
