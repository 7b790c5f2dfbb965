/* SPDX-License-Identifier: Apache-2.0 */
#include "view/diff/diff_rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/data/sort.h"

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

const char *const snd_diff_verdicts[] = {
    [SND_DIFF_NOT_JUDGED] = "not judged", [SND_DIFF_SAME] = "same",
    [SND_DIFF_UNCLEAR] = "unclear",       [SND_DIFF_FASTER] = "faster",
    [SND_DIFF_SLOWER] = "slower",
};

bool snd_diff_is_outside(const struct snd_diff_row *row)
{
    return row->a.count == 0 && row->b.count == 0;
}

static const char *verdict_of(const struct snd_diff_row *row)
{
    if (snd_diff_is_outside(row))
        return "outside";
    return row->match == SND_DIFF_NEW    ? "new"
           : row->match == SND_DIFF_GONE ? "gone"
                                         : snd_diff_verdicts[row->time.verdict];
}

/* ---------------------------------------------------------------------- order */

/*
 * Changed rows come first, the largest cost on top; then new and gone ones, unless samples may have missed them;
 * then the others.
 */
struct ranked {
    const struct snd_diff_row *row;
    int                        rank;
    double                     cost;
    size_t                     place;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->rank, y->rank), SND_FALLING(x->cost, y->cost),
                     SND_RISING(x->place, y->place));
}

static bool is_changed(const struct snd_diff_row *row)
{
    return row->time.verdict == SND_DIFF_SLOWER || row->time.verdict == SND_DIFF_FASTER;
}

static struct ranked rank_row(const struct snd_diff_row *row, size_t place, bool is_sampled)
{
    double time = fmax(row->a.time_ns, row->b.time_ns);

    if (is_changed(row))
        return (struct ranked){ row, 0, fabs(row->time.change) * row->a.time_ns, place };
    if (row->match != SND_DIFF_BOTH && !is_sampled)
        return (struct ranked){ row, 1, time, place };
    if (row->count_changed || row->bytes_changed || row->flops_changed)
        return (struct ranked){ row, 2, time, place };
    return (struct ranked){ row, row->time.verdict == SND_DIFF_NOT_JUDGED ? 4 : 3, time, place };
}

/* ---------------------------------------------------------------------- cells */

static struct snd_cell cell_of_ns(bool known, double ns)
{
    return known ? snd_cell_number((int64_t)(ns + 0.5)) : snd_cell_none();
}

static struct snd_cell cell_if(bool known, double value)
{
    return known ? snd_cell_real(value) : snd_cell_none();
}

struct snd_cell snd_diff_percent(bool known, double ratio)
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

/* One-sided rows have their mean. So does one that took no time: the statistics' logarithms begin at 1 ns. */
static double side_ns(bool typical, double ns, const struct snd_diff_value *mean)
{
    return typical && mean->time_ns > 0 ? ns : mean->time_ns;
}

static void put_times(struct snd_doc *doc, struct snd_cell *cell, const struct snd_diff_row *row)
{
    const struct snd_diff_answer *t = &row->time;
    bool                          judged = t->verdict != SND_DIFF_NOT_JUDGED;
    /* What grew from nothing grew by no percentage. */
    bool known = t->has_times && (row->a.time_ns > 0 || row->b.time_ns <= 0);

    cell[A_TIME] = cell_of_ns(row->match != SND_DIFF_NEW && !snd_diff_is_outside(row),
                              side_ns(t->has_times, t->a_ns, &row->a));
    cell[B_TIME] = cell_of_ns(row->match != SND_DIFF_GONE && !snd_diff_is_outside(row),
                              side_ns(t->has_times, t->b_ns, &row->b));
    cell[CHANGE] = snd_diff_percent(known, t->change);
    cell[LOW] = snd_diff_percent(judged && known, t->low);
    cell[HIGH] = snd_diff_percent(judged && known, t->high);
    cell[P] = cell_of_p(judged, t->p);
    cell[CHANGE_TEXT] = cell[RANGE_TEXT] = snd_cell_string("");
    if (known)
        cell[CHANGE_TEXT] = snd_cell_string(snd_doc_format(doc, "%+.1f%%", t->change * 100));
    if (judged && known)
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
    doc->rows.hidden[A_COUNT] = doc->rows.hidden[B_COUNT] = d->is_sampled ||
                                                            !(d->source->has & SND_DIFF_COUNT);
    doc->rows.hidden[A_BYTES] = doc->rows.hidden[B_BYTES] = !memory;
    doc->rows.hidden[A_FLOPS] = doc->rows.hidden[B_FLOPS] = !flops;
    doc->rows.hidden[ALSO] = !also;
    doc->rows.hidden[WAS] = !was;
}

static const struct snd_column_title page_titles[] = {
    { "change_percent", "Change %" },
    { "low_percent", "95 % from" },
    { "high_percent", "to" },
    { NULL, NULL },
};

bool snd_diff_add_rows(struct snd_doc *doc, const struct snd_diff *d,
                       const struct snd_conditions *conditions, size_t *failed)
{
    struct ranked *ranked = calloc(d->count + 1, sizeof *ranked);

    snd_table_init(&doc->rows, columns, COLUMNS);
    doc->page_titles = page_titles;
    for (size_t i = 0; ranked && i < d->count; i++)
        ranked[i] = rank_row(&d->rows[i], i, d->is_sampled);
    if (ranked)
        snd_sort(ranked, d->count, sizeof *ranked, compare_ranked);
    for (size_t i = 0; ranked && i < d->count; i++) {
        bool fails = snd_conditions_row(conditions, ranked[i].row);
        *failed += fails;
        put_row(doc, ranked[i].row, fails);
    }
    hide_unused(doc, d);
    free(ranked);
    return ranked != NULL;
}
