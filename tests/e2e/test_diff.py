# SPDX-License-Identifier: Apache-2.0
"""sonde diff on real programs: the command, sonde.diff, and PyTorch. Whether noise is told from changes is
measured on recordings (tests/unit/test_diffstats.c) and live by `make measure-diff`: a test here does not
depend on how quiet the machine is."""
import json
import re
import subprocess
import sys

import pytest

from cli_tools import ROOT, find, generate, needs_tools, read, read_json, sonde

STEPS = find("SONDE_STEPS", ROOT / "build/tests/e2e/e2e_steps")
pytestmark = [needs_tools, pytest.mark.skipif(not STEPS, reason="e2e_steps is not built: run `make`")]
OPERATORS = {"multiply", "shift", "root", "divide", "walk", "add", "modulo", "rotate"}


def record(path, slowed=-1, steps=12, factor=1.0):
    subprocess.run([str(STEPS), str(path), str(slowed), str(steps), str(factor)], check=True, timeout=120)
    return str(path)


def rows_of(answer):
    return {row["name"]: row for row in answer["rows"]}


def test_same_program(tmp_path):
    a, b = record(tmp_path / "a.sonde"), record(tmp_path / "b.sonde")
    answer = read_json("diff", a, b, "--json")
    rows = rows_of(answer)
    assert set(rows) == OPERATORS
    assert answer["totals"]["a_steps"] == answer["totals"]["b_steps"] == 12
    assert answer["totals"]["new"] == answer["totals"]["gone"] == answer["totals"]["renamed"] == 0
    for row in rows.values():
        assert row["a_count"] == row["b_count"] == 3 and row["also"] == ""
        assert row["a_samples"] == row["b_samples"] == 12
        assert row["verdict"] in ("same", "unclear", "slower", "faster")
        assert row["low_percent"] <= row["change_percent"] <= row["high_percent"]


def test_sums_are_the_reports(tmp_path):
    """What diff compares are the numbers of the ops view."""
    a = record(tmp_path / "a.sonde")
    ops = {row["key"]: row for row in read_json("report", a, "--view", "ops", "--json")["rows"]}
    for name, row in rows_of(read_json("diff", a, a, "--json")).items():
        assert row["a_mean_ns"] * 12 == pytest.approx(ops[name]["self_cpu_time_total"] * 1000, rel=1e-9)
        assert row["a_count"] * 12 == ops[name]["count"]
        assert row["change_percent"] == 0 and row["verdict"] in ("same", "unclear")


def test_operator_with_eight_times_the_work(tmp_path):
    """More than any machine's noise: found however busy it is; and CI fails."""
    a = record(tmp_path / "a.sonde")
    b = record(tmp_path / "b.sonde", slowed=2, factor=8.0)
    done = sonde("diff", a, b, "--json", "--fail-if", "time>+100%")
    assert done.returncode == 1 and b"--fail-if 'time>+100%'" in done.stderr
    row = rows_of(json.loads(done.stdout))["root"]
    assert row["verdict"] == "slower" and row["fails"] and row["change_percent"] > 100


def test_several_runs_a_side(tmp_path):
    a = [record(tmp_path / f"a{i}.sonde", steps=4) for i in range(3)]
    b = [record(tmp_path / f"b{i}.sonde", steps=4, slowed=2, factor=8.0) for i in range(3)]
    answer = read_json("diff", *a, "--", *b, "--json")
    assert answer["totals"]["runs_compared"] and answer["totals"]["a_steps"] == 12
    assert rows_of(answer)["root"]["change_percent"] > 100


def test_python_is_the_same(tmp_path):
    import sonde as package
    a, b = tmp_path / "a.sonde", tmp_path / "b.sonde"
    generate("diff", a, "0")
    generate("diff", b, "1031")
    answer = package.diff(a, b, fail_if="time>+3%")
    assert json.loads(answer.to_json()) == json.loads(
        sonde("diff", str(a), str(b), "--json", "--fail-if", "time>+3%").stdout)
    assert str(answer) == read("diff", a, b).decode()
    assert [row["name"] for row in answer.changed] == ["conv"]
    assert answer.failed == 2 and not answer  # conv, and the step
    assert package.diff([a, a], [a, a], fail_if="count>0%")
    with pytest.raises(package.Error, match="cannot compare 'speed'"):
        package.diff(a, b, by="speed")
    with pytest.raises(package.Error, match="nothing.sonde"):
        package.diff(a, tmp_path / "nothing.sonde")


