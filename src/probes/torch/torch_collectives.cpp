/* SPDX-License-Identifier: Apache-2.0 */
/* probes/torch/torch_collectives.cpp - see torch_collectives.h. */
#include "probes/torch/torch_collectives.h"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/util.h>
#if __has_include(<torch/csrc/distributed/c10d/ProcessGroup.hpp>)
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#define SND_HAS_GROUPS 1
#endif

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "probes/torch/torch_arguments.h"
#include "probes/torch/torch_inputs.h"

namespace snd_torch
{

namespace
{

using Members = std::map<std::string, std::string>; /* sorted: equal ones have equal texts */

/* What a collective is, from its call to the thread that carries it out. */
struct Carried : public c10::DebugInfoBase {
    uint32_t epoch, text;
    int64_t  sequence;
};

/*
 * Work that a call hands to another thread takes torch's thread-local information with it, and so
 * this. A kind that torch itself uses in its tests alone.
 */
inline c10::DebugInfoKind carried_kind()
{
    return c10::DebugInfoKind::TEST_INFO_2;
}

struct Call : public at::ObserverContext {
    explicit Call(std::shared_ptr<Carried> carried) : guard_(carried_kind(), std::move(carried))
    {
    }

  private:
    c10::DebugInfoGuard guard_; /* until the call ends, on the thread that called */
};

uint32_t intern_members(const Members &members)
{
    std::string text = "{";

    for (const auto &one : members)
        text += (text.size() > 1 ? ", \"" : "\"") + one.first + "\": " + one.second;
    return members.empty() ? 0 : intern_arguments(text + "}");
}

void write_attributes(uint32_t text, int64_t sequence)
{
    if (text)
        sonde_attr(SONDE_ATTR_COLLECTIVE, text);
    if (text && sequence >= 0)
        sonde_attr(SONDE_ATTR_COLLECTIVE_SEQUENCE, static_cast<uint64_t>(sequence));
}

} // namespace

NOINLINE void note_collective(const at::RecordFunction &fn)
{
    try {
        int64_t sequence = -1;
        Members members;
        for (const auto &one : torch::profiler::impl::saveNcclMeta(fn)) {
            if (one.first == "Seq") /* each time another */
                sequence = strtoll(one.second.c_str(), nullptr, 10);
            else
                members.insert(one);
        }
        write_attributes(intern_members(members), sequence);
    } catch (const std::exception &) {
        /* out of memory: without its sizes */
    }
}

#ifdef SND_HAS_GROUPS

namespace
{

struct Sum {
    int64_t elements = 0;
    int     dtype = -1;
};

void add_tensor(Sum *sum, const at::Tensor &tensor)
{
    if (!has_sizes(tensor))
        return;
    const c10::TensorImpl *impl = tensor.unsafeGetTensorImpl();
    sum->elements += impl->numel();
    sum->dtype = static_cast<int>(c10::typeMetaToScalarType(impl->dtype()));
}

/* A tensor, a list of tensors or a list of such lists. */
void add_value(Sum *sum, const c10::IValue &value)
{
    if (value.isTensor())
        add_tensor(sum, value.toTensor());
    else if (value.isList())
        for (const c10::IValue &element : value.toListRef())
            add_value(sum, element);
}

c10d::ProcessGroup *group_of(const c10::IValue &value)
{
    if (!value.isObject())
        return nullptr;
    c10::intrusive_ptr<c10::ivalue::Object> object = value.toObject();
    if (object->type()->name()->qualifiedName() != "__torch__.torch.classes.c10d.ProcessGroup")
        return nullptr;
    return static_cast<c10d::ProcessGroup *>(object->getSlot(0).toCapsule().get());
}

std::string quote(const std::string &text)
{
    std::string quoted = "\"";

    for (char c : text)
        if (static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\')
            quoted += c;
    return quoted + '"';
}

/* Not every backend numbers its collectives: -1. */
int64_t number_of(c10d::ProcessGroup *group)
{
    try {
        return static_cast<int64_t>(group->getSequenceNumberForGroup() & VALUE_MASK);
    } catch (const std::exception &) {
        return -1;
    }
}

/* The other end of a send or a receive: the first number after the group. */
void add_peer(Members *members, const char *name, c10::ArrayRef<const c10::IValue> rest)
{
    bool is_send = strncmp(name, "send", 4) == 0;

    if ((is_send || strncmp(name, "recv_", 5) == 0) && rest.size() >= 2 && rest[0].isInt())
        (*members)[is_send ? "Dst Rank" : "Src Rank"] = std::to_string(rest[0].toInt());
}

/* Tensors come before the group, what the call fills in before what it takes; or one for both. */
Members describe(const char *name, c10::ArrayRef<const c10::IValue> inputs, size_t place,
                 c10d::ProcessGroup *group)
{
    Members members;
    Sum     out, in;

    if (place > 0)
        add_value(&out, inputs[0]);
    add_value(&in, inputs[place > 1 ? 1 : 0]);
    int dtype = out.dtype >= 0 ? out.dtype : in.dtype;
    members["Collective name"] = quote(name);
    members["In msg nelems"] = std::to_string(in.elements);
    members["Out msg nelems"] = std::to_string(out.elements);
    if (dtype >= 0)
        members["dtype"] = quote(c10::toString(static_cast<c10::ScalarType>(dtype)));
    members["Group size"] = std::to_string(group->getSize());
    members["Rank"] = std::to_string(group->getRank());
    members["Process Group Name"] = quote(group->getGroupName());
    members["Process Group Description"] = quote(group->getGroupDesc());
    add_peer(&members, name, inputs.slice(place + 1));
    return members;
}

} // namespace

NOINLINE std::unique_ptr<at::ObserverContext> note_group_call(const at::RecordFunction &fn,
                                                              uint32_t                  epoch)
{
    try {
        c10::ArrayRef<const c10::IValue> inputs = fn.inputs();
        for (size_t i = 0; i < inputs.size(); i++) {
            c10d::ProcessGroup *group = group_of(inputs[i]);
            if (!group)
                continue;
            auto carried = std::make_shared<Carried>();
            carried->epoch = epoch;
            carried->text =
                intern_members(describe(fn.name() + GROUP_CALL.size(), inputs, i, group));
            carried->sequence = number_of(group);
            write_attributes(carried->text, carried->sequence);
            return std::make_unique<Call>(std::move(carried));
        }
    } catch (const std::exception &) {
        /* out of memory, or a group that is going away: without what it transfers */
    }
    return nullptr;
}

#else

NOINLINE std::unique_ptr<at::ObserverContext> note_group_call(const at::RecordFunction &, uint32_t)
{
    return nullptr;
}

#endif

NOINLINE void note_carried(uint32_t epoch)
{
    auto *carried = static_cast<Carried *>(c10::ThreadLocalDebugInfo::get(carried_kind()));

    if (carried && carried->epoch == epoch)
        write_attributes(carried->text, carried->sequence);
}

} // namespace snd_torch
