# SPDX-License-Identifier: Apache-2.0
"""Every session and every report inside every other: each has its own result, or is refused by name.

Sessions of Python programs share a recording. Operators of PyTorch have one owner at a time. What
measures a model by the clock has the recording for itself.
"""
import os
import subprocess
import sys
import textwrap
import warnings

import pytest

torch = pytest.importorskip("torch")

import sonde  # noqa: E402
import warm_torch  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.first(x)
        return self.second(hidden)


NET = Net().eval()
INPUT = torch.randn(3, 4)


def work():
    with torch.no_grad():
        NET(INPUT)


def text_of(result):
    return result.report()


def calls(result):
    """How often work() is in the table."""
    return sum(int(line.split()[0]) for line in text_of(result).splitlines() if line.endswith("(work)"))


def hits(result):
    return next(int(line.split()[1]) for line in text_of(result).splitlines() if line.endswith("NET(INPUT)"))


def occurrences(result):
    return next(int(line.split()[5]) for line in text_of(result).splitlines() if line.endswith("NET(INPUT)"))


def operators(result):
    return sum(row.count for row in result.key_averages() if row.key == "aten::linear") // 2


def tensor_memory(result):
    """Of forward's first line: 3 rows of 8 numbers, 96 bytes, each time; and no other function."""
    rows = [row for row in result.rows() if "self.first(x)" in str(row)]
    assert len(rows) == 1, result.report()
    return rows[0]["allocs"]


SESSIONS = {
    "functions": (sonde.functions, calls),
    "timeline": (lambda: sonde.functions(mode="trace"), calls),
    "lines": (lambda: sonde.lines(work), hits),
    "line_memory": (lambda: sonde.line_memory(work), occurrences),
    "sample": (lambda: sonde.sample(hz=1000), lambda result: bool(text_of(result))),
    "profile": (lambda: sonde.profile(profile_memory=True), operators),
    "tensor_lines": (lambda: sonde.tensor_lines(Net.forward), tensor_memory),
}
REPORTS = {
    "memory_report": lambda: sonde.memory_report(NET).report().count("Net.first"),
    "benchmark": lambda: sonde.benchmark(NET, INPUT, num_runs=2, measure_peak=False)["params"],
    "summary": lambda: len(sonde.summary(NET, INPUT).rows()),
    "graph": lambda: len(sonde.graph(NET, INPUT, num_runs=2).rows()),
    "layers": lambda: len(sonde.layers(NET, INPUT, results="r.yml").results),
}
OWNERS = {"profile", "tensor_lines"}
ALONE = {"benchmark", "summary", "graph", "layers"}
REFUSALS = RuntimeError, sonde.LayersError


def refusal(outer, inner):
    """What the error says; None: it works."""
    if outer in OWNERS and inner in OWNERS | ALONE:
        return "is already recording"
    return "needs a recording of its own" if inner in ALONE else None


def run_inside(inner):
    """The result's number of calls, and what to ask again once the outer one has ended."""
    if inner in REPORTS:
        return REPORTS[inner]()
    make, read = SESSIONS[inner]
    with make() as result:
        work()
    return lambda: read(result)


@pytest.fixture(autouse=True)
def a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "already being recorded with other options"
        yield


@pytest.mark.parametrize("inner", [*SESSIONS, *REPORTS])
@pytest.mark.parametrize("outer", SESSIONS)
def test_inside(outer, inner):
    make, read = SESSIONS[outer]
    refused = refusal(outer, inner)
    expected = 1 if inner in SESSIONS or refused else run_inside(inner)
    count = 2 if refused or inner not in SESSIONS else 3
    with make() as result:
        work()
        if refused:
            with pytest.raises(REFUSALS, match=refused):
                run_inside(inner)
        else:
            found = run_inside(inner)
            assert (found() if inner in SESSIONS else found) == expected
        work()
    if not refused and inner in SESSIONS:
        assert found() == expected
    assert read(result) == (True if outer == "sample" else count)


def test_two_reports_in_one_session(tmp_path):
    """Neither has rows of the other."""
    small = torch.nn.Linear(1, 1)
    with sonde.functions():
        first, second = sonde.memory_report(NET), sonde.memory_report(small)
        with sonde.tensor_lines(Net.forward, work) as both:
            work()
        with sonde.tensor_lines(Net.forward) as one:
            work()
    assert (len(first.rows()), len(second.rows())) == (4, 2)
    assert tensor_memory(both) == tensor_memory(one) == 1
    assert "NET(INPUT)" in both.report() and "NET(INPUT)" not in one.report()
    second.save(tmp_path / "kept.sonde")
    assert sonde.Trace(tmp_path / "kept.sonde").report(view="tensors").count("Linear") == 2


@pytest.mark.parametrize("options", [[], ["--functions"], ["--sample", "--ops"]], ids=" ".join)
def test_under_run(options, tmp_path):
    (tmp_path / "prog.py").write_text(textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
        from test_sessions_inside import ALONE, REFUSALS, REPORTS, SESSIONS, run_inside
        import warnings
        warnings.simplefilter("ignore")
        for name in [*SESSIONS, *REPORTS]:
            if name == "profile":
                continue  # shows what is in the trace of `sonde run`
            try:
                found = run_inside(name)
                print(name, found() if name in SESSIONS else found)
            except REFUSALS as error:
                print(name, "refused" if "needs a recording of its own" in str(error) else error)
        """))
    sonde_command = os.path.join(os.path.dirname(sys.executable), "sonde")
    python = warm_torch.python() if options else sys.executable  # without options, torch is imported under the run
    done = subprocess.run([sonde_command, "run", "-q", *options, "-o", "t.sonde", "--", python, "prog.py"],
                          cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    expected = {**dict.fromkeys(SESSIONS, "1"), "sample": "True", "memory_report": "2",
                **dict.fromkeys(ALONE, "refused")}
    del expected["profile"]
    assert found == expected
    kept = subprocess.run([sonde_command, "report", "t.sonde", "--view", "tensors"], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE)
    assert kept.stdout.count("Net.first") == 2


PROFILED = """
import warnings, torch
warnings.simplefilter("ignore")
import sonde
model = torch.nn.Linear(4, 4)
x = torch.randn(2, 4)
def work():
    model(x).sum().backward()
def profile(**options):
    work()  # outside: not its own
    with sonde.profile(record_shapes=True, **options) as prof:
        for _ in range(4):
            work()
            prof.step()
    work()
    return {(row.key, row.count, str(row.input_shapes)) for row in prof.key_averages(group_by_input_shape=True)}
def steps():
    return profile(schedule=sonde.schedule(wait=1, warmup=1, active=2))
"""


@pytest.mark.parametrize("options", [["--functions"], ["--sample"]], ids=" ".join)
@pytest.mark.parametrize("which", ["profile", "steps"])
def test_operators_of_a_profile_under_run(options, which, tmp_path):
    """Those that it has alone, where the run was not asked for any; and none of before and after."""
    (tmp_path / "prog.py").write_text(PROFILED + f"print(sorted({which}()))\n")
    command = [warm_torch.python(), "prog.py"]
    run = [os.path.join(os.path.dirname(sys.executable), "sonde"), "run", "-q", *options, "-o", "t.sonde", "--"]
    alone = warm_torch.run("prog.py", cwd=tmp_path)
    inside = subprocess.run(run + command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, timeout=300, check=True)
    assert "aten::addmm" in alone.stdout
    assert inside.stdout == alone.stdout
