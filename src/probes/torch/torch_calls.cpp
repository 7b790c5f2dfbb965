/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_calls.cpp - see torch_calls.h. */
#include "probes/torch/torch_calls.h"

#include "probes/torch/torch_arguments.h"

namespace snd_torch
{

namespace
{

/*
 * A RecordFunction has its overload from torch 2.7 on; the operator's full name, in all versions.
 */
uint32_t overload_id(const at::RecordFunction &fn)
{
    auto name = fn.operator_name();

    return name && !name->overload_name.empty()
               ? sonde_intern(name->overload_name.data(), name->overload_name.size())
               : 0;
}

} // namespace

NOINLINE uint32_t describe_call(const at::RecordFunction &fn, uint32_t flags,
                                const PlaceSlot *place)
{
    struct sonde_op_call call = {};

    call.struct_size = sizeof call;
    call.name = sonde_intern(fn.name(), strlen(fn.name()));
    if (fn.scope() != at::RecordScope::FUNCTION)
        call.scope = static_cast<uint32_t>(fn.scope()) + 1;
    if (fn.scope() == at::RecordScope::BACKWARD_FUNCTION)
        call.fwd_thread = fn.forwardThreadId();
    call.has_sequence = fn.seqNr() >= 0;
    call.is_async = is_async(fn);
    call.stack = place->stack;
    call.module = place->module;
    call.compiled = place->compiled;
    if (flags & SONDE_TORCH_OVERLOADS)
        call.overload = overload_id(fn);
    if (flags & SONDE_TORCH_SHAPES) {
        try {
            describe_inputs(fn, &call);
        } catch (const std::exception &) {
            /* out of memory, or a value that cannot be printed: without its inputs */
        }
    }
    return call.name ? sonde_intern_call(&call) : 0;
}

NOINLINE uint32_t call_slow(CallLine *line, uint64_t hash, const at::RecordFunction &fn,
                            uint32_t flags, const PlaceSlot *place)
{
    uint32_t id = describe_call(fn, flags, place);

    if (id)
        line->ways[hash >> 62] = { hash, id };
    return id;
}

} // namespace snd_torch
