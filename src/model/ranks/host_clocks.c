/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/host_clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/ranks/clocks.h"
#include "model/ranks/collectives.h"
#include "read/said/trace_facts.h"

#define ERROR_MOST 1e15 /* ns: more is said of no clock */

struct gathering {
    struct snd_host_clocks *hosts;
    struct snd_clocks       clocks;
    struct snd_stay        *stays;
    uint32_t                room;
    bool                    failed;
};

/* --------------------------------------------------------------- which hosts */

static bool is_same_clock(const struct snd_process *a, const struct snd_process *b)
{
    if (a->header.boot_id != 0 || b->header.boot_id != 0)
        return a->header.boot_id == b->header.boot_id;
    return strcmp(a->shown.host, b->shown.host) == 0;
}

static bool list_hosts(struct sonde_trace *trace, struct snd_host_clocks *hosts)
{
    uint32_t *first = calloc((size_t)trace->process_count + 1, sizeof *first);

    hosts->host_of = snd_arena_take(&trace->arena,
                                    (trace->process_count + 1) * sizeof *hosts->host_of);
    for (uint32_t i = 0; first && hosts->host_of && i < trace->process_count; i++) {
        uint32_t host = 0;
        while (host < hosts->hosts &&
               !is_same_clock(&trace->processes[first[host]], &trace->processes[i]))
            host++;
        if (host == hosts->hosts)
            first[hosts->hosts++] = i;
        hosts->host_of[i] = host;
    }
    free(first);
    if (!first || !hosts->host_of)
        return false;
    hosts->errors_ns = snd_arena_take(&trace->arena, (hosts->hosts + 1) * sizeof *hosts->errors_ns);
    for (uint32_t i = 0; hosts->errors_ns && i < hosts->hosts; i++)
        hosts->errors_ns[i] = -1;
    return hosts->errors_ns != NULL;
}

/* What the kernels said of CLOCK_REALTIME, the worst of them; -1: one of the hosts said nothing. */
static int64_t find_claim(const struct sonde_trace *trace, const struct snd_host_clocks *hosts)
{
    int64_t worst = 0;

    for (uint32_t host = 0; host < hosts->hosts; host++) {
        int64_t claimed = -1;
        for (uint32_t i = 0; i < trace->process_count; i++) {
            const struct snd_fact *fact;
            for (uint32_t at = 0; hosts->host_of[i] == host &&
                                  (fact = snd_fact_next(trace, i, SND_FACT_OF_CLOCK, &at));)
                if (snd_fact_number(fact, SND_FIELD_CLOCK_IN_STEP, 0) == 1) {
                    int64_t error = snd_fact_number(fact, SND_FIELD_CLOCK_MAXIMUM_NS, -1);
                    claimed = error > claimed ? error : claimed;
                }
        }
        if (claimed < 0)
            return -1;
        worst = claimed > worst ? claimed : worst;
    }
    return worst;
}

/* ----------------------------------------------------------------- gathering */

/* Nobody leaves one of these before all have entered it. */
static bool is_for_all(enum snd_collective_kind kind)
{
    return kind == SND_COLLECTIVE_ALL_REDUCE || kind == SND_COLLECTIVE_ALL_GATHER ||
           kind == SND_COLLECTIVE_REDUCE_SCATTER || kind == SND_COLLECTIVE_BARRIER;
}

static void on_done(void *user, const struct snd_collective *c)
{
    struct gathering *g = user;

    if (!c->is_whole || !c->is_complete || c->kind_differs || !is_for_all(c->kind) || c->count < 2)
        return;
    while (g->room < c->count)
        if (!snd_grow(&g->stays, &g->room, g->room, sizeof *g->stays)) {
            g->failed = true;
            return;
        }
    for (uint32_t i = 0; i < c->count; i++) {
        const struct snd_collective_member *m = &c->members[i];
        /* A call that returns while its work goes on says nothing of when it left. */
        if (!m->has_work && !m->has_launched)
            return;
        g->stays[i] = (struct snd_stay){ g->hosts->host_of[m->process], m->rank, m->enter_ns,
                                         m->end_ns };
    }
    g->failed |= !snd_clocks_add(&g->clocks, c->group_number, g->stays, c->count);
}

/* ------------------------------------------------------------------ applying */

