/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/torch_inputs.h - hashes of an operator's inputs and keyword arguments.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_INPUTS_H
#define SND_PROBES_TORCH_INPUTS_H

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>

#include "probes/torch/torch_thread.h"

namespace snd_torch
{

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
 * `seed` includes the operator, which determines the types of its lists: the first element is
 * enough to distinguish them. (Getting the type of a list takes longer than hashing it.)
 */
NOINLINE uint64_t hash_inputs(c10::ArrayRef<const c10::IValue> inputs, uint64_t seed);

/* -------------------------------------------------------- keyword arguments */

using Keywords = std::unordered_map<std::string, c10::IValue>;

/* Independent of their order. torch hands out a copy of them. */
NOINLINE uint64_t hash_keywords(const at::RecordFunction &fn);

} // namespace snd_torch

#endif
