# SPDX-License-Identifier: Apache-2.0
"""What sonde.lines and sonde.line_memory share: choosing functions, decorating them.

A session has functions. They are recorded while it is on (`with`, enable()), or, decorated, from
their first call on until stop(). What is not chosen runs as it always does; before CPython 3.12
that takes a wrapper around a decorated function, so that nothing at all is watched while none of
them runs.
"""
import sys

from .. import _python, _recording
from . import _names, _session
from ._kinds import FunctionType, MethodType, ModuleType

_NEEDS_WATCH = sys.version_info < (3, 12)


def _codes_of(thing):
    """Code objects of a function, of what wraps one, of a class or a module."""
    codes = _names.functions_of(thing)
    if not codes and callable(thing) and not isinstance(thing, (type, ModuleType)):
        codes = _names.functions_of(type(thing).__call__)  # an object that can be called
    return codes


class Chosen(_session.Session):
    _memory = False
    _what = "lines"

    def __init__(self, *functions, path=None, **options):
        super().__init__(path, **options)
        self._codes = {}     # by id: equal code is not the same function
        self._chosen = False
        self._kept = False   # on since a decorated function was called
        self._function = None
        for function in functions:
            self.add_callable(function)
        if len(functions) == 1 and not isinstance(functions[0], (type, ModuleType)):
            import functools  # what decorates is not in programs that are recorded from outside
            from . import _wrapped
            self._function = self.wrap_callable(functions[0])
            functools.update_wrapper(self, functions[0], updated=())
            _wrapped.mark_coroutine(self, functions[0])

    # ------------------------------------------------------------------- choosing

    def _with_inner(self, code):
        """Code objects whose lines are shown as those of `code`."""
        return [code]

    def add_code(self, code):
        """Its lines are recorded; those of functions that it defines are not."""
        with _recording.lock:
            for part in self._with_inner(code):
                if id(part) not in self._codes:
                    self._codes[id(part)] = (part, code)
                    if self._chosen:
                        _python.lines_choose(part, code, self._memory, True, self._own_number())

    def add_callable(self, thing):
        """A function, method, property, partial, class, module, or what wraps one of them.

        Returns the number of functions found; to be given something else is an error.
        """
        codes = _codes_of(thing)
        if not codes and not isinstance(thing, (type, ModuleType)):
            raise TypeError(f"sonde: {self._what} of {thing!r} cannot be recorded: it has no "
                            "Python code; give a function written in Python")
        for code in codes:
            self.add_code(code)
        return len(codes)

    add_function = add_class = add_module = add_callable

    # -------------------------------------------------------------------- on and off

    def _own_number(self):
        return self._number if self._is_numbered() else 0

    def _choose(self, more):
        if self._chosen == more:
            return
        for part, owner in self._codes.values():
            _python.lines_choose(part, owner, self._memory, more, self._own_number())
        self._chosen = more

    def _own_all(self, number):
        _python.lines_owner(self._memory, number)

    def _split_counts(self, is_on):
        for part, owner in self._codes.values():
            _python.lines_split(part, owner, self._memory, self._number, self._chosen)

    def _forgetting(self):
        codes = self._codes

        def forget(number, has):
            for part, _ in codes.values():
                _python.lines_forget(part, number, has)
            return not has  # its functions stay known in the recording
        return forget

    def _attach(self):
        self._choose(True)
        _python.lines_enter()
        _python.lines_announce()

    def _detach(self):
        _python.lines_leave()
        if not self._kept:
            self._choose(False)

    def _keep(self):
        """A decorated function is called for the first time."""
        with _recording.lock:
            if self._kept or self._finished:
                return
            self._begin()
            self._choose(True)
            _python.lines_announce()
            if not _NEEDS_WATCH:
                _python.lines_enter()
            self._kept = True

    def stop(self):
        with _recording.lock:
            if self._kept:
                self._kept = False
                if not _NEEDS_WATCH:
                    _python.lines_leave()
                if self._depth == 0:
                    self._choose(False)
            super().stop()

    enable_by_count = _session.Session.enable
    disable_by_count = _session.Session.disable

    # ------------------------------------------------------------------- decorating

    def __call__(self, *args, **kwargs):
        """lines(f)(...) calls f; a session of no function, or of several, decorates."""
        if self._function is not None:
            return self._function(*args, **kwargs)
        (function,) = args
        self.add_callable(function)
        return self.wrap_callable(function)

    def __get__(self, instance, owner=None):
        """A decorated method is bound as it was."""
        if self._function is None:
            return self
        return self._function.__get__(instance, owner)

    def wrap_callable(self, thing):
        """A replacement of `thing` whose calls are recorded."""
        import functools
        if isinstance(thing, (classmethod, staticmethod)):
            return type(thing)(self.wrap_callable(thing.__func__))
        if isinstance(thing, property):
            return property(*(part and self.wrap_callable(part)
                              for part in (thing.fget, thing.fset, thing.fdel)), thing.__doc__)
        if isinstance(thing, MethodType):
            return MethodType(self.wrap_callable(thing.__func__), thing.__self__)
        if isinstance(thing, (functools.partial, functools.partialmethod)):
            return type(thing)(self.wrap_callable(thing.func), *thing.args, **thing.keywords)
        if isinstance(thing, functools.cached_property):
            wrapped = functools.cached_property(self.wrap_callable(thing.func))
            wrapped.attrname = thing.attrname
            return wrapped
        if isinstance(thing, type):
            return self._wrap_class(thing)
        return _wrap(self, thing)

    def _wrap_class(self, kind):
        for name, part in list(vars(kind).items()):
            if isinstance(part, (FunctionType, classmethod, staticmethod, property)) \
                    and _names.functions_of(part):
                setattr(kind, name, self.wrap_callable(part))
        return kind

    # ------------------------------------------------------------------ running things

    def runctx(self, command, globals, locals):
        """Executes a statement while the session is on."""
        self.enable()
        try:
            exec(command, globals, locals)
        finally:
            self.disable()
        return self

    def run(self, command):
        import __main__
        return self.runctx(command, vars(__main__), vars(__main__))

    def runcall(self, function, *args, **kwargs):
        self.enable()
        try:
            return function(*args, **kwargs)
        finally:
            self.disable()


# ---------------------------------------------------------------------------- wrappers

def _nothing():
    pass


def _wrap(session, function):
    import functools
    from . import _wrapped
    enter = _python.lines_enter if _NEEDS_WATCH else _nothing
    leave = _python.lines_leave if _NEEDS_WATCH else _nothing

    def begin():
        session._keep()
        enter()

    wrapped = _wrapped.wrap_suspended(function, begin, leave)
    if wrapped:
        return wrapped
    if not callable(function):
        raise TypeError(f"sonde: cannot decorate {function!r}: it cannot be called")

    def wrapper(*args, **kwargs):
        if not session._kept:
            session._keep()
        enter()
        try:
            return function(*args, **kwargs)
        finally:
            leave()
    return functools.wraps(function)(wrapper)
