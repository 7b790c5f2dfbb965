/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/place/torch_modulewalk.h - the modules of a model: their paths, classes and parameters.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_TORCH_PLACE_TORCH_MODULEWALK_H
#define SND_PROBES_TORCH_PLACE_TORCH_MODULEWALK_H

#include <string>
#include <utility>
#include <vector>

#include "pystack/interpreter/pyframes.h"

namespace snd_torch
{

#ifndef SND_PYFRAMES_MISSING

/* A type's own name. Its text lives as long as the type, which the instance keeps. */
const char *class_name(PyObject *object);

/*
 * A string object as UTF-8, without the interpreter lock: Python itself would store the result in
 * it.
 */
std::string text_of(PyObject *object);

struct ModuleNotes {
    std::vector<std::pair<const void *, std::string>> paths;
    std::vector<std::pair<std::string, std::string>>  notes; /* metadata: key, value */
};
/* All modules below `root` and itself. Call it with the interpreter lock. */
ModuleNotes walk_modules(PyObject *root);

#endif /* SND_PYFRAMES_MISSING */

} // namespace snd_torch

#endif
