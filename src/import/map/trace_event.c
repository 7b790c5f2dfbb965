/* SPDX-License-Identifier: Apache-2.0 */
#include "import/map/trace_event.h"

static const struct {
    const char *text;
    uint8_t     length, of;
} arguments[] = {
#define SND_ARGUMENT(name, text, of) { text, sizeof text - 1, of },
#include "import/map/arguments.def"
#undef SND_ARGUMENT
};

static unsigned slot_of(const char *text, size_t length)
{
    return (unsigned)(length * 37 + (unsigned char)text[0] * 3 +
                      (unsigned char)text[length - 1] * 11 + (unsigned char)text[length / 2] * 5) &
           255;
}

void snd_argument_index_make(struct snd_argument_index *index)
{
    memset(index, 0, sizeof *index);
    for (unsigned i = 0; i < SND_ARG_COUNT; i++) {
        unsigned slot = slot_of(arguments[i].text, arguments[i].length);
        while (index->slots[slot] != 0)
            slot = (slot + 1) & 255;
        index->slots[slot] = (uint8_t)(i + 1);
    }
}

static int find_argument(const struct snd_argument_index *index, struct snd_span key)
{
    if (key.length == 0)
        return -1;
    for (unsigned slot = slot_of(key.at, key.length); index->slots[slot] != 0;
         slot = (slot + 1) & 255) {
        int i = index->slots[slot] - 1;
        if (snd_span_is(key, arguments[i].text, arguments[i].length))
            return i;
    }
    return -1;
}

static void keep_other(struct snd_trace_event *event, struct snd_span key, struct snd_span value)
{
    if (event->other_count == SND_OTHERS_MOST) {
        event->dropped++;
        return;
    }
    event->others[event->other_count].key = key;
    event->others[event->other_count++].value = value;
}

static void keep_argument(struct snd_trace_event *event, const struct snd_argument_index *index,
                          struct snd_span key, struct snd_span value)
{
    int known = find_argument(index, key);

    if (known >= 0) {
        event->args[known] = value;
        event->has |= (uint64_t)1 << known;
    } else {
        keep_other(event, key, value);
    }
}

static const char *parse_args(struct snd_trace_event *event, const struct snd_argument_index *index,
                              const char *at, const char *end)
{
    for (;;) {
        struct snd_span key, value;
        at = snd_scan_member(at, end, &key, &value, &event->odd);
        if (!at || at == SND_SCAN_BAD || !key.at)
            return at;
        keep_argument(event, index, key, value);
    }
}

/* Where a member of the event goes; NULL: nowhere. By length first: this is done for each member of each event. */
static struct snd_span *find_member(struct snd_trace_event *e, struct snd_span key)
{
    const char *k = key.at;

    switch (key.length) {
    case 1:
        return *k == 's' ? &e->scope : NULL;
    case 2:
        return memcmp(k, "ts", 2) == 0 ? &e->ts : memcmp(k, "id", 2) == 0 ? &e->id : NULL;
    case 3:
        return memcmp(k, "pid", 3) == 0   ? &e->pid
               : memcmp(k, "tid", 3) == 0 ? &e->tid
               : memcmp(k, "dur", 3) == 0 ? &e->duration
               : memcmp(k, "cat", 3) == 0 ? &e->category
               : memcmp(k, "id2", 3) == 0 ? &e->id2
                                          : NULL;
    case 4:
        return memcmp(k, "name", 4) == 0 ? &e->name : NULL;
    default:
        return NULL;
    }
}

/* The members of an event, args apart: they are taken apart as they are read. */
const char *snd_event_parse(struct snd_trace_event *event, const struct snd_argument_index *index,
                            const char *at, const char *end)
{
    memset(event, 0, offsetof(struct snd_trace_event, args));
    event->has = 0;
    event->other_count = event->dropped = 0;
    event->odd = false;
    for (;;) {
        at = snd_scan_next(at, end, '}', &event->odd);
        if (!at)
            return NULL;
        if (*at == '}')
            return at + 1;
        /* "args" may come before what it is of, and is most of the text: not scanned twice. */
        if (end - at > 8 && memcmp(at, "\"args\"", 6) == 0) {
            const char *value = snd_scan_space(at + 6);
            if (*value == ':' && *(value = snd_scan_space(value + 1)) == '{') {
                at = parse_args(event, index, value + 1, end);
                if (!at || at == SND_SCAN_BAD)
                    return at;
                continue;
            }
        }
        struct snd_span key, value;
        at = snd_scan_member(at, end, &key, &value, &event->odd);
        if (!at || at == SND_SCAN_BAD)
            return at;
        struct snd_span *place = find_member(event, key);
        if (place)
            *place = value;
        else if (snd_span_is(key, "ph", 2) && value.length >= 3 && value.at[0] == '"')
            event->phase = value.at[1];
        else if (!snd_span_is(key, "bp", 2))
            event->dropped++;
    }
}

void snd_event_is(struct snd_trace_event *event, enum snd_argument_of what)
{
    for (uint64_t left = event->has; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (arguments[i].of & what)
            continue;
        keep_other(event, (struct snd_span){ arguments[i].text, arguments[i].length },
                   event->args[i]);
        event->has &= ~((uint64_t)1 << i);
    }
}

uint64_t snd_event_number(const struct snd_trace_event *event, enum snd_argument argument,
                          uint64_t otherwise)
{
    uint64_t number;
    int64_t  with_sign;

    if (!snd_event_has(event, argument))
        return otherwise;
    if (snd_scan_uint(event->args[argument], &number))
        return number;
    return snd_scan_int(event->args[argument], &with_sign) ? (uint64_t)with_sign : otherwise;
}
