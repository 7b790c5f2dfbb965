/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options/environment.h"

#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "record/say.h"
#include "record/options/step_schedule.h"

/* The number that a variable holds, or UINT32_MAX. */
static uint32_t read_number(const char *name)
{
    const char *text = secure_getenv(name);

    if (!text || *text < '0' || *text > '9')
        return UINT32_MAX;
    char         *end;
    unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* Launchers, the innermost first: SLURM may start torchrun, whose processes have both's variables. */
static const struct launcher {
    const char *rank, *world_size, *local_rank;
    const char *job[3]; /* what the processes of one job have in common */
} launchers[] = {
    { "RANK", "WORLD_SIZE", "LOCAL_RANK", { "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT" } },
    { "OMPI_COMM_WORLD_RANK",
      "OMPI_COMM_WORLD_SIZE",
      "OMPI_COMM_WORLD_LOCAL_RANK",
      { "PMIX_NAMESPACE", NULL } },
    { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", { "PMI_JOBID", NULL } },
    { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", { "SLURM_JOB_ID", "SLURM_STEP_ID", NULL } },
};

void snd_plain_append(char *text, size_t size, const char *value)
{
    size_t length = strlen(text);

    if (!value)
        return;
    if (length > 0 && length + 1 < size)
        text[length++] = ' ';
    for (; *value && length + 1 < size; value++)
        if (*value >= ' ' && *value < 127 && *value != '"' && *value != '\\')
            text[length++] = *value;
    text[length] = '\0';
}

void snd_environment_rank(uint32_t given_rank, uint32_t given_world_size)
{
    struct snd_job *job = &snd_rec.job;

    *job = (struct snd_job){ given_rank, given_world_size, UINT32_MAX, "options", "", "" };
    for (size_t i = 0; i < SND_COUNT_OF(launchers); i++) {
        const struct launcher *by = &launchers[i];
        uint32_t               rank = read_number(by->rank);
        if (rank == UINT32_MAX)
            continue;
        if (job->rank == UINT32_MAX) {
            job->rank = rank;
            job->source = by->rank;
        }
        if (job->world_size == UINT32_MAX)
            job->world_size = read_number(by->world_size);
        job->local_rank = read_number(by->local_rank);
        for (size_t k = 0; k < SND_COUNT_OF(by->job) && by->job[k]; k++)
            snd_plain_append(job->name, sizeof job->name, secure_getenv(by->job[k]));
        return;
    }
    /* A program that gives its processes their ranks itself has the meeting place at least. */
    for (size_t k = 0; k < SND_COUNT_OF(launchers[0].job); k++)
        snd_plain_append(job->name, sizeof job->name, secure_getenv(launchers[0].job[k]));
}

const char *snd_environment_others(void)
{
    return secure_getenv("SONDE_TRACE_OTHERS");
}

bool snd_environment_is_heap(void)
{
    const char *probes = secure_getenv("SONDE_PROBES");

    return probes && strcmp(probes, "heap") == 0;
}

extern const bool snd_recorder_is_tool __attribute__((weak));

bool snd_environment_options(struct sonde_options *out)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    const char          *limit = secure_getenv("SONDE_LIMIT");
    const char          *most = secure_getenv("SONDE_MAX_BYTES");
    const char          *schedule = secure_getenv("SONDE_SCHEDULE");

    if (&snd_recorder_is_tool)
        return false;
    options.path = secure_getenv("SONDE_TRACE");
    if (!options.path && getenv("SONDE_TRACE"))
        snd_say("the program has more privileges than its caller (set-user-id, capabilities): "
                "SONDE_ variables are ignored, and it runs unrecorded");
    if (!options.path || !*options.path)
        return false;
    if (most)
        options.max_bytes = strtoull(most, NULL, 10);
    if (limit && strcmp(limit, "keep-last") == 0)
        options.limit = SONDE_LIMIT_KEEP_LAST;
    if (schedule && !snd_schedule_parse(schedule, &options.schedule))
        snd_say("SONDE_SCHEDULE=%s: invalid schedule; recording everything", schedule);
    *out = options;
    return true;
}
