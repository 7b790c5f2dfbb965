/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/range_attributes.c - attributes of ranges: what each of them sets, and what they come to. */
#include <stddef.h>
#include <string.h>

#include "format/fields.h"
#include "model/ranges/open_ranges.h"

static void set_key(struct snd_assembly *a, struct snd_lane *lane, struct snd_range *r,
                    uint64_t key)
{
    if (r->key != 0 || key == 0)
        return;
    r->key = key;
    if (!snd_map_put(&a->keys, (struct snd_key){ lane->process, key, 0 }, lane->thread))
        snd_assembly_stop(a);
}

/* Where in a range a number that an attribute gives is kept as it is; 0: the key is of another kind. */
#define SND_AT(key, member) [SND_ATTR_##key] = offsetof(struct snd_range, member)
static const uint16_t number_at[SND_RANGE_ATTRS] = {
    SND_AT(SHAPES, shapes),
    SND_AT(STACK, stack),
    SND_AT(MODULE, module),
    SND_AT(COMPILED, compiled),
    SND_AT(FWD_THREAD, fwd_thread),
    SND_AT(OVERLOAD, overload),
    SND_AT(ARGUMENTS, arguments),
    SND_AT(STRIDES, strides),
    SND_AT(KEYWORDS, keywords),
    SND_AT(COLLECTIVE, collective),
    SND_AT(PYTHON_DEPTH, python_depth),
};
#undef SND_AT

/* Keeps an attribute as it was recorded; those that count something add up. */
static void keep_attribute(struct snd_open_range *open, uint8_t key, uint64_t value)
{
    static const uint32_t sums = 1u << SND_ATTR_FLOPS | 1u << SND_ATTR_MACS | 1u << SND_ATTR_BYTES;

    if (key >= SND_RANGE_ATTRS)
        return;
    bool adds = (sums >> key & 1) && (open->attr_mask >> key & 1);
    open->attrs[key] = adds ? open->attrs[key] + value : value;
    open->attr_mask |= 1u << key;
}

static void set_attribute(struct snd_assembly *a, struct snd_lane *lane, struct snd_range *r,
                          uint8_t key, uint64_t value)
{
    if (key < SND_RANGE_ATTRS && number_at[key] != 0) {
        uint32_t number = (uint32_t)value;
        memcpy((char *)r + number_at[key], &number, sizeof number);
        return;
    }
    switch (key) {
    case SND_ATTR_FLOPS:
        r->flops += (double)value;
        break;
    case SND_ATTR_MACS:
        r->macs += (double)value;
        break;
    case SND_ATTR_BYTES:
        r->moved_bytes += (double)value;
        break;
    case SND_ATTR_SEQUENCE:
        r->sequence = (int64_t)(value & INT64_MAX);
        break;
    case SND_ATTR_COLLECTIVE_SEQUENCE:
        r->collective_sequence = (int64_t)(value & INT64_MAX);
        break;
    case SND_ATTR_SCOPE: /* torch's number plus one */
        r->scope = snd_scope_of(value);
        r->is_op = true;
        break;
    case SND_ATTR_FRAME:
        r->frame = value;
        r->scope = SONDE_SCOPE_PYTHON;
        break;
    case SND_ATTR_AWAITED:
        r->awaited = value;
        break;
    case SND_ATTR_ASYNC:
        r->is_async = value != 0;
        break;
    case SND_ATTR_API:
        r->api = value;
        r->device_ns = r->own_device_ns = snd_devices_sum(a->trace, lane->process,
                                                          SND_API_CORRELATION(value));
        break;
    case SND_ATTR_KEY:
        set_key(a, lane, r, value);
        break;
    default:
        break; /* nothing that a model counts */
    }
}

void snd_apply_attribute(struct snd_assembly *a, struct snd_lane *lane, uint8_t key, uint64_t value)
{
    struct snd_open_range *open = snd_innermost(lane);

    if (key == SND_ATTR_COUNTED) { /* the thread's, not a range's */
        SND_EACH_CONSUMER(a, c)
        if (c->counted)
            c->counted(c->user, lane, value);
        return;
    }
    if (key == SND_ATTR_MODULE_CALL || key == SND_ATTR_MODULE_RETURN) { /* likewise */
        SND_EACH_CONSUMER(a, c)
        if (c->module_call)
            c->module_call(c->user, lane, key == SND_ATTR_MODULE_RETURN, (uint32_t)value);
        return;
    }
    if (!open || lane->deeper > 0)
        return;
    if (a->as_recorded)
        keep_attribute(open, key, value);
    bool was_named = open->range.scope == SONDE_SCOPE_USER;
    snd_lane_settle(a, lane);
    set_attribute(a, lane, &open->range, key, value);
    bool is_named = open->range.scope == SONDE_SCOPE_USER;
    if (was_named || is_named) {
        lane->named += (uint32_t)is_named - (uint32_t)was_named;
        snd_lane_named(a, lane);
    }
    if (key < 64 && (SND_ATTRS_HANDED >> key & 1))
        snd_hand_attribute(a, lane, open, key);
}

void snd_hand_attribute(const struct snd_assembly *a, struct snd_lane *lane,
                        struct snd_open_range *open, uint8_t key)
{
    SND_EACH_CONSUMER(a, c)
    if (c->attribute)
        c->attribute(c->user, lane, open, key);
}

/* Adds what a formula found to a range. */
static void add_work(struct snd_range *r, const struct snd_work *work)
{
    r->formula = SND_FLOPS_FOUND;
    r->flops = work->flops;
    r->macs += work->macs;
    r->moved_bytes += work->moved_bytes;
}

void snd_range_learn_from(struct snd_assembly *a, const struct snd_lane *lane, struct snd_range *r,
                          uint32_t child_arguments)
{
    struct snd_work work;

    if (r->shapes != 0 && child_arguments != 0 &&
        snd_flops_from_child(a->flops, lane->process, r->name, r->shapes, child_arguments, &work))
        add_work(r, &work);
}

void snd_range_count(struct snd_assembly *a, const struct snd_lane *lane, struct snd_range *r)
{
    struct snd_work work;

    if (a->flops_mode == SONDE_FLOPS_FULL && r->claimed)
        return;
    r->formula = a->name_flags[r->name] & SND_NAME_NO_WORK ? SND_FLOPS_NO_WORK : SND_FLOPS_UNKNOWN;
    if (r->formula != SND_FLOPS_UNKNOWN || r->shapes == 0)
        return;
    r->formula = (uint8_t)snd_flops_of(a->flops, lane->process, r->name, r->shapes, r->arguments,
                                       &work);
    if (r->formula == SND_FLOPS_FOUND)
        add_work(r, &work);
}
