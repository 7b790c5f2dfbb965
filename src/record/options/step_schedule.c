/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options/step_schedule.h"

#include "format/run/schedule_text.h"

enum sonde_action sonde_schedule_action(const struct sonde_schedule *schedule, uint64_t step)
{
    const struct sonde_schedule *s = schedule;

    if (s->active == 0)
        return SONDE_ACTION_RECORD;
    if (step < s->skip_first)
        return SONDE_ACTION_NONE;
    step -= s->skip_first;
    if (s->skip_first_wait != 0)
        step += s->wait; /* as if the first cycle's wait were over */
    uint64_t cycle = (uint64_t)s->wait + s->warmup + s->active;
    if (s->repeat > 0 && step / cycle >= s->repeat)
        return SONDE_ACTION_NONE;
    uint64_t at = step % cycle;
    if (at < s->wait)
        return SONDE_ACTION_NONE;
    if (at < (uint64_t)s->wait + s->warmup)
        return SONDE_ACTION_WARMUP;
    return at < cycle - 1 ? SONDE_ACTION_RECORD : SONDE_ACTION_RECORD_AND_SAVE;
}

bool snd_schedule_is_set(void)
{
    return snd_rec.schedule.active > 0;
}

bool snd_schedule_is_warming_up(void)
{
    return sonde_schedule_action(&snd_rec.schedule, snd_rec.step) == SONDE_ACTION_WARMUP;
}

bool snd_schedule_parse(const char *text, struct sonde_schedule *out)
{
    uint32_t    values[SND_SCHEDULE_FIELDS];
    const char *bad;

    if (!snd_schedule_read(text, values, &bad))
        return false;
#define SND_SCHEDULE(name) out->name = values[SND_SCHEDULE_##name];
#include "format/run/schedule_text.def"
#undef SND_SCHEDULE
    return true;
}
