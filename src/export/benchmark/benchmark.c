/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/benchmark/benchmark.c - a model's cost in pytorch-benchmark's form, as YAML or JSON.
 *
 * Its keys, with its meaning and units; beside them what it does not tell: medians and
 * percentiles, MACs, activations, the share of the machine's peak, layers, operators. Where one
 * of its keys means something else here, docs/MODEL.md says so.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "export/benchmark/benchmark_lists.h"
#include "export/common/exporter.h"
#include "read/file/scale.h"

/* ------------------------------------------------------- pytorch-benchmark's words */

/* "6.96 K", "1.25 GB". */
static const char *format_number(char text[64], double number, bool is_bytes)
{
    static const char *const units[] = { "", " K", " M", " G", " T", " P" };
    double                   factor = is_bytes ? 1024 : 1000;
    size_t                   unit = 0;
    char                     digits[SND_NUMBER_MAX];

    while (fabs(number) >= factor && unit + 1 < SND_COUNT_OF(units)) {
        number /= factor;
        unit++;
    }
    snd_number_fixed(digits, 2, number);
    snprintf(text, 64, "%.32s%s%s", digits, units[unit], is_bytes ? "B" : "");
    return text;
}

static const char *format_seconds(char text[64], double ns)
{
    char whole[SND_NUMBER_MAX];

    snprintf(text, 64, "%.60s", snd_time_text(whole, ns / 1e3, " "));
    return text;
}

static void put_number(struct snd_emit *e, const char *key, double number, bool is_bytes)
{
    char text[64];

    snd_emit_string(e, key, format_number(text, number, is_bytes));
}

/* ----------------------------------------------------------------------- machine */

static void put_told(struct snd_emit *e, const char *key, struct sonde_text text)
{
    if (text.length > 0)
        snd_emit_text(e, key, text.bytes, text.length);
}

static void put_system(struct snd_emit *e, const struct sonde_bench_machine *m)
{
    snd_emit_map(e, "system");
    put_told(e, "system", m->system);
    put_told(e, "node", m->node);
    put_told(e, "release", m->release);
    snd_emit_end(e);
}

static void put_cpu(struct snd_emit *e, const struct sonde_bench_machine *m)
{
    char text[64], digits[SND_NUMBER_MAX];

    snd_emit_map(e, "cpu");
    snd_emit_text(e, "model", m->cpu.bytes, m->cpu.length);
    put_told(e, "architecture", m->architecture);
    snd_emit_map(e, "cores");
    snd_emit_int(e, "physical", m->cores);
    snd_emit_int(e, "total", m->cpus);
    snd_emit_end(e);
    if (m->hertz > 0) {
        snprintf(text, sizeof text, "%.32s GHz", snd_number_fixed(digits, 2, m->hertz / 1e9));
        snd_emit_string(e, "frequency", text);
    }
    snd_emit_end(e);
}

static void put_memory_sizes(struct snd_emit *e, const struct sonde_bench_machine *m)
{
    snd_emit_map(e, "memory");
    put_number(e, "total", (double)m->memory_bytes, true);
    put_number(e, "used", (double)m->used_bytes, true);
    put_number(e, "available", (double)m->available_bytes, true);
    snd_emit_end(e);
}

static void put_gpus(struct snd_emit *e, const struct sonde_bench_machine *m)
{
    char text[64];

    if (m->gpu_count == 0) {
        snd_emit_null(e, "gpus");
        return;
    }
    snd_emit_list(e, "gpus");
    for (size_t i = 0; i < m->gpu_count; i++) {
        snd_emit_item(e);
        snd_emit_text(e, "name", m->gpus[i].name.bytes, m->gpus[i].name.length);
        snprintf(text, sizeof text, "%.0f MB", (double)m->gpus[i].memory_bytes / 1048576);
        snd_emit_string(e, "memory", text);
        snd_emit_end(e);
    }
    snd_emit_end(e);
}

