/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_inputs.h - operators' names and inputs, looked up by hash and told to the
 * recorder once.
 *
 * A part of shim.cpp, which includes it once.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_INPUTS_H
#define SND_PROBES_TORCH_INPUTS_H

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "probes/torch/torch_thread.h"

namespace
{

/* -------------------------------------------------------------------- names */

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
    uint32_t id; /* the same for the same text, wherever it is; 0: no room for more names */
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
 * Operators keep their names at one address; ranges with a name of their own (scope other
 * than FUNCTION, a short one inside the RecordFunction, torch.compile's) have it wherever the
 * heap is free: the address finds the slot, but only the text tells which name it is.
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

/* ------------------------------------------------------------------- inputs */

enum : uint64_t { IN_TENSOR = 1, IN_NONE, IN_LIST, IN_SCALAR };

constexpr size_t SCALARS_SHOWN = 30; /* torch leaves longer lists of numbers out */

inline bool has_sizes(const at::Tensor &tensor)
{
    return tensor.defined() && !tensor.is_nested() &&
           !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

inline bool is_shown(c10::ArrayRef<c10::IValue> list)
{
    return list.empty() || (list[0].isScalar() && list.size() <= SCALARS_SHOWN);
}

/*
 * Each input is hashed by itself, with its position as the seed, and the hashes are added: so the processor can
 * hash several in parallel. The common case makes no call: FLATTEN inlines torch's small functions, which the
 * compiler would call otherwise.
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

/*
 * `seed` holds which operator it is: what kind of lists it takes is then known, and the first
 * element tells the rest. (To ask a list for its type takes longer than to hash it.)
 */
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

/* -------------------------------------------------------- keyword arguments */

using Keywords = std::unordered_map<std::string, c10::IValue>;

/* Of a text, a number or a list of these; other things are null. */
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

/* Independent of their order. torch hands out a copy of them. */
NOINLINE uint64_t hash_keywords(const at::RecordFunction &fn)
{
    Keywords keywords = fn.kwinputs();
    uint64_t hash = 0;

    for (const auto &one : keywords)
        hash += stir(hash_text(one.first.data(), one.first.size(), ODD + one.first.size()),
                     hash_value(one.second));
    return hash;
}

/*
 * A number as torch prints it. Not by its own operator<<: where the C++ library is linked
 * statically into this file, a stream of ours is not one of torch's. `whole`: what follows the
 * digits of one without a fraction.
 */
inline void add_number(std::string *text, double number, const char *whole)
{
    char digits[40];

    if (std::isfinite(number) && std::fabs(number) < 1e10 && std::trunc(number) == number)
        snprintf(digits, sizeof digits, "%.0f%s", number, whole);
    else
        snprintf(digits, sizeof digits, "%.17g", number);
    for (char *at = digits; *at; at++)
        *text += *at == ',' ? '.' : *at; /* the program's locale is not torch's */
}

/*
 * The id of a text of arguments; 0 where there were too many. Numbers may change with each call:
 * the tables of a trace are for more than these. The trace itself counts those that it does not
 * have.
 */
inline uint32_t intern_arguments(const std::string &text)
{
    if (argument_bytes.fetch_add(text.size()) <= ARGUMENT_BYTES_MAX)
        return sonde_intern(text.data(), text.size());
    std::lock_guard<std::mutex> guard(shared);
    uint64_t                   *dropped = sonde_tally(SONDE_TALLY_ARGUMENTS, 0, 0, 1);
    if (dropped)
        ++*dropped;
    return 0;
}

/* Builds the JSON object of keyword arguments. */
class KeywordText
{
  public:
    explicit KeywordText(const Keywords &keywords)
    {
        for (const auto &one : keywords) {
            text_ += text_.empty() ? "{" : ", ";
            add_string(one.first);
            text_ += ": ";
            add(one.second);
        }
        text_ += '}';
    }

    uint32_t id() const
    {
        return intern_arguments(text_);
    }

  private:
    std::string text_;

    void add_string(const std::string &string)
    {
        char escape[8];

        text_ += '"';
        for (char c : string) {
            if (c == '"' || c == '\\') {
                text_ += '\\';
                text_ += c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                snprintf(escape, sizeof escape, "\\u%04x", c);
                text_ += escape;
            } else {
                text_ += c;
            }
        }
        text_ += '"';
    }

    void add(const c10::IValue &value)
    {
        if (value.isString()) {
            add_string(value.toStringRef());
        } else if (value.isInt()) {
            text_ += std::to_string(value.toInt());
        } else if (value.isBool()) {
            text_ += value.toBool() ? "true" : "false";
        } else if (value.isDouble() && std::isfinite(value.toDouble())) {
            add_number(&text_, value.toDouble(), ".0");
        } else if (value.isList()) {
            const char *before = "[";
            if (value.toListRef().empty())
                text_ += before;
            for (const c10::IValue &element : value.toListRef()) {
                text_ += before;
                add(element);
                before = ", ";
            }
            text_ += ']';
        } else {
            text_ += "null";
        }
    }
};

/* Interns an operator's inputs, once for each distinct set. */
class Inputs
{
  public:
    explicit Inputs(c10::ArrayRef<const c10::IValue> inputs)
    {
        text_ = "[";
        for (const c10::IValue &value : inputs) {
            if (text_.size() > 1)
                text_ += ", ";
            text_ += '"';
            add(value);
            text_ += '"';
        }
        text_ += ']';
    }

    uint32_t shapes() const
    {
        return intern(&sizes_);
    }
    uint32_t strides() const
    {
        return is_row_major_ ? 0 : intern(&strides_);
    }
    uint32_t arguments() const
    {
        return has_arguments_ ? intern_arguments(text_) : 0;
    }

  private:
    static constexpr size_t SHAPES_BYTES_MAX = 4096; /* of sonde_intern_shapes() */
    static constexpr size_t LIST_SHOWN = 30;         /* torch prints no longer ones */

    struct Item {
        sonde_tensor_kind    kind;
        unsigned             dtype;
        std::vector<int64_t> dims;
        uint32_t             count; /* of a list's elements */
    };
    std::vector<Item> sizes_, strides_;
    std::string       text_;
    bool              is_row_major_ = true, has_arguments_ = false;

    /* Lists with their first `most` elements; false: more than the recorder takes. */
    static bool gather(const std::vector<Item> &items, size_t most, std::vector<sonde_tensor> *out)
    {
        size_t bytes = 8;

        out->clear();
        for (size_t i = 0; i < items.size(); i++) {
            const Item &item = items[i];
            bool        is_list = item.kind == SONDE_ARG_LIST;
            size_t      kept = std::min<size_t>(item.count, most);
            out->push_back({ item.kind, static_cast<sonde_dtype>(item.dtype),
                             static_cast<uint32_t>(is_list ? kept : item.dims.size()),
                             item.dims.data() });
            bytes += 8 + 8 * item.dims.size();
            if (is_list && kept < item.count) {
                for (size_t k = 1; k <= kept; k++) {
                    const Item &element = items[i + k];
                    out->push_back({ element.kind, static_cast<sonde_dtype>(element.dtype),
                                     static_cast<uint32_t>(element.dims.size()),
                                     element.dims.data() });
                    bytes += 8 + 8 * element.dims.size();
                }
                i += item.count;
            }
        }
        return bytes <= SHAPES_BYTES_MAX;
    }

    static uint32_t intern(const std::vector<Item> *items)
    {
        std::vector<sonde_tensor> tensors;
        size_t                    most = SIZE_MAX;

        while (!gather(*items, most, &tensors) && most > 0)
            most = most > LIST_SHOWN ? LIST_SHOWN : most / 2;
        return tensors.empty() ? 0 : sonde_intern_shapes(tensors.data(), tensors.size());
    }

    void add_plain(sonde_tensor_kind kind, uint32_t count = 0)
    {
        sizes_.push_back({ kind, SONDE_DTYPE_UNKNOWN, {}, count });
        strides_.push_back(sizes_.back());
    }

    void add_tensor(const at::Tensor &tensor)
    {
        if (!has_sizes(tensor))
            return add_plain(SONDE_ARG_NONE);
        const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
        unsigned dtype = static_cast<uint8_t>(c10::typeMetaToScalarType(impl->dtype()));
        sizes_.push_back({ SONDE_ARG_TENSOR, dtype, impl->sizes().vec(), 0 });
        if (impl->layout() != c10::kStrided) {
            is_row_major_ = false;
            strides_.push_back({ SONDE_ARG_NONE, SONDE_DTYPE_UNKNOWN, {}, 0 });
            return;
        }
        strides_.push_back({ SONDE_ARG_TENSOR, dtype, impl->strides().vec(), 0 });
        int64_t expected = 1;
        for (size_t i = impl->sizes().size(); i-- > 0; expected *= impl->sizes()[i])
            is_row_major_ &= impl->strides()[i] == expected;
    }

    void add_text(const c10::IValue &value)
    {
        has_arguments_ = true;
        if (value.isInt()) {
            text_ += std::to_string(value.toInt());
        } else if (value.isBool()) {
            text_ += value.toBool() ? "True" : "False";
        } else if (value.isDouble()) {
            add_number(&text_, value.toDouble(), ".");
        } else if (value.isComplexDouble()) {
            c10::complex<double> number = value.toComplexDouble();
            add_number(&text_, number.real(), ".");
            text_ += number.imag() >= 0 ? '+' : '-';
            add_number(&text_, std::fabs(number.imag()), ".");
            text_ += 'j';
        } /* else symbolic: no value yet */
    }

    void add_list(c10::ArrayRef<c10::IValue> list)
    {
        has_arguments_ = true;
        text_ += '[';
        for (size_t i = 0; i < list.size(); i++) {
            text_ += i ? ", " : "";
            add_text(list[i]);
        }
        text_ += ']';
    }

    void add(const c10::IValue &value)
    {
        if (value.isTensor()) {
            add_tensor(value.toTensor());
        } else if (value.isScalar()) {
            add_plain(SONDE_ARG_SCALAR);
            add_text(value);
        } else if (value.isTensorList()) {
            c10::ArrayRef<c10::IValue> list = value.toListRef();
            add_plain(SONDE_ARG_LIST, static_cast<uint32_t>(list.size()));
            for (const c10::IValue &element : list)
                add_tensor(element.toTensor());
        } else {
            add_plain(SONDE_ARG_NONE);
            if (value.isList() && is_shown(value.toListRef()))
                add_list(value.toListRef());
        }
    }
};

} // namespace

#endif
