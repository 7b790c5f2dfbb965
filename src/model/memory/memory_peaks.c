/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/memory/memory_peaks.c - what memory was live, when it was most, and who held it then.
 *
 * One walk in the order of time finds the peaks and who holds them: no copy of the holders is made at every new
 * height, each keeps what it had at the latest when it changes. Points of the course are of equal parts of the time between a device's
 * first and last event (memory_points.c): of a second walk, which looks at no ranges, if there were too many to keep.
 */
#include "model/memory/memory_peaks.h"

#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "format/known.h"
#include "model/kept.h"
#include "model/memory/memory_holders.h"

static void give_up(struct sonde_memory *m)
{
    snd_assembly_stop(m->assembly);
}

/* ------------------------------------------------------- devices and holders */

/* A GPU's memory is one process's: another process's cuda:0 may be another GPU. */
static struct device *find_device(struct sonde_memory *m, uint32_t process, uint32_t device,
                                  int64_t ns, uint32_t *index)
{
    uint32_t       owner = SND_DEVICE_TYPE(device) == 0 ? SONDE_NONE : process;
    struct snd_key key = { device, owner, 0 };

    if (m->latest != 0 && m->latest_key.a == key.a && m->latest_key.b == key.b) {
        *index = m->latest - 1;
        return &m->devices[*index];
    }
    if (snd_map_get(&m->by_device, key, index)) {
        m->latest_key = key;
        m->latest = *index + 1;
        return &m->devices[*index];
    }
    /* A file still being written may show the second walk what the first did not see. */
    if (m->device_count >= DEVICES_MAX || m->second)
        return NULL;
    if (!snd_grow(&m->devices, &m->device_room, m->device_count, sizeof *m->devices) ||
        !snd_map_put(&m->by_device, key, m->device_count)) {
        give_up(m);
        return NULL;
    }
    *index = m->device_count++;
    struct device *d = &m->devices[*index];
    *d = (struct device){ .first_ns = ns, .whole.time_ns = ns, .reserved_bytes = -1 };
    d->shown.type = SND_DEVICE_TYPE(device);
    d->shown.index = SND_DEVICE_INDEX(device) == 0xffff ? SONDE_NONE : SND_DEVICE_INDEX(device);
    d->shown.process = owner;
    d->shown.before_bytes = d->shown.reserved_peak_bytes = d->shown.reserved_at_peak_bytes = -1;
    return d;
}

static struct sonde_text name_text(const struct sonde_memory *m, uint32_t name)
{
    const struct snd_text *text = &m->trace->names.items[name];

    return (struct sonde_text){ text->bytes, text->length };
}

/* Where a block was taken, as far as holders are grouped by it; false: memory is out. */
static bool find_place(struct sonde_memory *m, const struct snd_lane *lane,
                       const struct snd_open_range *innermost, struct snd_where *where,
                       uint32_t *stack)
{
    *where = (struct snd_where){ .name = innermost ? innermost->range.name : NO_RANGE,
                                 .module = SONDE_NONE };
    *stack = 0;
    if (m->groups == 0 || !innermost)
        return true;
    uint32_t at = snd_where_now(&m->launches, lane, innermost);
    if (at == UINT32_MAX)
        return false;
    if (m->groups & SONDE_GROUP_MODULE)
        where->module = m->launches.places[at].module;
    return !(m->groups & SONDE_GROUP_STACK) ||
           snd_place_stack(&m->texts, m->trace, lane->process, m->launches.places[at].stack, stack);
}

