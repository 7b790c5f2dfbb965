/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/public_walk.c - the walk as sonde/trace.h has it: words of events to struct sonde_event. */
#include <string.h>

#include "format/fields.h"
#include "read/walk/trace_walk.h"

struct public_walk {
    const struct sonde_trace *trace;
    struct snd_visitor       *visitor;
    sonde_event_fn           *function;
    void                     *user;
};

static void hand_over(struct public_walk *walk, struct sonde_event *event, uint32_t thread,
                      int64_t ns)
{
    if (walk->visitor->stop)
        return;
    event->thread = thread;
    event->process = walk->trace->threads[thread].shown.process;
    event->time_ns = ns;
    if (!walk->function(event, walk->user))
        walk->visitor->stop = true;
}

static void hand_begin(void *user, uint32_t thread, int64_t ns, uint32_t name, uint32_t shapes)
{
    struct sonde_event event = { .kind = SONDE_EVENT_BEGIN, .begin = { name, shapes } };

    hand_over(user, &event, thread, ns);
}

static void hand_end(void *user, uint32_t thread, int64_t ns)
{
    struct sonde_event event = { .kind = SONDE_EVENT_END };

    hand_over(user, &event, thread, ns);
}

static void fill_mark(struct sonde_event *e, const uint64_t *w)
{
    e->mark = (struct sonde_event_mark){ .name = SND_LOW(w[1]), .stack = SND_HIGH(w[1]) };
}

static void fill_step(struct sonde_event *e, const uint64_t *w)
{
    e->step.number = w[1];
}

static void fill_end_key(struct sonde_event *e, const uint64_t *w)
{
    e->end_key.key = w[1];
}

static void fill_gap(struct sonde_event *e, const uint64_t *w)
{
    e->gap = (struct sonde_event_gap){ .events = SND_LOW(w[1]), .ends = SND_HIGH(w[1]) };
}

static void fill_end_at(struct sonde_event *e, const uint64_t *w)
{
    e->end_at.inner = SND_LOW(w[1]);
}

static void fill_counter(struct sonde_event *e, const uint64_t *w)
{
    e->counter.name = SND_LOW(w[1]);
    memcpy(&e->counter.value, &w[2], sizeof e->counter.value);
}

static void fill_link(struct sonde_event *e, const uint64_t *w)
{
    e->link = (struct sonde_event_link){ .id = w[2],
                                         .kind = SND_LOW(w[1]),
                                         .arrives = SND_HIGH(w[1]) != 0 };
}

static void fill_sample(struct sonde_event *e, const uint64_t *w)
{
    e->sample = (struct sonde_event_sample){ .covered_ns = SND_HIGH(w[2]),
                                             .stack = SND_LOW(w[1]),
                                             .count = snd_sample_count(w),
                                             .state = SND_SAMPLE_STATE(w[1]) };
}

static void fill_memory(struct sonde_event *e, const uint64_t *w)
{
    e->memory = (struct sonde_event_memory){
        .address = w[2], .size_bytes = w[3], .device = SND_LOW(w[1]), .tag = SND_HIGH(w[1])
    };
}

static void fill_function(struct sonde_event *e, const uint64_t *w)
{
    e->function = (struct sonde_event_function){ .frame = SND_LOW(w[1]),
                                                 .id = SND_LOW(w[3]),
                                                 .parent = SND_HIGH(w[3]),
                                                 .resumed = SND_FUNCTION_FLAGS(w[2]) ==
                                                            SND_FUNCTION_RESUMED };
}

static uint64_t function_ns(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];

    return (uint64_t)snd_scale_ticks(&p->scale, SND_FUNCTION_TICKS(words[2]));
}

static void fill_attr(struct sonde_event *e, const uint64_t *w)
{
    e->attr = (struct sonde_event_attr){ .value = SND_ATTR_VALUE(w[0]), .key = SND_ATTR_KEY(w[0]) };
}

