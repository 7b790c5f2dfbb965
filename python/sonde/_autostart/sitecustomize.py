# SPDX-License-Identifier: Apache-2.0
"""Starts sonde's probes in a Python program that was not changed for it (`sonde run`).

`sonde run` puts this folder first on PYTHONPATH, so that every Python process of the job runs
this file before its own code. It waits for `import torch` to finish and then has torch recorded,
and starts the probes of Python itself. A failure is reported in one line; the program runs on without it.

It imports what Python itself has loaded by now and nothing else: importlib.util alone would cost
each process of a program 4 ms, and what a program finds in sys.modules should be its own.
"""
import _frozen_importlib as bootstrap
import _frozen_importlib_external as finders
import _imp
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.dirname(HERE)


def say(text):
    print(f"sonde: {text}", file=sys.stderr, flush=True)


class Start:
    """A probe to be started in Python: an entry of SONDE_START (src/probes/probes.def)."""

    def __init__(self, text):
        self.name, self.when, self.sees, function, self.records = text.split(" ", 4)
        self.module, _, self.function = function.partition(":")
        self.value = os.environ.get("SONDE_" + self.name.replace("-", "_").upper())

    def load(self):
        """Its function, of the package that belongs to this Python."""
        load_package()
        __import__(self.module)
        return getattr(sys.modules[self.module], self.function)


# ------------------------------------------------------------------------ the package

def find_package():
    """The package that this file belongs to; for a Python that it was not built for, the one installed there."""
    for folder in (PACKAGE, *(os.path.join(folder or ".", "sonde") for folder in sys.path)):
        if os.path.exists(os.path.join(folder, "__init__.py")) and any(
                os.path.exists(os.path.join(folder, f"_python{suffix}"))
                for suffix in _imp.extension_suffixes()):
            return os.path.abspath(folder)
    return PACKAGE


def load_package():
    """The package for this Python, whatever the program's own path finds."""
    if "sonde" not in sys.modules:
        package = find_package()
        spec = finders.spec_from_file_location(
            "sonde", os.path.join(package, "__init__.py"), submodule_search_locations=[package])
        module = bootstrap.module_from_spec(spec)
        sys.modules["sonde"] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["sonde"]
            raise
    return sys.modules["sonde"]


def is_helper():
    """A process that only starts others or compiles: it runs no model."""
    try:
        with open("/proc/self/cmdline", errors="replace") as file:
            words = file.read().split("\0")
    except OSError:
        words = sys.argv
    text = " ".join(words)
    return ("multiprocessing.resource_tracker" in text or "torch.distributed.run" in text or "torch.distributed.launch" in text
            or "torch/_inductor/compile_worker" in text or "torch._inductor.compile_worker" in text
            or any(os.path.basename(word) in ("torchrun", "accelerate", "deepspeed")
                   for word in words[:3]))


def is_subinterpreter():
    """Whether this is a subinterpreter: the main one has run this file already."""
    if os.environ.get("SONDE_FIRST_PROCESS") != str(os.getpid()):
        return False
    try:
        try:
            import _interpreters
        except ImportError:
            import _xxsubinterpreters as _interpreters  # before 3.13
        return _interpreters.get_current() != _interpreters.get_main()
    except Exception:  # a Python without the module
        return False


def tell_of_subinterpreter(starts):
    """Once in a process."""
    unseen = [f"--{start.name}" for start in starts if start.sees == "main"]
    if unseen and os.environ.get("SONDE_SUBINTERPRETERS") != str(os.getpid()):
        os.environ["SONDE_SUBINTERPRETERS"] = str(os.getpid())
        say(f"subinterpreters are not recorded by {' and '.join(unseen)}, which see the main "
            "interpreter only")


def start_imported(module, starts, probes):
    """The probes that wait for this module; with torch, its optimizers' steps too."""
    for start in starts:
        try:
            start.load()(probes, start.value)
        except Exception as error:  # must not reach the program
            say(f"{start.when} is not recorded: {error}")
    if module.__name__ == "torch":
        try:
            load_package()
            from sonde import _steps
            _steps.watch_run(module, after_import)
        except Exception as error:
            say(f"steps of optimizers are not marked: {error}")


# ---------------------------------------------------------------------- after an import
#
# One function of importlib runs the code of every module that is loaded from a file. While a module is waited for,
# this function has a code of ours. A finder in sys.meta_path would be among the program's own, and a function around
# importlib's would be in the program's stacks and profiles.

runs_code = bootstrap._call_with_frames_removed
real_code = runs_code.__code__
waiting = {}  # by name of a module: what to call once it is there


