/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_names.h - ids of operators' names, looked up by address or hash and interned
 * once.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_NAMES_H
#define SND_PROBES_TORCH_NAMES_H

#include "probes/torch/torch_thread.h"

namespace snd_torch
{

NOINLINE uint32_t text_id(Thread *thread, const char *text);

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

NOINLINE Name name_slow(Thread *thread, NameSlot *slot, const at::RecordFunction &fn);

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

} // namespace snd_torch

#endif
