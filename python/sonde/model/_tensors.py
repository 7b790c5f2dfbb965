# SPDX-License-Identifier: Apache-2.0
"""sonde.memory_report, sonde.tensor_lines: which tensors hold memory, and which lines allocated it.

Rows are collected here and handed to libsonde in a trace, which sorts, sums and prints.
"""
import functools
import gc
import inspect
import itertools
import json
import os

from .. import _record, _recording, _scratch
from .._core import Trace, copy_trace, cut_report
from ..torch import _operators


_numbers = itertools.count(1)  # of reports in another owner's recording


class _Kept:
    """A trace of ours, in a temporary folder that goes with the object.

    In another owner's recording (`sonde run`, sonde.functions, ..) its facts have a subject, and it is cut
    out of that trace.
    """

    _view = None
    _subject = ""

    def __init__(self):
        self._folder = _scratch.folder_for(self)
        self._path = os.path.join(self._folder, "trace.sonde")

    def _cut(self, spans):
        cut_report(_record.path(), self._path, spans, self._subject)

    def report(self, **options):
        with Trace(self._path) as trace:
            return trace.report(**{"view": self._view, "rows": -1, **options})

    def rows(self):
        """A dict a row; memory in bytes."""
        return json.loads(self.report(format="json"))["rows"]

    def totals(self):
        return json.loads(self.report(format="json"))["totals"]

    def __str__(self):
        return self.report()

    def print(self):
        print(self)

    def save(self, path):
        """Keeps the trace, for `sonde report PATH --view .. `."""
        copy_trace(self._path, path)


# --------------------------------------------------------------------- tensor by tensor

class MemoryReport(_Kept):
    _view = "tensors"

    def __repr__(self):
        return "<sonde.MemoryReport>"


_BY_ROWS = ("crow_indices", "col_indices", "values")
_BY_COLUMNS = ("ccol_indices", "row_indices", "values")
_PARTS = {"torch.sparse_coo": ("_indices", "_values"), "torch.sparse_csr": _BY_ROWS,
          "torch.sparse_bsr": _BY_ROWS, "torch.sparse_csc": _BY_COLUMNS,
          "torch.sparse_bsc": _BY_COLUMNS, "torch.jagged": ("values", "offsets")}


def _size(tensor):
    return tensor.numel() * tensor.element_size()


def _storage(tensor):
    """Address and size of its bytes; 0 for one in several parts, or whose address torch does not give."""
    try:
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:  # NotImplementedError is one
        plain = tensor.detach()
        parts = [getattr(plain, part)() for part in _PARTS.get(str(tensor.layout), ())]
        return 0, sum(map(_size, parts or [plain]))


def _shape(tensor):
    """-1 where rows differ in length."""
    try:
        return [side if isinstance(side, int) else -1 for side in tensor.shape]
    except RuntimeError:
        return [tensor.size(0)] + [-1] * (tensor.dim() - 1)


def _note(subject, number, name, kind, tensor):
    address, held = _storage(tensor)
    _record.fact("tensor", [
        ("name", name), ("kind", kind), ("dtype", str(tensor.dtype).removeprefix("torch.")),
        ("shape", str(_shape(tensor))), ("device", str(tensor.device)), ("bytes", _size(tensor)),
        ("storage", address), ("storage_bytes", held)], subject, number)


def _of_model(model, root):
    for kind, pairs in (("parameter", model.named_parameters(remove_duplicate=False)),
                        ("buffer", model.named_buffers(remove_duplicate=False))):
        for name, tensor in pairs:
            yield f"{root}.{name}", kind, tensor
            if kind == "parameter" and tensor.grad is not None:
                yield f"{root}.{name}.grad", "gradient", tensor.grad


def _of_optimizer(optimizer, names):
    import torch
    kind = type(optimizer).__name__
    for parameter, state in optimizer.state.items():
        name = names.get(id(parameter), "?")
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                yield f"{kind}.{name}.{key}", "optimizer", value


def _of_program(seen):
    """Every other tensor that the collector knows of."""
    import torch
    others = (one for one in gc.get_objects() if issubclass(type(one), torch.Tensor))
    for number, tensor in enumerate(one for one in others if id(one) not in seen):
        yield f"Tensor{number}", "tensor", tensor


def memory_report(model=None, optimizer=None, *, everything=False):
    """What `model` and `optimizer` hold, tensor by tensor: storage that is shared counts once.

    `everything`: also all other tensors of the program that the collector knows of.
    """
    found = []
    if model is not None:
        found += _of_model(model, type(model).__name__)
    if optimizer is not None:
        names = {id(tensor): name for name, kind, tensor in found if kind == "parameter"}
        found += _of_optimizer(optimizer, names)
    if everything:
        found += _of_program({id(tensor) for _, _, tensor in found})
    report = MemoryReport()
    with _recording.lock:
        own = not _recording.is_on() and not _recording.has_owner()
        if own:
            _operators.start(report, report._path, bare=True)
        else:
            report._subject = f"report {next(_numbers)}"
        try:
            for number, row in enumerate(found, 1):
                _note(report._subject, number, *row)
            if not own:
                report._cut([])
        finally:
            if own:
                _operators.stop(report)
    return report


# ------------------------------------------------------------------------- line by line

class tensor_lines(_Kept):
    """Tensor memory by source line of chosen functions, while the block runs.

        with sonde.tensor_lines(Net.forward, train_step) as lines:
            train_step(batch)
        lines.print()

    Memory that an operator allocates counts for the innermost chosen line that called it, until it is
    freed.
    """

    _view = "tensor-lines"

    def __init__(self, *functions):
        super().__init__()
        self._functions = [self._source(one) for one in functions]
        if not functions:
            raise ValueError("sonde.tensor_lines: give at least one function")

    def __repr__(self):
        return "<sonde.tensor_lines>"

    @staticmethod
    def _source(function):
        plain = inspect.unwrap(getattr(function, "__func__", function))
        if not hasattr(plain, "__code__"):
            raise TypeError(f"sonde.tensor_lines: {function!r} is not a Python function")
        try:
            lines, first = inspect.getsourcelines(plain)
        except OSError as error:
            raise ValueError(f"sonde.tensor_lines: no source of {plain.__qualname__}: "
                             f"{error}") from error
        return [("function", plain.__qualname__), ("name", plain.__code__.co_name),
                ("file", plain.__code__.co_filename), ("first", first),
                *(("lines", line.rstrip("\n").expandtabs(4)) for line in lines)]

    def __enter__(self):
        self._began = _record.clock()
        path = _operators.start(self, self._path, memory=True, stacks=True)
        self._of_run, self._is_guest = path is None, path != self._path
        self._subject = f"report {next(_numbers)}" if self._is_guest else ""
        if self._of_run:
            _operators.join_run(memory=True, stacks=True)
        for number, source in enumerate(self._functions, 1):
            _record.fact("lines", source, self._subject, number)
        return self

    def __exit__(self, kind, value, traceback):
        if self._is_guest and _recording.has(self):
            if self._of_run:
                _operators.leave_run()
            self._cut([self._began, _record.clock()])
        _operators.stop(self)

    def __call__(self, function):
        """As a decorator: each call is recorded anew; print() shows the latest."""
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)
        return wrapper
