/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_calls.h - ways of calling an operator: name, inputs and place as one id.
 *
 * Each distinct combination is interned once; an event of an operator then has an id and its
 * times. The id is looked up by a hash of the combination.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_CALLS_H
#define SND_PROBES_TORCH_CALLS_H

#include "probes/torch/shim.h"
#include "probes/torch/torch_inputs.h"
#include "probes/torch/torch_names.h"
#include "probes/torch/place/torch_places.h"

namespace snd_torch
{

constexpr PlaceSlot NOWHERE = { 0, 0, 0, 0 };

/* Such as a collective. Only user ranges can be, and the query is a call into torch. */
inline bool is_async(const at::RecordFunction &fn)
{
    return UNLIKELY(fn.scope() == at::RecordScope::USER_SCOPE) && fn.isAsync();
}

/* Properties of a call besides its name, inputs and place. */
INLINE uint64_t traits_of(const at::RecordFunction &fn)
{
    at::RecordScope scope = fn.scope();
    uint64_t forward = scope == at::RecordScope::BACKWARD_FUNCTION ? fn.forwardThreadId() : 0;

    return static_cast<uint64_t>(scope) | static_cast<uint64_t>(fn.seqNr() >= 0) << 8 |
           static_cast<uint64_t>(is_async(fn)) << 9 | forward << 16;
}

/* The id that the recorder has for this way of calling; 0: it has no room for more. */
NOINLINE uint32_t describe_call(const at::RecordFunction &fn, uint32_t flags,
                                const PlaceSlot *place);

NOINLINE uint32_t call_slow(CallLine *line, uint64_t hash, const at::RecordFunction &fn,
                            uint32_t flags, const PlaceSlot *place);

INLINE uint32_t call_by_hash(Thread *thread, uint64_t hash, const at::RecordFunction &fn,
                             uint32_t flags, const PlaceSlot *place)
{
    CallLine *line = &thread->calls[hash % CALL_LINES];

    for (const IdSlot &way : line->ways)
        if (way.hash == hash)
            return way.id;
    return call_slow(line, hash, fn, flags, place);
}

/* An operator of which only the name is recorded: its slot has the id. */
INLINE uint32_t call_by_name(NameSlot *slot, const at::RecordFunction &fn, uint32_t flags)
{
    uint32_t *id = &slot->calls[fn.seqNr() >= 0];

    if (UNLIKELY(*id == 0))
        *id = describe_call(fn, flags, &NOWHERE);
    return *id;
}

template <uint32_t FLAGS>
INLINE uint32_t call_of(Thread *thread, const at::RecordFunction &fn, const Name &name,
                        const PlaceSlot *place)
{
    if (!(FLAGS & (SONDE_TORCH_SHAPES | SONDE_TORCH_STACKS | SONDE_TORCH_MODULES)) && name.slot)
        return call_by_name(name.slot, fn, FLAGS);
    uint64_t hash = stir(thread->seed + name.id * ODD, reinterpret_cast<uintptr_t>(name.address));
    if (FLAGS & SONDE_TORCH_SHAPES) {
        hash = hash_inputs(fn.inputs(), hash);
        if (UNLIKELY(!name.slot || !name.slot->is_operator))
            hash += hash_keywords(fn);
    }
    hash = fold(hash ^ traits_of(fn), ODD ^ place->hash);
    return call_by_hash(thread, hash, fn, FLAGS, place);
}

} // namespace snd_torch

#endif
