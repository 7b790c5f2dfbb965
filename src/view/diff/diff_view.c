/* SPDX-License-Identifier: Apache-2.0 */
/* sonde_diff(): two sides compared, as text, JSON or CSV. The method: docs/DIFF.md. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/text/nearest.h"
#include "base/text/plural.h"
#include "base/struct_size.h"
#include "model/summary/summary.h"
#include "view/diff/diff_conditions.h"
#include "view/diff/diff_rows.h"
#include "view/render/format.h"
#include "view/render/render.h"
#include "view/render/view.h"

static const struct snd_column ledger_columns[] = {
    { "side", "Side", SND_TEXT, SND_FIT_CONTENT },
    { "run", "Run", SND_COUNT, SND_FIT_FIXED },
    { "key", "Ledger", SND_TEXT, SND_FIT_CONTENT },
    { "count", "Count", SND_COUNT, SND_FIT_FIXED },
};

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
        t.outside += snd_diff_is_outside(row);
        if (row->match == SND_DIFF_NEW || row->match == SND_DIFF_GONE || snd_diff_is_outside(row))
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
    snd_doc_total(doc, "whole_verdict", NULL, SND_TEXT,
                  snd_cell_string(snd_diff_verdicts[w->verdict]));
    snd_doc_total(doc, "whole_change_percent", NULL, SND_REAL,
                  snd_diff_percent(w->has_times, w->change));
    snd_doc_total(doc, "whole_low_percent", NULL, SND_REAL, snd_diff_percent(judged, w->low));
    snd_doc_total(doc, "whole_high_percent", NULL, SND_REAL, snd_diff_percent(judged, w->high));
}

static void add_totals(struct snd_doc *doc, const struct snd_diff *d, size_t failed)
{
    struct tally t = count_rows(d);

    snd_doc_total(doc, "by", NULL, SND_TEXT, snd_cell_string(d->source->name));
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
    snd_doc_total(doc, "shift_percent", NULL, SND_REAL, snd_diff_percent(true, d->noise.shift));
    snd_doc_total(doc, "inflation", NULL, SND_REAL,
                  snd_cell_real(round(d->noise.inflation * 1e4) / 1e4));
    snd_doc_total(doc, "runs_compared", NULL, SND_FLAG, snd_cell_number(d->noise.by_runs));
    add_number(doc, "failed", failed);
}

/* ----------------------------------------------------------------------- text */

static bool is_of_run(const struct snd_diff *d)
{
    return d->source == &snd_diff_sources[snd_diff_source_count - 1];
}

static void put_whole(const struct snd_diff *d, const struct sonde_report_options *options,
                      struct snd_out *out)
{
    const struct snd_diff_answer *w = &d->whole;
    struct sonde_buffer           a = { 0 }, b = { 0 };

    snd_format_time(&a, d->a_whole_ns / 1000, options->time_unit);
    snd_format_time(&b, d->b_whole_ns / 1000, options->time_unit);
    snd_out_format(out, "%s: %s -> %s on average",
                   d->has_steps   ? "A step"
                   : is_of_run(d) ? "The run"
                                  : "All rows",
                   snd_buf_string(&a), snd_buf_string(&b));
    if (w->verdict != SND_DIFF_NOT_JUDGED)
        snd_out_format(out, "; %s: %+.1f%% (95 %% interval %+.1f .. %+.1f%%)",
                       snd_diff_verdicts[w->verdict], w->change * 100, w->low * 100, w->high * 100);
    snd_out_text(out, "\n");
    sonde_buffer_release(&a);
    sonde_buffer_release(&b);
}

/* Why the run itself is all that is compared. */
static void put_lacking(const struct snd_diff *d, const struct sonde_report_options *options,
                        struct snd_out *out)
{
    uint32_t            run = d->lacking - 1;
    struct sonde_buffer took = { 0 };

    if (d->lacking == 0)
        return;
    if (run == d->a_runs + d->b_runs) {
        snd_out_text(out, "No rows but the run: no kind of rows is in all runs; record them with "
                          "the same options\n");
        return;
    }
    snd_format_time(&took, (double)d->runs[run].items[0].all.time_ns / 1000, options->time_unit);
    snd_out_format(out,
                   "No rows but the run: run %u of %s lasted %s and has no samples, functions or "
                   "operators; use --record '--functions', or a longer program\n",
                   snd_diff_run_number(d, run), snd_diff_run_side(d, run), snd_buf_string(&took));
    sonde_buffer_release(&took);
}

