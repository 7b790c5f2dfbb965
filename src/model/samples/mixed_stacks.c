/* SPDX-License-Identifier: Apache-2.0 */
/* model/samples/mixed_stacks.c - see mixed_stacks.h */
#include "model/samples/mixed_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "model/ranges/assembly.h"
#include "read/walk/kinds.h"
#include "read/said/trace_metadata.h"

/* Beyond, the chain around a range stands for it. */
#define CHAINS_MAX (1u << 22)
#define CHAIN_DEPTH_MAX 512u
#define CHANGES_MAX (1u << 20) /* of a thread, since its last sample */

/* -------------------------------------------------------------------- chains */

static uint32_t find_chain(struct snd_mixed *m, uint32_t parent, uint32_t name,
                           uint32_t python_depth)
{
    struct snd_key key = { parent, name, python_depth };
    uint32_t       chain;

    if (snd_map_get(&m->by_name, key, &chain))
        return chain;
    if (m->chain_count >= CHAINS_MAX || m->chains[parent].depth >= CHAIN_DEPTH_MAX)
        return parent;
    if (!snd_grow(&m->chains, &m->chain_room, m->chain_count, sizeof *m->chains) ||
        !snd_map_put(&m->by_name, key, m->chain_count)) {
        m->failed = true;
        return parent;
    }
    m->chains[m->chain_count] = (struct snd_chain){ parent, name, m->chains[parent].depth + 1,
                                                    python_depth };
    return m->chain_count++;
}

struct sonde_text snd_chain_name(const struct snd_mixed *mixed, uint32_t chain)
{
    const struct snd_text *name = &mixed->trace->names.items[mixed->chains[chain].name];

    return (struct sonde_text){ name->bytes, name->length };
}

/* ------------------------------------------------------------------- threads */

/* Only what a sample that is still to come may have seen is kept. */
static void forget_before(struct snd_mixed_thread *t, uint32_t at)
{
    if (at == 0)
        return;
    memmove(t->changes, t->changes + at, (t->count - at) * sizeof *t->changes);
    t->count -= at;
}

static void change(struct snd_mixed *m, uint32_t thread, int64_t ns, uint32_t chain)
{
    struct snd_mixed_thread *t = &m->threads[thread];

    t->current = chain;
    if (t->count == CHANGES_MAX) /* of a thread without samples */
        forget_before(t, t->count / 2);
    if (!snd_grow(&t->changes, &t->room, t->count, sizeof *t->changes)) {
        m->failed = true;
        return;
    }
    t->changes[t->count++] = (struct snd_change){ ns, chain };
}

/* The place of the change that holds at `ns`, from `at` on; the first one holds before it, too. */
static uint32_t change_at(const struct snd_mixed_thread *t, uint32_t at, int64_t ns)
{
    while (at + 1 < t->count && t->changes[at + 1].ns <= ns)
        at++;
    return at;
}

/* Whose samples have Python's own frames. */
static void find_python(struct snd_mixed *m)
{
    struct sonde_text how;

    for (uint32_t i = 0; i < m->trace->thread_count; i++)
        m->threads[i].has_python = snd_meta_find(m->trace, m->trace->threads[i].shown.process,
                                                 SND_META_PYTHON_SAMPLE, &how);
}

/* Where a file tells of a thread of another process, that process's own file has the ranges. */
static bool find_aliases(struct snd_mixed *m)
{
    const struct sonde_trace *trace = m->trace;
    struct snd_map            own = { 0 };
    bool                      ok = true;

    for (uint32_t i = 0; i < trace->thread_count && ok; i++) {
        const struct sonde_thread *t = &trace->threads[i].shown;
        const struct snd_process  *p = &trace->processes[t->process];
        m->threads[i].alias = i;
        if (!p->is_guest)
            ok = snd_map_put(&own, (struct snd_key){ p->shown.pid, t->tid, p->header.boot_id }, i);
    }
    for (uint32_t i = 0; i < trace->thread_count && ok; i++) {
        const struct sonde_thread *t = &trace->threads[i].shown;
        const struct snd_process  *p = &trace->processes[t->process];
        uint32_t                   alias;
        if (p->is_guest &&
            snd_map_get(&own, (struct snd_key){ p->shown.pid, t->tid, p->header.boot_id }, &alias))
            m->threads[i].alias = alias;
    }
    snd_map_release(&own);
    return ok;
}

