# SPDX-License-Identifier: Apache-2.0
"""Which part of the process's recording (_recording.py) belongs to which session.

What a probe counts in a recording is the process's. As long as one session alone has had the
probe on, that is the session's result. When a second one comes, the first is given all that was
counted so far under a number of its own, and both count for themselves from then on, in C. Asked
for its result, such a session has its part cut out of the trace.
"""
import os
from _weakref import ref

from .. import _record, _recording, _scratch

SEVERAL = object()  # sessions have counted
_LAST = 0xffff  # number of a session

_guests = []  # references to Parts of recordings whose file is someone else's
_free = []  # numbers that may be given out again
_gone = []  # callbacks to run before that, of sessions that were collected
_alive = {}  # references to sessions, by number


# --------------------------------------------------------------------------- numbers

def number_of(session, forget):
    """A number for a session; `forget(number, has)` is called when the session is no more."""
    while _gone:
        number, forks, trail, forget_one = _gone.pop(0)
        del _alive[number]
        has = trail[:1] == [_record.path()] and _record.epoch() != 0
        reusable = forget_one(number, has) is not False
        if len(trail) > 1:  # it was never stopped: a decorator's
            trail[1].leave()
        if reusable and forks == _recording.forks:  # a child's trace may have it otherwise
            _free.append(number)
    number = _free.pop() if _free else _record.new_session()
    if number > _LAST:
        from .._core import Error
        raise Error(f"cannot record: {_LAST} sessions have been made, and all are still "
                    "referenced; delete those that are no longer needed")
    trail = []  # where it counted last, and the recording: not known elsewhere later
    gone = number, _recording.forks, trail, forget
    # Called by the garbage collector, at any moment: it only notes the number.
    _alive[number] = ref(session, lambda _: _gone.append(gone))
    return number, trail


# ----------------------------------------------------------------------------- parts

def open_trace(path):
    from .._core import Trace  # not in programs that are only recorded
    return Trace(path)


class Part:
    """What a session has of a recording."""

    def __init__(self, session, recording, whole):
        self.session = ref(session)
        self.recording = recording
        self.whole = whole  # from its beginning to its end: of `sonde run`
        self.number = session._number
        self.spans = []  # begin, end, ..: raw clock; while it is one of several
        self._kept = None  # read for the last time when its owner took the file away
        self._folder = None
        if not recording.owned:
            _guests[:] = [guest for guest in _guests if guest() is not None]
            _guests.append(ref(self))

    def is_alone(self, kind):
        """Whether all that was counted is the session's."""
        return self.whole or self.recording.counted.get(kind) is self

    def claim(self, kind, session):
        """The session is about to count: a session that was alone so far is split off."""
        counted = self.recording.counted
        holder = counted.get(kind)
        if self.whole:
            counted[kind] = SEVERAL
            return
        if holder is self:
            return
        if holder is None:
            counted[kind] = self
            session._own_all(self.number)
            return
        counted[kind] = SEVERAL
        if holder is not SEVERAL:
            session._own_all(0)
            other = holder.session()
            if other is not None:
                other._split(holder)

    # ------------------------------------------------------------------- results

    def keep(self):
        if self._kept is None:
            session = self.session()
            self._kept = session and open_trace(self.file(session))

    def trace(self, session):
        return self._kept or open_trace(self.file(session))

    def file(self, session):
        """The trace of the session's part alone, with those of forked children beside it."""
        if self.is_alone(session._kind):
            return self.recording.path
        if self._folder is None:
            self._folder = _scratch.folder_for(self)
        target = os.path.join(self._folder, "0.sonde")
        if self._kept is None:
            self.cut(session, target)
        return target

    def cut(self, session, target):
        from .._core import Error, cut_session
        spans = self.spans + [_record.clock()] * (len(self.spans) % 2)  # it is on
        if self.is_alone(session._kind):
            spans = [0, _record.clock()]
        for ending in with_children(self.recording.path):
            try:
                cut_session(self.recording.path + ending, target + ending, self.number,
                            session._events, spans, not ending and session._part is not self)
            except Error:
                if not ending:  # a child's may have come to nothing
                    raise


def _keep_all(path):
    """The owner of the recording at `path` has ended it, and is about to move the file."""
    for part in [guest() for guest in _guests]:
        if part is not None and part.recording.path == path:
            part.keep()


_recording.before_moving.append(_keep_all)


def with_children(path):
    """Endings of the files of a trace: its own, and those of forked children."""
    folder, name = os.path.split(path)
    return ["", *(other[len(name):] for other in os.listdir(folder or ".")
                  if other.startswith(f"{name}.") and other[len(name) + 1:].isdigit())]
