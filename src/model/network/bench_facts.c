/* SPDX-License-Identifier: Apache-2.0 */
/* model/network/bench_facts.c - what a trace says of a measured model: its facts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "model/network/bench.h"
#include "read/said/trace_facts.h"

struct sonde_bench_batch *snd_bench_find_batch(struct sonde_bench *b, uint64_t size,
                                               uint32_t *index)
{
    for (*index = 0; *index < b->batch_count; ++*index)
        if (b->batches[*index].size == size)
            return &b->batches[*index];
    if (b->batch_count == BATCHES_MAX)
        return NULL;
    struct sonde_bench_batch *batch = &b->batches[b->batch_count++];
    *batch = (struct sonde_bench_batch){
        .size = size,
        .input_bytes = -1,
        .before_bytes = -1,
        .joules = (double)NAN,
        .input = { "", 0 },
        .input_source = { "", 0 },
    };
    return batch;
}

static struct sonde_text keep_text(struct sonde_bench *b, const char *bytes, size_t length)
{
    uint32_t number;

    if (!snd_texts_add(&b->texts, bytes ? bytes : "", length, &number)) {
        b->assembly.out_of_memory = true;
        return (struct sonde_text){ "", 0 };
    }
    return (struct sonde_text){ b->texts.items[number].bytes, length };
}

/* Facts of another process of the trace stay where this one has none. */
static void set_text(struct sonde_bench *b, const struct snd_fact *fact, unsigned field,
                     struct sonde_text *out)
{
    struct sonde_text text = snd_fact_text(fact, field);

    if (text.length > 0)
        *out = keep_text(b, text.bytes, text.length);
}

static void read_model(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact)
{
    struct sonde_bench_model *m = &b->model;

    (void)process;
    set_text(b, fact, SND_FIELD_MODEL_NAME, &m->name);
    set_text(b, fact, SND_FIELD_MODEL_CLASS, &m->kind);
    set_text(b, fact, SND_FIELD_MODEL_DEVICE, &m->device);
    set_text(b, fact, SND_FIELD_MODEL_DTYPE, &m->dtype);
    m->parameters = snd_fact_number(fact, SND_FIELD_MODEL_PARAMETERS, -1);
    m->trainable = snd_fact_number(fact, SND_FIELD_MODEL_TRAINABLE, -1);
    m->parameter_bytes = snd_fact_number(fact, SND_FIELD_MODEL_PARAMETER_BYTES, -1);
    m->buffer_bytes = snd_fact_number(fact, SND_FIELD_MODEL_BUFFER_BYTES, -1);
}

/* Its name, then its memory. */
static void read_gpus(struct sonde_bench *b, const struct snd_fact *fact)
{
    struct sonde_bench_machine *m = &b->model.machine;
    struct sonde_bench_gpu     *gpus = calloc((size_t)fact->count + 1, sizeof *gpus);

    free(b->gpus);
    m->gpus = b->gpus = gpus;
    m->gpu_count = 0;
    b->assembly.out_of_memory |= !gpus;
    for (uint32_t i = 0; gpus && i < fact->count; i++) {
        const struct snd_fact_value *value = &fact->values[i];
        if (value->field == SND_FIELD_MACHINE_GPU)
            gpus[m->gpu_count++] =
                (struct sonde_bench_gpu){ keep_text(b, value->text.bytes, value->text.length), -1 };
        else if (value->field == SND_FIELD_MACHINE_GPU_BYTES && m->gpu_count > 0)
            gpus[m->gpu_count - 1].memory_bytes = value->number;
    }
}