static void put_machine(struct snd_emit *e, const struct sonde_bench_machine *m)
{
    if (!m->is_known)
        return;
    snd_emit_map(e, "machine_info");
    put_system(e, m);
    if (m->cpus >= 0)
        put_cpu(e, m);
    if (m->memory_bytes >= 0)
        put_memory_sizes(e, m);
    put_gpus(e, m);
    snd_emit_end(e);
}

/* ------------------------------------------------------------------------- model */

/* What pytorch-benchmark measures at batch size 1; of the smallest, its share. */
static void put_work(struct snd_emit *e, const struct sonde_bench *bench)
{
    const struct sonde_bench_batch *least = NULL;

    for (size_t i = 0; i < sonde_bench_count(bench) && !least; i++)
        if (sonde_bench_batch(bench, i)->passes > 0)
            least = sonde_bench_batch(bench, i);
    if (!least)
        return;
    snd_emit_int(e, "flops", llround(least->flops / (double)least->size));
    snd_emit_int(e, "macs", llround(least->macs / (double)least->size));
}

static void put_model(struct snd_emit *e, const struct sonde_bench_model *m)
{
    char   text[64];
    size_t type = 0;

    while (type < m->device.length && m->device.bytes[type] != ':')
        type++;
    if (m->device.length > 0)
        snd_emit_text(e, "device", m->device.bytes, type);
    put_machine(e, &m->machine);
    snd_emit_map(e, "model");
    snd_emit_text(e, "name", m->name.bytes, m->name.length);
    snd_emit_text(e, "class", m->kind.bytes, m->kind.length);
    snd_emit_text(e, "dtype", m->dtype.bytes, m->dtype.length);
    if (m->parameter_bytes >= 0) {
        snd_emit_int(e, "parameters", m->parameters);
        snd_emit_int(e, "parameter_bytes", m->parameter_bytes);
        snd_emit_int(e, "buffer_bytes", m->buffer_bytes);
        snd_emit_string(e, "size",
                        format_number(text, (double)m->parameter_bytes + (double)m->buffer_bytes,
                                      true));
    }
    snd_emit_end(e);
    if (m->failure.length > 0)
        snd_emit_text(e, "failure", m->failure.bytes, m->failure.length);
    if (m->trainable >= 0)
        snd_emit_int(e, "params", m->trainable);
}

/* ------------------------------------------------------------------------ memory */

static void put_memory(struct snd_emit *e, const struct sonde_bench_batch *b)
{
    double before = (double)b->before_bytes;

    snd_emit_int(e, "pre_inference_bytes", b->before_bytes);
    snd_emit_int(e, "max_inference_bytes", snd_add(b->before_bytes, b->peak_bytes));
    snd_emit_int(e, "post_inference_bytes", snd_add(b->before_bytes, b->held_bytes));
    put_number(e, "pre_inference", before, true);
    put_number(e, "max_inference", before + (double)b->peak_bytes, true);
    put_number(e, "post_inference", before + (double)b->held_bytes, true);
    snd_emit_int(e, "input_bytes", b->input_bytes);
    snd_emit_int(e, "peak_activation_bytes", b->peak_bytes);
    snd_emit_int(e, "output_bytes", b->held_bytes);
    if (b->backward_passes > 0)
        snd_emit_int(e, "peak_training_bytes", b->backward_peak_bytes);
}

/* ------------------------------------------------------------------------ timing */

static const char *const part_names[] = {
    [SONDE_BENCH_ON_DEVICE] = "on_device_inference",
    [SONDE_BENCH_TO_DEVICE] = "cpu_to_gpu",
    [SONDE_BENCH_TO_HOST] = "gpu_to_cpu",
    [SONDE_BENCH_TOTAL] = "total",
    [SONDE_BENCH_GPU] = "gpu",
};