/* As bends of a process: at its knots, its begin and its end. */
static bool bend_process(struct sonde_trace *trace, uint32_t process,
                         const struct snd_host_clock *clock)
{
    const struct sonde_process *p = &trace->processes[process].shown;
    struct snd_scale_bend      *bends = calloc((size_t)clock->count + 2, sizeof *bends);
    uint32_t                    count = 0;

    if (!bends)
        return false;
    if (p->start_ns < clock->knots[0].at_ns)
        bends[count++].at_ns = p->start_ns;
    for (uint32_t i = 0; i < clock->count; i++)
        bends[count++].at_ns = clock->knots[i].at_ns;
    if (p->stop_ns > clock->knots[clock->count - 1].at_ns)
        bends[count++].at_ns = p->stop_ns;
    for (uint32_t i = 0; i < count; i++)
        bends[i].add_ns = snd_sub(0, snd_clock_offset(clock, bends[i].at_ns, NULL));
    bool good = snd_axis_bend(trace, process, bends, count);
    free(bends);
    return good;
}

static int64_t find_error(const struct snd_host_clock *clock)
{
    double worst = 0;

    for (uint32_t i = 0; i < clock->count; i++)
        worst = fmax(worst, clock->knots[i].error_ns);
    return (int64_t)fmin(worst, ERROR_MOST);
}

static bool apply(struct sonde_trace *trace, const struct snd_clocks *clocks,
                  struct snd_host_clocks *hosts)
{
    for (uint32_t host = 0; host < hosts->hosts; host++) {
        if (!clocks->clocks[host].is_known)
            continue;
        hosts->aligned++;
        hosts->errors_ns[host] = find_error(&clocks->clocks[host]);
        if (hosts->errors_ns[host] > hosts->error_ns)
            hosts->error_ns = hosts->errors_ns[host];
    }
    bool good = true;
    for (uint32_t i = trace->process_count; good && i-- > 0;) {
        const struct snd_host_clock *clock = &clocks->clocks[hosts->host_of[i]];
        if (hosts->host_of[i] == clocks->reference)
            hosts->reference = i;
        if (clock->is_known && clock->count > 0)
            good = bend_process(trace, i, clock);
    }
    snd_axis_begin_again(trace);
    return good;
}

static enum sonde_status align(struct sonde_trace *trace, struct snd_host_clocks *hosts,
                               struct sonde_error *err)
{
    struct gathering              g = { .hosts = hosts };
    struct snd_groups             groups = { 0 };
    struct snd_collective_watcher watcher = { .user = &g, .done = on_done, .waits = true };
    enum sonde_status             status = SONDE_OK;

    g.failed = !snd_clocks_init(&g.clocks, hosts->hosts);
    if (!g.failed)
        status = snd_collectives_walk(trace, &groups, &watcher, err);
    if (status == SONDE_OK && !g.failed && g.clocks.meetings) {
        g.failed = !snd_clocks_solve(&g.clocks);
        if (!g.failed && snd_clocks_any(&g.clocks))
            g.failed = !apply(trace, &g.clocks, hosts);
    }
    if (status == SONDE_OK && g.failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the clocks of the hosts");
    snd_groups_release(&groups);
    snd_clocks_release(&g.clocks);
    free(g.stays);
    return status;
}

enum sonde_status snd_host_clocks_align(struct sonde_trace *trace, struct sonde_error *err)
{
    if (trace->host_clocks)
        return SONDE_OK;
    struct snd_host_clocks *hosts = snd_arena_take(&trace->arena, sizeof *hosts);
    if (!hosts)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the clocks of the hosts");
    *hosts = (struct snd_host_clocks){ .claimed_ns = -1 };
    if (!list_hosts(trace, hosts))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the clocks of the hosts");
    trace->host_clocks = hosts;
    if (hosts->hosts < 2)
        return SONDE_OK;
    hosts->claimed_ns = find_claim(trace, hosts);
    return snd_groups_any(trace) ? align(trace, hosts, err) : SONDE_OK;
}

int64_t snd_host_clocks_error(const struct sonde_trace *trace, uint32_t process, uint32_t other)
{
    const struct snd_host_clocks *hosts = trace->host_clocks;

    if (!hosts || hosts->hosts < 2 || hosts->host_of[process] == hosts->host_of[other])
        return 0;
    int64_t a = hosts->errors_ns[hosts->host_of[process]];
    int64_t b = hosts->errors_ns[hosts->host_of[other]];
    return a < 0 || b < 0 ? 0 : a + b;
}
