# SPDX-License-Identifier: Apache-2.0
"""`sonde run --standby`: this process records nothing until `sonde record` asks for it.

A thread waits at a socket in the job's folder, which is its owner's alone. What `sonde record`
(src/cli/command/cmd_record.c) says, a line each, and the answers:

    hello                    listening pid=.. rank=.. world=.. step=.. rate=.. state=.. worker=.. last=..
    prepare PATH WORD,..     ready STEP: the file is there and the probes are attached, but nothing is marked yet
    from STEP COUNT          armed; or late STEP, when that step has begun already
    seconds SECONDS          armed: from now on, for this long
    cancel                   canceled, as by the end of the connection; or begun, and it goes on to its end

and when the recording has ended: done FIRST LAST BYTES. Whatever cannot be done: failed WHY.

The program's own thread begins and ends the marking, at the end of a step, and does no more: files are opened
and closed by the thread that listens, so that a step waits for neither.
"""
import _thread
import atexit
import os
import select
import socket
import sys
import time

from .. import _record, _recording, _steps

FOLDER = "standby"  # of the sockets, in the job's folder
OPTIONS = ("shapes", "memory", "stacks", "modules")
_LINE_MOST = 8192

_standby = None  # of this process


class _Refused(Exception):
    """The reason is for whoever asked."""


class _Recording:
    """One request: from `prepare` to `done`."""

    def __init__(self, path, words):
        self.path = path
        self.options = {name: name in words for name in OPTIONS}
        from . import _cuda
        self.cuda = next((level for level in _cuda.LEVELS if f"gpu={level}" in words), "full" if "gpu" in words else None)
        self.first = self.count = None  # steps; None: none is waited for
        self.until = None  # with seconds: when it ends
        self.last = 0  # the step that ended it
        self.begun = self.ended = False

    def prepare(self):
        why = _recording.why_not_alone("`sonde record`")
        if why:
            raise _Refused(why)
        from . import _attach
        _recording.take(self, self.path, lambda path: _attach.start(path, cuda=self.cuda, paused=True, **self.options))

    def begin(self, number, source=None):
        self.first, self.begun = number, True
        _record.resume()
        _steps.restart(number, source)

    def end(self, number):
        """Nothing is marked any more; the rest is close()."""
        self.last, self.ended = number - 1, True
        _steps.ended(self.last)
        _record.pause()

    def close(self):
        from . import _attach
        _recording.give_back(self, _attach.detach)


