/* SPDX-License-Identifier: Apache-2.0 */
#include "model/counters/run_counters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/data/map.h"

/* ------------------------------------------------------------------- runs */

static struct snd_counter_row *find_row(struct snd_counter_table *table, struct sonde_text name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].name.length == name.length &&
            memcmp(table->rows[i].name.bytes, name.bytes, name.length) == 0)
            return &table->rows[i];
    if (!snd_grow(&table->rows, &table->capacity, table->count, sizeof *table->rows))
        return NULL;
    struct snd_counter_row *row = &table->rows[table->count++];
    size_t                  bare = strcspn(name.bytes, ":");
    *row = (struct snd_counter_row){ .name = name };
    row->known = snd_counter_find(name.bytes, bare < name.length ? bare : name.length);
    return row;
}

/* Welford's way, as perf's update_stats(). */
static void add_value(struct snd_counter_row *row, double counted, double scaled)
{
    double delta = scaled - row->mean;

    row->runs++;
    row->mean += delta / row->runs;
    row->squares += delta * (scaled - row->mean);
    row->counted += (counted - row->counted) / row->runs;
    row->least = row->runs == 1 || scaled < row->least ? scaled : row->least;
    row->most = row->runs == 1 || scaled > row->most ? scaled : row->most;
    row->error = row->runs > 1 ? sqrt(row->squares / (row->runs - 1) / row->runs) : 0;
}

static bool add_fact(struct snd_counter_table *table, const struct snd_fact *fact)
{
    struct snd_counter_row *row = find_row(table, fact->subject);

    if (!row)
        return false;
    if (fact->number > table->runs)
        table->runs = fact->number;
    row->is_ns |= snd_text_is(snd_fact_text(fact, SND_FIELD_COUNTER_UNIT), "ns");
    row->line_bytes = (double)snd_fact_number(fact, SND_FIELD_COUNTER_LINE_BYTES, 0);
    if (snd_fact_text(fact, SND_FIELD_COUNTER_NOTE).length > 0)
        row->note = snd_fact_text(fact, SND_FIELD_COUNTER_NOTE);
    if (snd_fact_text(fact, SND_FIELD_COUNTER_ABSENT).length > 0) {
        row->absent = snd_fact_text(fact, SND_FIELD_COUNTER_ABSENT);
        return true;
    }
    double value = (double)(uint64_t)snd_fact_number(fact, SND_FIELD_COUNTER_VALUE, 0);
    double enabled = (double)snd_fact_number(fact, SND_FIELD_COUNTER_ENABLED_NS, 0);
    double running = (double)snd_fact_number(fact, SND_FIELD_COUNTER_RUNNING_NS, 0);
    row->enabled += enabled;
    row->running += running;
    if (enabled > 0 && running <= 0) { /* it never had its turn: its value is not known */
        static const char never[] = "not counted: the processor counted others all the time; "
                                    "ask for fewer";
        row->absent = (struct sonde_text){ never, sizeof never - 1 };
        return true;
    }
    add_value(row, value, running > 0 && running < enabled ? value * (enabled / running) : value);
    return true;
}

/* ------------------------------------------------------------ what follows */

static bool has_modes(const struct snd_counter_row *row, const struct snd_counter_row *like)
{
    const char *one = memchr(row->name.bytes, ':', row->name.length);
    const char *other = memchr(like->name.bytes, ':', like->name.length);

    return strcmp(one ? one : "", other ? other : "") == 0;
}

const struct snd_counter_row *snd_counter_row(const struct snd_counter_table *table,
                                              enum snd_counter_id             id,
                                              const struct snd_counter_row   *like)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].known == &snd_counters[id] && table->rows[i].runs > 0 &&
            (!like || has_modes(&table->rows[i], like)))
            return &table->rows[i];
    return NULL;
}

static const struct snd_counter_row *find_whole(const struct snd_counter_table *table,
                                                const struct snd_counter_row   *row)
{
    const struct snd_counter *of = row->known
                                       ? snd_counter_find(row->known->of, strlen(row->known->of))
                                       : NULL;

    return of ? snd_counter_row(table, (enum snd_counter_id)(of - snd_counters), row) : NULL;
}

