# SPDX-License-Identifier: Apache-2.0
"""torch.profiler's traces of a GPU (tests/data/gpu) as traces of sonde, for tests without a GPU.

Everything that torch's Chrome trace holds of operators, ranges, calls of CUDA's API, kernels, copies,
fills, memory and the devices is written as sonde's probes would have recorded it, one tick of the
clock being a nanosecond: the two then show the same events.
"""
import decimal
import gzip
import json
import pathlib
import re
import struct
import subprocess

import pytest

from cli_tools import ROOT, SONDE, find

DATA = ROOT / "tests/data/gpu"
TWO = "two"  # "streams" on two GPUs: all of one stream was done by the second
NAMES = ["train", "train_stack", "streams", "graph", "compile", TWO]
SECOND_STREAM, SECOND_CONTEXT = 46, 2
GEN_LINES = find("SONDE_GEN_LINES", ROOT / "build/tests/gen/gen_lines")
needs_gen_lines = pytest.mark.skipif(not (SONDE and GEN_LINES), reason="the programs sonde and "
                                     "gen_lines are not built: run `make`")

FORMAT = ROOT / "src/format"


def codes(name, macro):
    """The numbers of a list of src/format: {NAME: number}."""
    text = (FORMAT / name).read_text()
    return {m[1]: int(m[2]) for m in re.finditer(rf"^{macro}\((\w+),\s*(\d+)", text, re.M)}


def event_kinds():
    text = (FORMAT / "events.def").read_text()
    return {m[1]: (int(m[3]) - 1) << 5 | int(m[2])
            for m in re.finditer(r"^SND_EVENT\((\w+),\s*(\d+), (\d)", text, re.M)}


def fact_fields():
    """{fact: (kind, {field: (number, type)})}"""
    text = (FORMAT / "facts.def").read_text()
    facts = {m[1]: (int(m[2]), {}) for m in re.finditer(r"^SND_FACT\((\w+), (\d+)", text, re.M)}
    for m in re.finditer(r"^SND_FIELD\((\w+), (\w+), (\d+), (\w+)", text, re.M):
        facts[m[1]][1][m[2]] = int(m[3]), m[4]
    return facts


KIND, ATTR, FACTS = event_kinds(), codes("attrs.def", "SND_ATTR"), fact_fields()
STRING, SHAPES, FACT, QUEUE, WORK = 1, 2, 10, 11, 12
USER_SCOPE, BACKWARD_SCOPE, FUNCTION_SCOPE = 8, 2, 1
DTYPES = {"unsigned char": 0, "long int": 4, "float": 6, "double": 7, "bool": 11}
WORK_KINDS = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3, "overhead": 5}
CUDA = 1
OWN_ARGUMENTS = ("External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id", "Input Dims",
                 "Input type", "Input Strides", "Concrete Inputs")


def stored(name):
    """The file that a name's data comes from."""
    return "streams" if name == TWO else name


def load(name, what):
    if name == TWO:
        return {"trace": second_in_trace, "events": second_in_events}[what](load(stored(TWO), what))
    with gzip.open(DATA / f"{name}.{what}.json.gz") as file:
        return json.loads(file.read(), parse_float=decimal.Decimal if what == "trace" else float)


def second_in_trace(trace):
    """torch's Chrome trace, with the stream's events and names on GPU 1: its numbers as torch writes those of two."""
    moved = [e for e in trace["traceEvents"] if e["pid"] == 0 and e["tid"] == SECOND_STREAM]
    for e in moved:
        e["pid"] = 1
        if "device" in e.get("args", {}):
            e["args"].update(device=1, context=SECOND_CONTEXT)
    assert sum(e["ph"] == "X" for e in moved) > 3
    trace["deviceProperties"].append({**trace["deviceProperties"][0], "id": 1})
    return trace


def second_in_events(data):
    """The same of torch's events: rows of the stream, and kernels of operators, which have its durations."""
    def duration(row):
        return round((row["end_us"] - row["start_us"]) * 1000)
    rows = [row for row in data["events"] if row["device_type"] == "DeviceType.CUDA"]
    second = {(row["name"], duration(row)) for row in rows if row["device_resource_id"] == SECOND_STREAM}
    assert second and not second & {(row["name"], duration(row)) for row in rows
                                    if row["device_resource_id"] != SECOND_STREAM}
    for row in data["events"]:
        if row["device_type"] == "DeviceType.CUDA" and row["device_resource_id"] == SECOND_STREAM:
            row["device_index"] = 1
        for kernel in row["kernels"]:
            if (kernel[0], round(kernel[2] * 1000)) in second:
                kernel[1] = 1
    return data


