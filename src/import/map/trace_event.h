/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import/map/trace_event.h - one event of Chrome's trace format, taken apart where it lies.
 *
 * Layer: import. Threads: one at a time.
 */
#ifndef SND_IMPORT_MAP_TRACE_EVENT_H
#define SND_IMPORT_MAP_TRACE_EVENT_H

#include <assert.h>

#include "import/text/scan.h"

enum snd_argument {
#define SND_ARGUMENT(name, text, of) SND_ARG_##name,
#include "import/map/arguments.def"
#undef SND_ARGUMENT
    SND_ARG_COUNT
};

/* Kinds of events, of which arguments mean something. */
enum snd_argument_of {
    SND_OF_CALL = 1,
    SND_OF_API = 2,
    SND_OF_WORK = 4,
    SND_OF_FUNCTION = 8,
    SND_OF_MEMORY = 16,
    SND_OF_NAMES = 32,
    SND_OF_ANY = SND_OF_CALL | SND_OF_API | SND_OF_WORK | SND_OF_FUNCTION | SND_OF_MEMORY,
};

#define SND_OTHERS_MOST 48 /* arguments that have no place of their own; further ones are counted */

struct snd_trace_event {
    char            phase; /* 0: the event does not say */
    struct snd_span category, name, ts, duration, pid, tid, id, id2, scope;
    struct snd_span args[SND_ARG_COUNT];
    uint64_t        has; /* bits of enum snd_argument */
    struct {
        struct snd_span key, value; /* the key without its quotes */
    } others[SND_OTHERS_MOST];
    uint32_t other_count;
    uint32_t dropped; /* members and arguments for which there is no place */
    bool     odd;     /* it is not quite JSON */
};

static_assert(SND_ARG_COUNT <= 64, "bits of a word");

/* Places of arguments by their text, so that each is found at once. */
struct snd_argument_index {
    uint8_t slots[256]; /* enum snd_argument plus one */
};
void snd_argument_index_make(struct snd_argument_index *index);

/* `at` is behind the event's brace. Returns what follows its end, NULL or SND_SCAN_BAD as snd_scan_value(); then
 * the event has what came before. */
const char *snd_event_parse(struct snd_trace_event *event, const struct snd_argument_index *index,
                            const char *at, const char *end);

static inline bool snd_event_has(const struct snd_trace_event *event, enum snd_argument argument)
{
    return (event->has >> argument & 1) != 0;
}
/* Turns arguments that mean nothing in such an event into others, of which it is not known what they mean. */
void snd_event_is(struct snd_trace_event *event, enum snd_argument_of what);
/* An argument that is a number; `otherwise` if there is none. */
uint64_t snd_event_number(const struct snd_trace_event *event, enum snd_argument argument,
                          uint64_t otherwise);

#endif
