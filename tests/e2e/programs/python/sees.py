# SPDX-License-Identifier: Apache-2.0
"""Prints all that a program can see of its interpreter and its process, as JSON: {subject: list or dict of str}."""
import sys

SEEN = {"modules": sorted(sys.modules), "main": sorted(globals())}  # before anything is imported

import re  # noqa: E402


def plain(thing):
    """Its repr, without what differs between two runs."""
    return re.sub(r"0x[0-9a-f]+|pid=\d+", "N", repr(thing))


def seen(function):
    SEEN[function.__name__] = function()


# ------------------------------------------------------------------------ the interpreter

@seen
def lists():
    return {"path": plain(sys.path), "argv": plain(sys.argv), "orig_argv": plain(getattr(sys, "orig_argv", 0)),
            "flags": plain(sys.flags), "xoptions": plain(sys._xoptions), "warnoptions": plain(sys.warnoptions),
            "meta_path": plain(sys.meta_path), "path_hooks": plain(sys.path_hooks), "names": plain(dir(sys))}


@seen
def importers():
    return sorted(sys.path_importer_cache)


@seen
def hooks():
    names = "excepthook", "unraisablehook", "displayhook", "breakpointhook", "stdin", "stdout", "stderr"
    return {**{name: plain(getattr(sys, name)) for name in names}, "profile": plain(sys.getprofile()),
            "trace": plain(sys.gettrace()), "asyncgen": plain(sys.get_asyncgen_hooks()),
            "origin": plain(sys.get_coroutine_origin_tracking_depth()), "recursion": plain(sys.getrecursionlimit()),
            "switch": plain(sys.getswitchinterval()), "dlopen": plain(sys.getdlopenflags())}


@seen
def monitoring():
    tools = getattr(sys, "monitoring", None)
    return [tools.get_tool(number) for number in range(6) if tools.get_tool(number)] if tools else []


@seen
def builtin():
    import builtins
    return sorted(dir(builtins))


@seen
def filters():
    import warnings
    return [plain(one) for one in (*warnings.filters, warnings.showwarning, warnings.formatwarning)]


@seen
def atexits():
    import atexit
    return ["callback"] * atexit._ncallbacks()


@seen
def garbage():
    import gc
    return [plain(one) for one in (gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, gc.get_freeze_count())]


@seen
def frames():
    found, frame = [], sys._getframe()
    while frame:
        found.append(frame.f_code.co_name)
        frame = frame.f_back
    return [*found, str(len(sys._current_frames()))]


@seen
def threading_module():
    import threading
    said = {name: type(part).__name__ for name, part in vars(threading.Thread).items()}
    return {**said, "enumerate": plain([thread.name for thread in threading.enumerate()]),
            "hooks": plain([getattr(threading, name, None) for name in ("_profile_hook", "_trace_hook")])}


@seen
def functions_of_c():
    import _posixsubprocess
    import os
    parts = {"fork_exec": _posixsubprocess.fork_exec}
    parts.update({name: getattr(os, name) for name in ("fork", "forkpty", "execve", "posix_spawn", "posix_spawnp", "_exit")})
    parts.update({name: getattr(sys, name) for name in ("setprofile", "getprofile", "settrace", "gettrace")})
    return {name: plain((part, part.__module__, part.__qualname__, part.__doc__, part.__text_signature__))
            for name, part in parts.items()}


# ---------------------------------------------------------------------------- the process

import os  # noqa: E402
import signal  # noqa: E402


def status(key):
    with open("/proc/self/status") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(key + ":"))


def signals(key):
    mask = int(status(key), 16)
    names = {number.value: number.name for number in signal.Signals}
    return [names.get(n, str(n)) for n in range(1, 65) if mask >> (n - 1) & 1]


@seen
def environment():
    return {name: value for name, value in os.environ.items() if name != "_"}  # which a shell sets


@seen
def descriptors():
    return {str(number): re.sub(r"\[\d+\]", "", os.readlink(f"/proc/self/fd/{number}"))
            for number in range(1024) if os.path.lexists(f"/proc/self/fd/{number}")}


@seen
def next_descriptor():
    number = os.open("/dev/null", os.O_RDONLY)
    os.close(number)
    return [str(number)]


@seen
def threads():
    """All but the first: by name."""
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as file:
                names.append(file.read().strip())
        except OSError:  # it has ended
            continue
    return sorted(names)


@seen
def caught():
    return signals("SigCgt")


@seen
def blocked():
    return [*signals("SigBlk"), *signals("SigIgn"), *signals("ShdPnd")]


@seen
def handlers():
    return {one.name: plain(signal.getsignal(one)) for one in signal.Signals}


@seen
def timers():
    return [plain([signal.getitimer(which) for which in range(3)]), plain(signal.set_wakeup_fd(-1))]