static uint32_t find_holder(struct sonde_memory *m, uint32_t device, const struct snd_lane *lane,
                            const struct snd_open_range *innermost)
{
    struct snd_where where;
    uint32_t         holder, stack;

    if (innermost && innermost->range.api != 0) /* the allocator's own call of the driver */
        innermost = snd_where_caller(lane);
    if (!find_place(m, lane, innermost, &where, &stack)) {
        give_up(m);
        return 0;
    }
    struct snd_key key = { SND_PAIR(device, where.name), SND_PAIR(where.module, stack), 0 };
    if (snd_map_get(&m->by_holder, key, &holder))
        return holder;
    if (!snd_grow(&m->holders, &m->holder_room, m->holder_count, sizeof *m->holders) ||
        !snd_map_put(&m->by_holder, key, m->holder_count)) {
        give_up(m);
        return 0;
    }
    struct holder *h = &m->holders[m->holder_count];
    *h = (struct holder){ .shown = { .device = device,
                                     .name = { "(no range)", 10 },
                                     .module = snd_where_module(&m->launches, &where),
                                     .stack = { "", 0 } } };
    if (where.name != NO_RANGE)
        h->shown.name = name_text(m, where.name);
    h->stack = stack;
    h->at_peak.height = m->devices[device].peak.height;
    h->at_whole.height = m->devices[device].whole.height;
    return m->holder_count++;
}

/* ------------------------------------------------------------- live memory */

static uint32_t new_live(struct sonde_memory *m)
{
    uint32_t slot;

    if (m->free_live != 0) {
        slot = m->free_live - 1;
        m->free_live = m->lives[slot].next_free;
        return slot;
    }
    if (!snd_grow(&m->lives, &m->live_room, m->live_count, sizeof *m->lives)) {
        give_up(m);
        return UINT32_MAX;
    }
    return m->live_count++;
}

/* What it had at the peak, before that changes. */
static void keep_held(struct held *held, const struct holder *h, const struct peak *peak)
{
    if (held->height != peak->height)
        *held = (struct held){ h->now_bytes, h->now_count, peak->height };
}

static void change(struct sonde_memory *m, struct device *d, uint32_t holder, int64_t bytes,
                   bool more)
{
    struct holder *h = holder < m->holder_count ? &m->holders[holder] : NULL;

    d->now_bytes = snd_add(d->now_bytes, bytes);
    d->now_count += more ? 1 : UINT64_MAX;
    if (h) {
        keep_held(&h->at_peak, h, &d->peak);
        keep_held(&h->at_whole, h, &d->whole);
        h->now_bytes = snd_add(h->now_bytes, bytes);
        h->now_count += more ? 1 : UINT64_MAX;
    }
}

static bool give_back(struct sonde_memory *m, struct device *d, struct snd_key key, int64_t *bytes)
{
    uint32_t slot;

    if (!snd_map_take(&m->by_address, key, &slot))
        return false;
    struct live *live = &m->lives[slot];
    *bytes = live->bytes;
    change(m, d, live->holder, -live->bytes, false);
    live->next_free = m->free_live;
    m->free_live = slot + 1;
    return true;
}

static void take(struct sonde_memory *m, struct device *d, uint32_t device, struct snd_key key,
                 int64_t bytes, const struct snd_lane *lane, const struct snd_open_range *innermost)
{
    int64_t old;

    /* An address that was live: its free is not in the trace. */
    give_back(m, d, key, &old);
    uint32_t slot = new_live(m);
    if (slot == UINT32_MAX)
        return;
    uint32_t holder = m->second ? UINT32_MAX : find_holder(m, device, lane, innermost);
    m->lives[slot] = (struct live){ .bytes = bytes, .holder = holder };
    if (!snd_map_put(&m->by_address, key, slot))
        give_up(m);
    change(m, d, holder, bytes, true);
}

/* ------------------------------------------------------------------- walks */

/* Live bytes changed: is this a new peak? */
static void note_height(struct device *d, int64_t ns)
{
    int64_t whole = snd_add(d->now_bytes, d->earlier_bytes);

    if (d->now_bytes > d->peak.bytes)
        d->peak = (struct peak){ d->now_bytes, d->now_bytes, ns, d->events, d->peak.height + 1 };
    if (whole > d->whole.bytes) {
        d->whole = (struct peak){ whole, d->now_bytes, ns, d->events, d->whole.height + 1 };
        d->shown.reserved_at_peak_bytes = d->reserved_bytes;
    }
}

