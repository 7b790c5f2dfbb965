/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/losses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "cli/options/options.h"
#include "model/summary/ledger.h"

/* The ledger keys that are unwanted losses, the gravest first. */
static const enum snd_ledger_key losses[] = {
    SND_LEDGER_lost_events,   SND_LEDGER_failed_reserves, SND_LEDGER_limit_reached,
    SND_LEDGER_lost_children, SND_LEDGER_refused_events,  SND_LEDGER_refused_files,
    SND_LEDGER_lost_calls,    SND_LEDGER_lost_names,      SND_LEDGER_damaged_chunks,
    SND_LEDGER_skipped_bytes,
};
#define LOSS_COUNT SND_COUNT_OF(losses)

static bool has_losses(const struct snd_ledger *ledger)
{
    for (size_t i = 0; i < LOSS_COUNT; i++)
        if (ledger->counts[losses[i]] > 0)
            return true;
    return false;
}

/* The sentence of the gravest loss. */
static const char *find_text(const struct snd_ledger *ledger, struct sonde_ledger_item *items)
{
    size_t      count = snd_ledger_list(ledger, items), at = 0;
    const char *text = "";

    for (size_t i = LOSS_COUNT; i-- > 0;) {
        if (ledger->counts[losses[i]] == 0)
            continue;
        /* Items are the counts that are not 0, in the order of their keys. */
        at = 0;
        for (size_t key = 0; key < (size_t)losses[i]; key++)
            at += ledger->counts[key] > 0;
        if (at < count)
            text = items[at].text;
    }
    return text;
}

static const char *find_reason(const struct snd_ledger *ledger)
{
    if (ledger->counts[SND_LEDGER_failed_reserves] > 0)
        return strerror(ledger->os_error);
    if (ledger->counts[SND_LEDGER_limit_reached] > 0)
        return "the trace reached its size limit";
    return "the recorder had no room for them";
}

/* Events plus counted calls; 0 if they cannot be counted. */
static uint64_t count_events(struct sonde_trace *trace)
{
    struct sonde_summary *summary;
    uint64_t              count = 0;

    if (sonde_summary_new(trace, &summary, NULL) == SONDE_OK) {
        count = sonde_summary_totals(summary)->events;
        sonde_summary_free(summary);
    }
    return count;
}

static uint64_t count_calls(struct sonde_trace *trace)
{
    struct sonde_functions *functions;
    uint64_t                count = 0;

    if (sonde_functions_new(trace, &functions, NULL) != SONDE_OK)
        return 0;
    for (size_t i = 0; i < sonde_functions_count(functions); i++)
        count += sonde_functions_row(functions, i)->calls;
    sonde_functions_free(functions);
    return count;
}

static void say_share(const char *command, const char *what, uint64_t lost, uint64_t kept,
                      const char *why)
{
    uint64_t all = lost + kept;

    (void)snd_failure("%s: %.1f %% of the %s were lost (%" PRIu64 " of %" PRIu64 "): %s; "
                      "see 'sonde report --view ledger'",
                      command, 100.0 * (double)lost / (double)all, what, lost, all, why);
}

void snd_say_losses(const char *command, struct sonde_trace *trace)
{
    static const struct snd_assembly_stats none;
    struct snd_ledger                      ledger = { 0 };
    struct sonde_ledger_item               items[SND_LEDGER_COUNT];

    snd_ledger_fill(&ledger, trace, &none);
    if (!has_losses(&ledger))
        return;
    uint64_t events = ledger.counts[SND_LEDGER_lost_events];
    uint64_t calls = ledger.counts[SND_LEDGER_lost_calls];
    if (calls > events)
        say_share(command, "calls", calls, count_calls(trace), find_reason(&ledger));
    else if (events > 0)
        say_share(command, "events", events, count_events(trace), find_reason(&ledger));
    else
        (void)snd_failure("%s: a part is missing: %s", command, find_text(&ledger, items));
}

void snd_say_losses_at(const char *command, const char *path)
{
    struct sonde_trace *trace;

    if (sonde_trace_open(path, &trace, NULL) != SONDE_OK)
        return;
    snd_say_losses(command, trace);
    sonde_trace_close(trace);
}