def tables(name):
    """[(what was called, what it printed)]"""
    with gzip.open(DATA / f"{stored(name)}.tables.txt.gz", "rt") as file:
        text = file.read().replace("\nraises", "\n## events().table()\nraises")  # it had no title
    parts = re.split(r"^## ((?:key_averages|events)\(.*)\n", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2]))


class Lines:
    """What gen_lines reads: tables numbered as they are written, events of threads."""

    def __init__(self):
        self.lines, self.known, self.count = [], {}, {}

    def number(self, kind):
        self.count[kind] = self.count.get(kind, 0) + 1
        return self.count[kind]

    def thread(self, tid, name):
        self.number(STRING)
        self.lines.append(f"thread {tid} 0 {name}")

    def meta(self, key, value):
        self.number(STRING), self.number(STRING)
        self.lines.append(f"meta {key}\t{value}")

    def intern(self, kind, data):
        if (kind, data) not in self.known:
            self.known[kind, data] = self.number(kind)
            self.lines.append(f"string {data}" if kind == STRING else
                              f"record {kind} {self.known[kind, data]} {data.hex()}")
        return self.known[kind, data]

    def string(self, text):
        return self.intern(STRING, text)

    def event(self, thread, ns, kind, *words):
        data = struct.pack(f"<{1 + len(words)}Q", KIND[kind], *words)
        self.lines.append(f"event {thread} {ns} {data.hex()}")

    def attr(self, thread, key, value):
        small = value < 1 << 48
        words = [value << 16 | ATTR[key] << 8 | KIND["ATTR"]] if small else \
            [ATTR[key] << 8 | KIND["ATTR64"], value]
        self.lines.append(f"event {thread} 0 {struct.pack(f'<{len(words)}Q', *words).hex()}")

    def fact(self, name, number, **fields):
        kind, known = FACTS[name]
        members = b""
        for field, value in fields.items():
            place, form = known[field]
            text = form == "TEXT"
            members += struct.pack("<HHIQ", place, 3 if text else 1,
                                   self.string(value) if text else 0, 0 if text else value)
        head = struct.pack("<IIII", kind, 0, number, len(fields))
        self.lines.append(f"record {FACT} {self.number(FACT)} {(head + members).hex()}")


def pair(low, high):
    return (high & 0xffffffff) << 32 | low & 0xffffffff


def shape_items(dims, kind):
    if kind == "TensorList":
        return struct.pack("<BBHI", 2, 255, 0, len(dims)) + b"".join(
            shape_items(each, "float") for each in dims)
    if kind in DTYPES:
        return struct.pack("<BBHI", 1, DTYPES[kind], 0, len(dims)) + struct.pack(
            f"<{len(dims)}q", *dims)
    return struct.pack("<BBHI", 3, 7, 0, 0) if kind == "Scalar" else struct.pack("<BBHI", 0, 255, 0, 0)


