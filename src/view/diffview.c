/* SPDX-License-Identifier: Apache-2.0 */
/* sonde_diff(): two sides compared, as text, JSON or CSV. The method: docs/DIFF.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "model/summary.h"
#include "view/diffconditions.h"
#include "view/format.h"
#include "view/render.h"
#include "view/view.h"

enum column {
    NAME,
    VERDICT,
    A_TIME,
    B_TIME,
    CHANGE_TEXT,
    RANGE_TEXT,
    A_COUNT,
    B_COUNT,
    A_BYTES,
    B_BYTES,
    A_FLOPS,
    B_FLOPS,
    ALSO,
    WAS,
    CHANGE,
    LOW,
    HIGH,
    P,
    A_MEAN,
    B_MEAN,
    A_SAMPLES,
    B_SAMPLES,
    FAILS,
    COLUMNS
};

static const struct snd_column columns[COLUMNS] = {
    [NAME] = { "name", "Name", SND_TEXT, SND_FIT_NAME },
    [VERDICT] = { "verdict", "Verdict", SND_TEXT, SND_FIT_FIXED },
    [A_TIME] = { "a_ns", "A", SND_TIME, SND_FIT_FIXED },
    [B_TIME] = { "b_ns", "B", SND_TIME, SND_FIT_FIXED },
    [CHANGE_TEXT] = { NULL, "Change", SND_TEXT, SND_FIT_FIXED },
    [RANGE_TEXT] = { NULL, "95 % interval", SND_TEXT, SND_FIT_FIXED },
    [A_COUNT] = { "a_count", "Calls A", SND_REAL, SND_FIT_FIXED },
    [B_COUNT] = { "b_count", "Calls B", SND_REAL, SND_FIT_FIXED },
    [A_BYTES] = { "a_bytes", "Memory A", SND_BYTES, SND_FIT_FIXED },
    [B_BYTES] = { "b_bytes", "Memory B", SND_BYTES, SND_FIT_FIXED },
    [A_FLOPS] = { "a_flops", "A ", SND_FLOPS, SND_FIT_FIXED },
    [B_FLOPS] = { "b_flops", "B ", SND_FLOPS, SND_FIT_FIXED },
    [ALSO] = { "also", "Also", SND_TEXT, SND_FIT_CONTENT },
    [WAS] = { "was", "Was", SND_TEXT, SND_FIT_CONTENT },
    [CHANGE] = { "change_percent", NULL, SND_REAL, SND_FIT_FIXED },
    [LOW] = { "low_percent", NULL, SND_REAL, SND_FIT_FIXED },
    [HIGH] = { "high_percent", NULL, SND_REAL, SND_FIT_FIXED },
    [P] = { "p", NULL, SND_REAL, SND_FIT_FIXED },
    [A_MEAN] = { "a_mean_ns", NULL, SND_REAL, SND_FIT_FIXED },
    [B_MEAN] = { "b_mean_ns", NULL, SND_REAL, SND_FIT_FIXED },
    [A_SAMPLES] = { "a_samples", NULL, SND_COUNT, SND_FIT_FIXED },
    [B_SAMPLES] = { "b_samples", NULL, SND_COUNT, SND_FIT_FIXED },
    [FAILS] = { "fails", NULL, SND_FLAG, SND_FIT_FIXED },
};

static const struct snd_column ledger_columns[] = {
    { "side", "Side", SND_TEXT, SND_FIT_CONTENT },
    { "run", "Run", SND_COUNT, SND_FIT_FIXED },
    { "key", "Ledger", SND_TEXT, SND_FIT_CONTENT },
    { "count", "Count", SND_COUNT, SND_FIT_FIXED },
};

static const char *const verdicts[] = {
    [SND_DIFF_NOT_JUDGED] = "not judged", [SND_DIFF_SAME] = "same",
    [SND_DIFF_UNCLEAR] = "unclear",       [SND_DIFF_FASTER] = "faster",
    [SND_DIFF_SLOWER] = "slower",
};

/* With steps: whether any run has it in one. */
static bool is_outside(const struct snd_diff_row *row)
{
    return row->a.count == 0 && row->b.count == 0;
}

