# SPDX-License-Identifier: Apache-2.0
"""The Perfetto trace, decoded by the classes of Perfetto's own package: slices, nesting, counters and arrows are the trace's.

The package's trace processor fetches a program from the network, so that what it does with a trace is done here: packets by
time, those of one time as they stand; each end closes the latest begin of its track.
"""
import collections
import csv
import io
import math
import re
import subprocess

import pytest

from cli_tools import GEN, generate, needs_tools, read, read_json

import perfetto.protos.perfetto.trace.perfetto_trace_pb2 as pb

pytestmark = needs_tools

CASES = [line.split()[0] for line in
         subprocess.run([GEN, "--list"], stdout=subprocess.PIPE, check=True,
                        text=True).stdout.splitlines()] if GEN else []
NEEDS_STATE = 2
Slice = collections.namedtuple("Slice", "pid lane name start duration depth")


class Decoded:
    """A trace as the trace processor sees it."""

    def __init__(self, data):
        trace = pb.Trace()
        trace.ParseFromString(data)
        self.tracks, self.slices, self.counters, self.samples = {}, [], collections.defaultdict(list), []
        self.flows = collections.defaultdict(lambda: ([], []))  # id to begins and ends: (pid, name, start)
        self.names, self.interned = {}, collections.defaultdict(dict)
        events = []
        assert trace.packet[0].sequence_flags == 1
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            self.learn(packet)
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                assert packet.sequence_flags == NEEDS_STATE
                events.append((packet.timestamp, packet.track_event))
            if packet.HasField("perf_sample"):
                self.samples.append((packet.timestamp, packet.perf_sample))
        self.play(sorted(events, key=lambda event: event[0]))

    def learn(self, packet):
        data = packet.interned_data
        self.names.update({item.iid: item.name for item in data.event_names})
        for kind in ("function_names", "mapping_paths", "mappings", "frames", "callstacks"):
            self.interned[kind].update({item.iid: item for item in getattr(data, kind)})

    def root(self, uuid, field):
        """Of the nearest track above that is a thread's or a process's."""
        track = self.tracks[uuid]
        while not track.HasField(field) and track.parent_uuid:
            track = self.tracks[track.parent_uuid]
        return getattr(track, field) if track.HasField(field) else None

    def pid(self, uuid):
        thread = self.root(uuid, "thread")
        return thread.pid if thread else self.root(uuid, "process").pid

    def lane(self, uuid):
        thread = self.root(uuid, "thread")
        return str(thread.tid) if thread else self.tracks[uuid].name

    def play(self, events):
        open_slices = collections.defaultdict(list)
        for time, event in events:
            uuid, name = event.track_uuid, self.names[event.name_iid] if event.name_iid else event.name
            assert uuid in self.tracks
            if event.type == event.TYPE_COUNTER:
                assert self.tracks[uuid].HasField("counter")
                self.counters[self.pid(uuid), self.tracks[uuid].name].append((time, event.double_counter_value))
            elif event.type == event.TYPE_SLICE_BEGIN:
                open_slices[uuid].append((name, time))
            elif event.type == event.TYPE_SLICE_END:
                begun, start = open_slices[uuid].pop()
                self.slices.append(Slice(self.pid(uuid), self.lane(uuid), begun, start, time - start, len(open_slices[uuid])))
            for flow in event.flow_ids:
                self.flows[flow][0].append((self.pid(uuid), name, time))
            for flow in event.terminating_flow_ids:
                self.flows[flow][1].append((self.pid(uuid), name, time))
        assert not any(open_slices.values())

    def stack(self, iid):
        frames = [self.interned["frames"][i] for i in self.interned["callstacks"][iid].frame_ids]
        return [(self.interned["function_names"][frame.function_name_id].str.decode(), self.path(frame)) for frame in frames]

    def path(self, frame):
        """Of the file: that of the mapping that the frame is in."""
        return "/".join(self.interned["mapping_paths"][i].str.decode() for i in self.interned["mappings"][frame.mapping_id].path_string_ids)


def decode(trace):
    return Decoded(read("export", trace, "-t", "perfetto", "-o", "-"))


def rows_of_csv(trace):
    text = read("export", trace, "-t", "csv", "-o", "-").decode("utf-8", "replace")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def readable(name):
    return re.sub("[\udc80-\udcff]", "\ufffd", name)


# Have ranges that end before what lies in them; asynchronous ones have a track of their own.
OVERLAP = {"async", "chance", "chance_job", "mixed", "torch", "variety"}


def ranges_of(decoded):
    """The slices but calls of Python functions, which CSV leaves to other formats."""
    if not any(track.name == "Python calls" for track in decoded.tracks.values()):
        return decoded.slices
    return [piece for piece in decoded.slices if "): " not in piece.name and not piece.name.startswith("<built-in")]