/* ---------------------------------------------------------------------- walk */

static struct snd_key number_of(const struct snd_open_range *range)
{
    return (struct snd_key){ range->order, 0, 0 };
}

static bool is_asynchronous(const struct snd_mixed *m, const struct snd_open_range *range)
{
    uint32_t value;

    return snd_map_get(&m->asynchronous, number_of(range), &value);
}

static void set_asynchronous(struct snd_mixed *m, const struct snd_open_range *range)
{
    m->failed |= !snd_map_put(&m->asynchronous, number_of(range), 1);
}

/*
 * A recorded call of a Python function is a frame of the samples' own stacks; one of a function that is
 * written in C, which has no first line, is not.
 */
static bool is_in_stacks(const struct snd_mixed *m, const struct snd_lane *lane,
                         const struct snd_open_range *range)
{
    const struct snd_tables *t = &m->trace->processes[lane->process].tables;
    uint32_t                 frame = (uint32_t)range->range.frame;

    return m->threads[lane->thread].has_python && range->range.scope == SONDE_SCOPE_PYTHON &&
           frame < t->frame_count && SND_FRAME_FIRST_LINE(t->frames[frame].flags) > 0;
}

/* The chain of an asynchronous range is that of its parent. */
static uint32_t chain_of(struct snd_mixed *m, const struct snd_lane *lane,
                         const struct snd_open_range *range, const struct snd_open_range *parent)
{
    uint32_t around = parent ? parent->mark : 0;

    return is_asynchronous(m, range) || is_in_stacks(m, lane, range)
               ? around
               : find_chain(m, around, range->range.name, range->range.python_depth);
}

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct snd_mixed *m = user;

    range->mark = chain_of(m, lane, range, parent);
    change(m, lane->thread, range->range.start_ns, range->mark);
}

/* It was a frame until it was told; nothing of its own began in between. */
static void on_attribute(void *user, struct snd_lane *lane, struct snd_open_range *range,
                         uint8_t key)
{
    struct snd_mixed *m = user;
    bool              is_call = key == SND_ATTR_FRAME && is_in_stacks(m, lane, range);
    bool              is_async = key == SND_ATTR_ASYNC && range->range.is_async;
    bool              has_depth = key == SND_ATTR_PYTHON_DEPTH && !is_asynchronous(m, range);

    if (range->range.hidden || !(is_call || is_async || has_depth) ||
        (is_async && is_asynchronous(m, range)))
        return;
    if (is_async)
        set_asynchronous(m, range);
    range->mark = m->chains[range->mark].parent;
    if (has_depth)
        range->mark = find_chain(m, range->mark, range->range.name, range->range.python_depth);
    change(m, lane->thread, range->range.start_ns, range->mark);
}

/* A range that closes around others is no part of the stack any more once they close. */
static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct snd_mixed *m = user;

    if (!range->range.is_async && m->threads[lane->thread].current == range->mark)
        change(m, lane->thread, snd_add(range->range.start_ns, range->range.total_ns),
               parent ? parent->mark : 0);
    if (m->failed)
        snd_assembly_stop(m->assembly);
}

static void on_move(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct snd_mixed *m = user;
    bool              is_inner = m->threads[lane->thread].current == range->mark;

    range->mark = chain_of(m, lane, range, parent);
    if (is_inner)
        change(m, lane->thread, lane->last_ns, range->mark);
}

/* False ends the walk. */
static bool give(struct snd_mixed *m, const struct sonde_event *sample, uint32_t chain)
{
    struct snd_only_gil *only = m->trace->only_gil;
    bool                 held = sample->sample.state & SONDE_SAMPLE_GIL;

    if (only && held)
        only->held += sample->sample.count;
    else if (only)
        only->others += sample->sample.count;
    return (only && !held) || m->take(m->user, sample, chain);
}

