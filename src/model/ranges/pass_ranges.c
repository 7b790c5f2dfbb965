/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/pass_ranges.c - walks for consumers that look at no ranges: none are opened. */
#include "model/ranges/open_ranges.h"

static void pass_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    (void)name, (void)shapes;
    snd_lane_see(user, thread, ns);
}

static void pass_call(void *user, uint32_t thread, int64_t ns, const struct snd_table_call *call,
                      const uint64_t *sequence)
{
    (void)call, (void)sequence;
    snd_lane_see(user, thread, ns);
}

static void pass_end(void *user, uint32_t thread, int64_t ns)
{
    snd_lane_see(user, thread, ns);
}

static bool pass_leaf(void *user, uint32_t thread, const struct snd_leaf *leaf)
{
    snd_lane_see(user, thread, leaf->start_ns);
    snd_lane_see(user, thread, leaf->end_ns);
    return true;
}

void snd_assembly_pass_ranges(struct snd_visitor *visitor)
{
    visitor->begin = pass_begin;
    visitor->call = pass_call;
    visitor->end = pass_end;
    visitor->leaf = pass_leaf;
}