def run_code(f, *args, sonde_waits, sonde_arrived, **kwds):
    """As importlib's, which has no defaults for keywords. Of other modules it calls nothing: a profile function of
    the program sees what it sees without us."""
    result = f(*args, **kwds)
    if f is exec and "__name__" in args[1] and args[1]["__name__"] in sonde_waits:
        sonde_arrived(args[1]["__name__"])
    return result


def as_importlib(code):
    """With the names of importlib's own: by these Python leaves its frames out of tracebacks."""
    same = ("co_filename", "co_name", "co_qualname", "co_firstlineno")
    names = {name: getattr(real_code, name) for name in same if hasattr(real_code, name)}
    return code.replace(**names) if hasattr(code, "replace") else code  # not before 3.8


def arrived(name):
    """The module's code has been run; not one of its name that is no part of the program's modules."""
    module = sys.modules.get(name)
    if module is None:
        return
    for then in waiting.pop(name):
        try:
            then(module)
        except Exception as error:  # must not reach the program
            say(f"{name} is not recorded: {error}")
    if not waiting:
        runs_code.__code__, runs_code.__kwdefaults__ = real_code, None
    tidy()


def after_import(name, then):
    """Has then(module) called once the module `name` is there."""
    waiting.setdefault(name, []).append(then)
    if runs_code.__code__ is real_code:
        runs_code.__kwdefaults__ = {"sonde_waits": waiting, "sonde_arrived": arrived}
        runs_code.__code__ = as_importlib(run_code.__code__)


# ------------------------------------------------------------------------------- main

def run_shadowed():
    """The sitecustomize that would have been run if this one were not here."""
    spec = finders.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = bootstrap.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def find_importer():
    """Does now what Python does with the script's name before it runs it, so that it is not counted."""
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    path = os.path.abspath(name)
    if name == "-m":
        import runpy  # noqa: F401 - Python's own next step; before 3.11 it would look like the program's
    if name in ("", "-", "-c", "-m") or path in sys.path_importer_cache:
        return
    sys.path_importer_cache[path] = None
    for hook in sys.path_hooks:
        try:
            sys.path_importer_cache[path] = hook(path)
            return
        except ImportError:
            pass


def tidy():
    """Takes what our own start left there out of the interpreter's lists, which are the program's."""
    if vars(sys.modules.get("sitecustomize", sys)) is globals():
        del sys.modules["sitecustomize"]
    package = getattr(sys.modules.get("sonde"), "__path__", (PACKAGE,))[0]
    for folder in list(sys.path_importer_cache):
        if folder == HERE or folder == package or folder.startswith(package + os.sep):
            del sys.path_importer_cache[folder]


def call_last(then):
    """Calls then() after all start-up code: in the place of usercustomize, or after it."""
    import site
    enabled, real = site.ENABLE_USER_SITE, site.execusercustomize

    def execusercustomize():
        site.ENABLE_USER_SITE, site.execusercustomize = enabled, real
        if enabled:
            real()
        try:
            then()
        except Exception as error:  # at this point it would keep Python from starting
            say(f"this Python program is not recorded: {error}")

    site.ENABLE_USER_SITE, site.execusercustomize = True, execusercustomize


def start_python(starts, probes):
    try:
        load_package()
        from sonde.python import _start
        _start.before(starts, after_import)
    except Exception as error:
        if "unasked" not in probes:
            say(f"this Python program is not recorded: {error}")
        return tidy

    def start_last():
        find_importer()
        _start.last(starts, probes, tidy)

    return start_last


def start_all(starts, probes):
    """Starts what can be started now; returns what is to be called last."""
    own = [start for start in starts if start.when in ("named", "last")]
    modules = {start.when for start in starts if start not in own}
    if os.environ.get("SONDE_SCHEDULE"):
        modules.add("torch")
    for name in modules:
        now = [start for start in starts if start.when == name]
        after_import(name, lambda module, now=now: start_imported(module, now, probes))
    return start_python(own, probes) if own else tidy


def stand_by(torch):
    """`sonde run --standby`: torch is recorded once `sonde record` asks for it."""
    load_package()
    from sonde.torch import _standby
    _standby.start(os.environ["SONDE_STANDBY"], torch, after_import)


def main():
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    probes = set(os.environ.get("SONDE_PROBES", "").split(","))
    starts = [Start(text) for text in os.environ.get("SONDE_START", "").split(";")
              if text.count(" ") >= 4]
    then = tidy
    if os.environ.get("SONDE_TRACE") and is_subinterpreter():
        tell_of_subinterpreter(starts)
    elif os.environ.get("SONDE_TRACE") and not is_helper():
        then = start_all(starts, probes)
    elif os.environ.get("SONDE_STANDBY") and not is_helper():
        after_import("torch", stand_by)
    try:
        run_shadowed()
    finally:  # Python reports what it raises, and the program runs
        try:
            call_last(then)
        except Exception as error:
            say(f"this Python program is not recorded: {error}")


main()
