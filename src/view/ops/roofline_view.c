/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roofline view: of each operator with a formula, how many operations it did for a byte that it
 * moved, how fast, and how near that is to what the machine can do.
 */
#include <math.h>

#include "model/network/roof.h"
#include "read/said/trace_facts.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "name", "Name", SND_TEXT, SND_FIT_NAME },
    { "device", "Device", SND_TEXT, SND_FIT_FIXED },
    { "count", "# of Calls", SND_COUNT, SND_FIT_FIXED },
    { "time_ns", "Time", SND_TIME, SND_FIT_FIXED },
    { "flops", NULL, SND_REAL, SND_FIT_FIXED },
    { "moved_bytes", NULL, SND_REAL, SND_FIT_FIXED },
    { NULL, "FLOPs", SND_TEXT, SND_FIT_FIXED },
    { NULL, "Moved", SND_TEXT, SND_FIT_FIXED },
    { "intensity", "FLOPs/byte", SND_REAL, SND_FIT_FIXED },
    { "gflops_per_second", "GFLOPS", SND_REAL, SND_FIT_FIXED },
    { "gigabytes_per_second", "GB/s", SND_REAL, SND_FIT_FIXED },
    { "roof_percent", "% of roof", SND_SHARE, SND_FIT_FIXED },
    { "bound", "Bound by", SND_TEXT, SND_FIT_FIXED },
};
enum { COLUMN_ROOF = 11, COLUMN_BOUND = 12 };

/* The greatest rate at this intensity: of the processor, or of what memory can bring. */
static double attainable(const struct sonde_roof *roof, double intensity)
{
    return fmin(roof->flops_per_second, intensity * roof->bytes_per_second);
}

static void add_row(struct snd_doc *doc, const struct sonde_average *row,
                    const struct sonde_roof *roof)
{
    bool             on_gpu = row->device_ns > 0;
    double           seconds = (double)(on_gpu ? row->device_ns : row->total_ns) * 1e-9;
    double           intensity = row->flops / row->moved_bytes, rate = row->flops / seconds;
    struct snd_cell *cell = snd_table_add(&doc->rows);

    *cell++ = snd_cell_text(row->name);
    *cell++ = snd_cell_string(on_gpu ? "cuda" : "cpu");
    *cell++ = snd_cell_number((int64_t)row->count);
    *cell++ = snd_cell_number(on_gpu ? row->device_ns : row->total_ns);
    *cell++ = snd_cell_real(row->flops);
    *cell++ = snd_cell_real(row->moved_bytes);
    *cell++ = snd_cell_string(snd_doc_count(doc, row->flops));
    *cell++ = snd_cell_string(snd_doc_format(doc, "%sB", snd_doc_count(doc, row->moved_bytes)));
    *cell++ = snd_cell_real(intensity);
    *cell++ = snd_cell_real(rate * 1e-9);
    *cell++ = snd_cell_real(row->moved_bytes / seconds * 1e-9);
    /* Only the CPU's roof was measured: it does not apply to a GPU. */
    if (!roof || on_gpu) {
        *cell++ = snd_cell_none();
        *cell = snd_cell_none();
        return;
    }
    *cell++ = snd_cell_real(100 * rate / attainable(roof, intensity));
    *cell = snd_cell_string(
        intensity * roof->bytes_per_second < roof->flops_per_second ? "memory" : "compute");
}

static void add_totals(struct snd_doc *doc, const struct sonde_roof *roof)
{
    if (!roof) {
        snd_doc_total(doc, "roof", "Roof", SND_TEXT,
                      snd_cell_string("not measured: record with sonde run --roof"));
        return;
    }
    snd_doc_total(doc, "peak_gflops_per_second", "Peak GFLOPS (measured)", SND_REAL,
                  snd_cell_real(roof->flops_per_second * 1e-9));
    snd_doc_total(doc, "peak_gigabytes_per_second", "Peak GB/s (measured)", SND_REAL,
                  snd_cell_real(roof->bytes_per_second * 1e-9));
    snd_doc_total(doc, "ridge", "Memory-bound below FLOPs/byte", SND_REAL,
                  snd_cell_real(roof->flops_per_second / roof->bytes_per_second));
    snd_doc_total(doc, "roof_threads", "Measured with threads", SND_COUNT,
                  snd_cell_number(roof->threads));
}

SND_VIEW_BUILD(snd_view_roofline)
{
    struct sonde_averages_options asked = { .struct_size = sizeof asked, .flops = options->flops };
    struct sonde_averages        *averages;
    struct sonde_roof             measured;
    bool                          has_roof = snd_roof_find(trace, &measured);

    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    enum sonde_status st = sonde_averages_new(trace, &asked, &averages, err);
    if (st != SONDE_OK)
        return st;
    bool is_light =
        snd_gpus_are_light(trace); /* an operator of a GPU cannot be told from the processor's */
    if (is_light)
        doc->empty = "Which operators ran on a GPU, and for how long, is not in the trace: it was "
                     "recorded with "
                     "--gpu=light.";
    for (size_t i = 0; !is_light && i < sonde_averages_count(averages); i++) {
        const struct sonde_average *row = sonde_averages_row(averages, i);
        if (!row) {
            doc->rows.failed = true;
            break;
        }
        bool has_time = row->device_ns > 0 || row->total_ns > 0;
        if (row->flops > 0 && row->moved_bytes > 0 && has_time && !row->on_device)
            add_row(doc, row, has_roof ? &measured : NULL);
    }
    doc->rows.hidden[COLUMN_ROOF] = doc->rows.hidden[COLUMN_BOUND] = !has_roof;
    if (doc->rows.row_count > 0)
        add_totals(doc, has_roof ? &measured : NULL);
    if (!options->sort)
        st = snd_table_sort(&doc->rows, "time_ns", err);
    snd_doc_keep(doc, averages, (void (*)(void *))sonde_averages_free);
    return st;
}
