/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of hosts by their collectives: jobs of 64 hosts are simulated, and the error that is stated must hold. */
#include <math.h>

#include "base/count_of.h"
#include "model/ranks/clock_line.h"
#include "model/ranks/clocks.h"
#include "scratch.h"
#include "turns.h"

enum { HOSTS = 64, MOMENTS = 40 };

struct job {
    const char *what;
    uint32_t    ranks; /* of a host */
    uint32_t    collectives;
    double      every_ns;
    double      enter_ns, transfer_ns; /* how far apart ranks enter; from the last one to exits */
    double      exit_ns;               /* how far exits scatter, each way or (late) later alone */
    bool        late;
    double      ring_ns;     /* each rank leaves so much after the one before it */
    double      wobble_ns;   /* of every clock */
    double      wobbles;     /* of them, in the whole job */
    double      straggle_ns; /* host 0 is late by this, and leaves a little before the others */
    uint32_t    groups;      /* that take turns; 0: one */
};

static uint64_t state;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* What the clocks show. Offsets of seconds, 50 ppm each way. */
struct clock {
    double offset_ns, ppm, wobble_ns, phase;
};

static int64_t show(const struct job *job, const struct clock *clock, double ns)
{
    double turn = 6.283185307179586 * job->wobbles * ns / (job->collectives * job->every_ns);

    return (int64_t)llround(ns * (1 + clock->ppm * 1e-6) + clock->offset_ns +
                            clock->wobble_ns * sin(turn + clock->phase));
}

static void make_clocks(const struct job *job, struct clock *clocks)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        clocks[i] = (struct clock){ (uniform() - 0.5) * 2e10, (uniform() - 0.5) * 100,
                                    job->wobble_ns, uniform() * 6 };
}

static void run_collective(const struct job *job, const struct clock *clocks, uint32_t number,
                           struct snd_clocks *found)
{
    struct snd_stay stays[HOSTS * 8];
    double          enters[HOSTS * 8], last = 0;
    uint32_t        count = HOSTS * job->ranks;

    for (uint32_t r = 0; r < count; r++) {
        enters[r] = number * job->every_ns - log(uniform()) * job->enter_ns;
        if (r / job->ranks == 0)
            enters[r] += job->straggle_ns;
        last = fmax(last, enters[r]);
    }
    double done = last + job->transfer_ns * (1 + uniform());
    for (uint32_t r = 0; r < count; r++) {
        double scatter = job->late ? -log(uniform()) * job->exit_ns
                                   : fmax(normal() * job->exit_ns, -job->transfer_ns / 2);
        double leaves = done + r * job->ring_ns + scatter;
        if (r / job->ranks == 0 && job->straggle_ns > 0)
            leaves -= job->transfer_ns / 2;
        const struct clock *clock = &clocks[r / job->ranks];
        stays[r] = (struct snd_stay){ r / job->ranks, r, show(job, clock, enters[r]),
                                      show(job, clock, leaves) };
    }
    assert_true(snd_clocks_add(found, job->groups ? number % job->groups : 0, stays, count));
}

/* The moment at which a clock shows `at`. */
static double when(const struct job *job, const struct clock *clock, int64_t at)
{
    double ns = (double)at - clock->offset_ns;

    for (int i = 0; i < 8; i++)
        ns -= (double)(show(job, clock, ns) - at);
    return ns;
}

/* Of how many hosts the error holds from the first collective to the last. */
static uint32_t simulate(const struct job *job, uint64_t seed, double *typical)
{
    struct clock      clocks[HOSTS];
    struct snd_clocks found;
    double            errors[HOSTS];
    uint32_t          holding = 0, count = 0;

    state = seed * 0x9E3779B97F4A7C15u;
    make_clocks(job, clocks);
    assert_true(snd_clocks_init(&found, HOSTS));
    for (uint32_t i = 0; i < job->collectives; i++)
        run_collective(job, clocks, i, &found);
    assert_true(snd_clocks_solve(&found));
    if (job->straggle_ns > 0)
        assert_int_not_equal(found.reference, 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        bool holds = found.clocks[i].is_known;
        for (uint32_t k = 0; k <= MOMENTS && i != found.reference; k++) {
            double  ns = (job->collectives - 1) * job->every_ns * k / (double)MOMENTS, error;
            int64_t at = show(job, &clocks[i], ns);
            int64_t offset = snd_clock_offset(&found.clocks[i], at, &error);
            int64_t true_offset = at -
                                  show(job, &clocks[found.reference], when(job, &clocks[i], at));
            holds &= fabs((double)(offset - true_offset)) <= error + 1;
            if (k == MOMENTS / 2)
                errors[count++] = error;
        }
        holding += holds;
    }
    *typical = snd_value_at_share(errors, count, 0.5);
    snd_clocks_release(&found);
    return holding;
}

