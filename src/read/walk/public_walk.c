/* SPDX-License-Identifier: Apache-2.0 */
/* read/walk/public_walk.c - the walk as sonde/trace.h has it: words of events to struct sonde_event. */
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
    struct sonde_event event = { .kind = SONDE_EVENT_BEGIN, .name = name, .aux = shapes };

    hand_over(user, &event, thread, ns);
}

static void hand_end(void *user, uint32_t thread, int64_t ns)
{
    struct sonde_event event = { .kind = SONDE_EVENT_END };

    hand_over(user, &event, thread, ns);
}

static void fill_mark(struct sonde_event *e, const uint64_t *w)
{
    e->name = SND_LOW(w[1]);
    e->aux = SND_HIGH(w[1]);
}

/* Also of END_KEY: one number of 64 bits. */
static void fill_step(struct sonde_event *e, const uint64_t *w)
{
    e->value = w[1];
}

static void fill_gap(struct sonde_event *e, const uint64_t *w)
{
    e->value = SND_LOW(w[1]);
    e->aux = SND_HIGH(w[1]);
}

static void fill_end_at(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_LOW(w[1]);
}

static void fill_counter(struct sonde_event *e, const uint64_t *w)
{
    e->name = SND_LOW(w[1]);
    e->value = w[2];
}

static void fill_link(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_LOW(w[1]);
    e->size = SND_HIGH(w[1]);
    e->value = w[2];
}

static void fill_sample(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_LOW(w[1]);
    e->size = SND_SAMPLE_STATE(w[1]);
    e->name = snd_sample_count(w);
    e->value = SND_HIGH(w[2]);
}

static void fill_memory(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_LOW(w[1]);
    e->name = SND_HIGH(w[1]);
    e->value = w[2];
    e->size = w[3];
}

static void fill_function(struct sonde_event *e, const uint64_t *w)
{
    e->name = SND_LOW(w[1]);
    e->aux = SND_FUNCTION_FLAGS(w[2]);
    e->value = w[3];
}

static uint64_t function_ns(const struct sonde_trace *trace, uint32_t lane, const uint64_t *words)
{
    const struct snd_process *p = &trace->processes[trace->threads[lane].shown.process];

    return (uint64_t)snd_scale_ticks(&p->scale, SND_FUNCTION_TICKS(words[2]));
}

static void fill_attr(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_ATTR_KEY(w[0]);
    e->value = SND_ATTR_VALUE(w[0]);
}

static void fill_attr64(struct sonde_event *e, const uint64_t *w)
{
    e->aux = SND_ATTR_KEY(w[0]);
    e->value = w[1];
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
        [SND_EV_END_KEY] = { SONDE_EVENT_END_KEY, fill_step },
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
        event->size = function_ns(trace, thread, words);
    if (kind == SND_EV_SAMPLE_RUN) {
        struct snd_sample_times times = snd_sample_times(trace, thread, ns, words);
        event->time_ns = times.end_ns;
        event->value = (uint64_t)(times.end_ns - times.begin_ns);
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
                                  .name = work->work,
                                  .aux = work->queue,
                                  .value = work->correlation,
                                  .size = (uint64_t)work->duration_ns };

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
