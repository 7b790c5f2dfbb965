# SPDX-License-Identifier: Apache-2.0
"""`@profile` in programs that are not changed for sonde.

Under `sonde run` and `python -m sonde` it is a builtin, as kernprof's, and it is what
`from line_profiler import profile` and `from memory_profiler import profile` give, whether those
packages are installed or not. A function so decorated is recorded by what was asked for, line by
line, its bytes, or both, and is returned as it is: without a wrapper.
"""
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery's, which would load much else

from . import _names
from ._kinds import ModuleType

PEERS = ("line_profiler", "memory_profiler")


class Profile:
    """The decorator. `sessions`: of the probes that take code objects.

    `on_add` is called with a list of what was decorated.
    """

    def __init__(self, sessions, on_add=None):
        self._sessions = sessions
        self._on_add = on_add

    def __call__(self, function=None, **options):
        if function is None:  # @profile(precision=4)
            return self
        self.add_function(function)
        return function

    def add_function(self, function):
        for code in _names.functions_of(function):
            for session in self._sessions:
                session.add_code(code)
        if self._on_add:
            self._on_add([function])

    add_callable = add_module = add_class = wrap_callable = __call__

    # line_profiler's switches: what is decorated is recorded from the start to the end.
    def enable(self):
        """Without effect."""

    disable = enable_by_count = disable_by_count = enable

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def print_stats(self, *_, **options):
        """What was recorded so far."""
        for session in self._sessions:
            session.print()


# ------------------------------------------------------------------ the other packages

def _refuse(package):
    def get(name):
        raise AttributeError(f"{package} is not installed; sonde replaces only its `profile`, "
                             f"not {name!r}: pip install {package}")
    return get


class Finder:
    """The last of all finders: it has `profile` where the package itself is not installed.

    It is in sys.meta_path only if the program's code has the name of such a package.
    """

    names = PEERS

    def __init__(self, profile):
        self.profile = profile

    def find_spec(self, name, path=None, target=None):
        if name not in PEERS:
            return None
        return ModuleSpec(name, self, origin="sonde")

    def create_module(self, spec):
        module = ModuleType(spec.name, f"sonde's stand-in for {spec.name}, not installed.")
        module.profile = self.profile
        module.__getattr__ = _refuse(spec.name)
        return module

    def exec_module(self, module):
        pass


def take_over(module, profile):
    """The package is installed: its decorator becomes ours."""
    module.profile = profile
    explicit = sys.modules.get("line_profiler.explicit_profiler")
    if module.__name__ == "line_profiler" and explicit is not None:
        explicit.profile = profile