/* What may be stated: a stated error that says nothing would hold, too. */
static const struct {
    struct job job;
    double     most_ns;
} jobs[] = {
    { { "NCCL, one rank a host", 1, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 0, 0, 0, 0 }, 6e5 },
    { { "NCCL, four ranks a host", 4, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 0, 0, 0, 0 }, 2e4 },
    { { "the first host as straggler", 2, 2000, 1e7, 3e5, 4e4, 3e3, false, 0, 0, 0, 4e6, 0 }, 2e4 },
    { { "20 collectives in 2 s", 4, 20, 1e8, 3e5, 1e5, 3e3, false, 0, 0, 0, 0, 0 }, 2e4 },
    { { "20 collectives, one rank", 1, 20, 1e8, 3e5, 1e5, 3e3, false, 0, 0, 0, 0, 0 }, 3e6 },
    { { "gloo, 200 us later", 2, 2000, 1e7, 1e6, 3e5, 2e5, true, 0, 0, 0, 0, 0 }, 8e5 },
    { { "gloo, 200 us each way", 4, 500, 1e7, 1e6, 6e5, 2e5, false, 0, 0, 0, 0, 0 }, 9e5 },
    { { "gloo, 20 collectives", 2, 20, 1e8, 1e6, 6e5, 2e5, false, 0, 0, 0, 0, 0 }, 9e5 },
    { { "gloo, a fifth of a second", 2, 60, 3e6, 1e6, 3e5, 1.5e6, true, 0, 0, 0, 0, 0 }, 4e6 },
    { { "gloo, 20 in no time", 2, 20, 1e6, 1e6, 3e5, 1.5e6, true, 0, 0, 0, 0, 0 }, 5e6 },
    { { "clocks wobble, slowly", 2, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 1e5, 1, 0, 0 }, 2e4 },
    { { "clocks wobble, often", 2, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 1e5, 12, 0, 0 }, 2e4 },
    { { "clocks wobble, two groups", 2, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 1e5, 12, 0, 2 }, 2e4 },
    { { "clocks wobble, one rank", 1, 2000, 1e7, 3e5, 1e5, 3e3, false, 0, 1e5, 3, 0, 0 }, 2e6 },
    { { "a ring of all ranks", 8, 300, 1e8, 3e5, 1e5, 3e3, false, 3e4, 0, 0, 0, 0 }, 1e7 },
    { { "a ring, two ranks a host", 2, 1000, 1e7, 3e5, 1e5, 3e3, false, 3e4, 0, 0, 0, 0 }, 4e6 },
    { { "a ring, one rank a host", 1, 2000, 1e7, 3e5, 1e5, 3e3, false, 3e4, 0, 0, 0, 0 }, 4e6 },
};

static void stated_error_holds(void **unused)
{
    bool is_told = getenv("SONDE_TEST_TELL") != NULL;

    (void)unused;
    for (size_t i = 0; i < SND_COUNT_OF(jobs); i++) {
        uint32_t rounds = jobs[i].job.collectives < 100 ? 20 / turns_one_of() : 1, least = HOSTS;
        double   typical = 0;
        if (turns_are_fewer() && jobs[i].job.collectives > 1000 && i % 4 != 0)
            continue;
        for (uint64_t seed = 1; seed <= rounds; seed++) {
            double   one;
            uint32_t holding = simulate(&jobs[i].job, seed, &one);
            least = holding < least ? holding : least;
            typical = fmax(typical, one);
        }
        if (is_told)
            printf("%-30s %u of %u hosts, +-%.1f us\n", jobs[i].job.what, least, HOSTS,
                   typical / 1e3);
        if (least * 100 < HOSTS * 95 || typical > jobs[i].most_ns)
            fail_msg("%s: %u of %u hosts, +-%.1f us", jobs[i].job.what, least, HOSTS,
                     typical / 1e3);
    }
}