static const char *verdict_of(const struct snd_diff_row *row)
{
    if (is_outside(row))
        return "outside";
    return row->match == SND_DIFF_NEW    ? "new"
           : row->match == SND_DIFF_GONE ? "gone"
                                         : verdicts[row->time.verdict];
}

/* ----------------------------------------------------------------------- rows */

/* Those that changed come first, by what that costs; then new and gone ones; then the others. */
struct ranked {
    const struct snd_diff_row *row;
    int                        rank;
    double                     cost;
    size_t                     place;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *x = left, *y = right;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->cost != y->cost)
        return x->cost > y->cost ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static bool is_changed(const struct snd_diff_row *row)
{
    return row->time.verdict == SND_DIFF_SLOWER || row->time.verdict == SND_DIFF_FASTER;
}

static struct ranked rank_row(const struct snd_diff_row *row, size_t place)
{
    double time = fmax(row->a.time_ns, row->b.time_ns);

    if (is_changed(row))
        return (struct ranked){ row, 0, fabs(row->time.change) * row->a.time_ns, place };
    if (row->match != SND_DIFF_BOTH)
        return (struct ranked){ row, 1, time, place };
    if (row->count_changed || row->bytes_changed || row->flops_changed)
        return (struct ranked){ row, 2, time, place };
    return (struct ranked){ row, row->time.verdict == SND_DIFF_NOT_JUDGED ? 4 : 3, time, place };
}

static struct snd_cell cell_of_ns(bool known, double ns)
{
    return known ? snd_cell_number((int64_t)(ns + 0.5)) : snd_cell_none();
}

static struct snd_cell cell_if(bool known, double value)
{
    return known ? snd_cell_real(value) : snd_cell_none();
}

/* Rounded: the last digits are the processor's, not the measurement's. */
static struct snd_cell cell_of_percent(bool known, double ratio)
{
    return cell_if(known, round(ratio * 1e6) / 1e4);
}

static struct snd_cell cell_of_p(bool known, double p)
{
    double unit = p > 0 ? pow(10, floor(log10(p)) - 2) : 1;

    return cell_if(known, p < 1e-9 ? 0 : round(p / unit) * unit);
}

static struct snd_cell cell_of_bytes(bool known, double bytes)
{
    return known ? snd_cell_number((int64_t)llround(bytes)) : snd_cell_none();
}

static const char *also_text(struct snd_doc *doc, const struct snd_diff_row *row)
{
    return snd_doc_format(doc, "%s%s%s%s%s", row->count_changed ? "calls" : "",
                          row->count_changed && (row->bytes_changed || row->flops_changed) ? ", "
                                                                                           : "",
                          row->bytes_changed ? "memory" : "",
                          row->bytes_changed && row->flops_changed ? ", " : "",
                          row->flops_changed ? "FLOPs" : "");
}

static void put_times(struct snd_doc *doc, struct snd_cell *cell, const struct snd_diff_row *row)
{
    const struct snd_diff_answer *t = &row->time;
    bool                          judged = t->verdict != SND_DIFF_NOT_JUDGED;

    /* One-sided rows have their mean. */
    cell[A_TIME] = cell_of_ns(row->match != SND_DIFF_NEW && !is_outside(row),
                              t->has_times ? t->a_ns : row->a.time_ns);
    cell[B_TIME] = cell_of_ns(row->match != SND_DIFF_GONE && !is_outside(row),
                              t->has_times ? t->b_ns : row->b.time_ns);
    cell[CHANGE] = cell_of_percent(t->has_times, t->change);
    cell[LOW] = cell_of_percent(judged, t->low);
    cell[HIGH] = cell_of_percent(judged, t->high);
    cell[P] = cell_of_p(judged, t->p);
    cell[CHANGE_TEXT] = cell[RANGE_TEXT] = snd_cell_string("");
    if (t->has_times)
        cell[CHANGE_TEXT] = snd_cell_string(snd_doc_format(doc, "%+.1f%%", t->change * 100));
    if (judged)
        cell[RANGE_TEXT] =
            snd_cell_string(snd_doc_format(doc, "%+.1f .. %+.1f%%", t->low * 100, t->high * 100));
}

