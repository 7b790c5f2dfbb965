/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/same_event.h - two events of the public walk, compared member by member: padding is anything. */
#ifndef SAME_EVENT_H
#define SAME_EVENT_H

#include <cmocka.h>

#include "sonde/trace.h"

#define SAME(member) assert_int_equal(x->member, y->member)

static inline void same_sample(const struct sonde_event *x, const struct sonde_event *y)
{
    SAME(sample.covered_ns);
    SAME(sample.stack);
    SAME(sample.count);
    SAME(sample.state);
}

static inline void same_memory(const struct sonde_event *x, const struct sonde_event *y)
{
    SAME(memory.address);
    SAME(memory.size_bytes);
    SAME(memory.device);
    SAME(memory.tag);
}

static inline void same_function(const struct sonde_event *x, const struct sonde_event *y)
{
    SAME(function.duration_ns);
    SAME(function.frame);
    SAME(function.id);
    SAME(function.parent);
    SAME(function.resumed);
}

static inline void same_device(const struct sonde_event *x, const struct sonde_event *y)
{
    SAME(device.duration_ns);
    SAME(device.work);
    SAME(device.queue);
    SAME(device.correlation);
}

static inline void same_own_members(const struct sonde_event *x, const struct sonde_event *y)
{
    /* clang-format off */
    switch (x->kind) {
    case SONDE_EVENT_BEGIN: SAME(begin.name); SAME(begin.shapes); break;
    case SONDE_EVENT_END: break;
    case SONDE_EVENT_MARK: SAME(mark.name); SAME(mark.stack); break;
    case SONDE_EVENT_STEP: SAME(step.number); break;
    case SONDE_EVENT_GAP: SAME(gap.events); SAME(gap.ends); break;
    case SONDE_EVENT_COUNTER: SAME(counter.name); assert_true(x->counter.value == y->counter.value); break;
    case SONDE_EVENT_LINK: SAME(link.id); SAME(link.kind); SAME(link.arrives); break;
    case SONDE_EVENT_SAMPLE: same_sample(x, y); break;
    case SONDE_EVENT_ALLOC:
    case SONDE_EVENT_FREE: same_memory(x, y); break;
    case SONDE_EVENT_ATTR: SAME(attr.key); SAME(attr.value); break;
    case SONDE_EVENT_END_AT: SAME(end_at.inner); break;
    case SONDE_EVENT_END_KEY: SAME(end_key.key); break;
    case SONDE_EVENT_FUNCTION: same_function(x, y); break;
    case SONDE_EVENT_DEVICE: same_device(x, y); break;
    }
    /* clang-format on */
}

static inline void same_event(const struct sonde_event *x, const struct sonde_event *y)
{
    SAME(kind);
    SAME(process);
    SAME(thread);
    SAME(time_ns);
    same_own_members(x, y);
}

#undef SAME

#endif