/* Two hosts that met once: between them lies what the collective allows, and no more is said. */
static void one_collective_is_enough(void **unused)
{
    const int64_t     ahead = 500000;
    struct snd_stay   stays[] = { { 0, 0, 1000, 3000 }, { 1, 1, ahead + 1500, ahead + 3100 } };
    struct snd_clocks found;
    double            error;

    (void)unused;
    assert_true(snd_clocks_init(&found, 2));
    assert_true(snd_clocks_add(&found, 0, stays, 2));
    assert_true(snd_clocks_solve(&found));
    assert_true(found.clocks[0].is_known && found.clocks[1].is_known);
    const struct snd_host_clock *other = &found.clocks[1 - found.reference];
    int64_t                      at = found.reference == 0 ? ahead + 2000 : 2000;
    int64_t                      offset = snd_clock_offset(other, at, &error);
    assert_true(fabs((double)(offset - (found.reference == 0 ? ahead : -ahead))) <= error);
    assert_true(error > 0 && error <= 2100);
    snd_clocks_release(&found);
}

/* Between points 5 above and 5 below a line that rises by 1000 there is room for lines like it, and for no others. */
static void a_gap_has_the_lines_through_it(void **unused)
{
    enum { POINTS = 10 };
    struct snd_point low[POINTS], high[POINTS];
    double           below, above;

    (void)unused;
    for (int rises = -1; rises <= 1; rises += 2)
        for (int fits = 0; fits < 2; fits++) {
            for (int i = 0; i < POINTS; i++) {
                low[i] = (struct snd_point){ i, rises * 1000.0 * i - 5 };
                high[i] = (struct snd_point){ i, rises * 1000.0 * i + 5 };
            }
            if (!fits)
                high[4].y = low[4].y - 11; /* below what lines through the others may be at */
            struct snd_gap gap = { low, high, POINTS, POINTS, 0, 0 };
            assert_int_equal(snd_gap_find(&gap, -1e5, 1e5), fits);
            if (!fits)
                continue;
            assert_true(fabs(gap.least - (rises * 1000 - 10.0 / 9)) < 1e-3);
            assert_true(fabs(gap.most - (rises * 1000 + 10.0 / 9)) < 1e-3);
            snd_gap_at(&gap, 4.5, &below, &above);
            assert_true(fabs(below - (rises * 4500 - 5)) < 1e-3);
            assert_true(fabs(above - (rises * 4500 + 5)) < 1e-3);
        }
}

/* Ranks of a host that leave ever further apart: what is told is of all collectives alike, even of more than are kept. */
static void ranks_are_measured_over_all_collectives(void **unused)
{
    static const int64_t counts[] = { 1, 10, 4095, 4096, 4097, 40000, 600000 };

    (void)unused;
    for (size_t k = 0; k < SND_COUNT_OF(counts) - turns_are_fewer(); k++) {
        struct snd_clocks found;
        double            count = (double)counts[k];
        assert_true(snd_clocks_init(&found, 2));
        for (int64_t i = 1; i <= counts[k]; i++) {
            struct snd_stay stays[] = { { 0, 0, i * 1000000, i * 1000000 + 100 },
                                        { 0, 1, i * 1000000, i * 1000000 + 100 + i },
                                        { 1, 2, i * 1000000, i * 1000000 + 100 } };
            assert_true(snd_clocks_add(&found, 0, stays, 3));
        }
        assert_true(snd_clocks_solve(&found));
        if (fabs(found.spread_ns - 0.9 * count) > 0.03 * count + 1)
            fail_msg("%.0f collectives, %.0f ns apart", count, found.spread_ns);
        if (fabs(found.by_rank_ns - 0.5 * count) > 0.03 * count + 1)
            fail_msg("%.0f collectives, %.0f ns by rank", count, found.by_rank_ns);
        snd_clocks_release(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stated_error_holds),
                                        cmocka_unit_test(one_collective_is_enough),
                                        cmocka_unit_test(a_gap_has_the_lines_through_it),
                                        cmocka_unit_test(ranks_are_measured_over_all_collectives) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