MLP = """
import sys, torch, sonde
torch.set_num_threads(1)
for path, activation in zip(sys.argv[1::2], sys.argv[2::2]):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), getattr(torch.nn, activation)(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 32)
    with sonde.profile(record_shapes=True, profile_memory=True, with_flops=True, with_modules=True) as prof:
        for step in range(7):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            prof.step()
    prof.save(path)
"""


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("diff")
    traces = {name: str(folder / f"{name}.sonde") for name in "abc"}
    import warm_torch
    done = warm_torch.run("-c", MLP, traces["a"], "ReLU", traces["b"], "ReLU", traces["c"], "Tanh")
    assert done.returncode == 0, done.stderr
    return traces


def test_torch_same_network(networks):
    """What does not depend on the clock is equal, exactly: calls, bytes, FLOPs of every operator."""
    answer = read_json("diff", networks["a"], networks["b"], "--json")
    assert answer["totals"]["a_steps"] == answer["totals"]["b_steps"] == 6
    assert answer["totals"]["new"] == answer["totals"]["gone"] == answer["totals"]["renamed"] == 0
    for row in answer["rows"]:
        assert row["also"] == "" and row["a_count"] == row["b_count"], row
    assert sum(row["a_flops"] for row in answer["rows"]) > 0


def test_torch_another_activation(networks):
    answer = read_json("diff", networks["a"], networks["c"], "--json")
    rows = rows_of(answer)
    assert rows["aten::tanh"]["verdict"] == "new" or rows["aten::tanh"]["was"]
    assert not rows["aten::addmm"]["was"] and rows["aten::addmm"]["also"] == ""


def test_torch_modules(networks):
    rows = rows_of(read_json("diff", networks["a"], networks["b"], "--by", "modules", "--json"))
    linear = [name for name in rows if name.endswith(".0") or name.endswith(".2")]
    assert linear and all(rows[name]["a_samples"] == 6 for name in linear)


# ------------------------------------------------------------------------- --run

PROGRAM = """
import pathlib, sys
with open(pathlib.Path(__file__).with_name("turns"), "a") as turns:
    print(sys.argv[1], file=turns)
def same(n):
    for i in range(n): pass
def work(n):
    for i in range(n): pass
print("of no interest")
same(400000)
work(400000 * int(sys.argv[1]))
sys.exit(int(sys.argv[2]))
"""


@pytest.fixture
def commands(tmp_path):
    (tmp_path / "prog.py").write_text(PROGRAM)
    return lambda times, status=0: f"'{sys.executable}' '{tmp_path}/prog.py' {times} {status}"


