/* SPDX-License-Identifier: Apache-2.0 */
/* The model view: what a model costs as a whole, one row per batch size (sonde/bench.h). */
#include <math.h>
#include <string.h>

#include "base/text/buf.h"
#include "sonde/bench.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "batch_size", "Batch", SND_COUNT, SND_FIT_FIXED },
    { "runs", "Runs", SND_COUNT, SND_FIT_FIXED },
    { "median_ns", "Median", SND_TIME, SND_FIT_FIXED },
    { "mean_ns", "Mean", SND_TIME, SND_FIT_FIXED },
    { "std_ns", "Std", SND_TIME, SND_FIT_FIXED },
    { "min_ns", "Min", SND_TIME, SND_FIT_FIXED },
    { "max_ns", "Max", SND_TIME, SND_FIT_FIXED },
    { "p90_ns", "p90", SND_TIME, SND_FIT_FIXED },
    { "p99_ns", "p99", SND_TIME, SND_FIT_FIXED },
    { "to_device_ns", "To GPU", SND_TIME, SND_FIT_FIXED },
    { "to_host_ns", "From GPU", SND_TIME, SND_FIT_FIXED },
    { "total_ns", "With copies", SND_TIME, SND_FIT_FIXED },
    { "gpu_ns", "On GPU", SND_TIME, SND_FIT_FIXED },
    { "samples_per_second", "Samples/s", SND_REAL, SND_FIT_FIXED },
    { "macs", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "MACs", SND_TEXT, SND_FIT_FIXED },
    { "flops", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "FLOPs", SND_TEXT, SND_FIT_FIXED },
    { "backward_flops", NULL, SND_REAL, SND_FIT_FIXED },
    { "flops_per_second", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "FLOPS", SND_TEXT, SND_FIT_FIXED },
    { "peak_percent", "Of peak", SND_SHARE, SND_FIT_FIXED },
    { "peak_activation_bytes", "Activations", SND_BYTES, SND_FIT_FIXED },
    { "before_bytes", "Mem before", SND_BYTES, SND_FIT_FIXED },
    { "max_bytes", "Mem max", SND_BYTES, SND_FIT_FIXED },
    { "after_bytes", "Mem after", SND_BYTES, SND_FIT_FIXED },
    { "peak_training_bytes", "Training", SND_BYTES, SND_FIT_FIXED },
    { "joules", "Joules", SND_REAL, SND_FIT_FIXED },
};
enum {
    COLUMN_P90 = 7,
    COLUMN_P99 = 8,
    COLUMN_TO_DEVICE = 9,
    COLUMN_GPU = 12,
    COLUMN_OF_PEAK = 21,
    COLUMN_TRAINING = 26,
    COLUMN_JOULES = 27
};

/* What a narrow terminal does without, in this order. */
static const char *const spare[] = { "Mem before",  "Mem after", "Std",   "Max",     "Min",
                                     "From GPU",    "To GPU",    "MACs",  "Of peak", "Activations",
                                     "Runs",        "Mean",      "p90",   "Joules",  "Training",
                                     "With copies", "p99",       "FLOPS", "FLOPs",   NULL };

static struct snd_cell show_count(struct snd_doc *doc, double value, bool known)
{
    return known ? snd_cell_string(snd_doc_count(doc, value)) : snd_cell_none();
}

static struct snd_cell show_real(double value, bool known)
{
    return known ? snd_cell_real(value) : snd_cell_none();
}

static struct snd_cell show_number(double value, bool known)
{
    return known ? snd_cell_number(llround(value)) : snd_cell_none();
}

static struct snd_cell *add_times(struct snd_cell *cell, const struct sonde_bench_batch *b)
{
    const struct sonde_bench_time *t = &b->time[SONDE_BENCH_ON_DEVICE];
    const struct sonde_spread     *s = &t->spread;
    const struct {
        double   ns;
        uint64_t least; /* runs that it takes */
    } times[] = { { s->median_ns, 1 },
                  { s->mean_ns, 1 },
                  { t->sigma_ns, 1 },
                  { (double)s->min_ns, 1 },
                  { (double)s->max_ns, 1 },
                  { (double)s->p90_ns, SONDE_P90_LEAST },
                  { (double)s->p99_ns, SONDE_P99_LEAST } };