static void put_head(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct snd_diff *d = doc->data;
    struct tally           t = count_rows(d);

    snd_out_format(out, "A: %u run%s", d->a_runs, snd_plural(d->a_runs));
    snd_out_format(out, d->has_steps ? ", %u steps; B: " : "; B: ", d->a_steps);
    snd_out_format(out, "%u run%s", d->b_runs, snd_plural(d->b_runs));
    snd_out_format(out, d->has_steps ? ", %u steps. Times are of a step\n" : ". ", d->b_steps);
    if (!d->has_steps)
        snd_out_format(out, "Times are of a %s: no steps to compare\n", d->source->unit);
    put_whole(d, options, out);
    put_lacking(d, options, out);
    snd_out_format(
        out,
        "Rows: %zu slower, %zu faster, %zu new, %zu gone, %zu renamed, %zu the same, %zu "
        "unclear, %zu not judged\n",
        t.slower, t.faster, t.fresh, t.gone, t.renamed, t.same, t.unclear, t.not_judged);
    if (d->noise.judged > 0 && !d->noise.by_runs)
        snd_out_format(
            out,
            "One run per side: how much runs differ is estimated from the rows (all rows "
            "%+.1f%%, left out of each; errors x%.1f). Several runs per side show it: "
            "sonde diff A1 A2 A3 -- B1 B2 B3\n",
            d->noise.shift * 100, d->noise.inflation);
    if (t.unclear > 0)
        snd_out_text(out, "Unclear: no change was seen, but noise would have hidden one of 5 %\n");
    if (t.not_judged > 0)
        snd_out_format(out, "Not judged: fewer than %d samples per side, or one number per run\n",
                       SND_DIFF_LEAST_SAMPLES);
    if (t.outside > 0)
        snd_out_format(out, "Outside: %zu row%s of no step; not compared\n", t.outside,
                       snd_plural(t.outside));
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

/* What is to be compared. */
struct sides {
    struct sonde_trace *const *traces; /* of A, then of B */
    size_t                     a_runs, b_runs;
    double                     least_effect;
};

/* A run without a row is a mistake, not a program of which all is new. `more`: what to say after that. */
static enum sonde_status refuse_empty(const struct snd_diff *d, const char *more,
                                      struct sonde_error *err)
{
    for (uint32_t i = 0; i < d->a_runs + d->b_runs; i++)
        if (d->runs[i].count == 0)
            return snd_fail(err, SONDE_E_STATE, "run %u of %s has no %s to compare%s",
                            snd_diff_run_number(d, i), snd_diff_run_side(d, i), d->source->name,
                            more);
    return SONDE_OK;
}

/* `has_rows` of each run that has some becomes true, whether all have or not; it may be NULL. */
static enum sonde_status compare_by(const struct sides *s, const struct snd_diff_source *source,
                                    const char *more, bool *has_rows, struct snd_diff **out,
                                    struct sonde_error *err)
{
    enum sonde_status st = snd_diff_new(s->traces, s->a_runs, s->b_runs, source, s->least_effect,
                                        out, err);

    for (size_t i = 0; st == SONDE_OK && has_rows && i < s->a_runs + s->b_runs; i++)
        has_rows[i] |= (*out)->runs[i].count > 0;
    if (st == SONDE_OK)
        st = refuse_empty(*out, more, err);
    if (st != SONDE_OK) {
        snd_diff_free(*out);
        *out = NULL;
    }
    return st;
}

/*
 * By the first kind of rows that every run has; if there is none, the runs themselves; if not even their
 * times are known, the error is that of the first kind.
 */
static enum sonde_status compare_first(const struct sides *s, struct snd_diff **out,
                                       struct sonde_error *err)
{
    enum sonde_status  st = SONDE_E_STATE;
    size_t             runs = s->a_runs + s->b_runs, lacking = 0, last = snd_diff_source_count - 1;
    bool              *has_rows = calloc(runs, sizeof *has_rows);
    struct sonde_error found, first = { 0 };

    if (!has_rows)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu runs", runs);
    for (size_t i = 0; st == SONDE_E_STATE && i <= last; i++) {
        while (i == last && lacking < runs && has_rows[lacking])
            lacking++;
        st = compare_by(s, &snd_diff_sources[i], ", and there are no other rows that all runs have",
                        has_rows, out, &found);
        if (i == 0)
            first = found;
        if (i == last && st == SONDE_OK)
            (*out)->lacking = (uint32_t)lacking + 1;
    }
    free(has_rows);
    if (st != SONDE_OK && err)
        *err = st == SONDE_E_STATE ? first : found;
    return st;
}

/* By what `by` names; NULL: by the first that every run has. */
static enum sonde_status compare(const struct sides *s, const char *by, struct snd_diff **out,
                                 struct sonde_error *err)
{
    const struct snd_diff_source *source = NULL;

    if (!by)
        return compare_first(s, out, err);
    enum sonde_status st = find_source(by, &source, err);
    return st == SONDE_OK ? compare_by(s, source, "; --by compares others", NULL, out, err) : st;
}

enum sonde_status sonde_diff_margin(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                                    const struct sonde_diff_options *options,
                                    double *margin_percent, struct sonde_error *err)
{
    struct sonde_diff_options used = SONDE_DIFF_OPTIONS_INIT;
    struct snd_conditions     conditions;
    struct snd_diff          *d = NULL;

    enum sonde_status st = snd_struct_take(options, &used, sizeof used, "SONDE_DIFF_OPTIONS_INIT",
                                           err);
    if (st == SONDE_OK)
        st = snd_conditions_parse(used.fail_if, &conditions, err);
    if (st == SONDE_OK)
        st = compare(&(const struct sides){ traces, a_runs, b_runs, used.least_percent / 100 },
                     used.by, &d, err);
    if (st == SONDE_OK)
        st = snd_conditions_check(&conditions, d, err);
    if (st != SONDE_OK) {
        snd_diff_free(d);
        return st;
    }
    const struct snd_diff_answer *whole = &d->whole;
    bool has_interval = whole->has_times && whole->verdict != SND_DIFF_NOT_JUDGED;
    /* Of the ratio, which has the same margin upwards and downwards as a factor. */
    *margin_percent = has_interval && whole->low > -1
                          ? (sqrt((1 + whole->high) / (1 + whole->low)) - 1) * 100
                          : INFINITY;
    snd_diff_free(d);
    return SONDE_OK;
}

SND_DOC_RELEASE(free_diff, snd_diff_free)

static enum sonde_status fill(struct snd_doc *doc, struct snd_diff *d,
                              const struct snd_conditions       *conditions,
                              const struct sonde_report_options *report, size_t *failed,
                              struct sonde_error *err)
{
    enum sonde_status st = SONDE_OK;

    doc->data = d;
    doc->head = put_head;
    *failed = snd_conditions_whole(conditions, d) ? 1 : 0;
    if (!snd_diff_add_rows(doc, d, conditions, failed))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu rows", d->count);
    add_totals(doc, d, *failed);
    if (report->sort)
        st = snd_table_sort(&doc->rows, report->sort, err);
    if (st == SONDE_OK && snd_doc_has_failed(doc))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the diff");
    return st;
}

enum sonde_status sonde_diff(struct sonde_trace *const *traces, size_t a_runs, size_t b_runs,
                             const struct sonde_diff_options   *options,
                             const struct sonde_report_options *report,
                             const struct sonde_sink *sink, size_t *failed, struct sonde_error *err)
{
    struct sonde_diff_options   used = SONDE_DIFF_OPTIONS_INIT;
    struct sonde_report_options shown;
    struct snd_conditions       conditions;
    struct sonde_summary      **summaries = calloc(a_runs + b_runs, sizeof *summaries);
    struct snd_doc              doc = { .view = "diff" };
    struct snd_diff            *d = NULL;
    size_t                      failures = 0;

    if (!summaries)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %zu runs", a_runs + b_runs);
    enum sonde_status  st = snd_struct_take(options, &used, sizeof used, "SONDE_DIFF_OPTIONS_INIT",
                                            err);
    const struct sides s = { traces, a_runs, b_runs, used.least_percent / 100 };
    if (st == SONDE_OK)
        st = snd_report_options(report, &shown, err);
    if (st == SONDE_OK)
        st = snd_conditions_parse(used.fail_if, &conditions, err);
    for (size_t i = 0; st == SONDE_OK && i < a_runs + b_runs; i++)
        st = snd_summary_begin(traces[i], &summaries[i], err);
    if (st == SONDE_OK)
        st = compare(&s, used.by, &d, err);
    if (st == SONDE_OK)
        st = snd_conditions_check(&conditions, d, err);
    snd_doc_keep(&doc, d, free_diff);
    if (st == SONDE_OK)
        st = fill(&doc, d, &conditions, &shown, &failures, err);
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