@pytest.mark.parametrize("case", CASES)
def test_slices_are_the_ranges(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde")
    decoded, rows = decode(trace), rows_of_csv(trace)
    if case not in OVERLAP:
        key = lambda row: (row["process"], row["thread"], row["start_ns"], row["duration_ns"], row["depth"])
        theirs = [(str(s.pid), s.lane, str(s.start), str(s.duration), str(s.depth)) for s in ranges_of(decoded)]
    else:
        key = lambda row: (row["process"], row["thread"], row["start_ns"], row["duration_ns"])
        theirs = [(str(s.pid), s.lane, str(s.start), str(s.duration)) for s in ranges_of(decoded)]
    assert collections.Counter(theirs) == collections.Counter(map(key, rows))
    assert rows or not theirs


@pytest.mark.parametrize("case", CASES)
def test_names_counters_and_arrows_are_those_of_the_chrome_trace(case, tmp_path):
    trace = generate(case, tmp_path / "t.sonde")
    decoded = decode(trace)
    events = read_json("export", trace, "-t", "chrome", "-o", "-")["traceEvents"]
    ns = lambda event, member: round(event[member] * 1000)
    alone = {"gpu_user_annotation", "overhead", "Trace"}  # what torch makes of the ranges
    function = lambda name: re.sub(r"^.*\(\d+\): ", "", name)  # ranges of Python functions have the name alone
    named = collections.Counter((function(readable(event["name"])), ns(event, "ts"), ns(event, "dur"))
                                for event in events if event["ph"] == "X" and event["cat"] not in alone)
    assert named == collections.Counter((function(s.name), s.start, s.duration) for s in decoded.slices)
    for name in {event["name"] for event in events if event["ph"] == "C"}:
        theirs = [(time, value if math.isfinite(value) else None)  # which JSON has no number for
                  for key, values in decoded.counters.items() if key[1] == readable(name) for time, value in values]
        assert [(ns(event, "ts"), event["args"]["value"]) for event in events
                if event["ph"] == "C" and event["name"] == name] == sorted(theirs, key=lambda value: value[0]), name
    ends = collections.defaultdict(lambda: ([], []))
    for event in events:
        if event["ph"] in "sf":
            ends[event["cat"], event["id"]][event["ph"] == "f"].append(ns(event, "ts"))
    arrows = lambda pairs: sorted((sorted(begins), sorted(arrive)) for begins, arrive in pairs if begins and arrive)
    assert arrows(([time for _, _, time in begins], [time for _, _, time in arrive])
                  for begins, arrive in decoded.flows.values()) == arrows(ends.values())


def test_something_of_each_kind_was_compared(tmp_path):
    """Arrows from forward to backward, from calls to kernels, between threads; counters; memory."""
    assert len(decode(generate("torch", tmp_path / "a.sonde")).flows) > 0
    assert len(decode(generate("gpu", tmp_path / "b.sonde")).flows) > 0
    assert len(decode(generate("links", tmp_path / "c.sonde")).flows) > 0
    assert len(decode(generate("counters", tmp_path / "d.sonde")).counters) > 0
    memory = decode(generate("memory", tmp_path / "e.sonde")).counters
    assert any(name == "memory" and len(values) > 2 for (_, name), values in memory.items())


def test_calls_lie_in_their_callers(tmp_path):
    """Also those that begin in the same nanosecond, and those of no length at all: callers are recorded after what they call."""
    alike = empty = 0
    for number in range(1, 9):
        trace = generate("variety", tmp_path / "t.sonde", str(number))
        events = read_json("export", trace, "-t", "chrome", "-o", "-")["traceEvents"]
        calls = {event["args"]["Python id"]: event for event in events if event.get("cat") == "python_function"}
        caller = lambda event: calls.get(event["args"]["Python parent id"])
        depth = lambda event: 1 + depth(caller(event)) if caller(event) else 0
        ns = lambda event, member: round(event[member] * 1000)
        expected = collections.Counter((str(event["tid"]), event["name"], ns(event, "ts"), ns(event, "dur"), depth(event))
                                       for event in calls.values())
        assert collections.Counter(piece[1:] for piece in decode(trace).slices if "): " in piece.name) == expected
        alike += sum(event["ts"] == caller(event)["ts"] for event in calls.values() if caller(event))
        empty += sum(event["dur"] == 0 for event in calls.values())
    assert alike > 20 and empty > 20


PERIOD = 1_000_000  # ns, of the 1000 Hz that the trace asked for


def test_samples_have_their_stacks(tmp_path):
    trace = generate("samples", tmp_path / "t.sonde")
    decoded = decode(trace)
    found = collections.Counter(tuple(decoded.stack(sample.callstack_iid)) for _, sample in decoded.samples)
    assert found
    expected, events, threads = collections.Counter(), collections.Counter(), set()
    on_cpu = 2  # with the interpreter's lock alone a thread may wait
    whole = read_json("export", trace, "-t", "json", "-o", "-")
    for event in whole["events"]:
        if event["kind"] == "sample" and event.get("stack") and event["state"] & on_cpu:
            stack = tuple((frame["function"], frame["file"]) for frame in reversed(event["stack"]))
            expected[stack] += event["covered_ns"]
            events[stack] += 1
            threads.add(event["thread"])
    # A sample stands for the period that was asked for, however long each was found in its stack.
    assert set(found) <= set(expected)
    assert all(abs(PERIOD * found[stack] - ns) <= PERIOD * (events[stack] + 1) for stack, ns in expected.items())
    assert abs(PERIOD * sum(found.values()) - sum(expected.values())) < PERIOD * len(threads)


def test_a_name_that_is_not_utf8_is_readable(tmp_path):
    names = {piece.name for piece in decode(generate("names", tmp_path / "t.sonde")).slices}
    assert any("\ufffd" in name for name in names)