/* Samples in a row: those with one chain together. */
static bool split(struct snd_mixed *m, struct sonde_event *event, struct snd_mixed_thread *t)
{
    uint64_t total = event->sample.covered_ns & UINT32_MAX,
             count = event->sample.count ? event->sample.count : 1, given = 0;
    uint32_t           at = 0;
    uint64_t           first = 0;
    struct sonde_event part = *event;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t end = total * (i + 1) / count;
        at = change_at(t, at, event->time_ns - (int64_t)(total - end));
        uint32_t next = i + 1 < count
                            ? change_at(t, at,
                                        event->time_ns - (int64_t)(total - total * (i + 2) / count))
                            : at;
        if (i + 1 < count && t->changes[next].chain == t->changes[at].chain)
            continue;
        part.sample.count = (uint32_t)(i + 1 - first);
        part.sample.covered_ns = (event->sample.covered_ns & ~(uint64_t)UINT32_MAX) | (end - given);
        part.time_ns = event->time_ns - (int64_t)(total - end);
        if (!give(m, &part, t->changes[at].chain))
            return false;
        given = end;
        first = i + 1;
    }
    forget_before(t, change_at(t, at, event->time_ns));
    return true;
}

/*
 * Samples between which the thread recorded nothing: what was open when the last stack was read was open
 * for all of them. They were written later, when other ranges were open.
 */
static bool take_run(struct snd_mixed *m, struct sonde_event *event, struct snd_mixed_thread *t,
                     int64_t read_ns)
{
    uint32_t at = change_at(t, 0, read_ns);

    forget_before(t, at);
    return give(m, event, t->changes[0].ns <= read_ns ? t->changes[0].chain : 0);
}

/* Older samples, which do not say when they were read: their time is divided evenly. */
static bool take_sample(struct snd_mixed *m, struct sonde_event *event, struct snd_mixed_thread *t)
{
    if (t->count == 1 ||
        event->sample.count > 100000) /* a day of samples in one: its end stands for it */
        return give(m, event, t->current);
    return split(m, event, t);
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct snd_mixed  *m = user;
    uint8_t            kind = SND_EVENT_KIND(words[0]);
    struct sonde_event event;
    bool               goes_on;

    if (!snd_is_sample(kind) || !snd_event_show(m->trace, lane->thread, ns, words, &event))
        return;
    struct snd_mixed_thread *t = &m->threads[m->threads[event.thread].alias];
    if (t->count == 0)
        goes_on = give(m, &event, 0);
    else if (kind == SND_EV_SAMPLE)
        goes_on = take_sample(m, &event, t);
    else
        goes_on = take_run(m, &event, t,
                           snd_sample_times(m->trace, lane->thread, ns, words).read_ns);
    if (!goes_on)
        snd_assembly_stop(m->assembly);
}

static bool on_event(const struct sonde_event *event, void *user)
{
    struct snd_mixed *m = user;

    return event->kind != SONDE_EVENT_SAMPLE || give(m, event, 0);
}

/* Whether another thread than one wrote events: with the sampler's alone there are no ranges. */
static bool has_lanes(const struct sonde_trace *trace)
{
    uint32_t process = UINT32_MAX, thread = 0;

    for (uint32_t p = 0; p < trace->process_count; p++)
        for (uint32_t i = 0; i < trace->processes[p].lane_count; i++) {
            uint32_t of = trace->processes[p].lanes[i].thread;
            if (process != UINT32_MAX && (process != p || thread != of))
                return true;
            process = p;
            thread = of;
        }
    return false;
}

/* The first walk, where ranges end by a key: which of them another thread ends. */
static void note_asynchronous(void *user, struct snd_lane *lane, struct snd_open_range *range,
                              struct snd_open_range *parent)
{
    struct snd_mixed *m = user;

    (void)lane, (void)parent;
    if (range->range.is_async)
        set_asynchronous(m, range);
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct snd_mixed *m = user;

