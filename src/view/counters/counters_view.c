/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters view: what `perf stat` prints, in its layout; as data, a row for each counter.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/counters/run_counters.h"
#include "read/said/trace_metadata.h"
#include "view/render/format.h"
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "counter", "Counter", SND_TEXT, SND_FIT_CONTENT },
    { "value", "Value", SND_REAL, SND_FIT_FIXED },
    { "unit", "Unit", SND_TEXT, SND_FIT_CONTENT },
    { "runs", "Runs", SND_COUNT, SND_FIT_FIXED },
    { "spread", "Spread", SND_REAL, SND_FIT_FIXED },
    { "spread_percent", "+- %", SND_REAL, SND_FIT_FIXED },
    { "min", "Min", SND_REAL, SND_FIT_FIXED },
    { "max", "Max", SND_REAL, SND_FIT_FIXED },
    { "counted", NULL, SND_REAL, SND_FIT_FIXED },
    { "enabled_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "running_ns", NULL, SND_TIME, SND_FIT_FIXED },
    { "running_percent", "Running %", SND_REAL, SND_FIT_FIXED },
    { "metric", "Metric", SND_REAL, SND_FIT_FIXED },
    { "metric_unit", "", SND_TEXT, SND_FIT_CONTENT },
    { "per_second", "Per second", SND_REAL, SND_FIT_FIXED },
    { "per_thousand_instructions", "Per thousand", SND_REAL, SND_FIT_FIXED },
    { "bytes_per_second", "Bytes/s", SND_REAL, SND_FIT_FIXED },
    { "absent", "Absent", SND_TEXT, SND_FIT_CONTENT },
    { "note", "Note", SND_TEXT, SND_FIT_CONTENT },
};

/* ------------------------------------------------------------------- text */

/* "1,234,567": counts are long. */
static void put_grouped(struct sonde_buffer *buf, double value)
{
    char   digits[64];
    int    length = snprintf(digits, sizeof digits, "%.0f", value);
    size_t first = (size_t)length % 3;

    for (int i = 0; i < length; i++)
        snd_buf_format(buf, "%s%c", i > 0 && (size_t)i % 3 == first ? "," : "", digits[i]);
}

static bool is_clock(const struct snd_counter_row *row)
{
    return row->known && row->known->type == SND_COUNTER_CLOCK;
}

/* "  0.451 CPUs utilized", "127.633 K/sec", "2.31% of all branches" */
static void put_metric(struct sonde_buffer *buf, const struct snd_counter_row *row)
{
    static const char units[] = " KMG";
    double            value = row->metric;
    size_t            unit = 0;
    bool              is_rate = row->metric_unit && strcmp(row->metric_unit, "/sec") == 0;
    bool is_share = row->known && row->metric_unit && row->metric_unit == row->known->share;

    if (!row->metric_unit || isnan(value))
        return;
    for (; is_rate && value >= 1000 && unit + 1 < strlen(units); unit++)
        value /= 1000;
    if (is_share)
        snd_buf_format(buf, "%8.2f%% %s", value, row->metric_unit);
    else if (unit > 0)
        snd_buf_format(buf, "%8.3f %c%s", value, units[unit], row->metric_unit);
    else
        snd_buf_format(buf, "%8.3f %s", value, row->metric_unit);
    if (!isnan(row->per_thousand))
        snd_buf_format(buf, ", %.3f per thousand insn", row->per_thousand);
    if (!isnan(row->bytes_per_second))
        snd_buf_format(buf, ", %.3f GB/s", row->bytes_per_second / 1e9);
}

/* "not supported: why" as perf's "<not supported>", and the reason beside it. */
static void put_absent(struct snd_out *out, const struct snd_counter_row *row)
{
    struct sonde_buffer name = { 0 }, why = { 0 };
    char                word[32];
    const char         *colon = memchr(row->absent.bytes, ':', row->absent.length);
    size_t              length = colon ? (size_t)(colon - row->absent.bytes) : 0;
    size_t              rest = colon ? length + 1 : 0;

    snprintf(word, sizeof word, "<%.*s>", (int)(length > 0 && length < 20 ? length : 0),
             row->absent.bytes);
    while (rest < row->absent.length && row->absent.bytes[rest] == ' ')
        rest++;
    snd_format_text(&name, row->name.bytes, row->name.length);
    snd_format_text(&why, row->absent.bytes + rest, row->absent.length - rest);
    snd_out_format(out, "%18s      %-32s # %s\n", strlen(word) > 2 ? word : "<not counted>",
                   snd_buf_string(&name), snd_buf_string(&why));
    sonde_buffer_release(&name);
    sonde_buffer_release(&why);
}

static void put_row(struct snd_out *out, const struct snd_counter_row *row, uint32_t runs)
{
    struct sonde_buffer value = { 0 }, name = { 0 }, line = { 0 }, metric = { 0 };

    if (row->is_ns)
        snd_buf_format(&value, "%.2f", row->mean / 1e6);
    else
        put_grouped(&value, row->mean);
    snd_format_text(&name, row->name.bytes, row->name.length);
    put_metric(&metric, row);
    snd_buf_format(&line, "%18s %-4s %-32s", snd_buf_string(&value), row->is_ns ? "msec" : "",
                   snd_buf_string(&name));
    snd_buf_format(&line, metric.length ? " # %-31s" : "   %-31s", snd_buf_string(&metric));
    if (runs > 1)
        snd_buf_format(&line, " ( +-%6.2f%% )", snd_counter_percent(row->error, row->mean));
    if (row->running > 0 && row->running < row->enabled)
        snd_buf_format(&line, "  (%.2f%%)", 100 * row->running / row->enabled);
    while (line.length > 0 && line.bytes[line.length - 1] == ' ')
        line.length--;
    snd_out_put(out, line.bytes, line.length);
    snd_out_text(out, "\n");
    sonde_buffer_release(&value);
    sonde_buffer_release(&name);
    sonde_buffer_release(&line);
    sonde_buffer_release(&metric);
}

