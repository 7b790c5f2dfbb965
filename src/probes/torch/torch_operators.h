/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_operators.h - the shortest way: a call of an operator that was called like this
 * before.
 *
 * An operator of torch's dispatcher is known by the address of its schema, which stays where it is
 * until the operator is removed; the dispatcher then tells us. With inputs, a call is expected to be
 * the one that came after the last one before: a program repeats itself, and comparing takes less
 * than half of hashing. All other calls go the general way (torch_calls.h), which teaches this one.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_OPERATORS_H
#define SND_PROBES_TORCH_OPERATORS_H

#include "probes/torch/torch_inputs.h"
#include "probes/torch/torch_names.h"

namespace snd_torch
{

/* Where a RecordFunction has the address of its schema, found by looking; 0: not known. */
extern std::atomic<size_t> schema_offset;
/* Added to addresses: counts removed operators in the bits that no address has. */
extern std::atomic<uint64_t> removals;

/* Has the dispatcher tell of removed operators. Once; throws. */
void watch_operators();

/*
 * The address of an operator's schema, and no other operator's since. Of any other range a number
 * that is none: in the schema's place it has the address of a text.
 */
INLINE uint64_t schema_key(const at::RecordFunction &fn)
{
    const char *place = reinterpret_cast<const char *>(&fn) +
                        schema_offset.load(std::memory_order_relaxed);

    return word_at(place) + removals.load(std::memory_order_relaxed);
}

/* Calls with and without a sequence number are different ones. No schema has an odd address. */
INLINE uint64_t operator_key(const at::RecordFunction &fn)
{
    return schema_key(fn) + (static_cast<uint64_t>(fn.seqNr()) >> 63);
}

INLINE OperatorSlot *operator_slot(Thread *thread, uint64_t key)
{
    static_assert(OPERATOR_SLOTS == 1u << 12, "the shift");
    return &thread->operators[static_cast<uint32_t>(key) * 0x9E3779B1u >> 20];
}

/* ------------------------------------------------------------------- inputs */

enum SeenKind : uint32_t {
    SEEN_OTHER,
    SEEN_TENSOR,
    SEEN_NONE,
    SEEN_INTEGER,
    SEEN_BOOLEAN,
    SEEN_DOUBLE,
    SEEN_INTEGERS
};

/* The first word of an input. `count`: dimensions, or numbers of a list; at most SEEN_WORDS. */
INLINE uint64_t seen_head(SeenKind kind, size_t count, uint32_t dtype)
{
    return kind | static_cast<uint32_t>(count << 8) | dtype << 16;
}

INLINE uint32_t dtype_number(const c10::TensorImpl *impl)
{
    caffe2::TypeMeta type = impl->dtype();
    uint16_t         number;

    static_assert(sizeof type == sizeof number, "a number of torch's");
    memcpy(&number, &type, sizeof number);
    return number;
}

INLINE bool is_seen_tensor(const uint64_t *words, const c10::TensorImpl *impl, size_t count)
{
    return words[0] == seen_head(SEEN_TENSOR, count, dtype_number(impl)) &&
           words[1] == impl->key_set().raw_repr();
}

/*
 * Returns the next input's words, or nullptr. The keys of a tensor tell which kind of tensor it is,
 * and so how it keeps its sizes: inside, as those that are learnt do.
 */
INLINE const uint64_t *compare_tensor(const uint64_t *words, const c10::TensorImpl *impl)
{
    if (UNLIKELY(impl->has_symbolic_sizes_strides()))
        return nullptr;
    c10::IntArrayRef sizes = impl->sizes_default(), strides = impl->strides_default();
    if (LIKELY(sizes.size() == 2)) {
        if (!is_seen_tensor(words, impl, 2) || words[2] != static_cast<uint64_t>(sizes[0]) ||
            words[3] != static_cast<uint64_t>(strides[0]) ||
            words[4] != static_cast<uint64_t>(sizes[1]) ||
            words[5] != static_cast<uint64_t>(strides[1]))
            return nullptr;
        return words + 6;
    }
    if (sizes.size() > SEEN_WORDS || !is_seen_tensor(words, impl, sizes.size()))
        return nullptr;
    words += 2;
    for (size_t i = 0; i < sizes.size(); i++, words += 2)
        if (words[0] != static_cast<uint64_t>(sizes[i]) ||
            words[1] != static_cast<uint64_t>(strides[i]))
            return nullptr;
    return words;
}

INLINE bool is_other(const c10::IValue &value)
{
    return !value.isTensor() && !value.isNone() && !value.isList() && !value.isScalar();
}

INLINE uint64_t double_word(const c10::IValue &value)
{
    double   number = value.toDouble();
    uint64_t word;

    memcpy(&word, &number, sizeof word);
    return word;
}

INLINE const uint64_t *compare_integers(const uint64_t *words, c10::ArrayRef<c10::IValue> list)
{
    if (list.size() > SEEN_WORDS || *words++ != seen_head(SEEN_INTEGERS, list.size(), 0))
        return nullptr;
    for (const c10::IValue &element : list)
        if (!element.isInt() || *words++ != static_cast<uint64_t>(element.toInt()))
            return nullptr;
    return words;
}

INLINE const uint64_t *compare_rare(const uint64_t *words, const c10::IValue &value)
{
    if (value.isNone())
        return words[0] == SEEN_NONE ? words + 1 : nullptr;
    if (value.isBool())
        return words[0] == SEEN_BOOLEAN && words[1] == value.toBool() ? words + 2 : nullptr;
    if (value.isDouble())
        return words[0] == SEEN_DOUBLE && words[1] == double_word(value) ? words + 2 : nullptr;
    if (value.isList())
        return compare_integers(words, value.toListRef());
    return words[0] == SEEN_OTHER && is_other(value) ? words + 1 : nullptr;
}

/* As torch has them, without a copy: they are the same as those of `seen`. */
INLINE bool is_seen(const Seen *seen, c10::ArrayRef<const c10::IValue> inputs)
{
    const uint64_t *words = seen->words;

    if (seen->count != inputs.size())
        return false;
    for (const c10::IValue &value : inputs) {
        if (LIKELY(value.isTensor())) {
            words = compare_tensor(words, value.unsafeToTensorImpl());
        } else if (value.isInt()) {
            if (words[0] != SEEN_INTEGER || words[1] != static_cast<uint64_t>(value.toInt()))
                return false;
            words += 2;
            continue;
        } else {
            words = compare_rare(words, value);
        }
        if (UNLIKELY(!words))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ looking up */

/* Of a range without anything special. */
INLINE bool is_ordinary(const at::RecordFunction &fn)
{
    return LIKELY((static_cast<uint64_t>(fn.scope()) | fn.handle()) == 0);
}

/* The id of a call like an earlier one. False: it is not known. */
template <bool HAS_INPUTS>
INLINE bool find_call(Thread *thread, const at::RecordFunction &fn, uint32_t epoch, uint32_t *call)
{
    uint64_t key = operator_key(fn);

    if (HAS_INPUTS) {
        Seen *seen = thread->seen_last->next;
        if (UNLIKELY(seen->key != key || seen->epoch != epoch || !is_seen(seen, fn.inputs())))
            return false;
        thread->seen_last = seen;
        *call = seen->call;
        return true;
    }
    const OperatorSlot *slot = operator_slot(thread, key);
    *call = slot->call;
    return LIKELY(slot->key == key && slot->epoch == epoch);
}

/* From now on a call like this one has this id. `name`: of name_of(). */
NOINLINE void learn_call(Thread *thread, const at::RecordFunction &fn, uint32_t epoch,
                         uint32_t call, const Name &name, bool has_inputs);

} // namespace snd_torch

#endif