static void note_first(struct device *d, int64_t ns, const uint64_t *words, bool matched,
                       int64_t bytes)
{
    struct sonde_memory_device *s = &d->shown;

    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        s->allocs++;
        s->allocated_bytes += (uint64_t)bytes;
    } else {
        s->frees++;
        s->freed_bytes += (uint64_t)bytes;
        s->unmatched_frees += !matched;
        s->unmatched_free_bytes += matched ? 0 : (uint64_t)bytes;
    }
    note_height(d, ns);
    d->last_ns = ns;
}

/* The allocator's own sum, after the latest event: what of it the trace does not have is older. */
static void note_allocated(struct sonde_memory *m, struct device *d, int64_t ns, int64_t bytes)
{
    int64_t older = snd_sub(bytes, snd_add(d->now_bytes, d->earlier_bytes));

    if (!d->has_before) {
        d->has_before = true;
        d->shown.before_bytes = older;
    } else { /* not the same: the recording was paused meanwhile */
        d->earlier_bytes = snd_add(d->earlier_bytes, snd_sub(older, d->shown.before_bytes));
        if (!m->second)
            note_height(d, ns);
    }
}

/* It comes after the event with which it changed. */
static void note_reserved(struct device *d, int64_t bytes)
{
    struct sonde_memory_device *s = &d->shown;

    d->reserved_bytes = bytes;
    s->reserved_peak_bytes = bytes > s->reserved_peak_bytes ? bytes : s->reserved_peak_bytes;
    if (d->events == d->whole.event)
        s->reserved_at_peak_bytes = bytes;
}

/* The number that follows a name which sonde gave; false: it is another name. */
static bool follows(const struct snd_text *name, enum snd_known known, uint32_t *number)
{
    const char *text = snd_known_name(known);
    size_t      length = strlen(text);

    if (name->length <= length || memcmp(name->bytes, text, length) != 0)
        return false;
    *number = (uint32_t)strtoul(name->bytes + length, NULL, 10);
    return *number < 0xffff;
}

static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_memory *m = user;
    uint32_t             name, gpu, index;
    double               value;

    if (SND_EVENT_KIND(words[0]) != SND_EV_COUNTER ||
        (name = snd_name_of(lane->from, SND_LOW(words[1]))) == UINT32_MAX)
        return;
    const struct snd_text *text = &m->trace->names.items[name];
    bool                   reserved = follows(text, SND_KNOWN_DEVICE_RESERVED, &gpu);
    if (!reserved && !follows(text, SND_KNOWN_DEVICE_ALLOCATED, &gpu))
        return;
    memcpy(&value, &words[2], sizeof value);
    struct device *d = find_device(m, lane->process, SND_DEVICE(1, gpu), ns, &index);
    if (!d || !(value >= 0 && value < 0x1p62))
        return;
    if (!reserved)
        note_allocated(m, d, ns, (int64_t)value);
    else if (!m->second)
        note_reserved(d, (int64_t)value);
}

static void note_second(struct device *d, int64_t ns)
{
    int64_t held = d->now_bytes;

    if (d->has_before)
        held = snd_add(held, snd_add(d->shown.before_bytes, d->earlier_bytes));
    snd_memory_note_bucket(d, ns, held);
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_memory *m = user;
    struct snd_key       key = { SND_PAIR(SND_LOW(words[1]), lane->process), words[2], 0 };
    uint32_t             index;
    bool                 matched = true;
    int64_t              bytes = snd_net_bytes(words);
    struct device       *d = find_device(m, lane->process, SND_LOW(words[1]), ns, &index);

    if (!d)
        return;
    d->events++;
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC) {
        take(m, d, index, key, bytes, lane, innermost);
    } else {
        bytes = -bytes;
        matched = give_back(m, d, key, &bytes);
        if (!matched)
            d->earlier_bytes = snd_sub(d->earlier_bytes, bytes);
    }
    if (m->second) {
        note_second(d, ns);
        return;
    }
    note_first(d, ns, words, matched, bytes);
    snd_memory_keep_moment(m, d, ns);
}

