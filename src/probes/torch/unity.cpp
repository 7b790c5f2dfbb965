/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/unity.cpp - all of the probe in one go, as it is built for a torch.
 *
 * torch's headers take a third of the time that all of it takes, and each file by itself would read them
 * again; and what runs for each operator is inlined across the files. Each is a translation unit of its own
 * all the same: tests/wheel/test_units.py compiles them alone.
 */
#include "probes/torch/shim.cpp"
#include "probes/torch/torch_arguments.cpp"
#include "probes/torch/torch_calls.cpp"
#include "probes/torch/torch_collectives.cpp"
#include "probes/torch/place/torch_compiledcode.cpp"
#include "probes/torch/torch_hooks.cpp"
#include "probes/torch/torch_inputs.cpp"
#include "probes/torch/place/torch_kernels.cpp"
#include "probes/torch/place/torch_modulecalls.cpp"
#include "probes/torch/place/torch_modules.cpp"
#include "probes/torch/place/torch_modulewalk.cpp"
#include "probes/torch/torch_names.cpp"
#include "probes/torch/torch_operators.cpp"
#include "probes/torch/place/torch_places.cpp"
#include "probes/torch/place/torch_scripted.cpp"
#include "probes/torch/torch_thread.cpp"
