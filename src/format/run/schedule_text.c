/* SPDX-License-Identifier: Apache-2.0 */
#include "format/run/schedule_text.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define SND_SCHEDULE(name) #name "=",
#include "format/run/schedule_text.def"
#undef SND_SCHEDULE
};

/* One FIELD=N of `length` bytes. */
static bool read_field(const char *text, size_t length, uint32_t values[SND_SCHEDULE_FIELDS])
{
    size_t field = 0;

    while (field < SND_SCHEDULE_FIELDS && strncmp(text, names[field], strlen(names[field])) != 0)
        field++;
    if (field == SND_SCHEDULE_FIELDS)
        return false;
    const char *digits = text + strlen(names[field]);
    size_t      count = strspn(digits, "0123456789");
    if (count == 0 || digits + count != text + length)
        return false;
    unsigned long long value = strtoull(digits, NULL, 10);
    values[field] = (uint32_t)value;
    return count < 20 && value <= UINT32_MAX;
}

bool snd_schedule_read(const char *text, uint32_t values[SND_SCHEDULE_FIELDS], const char **bad)
{
    memset(values, 0, SND_SCHEDULE_FIELDS * sizeof values[0]);
    while (*text) {
        size_t length = strcspn(text, ",");
        *bad = text;
        if (!read_field(text, length, values))
            return false;
        text += length + (text[length] == ',');
    }
    *bad = NULL;
    return values[SND_SCHEDULE_active] > 0;
}
