/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_modules.h - paths and numbers of modules, by address, as long as they live.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_MODULES_H
#define SND_PROBES_TORCH_PLACE_TORCH_MODULES_H

#include <atomic>
#include <string>
#include <vector>

#include "pystack/interpreter/pyframes.h"
#include "probes/torch/torch_thread.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

/* "Linear_3": the fourth instance of its class that was met, as torch numbers them. */
std::string module_label(Thread *thread, PyObject *module);

/* Counts modules that were freed: whatever is known by address is looked up anew after that. */
extern std::atomic<uint64_t> modules_gone;

/* For frames of the calling thread, which stay alive during the call. */
void keep_known(Thread *thread, const std::vector<snd_pyframe *> &frames,
                const std::vector<PyObject *> &modules);

/* At stop: forgets all addresses. Later entries belong to another epoch. */
void release_known();

/* `chain`: modules whose calls are open, outermost first. */
std::string module_path(Thread *thread, const std::vector<PyObject *> &chain);

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
