/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_operators.cpp - see torch_operators.h. */
#include "probes/torch/torch_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "probes/torch/torch_collectives.h"

namespace snd_torch
{

std::atomic<size_t>   schema_offset{ 0 };
std::atomic<uint64_t> removals{ 0 };

namespace
{

/* An operator whose address has more is not known by it. */
constexpr unsigned ADDRESS_BITS = 48;
constexpr uint64_t REMOVALS_MAX = (UINT64_C(1) << (64 - ADDRESS_BITS)) - 1;

constexpr int TRIES_MAX = 64; /* to find where a RecordFunction has its schema */

/* Set after so many removals: what is known of operators is then no longer certain. */
std::atomic<bool> is_off{ false };
std::atomic<int>  tries{ 0 };

void note_removal()
{
    uint64_t before = removals.load(), step = UINT64_C(1) << ADDRESS_BITS;

    if (before >> ADDRESS_BITS == REMOVALS_MAX) {
        is_off = true;
        schema_offset = 0;
    } else {
        removals = before + step;
    }
}

/* The dispatcher holds its lock meanwhile. */
class Watch final : public c10::OpRegistrationListener
{
  public:
    void onOperatorRegistered(const c10::OperatorHandle &) override
    {
    }
    void onOperatorDeregistered(const c10::OperatorHandle &) override
    {
        note_removal();
    }
};

} // namespace

void watch_operators()
{
    /* Never taken back: what is known of operators outlives a recording. */
    static auto *watch = new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Watch>()));
    (void)watch;
}

namespace
{

/* Of an operator of the dispatcher, or NULL. */
const c10::FunctionSchema *find_schema(const at::RecordFunction &fn)
{
    auto name = fn.operator_name();
    if (!name)
        return nullptr;
    auto found = c10::Dispatcher::singleton().findSchema(*name);
    return found ? &found->schema() : nullptr;
}

void find_offset(const at::RecordFunction &fn, uint64_t address)
{
    const char *bytes = reinterpret_cast<const char *>(&fn);
    size_t      found = 0, count = 0;

    for (size_t at = WORD; at + WORD <= sizeof fn; at += WORD) {
        if (word_at(bytes + at) == address) {
            found = at;
            count++;
        }
    }
    if (count == 1)
        schema_offset = found;
    else if (++tries >= TRIES_MAX)
        is_off = true;
}

/* Whether its schema is the dispatcher's, so that it can be known by it. */
bool is_certain(Thread *thread, const at::RecordFunction &fn, const NameSlot *slot)
{
    if (is_off.load())
        return false;
    uint64_t *certain = &thread->certain[slot - thread->names];
    uint64_t  removed = removals.load();
    if (schema_offset.load() != 0 && (*certain | 1) == (schema_key(fn) | 1))
        return *certain % 2 == 0; /* an odd one: it was found not to be */
    try {
        uint64_t address = reinterpret_cast<uintptr_t>(find_schema(fn));
        bool     usable = address != 0 && address % 2 == 0 && address >> ADDRESS_BITS == 0;
        if (schema_offset.load() == 0 && usable)
            find_offset(fn, address);
        if (schema_offset.load() == 0)
            return false;
        *certain = schema_key(fn) | (!usable || schema_key(fn) != address + removed);
        return *certain % 2 == 0;
    } catch (const std::exception &) {
        return false; /* out of memory, or the operator is being removed */
    }
}

/* ------------------------------------------------------------------- inputs */

/* Appends words while there is room for them. */
class Words
{
  public:
    explicit Words(Seen *seen) : seen_(seen)
    {
    }

    bool add(uint64_t word)
    {
        if (count_ == SEEN_WORDS)
            return false;
        seen_->words[count_++] = word;
        return true;
    }

    bool add_input(const c10::IValue &value)
    {
        if (value.isTensor())
            return add_tensor(value.toTensor());
        if (value.isNone())
            return add(SEEN_NONE);
        if (value.isInt())
            return add(SEEN_INTEGER) && add(static_cast<uint64_t>(value.toInt()));
        if (value.isBool())
            return add(SEEN_BOOLEAN) && add(value.toBool());
        if (value.isDouble())
            return add(SEEN_DOUBLE) && add(double_word(value));
        if (value.isIntList())
            return add_integers(value.toListRef());
        return is_other(value) && add(SEEN_OTHER);
    }

  private:
    Seen  *seen_;
    size_t count_ = 0;

    /* Not one that Python answers for, or that keeps its sizes elsewhere. */
    bool add_tensor(const at::Tensor &tensor)
    {
        const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
        if (!has_sizes(tensor) || impl->key_set().has(c10::DispatchKey::Python) ||
            impl->layout() != c10::kStrided ||
            impl->sizes().data() != impl->sizes_default().data() ||
            impl->strides().data() != impl->strides_default().data())
            return false;
        size_t count = impl->sizes().size();
        bool fits = count <= SEEN_WORDS && add(seen_head(SEEN_TENSOR, count, dtype_number(impl))) &&
                    add(impl->key_set().raw_repr());
        for (size_t i = 0; i < count && fits; i++)
            fits = add(static_cast<uint64_t>(impl->sizes()[i])) &&
                   add(static_cast<uint64_t>(impl->strides()[i]));
        return fits;
    }

    bool add_integers(c10::ArrayRef<c10::IValue> list)
    {
        bool fits = list.size() <= SEEN_WORDS && add(seen_head(SEEN_INTEGERS, list.size(), 0));
        for (size_t i = 0; i < list.size() && fits; i++)
            fits = list[i].isInt() && add(static_cast<uint64_t>(list[i].toInt()));
        return fits;
    }
};

void learn_inputs(Thread *thread, const at::RecordFunction &fn, uint32_t epoch, uint32_t call)
{
    Seen    *seen = &thread->seen[1 + call % (SEEN_SLOTS - 1)];
    uint64_t key = operator_key(fn);

    if (seen->key != key || seen->epoch != epoch || seen->call != call) {
        Words words(seen);
        seen->key = 0; /* until all of it is there */
        for (const c10::IValue &value : fn.inputs())
            if (!words.add_input(value))
                return;
        seen->count = fn.inputs().size();
        seen->epoch = epoch;
        seen->call = call;
        seen->next = &thread->seen[0];
        seen->key = key;
    }
    thread->seen_last->next = seen;
    thread->seen_last = seen;
}

} // namespace

NOINLINE void learn_call(Thread *thread, const at::RecordFunction &fn, uint32_t epoch,
                         uint32_t call, const Name &name, bool has_inputs)
{
    if (fn.scope() != at::RecordScope::FUNCTION || !name.slot || !name.slot->is_operator ||
        (call & SONDE_LATE_ID) || is_collective(fn, 0) || is_group_call(name.address) ||
        !is_certain(thread, fn, name.slot))
        return;
    if (has_inputs) {
        learn_inputs(thread, fn, epoch, call);
    } else {
        uint64_t key = operator_key(fn);
        *operator_slot(thread, key) = { key, epoch, call };
    }
}

} // namespace snd_torch
