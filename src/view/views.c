/* SPDX-License-Identifier: Apache-2.0 */
/* The list of views, in the order in which help names them. */
#include "view/view.h"

const struct snd_view snd_views[] = {
    { { "summary", "what ran, how long, what it cost, and where the time went" },
      snd_view_summary,
      true,
      false },
    { { "ops", "one row a range name: calls, time, memory, FLOPs (torch.profiler's table)" },
      snd_view_ops,
      false,
      false },
    { { "tree", "the call tree, equal paths merged, longest first" }, snd_view_tree, true, false },
    { { "modules", "one row a module: time forward and backward, FLOPs, parameters, memory" },
      snd_view_modules,
      false,
      false },
    { { "functions", "one row a Python function: calls, own and total time (cProfile's table)" },
      snd_view_functions,
      false,
      true },
    { { "lines", "runs and time of each line of the functions asked for (line_profiler's table)" },
      snd_view_lines,
      false,
      true },
    { { "line-memory", "memory by line of the functions asked for (memory_profiler's table)" },
      snd_view_line_memory,
      true,
      false },
    { { "samples", "the call tree that sampled stacks add up to (Pyinstrument's tree)" },
      snd_view_samples,
      true,
      false },
    { { "memory", "bytes taken and given back by device, the peak, and who holds it" },
      snd_view_memory,
      false,
      false },
    { { "threads", "one row a thread: events, ranges, time inside ranges" },
      snd_view_threads,
      false,
      false },
    { { "steps", "one row a step: when, how long, and their spread" },
      snd_view_steps,
      false,
      false },
    { { "ledger", "what is missing, cut, uncounted or unlinked, and what to do about it" },
      snd_view_ledger,
      false,
      false },
};
const size_t snd_view_count = SND_COUNT_OF(snd_views);

const struct sonde_view_info *sonde_view_info(size_t index)
{
    return index < snd_view_count ? &snd_views[index].info : NULL;
}
