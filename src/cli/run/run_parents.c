/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_parents.h"

#include <stdlib.h>

int snd_run_parents_prepare(const struct snd_command *self, const struct snd_run_probes *chosen,
                            struct snd_run_parents *parents)
{
    const struct snd_run_parent *parent;
    int                          status = -1;

    *parents = (struct snd_run_parents){ .count = 0 };
    unsetenv("SONDE_RANGE_COUNTERS"); /* of a run that we may be part of */
    for (size_t i = 0; status < 0 && i < SND_RUN_PARENTS_MAX &&
                       (parent = snd_run_probes_parent(chosen, i)) != NULL;
         i++) {
        void **state = &parents->list[parents->count].state;
        status = parent->prepare(self, chosen, state);
        if (status < 0)
            parents->list[parents->count++].parent = parent;
    }
    return status;
}

void snd_run_parents_release(struct snd_run_parents *parents)
{
    for (size_t i = 0; i < parents->count; i++)
        if (parents->list[i].parent->release)
            parents->list[i].parent->release(parents->list[i].state);
    parents->count = 0;
}

void snd_run_parents_forked(void *user, pid_t pid)
{
    const struct snd_run_parents *parents = user;

    for (size_t i = 0; i < parents->count; i++)
        if (parents->list[i].parent->forked)
            parents->list[i].parent->forked(parents->list[i].state, pid);
}

void snd_run_parents_ended(const struct snd_run_parents *parents, const struct snd_child *child)
{
    for (size_t i = 0; i < parents->count; i++)
        if (parents->list[i].parent->ended)
            parents->list[i].parent->ended(parents->list[i].state, child);
}

void snd_run_parents_write(const struct snd_run_parents *parents, const char *folder,
                           char **program)
{
    for (size_t i = 0; i < parents->count; i++)
        if (parents->list[i].parent->write)
            parents->list[i].parent->write(parents->list[i].state, folder, program);
}
