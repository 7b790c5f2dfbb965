/* SPDX-License-Identifier: Apache-2.0 */
#include "view/diff/diff_conditions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

/* The change in per cent that a row really has; 0: none, or none that can be told from noise. */
typedef double change_fn(const struct snd_diff_row *row);

static double change_of_time(const struct snd_diff_row *row)
{
    bool changed = row->time.verdict == SND_DIFF_SLOWER || row->time.verdict == SND_DIFF_FASTER;

    return changed ? row->time.change * 100 : 0;
}

static double change_of(double a, double b)
{
    if (a == b)
        return 0;
    return a == 0 ? copysign((double)INFINITY, b) : (b - a) / fabs(a) * 100;
}

static bool is_one_sided(const struct snd_diff_row *row)
{
    return row->match == SND_DIFF_NEW || row->match == SND_DIFF_GONE;
}

static double change_of_count(const struct snd_diff_row *row)
{
    return row->count_changed || is_one_sided(row) ? change_of(row->a.count, row->b.count) : 0;
}

static double change_of_memory(const struct snd_diff_row *row)
{
    return row->bytes_changed || is_one_sided(row) ? change_of(row->a.bytes, row->b.bytes) : 0;
}

static double change_of_flops(const struct snd_diff_row *row)
{
    return row->flops_changed || is_one_sided(row) ? change_of(row->a.flops, row->b.flops) : 0;
}

/* clang-format off */
static const struct {
    const char *name;
    change_fn  *of_row;
    bool        of_whole;
    unsigned    needs; /* SND_DIFF_COUNT and so on; 0: every run has it */
    const char *what, *advice;
} metrics[] = {
    { "time",   change_of_time,   true,  0, NULL, NULL },
    { "step",   NULL,             true,  0, NULL, NULL },
    { "count",  change_of_count,  false, SND_DIFF_COUNT, "calls",
      "sonde run --functions or --ops counts them" },
    { "memory", change_of_memory, false, SND_DIFF_MEMORY, "memory",
      "sonde run --ops --memory records that of operators and modules, --heap that of the run (--by run)" },
    { "flops",  change_of_flops,  false, SND_DIFF_FLOPS, "FLOPs",
      "sonde run --ops --shapes records those of operators and modules" },
};
/* clang-format on */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

static const char *parse_one(const char *at, struct snd_condition *out)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz"), i = 0;
    size_t count = SND_COUNT_OF(metrics);

    while (i < count &&
           (strlen(metrics[i].name) != length || strncmp(at, metrics[i].name, length) != 0))
        i++;
    at = skip_blanks(at + length);
    if (i == count || (*at != '>' && *at != '<'))
        return NULL;
    out->metric = (int)i;
    out->below = *at == '<';
    at = skip_blanks(at + 1);
    if (!strchr("+-0123456789.", *at) || *at == '\0') /* strtod takes more than that */
        return NULL;
    char *end;
    out->percent = strtod(at, &end);
    if (end == at || !isfinite(out->percent) || *end != '%')
        return NULL;
    return skip_blanks(end + 1);
}

enum sonde_status snd_conditions_parse(const char *text, struct snd_conditions *out,
                                       struct sonde_error *err)
{
    const char *at = text ? skip_blanks(text) : "";

    out->count = 0;
    if (!text)
        return SONDE_OK;
    for (;;) {
        if (out->count == SND_CONDITIONS_MAX)
            return snd_fail(err, SONDE_E_ARGUMENT, "--fail-if: at most %d conditions, got more",
                            SND_CONDITIONS_MAX);
        at = parse_one(at, &out->list[out->count++]);
        if (at && *at == '\0')
            return SONDE_OK;
        if (!at || *at != ',')
            return snd_fail(err, SONDE_E_ARGUMENT,
                            "--fail-if: expected time, step, count, memory or flops, then > or <, "
                            "then a percentage (time>+5%%), got '%.60s'",
                            text);
        at = skip_blanks(at + 1);
    }
}

enum sonde_status snd_conditions_check(const struct snd_conditions *conditions,
                                       const struct snd_diff *diff, struct sonde_error *err)
{
    for (size_t i = 0; i < conditions->count; i++) {
        int m = conditions->list[i].metric;
        for (uint32_t run = 0; metrics[m].needs && run < diff->a_runs + diff->b_runs; run++)
            if (!snd_diff_run_has(diff, run, metrics[m].needs))
                return snd_fail(err, SONDE_E_STATE,
                                "--fail-if: %s: run %u of %s has no %s by %s: %s", metrics[m].name,
                                snd_diff_run_number(diff, run), snd_diff_run_side(diff, run),
                                metrics[m].what, diff->source->name, metrics[m].advice);
    }
    return SONDE_OK;
}

static bool holds(const struct snd_condition *c, double percent)
{
    return percent != 0 && (c->below ? percent < c->percent : percent > c->percent);
}

bool snd_conditions_row(const struct snd_conditions *conditions, const struct snd_diff_row *row)
{
    for (size_t i = 0; i < conditions->count; i++) {
        const struct snd_condition *c = &conditions->list[i];
        if (metrics[c->metric].of_row && holds(c, metrics[c->metric].of_row(row)))
            return true;
    }
    return false;
}

bool snd_conditions_whole(const struct snd_conditions *conditions, const struct snd_diff *diff)
{
    const struct snd_diff_row whole = { .time = diff->whole };

    for (size_t i = 0; i < conditions->count; i++) {
        const struct snd_condition *c = &conditions->list[i];
        if (metrics[c->metric].of_whole && holds(c, change_of_time(&whole)))
            return true;
    }
    return false;
}
