/* SPDX-License-Identifier: Apache-2.0 */
/* The list of views, in the order in which help names them. */
#include "view/view.h"

const struct snd_view snd_views[] = {
    { { "summary", "what ran, how long, what it cost, and where the time went" },
      snd_view_summary,
      true },
    { { "ops", "one row a range name: calls, time, memory, FLOPs (torch.profiler's table)" },
      snd_view_ops,
      false },
    { { "tree", "the call tree, equal paths merged, longest first" }, snd_view_tree, true },
    { { "model", "one row a batch size that sonde model measured: latency, FLOPS, memory" },
      snd_view_model,
      false },
    { { "modules", "one row a module: time forward and backward, FLOPs, parameters, memory" },
      snd_view_modules,
      false },
    { { "depths", "one row a class of modules at each depth: what its modules cost together" },
      snd_view_depths,
      false },
    { { "layers", "one row a layer that sonde layers measured: time, spread, weights, shapes" },
      snd_view_layers,
      false },
    { { "memory", "bytes taken and given back by device, the peak, and who holds it" },
      snd_view_memory,
      false },
    { { "tensors", "one row a tensor of sonde.memory_report: size, storage, what shares it" },
      snd_view_tensors,
      false },
    { { "tensor-lines", "one row a line of sonde.tensor_lines: tensor memory taken and held" },
      snd_view_tensor_lines,
      false },
    { { "threads", "one row a thread: events, ranges, time inside ranges" },
      snd_view_threads,
      false },
    { { "steps", "one row a step: when, how long, and their spread" }, snd_view_steps, false },
    { { "ledger", "what is missing, cut, uncounted or unlinked, and what to do about it" },
      snd_view_ledger,
      false },
};
const size_t snd_view_count = SND_COUNT_OF(snd_views);

const struct sonde_view_info *sonde_view_info(size_t index)
{
    return index < snd_view_count ? &snd_views[index].info : NULL;
}