static void put_words(struct snd_emit *e, const struct sonde_bench_time *t)
{
    char a[64], b[64], c[64], d[64], text[300];

    snd_emit_map(e, "human_readable");
    snprintf(text, sizeof text, "%s +/- %s [%s, %s]", format_number(a, t->rate_mean, false),
             format_number(b, t->rate_sigma, false), format_number(c, t->rate_min, false),
             format_number(d, t->rate_max, false));
    snd_emit_string(e, "batches_per_second", text);
    snprintf(text, sizeof text, "%s +/- %s [%s, %s]", format_seconds(a, t->spread.mean_ns),
             format_seconds(b, t->sigma_ns), format_seconds(c, (double)t->spread.min_ns),
             format_seconds(d, (double)t->spread.max_ns));
    snd_emit_string(e, "batch_latency", text);
    snd_emit_end(e);
}

static void put_time(struct snd_emit *e, const char *key, const struct sonde_bench_time *t,
                     uint64_t size)
{
    const struct sonde_spread *s = &t->spread;

    snd_emit_map(e, key);
    snd_emit_map(e, "metrics");
    snd_emit_real(e, "batches_per_second_mean", t->rate_mean);
    snd_emit_real(e, "batches_per_second_std", t->rate_sigma);
    snd_emit_real(e, "batches_per_second_min", t->rate_min);
    snd_emit_real(e, "batches_per_second_max", t->rate_max);
    snd_emit_real(e, "seconds_per_batch_mean", s->mean_ns / 1e9);
    snd_emit_real(e, "seconds_per_batch_std", t->sigma_ns / 1e9);
    snd_emit_real(e, "seconds_per_batch_min", (double)s->min_ns / 1e9);
    snd_emit_real(e, "seconds_per_batch_max", (double)s->max_ns / 1e9);
    snd_emit_real(e, "seconds_per_batch_median", s->median_ns / 1e9);
    if (s->count >= SONDE_P90_LEAST)
        snd_emit_real(e, "seconds_per_batch_p90", (double)s->p90_ns / 1e9);
    if (s->count >= SONDE_P99_LEAST)
        snd_emit_real(e, "seconds_per_batch_p99", (double)s->p99_ns / 1e9);
    snd_emit_real(e, "samples_per_second", (double)size * 1e9 / s->median_ns);
    snd_emit_int(e, "runs", (int64_t)s->count);
    snd_emit_end(e);
    put_words(e, t);
    snd_emit_end(e);
}

static void put_timing(struct snd_emit *e, const struct sonde_bench *bench)
{
    char key[48];

    snd_emit_map(e, "timing");
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (b->time[SONDE_BENCH_ON_DEVICE].spread.count == 0)
            continue;
        snd_emit_map(e, snd_batch_key(key, b->size));
        for (unsigned part = 0; part < SONDE_BENCH_PARTS; part++)
            if (b->time[part].spread.count > 0)
                put_time(e, part_names[part], &b->time[part], b->size);
        snd_emit_end(e);
    }
    snd_emit_end(e);
}

static void put_rates(struct snd_emit *e, const struct sonde_bench *bench)
{
    double peak = sonde_bench_model(bench)->peak_flops;
    char   key[48];

    snd_emit_map(e, "compute");
    if (peak > 0)
        snd_emit_real(e, "peak_flops_per_second", peak);
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        double                          ns = b->time[SONDE_BENCH_ON_DEVICE].spread.median_ns;
        if (b->passes == 0)
            continue;
        snd_emit_map(e, snd_batch_key(key, b->size));
        snd_emit_int(e, "macs", llround(b->macs));
        snd_emit_int(e, "flops", llround(b->flops));
        if (b->backward_passes > 0) {
            snd_emit_int(e, "backward_macs", llround(b->backward_macs));
            snd_emit_int(e, "backward_flops", llround(b->backward_flops));
        }
        if (ns > 0)
            snd_emit_real(e, "flops_per_second", b->flops * 1e9 / ns);
        if (ns > 0 && peak > 0)
            snd_emit_real(e, "share_of_peak", b->flops * 1e9 / ns / peak);
        snd_emit_end(e);
    }
    snd_emit_end(e);
}