/* Plus what was in use before the recording, if known. */
static void choose_peak(struct device *d)
{
    const struct peak *peak = d->has_before ? &d->whole : &d->peak;
    int64_t            before = d->has_before ? d->shown.before_bytes : 0;

    d->before_at_end = d->has_before ? snd_add(before, d->earlier_bytes) : 0;
    d->before_at_peak = d->has_before ? snd_add(before, snd_sub(peak->bytes, peak->now_bytes)) : 0;
    d->shown.peak_bytes = snd_add(before, peak->bytes);
    d->shown.peak_time_ns = peak->time_ns;
    d->shown.end_bytes = snd_add(d->now_bytes, d->before_at_end);
    d->shown.end_count = d->now_count;
}

/* Ready for the second walk: the same course once more. */
static void rewind_all(struct sonde_memory *m)
{
    snd_map_release(&m->by_address);
    m->live_count = m->free_live = 0;
    m->second = true;
    for (uint32_t i = 0; i < m->device_count; i++) {
        struct device *d = &m->devices[i];
        d->now_bytes = d->earlier_bytes = 0;
        d->now_count = d->events = 0;
    }
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_memory *m = user;

    (void)parent;
    snd_where_closed(&m->launches, lane, range);
}

static void on_begin(void *user, struct snd_assembly *assembly)
{
    struct sonde_memory *m = user;

    m->assembly = m->launches.assembly = assembly;
}

static void on_end(void *user, const struct snd_assembly *assembly)
{
    struct sonde_memory *m = user;

    (void)assembly;
    m->is_done = true;
}

static enum sonde_status fail_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the memory report");
}

static enum sonde_status make(struct sonde_trace *trace, unsigned groups, uint32_t stack_depth,
                              struct sonde_memory **out, struct sonde_error *err)
{
    struct sonde_memory *m = calloc(1, sizeof *m);
    bool                 backward = false;

    *out = m;
    if (!m)
        return fail_memory(err);
    m->trace = m->launches.trace = trace;
    enum sonde_status status = groups ? snd_where_needs_close(trace, &backward, err) : SONDE_OK;
    if (status != SONDE_OK)
        return status;
    m->groups = groups;
    m->has_moments = true;
    m->texts.stack_depth = stack_depth;
    m->consumer = (struct snd_consumer){ .user = m,
                                         .flops = SONDE_FLOPS_NONE,
                                         .any_flops = true,
                                         .by_time = true,
                                         .begin = on_begin,
                                         .open = groups ? snd_where_open : NULL,
                                         .close = backward ? on_close : NULL,
                                         .memory = on_memory,
                                         .other = on_other,
                                         .no_leaves = !backward,
                                         .end = on_end };
    snd_wait(trace, &m->consumer);
    return SONDE_OK;
}

/* Devices, and who holds what of them. */
static enum sonde_status finish(struct sonde_memory *m, struct sonde_error *err)
{
    enum sonde_status status = snd_wait_walk(m->trace, m->is_done, err);

    if (status != SONDE_OK)
        return status;
    for (uint32_t i = 0; i < m->device_count; i++)
        choose_peak(&m->devices[i]);
    return snd_memory_show_holders(m) ? SONDE_OK : fail_memory(err);
}

static enum sonde_status walk_again(struct sonde_memory *m, struct sonde_error *err)
{
    const struct snd_consumer second = { .user = m,
                                         .any_flops = true,
                                         .by_time = true,
                                         .no_ranges = true,
                                         .begin = on_begin,
                                         .memory = on_memory,
                                         .other = on_other };
    struct snd_assembly       assembly;

    rewind_all(m);
    enum sonde_status status = snd_assemble(&assembly, m->trace, SONDE_BY_TIME, &second, 1, err);
    snd_assembly_release(&assembly);
    return status;
}

/* The course of each device. `from`: who has followed it. */
static enum sonde_status add_points(struct sonde_memory *m, const struct sonde_memory *from,
                                    struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    if (m->device_count == 0)
        return SONDE_OK;
    if (!snd_memory_make_buckets(m))
        return fail_memory(err);
    if (snd_memory_knows_course(from))
        snd_memory_fill_buckets(m, from);
    else
        status = walk_again(m, err);
    return status == SONDE_OK && !snd_memory_show_points(m) ? fail_memory(err) : status;
}