static double divide(double part, double whole)
{
    return whole > 0 ? part / whole : NAN;
}

static void set_metric(struct snd_counter_row *row, double metric, const char *unit)
{
    row->metric = metric;
    row->metric_unit = unit;
}

/* The one that `perf stat` shows beside it. */
static void derive_metric(const struct snd_counter_table *table, struct snd_counter_row *row,
                          const struct snd_counter_row *clock)
{
    const struct snd_counter_row *whole = find_whole(table, row);
    const struct snd_counter_row *cycles = snd_counter_row(table, SND_COUNTER_OF_CYCLES, row);
    const struct snd_counter     *it = row->known;

    if (it && (it == &snd_counters[SND_COUNTER_OF_TASK_CLOCK] ||
               it == &snd_counters[SND_COUNTER_OF_CPU_CLOCK]))
        set_metric(row, divide(row->mean, table->elapsed_ns), "CPUs utilized");
    else if (it == &snd_counters[SND_COUNTER_OF_INSTRUCTIONS] && it && cycles)
        set_metric(row, divide(row->mean, cycles->mean), "insn per cycle");
    else if (whole)
        set_metric(row, 100 * divide(row->mean, whole->mean), it->share);
    else if (it == &snd_counters[SND_COUNTER_OF_CYCLES] && it && clock)
        set_metric(row, divide(row->mean, clock->mean), "GHz");
    else if (!row->is_ns && clock)
        set_metric(row, row->per_second, "/sec");
}

static void derive(const struct snd_counter_table *table, struct snd_counter_row *row)
{
    const struct snd_counter_row *clock = snd_counter_row(table, SND_COUNTER_OF_TASK_CLOCK, NULL);
    const struct snd_counter_row *work = snd_counter_row(table, SND_COUNTER_OF_INSTRUCTIONS, row);

    if (!clock)
        clock = snd_counter_row(table, SND_COUNTER_OF_CPU_CLOCK, NULL);
    row->metric = row->per_second = row->per_thousand = row->bytes_per_second = NAN;
    if (row->runs == 0)
        return;
    if (clock && !row->is_ns)
        row->per_second = 1e9 * divide(row->mean, clock->mean);
    bool misses = row->known && row->known->type != SND_COUNTER_SOFTWARE && row->known->of[0] &&
                  strcmp(row->known->of, "cycles") != 0;
    if (misses && work)
        row->per_thousand = 1000 * divide(row->mean, work->mean);
    if (row->line_bytes > 0)
        row->bytes_per_second = 1e9 * divide(row->mean * row->line_bytes, table->elapsed_ns);
    derive_metric(table, row, clock);
}

/* ------------------------------------------------------------------ whole */

double snd_counter_percent(double error, double mean)
{
    return mean != 0 ? 100 * error / fabs(mean) : 0;
}

bool snd_counters_there(const struct sonde_trace *trace)
{
    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        for (uint32_t at = 0; snd_fact_next(trace, p, SND_FACT_OF_COUNTER, &at);)
            return true;
    return false;
}

enum sonde_status snd_counter_table_make(const struct sonde_trace *trace,
                                         struct snd_counter_table *table, struct sonde_error *err)
{
    const struct snd_fact *fact;

    *table = (struct snd_counter_table){ .process = SONDE_NONE };
    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++) {
        for (uint32_t at = 0; (fact = snd_fact_next(trace, p, SND_FACT_OF_COUNTER, &at));) {
            table->process = p;
            if (!add_fact(table, fact))
                return snd_fail(err, SONDE_E_NOMEM, "out of memory for %u counters", table->count);
        }
    }
    const struct snd_counter_row *elapsed = snd_counter_row(table, SND_COUNTER_OF_DURATION, NULL);
    if (elapsed) {
        table->elapsed_ns = elapsed->mean;
        table->elapsed_error_ns = elapsed->error;
    }
    for (uint32_t i = 0; i < table->count; i++)
        derive(table, &table->rows[i]);
    return SONDE_OK;
}

void snd_counter_table_release(struct snd_counter_table *table)
{
    free(table->rows);
    *table = (struct snd_counter_table){ .process = SONDE_NONE };
}
