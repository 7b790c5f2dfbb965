# SPDX-License-Identifier: Apache-2.0
"""sonde.sample: stacks of every thread, at a rate in Hz. What Pyinstrument and py-spy do.

    >>> with sonde.sample(hz=1000) as seen:
    ...     main()
    >>> seen.print()                        # Pyinstrument's tree
    >>> seen.dump_stats("main.speedscope.json")

A thread in C reads the stacks; nothing is added to a call. A process has one sampler: a second
session shares it.
"""
import atexit
import os
import sys
from _thread import allocate_lock

from .. import _python, _record
from . import _start as _start_of_run
from ._session import Session, refuse_path

DEFAULT_HZ = 100
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_lock = allocate_lock()
_lock_pid = os.getpid()
_users = 0
_hz = None
_native = False
_is_told = False
_watch = None  # Thread._set_native_id: what it was, and what it is


def _renew_lock():
    """In a child: a thread that stayed in the parent may have held it."""
    global _lock, _lock_pid
    if _lock_pid != os.getpid():
        _lock, _lock_pid = allocate_lock(), os.getpid()


def _name_threads():
    """The names that Python has for its threads, which the system does not know."""
    threading = sys.modules.get("threading")
    if threading is None:
        _python.name_thread(os.getpid(), "MainThread")
    for thread in list(threading._active.values()) if threading else ():
        number = getattr(thread, "native_id", None)
        if number:
            _python.name_thread(number, thread.name)


def _watch_threads():
    """Threads that begin from now on tell their names: they may end before it does."""
    global _watch
    if "threading" not in sys.modules and _start_of_run.after_import:
        _start_of_run.after_import("threading", lambda module: _users and _watch_threads())
        return
    import threading
    if _watch is None and "_set_native_id" in vars(threading.Thread):
        was = threading.Thread._set_native_id
        _watch = was, _python.naming(was)
        threading.Thread._set_native_id = _watch[1]


def _unwatch_threads():
    global _watch
    threading = sys.modules.get("threading")
    if _watch is not None and vars(threading.Thread).get("_set_native_id") is _watch[1]:
        threading.Thread._set_native_id = _watch[0]
    _watch = None


def _as_list(texts):
    """JSON; the program may not have imported the module, and is not made to."""
    quoted = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return "[" + ", ".join(f'"{text}"' for text in quoted) + "]"


def _tell_paths():
    """The paths by which a tree shortens file names, and tells libraries from the program."""
    keys = _record.METADATA
    _record.metadata(keys["PYTHON_SYS_PATH"],
                     _as_list(p for p in sys.path if isinstance(p, str) and p))
    _record.metadata(keys["PYTHON_SYS_PREFIXES"], _as_list(dict.fromkeys(
        [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix])))


def _warn(text):
    import warnings
    warnings.warn(f"sonde: {text}", stacklevel=6)


def _start(hz, native):
    global _users, _hz, _native
    with _lock:
        if _users == 0:
            _python.start_sampling(hz, native)
            _record.metadata(_record.METADATA["PYTHON_SAMPLE_HZ"], f"{hz:g}")
            _tell_paths()
            _hz, _native = hz, native
            _watch_threads()
            _name_threads()
        elif hz != _hz:
            _warn(f"this process is already being sampled at {_hz:g} Hz; hz={hz:g} is ignored")
        elif native and not _native:
            _warn("this process is already being sampled without native frames; native=True is ignored")
        _users += 1


def _stop():
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _unwatch_threads()
            _name_threads()
            _tell_paths()  # the script's own folder came after the start
            _python.stop_sampling()


def _stop_at_exit():
    """The threads' names, and the last tenth of a second. Called again if Ctrl-C comes between."""
    global _users
    _renew_lock()  # a child of C's fork() has not run Python's after-fork hooks
    with _lock:
        if _users > 0:
            _unwatch_threads()
            _name_threads()
            _tell_paths()
            _python.stop_sampling()  # nothing, if it was stopped before
            _users = 0


def _finish_child():
    """The end of multiprocessing's child, which os._exit() follows: all is written by then."""
    global _users
    with _lock:
        if _users > 0:
            _name_threads()
            _python.stop_sampling()
            import threading
            if any(not thread.daemon and thread is not threading.main_thread()
                   for thread in threading.enumerate()):
                _python.start_sampling(_hz, _native)  # they are waited for
            else:
                _users = 0


def _finish_last(finish):
    """Called by multiprocessing in a child that has just begun, and has forgotten all finalizers."""
    sys.modules["multiprocessing.util"].Finalize(None, finish, exitpriority=-sys.maxsize)


def _tell_multiprocessing():
    """If the program has it: what it forks ends without atexit."""
    global _is_told
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _is_told:
        util.register_after_fork(_finish_child, _finish_last)
        _is_told = True  # in its own children, too


def _in_child():
    """The sampler is the child's own already (C's doing, as for children of C's fork())."""
    global _users
    _renew_lock()
    if _users == 0:
        return
    if _python.is_sampling():
        threading = sys.modules.get("threading")
        _python.name_thread(os.getpid(), threading.current_thread().name if threading else "MainThread", True)
        _tell_multiprocessing()
    else:  # it could not be started, and has reported why
        _users = 0
        _unwatch_threads()


def _leave_out(*functions):
    """Whoever is in them starts or stops us, and does nothing for the program: no sample has them."""
    _python.own_codes([function.__code__ for function in functions])


_leave_out(Session.enable, Session.disable, Session.start, Session.stop, Session.__enter__, Session.__exit__,
           _stop_at_exit, _finish_child, _finish_last, _in_child)
os.register_at_fork(after_in_child=_in_child)
atexit.register(_python.call_to_the_end, _stop_at_exit)


class sample(Session):
    """A context manager and decorator: samples all threads `hz` times a second.

    `native`: of threads that run, with the functions of C libraries between the Python frames.
    """

    _kind = "sample"
    _view = "samples"
    _format = "speedscope"
    _events = True, False, False

    def __new__(cls, hz=DEFAULT_HZ, *arguments, **options):
        """Of a function: decorates it."""
        if callable(hz) or isinstance(hz, (classmethod, staticmethod)):
            return cls._decorate(hz)
        return super().__new__(cls)

    def __init__(self, hz=DEFAULT_HZ, path=None, native=False, **options):
        refuse_path("hz", "a number", hz)
        if not 0.01 <= hz <= 20000:
            raise ValueError(f"sonde: hz must be 0.01..20000, got {hz!r}")
        super().__init__(path, **options)
        self.hz = hz
        self.native = native

    def _attach(self):
        _start(self.hz, self.native)

    def _detach(self):
        if _users > 0:
            _stop()

    def _now(self):
        return _python.flush_sampling()

    def _settle(self):
        if self._depth > 0:
            _python.flush_sampling()

    def __repr__(self):
        native = ", native=True" if self.native else ""
        return f"sonde.sample(hz={self.hz!r}{native})"


def start_run(probes, value):
    """`sonde run --sample`: samples the whole program; `value` is the rate, or None."""
    session = sample(**({"hz": int(value)} if value else {}), native="native" in probes, whole=True)
    frame, codes = sys._getframe(), []
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):  # up to where Python's own start called us
        codes.append(frame.f_code)
        if "arrived" in frame.f_globals:  # what starts a probe when torch is imported, and may have to build it first
            codes.append(frame.f_globals["arrived"].__code__)
        frame = frame.f_back
    _python.own_codes(codes)
    session.enable()
    return session