/* As many digits as the spread has meaning, two of it. */
static void put_time(struct snd_out *out, const struct snd_counter_row *row, uint32_t runs,
                     const char *words)
{
    if (!row)
        return;
    if (runs < 2) {
        snd_out_format(out, "%18.9f seconds %s\n", row->mean / 1e9, words);
        return;
    }
    double error = row->error / 1e9;
    int    digits = error > 0 ? 2 - (int)ceil(log10(error)) : 9;
    digits = digits < 0 ? 0 : digits > 9 ? 9 : digits;
    snd_out_format(out, "%18.*f +- %.*f seconds %s  ( +-%6.2f%% )\n", digits, row->mean / 1e9,
                   digits, error, words, snd_counter_percent(row->error, row->mean));
}

static void put_notes(struct snd_out *out, const struct snd_counter_table *table)
{
    bool first = true;

    for (uint32_t i = 0; i < table->count; i++) {
        struct sonde_buffer text = { 0 };
        if (table->rows[i].note.length == 0 || table->rows[i].runs == 0)
            continue;
        snd_format_text(&text, table->rows[i].name.bytes, table->rows[i].name.length);
        snd_buf_text(&text, ": ");
        snd_format_text(&text, table->rows[i].note.bytes, table->rows[i].note.length);
        snd_out_format(out, "%s %s\n", first ? "\n" : "", snd_buf_string(&text));
        sonde_buffer_release(&text);
        first = false;
    }
}

static void put_head(const struct snd_doc *doc, const struct snd_counter_table *table,
                     struct snd_out *out)
{
    struct sonde_text   command = snd_meta_command(doc->trace, table->process);
    struct sonde_buffer text = { 0 };

    snd_format_text(&text, command.bytes, command.length);
    snd_out_format(out, "\n Counters of '%s'", snd_buf_string(&text));
    sonde_buffer_release(&text);
    if (table->runs > 1)
        snd_out_format(out, " (%" PRIu32 " runs)", table->runs);
    snd_out_text(out, ":\n\n");
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct snd_counter_table *table = doc->data;

    (void)options;
    put_head(doc, table, out);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct snd_counter_row *row = &table->rows[i];
        if (row->runs == 0)
            put_absent(out, row);
        else if (!is_clock(row))
            put_row(out, row, table->runs);
    }
    snd_out_text(out, "\n");
    put_time(out, snd_counter_row(table, SND_COUNTER_OF_DURATION, NULL), table->runs,
             "time elapsed");
    snd_out_text(out, "\n");
    put_time(out, snd_counter_row(table, SND_COUNTER_OF_USER, NULL), table->runs, "user");
    put_time(out, snd_counter_row(table, SND_COUNTER_OF_SYSTEM, NULL), table->runs, "sys");
    put_notes(out, table);
    snd_out_text(out, "\n");
}

/* ------------------------------------------------------------------- data */

static struct snd_cell real_or_none(double value, bool there)
{
    return there && !isnan(value) ? snd_cell_real(value) : snd_cell_none();
}

static struct snd_cell text_or_none(struct sonde_text text)
{
    return text.length > 0 ? snd_cell_text(text) : snd_cell_none();
}

static void add_row(struct snd_doc *doc, const struct snd_counter_row *row)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    bool             there = row->runs > 0, many = row->runs > 1, timed = row->enabled > 0;

    *cell++ = snd_cell_text(row->name);
    *cell++ = real_or_none(row->mean, there);
    *cell++ = row->is_ns ? snd_cell_string("ns") : snd_cell_none();
    *cell++ = snd_cell_number(row->runs);
    *cell++ = real_or_none(row->error, many);
    *cell++ = real_or_none(snd_counter_percent(row->error, row->mean), many);
    *cell++ = real_or_none(row->least, many);
    *cell++ = real_or_none(row->most, many);
    *cell++ = real_or_none(row->counted, there);
    *cell++ = timed ? snd_cell_number((int64_t)row->enabled) : snd_cell_none();
    *cell++ = timed ? snd_cell_number((int64_t)row->running) : snd_cell_none();
    *cell++ = real_or_none(timed ? 100 * row->running / row->enabled : NAN, timed);
    *cell++ = real_or_none(row->metric, there && row->metric_unit);
    *cell++ = there && row->metric_unit ? snd_cell_string(row->metric_unit) : snd_cell_none();
    *cell++ = real_or_none(row->per_second, there);
    *cell++ = real_or_none(row->per_thousand, there);
    *cell++ = real_or_none(row->bytes_per_second, there);
    *cell++ = text_or_none(there ? (struct sonde_text){ "", 0 } : row->absent);
    *cell++ = text_or_none(there ? row->note : (struct sonde_text){ "", 0 });
}

static void free_table(void *object)
{
    snd_counter_table_release(object);
    free(object);
}

SND_VIEW_BUILD(snd_view_counters)
{
    struct snd_counter_table *table = malloc(sizeof *table);

    (void)options;
    if (!table)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for counters");
    enum sonde_status status = snd_counter_table_make(trace, table, err);
    snd_doc_keep(doc, table, free_table);
    if (status != SONDE_OK)
        return status;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    for (uint32_t i = 0; i < table->count; i++)
        add_row(doc, &table->rows[i]);
    doc->data = table;
    doc->text = table->count > 0 ? put_page : NULL;
    if (table->runs > 0)
        snd_doc_total(doc, "runs", "Runs", SND_COUNT, snd_cell_number(table->runs));
    return SONDE_OK;
}
