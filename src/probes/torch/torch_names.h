/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_names.h - ids of operators' names, looked up by address or hash and interned
 * once.
 *
 * A part of shim.cpp, which includes it once.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_NAMES_H
#define SND_PROBES_TORCH_NAMES_H

#include "probes/torch/torch_thread.h"

namespace
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

constexpr uint32_t NAME_ID_MAX = (1u << 25) - 1; /* of NameSlot */

struct Name {
    uint32_t id; /* equal for equal texts, at any address; 0: no room for more names */
    const char
             *address; /* overloads of one name have it at different ones; NULL: it means nothing */
    NameSlot *slot;    /* of one whose name stays where it is, or NULL */
};

inline Name name_of_text(Thread *thread, const char *text)
{
    return { text_id(thread, text), nullptr, nullptr };
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

/* As strcmp() == 0, without the call. */
INLINE bool is_same(const NameSlot *slot, const char *name)
{
    size_t count = slot->length / WORD;

    for (size_t i = 0; i < count; i++)
        if (word_at(name + i * WORD) != slot->text[i])
            return false;
    return word_at(name + slot->length + 1 - WORD) == slot->text[count];
}

/*
 * The name of an operator stays at one address. Other ranges (scope other than FUNCTION, a short
 * name inside the RecordFunction, torch.compile's) have it at a heap address that is reused: the
 * address finds the slot, and the text must be compared.
 */
INLINE Name name_of(Thread *thread, const at::RecordFunction &fn)
{
    const char *name = fn.name();
    uintptr_t   inside = reinterpret_cast<uintptr_t>(name) - reinterpret_cast<uintptr_t>(&fn);

    if (fn.scope() != at::RecordScope::FUNCTION || inside < sizeof fn)
        return name_of_text(thread, name);
    uint64_t  hash = (reinterpret_cast<uintptr_t>(name) >> 3) * 0x9E3779B97F4A7C15ull;
    NameSlot *slot = &thread->names[hash >> 54];
    static_assert(NAME_SLOTS == 1u << 10, "the shift above");
    if (UNLIKELY(slot->address != name || slot->epoch != thread->epoch || !is_same(slot, name)))
        return name_slow(thread, slot, fn);
    return { slot->id, name, slot };
}

} // namespace

#endif