static void free_memory(void *memory)
{
    sonde_memory_free(memory);
}

#define HOLDERS_ALONE ((uint64_t)1 << 63)

/* What memories are told apart by. */
static uint64_t options_key(unsigned groups, uint32_t stack_depth)
{
    return (uint64_t)groups << 32 | (groups & SONDE_GROUP_STACK ? stack_depth : 0);
}

/* Of one that is made, or lent. */
static enum sonde_status hand_over(enum sonde_status status, uint64_t key,
                                   struct sonde_memory **memory)
{
    if (status == SONDE_OK) {
        snd_kept_add((*memory)->trace, free_memory, key, *memory);
        return SONDE_OK;
    }
    sonde_memory_free(*memory);
    *memory = NULL;
    return status;
}

enum sonde_status snd_memory_wait(struct sonde_trace *trace, unsigned groups,
                                  struct sonde_memory **out, struct sonde_error *err)
{
    uint64_t key = options_key(groups, 0);

    *out = snd_kept_lend(trace, free_memory, key); /* points do no harm */
    if (!*out)
        *out = snd_kept_lend(trace, free_memory, key | HOLDERS_ALONE);
    if (*out)
        return SONDE_OK;
    enum sonde_status status = make(trace, groups, 0, out, err);
    if (status != SONDE_OK) {
        sonde_memory_free(*out);
        *out = NULL;
    }
    return status;
}

enum sonde_status snd_memory_finish(struct sonde_memory **memory, struct sonde_error *err)
{
    if (snd_kept_return((*memory)->trace, *memory))
        return SONDE_OK;
    return hand_over(finish(*memory, err), options_key((*memory)->groups, 0) | HOLDERS_ALONE,
                     memory);
}

/* One that the advice has made, and has what these groups are the sums of; NULL: there is none. */
static const struct sonde_memory *find_finer(const struct sonde_trace *trace, unsigned groups)
{
    uint64_t                   key = options_key(SONDE_GROUP_MODULE, 0) | HOLDERS_ALONE;
    const struct sonde_memory *finer = groups & SONDE_GROUP_STACK
                                           ? NULL
                                           : snd_kept_lend(trace, free_memory, key);

    return finer && snd_memory_knows_course(finer) ? finer : NULL;
}

/* A range holds what it holds in all modules, at any moment. */
static enum sonde_status make_of(const struct sonde_memory *finer, unsigned groups,
                                 struct sonde_memory **out, struct sonde_error *err)
{
    struct sonde_memory *m = calloc(1, sizeof *m);

    *out = m;
    if (!m)
        return fail_memory(err);
    m->trace = finer->trace;
    m->groups = groups;
    return snd_memory_merge(m, finer) ? add_points(m, finer, err) : fail_memory(err);
}

static enum sonde_status make_whole(struct sonde_trace *trace, unsigned groups,
                                    uint32_t stack_depth, struct sonde_memory **out,
                                    struct sonde_error *err)
{
    enum sonde_status status = make(trace, groups, stack_depth, out, err);

    if (status == SONDE_OK)
        status = finish(*out, err);
    return status == SONDE_OK ? add_points(*out, *out, err) : status;
}

enum sonde_status sonde_memory_new_by(struct sonde_trace *trace, unsigned groups,
                                      uint32_t stack_depth, struct sonde_memory **out,
                                      struct sonde_error *err)
{
    unsigned used = groups & (SONDE_GROUP_MODULE | SONDE_GROUP_STACK);
    uint64_t key = options_key(used, stack_depth);

    *out = snd_kept_lend(trace, free_memory, key);
    if (*out)
        return SONDE_OK;
    const struct sonde_memory *finer = find_finer(trace, used);
    enum sonde_status          status = finer ? make_of(finer, used, out, err)
                                              : make_whole(trace, used, stack_depth, out, err);
    return hand_over(status, key, out);
}

enum sonde_status sonde_memory_new(struct sonde_trace *trace, struct sonde_memory **out,
                                   struct sonde_error *err)
{
    return sonde_memory_new_by(trace, 0, 0, out, err);
}
