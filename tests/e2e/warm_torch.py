# SPDX-License-Identifier: Apache-2.0
"""Runs programs as `python program.py` does, without importing torch for each: that takes 3 to 7 s of processor time.

One server process for each worker of pytest imports torch (and torchvision, where it is installed) and
forks a child for each program. The child has not loaded sonde, has no thread but its own, and leaves as
an interpreter does: with its exit handlers. Variables that a library reads when it is loaded are the
server's, but for OMP_NUM_THREADS. For what is about the start of a process (`sonde run`, a signal to it), start a process.
"""
import atexit
import json
import os
import subprocess
import sys
import tempfile
import types


def run(*arguments, timeout=300, **options):
    """subprocess.run([sys.executable, *arguments], text=True, capture_output=True), in a child of the server."""
    return run_together([(arguments, options)], timeout=timeout)[0]


def run_together(programs, timeout=300):
    """The same for several at the same time: [(arguments, {cwd, env})]."""
    with tempfile.TemporaryDirectory() as folder:
        requests = [{"arguments": [str(word) for word in arguments], "cwd": str(options.get("cwd") or os.getcwd()),
                     "env": dict(options.get("env") or os.environ), "out": f"{folder}/{number}"}
                    for number, (arguments, options) in enumerate(programs)]
        statuses = _server().ask(requests, timeout)
        read = lambda name: open(f"{folder}/{name}", encoding="utf-8").read()  # noqa: E731
        return [subprocess.CompletedProcess(request["arguments"], status, read(f"{number}.out"), read(f"{number}.err"))
                for number, (request, status) in enumerate(zip(requests, statuses))]


class _Server:
    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", __file__], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True,
                                        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})  # numpy's: no thread
        atexit.register(self.stop)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def ask(self, requests, timeout):
        self.process.stdin.write(json.dumps({"timeout": timeout, "programs": requests}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the process that has torch imported has ended"
        return json.loads(answer)


_started = []


def _server():
    if not _started:
        _started.append(_Server())
    return _started[0]


# ------------------------------------------------------------------------- the server's side

def _serve():
    """Returns in a child, with what it has to run; ends the server at the end of its input."""
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        asked = json.loads(line)
        children = []
        for request in asked["programs"]:
            child = os.fork()
            if child == 0:
                answers.close()
                return request
            children.append(child)
        answers.write(json.dumps([_wait(child, asked["timeout"]) for child in children]) + "\n")
        answers.flush()
    os._exit(0)


def _wait(child, timeout):
    """The status as subprocess has it: a signal is negative. A child that takes too long is killed."""
    import select
    import signal
    watched = os.pidfd_open(child)
    if not select.select([watched], [], [], timeout)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(watched)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(request):
    """Standard streams, environment, folder and arguments of the program; its code, to be run as __main__."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for stream, path in ((0, "/dev/null"), (1, request["out"] + ".out"), (2, request["out"] + ".err")):
        opened = os.open(path, os.O_RDONLY if stream == 0 else flags, 0o600)
        os.dup2(opened, stream)
        os.close(opened)
    os.environ.clear()
    os.environ.update(request["env"])
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    os.chdir(request["cwd"])
    sys.argv = list(request["arguments"])
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if sys.argv[0] == "-c":
        source, name = sys.argv.pop(1), "<string>"
        sys.path[0] = ""
    else:
        name = sys.argv[0]
        sys.path[0] = os.path.dirname(os.path.abspath(name))
        main.__file__ = name
        source = open(name, encoding="utf-8").read()
    return compile(source, name, "exec"), main.__dict__


if __name__ == "__main__":
    import torch  # noqa: F401
    try:
        import torchvision  # noqa: F401
    except ImportError:
        pass
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"
    exec(*_become(_serve()))