class Standby:
    """What listens, and the request that it serves; one at a time."""

    def __init__(self, folder):
        self.lock = _thread.allocate_lock()  # of the steps and the request
        self.step, self.began = 0, None  # how many have ended, and when the first did
        self.request = None
        self.client = None  # the connection of the request
        self.said = "nothing recorded yet"
        self.waker, self.woken = os.pipe()
        os.set_blocking(self.woken, False)
        os.makedirs(os.path.join(folder, FOLDER), mode=0o700, exist_ok=True)
        self.name = os.path.join(folder, FOLDER, f"{socket.gethostname()}-{os.getpid()}.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self._bind()
        self.listener.listen()
        self.connections = {}  # by number of the descriptor: socket, and what it said of a line so far

    def _bind(self):
        """By the folder's descriptor: the name of a socket may have 107 bytes, that of a folder more."""
        folder = os.open(os.path.dirname(self.name), os.O_RDONLY | os.O_DIRECTORY)
        try:
            if os.path.lexists(self.name):  # of a process that had this number before
                os.unlink(self.name)
            self.listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(self.name)}")
            os.chmod(self.name, 0o600)
        finally:
            os.close(folder)

    # -------------------------------------------------------------- the program's thread

    def on_step(self, source):
        """A step has ended; returns the number of the one that begins, or None if it is not recorded."""
        with self.lock:
            self.step += 1
            if self.began is None:
                self.began = time.monotonic(), self.step
            request = self.request
            if request is not None and request.count is not None and not request.ended:
                if not request.begun and self.step == request.first:
                    request.begin(self.step, source)
                elif request.begun and self.step == request.first + request.count:
                    request.end(self.step)
                    os.write(self.woken, b"e")
            return self.step if request is None or (request.begun and not request.ended) else None

    # ------------------------------------------------------------------- the other thread

    def serve(self):
        while True:
            timeout = None
            if self.request is not None and self.request.until is not None:
                timeout = max(0.0, self.request.until - time.monotonic())
            try:
                poll = select.poll()  # select() would refuse the numbers of a program with 1,024 files
                for one in (self.waker, self.listener.fileno(), *self.connections):
                    poll.register(one, select.POLLIN)
                self._serve_once([number for number, _ in poll.poll(None if timeout is None else timeout * 1000 + 1)])
            except Exception as error:  # must not reach the program
                print(f"sonde: standby: {error}", file=sys.stderr, flush=True)
                time.sleep(0.1)

    def _serve_once(self, ready):
        for one in ready:
            if one == self.listener.fileno():
                connection, _ = self.listener.accept()
                self.connections[connection.fileno()] = [connection, b""]
            elif one == self.waker:
                os.read(one, 16)
            else:
                self._read(one)
        request = self.request
        if request is not None and request.until is not None and time.monotonic() >= request.until:
            with self.lock:
                request.until = None
                request.end(self.step + 1)
        if request is not None and request.ended:
            self._finish()

    def _read(self, number):
        connection, text = self.connections[number]
        try:
            read = connection.recv(4096)
        except OSError:
            read = b""
        text += read
        if not read or len(text) > _LINE_MOST:
            self._forget(number)
            return
        *lines, self.connections[number][1] = text.split(b"\n")
        for line in lines:
            self._answer(connection, line.decode(errors="replace"))

    def _forget(self, number):
        connection, _ = self.connections.pop(number)
        if connection is self.client:
            self.client = None
            self._cancel()
        connection.close()

    def _answer(self, connection, line):
        word, _, rest = line.partition(" ")
        known = {"hello": self._hello, "prepare": self._prepare, "from": self._from, "seconds": self._seconds,
                 "cancel": self._cancel}
        try:
            if word not in known:
                raise _Refused(f"unknown request '{word}'")
            answer = known[word](*([rest] if rest else []))
            if word == "prepare":
                self.client = connection
        except Exception as error:  # whoever asks is told
            answer = f"failed {' '.join(str(error).split())}"
        self._send(connection, answer)

    @staticmethod
    def _send(connection, text):
        try:
            connection.sendall(text.encode() + b"\n")
        except OSError:  # it has gone
            pass

    # ------------------------------------------------------------------------- requests

    def _hello(self):
        rank, world = _rank()
        with self.lock:
            passed = self.step - self.began[1] if self.began else 0
            rate = passed / (time.monotonic() - self.began[0]) if passed else 0
            request, step = self.request, self.step
        state = ("idle" if request is None else "recording" if request.begun else "prepared")
        return (f"listening pid={os.getpid()} rank={rank} world={world} step={step} rate={rate:.4f} state={state} "
                f"worker={int(_is_worker())} last={self.said}")

    def _prepare(self, rest):
        words, _, path = rest.partition(" ")
        if self.request is not None:
            raise _Refused("another `sonde record` is under way")
        request = _Recording(path, words.split(","))
        with self.lock:
            self.request = request  # from here on, before there is a file, no step is marked that was not asked for
        try:
            request.prepare()
        except BaseException:
            with self.lock:
                self.request = None
            raise
        return f"ready {self.step}"

    def _prepared(self):
        if self.request is None or self.request.begun:
            raise _Refused("nothing is prepared")
        return self.request

    def _from(self, rest):
        first, count = map(int, rest.split())
        with self.lock:
            if first <= self.step:
                return f"late {self.step}"
            request = self._prepared()
            request.first, request.count = first, count
        return "armed"

    def _seconds(self, rest):
        seconds = float(rest)
        with self.lock:
            request = self._prepared()
            request.begin(self.step)
            request.until = time.monotonic() + seconds
        return "armed"

    def _cancel(self):
        """What has begun is recorded to its end: others may count on it."""
        with self.lock:
            request = self.request
            if request is None or request.begun:
                return "canceled" if request is None else "begun"
            self.request = None
        request.close()
        os.unlink(request.path)
        return "canceled"

    def _finish(self):
        request = self.request
        request.close()
        with self.lock:
            self.request = None
        self.said = f"steps {request.first} to {request.last} in {request.path}"
        client, self.client = self.client, None
        if client is not None:
            self._send(client, f"done {request.first} {request.last} {os.path.getsize(request.path)}")

    def leave(self):
        try:
            os.unlink(self.name)
        except OSError:
            pass

    def forget_in_child(self):
        """The child has no thread that listens, and is not the process that was asked."""
        self.listener.close()
        for connection, _ in self.connections.values():
            connection.close()
        os.close(self.waker)
        os.close(self.woken)


def _rank():
    """(rank, world size) of the job; -1 and 0 if it has none."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return int(os.environ.get("RANK", -1)), int(os.environ.get("WORLD_SIZE", 0))


def _is_worker():
    """Whether this is a process of a DataLoader's."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _forget_in_child():
    global _standby
    if _standby is not None:
        atexit.unregister(_standby.leave)
        _standby.forget_in_child()
        _standby = _steps.on_step = None


def start(folder, torch, after_import):
    """Listens from now on; `torch` has just been imported."""
    _steps.watch_run(torch, after_import)
    _listen(folder)


def join(folder):
    """`sonde record PID` of a program that is running: its main thread calls this between two instructions of its own."""
    if _standby is not None:
        raise RuntimeError(f"it listens in another folder: sonde record {os.path.dirname(os.path.dirname(_standby.name))}")
    if "torch.optim.optimizer" not in sys.modules:
        raise RuntimeError("it has not imported torch, of which operators would be recorded; sonde attach samples any program")
    _steps.watch_running()
    _listen(folder)


def _listen(folder):
    global _standby
    _standby = Standby(folder)
    _steps.on_step = _standby.on_step
    os.register_at_fork(after_in_child=_forget_in_child)
    atexit.register(_standby.leave)
    _thread.start_new_thread(_standby.serve, ())
