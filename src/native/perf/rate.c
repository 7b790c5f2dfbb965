/* SPDX-License-Identifier: Apache-2.0 */
#include "native/perf/rate.h"

#define FINEST_NS 100000u     /* more often than that, interrupts would be what is measured */
#define WINDOW_NS 1000000000u /* used by all threads: what was longer ago does not count */
#define SOME_NS 4000000u /* of short-lived threads: more than those that a few programs end with */
#define MUCH 20u         /* parts of the time: short-lived threads have one of them, at least */
#define LITTLE 40u
#define CALM 10u /* windows, after rings were nearly full */

struct snd_rate snd_rate_begin(uint64_t period_ns)
{
    uint64_t fine = period_ns / SND_RATE_FINER;

    if (fine < FINEST_NS)
        fine = period_ns >= 2 * FINEST_NS ? FINEST_NS : period_ns;
    return (struct snd_rate){ .whole_ns = period_ns, .fine_ns = fine };
}

uint64_t snd_rate_sample(struct snd_rate *rate, struct snd_rate_thread *thread, uint64_t period_ns,
                         bool is_fine)
{
    uint64_t kept = period_ns;
    bool     is_young = thread->sampled_ns < SND_RATE_YOUNG * rate->whole_ns;

    if (is_fine)
        thread->turn = rate->turn;
    else if (rate->is_fine && thread->turn == rate->turn)
        return 0;
    if (!is_young) {
        thread->held_ns += period_ns;
        kept = thread->held_ns < rate->whole_ns ? 0 : thread->held_ns;
        thread->held_ns -= kept;
    }
    thread->sampled_ns += kept;
    rate->used_ns += kept;
    rate->short_ns += is_young && is_fine ? kept : 0;
    return kept;
}

void snd_rate_rest(struct snd_rate *rate, uint64_t ns)
{
    rate->used_ns += ns;
    rate->short_ns += ns;
}

bool snd_rate_judge(struct snd_rate *rate, bool is_late)
{
    bool is_over = rate->used_ns >= WINDOW_NS;

    if (is_late)
        rate->windows = CALM;
    else if (is_over && rate->windows > 0)
        rate->windows--;
    bool changes = rate->is_fine ? is_late || (is_over && rate->short_ns < rate->used_ns / LITTLE)
                                 : rate->windows == 0 && rate->short_ns >= SOME_NS &&
                                       rate->short_ns >= rate->used_ns / MUCH;

    if (is_over || changes)
        rate->used_ns = rate->short_ns = 0;
    if (!changes || rate->fine_ns == rate->whole_ns)
        return false;
    rate->is_fine = !rate->is_fine;
    rate->turn += rate->is_fine;
    return true;
}