static void fill_attr64(struct sonde_event *e, const uint64_t *w)
{
    e->attr = (struct sonde_event_attr){ .value = w[1], .key = SND_ATTR_KEY(w[0]) };
}

bool snd_event_show(const struct sonde_trace *trace, uint32_t thread, int64_t ns,
                    const uint64_t *words, struct sonde_event *event)
{
    static const struct {
        uint8_t shown;
        void (*fill)(struct sonde_event *event, const uint64_t *words);
    } kinds[256] = {
        [SND_EV_MARK] = { SONDE_EVENT_MARK, fill_mark },
        [SND_EV_STEP] = { SONDE_EVENT_STEP, fill_step },
        [SND_EV_GAP] = { SONDE_EVENT_GAP, fill_gap },
        [SND_EV_END_AT] = { SONDE_EVENT_END_AT, fill_end_at },
        [SND_EV_END_KEY] = { SONDE_EVENT_END_KEY, fill_end_key },
        [SND_EV_COUNTER] = { SONDE_EVENT_COUNTER, fill_counter },
        [SND_EV_LINK] = { SONDE_EVENT_LINK, fill_link },
        [SND_EV_SAMPLE] = { SONDE_EVENT_SAMPLE, fill_sample },
        [SND_EV_SAMPLE_RUN] = { SONDE_EVENT_SAMPLE, fill_sample },
        [SND_EV_ALLOC] = { SONDE_EVENT_ALLOC, fill_memory },
        [SND_EV_FREE] = { SONDE_EVENT_FREE, fill_memory },
        [SND_EV_FUNCTION] = { SONDE_EVENT_FUNCTION, fill_function },
        [SND_EV_ATTR] = { SONDE_EVENT_ATTR, fill_attr },
        [SND_EV_ATTR64] = { SONDE_EVENT_ATTR, fill_attr64 },
    };
    uint8_t kind = SND_EVENT_KIND(words[0]);

    if (!kinds[kind].fill)
        return false;
    *event = (struct sonde_event){ .kind = kinds[kind].shown, .time_ns = ns };
    kinds[kind].fill(event, words);
    if (event->kind == SONDE_EVENT_FUNCTION)
        event->function.duration_ns = function_ns(trace, thread, words);
    if (kind == SND_EV_SAMPLE_RUN) {
        struct snd_sample_times times = snd_sample_times(trace, thread, ns, words);
        event->time_ns = times.end_ns;
        event->sample.covered_ns = (uint64_t)(times.end_ns - times.begin_ns);
    }
    event->thread = snd_subject_thread(trace, thread, words);
    event->process = trace->threads[event->thread].shown.process;
    return true;
}

static void hand_other(void *user, uint32_t thread, int64_t ns, const uint64_t *words)
{
    struct public_walk *walk = user;
    struct sonde_event  event;

    if (snd_event_show(walk->trace, thread, ns, words, &event))
        hand_over(walk, &event, event.thread, event.time_ns);
}

static void hand_device(void *user, uint32_t process, const struct snd_device_work *work)
{
    struct public_walk *walk = user;
    struct sonde_event  event = { .kind = SONDE_EVENT_DEVICE,
                                  .device = { .duration_ns = (uint64_t)work->duration_ns,
                                              .work = work->work,
                                              .queue = work->queue,
                                              .correlation = work->correlation } };

    (void)process; /* the thread's */
    hand_over(walk, &event, work->thread, work->start_ns);
}

enum sonde_status sonde_trace_walk(struct sonde_trace *trace, enum sonde_order order,
                                   sonde_event_fn *function, void *user, struct sonde_error *err)
{
    struct snd_visitor visitor = {
        .begin = hand_begin, .end = hand_end, .other = hand_other, .device = hand_device
    };
    struct public_walk walk = { trace, &visitor, function, user };

    visitor.user = &walk;
    return snd_walk(trace, order, &visitor, NULL, err);
}