static void put_all_memory(struct snd_emit *e, const struct sonde_bench *bench)
{
    char key[48];

    snd_emit_map(e, "memory");
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (b->passes == 0 || b->before_bytes < 0)
            continue;
        snd_emit_map(e, snd_batch_key(key, b->size));
        put_memory(e, b);
        snd_emit_end(e);
    }
    snd_emit_end(e);
}

static void put_inputs(struct snd_emit *e, const struct sonde_bench *bench)
{
    bool begun = false;
    char key[48];

    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (b->input.length == 0)
            continue;
        if (!begun) {
            snd_emit_map(e, "input");
            snd_emit_text(e, "source", b->input_source.bytes, b->input_source.length);
        }
        begun = true;
        snd_emit_text(e, snd_batch_key(key, b->size), b->input.bytes, b->input.length);
    }
    if (begun)
        snd_emit_end(e);
}

static void put_energy(struct snd_emit *e, const struct sonde_bench *bench)
{
    struct sonde_text said = sonde_bench_model(bench)->energy;
    bool              any = false;
    char              key[48];

    if (said.length == 0)
        return;
    snd_emit_map(e, "energy");
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (isnan(b->joules))
            continue;
        any = true;
        snd_emit_map(e, snd_batch_key(key, b->size));
        snd_emit_real(e, "joules", b->joules);
        snd_emit_real(e, "kWh", b->joules / 3.6e6);
        snd_emit_end(e);
    }
    snd_emit_text(e, any ? "source" : "absent", said.bytes, said.length);
    snd_emit_end(e);
}

/* ------------------------------------------------------------------------- whole */

static enum sonde_status write_all(struct sonde_trace *trace, struct snd_out *out, bool is_json,
                                   unsigned levels, struct sonde_error *err)
{
    struct sonde_bench *bench;
    struct snd_emit     emit;
    enum sonde_status   st = sonde_bench_new(trace, &bench, err);

    if (st != SONDE_OK)
        return st;
    if (sonde_bench_model(bench)->name.length == 0 && sonde_bench_count(bench) == 0) {
        sonde_bench_free(bench);
        return snd_fail(err, SONDE_E_STATE,
                        "the trace has no benchmark of a model; record one with sonde model");
    }
    bool is_asked = levels & SONDE_LEVEL_GRAPH;
    levels = levels ? levels
                    : SONDE_LEVEL_MODEL | SONDE_LEVEL_LAYER | SONDE_LEVEL_OP | SONDE_LEVEL_GRAPH;
    snd_emit_init(&emit, out, is_json);
    put_model(&emit, sonde_bench_model(bench));
    put_work(&emit, bench);
    put_inputs(&emit, bench);
    if (levels & SONDE_LEVEL_MODEL) {
        put_all_memory(&emit, bench);
        put_timing(&emit, bench);
        put_rates(&emit, bench);
        put_energy(&emit, bench);
    }
    if (levels & SONDE_LEVEL_LAYER)
        st = snd_benchmark_layers(&emit, bench, err);
    if (st == SONDE_OK && levels & SONDE_LEVEL_OP)
        st = snd_benchmark_operators(&emit, bench, err);
    if (st == SONDE_OK && levels & SONDE_LEVEL_GRAPH)
        st = snd_benchmark_graph(&emit, trace, is_asked, err);
    snd_emit_finish(&emit);
    sonde_bench_free(bench);
    return st;
}

SND_EXPORT_WRITE(snd_export_benchmark)
{
    return write_all(trace, out, false, options->levels, err);
}

SND_EXPORT_WRITE(snd_export_benchmark_json)
{
    return write_all(trace, out, true, options->levels, err);
}