static void put_row(struct snd_doc *doc, const struct snd_diff_row *row, bool fails)
{
    struct snd_cell *cell = snd_table_add(&doc->rows);
    bool             in_a = row->match != SND_DIFF_NEW, in_b = row->match != SND_DIFF_GONE;

    cell[NAME] = snd_cell_text(row->name);
    cell[VERDICT] = snd_cell_string(verdict_of(row));
    put_times(doc, cell, row);
    cell[A_COUNT] = cell_if(in_a, row->a.count);
    cell[B_COUNT] = cell_if(in_b, row->b.count);
    cell[A_BYTES] = cell_of_bytes(in_a, row->a.bytes);
    cell[B_BYTES] = cell_of_bytes(in_b, row->b.bytes);
    cell[A_FLOPS] = cell_if(in_a, row->a.flops);
    cell[B_FLOPS] = cell_if(in_b, row->b.flops);
    cell[ALSO] = snd_cell_string(also_text(doc, row));
    cell[WAS] = row->match == SND_DIFF_RENAMED ? snd_cell_text(row->was) : snd_cell_none();
    cell[A_MEAN] = cell_if(in_a, row->a.time_ns);
    cell[B_MEAN] = cell_if(in_b, row->b.time_ns);
    cell[A_SAMPLES] = snd_cell_number((int64_t)row->a.samples);
    cell[B_SAMPLES] = snd_cell_number((int64_t)row->b.samples);
    cell[FAILS] = snd_cell_number(fails);
}

static void hide_unused(struct snd_doc *doc, const struct snd_diff *d)
{
    bool memory = false, flops = false, also = false, was = false;

    for (size_t i = 0; i < d->count; i++) {
        const struct snd_diff_row *row = &d->rows[i];
        memory |= row->a.bytes != 0 || row->b.bytes != 0;
        flops |= row->a.flops > 0 || row->b.flops > 0;
        also |= row->count_changed || row->bytes_changed || row->flops_changed;
        was |= row->match == SND_DIFF_RENAMED;
    }
    doc->rows.hidden[A_BYTES] = doc->rows.hidden[B_BYTES] = !memory;
    doc->rows.hidden[A_FLOPS] = doc->rows.hidden[B_FLOPS] = !flops;
    doc->rows.hidden[ALSO] = !also;
    doc->rows.hidden[WAS] = !was;
}

static bool add_rows(struct snd_doc *doc, const struct snd_diff *d,
                     const struct snd_conditions *conditions, size_t *failed)
{
    struct ranked *ranked = calloc(d->count + 1, sizeof *ranked);

    snd_table_init(&doc->rows, columns, COLUMNS);
    for (size_t i = 0; ranked && i < d->count; i++)
        ranked[i] = rank_row(&d->rows[i], i);
    if (ranked)
        qsort(ranked, d->count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; ranked && i < d->count; i++) {
        bool fails = snd_conditions_row(conditions, ranked[i].row);
        *failed += fails;
        put_row(doc, ranked[i].row, fails);
    }
    hide_unused(doc, d);
    free(ranked);
    return ranked != NULL;
}

/* --------------------------------------------------------------------- totals */

struct tally {
    size_t slower, faster, fresh, gone, renamed, same, unclear, not_judged, outside;
};

static struct tally count_rows(const struct snd_diff *d)
{
    struct tally t = { 0 };

