# SPDX-License-Identifier: Apache-2.0
"""Starts what `sonde run` asks for, in a Python process that was not changed for it.

_autostart/sitecustomize.py calls this before the program's own code. The recording itself is on as soon as
sonde._record is loaded. A probe that cannot be started is reported in one line, and the program runs on
without it.
"""
import atexit
import builtins
import os
import sys

_sessions = {}  # by name, kept for the life of the process
_FIRST = "SONDE_FIRST_PROCESS"
_is_first = False
after_import = None  # has a function called once a module is there; of sitecustomize


def say(text):
    print(f"sonde: {text}", file=sys.stderr, flush=True)


def _attempt(what, function, *arguments):
    """What it returns; None if it fails, which is reported unless `what` is None."""
    try:
        return function(*arguments)
    except ImportError as error:
        import importlib.util
        if importlib.util.find_spec("sonde._python"):
            return _tell(what, error)
        _tell(what, "this Python is %d.%d, and %s" % (*sys.version_info[:2], (
            "the probes were built for another; install sonde for this one too"
            if sys.version_info >= (3, 9) else "sonde needs 3.9 or later")))
    except Exception as error:  # must not reach the program
        _tell(what, error)
    return None


def _tell(what, why):
    if what:
        say(f"{what}: {why}")


# ------------------------------------------------------------------ functions by name

def _roots():
    """Folders of modules. The current one may be gone, and an entry need not be a path."""
    roots = set()
    for folder in list(sys.path):
        try:
            roots.add(os.path.abspath(folder or "."))
        except (OSError, TypeError, ValueError):
            pass
    return roots


class _Watch:
    """Hands the code of named functions to their probes as it is loaded."""

    def __init__(self):
        self.wanted = []  # (option, Name, session)
        self.stand_in = None  # _decorated.Finder, until the program mentions what it stands in for

    def add(self, option, names, session):
        """Their functions that are loaded by and by; those that are loaded the session has already."""
        self.wanted += [(option, name, session) for name in names]

    def begin(self, stand_in):
        from .. import _python
        from ._sources import keep_unfiled
        self.stand_in, self.mentions, self.keep_unfiled = stand_in, _python.mentions, keep_unfiled
        _python.watch_code(self)

    def __call__(self, code):
        if self.stand_in and self.mentions(code, self.stand_in.names):
            sys.meta_path.append(self.stand_in)
            self.stand_in = None
        if not self.wanted:
            return
        roots = _roots()
        for _, name, session in self.wanted:
            for found in name.codes(code, roots):
                session.add_code(found)
                self.keep_unfiled(found)

    def tell(self):
        """At the end: reports names that were not found. What children have is not known here."""
        import resource
        from .. import _recording
        had_children = _recording.forks > 0 or resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0
        who = "the first process of the program" if had_children else "the program"
        for option, name, _ in self.wanted:
            if not name.found:
                say(f"{option}: {who} has no Python function {name.text!r}{name.where()}")


def _start_by_name(watch, start):
    """A probe that takes code objects, with the names of its list. They are looked for only if it could be started."""
    from . import _names
    session, names = start.load()(whole=True), _names.parse(start.value or "")
    for name in names:
        for code in name.loaded(sys.modules):
            session.add_code(code)
    session.enable()
    watch.add(f"--{start.name}", names, session)
    return session


def _start_named(watch, starts, first):
    """--lines and --line-memory."""
    started = []
    for start in starts:
        session = _attempt(f"--{start.name} is not recorded", _start_by_name, watch, start)
        if session is not None:
            _sessions[start.name] = session
            started.append(session)
    if watch.wanted and first:
        atexit.register(watch.tell)
    return started


def start_decorator(starts, first):
    """The probes that take functions by name; and `@profile`, wherever the program has it from."""
    watch = _Watch()
    sessions = _start_named(watch, starts, first)
    if sessions:
        from . import _decorated  # needs the recorder, which a package of another Python need not have for this one
        builtins.profile = profile = _decorated.Profile(sessions)
        for package in _decorated.PEERS:
            after_import(package, lambda module: _decorated.take_over(module, profile))
        _attempt("functions are not found by name", watch.begin, _decorated.Finder(profile))


# ---------------------------------------------------------------------------- the rest

def _run_setup():
    """kernprof's -s: a file to be run before the program, in its first process only."""
    path = os.environ.pop("SONDE_SETUP", None)
    if path:
        import runpy
        runpy.run_path(path, run_name="__main__")


def _allow_fork():
    from .. import _recording  # not in a Python that has no package of ours
    _recording.allow_fork()


def _watch_children():
    from .. import _python
    _python.watch_children()


def before(starts, after):
    """What must be ready when the program's code is loaded. `starts`, `after`: as sitecustomize has them."""
    global _is_first, after_import
    after_import = after
    first = _is_first = _FIRST not in os.environ
    os.environ[_FIRST] = str(os.getpid())
    _attempt(None, _allow_fork)
    _attempt(None, _watch_children)
    _run_setup()
    named = [start for start in starts if start.when == "named"]
    if named:
        start_decorator(named, first)


def last(starts, probes, tidy):
    """Probes that would see our own start-up: the last thing before the program, after tidy()."""
    ready = []
    for start in starts:
        if start.when != "last":
            continue
        what = f"--{start.name} is not recorded"
        if "unasked" in probes:  # then once is enough, however many processes there will be
            what = f"no {start.records} are taken" if _is_first else None
        ready.append((start, what, _attempt(what, start.load)))
    tidy()
    for start, what, function in ready:
        if function is not None:
            _sessions[start.name] = _attempt(what, function, probes, start.value)
