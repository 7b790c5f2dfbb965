/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranges/open_ranges.h"

bool snd_lane_make_room(struct snd_assembly *a, struct snd_lane *lane)
{
    if (lane->depth == SND_DEPTH_MAX) {
        lane->deeper++;
        a->stats.too_deep++;
        return false;
    }
    if (snd_grow(&lane->open, &lane->room, lane->depth, sizeof *lane->open))
        return true;
    snd_assembly_stop(a);
    return false;
}

/* ------------------------------------------------- walks that open no range */

static void pass_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    (void)user, (void)thread, (void)ns, (void)name, (void)shapes;
}

static void pass_call(void *user, uint32_t thread, int64_t ns, const struct snd_table_call *call,
                      const uint64_t *sequence)
{
    (void)user, (void)thread, (void)ns, (void)call, (void)sequence;
}

static void pass_end(void *user, uint32_t thread, int64_t ns)
{
    (void)user, (void)thread, (void)ns;
}

static bool pass_leaf(void *user, uint32_t thread, const struct snd_leaf *leaf)
{
    (void)user, (void)thread, (void)leaf;
    return true;
}

void snd_assembly_pass_ranges(struct snd_visitor *visitor)
{
    visitor->begin = pass_begin;
    visitor->call = pass_call;
    visitor->end = pass_end;
    visitor->leaf = pass_leaf;
}
