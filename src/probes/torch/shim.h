/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/shim.h - PyTorch's operators, turned into marks of <sonde/record.h>.
 *
 * The one part of sonde in C++, since torch has no C interface; this header is its C interface. It
 * is compiled against the torch that is installed (python/sonde/torch/_probe.py) and opened by
 * sonde._record. It only observes: no tensor is kept alive (code is, until it stops: frames are
 * known by its address), and after stop nothing of it is left in torch but who hears of removed
 * operators.
 *
 * What is recorded (attributes: format/attrs.def)
 *   each operator, user range, backward function, TorchScript function: name, begin, end, of
 *   every thread; SCOPE (torch's number + 1) unless it is an ordinary operator; SEQUENCE if it
 *   has one; FWD_THREAD of a backward function, as at::RecordFunction numbers threads; ASYNC of a
 *   collective and its like; RECORD_FUNCTION, its id, if someone asked torch for ids; KEY of a
 *   range which may end on another thread.
 *   SHAPES    inputs in the range itself; KEYWORDS of a user range; STRIDES, absent if every tensor
 *             is row-major; ARGUMENTS, the JSON list that torch calls "Concrete Inputs", absent if
 *             all are "".
 *   MEMORY    alloc and free of every thread, CPU and CUDA; a free of CPU memory has no size.
 *   STACKS    STACK: Python frames. A module's own call is the frame "nn.Module: Class_n". Where Python's calls are
 *             events, the functions in C that are open too, which are frames without a file.
 *   MODULES   MODULE: "Net.layer1.0.conv", the class of the outermost module and the names on
 *             the way in. Metadata "module Net.layer1.0.conv": its class and parameters, as JSON.
 *             MODULE_CALL and MODULE_RETURN where a module's call begins and ends. In compiled code
 *             COMPILED, by what the compiler said of its kernels; its C++ kernels are ranges.
 *   OVERLOADS OVERLOAD of each operator that has one.
 *   COLLECTIVES, SHAPES   COLLECTIVE and COLLECTIVE_SEQUENCE of each call of a process group, and of the
 *             asynchronous range of its work.
 * And as metadata of each trace file: "torch.thread TID", torch's number of an OS thread;
 * "torch.probe", what is on and how; the notes.
 *
 * Layer:   probes (sees <sonde/record.h> alone).
 * Threads: start and stop by any thread, one at a time, holding the interpreter lock if the
 *          options have Python objects; torch calls the rest.
 */
#ifndef SND_PROBES_TORCH_SHIM_H
#define SND_PROBES_TORCH_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "pystack/interpreter/c_calls.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SONDE_TORCH_API __attribute__((visibility("default")))
#else
#define SONDE_TORCH_API
#endif

enum sonde_torch_flag {
    SONDE_TORCH_SHAPES = 1,
    SONDE_TORCH_MEMORY = 2,
    SONDE_TORCH_STACKS = 4,
    SONDE_TORCH_MODULES = 8,
    SONDE_TORCH_OVERLOADS = 16,
    SONDE_TORCH_WRAP_ALLOCATOR =
        32,                 /* MEMORY by a wrapped allocator, even if calls can be redirected */
    SONDE_TORCH_EMPTY = 64, /* callbacks that do nothing: what torch's own part costs */
    SONDE_TORCH_OPEN_FRAMES =
        128, /* STACKS: frames that are open now have the line that they are in, as torch's */
    SONDE_TORCH_COLLECTIVES = 256, /* what calls of process groups transfer: inputs are looked at */
};

struct sonde_torch_options {
    size_t   struct_size; /* sizeof(struct sonde_torch_options) */
    uint32_t flags;
    void    *module_function; /* torch.nn.Module.__call__, a PyFunctionObject, or NULL. Keeps it */
    const char *const *notes; /* key, value, .., NULL: metadata of each trace file. Copied */
    /* STACKS: functions in C that are between the frames, and innermost. Kept; NULL: not known */
    const struct snd_c_calls *c_calls;
};

/* 0; or -1 with one line in sonde_torch_error(). Started twice: the second one's options hold. */
SONDE_TORCH_API int sonde_torch_start(const struct sonde_torch_options *options);

/*
 * There is a process group: from now on COLLECTIVES. Not before, since torch then hands over the inputs of every operator,
 * which takes it time.
 */
SONDE_TORCH_API void sonde_torch_collectives(void);

/* Leaves torch as it was found. Ranges that are open then are not ended. */
SONDE_TORCH_API void sonde_torch_stop(void);

/* Why the latest start failed, or "". */
SONDE_TORCH_API const char *sonde_torch_error(void);

/* What is recorded and how, as JSON; "missing" lists what was requested and is not available. */
SONDE_TORCH_API const char *sonde_torch_describe(void);

/* Lines of generated code that call a kernel, and its module: see torch_compiledcode.h. */
struct sonde_torch_line {
    int         first, last;
    const char *within, *alone;
};

/* `code`: a PyCodeObject. Keeps it; copies the lines. Needs the interpreter lock, as the next. */
SONDE_TORCH_API void sonde_torch_compiled(void *code, int is_backward,
                                          const struct sonde_torch_line *lines, size_t count);

/*
 * A Python object that is called as `kernel` is, and is a range with that name while the probe is on.
 * Owns: the caller, a new reference. NULL: with an exception, or where frames cannot be read.
 */
SONDE_TORCH_API void *sonde_torch_kernel(void *kernel, const char *name);

#ifdef __cplusplus
}
#endif
#endif