    for (size_t i = 0; i < d->count; i++) {
        const struct snd_diff_row *row = &d->rows[i];
        t.fresh += row->match == SND_DIFF_NEW;
        t.gone += row->match == SND_DIFF_GONE;
        t.renamed += row->match == SND_DIFF_RENAMED;
        t.outside += is_outside(row);
        if (row->match == SND_DIFF_NEW || row->match == SND_DIFF_GONE || is_outside(row))
            continue;
        t.slower += row->time.verdict == SND_DIFF_SLOWER;
        t.faster += row->time.verdict == SND_DIFF_FASTER;
        t.same += row->time.verdict == SND_DIFF_SAME;
        t.unclear += row->time.verdict == SND_DIFF_UNCLEAR;
        t.not_judged += row->time.verdict == SND_DIFF_NOT_JUDGED;
    }
    return t;
}

static void add_number(struct snd_doc *doc, const char *key, size_t number)
{
    snd_doc_total(doc, key, NULL, SND_COUNT, snd_cell_number((int64_t)number));
}

static void add_whole(struct snd_doc *doc, const struct snd_diff *d)
{
    const struct snd_diff_answer *w = &d->whole;
    bool                          judged = w->verdict != SND_DIFF_NOT_JUDGED;

    snd_doc_total(doc, "a_whole_ns", NULL, SND_REAL, snd_cell_real(d->a_whole_ns));
    snd_doc_total(doc, "b_whole_ns", NULL, SND_REAL, snd_cell_real(d->b_whole_ns));
    snd_doc_total(doc, "whole_verdict", NULL, SND_TEXT, snd_cell_string(verdicts[w->verdict]));
    snd_doc_total(doc, "whole_change_percent", NULL, SND_REAL,
                  cell_of_percent(w->has_times, w->change));
    snd_doc_total(doc, "whole_low_percent", NULL, SND_REAL, cell_of_percent(judged, w->low));
    snd_doc_total(doc, "whole_high_percent", NULL, SND_REAL, cell_of_percent(judged, w->high));
}

static void add_totals(struct snd_doc *doc, const struct snd_diff *d, const char *by, size_t failed)
{
    struct tally t = count_rows(d);

    snd_doc_total(doc, "by", NULL, SND_TEXT, snd_cell_string(by));
    snd_doc_total(doc, "unit", NULL, SND_TEXT,
                  snd_cell_string(d->has_steps ? "step" : d->source->unit));
    add_number(doc, "a_runs", d->a_runs);
    add_number(doc, "b_runs", d->b_runs);
    add_number(doc, "a_steps", d->a_steps);
    add_number(doc, "b_steps", d->b_steps);
    add_whole(doc, d);
    add_number(doc, "slower", t.slower);
    add_number(doc, "faster", t.faster);
    add_number(doc, "same", t.same);
    add_number(doc, "unclear", t.unclear);
    add_number(doc, "not_judged", t.not_judged);
    add_number(doc, "outside", t.outside);
    add_number(doc, "new", t.fresh);
    add_number(doc, "gone", t.gone);
    add_number(doc, "renamed", t.renamed);
    snd_doc_total(doc, "shift_percent", NULL, SND_REAL, cell_of_percent(true, d->noise.shift));
    snd_doc_total(doc, "inflation", NULL, SND_REAL,
                  snd_cell_real(round(d->noise.inflation * 1e4) / 1e4));
    snd_doc_total(doc, "runs_compared", NULL, SND_FLAG, snd_cell_number(d->noise.by_runs));
    add_number(doc, "failed", failed);
}

/* ----------------------------------------------------------------------- text */

static void put_whole(const struct snd_diff *d, const struct sonde_report_options *options,
                      struct snd_out *out)
{
    const struct snd_diff_answer *w = &d->whole;
    struct sonde_buffer           a = { 0 }, b = { 0 };

    snd_format_time(&a, d->a_whole_ns / 1000, options->time_unit);
    snd_format_time(&b, d->b_whole_ns / 1000, options->time_unit);
    snd_out_format(out, "%s: %s -> %s on average", d->has_steps ? "A step" : "All rows",
                   snd_buf_string(&a), snd_buf_string(&b));
    if (w->verdict != SND_DIFF_NOT_JUDGED)
        snd_out_format(out, "; %s: %+.1f%% (95 %% interval %+.1f .. %+.1f%%)", verdicts[w->verdict],
                       w->change * 100, w->low * 100, w->high * 100);
    snd_out_text(out, "\n");
    sonde_buffer_release(&a);
    sonde_buffer_release(&b);
}

