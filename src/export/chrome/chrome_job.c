/* SPDX-License-Identifier: Apache-2.0 */
/* The member distributedInfo of a Chrome trace: of which rank of which job it is. */
#include "export/chrome/chrome.h"

#include <inttypes.h>
#include <stdio.h>

#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"

static void put_text(struct snd_json *json, const char *key, struct sonde_text text)
{
    if (text.length > 0)
        snd_json_string(json, key, text.bytes, text.length);
}

/* A process group, with the names that torch.distributed gives its configuration. */
static void put_group(struct snd_json *json, const struct snd_fact *group)
{
    snd_json_object(json, NULL);
    snd_json_string(json, "pg_name", group->subject.bytes, group->subject.length);
    put_text(json, "pg_desc", snd_fact_text(group, SND_FIELD_GROUP_DESCRIPTION));
    put_text(json, "backend_config", snd_fact_text(group, SND_FIELD_GROUP_BACKEND));
    snd_json_int(json, "pg_size", snd_fact_number(group, SND_FIELD_GROUP_SIZE, 0));
    snd_json_array(json, "ranks");
    for (uint32_t i = 0; i < group->count; i++)
        if (group->values[i].field == SND_FIELD_GROUP_RANK)
            snd_json_int(json, NULL, group->values[i].number);
    snd_json_end(json);
    snd_json_end(json);
}

static void put_groups(struct snd_chrome *chrome, uint32_t process)
{
    const struct snd_fact *group;
    uint32_t               at = 0, count = 0;

    while (snd_fact_next(chrome->trace, process, SND_FACT_OF_GROUP, &at))
        count++;
    if (count == 0)
        return;
    snd_json_uint(&chrome->json, "pg_count", count);
    snd_json_array(&chrome->json, "pg_config");
    for (at = 0; (group = snd_fact_next(chrome->trace, process, SND_FACT_OF_GROUP, &at));)
        put_group(&chrome->json, group);
    snd_json_end(&chrome->json);
}

/* What an imported file said there itself. */
static bool put_imported(struct snd_chrome *chrome, uint32_t process)
{
    struct sonde_text value;

    if (!snd_meta_other(chrome->trace, process, "distributedInfo", &value) ||
        !snd_json_is_value(value.bytes, value.length))
        return false;
    snd_json_raw(&chrome->json, "distributedInfo", value.bytes, value.length);
    return true;
}

/* The process whose rank is that of all; SONDE_NONE: there are several ranks, or none. */
static uint32_t find_only_rank(const struct sonde_trace *trace)
{
    uint32_t found = SONDE_NONE;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        uint32_t rank = sonde_trace_process(trace, i)->rank;
        if (rank == SONDE_NONE)
            continue;
        if (found != SONDE_NONE && sonde_trace_process(trace, found)->rank != rank)
            return SONDE_NONE;
        found = found == SONDE_NONE ? i : found;
    }
    return found;
}

/* With a space before it, without which HTA does not find it: it looks for text, not for JSON. */
static void put_rank(struct snd_json *json, uint32_t rank)
{
    char text[16];
    int  length = snprintf(text, sizeof text, " %" PRIu32, rank);

    snd_json_raw(json, "rank", text, (size_t)length);
}

void snd_chrome_distributed(struct snd_chrome *chrome, bool with_host)
{
    uint32_t i = find_only_rank(chrome->trace), at = 0;

    if (i == SONDE_NONE)
        return;
    const struct sonde_process *process = sonde_trace_process(chrome->trace, i);
    if (with_host)
        snd_json_text(&chrome->json, "host_name", process->host);
    if (put_imported(chrome, i))
        return;
    const struct snd_fact *fact = snd_fact_next(chrome->trace, i, SND_FACT_OF_RANK, &at);
    snd_json_object(&chrome->json, "distributedInfo");
    if (fact)
        put_text(&chrome->json, "backend", snd_fact_text(fact, SND_FIELD_RANK_BACKEND));
    put_rank(&chrome->json, process->rank);
    if (process->world_size != SONDE_NONE)
        snd_json_uint(&chrome->json, "world_size", process->world_size);
    put_groups(chrome, i);
    snd_json_end(&chrome->json);
}
