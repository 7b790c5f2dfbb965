# SPDX-License-Identifier: Apache-2.0
"""Runs programs as `python program.py` does, without importing torch for each: that takes 3 to 7 s of processor time.

One server process for each worker of pytest imports torch (and torchvision, where it is installed) and
forks a child for each program. The child has not loaded sonde, has no thread but its own, and leaves
with the exit handlers of Python and of C; what is freed by an interpreter's end is not. Variables that a library reads when it is loaded are the
server's, but for OMP_NUM_THREADS; limits, name spaces and the process group are the server's too. For
what is about the start or the end of a process (a limit, a signal to its group, a library that is preloaded), start one.

`run` runs a program; `python` is a file to be started in place of Python, by what starts one itself
(SONDE_PYTHON_EXE, `sonde run -- PYTHON`): its arguments, folder, environment and standard streams are those of the child,
and it ends as the child does. Where PYTHONPATH is another than the server's, the child runs the sitecustomize that it
leads to, and then the program's `import torch` is seen by whoever waits for it: so `sonde run` records it.
"""
import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types


def run(*arguments, timeout=300, **options):
    """subprocess.run([sys.executable, *arguments], text=True, capture_output=True), in a child of the server."""
    return run_together([(arguments, options)], timeout=timeout)[0]


def run_together(programs, timeout=300):
    """The same for several at the same time: [(arguments, {cwd, env})]."""
    links, outputs = [], []
    for arguments, options in programs:
        outputs.append([tempfile.TemporaryFile() for _ in ("output", "errors")])
        with open(os.devnull) as nothing:
            links.append(ask(_server().address, [str(word) for word in arguments], str(options.get("cwd") or os.getcwd()),
                             dict(options.get("env") or os.environ), [nothing, *outputs[-1]]))
    statuses = [wait_for(link, timeout) for link in links]
    return [subprocess.CompletedProcess(arguments, status, *map(_whole_text, files))
            for (arguments, _), status, files in zip(programs, statuses, outputs)]


def _whole_text(file):
    with file:
        file.seek(0)
        return file.read().decode()


def python():
    """The path of a file that stands for Python: a program, as far as whoever starts it can see."""
    return _server().python


# What the server's clients have in common. The file that stands for Python is this text and a call.
CLIENT = '''
import json, os, signal, socket, sys

def ask(address, arguments, cwd, env, streams):
    """Has a program started; the answer comes on what is returned, and closing that kills the program."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(address)
    asked = json.dumps({"arguments": arguments, "cwd": cwd, "env": env}).encode()
    socket.send_fds(link, [len(asked).to_bytes(8, "little")], [getattr(one, "fileno", lambda: one)() for one in streams])
    link.sendall(asked)
    return link

def wait_for(link, timeout=None):
    """Its status, as subprocess has it: a signal is negative. One that takes too long is killed."""
    with link:
        link.settimeout(timeout)
        try:
            answer = link.recv(64)
        except TimeoutError:
            return -signal.SIGKILL
        assert answer, "the process that has torch imported has ended"
        return int(answer)
'''
CALL = '''
status = wait_for(ask({address!r}, sys.argv[1:], os.getcwd(), dict(os.environ), [0, 1, 2]))
if status < 0 and status != -signal.SIGKILL:
    signal.signal(-status, signal.SIG_DFL)
if status < 0:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), -status)
os._exit(status)
'''
exec(CLIENT)  # ask, wait_for


class _Server:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.address, self.python = f"{self.folder.name}/server", f"{self.folder.name}/python3"
        with open(os.open(self.python, os.O_WRONLY | os.O_CREAT, 0o755), "w") as file:
            file.write(f"#!{sys.executable} -IS\n{CLIENT}{CALL.format(address=self.address)}")
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", __file__, self.address], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True,
                                        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # numpy's: no thread
        assert self.process.stdout.readline() == b"listening\n", "the process that is to import torch has ended"
        atexit.register(self.stop)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


_started = []


def _server():
    if not _started:
        _started.append(_Server())
    return _started[0]


# ------------------------------------------------------------------------- the server's side