static void put_head(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct snd_diff *d = doc->data;
    struct tally           t = count_rows(d);

    snd_out_format(out, "A: %u run%s", d->a_runs, d->a_runs == 1 ? "" : "s");
    snd_out_format(out, d->has_steps ? ", %u steps; B: " : "; B: ", d->a_steps);
    snd_out_format(out, "%u run%s", d->b_runs, d->b_runs == 1 ? "" : "s");
    snd_out_format(out, d->has_steps ? ", %u steps. Times are of a step\n" : ". ", d->b_steps);
    if (!d->has_steps)
        snd_out_format(out, "Times are of a %s: no steps to compare\n", d->source->unit);
    put_whole(d, options, out);
    snd_out_format(
        out,
        "Rows: %zu slower, %zu faster, %zu new, %zu gone, %zu renamed, %zu the same, %zu "
        "unclear, %zu not judged\n",
        t.slower, t.faster, t.fresh, t.gone, t.renamed, t.same, t.unclear, t.not_judged);
    if (d->noise.judged > 0 && !d->noise.by_runs)
        snd_out_format(out,
                       "One run a side: how much runs differ is estimated from the rows (all rows "
                       "%+.1f%%, left out of each; errors x%.1f). Several runs a side show it: "
                       "sonde diff A1 A2 A3 -- B1 B2 B3\n",
                       d->noise.shift * 100, d->noise.inflation);
    if (t.unclear > 0)
        snd_out_text(out, "Unclear: no change was seen, but noise would have hidden one of 5 %\n");
    if (t.not_judged > 0)
        snd_out_format(out, "Not judged: fewer than %d samples a side, or one number a run\n",
                       SND_DIFF_LEAST_SAMPLES);
    if (t.outside > 0)
        snd_out_format(out, "Outside: %zu row%s of no step; not compared\n", t.outside,
                       t.outside == 1 ? "" : "s");
    if (d->cut)
        snd_out_format(out, "Only the first %u steps of a run are compared\n", SND_DIFF_STEPS_MOST);
}

/* ---------------------------------------------------------------- the document */

/* What is missing in each trace: a diff of traces that lost events must not look whole. */
static void add_ledger(struct snd_doc *doc, struct snd_table *table, struct sonde_summary *summary,
                       bool is_b, size_t run)
{
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        if (item->is_note)
            continue;
        struct snd_cell *cell = snd_table_add(table);
        *cell++ = snd_cell_string(is_b ? "B" : "A");
        *cell++ = snd_cell_number((int64_t)run + 1);
        *cell++ = snd_cell_string(snd_doc_format(doc, "%s", item->key));
        *cell++ = snd_cell_number((int64_t)item->count);
    }
}

static enum sonde_status add_ledgers(struct snd_doc *doc, struct sonde_summary **summaries,
                                     const struct snd_diff *d, struct sonde_error *err)
{
    struct snd_table *table = snd_doc_section(doc, "ledgers", NULL, ledger_columns,
                                              SND_COUNT_OF(ledger_columns));

    for (size_t i = 0; i < (size_t)d->a_runs + d->b_runs; i++) {
        enum sonde_status st = snd_summary_finish(summaries[i], false, err);
        if (st != SONDE_OK)
            return st;
        bool is_b = i >= d->a_runs;
        add_ledger(doc, table, summaries[i], is_b, is_b ? i - d->a_runs : i);
    }
    return SONDE_OK;
}

