/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_arguments.cpp - see torch_arguments.h. */
#include "probes/torch/torch_arguments.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "probes/torch/torch_inputs.h"

namespace snd_torch
{

namespace
{

/*
 * Appends a number as torch prints it. Not by torch's operator<<: if the C++ library is linked
 * statically into this file, our streams are not compatible with torch's. `whole`: the suffix of a
 * number without a fraction.
 */
inline void add_number(std::string *text, double number, const char *whole)
{
    char digits[40];

    if (std::isfinite(number) && std::fabs(number) < 1e10 && std::trunc(number) == number)
        snprintf(digits, sizeof digits, "%.0f%s", number, whole);
    else
        snprintf(digits, sizeof digits, "%.17g", number);
    for (char *at = digits; *at; at++)
        *text += *at == ',' ? '.' : *at; /* the program's locale may use a comma, torch does not */
}

} // namespace

uint32_t intern_arguments(const std::string &text)
{
    if (argument_bytes.fetch_add(text.size()) <= ARGUMENT_BYTES_MAX)
        return sonde_intern(text.data(), text.size());
    std::lock_guard<std::mutex> guard(shared);
    uint64_t                   *dropped = sonde_tally(SONDE_TALLY_ARGUMENTS, 0, 0, 1);
    if (dropped)
        ++*dropped;
    return 0;
}

namespace
{

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

void describe_inputs(const at::RecordFunction &fn, struct sonde_op_call *call)
{
    if (!fn.inputs().empty()) {
        Inputs inputs(fn.inputs());
        call->shapes = inputs.shapes();
        call->strides = inputs.strides();
        call->arguments = inputs.arguments();
    }
    Keywords keywords = fn.kwinputs();
    if (!keywords.empty())
        call->keywords = KeywordText(keywords).id();
}

} // namespace snd_torch