@seen
def process():
    import locale
    import resource
    limits = [(name, resource.getrlimit(getattr(resource, name))) for name in dir(resource) if name.startswith("RLIMIT")]
    with open("/proc/self/cmdline") as words, open("/proc/self/comm") as name:
        said = {"cmdline": words.read(), "comm": name.read()}
    return {**said, "limits": plain(limits), "locale": plain(locale.setlocale(locale.LC_ALL)), "umask": status("Umask"),
            "folder": os.getcwd(), "ids": plain((os.getuid(), os.geteuid(), os.getgid(), os.getgroups())),
            "leader": plain((os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid())), "nice": plain(os.nice(0)),
            "tracer": status("TracerPid"), "privileges": status("NoNewPrivs"), "seccomp": status("Seccomp"),
            "capabilities": status("CapEff"), "processors": status("Cpus_allowed")}


@seen
def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return file.read().split()


@seen
def files():
    """Mapped ones."""
    with open("/proc/self/maps") as file:
        return sorted({line.split(None, 5)[5].strip() for line in file if "/" in line})


# ------------------------------------------------------------------------ what happens to it

def work(n):
    return sorted(abs(i) for i in range(n))


def gather(install):
    """What the program's own hook is told of: the events and the names of functions."""
    events = []

    def hook(frame, event, arg):
        events.append(f"{event} {getattr(arg, '__name__', '') if event.startswith('c_') else frame.f_code.co_name}")
        return hook
    install(hook)
    work(2)
    try:
        int("x")
    except ValueError:
        pass
    install(None)
    return events


@seen
def profile_events():
    return gather(sys.setprofile)


@seen
def profile_function():
    def mine(*_):
        pass
    sys.setprofile(mine)
    got = sys.getprofile() is mine
    sys.setprofile(mine)
    again = sys.getprofile() is mine
    sys.setprofile(None)
    return [plain((got, again, sys.getprofile()))]


@seen
def trace_events():
    return gather(sys.settrace)


@seen
def events_of_a_thread():
    import threading
    events = []
    threading.setprofile(lambda frame, event, arg: events.append(f"{event} {frame.f_code.co_name}"))
    thread = threading.Thread(target=work, args=(2,))
    thread.start()
    thread.join()
    threading.setprofile(None)
    return events


@seen
def events_of_an_import():
    events = []
    sys.setprofile(lambda frame, event, arg: events.append(
        f"{event} {getattr(arg, '__name__', '') if event.startswith('c_') else frame.f_code.co_name}"))
    import colorsys  # noqa: F401
    sys.setprofile(None)
    return events


@seen
def tracebacks():
    """Of imports that fail: Python leaves out the frames of importlib."""
    import tempfile
    import traceback
    texts = []
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for name, text in (("fails_one", "1 / 0"), ("fails_two", "import no_such_module"), ("fails_three", "import fails_one")):
            with open(f"{folder}/{name}.py", "w") as file:
                file.write(text)
            try:
                __import__(name)
            except Exception:
                texts.append(traceback.format_exc().replace(folder, ""))
        del sys.path[0]
    return texts


@seen
def warned_of_fork():
    import pty
    import warnings
    with warnings.catch_warnings(record=True) as caught_ones:
        warnings.simplefilter("always")
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        child, terminal = pty.fork()
        if child == 0:
            os._exit(0)
        os.close(terminal)
        os.waitpid(child, 0)
    return [plain(str(one.message)) for one in caught_ones]


@seen
def warned_beside_a_thread():
    """There Python is right to warn."""
    import threading
    import warnings
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    with warnings.catch_warnings(record=True) as caught_ones:
        warnings.simplefilter("always")
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    end.set()
    thread.join()
    return [plain(str(one.message)) for one in caught_ones]


@seen
def filters_in_fork():
    """What functions that are called at a fork find."""
    import warnings
    found = []
    os.register_at_fork(before=lambda: found.append(plain(warnings.filters)),
                        after_in_parent=lambda: found.append(plain(warnings.filters)))
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return found


@seen
def crash():
    """What faulthandler says of a child: its modules in C above all."""
    import subprocess
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c",
                           "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.abort()"],
                          stderr=subprocess.PIPE, text=True)
    # frames of the interpreter in the stack in C (3.14): how many a call has is its own affair
    lines = [line for line in done.stderr.splitlines()
             if not line.startswith("sonde:") and not re.match(r'  Binary file "[^"]*/(lib)?python[^/"]*"', line)]
    return [re.sub(r"0x[0-9a-f]+", "N", line) for line in lines] + [str(done.returncode)]


@seen
def audited():
    """Last: such a hook stays."""
    import subprocess
    import threading
    events, on = [], True
    sys.addaudithook(lambda event, arguments: on and events.append(event))
    import quopri  # noqa: F401
    thread = threading.Thread(target=work, args=(2,))
    thread.start()
    thread.join()
    subprocess.run([sys.executable, "-S", "-c", ""])
    exec("1 + 1")
    on = False
    return events


import json  # noqa: E402

json.dump(SEEN, sys.stdout)