static void read_machine(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact)
{
    struct sonde_bench_machine *m = &b->model.machine;

    (void)process;
    m->is_known = true;
    set_text(b, fact, SND_FIELD_MACHINE_SYSTEM, &m->system);
    set_text(b, fact, SND_FIELD_MACHINE_NODE, &m->node);
    set_text(b, fact, SND_FIELD_MACHINE_RELEASE, &m->release);
    set_text(b, fact, SND_FIELD_MACHINE_CPU, &m->cpu);
    set_text(b, fact, SND_FIELD_MACHINE_ARCHITECTURE, &m->architecture);
    m->cores = snd_fact_number(fact, SND_FIELD_MACHINE_CORES, -1);
    m->cpus = snd_fact_number(fact, SND_FIELD_MACHINE_CPUS, -1);
    m->hertz = snd_fact_real(fact, SND_FIELD_MACHINE_HERTZ, 0);
    m->memory_bytes = snd_fact_number(fact, SND_FIELD_MACHINE_MEMORY_BYTES, -1);
    m->used_bytes = snd_fact_number(fact, SND_FIELD_MACHINE_USED_BYTES, -1);
    m->available_bytes = snd_fact_number(fact, SND_FIELD_MACHINE_AVAILABLE_BYTES, -1);
    read_gpus(b, fact);
}

static void read_failure(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact)
{
    (void)process;
    set_text(b, fact, SND_FIELD_FAILURE_REASON, &b->model.failure);
}

static void read_batch(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact)
{
    int64_t  size = snd_fact_number(fact, SND_FIELD_BATCH_SIZE, 0);
    uint32_t index;

    struct sonde_bench_batch *batch = size > 0 ? snd_bench_find_batch(b, (uint64_t)size, &index)
                                               : NULL;
    if (!batch)
        return;
    batch->input_bytes = snd_fact_number(fact, SND_FIELD_BATCH_INPUT_BYTES, -1);
    batch->before_bytes = snd_fact_number(fact, SND_FIELD_BATCH_BEFORE_BYTES, -1);
    set_text(b, fact, SND_FIELD_BATCH_INPUT, &batch->input);
    set_text(b, fact, SND_FIELD_BATCH_INPUT_SOURCE, &batch->input_source);
    const char *path = sonde_trace_process(b->trace, process)->path;
    if (snd_fact_number(fact, SND_FIELD_BATCH_BACKWARD, 0))
        batch->train_path = path;
    else
        batch->path = path;
}

/* Of a batch size, or why there is none. */
static void read_energy(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact)
{
    int64_t  size = snd_fact_number(fact, SND_FIELD_ENERGY_BATCH, 0);
    int64_t  runs = snd_fact_number(fact, SND_FIELD_ENERGY_RUNS, 0);
    double   before = snd_fact_real(fact, SND_FIELD_ENERGY_BEFORE_UJ, (double)NAN);
    double   after = snd_fact_real(fact, SND_FIELD_ENERGY_AFTER_UJ, (double)NAN);
    uint32_t index;

    (void)process;
    set_text(b, fact, SND_FIELD_ENERGY_ABSENT, &b->model.energy);
    set_text(b, fact, SND_FIELD_ENERGY_SOURCE, &b->model.energy);
    struct sonde_bench_batch *batch = size > 0 ? snd_bench_find_batch(b, (uint64_t)size, &index)
                                               : NULL;
    if (batch && runs > 0 && after > before)
        batch->joules = (after - before) / 1e6 / (double)runs;
}

void snd_bench_read_facts(struct sonde_bench *b)
{
    static const struct {
        uint32_t kind;
        void (*read)(struct sonde_bench *b, uint32_t process, const struct snd_fact *fact);
    } readers[] = {
        { SND_FACT_OF_MODEL, read_model },     { SND_FACT_OF_MACHINE, read_machine },
        { SND_FACT_OF_BATCH, read_batch },     { SND_FACT_OF_ENERGY, read_energy },
        { SND_FACT_OF_FAILURE, read_failure },
    };
    const struct snd_fact *fact;

    for (uint32_t p = 0; p < b->trace->process_count; p++)
        for (size_t i = 0; i < SND_COUNT_OF(readers); i++)
            for (uint32_t at = 0; (fact = snd_fact_next(b->trace, p, readers[i].kind, &at));)
                readers[i].read(b, p, fact);
    struct sonde_text device = b->model.device;
    b->device_type = device.length >= 4 && memcmp(device.bytes, "cuda", 4) == 0;
}