    m->assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct snd_mixed *m = user;

    (void)assembly;
    m->is_done = true;
}

/* Ranges that another thread ends are no frames from their begin on: they are looked for in a walk of their own. */
static enum sonde_status find_asynchronous(struct snd_mixed *m, struct sonde_error *err)
{
    struct snd_consumer wanted = { .user = m, .any_flops = true, .close = note_asynchronous };
    struct snd_assembly assembly;
    enum sonde_status   status = snd_assemble(&assembly, m->trace, SONDE_BY_TIME, &wanted, 1, err);

    snd_assembly_release(&assembly);
    return status;
}

enum sonde_status snd_mixed_prepare(struct snd_mixed *m, struct sonde_trace *trace,
                                    snd_mixed_fn *take, void *user, struct sonde_error *err)
{
    const struct snd_kinds *kinds;
    enum sonde_status       status = snd_trace_kinds(trace, &kinds, err);

    *m = (struct snd_mixed){ .trace = trace, .chain_count = 1, .take = take, .user = user };
    m->is_done = status != SONDE_OK ||
                 !(kinds->events[SND_EV_SAMPLE] || kinds->events[SND_EV_SAMPLE_RUN]);
    if (m->is_done)
        return status;
    m->threads = calloc((size_t)trace->thread_count + 1, sizeof *m->threads);
    m->chains = calloc(16, sizeof *m->chains);
    m->chain_room = 16;
    if (!m->threads || !m->chains || !find_aliases(m))
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    find_python(m);
    m->consumer = (struct snd_consumer){
        .user = m, .any_flops = true, .begin = on_begin, .other = on_other, .end = on_end
    };
    if (!has_lanes(trace))
        return SONDE_OK;
    m->consumer.by_time = true;
    m->consumer.open = on_open;
    m->consumer.close = on_close;
    m->consumer.move = on_move;
    m->consumer.attribute = on_attribute;
    return kinds->crossing_end ? find_asynchronous(m, err) : SONDE_OK;
}

enum sonde_status snd_mixed_walk(struct snd_mixed *m, struct sonde_trace *trace, snd_mixed_fn *take,
                                 void *user, struct sonde_error *err)
{
    struct snd_assembly assembly;
    enum sonde_status   status = snd_mixed_prepare(m, trace, take, user, err);

    if (status != SONDE_OK || m->is_done)
        return status;
    if (m->consumer.open || trace->waiting) {
        status = snd_assemble(&assembly, trace, SONDE_BY_THREAD, &m->consumer, 1, err);
        snd_assembly_release(&assembly);
    } else {
        status = sonde_trace_walk(trace, SONDE_BY_THREAD, on_event, m, err);
    }
    if (status == SONDE_OK && m->failed)
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    return status;
}

enum sonde_status snd_only_gil_check(const struct snd_only_gil *only, struct sonde_error *err)
{
    if (only->held > 0 || only->others == 0)
        return SONDE_OK;
    return snd_fail(err, SONDE_E_ARGUMENT,
                    "no sample has a thread that held the interpreter's lock: this is a Python "
                    "without one (free-threaded), or no Python program; leave out --gil");
}

static bool count_only(void *user, const struct sonde_event *sample, uint32_t chain)
{
    (void)user, (void)sample, (void)chain;
    return true;
}

enum sonde_status snd_only_gil_find(struct sonde_trace *trace, struct sonde_error *err)
{
    struct snd_only_gil only = { 0 };
    struct snd_mixed    mixed;

    trace->only_gil = &only;
    enum sonde_status st = snd_mixed_walk(&mixed, trace, count_only, NULL, err);
    trace->only_gil = NULL;
    snd_mixed_release(&mixed);
    if (st == SONDE_OK && only.held + only.others == 0)
        return snd_fail(err, SONDE_E_ARGUMENT, "the trace has no samples; leave out --gil");
    return st == SONDE_OK ? snd_only_gil_check(&only, err) : st;
}