    *cell++ = snd_cell_number((int64_t)b->size);
    *cell++ = snd_cell_number((int64_t)s->count);
    for (size_t i = 0; i < SND_COUNT_OF(times); i++)
        *cell++ = show_number(times[i].ns, s->count >= times[i].least);
    for (unsigned part = SONDE_BENCH_TO_DEVICE; part < SONDE_BENCH_PARTS; part++)
        *cell++ = show_number(b->time[part].spread.median_ns, b->time[part].spread.count > 0);
    *cell++ = show_real((double)b->size * 1e9 / s->median_ns, s->count > 0);
    return cell;
}

static void add_row(struct snd_doc *doc, const struct sonde_bench_batch *b, double peak)
{
    struct snd_cell *cell = add_times(snd_table_add(&doc->rows), b);
    bool             known = b->passes > 0;
    double           median = b->time[SONDE_BENCH_ON_DEVICE].spread.median_ns;
    double           rate = median > 0 ? b->flops * 1e9 / median : 0;
    bool             held = known && b->before_bytes >= 0;

    *cell++ = show_real(b->macs, known);
    *cell++ = show_count(doc, b->macs, known);
    *cell++ = show_real(b->flops, known);
    *cell++ = show_count(doc, b->flops, known);
    *cell++ = show_real(b->backward_flops, b->backward_passes > 0);
    *cell++ = show_real(rate, known && rate > 0);
    *cell++ = show_count(doc, rate, known && rate > 0);
    *cell++ = show_real(rate * 100 / peak, known && rate > 0 && peak > 0);
    *cell++ = show_number((double)b->peak_bytes, known);
    *cell++ = show_number((double)b->before_bytes, held);
    *cell++ = show_number((double)b->before_bytes + (double)b->peak_bytes, held);
    *cell++ = show_number((double)b->before_bytes + (double)b->held_bytes, held);
    *cell++ = show_number((double)b->backward_peak_bytes, b->backward_passes > 0);
    *cell++ = show_real(b->joules, !isnan(b->joules));
}

/* ------------------------------------------------------------------------ totals */

static void add_text(struct snd_doc *doc, const char *key, const char *title,
                     struct sonde_text text)
{
    snd_doc_total(doc, key, text.length ? title : NULL, SND_TEXT, snd_cell_text(text));
}

/* "Intel(R) Xeon(R), 2 cores"; the GPUs' names. */
static void add_machine(struct snd_doc *doc, const struct sonde_bench_machine *m)
{
    struct sonde_buffer names = { 0 };

    if (m->cpus >= 0)
        snd_doc_total(doc, "processor", "Processor", SND_TEXT,
                      snd_cell_string(
                          snd_doc_format(doc, "%s, %lld cores", m->cpu.bytes, (long long)m->cpus)));
    if (m->memory_bytes >= 0)
        snd_doc_total(doc, "memory_bytes", "Memory", SND_BYTES, snd_cell_number(m->memory_bytes));
    for (size_t i = 0; i < m->gpu_count; i++)
        snd_buf_format(&names, "%s%s", i > 0 ? ", " : "", m->gpus[i].name.bytes);
    if (m->gpu_count > 0)
        snd_doc_total(doc, "gpus", "GPUs", SND_TEXT, snd_cell_string(snd_doc_take(doc, &names)));
}

/* "8x3x224x224 float32 (from --input)", of the largest batch size. */
static void add_input(struct snd_doc *doc, const struct sonde_bench *bench)
{
    const struct sonde_bench_batch *told = NULL;

    for (size_t i = 0; i < sonde_bench_count(bench); i++)
        if (sonde_bench_batch(bench, i)->input.length > 0)
            told = sonde_bench_batch(bench, i);
    if (!told)
        return;
    snd_doc_total(doc, "input", "Input", SND_TEXT,
                  told->input_source.length == 0
                      ? snd_cell_text(told->input)
                      : snd_cell_string(snd_doc_format(doc, "%s (%s)", told->input.bytes,
                                                       told->input_source.bytes)));
}

