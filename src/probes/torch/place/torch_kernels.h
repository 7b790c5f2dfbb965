/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_kernels.h - calls of the C++ kernels that inductor made, as ranges.
 *
 * torch opens no range for such a kernel, so that its time
 * is that of the whole graph. While the probe is on, the name by which generated code calls a kernel
 * has an object of ours, which calls the kernel (sonde/torch/_compiled.py puts it there and takes it
 * away).
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_KERNELS_H
#define SND_PROBES_TORCH_PLACE_TORCH_KERNELS_H

#include "pystack/interpreter/pyframes.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

/* A new reference; NULL with an exception set. */
PyObject *make_kernel(PyObject *object, const char *name);

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