static enum sonde_status find_source(const char *name, const struct snd_diff_source **out,
                                     struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };
    struct snd_nearest  nearest = { .word = name, .length = strlen(name) };
    char                hint[SND_HINT_MAX];

    for (size_t i = 0; i < snd_diff_source_count; i++) {
        *out = &snd_diff_sources[i];
        if (strcmp((*out)->name, name) == 0) {
            sonde_buffer_release(&names);
            return SONDE_OK;
        }
        snd_buf_format(&names, "%s%s", i ? ", " : "", (*out)->name);
        snd_nearest_try(&nearest, (*out)->name);
    }
    snd_fail(err, SONDE_E_ARGUMENT, "--by: cannot compare '%.60s'%s; expected one of: %s", name,
             snd_nearest_hint(&nearest, hint), snd_buf_string(&names));
    sonde_buffer_release(&names);
    return SONDE_E_ARGUMENT;
}

const char *sonde_diff_source(size_t index)
{
    return index < snd_diff_source_count ? snd_diff_sources[index].name : NULL;
}

/* A side without a row is a mistake, not a program of which all is new. */
static enum sonde_status refuse_empty(const struct snd_diff *d, const char *by,
                                      struct sonde_error *err)
{
    for (uint32_t i = 0; i < d->a_runs + d->b_runs; i++)
        if (d->runs[i].count == 0)
            return snd_fail(err, SONDE_E_STATE,
                            "run %u of %s has no %s to compare; --by compares others",
                            i < d->a_runs ? i + 1 : i - d->a_runs + 1, i < d->a_runs ? "A" : "B",
                            by);
    return SONDE_OK;
}

SND_DOC_RELEASE(free_diff, snd_diff_free)

static enum sonde_status fill(struct snd_doc *doc, struct snd_diff *d, const char *by,
                              const struct snd_conditions       *conditions,
                              const struct sonde_report_options *report, size_t *failed,
                              struct sonde_error *err)
{
    enum sonde_status st = refuse_empty(d, by, err);

    if (st != SONDE_OK)
        return st;
    doc->data = d;
    doc->head = put_head;
    *failed = snd_conditions_whole(conditions, d) ? 1 : 0;
    if (!add_rows(doc, d, conditions, failed))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu rows", d->count);
    add_totals(doc, d, by, *failed);
    if (report->sort)
        st = snd_table_sort(&doc->rows, report->sort, err);
    if (st == SONDE_OK && doc->rows.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the diff");
    return st;
}

enum sonde_status sonde_diff(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                             const struct sonde_diff_options   *options,
                             const struct sonde_report_options *report,
                             const struct sonde_sink *sink, size_t *failed, struct sonde_error *err)
{
    struct sonde_diff_options     used = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_report_options   shown;
    struct snd_conditions         conditions;
    const struct snd_diff_source *source = NULL;
    struct sonde_summary        **summaries = calloc(a_runs + b_runs, sizeof *summaries);
    struct snd_doc                doc = { .view = "diff" };
    struct snd_diff              *d = NULL;
    size_t                        failures = 0;

    if (!summaries)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu runs", a_runs + b_runs);
    if (options)
        memcpy(&used, options,
               options->struct_size < sizeof used ? options->struct_size : sizeof used);
    const char       *by = used.by ? used.by : "ops";
    enum sonde_status st = snd_report_options(report, &shown, err);
    if (st == SONDE_OK)
        st = snd_conditions_parse(used.fail_if, &conditions, err);
    if (st == SONDE_OK)
        st = find_source(by, &source, err);
    for (size_t i = 0; st == SONDE_OK && i < a_runs + b_runs; i++)
        st = snd_summary_begin(traces[i], &summaries[i], err);
    if (st == SONDE_OK)
        st = snd_diff_new(traces, a_runs, b_runs, source, used.least_percent / 100, &d, err);
    snd_doc_keep(&doc, d, free_diff);
    if (st == SONDE_OK)
        st = fill(&doc, d, by, &conditions, &shown, &failures, err);
    if (st == SONDE_OK)
        st = add_ledgers(&doc, summaries, d, err);
    if (st == SONDE_OK)
        st = snd_render(&doc, &shown, sink, err);
    if (failed)
        *failed = failures;
    snd_doc_release(&doc);
    for (size_t i = 0; i < a_runs + b_runs; i++)
        sonde_summary_free(summaries[i]);
    free(summaries);
    return st;
}
