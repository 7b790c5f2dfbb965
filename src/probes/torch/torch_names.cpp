/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_names.cpp - see torch_names.h. */
#include "probes/torch/torch_names.h"

namespace snd_torch
{

NOINLINE uint32_t text_id(Thread *thread, const char *text)
{
    size_t   length = strlen(text);
    uint64_t hash = hash_text(text, length, thread->seed + length);
    IdSlot  *slot = &thread->texts[hash % TEXT_SLOTS];

    if (LIKELY(slot->hash == hash))
        return slot->id;
    slot->id = sonde_intern(text, length);
    slot->hash = slot->id ? hash : 0;
    return slot->id;
}

NOINLINE Name name_slow(Thread *thread, NameSlot *slot, const at::RecordFunction &fn)
{
    const char *name = fn.name();
    size_t      length = strlen(name);
    uint32_t    id = text_id(thread, name);

    /* autograd names its nodes anew each time: "autograd::engine::evaluate_function: .." */
    if (length + 1 < WORD || length + 1 >= sizeof slot->text ||
        strncmp(name, "autograd::", 10) == 0 || id > NAME_ID_MAX)
        return { id, nullptr, nullptr };
    static_assert(sizeof slot->text < 64, "the bits of NameSlot::length");
    slot->calls[0] = slot->calls[1] = 0;
    slot->address = name;
    slot->epoch = thread->epoch;
    slot->length = static_cast<uint32_t>(length) & 63;
    slot->id = id & NAME_ID_MAX;
    slot->is_operator = fn.operator_name().has_value();
    memcpy(slot->text, name, length / WORD * WORD);
    memcpy(&slot->text[length / WORD], name + length + 1 - WORD, WORD);
    return { id, name, slot };
}

} // namespace snd_torch
