# SPDX-License-Identifier: Apache-2.0
"""sonde.functions: every Python call of every thread. What cProfile does, and pstats shows.

    >>> with sonde.functions() as calls:
    ...     main()
    >>> calls.print(sort="cumulative", rows=20)      # pstats' table
    >>> calls.print_callers()
    >>> calls.dump_stats("main.prof")                # pstats, snakeviz, gprof2dot open it

A generator is one call however often it is resumed; a coroutine's time is that in which it ran,
and what it awaited is told apart. `c_functions=False` leaves out functions written in C, and is
cheaper. `mode="trace"` keeps every call with its time, for a timeline; the default counts, in
memory that does not grow with the program's run time.
"""
import atexit
import os
import sys
from _thread import allocate_lock

from .. import _python, _record
from ._session import Session, refuse_path

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_MODES = ("aggregate", "trace")

_lock = allocate_lock()
_users = 0
_options = None  # of the probe that is on


def _start(builtins, mode, whole):
    global _users, _options
    with _lock:
        if _users == 0:
            _python.functions_start(_PACKAGE, _LIBRARY, builtins=builtins, traced=mode == "trace",
                                    whole=whole)
            _options = builtins, mode
            _tell("PYTHON_FUNCTIONS", mode)
            _tell("PYTHON_FUNCTIONS_WAY", _python.functions_describe()["way"])
            _tell("PYTHON_FUNCTIONS_BUILTINS", "yes" if builtins else "no")
            _tell("PYTHON_VERSION", sys.version.split()[0])
        elif _options[1] == "timeline":
            raise RuntimeError("sonde: a profile with with_stack=True is recording Python's calls: stop "
                               "it before sonde.functions() begins, or begin with sonde.functions()")
        elif (builtins, mode) != _options:
            import warnings
            warnings.warn("sonde: Python calls are already being recorded with other options, "
                          "which stay in effect", stacklevel=6)
        _users += 1


def _is_traced():
    return _options[1] == "trace"


def start_timeline(module_code, collections):
    """Every call as an event, those under way too, for a torch profile; `collections`: those of
    garbage as well. False if calls are being recorded already, in whatever way."""
    global _users, _options
    with _lock:
        if _users:
            return False
        _python.functions_start(_PACKAGE, _LIBRARY, open_frames=True, module_code=module_code)
        _options = True, "timeline"
        _tell("PYTHON_FUNCTIONS", "timeline")
        _tell("PYTHON_FUNCTIONS_WAY", _python.functions_describe()["way"])
        if collections:
            import gc
            gc.callbacks.append(_python.collection)
        _users = 1
        return True


def stop_timeline():
    import gc
    if _python.collection in gc.callbacks:
        gc.callbacks.remove(_python.collection)
    _stop()


def _stop():
    global _users
    with _lock:
        if _users == 0:  # at the end of the interpreter
            return
        _users -= 1
        if _users == 0:
            _python.functions_stop()
            _tell_what_went_wrong()


def _tell(name, value):
    _record.metadata(_record.METADATA[name], value)


def _tell_what_went_wrong():
    said = _python.functions_describe()
    for key in ("unbalanced", "lost"):
        if said[key]:
            _tell(f"PYTHON_FUNCTIONS_{key.upper()}", str(said[key]))


def _stop_at_exit():
    """At exit: calls that are still open are counted up to here."""
    global _users
    if _users:
        _users = 1
        _stop()


def _forget_in_child():
    """The lock may have been held by a thread that the child does not have."""
    global _lock
    _lock = allocate_lock()


atexit.register(_stop_at_exit)
os.register_at_fork(after_in_child=_forget_in_child)


class functions(Session):
    """A context manager, a decorator, or enable() and disable() as of cProfile.Profile."""

    _kind = "functions"
    _view = "functions"
    _format = "pstats"

    def __new__(cls, c_functions=True, *arguments, **options):
        """Of a function: decorates it."""
        if callable(c_functions) or isinstance(c_functions, (classmethod, staticmethod)):
            return cls._decorate(c_functions)
        return super().__new__(cls)

    def __init__(self, c_functions=True, mode="aggregate", path=None, **options):
        refuse_path("c_functions", "True or False", c_functions)
        if mode not in _MODES:
            raise ValueError(f"sonde: mode is one of {', '.join(_MODES)}, not {mode!r}")
        super().__init__(path, **options)
        self._asked = bool(c_functions), mode
        self._events = False, False, mode == "trace"

    def _attach(self):
        _start(*self._asked, self._whole)
        self._events = False, False, _is_traced()  # as the first session asked, whatever this one asks
        if self._is_numbered() and not _is_traced():
            _python.functions_session(self._number, True)
        elif self._is_numbered() and len(self._part.spans) % 2 == 0:
            self._part.spans.append(self._now())

    def _detach(self):
        _python.functions_session(self._number, False)
        _stop()

    def _own_all(self, number):
        _python.functions_owner(number)

    def _split_counts(self, is_on):
        if not (is_on and _is_traced()):
            _python.functions_split(self._number, is_on)

    def _forgetting(self):
        return _python.functions_forget

    # ------------------------------------------------------------------------ results

    def print(self, sort=None, rows=-1, file=None, **options):
        """pstats' table; `sort`: its keys."""
        super().print(file=file, sort=sort, rows=rows, **options)

    def print_callers(self, sort=None, rows=-1, file=None, **options):
        self.print(sort, rows, file, part="callers", **options)

    def print_callees(self, sort=None, rows=-1, file=None, **options):
        self.print(sort, rows, file, part="callees", **options)

    def stats(self):
        """pstats.Stats, for programs that go on from there."""
        import pstats
        import tempfile
        with tempfile.TemporaryDirectory(prefix="sonde-") as folder:
            path = os.path.join(folder, "calls.prof")
            self.dump_stats(path)
            return pstats.Stats(path)


def start_run(probes, value):
    """`sonde run --functions`: the whole program's calls."""
    session = functions(c_functions="python-only" not in probes,
                        mode="trace" if "timeline" in probes else "aggregate", whole=True)
    session.enable()
    return session
