/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ranges of the report page are one collective: each rank's call, and each rank's work where another thread does it.
 */
#include "export/page/page.h"
#include "model/ranks/collectives.h"

static void put_place(struct snd_html *page, uint64_t number, uint32_t thread, int64_t start_ns,
                      int64_t wait_ns)
{
    snd_html_value(&page->meetings, 0, number);
    snd_html_value(&page->meetings, 1, thread);
    snd_html_signed(&page->meetings, 2, start_ns);
    snd_html_value(&page->meetings, 3, wait_ns < 0 ? 0 : (uint64_t)wait_ns + 1);
    snd_html_entry(page, &page->meetings);
}

/* Those of a number follow each other. */
static void on_done(void *user, const struct snd_collective *c)
{
    struct snd_html *page = user;

    if (c->count < 2)
        return;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->members[i].has_call)
            put_place(page, page->meeting_count, c->members[i].thread, c->members[i].start_ns,
                      c->members[i].wait_ns);
    page->meeting_count++;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->members[i].has_work)
            put_place(page, page->meeting_count, c->members[i].work_thread, c->members[i].work_ns,
                      c->members[i].wait_ns);
    page->meeting_count++;
}

enum sonde_status snd_html_collectives(struct snd_html *page, struct sonde_error *err)
{
    struct snd_groups             groups = { 0 };
    struct snd_collective_watcher watcher = { .user = page, .done = on_done };
    enum sonde_status             st = snd_collectives_walk(page->trace, &groups, &watcher, err);

    snd_groups_release(&groups);
    snd_html_flush(page, &page->meetings);
    return st;
}
