/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options/environment.h"

#include <stdlib.h>
#include <string.h>

#include "record/say.h"
#include "record/options/step_schedule.h"

uint32_t snd_environment_number(const char *name, uint32_t given)
{
    const char *text = secure_getenv(name);

    if (given != UINT32_MAX || !text || !*text)
        return given;
    char         *end;
    unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
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

bool snd_environment_options(struct sonde_options *out)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    const char          *limit = secure_getenv("SONDE_LIMIT");
    const char          *most = secure_getenv("SONDE_MAX_BYTES");
    const char          *schedule = secure_getenv("SONDE_SCHEDULE");

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