def _serve(address):
    """Returns in a child, with what it has to run; ends the server at the end of its input."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    os.write(1, b"listening\n")
    children = {}  # {link: (process, descriptor of it)}
    while True:
        ready = select.select([0, listening, *children, *(ended for _, ended in children.values())], [], [])[0]
        if 0 in ready:  # nothing is ever written to it
            for child, _ in children.values():
                os.kill(child, signal.SIGKILL)
            os._exit(0)
        for link, (child, ended) in list(children.items()):
            if ended in ready:
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                _answer(link, status)
                os.close(ended)
                del children[link]
            elif link in ready:  # who asked has gone
                os.kill(child, signal.SIGKILL)
        if listening in ready:
            link = listening.accept()[0]
            request = _read(link)
            child = os.fork()
            if child == 0:
                for one in (listening, link, *children):
                    one.close()
                for _, ended in children.values():
                    os.close(ended)
                return request
            for stream in request["streams"]:
                os.close(stream)
            children[link] = child, os.pidfd_open(child)


def _read(link):
    size, streams, _, _ = socket.recv_fds(link, 8, 3)
    with link.makefile("rb") as file:
        return {**json.loads(file.read(int.from_bytes(size, "little"))), "streams": streams}


def _answer(link, status):
    with link:
        try:
            link.sendall(str(status).encode())
        except OSError:  # who asked has gone
            pass


def _become(request):
    """Standard streams, environment, folder and arguments of the program; its code, to be run as __main__."""
    for stream, opened in enumerate(request["streams"]):
        os.dup2(opened, stream)
        os.close(opened)
    folders_before = os.environ.get("PYTHONPATH")
    os.environ.clear()
    os.environ.update(request["env"])
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    os.chdir(request["cwd"])
    sys.argv = list(request["arguments"])
    while sys.argv[0] == "-W":
        sys.warnoptions.append(sys.argv[1])
        warnings.filterwarnings(sys.argv[1])
        del sys.argv[:2]
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if sys.argv[0] == "-c":
        source, name = sys.argv.pop(1), "<string>"
        sys.path[0] = ""
    elif sys.argv[0] == "-m":
        source, name = f"import runpy; runpy.run_module({sys.argv.pop(1)!r}, None, '__main__', True)", "<module>"
        sys.path[0] = os.getcwd()
    else:
        name = sys.argv[0]
        sys.path[0] = os.path.dirname(os.path.abspath(name))
        main.__file__ = name
        source = open(name, encoding="utf-8").read()
    if os.environ.get("PYTHONPATH") not in (None, folders_before):
        _customize(os.environ["PYTHONPATH"].split(os.pathsep))
    return compile(source, name, "exec"), main.__dict__


def _customize(folders):
    """What the start of an interpreter does, with torch not imported yet as far as can be seen."""
    sys.path[1:1] = folders
    sys.modules.pop("sitecustomize", None)
    sys.meta_path.insert(0, _Again(sys.modules.pop("torch")))
    site.execsitecustomize()
    if site.ENABLE_USER_SITE:
        site.execusercustomize()


class _Again:
    """Finds and loads a module that was imported before: as it is."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def find_spec(self, name, path=None, target=None):
        found = copy.copy(self.spec) if name == self.spec.name else None
        if found:
            found.loader = self
        return found

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__, module.__loader__ = self.spec, self.spec.loader
        sys.meta_path.remove(self)
        # As the loaders of files run a module's code: by this `sonde run` sees that it is there.
        importlib._bootstrap._call_with_frames_removed(exec, compile("", "<torch>", "exec"), module.__dict__)


def _run(code, names):
    """As an interpreter does; the exit status."""
    try:
        exec(code, names)
    except SystemExit as end:
        if not isinstance(end.code, (int, type(None))):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _leave(status):
    """With the exit handlers of Python and of C, but without freeing every module: that takes 2 s."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    ctypes.CDLL(None).exit(status)


if __name__ == "__main__":
    import copy
    import ctypes
    import gc
    import importlib._bootstrap
    import site
    import threading
    import warnings
    import torch  # noqa: F401
    try:
        import torchvision  # noqa: F401
    except ImportError:
        pass
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"
    gc.collect()
    gc.freeze()  # a child would look through all of it, and so copy it
    _leave(_run(*_become(_serve(sys.argv[1]))))
