/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of counters by stack as folded text, whose roots are the counters, and for speedscope, a profile for each.
 */
#include "export/stacks/counted_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/stacks/weighted_stacks.h"
#include "read/reader.h"

/* --------------------------------------------------------------------- reading */

static bool has_events(const struct snd_counted_stacks *stacks, uint32_t counter)
{
    for (uint32_t i = 0; i < stacks->count; i++)
        if (stacks->rows[i].samples[counter] > 0 || stacks->rows[i].events[counter] > 0)
            return true;
    return false;
}

static void choose(struct snd_counted_export *c, const char *counter)
{
    bool all = !counter || strcmp(counter, "all") == 0;

    for (uint32_t n = 0; n < c->names.count; n++) {
        struct sonde_text name = c->names.items[n].name;
        bool              is_it = counter && strlen(counter) == name.length &&
                     memcmp(counter, name.bytes, name.length) == 0;
        if ((all || is_it) && has_events(&c->stacks, n))
            c->chosen[c->counter_count++] = n;
    }
}

static enum sonde_status refuse(const struct snd_counted_export *c, const char *counter,
                                struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };

    for (uint32_t n = 0; n < c->names.count; n++)
        if (has_events(&c->stacks, n))
            snd_buf_format(&names, "%s%.*s", names.length ? ", " : "",
                           (int)c->names.items[n].name.length, c->names.items[n].name.bytes);
    if (names.length > 0)
        snd_fail(err, SONDE_E_STATE,
                 "the trace has no events of '%.60s' by stack; it has those of %s", counter,
                 snd_buf_string(&names));
    else
        snd_fail(err, SONDE_E_STATE,
                 "the trace has no events of counters by stack; record them with sonde run "
                 "--counters=LIST --per-function");
    sonde_buffer_release(&names);
    return SONDE_E_STATE;
}

enum sonde_status snd_counted_open(struct snd_counted_export *c, struct sonde_trace *trace,
                                   const char *counter, struct sonde_error *err)
{
    *c = (struct snd_counted_export){ .trace = trace, .mixed = { .trace = trace } };
    enum sonde_status st = snd_counted_stacks_fill(&c->stacks, trace, &c->names, err);
    if (st != SONDE_OK)
        return st;
    choose(c, counter);
    if (c->counter_count == 0)
        return refuse(c, counter, err);
    c->frames = calloc(SND_NAMED_STACK_MAX, sizeof *c->frames);
    return c->frames ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
}

void snd_counted_release(struct snd_counted_export *c)
{
    snd_counted_stacks_release(&c->stacks);
    free(c->frames);
}

const struct snd_counted_stack *snd_counted_next(struct snd_counted_export *c)
{
    if (c->at == c->stacks.count)
        return NULL;
    const struct snd_counted_stack *stack = &c->stacks.rows[c->at++];
    c->frame_count = snd_mixed_some_frames(&c->mixed, stack->process, stack->stack, c->frames,
                                           SND_NAMED_STACK_MAX);
    return stack;
}

static void rewind_stacks(struct snd_counted_export *c)
{
    c->at = 0;
}

struct sonde_text snd_counted_name(const struct snd_counted_export *c, uint32_t counter)
{
    return c->names.items[c->chosen[counter]].name;
}

bool snd_counted_is_time(const struct snd_counted_export *c, uint32_t counter)
{
    return c->names.items[c->chosen[counter]].known->unit == SND_COUNTER_NS;
}

uint64_t snd_counted_events(const struct snd_counted_export *c,
                            const struct snd_counted_stack *stack, uint32_t counter)
{
    return stack->events[c->chosen[counter]];
}

uint64_t snd_counted_samples(const struct snd_counted_export *c,
                             const struct snd_counted_stack *stack, uint32_t counter)
{
    return stack->samples[c->chosen[counter]];
}

/* --------------------------------------------------------- folded, speedscope */

/* Goes through the stacks of one counter after the other. */
struct walk {
    struct snd_counted_export counted;
    uint32_t                  counter;
};

static bool next(void *user, struct snd_weighted_stack *out)
{
    struct walk                    *w = user;
    const struct snd_counted_stack *stack = snd_counted_next(&w->counted);

    if (!stack) {
        rewind_stacks(&w->counted);
        if (++w->counter >= w->counted.counter_count)
            return false;
        stack = snd_counted_next(&w->counted);
    }
    *out = (struct snd_weighted_stack){ w->counter, w->counted.frames, w->counted.frame_count,
                                        snd_counted_events(&w->counted, stack, w->counter) };
    return true;
}

static void rewind_all(void *user)
{
    struct walk *w = user;

    w->counter = 0;
    rewind_stacks(&w->counted);
}

static void put_name(void *user, uint32_t counter, struct sonde_buffer *name)
{
    struct sonde_text text = snd_counted_name(&((struct walk *)user)->counted, counter);

    snd_buf_put(name, text.bytes, text.length);
}

static const char *unit_of(void *user, uint32_t counter)
{
    return snd_counted_is_time(&((struct walk *)user)->counted, counter) ? "nanoseconds" : "none";
}

static enum sonde_status write_weighted(struct sonde_trace                *trace,
                                        const struct sonde_export_options *options,
                                        struct snd_out *out, snd_weighted_write *write,
                                        struct sonde_error *err)
{
    struct walk       walk = { .counter = 0 };
    enum sonde_status st = snd_counted_open(&walk.counted, trace, options->counter, err);

    if (st == SONDE_OK) {
        struct snd_weighted_source source = { trace,  &walk,      walk.counted.counter_count,
                                              next,   rewind_all, put_name,
                                              unit_of };
        st = write(&source, out, err);
    }
    snd_counted_release(&walk.counted);
    return st;
}

SND_EXPORT_WRITE(snd_counted_folded)
{
    return write_weighted(trace, options, out, snd_weighted_folded, err);
}

SND_EXPORT_WRITE(snd_counted_speedscope)
{
    return write_weighted(trace, options, out, snd_weighted_speedscope, err);
}