class Converter:
    def __init__(self, name, functions=False, stacks=False):
        self.trace, self.out = load(name, "trace"), Lines()
        self.events = self.trace["traceEvents"]
        self.pid = next(e["pid"] for e in self.events if e.get("cat") in ("cpu_op", "user_annotation"))
        self.origin = self.ns(next(e["ts"] for e in self.events if e.get("cat") == "Trace"))
        self.functions, self.stacks, self.python = functions, stacks, []

    @staticmethod
    def ns(us):
        return int(decimal.Decimal(us) * 1000)

    def when(self, event):
        return self.ns(event["ts"]) - self.origin

    def end(self, event):
        return self.when(event) + self.ns(event.get("dur", 0))

    def of(self, *categories):
        return [e for e in self.events if e.get("cat") in categories and e["ph"] in "Xi"]

    # ------------------------------------------------------------------------ tables

    def threads(self):
        names = {}
        for e in self.events:
            if e["name"] == "thread_name" and e["pid"] == self.pid:
                names.setdefault(e["tid"], re.match(r"thread \d+ \((.*)\)", e["args"]["name"])[1])
        self.places = {}
        for tid in sorted(names, key=lambda tid: tid != self.pid):
            self.out.thread(tid, names[tid])
            self.places[tid] = len(self.places) + 1

    def head(self):
        flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
        self.threads()
        self.out.meta("torch.probe", "{}")
        self.out.meta("torch.options", json.dumps({f: bool(self.trace.get(f)) for f in flags} |
                                                  {"cuda": True}))
        for tid, place in self.places.items():
            self.out.meta(f"torch.thread {tid}", place)
        self.out.fact("CUDA", 0, DRIVER_VERSION=self.trace["cuda_driver_version"],
                      RUNTIME_VERSION=self.trace["cuda_runtime_version"],
                      CUPTI_VERSION=self.trace["cupti_version"])
        for d in self.trace["deviceProperties"]:
            self.out.fact("DEVICE", d["id"] + 1, NAME=d["name"], MEMORY_BYTES=d["totalGlobalMem"],
                          CAPABILITY_MAJOR=d["computeMajor"], CAPABILITY_MINOR=d["computeMinor"],
                          SMS=d["numSms"], WARP=d["warpSize"],
                          THREADS_PER_SM=d["maxThreadsPerMultiprocessor"],
                          THREADS_PER_BLOCK=d["maxThreadsPerBlock"],
                          REGISTERS_PER_SM=d["regsPerMultiprocessor"],
                          REGISTERS_PER_BLOCK=d["regsPerBlock"],
                          SHARED_PER_SM=d["sharedMemPerMultiprocessor"],
                          SHARED_PER_BLOCK=d["sharedMemPerBlock"],
                          SHARED_PER_BLOCK_OPTIN=d["sharedMemPerBlockOptin"], BLOCKS_PER_SM=32,
                          SHARED_RESERVED=1024)

    def shapes(self, args, what):
        if "Input Dims" not in args:
            return 0
        items = b"".join(shape_items(dims, kind) for dims, kind in zip(args[what], args["Input type"]))
        return self.out.intern(SHAPES, struct.pack("<II", sum(
            1 + (len(dims) if kind == "TensorList" else 0)
            for dims, kind in zip(args[what], args["Input type"])), 0) + items)

    # ------------------------------------------------------------------------ ranges

    def attributes(self, thread, e, parent):
        args, out = e.get("args", {}), self.out
        if e["cat"] in ("cuda_runtime", "cuda_driver"):
            out.attr(thread, "API", args["correlation"] | args["cbid"] << 32 |
                     (e["cat"] == "cuda_driver") << 47)
            return
        evaluates = "autograd::engine::evaluate_function: "
        backward = parent is not None and parent["name"] == evaluates + e["name"]
        out.attr(thread, "SCOPE", USER_SCOPE if e["cat"] == "user_annotation" else
                 BACKWARD_SCOPE if backward else FUNCTION_SCOPE)
        if "Sequence number" in args and not e["name"].startswith(evaluates):
            out.attr(thread, "SEQUENCE", args["Sequence number"])
            if args.get("Fwd thread id"):
                out.attr(thread, "FWD_THREAD", args["Fwd thread id"])
        if "Input Dims" in args:
            out.attr(thread, "STRIDES", self.shapes(args, "Input Strides"))
            if any(args["Concrete Inputs"]):
                out.attr(thread, "ARGUMENTS", out.string(json.dumps(args["Concrete Inputs"])))
        named = {key: value for key, value in args.items() if key not in OWN_ARGUMENTS}
        if named:
            out.attr(thread, "KEYWORDS", out.string(json.dumps(named)))

    def frames_around(self, e):
        """[(file, line, function)] of the Python functions that the operator was called from, innermost first."""
        if not self.python:
            for f in sorted(self.of("python_function"), key=lambda f: f["dur"]):
                m = re.match(r"(.*)\((\d+)\): (.*)", f["name"])
                if m:
                    self.python.append((f["tid"], self.when(f), self.end(f), m.groups()))
        start, end = self.when(e), self.end(e)
        return [place for tid, first, last, place in self.python if tid == e["tid"] and first <= start and last >= end]

    def stack(self, thread, e):
        """As the probe: of operators, but not of what runs backward, which has no Python around it there."""
        number = 0
        for file, line, function in reversed(self.frames_around(e)):
            frame = self.out.intern(3, struct.pack("<IIII", self.out.string(function), self.out.string(file), int(line),
                                                   int(line) << 1))
            number = self.out.intern(4, struct.pack("<II", number, frame))
        if number:
            self.out.attr(thread, "STACK", number)

    def begin(self, thread, e, parent):
        shapes = self.shapes(e.get("args", {}), "Input Dims")
        self.out.event(thread, self.when(e), "BEGIN", pair(self.out.string(e["name"]), shapes))
        self.attributes(thread, e, parent)
        if self.stacks and e["cat"] == "cpu_op":
            self.stack(thread, e)

    def counter(self, thread, e, what, value):
        bits, = struct.unpack("<Q", struct.pack("<d", value))
        name = self.out.string(f"device.{what} cuda:{e['args']['Device Id']}")
        self.out.event(thread, self.when(e), "COUNTER", name, bits)

    def memory(self, thread, e):
        """As the probe: what is held before the block when it changes, what is in use after the first."""
        args = e["args"]
        device, cuda = args["Device Type"] << 16 | args["Device Id"] & 0xffff, args["Device Type"] == CUDA
        first = cuda and device not in self.held
        if cuda and self.held.get(device) != args["Total Reserved"]:
            self.held[device] = args["Total Reserved"]
            self.counter(thread, e, "reserved", args["Total Reserved"])
        self.out.event(thread, self.when(e), "ALLOC" if args["Bytes"] >= 0 else "FREE",
                       device, args["Addr"], abs(args["Bytes"]))
        if first:
            self.counter(thread, e, "allocated", args["Total Allocated"])

    def lane(self, tid, thread):
        """Ranges that nest, by their begins; memory where it happened."""
        ranges = sorted((e for e in self.of("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver")
                         if e["tid"] == tid), key=lambda e: (e["ts"], -e["dur"]))
        moments = sorted((e for e in self.of("cpu_instant_event") if e["tid"] == tid),
                         key=lambda e: (e["ts"], e["args"]["Ev Idx"]))
        moments += [e for e in self.of("python_function") if e["tid"] == tid] if self.functions else []
        moments.sort(key=self.end)
        open_ = []

        def up_to(ns):
            while open_ and self.end(open_[-1]) <= ns:
                memory_up_to(self.end(open_[-1]))
                self.out.event(thread, self.end(open_.pop()), "END")
            memory_up_to(ns)

        def memory_up_to(ns):
            while moments and self.end(moments[0]) <= ns:
                e = moments.pop(0)
                (self.function if e["ph"] == "X" else self.memory)(thread, e)

        for e in ranges:
            up_to(self.when(e))
            assert not open_ or self.end(e) <= self.end(open_[-1]), (e, open_[-1])
            self.begin(thread, e, open_[-1] if open_ else None)
            open_.append(e)
        up_to(1 << 62)

    def function(self, thread, e):
        m = re.match(r"(.*)\((\d+)\): (.*)", e["name"])
        file, line, function = m.groups() if m else ("", 0, e["name"])
        frame = self.out.intern(3, struct.pack("<IIII", self.out.string(function),
                                               self.out.string(file) if file else 0, int(line),
                                               int(line) << 1))
        args, ticks = e["args"], self.ns(e["dur"])
        self.out.event(thread, self.when(e) + ticks, "FUNCTION", pair(frame, 0), ticks,
                       pair(args["Python id"], args.get("Python parent id") or 0))

    # ------------------------------------------------------------------------ the device

    def device(self):
        thread = self.places[self.pid]
        for e in sorted(self.of(*WORK_KINDS), key=lambda e: e["ts"]):
            args = e.get("args", {})
            shared = args.get("shared memory", 0)
            work = struct.pack("<14IQ", self.out.string(e["name"]), WORK_KINDS[e["cat"]],
                               *args.get("grid", (0, 0, 0)), *args.get("block", (0, 0, 0)),
                               args.get("registers per thread", 0), shared, 0, 0, 0, 0,
                               args.get("bytes", 0))
            queue = 0 if "stream" not in args else self.out.intern(QUEUE, struct.pack(
                "<IIII", CUDA << 16 | args["device"], args["context"], args["stream"], 0))
            self.out.event(thread, self.when(e), "DEVICE",
                           pair(self.out.intern(WORK, work), queue), self.ns(e["dur"]),
                           args.get("correlation", 0))

    def write(self, path):
        self.held = {}
        self.head()
        for tid, thread in self.places.items():
            self.lane(tid, thread)
        self.device()
        subprocess.run([GEN_LINES, str(path), str(self.pid)], check=True, timeout=60,
                       input="\n".join(self.out.lines).encode() + b"\n")
        return path


def original(name, folder, functions=False):
    """torch's own file of that name, as sonde reads it, with its Python functions if wanted; its path."""
    trace = load(name, "trace")
    events = [e for e in trace["traceEvents"] if functions or e.get("cat") != "python_function"]
    if name != TWO and len(events) == len(trace["traceEvents"]):
        return DATA / f"{name}.trace.json.gz"
    path = pathlib.Path(folder) / f"{name}.json"

    class Digits(float):
        """A time by its digits: a float has fewer."""
        def __repr__(self):
            return self.text

    def shown(value):
        if isinstance(value, decimal.Decimal):
            number = Digits(value)
            number.text = str(value)
            return number
        if isinstance(value, dict):
            return {k: shown(v) for k, v in value.items()}
        return [shown(v) for v in value] if isinstance(value, list) else value
    path.write_text(json.dumps(shown({**trace, "traceEvents": events})))
    return path


def convert(name, folder, functions=False, stacks=False):
    """The trace of that name as one of sonde's; its path."""
    path = pathlib.Path(folder) / f"{name}{'-functions' if functions else ''}{'-stacks' if stacks else ''}.sonde"
    return Converter(name, functions, stacks).write(path)
