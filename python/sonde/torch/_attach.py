# SPDX-License-Identifier: Apache-2.0
"""torch's operators in whatever recording is on: the probe (_probe.py) attached and detached."""
import json
import sys

from .. import _python, _record, _recording
from . import _compiled as _generated, _cuda, _distributed
from ._probe import library

_compiled = None  # the switch for compiled code, while it is on
_of_run = None  # the options of `sonde run`, which apply again when another owner detaches


class _CompiledRanges:
    """torch.compile's code opens ranges only if torch reports that a profiler is on.

    torch's own profiler clears that flag when it stops, so we set it again. A program that sees the flag may
    stop the profiler first, as Lightning does: if torch's own is not on, that does nothing.
    """

    def __init__(self):
        import torch.autograd.profiler as profiler
        self.profiler = profiler
        self.autograd = sys.modules["torch.autograd"]
        self.disable = getattr(self.autograd, "_disable_profiler", None)
        self.start = getattr(profiler, "_run_on_profiler_start", None)
        self.stop = getattr(profiler, "_run_on_profiler_stop", None)

    def put_on(self):
        if self.disable:
            self.autograd._disable_profiler = self._disable_if_on
        if self.start and self.stop:
            self.start()
            self.profiler._run_on_profiler_stop = self._stop_and_start

    def _disable_if_on(self):
        try:
            return self.disable()
        except RuntimeError:  # "Can't disable Kineto profiler when it's not running"
            return None

    def _stop_and_start(self):
        self.stop()
        self.start()
        _cuda.again()

    def take_off(self):
        import torch
        if self.disable:
            self.autograd._disable_profiler = self.disable
        if self.start and self.stop:
            self.profiler._run_on_profiler_stop = self.stop
            if not torch._C._autograd._profiler_enabled():
                self.stop()


def _prefixes():
    """What torch cuts off the file names of its stacks."""
    try:
        from torch.profiler.python_tracer import _prefix_regex
        return list(_prefix_regex())
    except ImportError:
        return sorted((path for path in sys.path if path), reverse=True)


def module_code(torch):
    """Of nn.Module.__call__, by which a module's frame is known; its first local is the module."""
    code = getattr(torch.nn.Module.__call__, "__code__", None)
    usable = code is not None and code.co_varnames[:1] == ("self",) and "self" not in code.co_cellvars
    return code if usable else None


def _module_function(torch):
    """nn.Module.__call__ itself, through which every call of a module goes."""
    return torch.nn.Module.__call__ if module_code(torch) is not None else None


def attach(*, shapes=False, memory=False, stacks=False, modules=False, overloads=False, cuda=None,
           kernels=False, more_flags=0, notes=None):
    """Has torch's operators recorded by whatever recording is on, or will be.

    `cuda`: "full" or "light" records GPUs, too (_cuda.LEVELS).
    `kernels`: with modules, C++ kernels of compiled code are ranges, for which torch's own profiler has none.
    """
    global _compiled
    import torch
    flags = (shapes * _record.TORCH_SHAPES | memory * _record.TORCH_MEMORY
             | stacks * _record.TORCH_STACKS | modules * _record.TORCH_MODULES
             | overloads * _record.TORCH_OVERLOADS | more_flags)
    notes, keys = dict(notes or {}), _record.METADATA
    notes[keys["TORCH_VERSION"]] = torch.__version__
    notes[keys["TORCH_OPTIONS"]] = json.dumps({"record_shapes": shapes, "profile_memory": memory,
                                               "with_stack": stacks, "with_modules": modules})
    if stacks:
        notes[keys["PYTHON_PREFIXES"]] = json.dumps(_prefixes())
    share = _compiled is None and not _cuda.torch_records()
    _record.torch_start(library(), flags, _module_function(torch), notes,
                        _python.functions_c_calls() if stacks else None)
    if _compiled is None:
        _compiled = _CompiledRanges()
        _compiled.put_on()
    _generated.record(modules, kernels)
    _distributed.watch()
    if cuda:
        _cuda.start(share, cuda)


def detach():
    """Restores torch's state; under `sonde run`, records what that asked for again."""
    global _compiled
    _cuda.stop()
    if _of_run is not None:
        attach(**_of_run)
        return
    _generated.record(False)
    _distributed.forget()
    _record.torch_stop()
    if _compiled is not None:
        _compiled.take_off()
        _compiled = None


def start(path, *, shapes=False, memory=False, stacks=False, modules=False, overloads=False, cuda=None,
          notes=None, paused=False, **recording):
    """Begins a recording with torch in it; `paused`: which marks nothing until it is resumed. `recording`: options of _recording.begin."""
    library()  # may fail, and takes time: before the file is created
    _recording.begin(path, **recording)
    if paused:  # before operators of other threads can come
        _record.pause()
    try:
        attach(shapes=shapes, memory=memory, stacks=stacks, modules=modules, overloads=overloads,
               cuda=cuda, notes=notes, more_flags=_record.TORCH_OPEN_FRAMES)
    except BaseException:
        _recording.end()
        raise


def stop():
    detach()
    _recording.end()


# -------------------------------------------------------------------------- sonde run

def is_of_run():
    """Whether `sonde run` was asked for operators, so that they are always recorded."""
    return _of_run is not None


def start_run(probes, value):
    """Under `sonde run`: the recording is on as soon as sonde._record is loaded."""
    global _of_run
    options = {name: name in probes
               for name in ("shapes", "memory", "stacks", "modules", "overloads")}
    options["kernels"] = options["modules"]
    attach(**options)
    _of_run = options