static void add_totals(struct snd_doc *doc, const struct sonde_bench *bench,
                       const struct sonde_bench_model *m)
{
    add_text(doc, "model", "Model", m->name);
    add_text(doc, "class", "Class", m->kind);
    add_text(doc, "device", "Device", m->device);
    add_text(doc, "dtype", "Data type", m->dtype);
    add_input(doc, bench);
    if (m->machine.is_known)
        add_machine(doc, &m->machine);
    if (m->parameters >= 0) {
        snd_doc_total(doc, "parameters", "Parameters", SND_COUNT, snd_cell_number(m->parameters));
        snd_doc_total(doc, "trainable", m->trainable != m->parameters ? "Trainable" : NULL,
                      SND_COUNT, snd_cell_number(m->trainable));
        snd_doc_total(doc, "parameter_bytes", "Model size", SND_BYTES,
                      snd_cell_number(m->parameter_bytes));
        snd_doc_total(doc, "buffer_bytes", m->buffer_bytes > 0 ? "Buffers" : NULL, SND_BYTES,
                      snd_cell_number(m->buffer_bytes));
    }
    if (m->peak_flops > 0)
        snd_doc_total(doc, "peak_gflops_per_second", "Peak GFLOPS of matrix products", SND_REAL,
                      snd_cell_real(m->peak_flops / 1e9));
    add_text(doc, "energy", "Energy", m->energy);
    add_text(doc, "failure", "Failed", m->failure);
}

SND_DOC_RELEASE(free_bench, sonde_bench_free)

SND_VIEW_BUILD(snd_view_model)
{
    bool     copies = false, training = false, energy = false, peak = false, gpu = false;
    uint64_t runs = 0; /* the most of a batch size */

    (void)options;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    struct sonde_bench *bench = NULL;
    enum sonde_status   st = sonde_bench_new(trace, &bench, err);
    snd_doc_keep(doc, bench, free_bench);
    if (st != SONDE_OK)
        return st;
    const struct sonde_bench_model *m = sonde_bench_model(bench);
    for (size_t i = 0; i < sonde_bench_count(bench); i++) {
        const struct sonde_bench_batch *b = sonde_bench_batch(bench, i);
        if (b->passes == 0 && b->time[SONDE_BENCH_ON_DEVICE].spread.count == 0)
            continue; /* its first pass failed */
        add_row(doc, b, m->peak_flops);
        copies |= b->time[SONDE_BENCH_TOTAL].spread.count > 0;
        gpu |= b->time[SONDE_BENCH_GPU].spread.count > 0;
        training |= b->backward_passes > 0;
        energy |= !isnan(b->joules);
        peak |= m->peak_flops > 0;
        uint64_t count = b->time[SONDE_BENCH_ON_DEVICE].spread.count;
        runs = count > runs ? count : runs;
    }
    doc->rows.hidden[COLUMN_P90] = runs < SONDE_P90_LEAST;
    doc->rows.hidden[COLUMN_P99] = runs < SONDE_P99_LEAST;
    for (int i = 0; i < 3; i++)
        doc->rows.hidden[COLUMN_TO_DEVICE + i] = !copies;
    if (!gpu)
        snd_table_leave_out(&doc->rows, COLUMN_GPU);
    doc->rows.hidden[COLUMN_TRAINING] = !training;
    doc->rows.hidden[COLUMN_JOULES] = !energy;
    doc->rows.hidden[COLUMN_OF_PEAK] = !peak;
    add_totals(doc, bench, m);
    doc->totals_first = true;
    doc->rows.spare = spare;
    doc->rows_title = "Forward pass, by batch size";
    return SONDE_OK;
}