def test_two_commands_are_run_in_turn(commands, tmp_path):
    folder = tmp_path / "kept"
    done = sonde("diff", "--run", "--record", "--functions --python-only", "--within", "2000", "--keep", folder, "--json",
                 commands(1), "--", commands(12))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["totals"]["a_runs"], answer["totals"]["b_runs"]) == (3, 3)  # it was close enough at once
    assert sorted(path.name for path in folder.iterdir()) == [f"{side}{n}.sonde" for side in "ab" for n in (1, 2, 3)]
    ended = {path.stem: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert sorted(ended, key=ended.get) == ["a1", "b1", "b2", "a2", "a3", "b3"]
    # A first run of each is neither compared nor kept.
    assert (tmp_path / "turns").read_text().split() == ["1", "12", "1", "12", "12", "1", "1", "12"]
    work = next(row for row in answer["rows"] if "work" in row["name"])
    assert work["change_percent"] > 200 and (work["a_count"], work["b_count"]) == (1, 1)
    said = done.stderr.decode().splitlines()
    assert len(said) == 1 and said[0].startswith("sonde: 3 runs of each in ")


def test_time_ends_the_runs(commands, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    done = sonde("diff", "--run", "--within", "1", "--for", "0", "--record", "--functions", "--json", commands(1), commands(1))
    assert done.returncode == 0 and json.loads(done.stdout)["totals"]["a_runs"] == 3
    assert b"not to the 1 % asked: --for gives it more seconds" in done.stderr or b"known to 0." in done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("words, status, said", [
    (["--run", "true"], 2, "expected two commands"),
    (["--run", "true | cat", "true"], 2, "'true | cat': only one command with its words"),
    (["--run", "true $(ls)", "true"], 2, "commands inside of commands are not run"),
    (["--run", "true 'a", "true"], 2, "a quote is not closed"),
    (["--run", "", "true"], 2, "the command of A is empty"),
    (["--keep", "x", "a.sonde", "b.sonde"], 2, "--keep requires --run"),
    (["--run", "--record", "--nonesuch", "true", "true"], 1, "--nonesuch"),
    (["--run", "nonesuch", "true"], 1, "'nonesuch' ended with status 127"),
    (["--run", "--record", "true a b", "--", "true"], 2,
     "--record: expected options of sonde run in one word ('--ops --memory'), got 'true a b'"),
    (["--run", "true", "--record", "--functions"], 2, "got 1; --record took '--functions'"),
])
def test_commands_that_cannot_be_run(words, status, said, tmp_path):
    done = sonde("diff", *words, cwd=tmp_path)
    assert done.returncode == status and said in done.stderr.decode(), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_fails_ends_it(commands, tmp_path):
    done = sonde("diff", "--run", "--record", "--functions", commands(1), commands(1, status=7))
    assert done.returncode == 1 and done.stderr.decode().endswith("ended with status 7\n")
    assert done.stdout == b""


def test_runs_without_a_sample_are_compared_by_their_times(tmp_path):
    # With a sample a second these have none. The short one waits too: its start alone would vary by a multiple.
    short, long = (f"'{sys.executable}' -c 'import time; time.sleep({seconds})'" for seconds in (.1, .8))
    done = sonde("diff", "--run", "--record", "--sample 1", "--within", "2000", "--keep", tmp_path / "runs", short, "--", long,
                 "--fail-if", "time>+10%")
    assert done.returncode == 1 and b"beyond the limit" in done.stderr, done.stderr
    said = done.stdout.decode().splitlines()
    assert re.match(r"The run: [\d.]+ms -> [\d.]+ms on average; slower: ", said[1]), said
    assert re.match(r"No rows but the run: run 1 of A lasted [\d.]+ms and has no samples, functions or operators; "
                    r"use --record '--functions', or a longer program$", said[2]), said
    assert any(line.split()[:3] == ["the", "run", "slower"] for line in said)
    a, b = ([tmp_path / "runs" / f"{side}{n}.sonde" for n in (1, 2, 3)] for side in "ab")
    done = sonde("diff", *b, "--", *a, "--fail-if", "time>+10%", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["totals"]["by"] == "run" and answer["totals"]["whole_verdict"] == "faster"
    row, = answer["rows"]
    assert row["name"] == "the run" and 8e8 < row["a_mean_ns"] and row["b_mean_ns"] < row["a_mean_ns"]


def test_memory_of_runs():
    small, large = (f"'{sys.executable}' -c 'x = bytearray({size} << 20)'" for size in (1, 64))
    done = sonde("diff", "--run", "--record", "--heap", "--within", "2000", small, large, "--json", "--fail-if", "memory>+5%")
    assert done.returncode == 1, done.stderr
    row, = json.loads(done.stdout)["rows"]
    assert row["fails"] and 62 << 20 < row["b_bytes"] - row["a_bytes"] < 64 << 20


def test_a_limit_on_what_is_not_recorded_ends_the_runs_early(commands):
    done = sonde("diff", "--run", "--record", "--functions", commands(1), "--", commands(1), "--fail-if", "time>+900%,memory>+5%")
    assert done.returncode == 2 and done.stdout == b"", done.stdout
    assert done.stderr.decode() == (
        "sonde: diff: --fail-if: memory: run 1 of A has no memory by functions: sonde run --ops --memory records that of "
        "operators and modules, --heap that of the run (--by run)\n")
