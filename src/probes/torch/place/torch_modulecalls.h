/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_modulecalls.h - calls of modules, recorded as they begin and return.
 *
 * Every call of a module goes through one Python
 * function, nn.Module.__call__. CPython calls a function by a pointer in the function object: while
 * the probe is on, that pointer is ours. Nothing that Python code can look at changes (a hook of
 * torch's would), and TorchDynamo sees the same function with the same code.
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_MODULECALLS_H
#define SND_PROBES_TORCH_PLACE_TORCH_MODULECALLS_H

#include "pystack/interpreter/pyframes.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

/* Call it with the interpreter lock. */
void put_on_module_calls(PyObject *function);

/* Calls that are under way return through ours. */
void take_off_module_calls();

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
