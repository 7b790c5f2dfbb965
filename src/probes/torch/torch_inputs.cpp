/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_inputs.cpp - see torch_inputs.h. */
#include "probes/torch/torch_inputs.h"

namespace snd_torch
{

namespace
{

enum : uint64_t { IN_TENSOR = 1, IN_NONE, IN_LIST, IN_SCALAR };

/*
 * Each input is hashed separately, with its position as the seed, and the hashes are added: so the
 * processor can hash several in parallel. The common case makes no call: FLATTEN inlines torch's
 * small functions, which the compiler would call otherwise.
 */
constexpr uint64_t PLACE = 0x9E3779B97F4A7C15ull, INTEGER = 0xA0761D6478BD642Full,
                   BOOLEAN = 0x8EBC6AF09C88C6E3ull, DOUBLE = 0x589965CC75374CC3ull;

NOINLINE uint64_t hash_rare_tensor(const at::Tensor &tensor, uint64_t seed)
{
    if (!has_sizes(tensor))
        return fold(seed, IN_NONE);
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    uint64_t               dtype = static_cast<uint8_t>(c10::typeMetaToScalarType(impl->dtype()));
    uint64_t               hash = fold(seed ^
                                           (IN_TENSOR | dtype << 8 | static_cast<uint64_t>(impl->layout()) << 16 |
                              static_cast<uint64_t>(impl->sizes().size()) << 32),
                                       ODD);
    for (size_t i = 0; i < impl->sizes().size(); i++) {
        uint64_t stride = impl->layout() == c10::kStrided
                              ? static_cast<uint64_t>(impl->strides()[i])
                              : 0;
        hash = fold(hash ^ static_cast<uint64_t>(impl->sizes()[i]), ODD ^ stride);
    }
    return hash;
}

INLINE uint64_t hash_tensor(const at::Tensor &tensor, uint64_t seed)
{
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();

    if (UNLIKELY(!has_sizes(tensor) || impl->layout() != c10::kStrided))
        return hash_rare_tensor(tensor, seed);
    c10::IntArrayRef sizes = impl->sizes();
    const int64_t   *strides = impl->strides().data();
    uint64_t         dtype = static_cast<uint8_t>(c10::typeMetaToScalarType(impl->dtype()));
    uint64_t         hash =
        fold(seed ^ (IN_TENSOR | dtype << 8 | static_cast<uint64_t>(sizes.size()) << 32), ODD);
    for (size_t i = 0; i < sizes.size(); i++)
        hash = fold(hash ^ static_cast<uint64_t>(sizes[i]),
                    ODD ^ static_cast<uint64_t>(strides[i]));
    return hash;
}

NOINLINE uint64_t hash_rare_scalar(const c10::IValue &value, uint64_t seed)
{
    uint64_t words[2] = { 0, 0 };

    if (value.isComplexDouble()) {
        c10::complex<double> number = value.toComplexDouble();
        memcpy(words, &number, sizeof number);
        return fold(seed ^ words[0], words[1] ^ 0xEB44ACCAB455D165ull);
    }
    return fold(seed ^ IN_SCALAR, 0x1D8E4E27C47D124Full); /* symbolic: it has no value yet */
}

INLINE uint64_t hash_scalar(const c10::IValue &value, uint64_t seed)
{
    if (value.isInt())
        return fold(seed ^ static_cast<uint64_t>(value.toInt()), INTEGER);
    if (value.isBool())
        return fold(seed + value.toBool(), BOOLEAN);
    if (value.isDouble()) {
        double   number = value.toDouble();
        uint64_t word;
        memcpy(&word, &number, sizeof word);
        return fold(seed ^ word, DOUBLE);
    }
    return hash_rare_scalar(value, seed);
}

INLINE uint64_t hash_list(c10::ArrayRef<c10::IValue> list, uint64_t seed)
{
    bool     numbers = is_shown(list);
    uint64_t hash = fold(seed ^ (IN_LIST | static_cast<uint64_t>(list.size()) << 32), ODD);

    for (const c10::IValue &element : list) {
        if (element.isTensor())
            hash = hash_tensor(element.toTensor(), hash);
        else if (numbers)
            hash = hash_scalar(element, hash);
        else
            hash = fold(hash ^ IN_NONE, ODD);
    }
    return hash;
}

} // namespace

FLATTEN NOINLINE uint64_t hash_inputs(c10::ArrayRef<const c10::IValue> inputs, uint64_t seed)
{
    uint64_t hash = seed + inputs.size(), place = 0;

    for (const c10::IValue &value : inputs) {
        place += PLACE;
        if (value.isTensor())
            hash += hash_tensor(value.toTensor(), place);
        else if (value.isNone())
            hash += place;
        else if (value.isList())
            hash += hash_list(value.toListRef(), place);
        else if (value.isScalar())
            hash += hash_scalar(value, place);
        else
            hash += place;
    }
    return hash;
}

namespace
{

/* Of a text, a number or a list of these; of anything else, that of null. */
inline uint64_t hash_value(const c10::IValue &value)
{
    if (value.isString())
        return hash_text(value.toStringRef().data(), value.toStringRef().size(), IN_LIST);
    if (value.isScalar())
        return hash_scalar(value, IN_SCALAR);
    if (!value.isList())
        return IN_NONE;
    uint64_t hash = IN_LIST;
    for (const c10::IValue &element : value.toListRef())
        hash = stir(hash, hash_value(element));
    return hash;
}

} // namespace

NOINLINE uint64_t hash_keywords(const at::RecordFunction &fn)
{
    Keywords keywords = fn.kwinputs();
    uint64_t hash = 0;

    for (const auto &one : keywords)
        hash += stir(hash_text(one.first.data(), one.first.size(), ODD + one.first.size()),
                     hash_value(one.second));
    return hash;
}

} // namespace snd_torch