void snd_mixed_release(struct snd_mixed *m)
{
    for (uint32_t i = 0; m->threads && i < m->trace->thread_count; i++)
        free(m->threads[i].changes);
    free(m->threads);
    free(m->chains);
    snd_map_release(&m->by_name);
    snd_map_release(&m->asynchronous);
}

/* -------------------------------------------------------------------- frames */

/* Its innermost frame. */
static bool is_native(const struct snd_tables *t, uint32_t stack)
{
    return snd_frame_is_native(t, t->stacks[stack].frame);
}

static uint32_t count_python(const struct snd_tables *t, uint32_t stack)
{
    uint32_t count = 0;

    for (size_t depth = 0; stack != 0 && stack < t->stack_count && depth < SND_STACK_MAX;
         stack = t->stacks[stack].parent, depth++)
        count += !is_native(t, stack);
    return count;
}

struct snd_mixed_steps snd_mixed_begin(const struct snd_mixed *mixed, uint32_t process,
                                       uint32_t stack, uint32_t chain)
{
    const struct snd_tables *t = &mixed->trace->processes[process].tables;

    return (struct snd_mixed_steps){ .mixed = mixed,
                                     .tables = t,
                                     .stack = stack,
                                     .chain = chain,
                                     .python = count_python(t, stack),
                                     .depth = UINT32_MAX };
}

/* Whether the range comes before what is left of the stack, whose innermost frame is Python's. */
static bool is_inside(struct snd_mixed_steps *at)
{
    uint32_t own = at->mixed->chains[at->chain].python_depth;

    if (own != 0 && own < at->depth)
        at->depth = own; /* what it lies in does not come later */
    return at->depth >= at->python;
}

bool snd_mixed_next(struct snd_mixed_steps *at, struct snd_mixed_step *step)
{
    bool has_frame = at->stack != 0 && at->stack < at->tables->stack_count &&
                     at->frames < SND_STACK_MAX;
    bool has_python = has_frame && !is_native(at->tables, at->stack);

    *step = (struct snd_mixed_step){ 0 };
    if (at->chain != 0 && (!has_frame || (has_python && is_inside(at)))) {
        step->chain = at->chain;
        at->chain = at->mixed->chains[at->chain].parent;
        return true;
    }
    if (!has_frame)
        return false;
    step->stack = at->stack;
    at->stack = at->tables->stacks[at->stack].parent;
    at->frames++;
    at->python -= has_python;
    return true;
}

static struct snd_mixed_frame show_step(const struct snd_mixed *m, uint32_t process,
                                        struct snd_mixed_step step)
{
    const struct snd_tables *t = &m->trace->processes[process].tables;

    if (step.chain != 0)
        return (struct snd_mixed_frame){
            .frame = { snd_chain_name(m, step.chain), { "", 0 }, 0, 0 }, .is_range = true
        };
    struct snd_mixed_frame shown = { .is_native = is_native(t, step.stack),
                                     .id = t->stacks[step.stack].frame };
    sonde_trace_frame(m->trace, process, shown.id, &shown.frame);
    return shown;
}

size_t snd_mixed_frames(const struct snd_mixed *mixed, uint32_t process, uint32_t stack,
                        uint32_t chain, struct snd_mixed_frame *frames, size_t size)
{
    struct snd_mixed_steps at = snd_mixed_begin(mixed, process, stack, chain);
    struct snd_mixed_step  step;
    size_t                 count = 0;

    for (; snd_mixed_next(&at, &step); count++)
        if (count < size)
            frames[count] = show_step(mixed, process, step);
    return count;
}

size_t snd_mixed_some_frames(const struct snd_mixed *mixed, uint32_t process, uint32_t stack,
                             struct snd_mixed_frame *frames, size_t size)
{
    static const struct snd_mixed_frame unknown = {
        .frame = { .function = { "(not known)", 11 }, .file = { "", 0 } },
        .is_native = true,
    };
    size_t count = snd_mixed_frames(mixed, process, stack, 0, frames, size);

    if (count == 0)
        frames[count++] = unknown;
    return count < size ? count : size;
}
