# SPDX-License-Identifier: Apache-2.0
"""The examples, built by the very commands of examples/README.md, against the installed library."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SONDE = ROOT / ".venv/bin/sonde"


def run(command, **extra):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **extra)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The examples in a copy of their folder, those in C compiled by the README's first shell block."""
    base = tmp_path_factory.mktemp("examples")
    folder = base / "examples"
    shutil.copytree(ROOT / "examples", folder)
    (base / ".venv").symlink_to(ROOT / ".venv")
    in_c, *_ = blocks(folder)
    run(["sh", "-ec", in_c], cwd=folder)
    return folder


def blocks(folder):
    return re.findall(r"```sh\n(.*?)```", (folder / "README.md").read_text(), re.S)


@pytest.fixture(scope="module")
def languages(built):
    """Those in other languages, by the README's other blocks."""
    _, *others = blocks(built)
    for block in others:
        run(["sh", "-ec", block], cwd=built, env={**os.environ, "GOCACHE": str(built.parent / "go"), "GOFLAGS": "-mod=mod"})
    return built


@pytest.mark.long
@pytest.mark.parametrize("language", ["rust", "go", "fortran"])
def test_languages_without_the_header(languages, language):
    """They link the library's plain functions: the same program in each, with the same numbers."""
    trace = f"{language}.sonde"
    said = run([SONDE, "run", "-q", "-o", trace, "--", f"./primes-{language}"], cwd=languages)
    assert said.splitlines() == ["1229 primes below 10000", "2262 primes below 20000", "3245 primes below 30000"]
    rows = json.loads(run([SONDE, "report", trace, "--view", "ops", "--json"], cwd=languages))["rows"]
    crossed = sum(len(range(i * i, limit, i)) for limit in (10_000, 20_000, 30_000)
                  for i in range(2, limit) if all(i % d for d in range(2, int(i ** 0.5) + 1)))
    assert {row["key"]: (row["count"], row["flops"]) for row in rows} == {"count": (3, 0), "sieve": (3, crossed)}
    tree = json.loads(run([SONDE, "report", trace, "--view", "tree", "--json"], cwd=languages))["rows"]
    assert [row["name"] for row in tree if row["depth"] > 0] == ["count", "sieve"]
    events = json.loads(run([SONDE, "export", trace, "--to", "json", "-o", "-"], cwd=languages))["events"]
    assert [event["value"] for event in events if event["kind"] == "counter"] == [1229, 2262, 3245]
    assert [event["name"] for event in events if event["kind"] == "mark"] == ["done"]
    assert len([event for event in events if event["kind"] == "step"]) == 3


def test_convnet_by_run(built):
    said = run([SONDE, "run", "-o", "convnet.sonde", "--", "./convnet", "3"], cwd=built)
    assert "3 batches of 8x3x224x224" in said
    rows = json.loads(run([SONDE, "report", "convnet.sonde", "--view", "ops", "--json"], cwd=built))["rows"]
    by_name = {row["key"]: row for row in rows}
    assert by_name["conv2d"]["count"] == 12
    assert by_name["conv2d"]["flops"] == 12 * 65028096
    assert all(by_name[f"conv{i}"]["count"] == 3 for i in (1, 2, 3, 4))
    assert by_name["decode"]["count"] == 24
    # A convolution allocates its output; forward frees its input and what lies between.
    batch = 8 * 3 * 224 * 224 * 4
    assert by_name["conv1"]["cpu_memory_usage"] == 3 * batch
    assert by_name["forward"]["cpu_memory_usage"] == 0


def test_convnet_shapes_steps_threads(built):
    run([SONDE, "run", "-o", "more.sonde", "--", "./convnet", "2"], cwd=built)

    def rows(view, *more):
        return json.loads(run([SONDE, "report", "more.sonde", "--view", view, "--json", *more],
                              cwd=built))["rows"]

    shapes = {row["key"]: row["input_shapes"] for row in rows("ops", "--group-by", "shape")}
    assert json.loads(str(shapes["conv2d"]).replace("'", '"')) == [[8, 3, 224, 224], [3, 3, 3, 3], [3]]
    assert len(rows("steps")) == 2
    assert {"main", "loader"} <= {row["name"] for row in rows("threads")}


def test_convnet_records_itself(built):
    """The same program without `sonde run`: sonde_start does it."""
    run(["./convnet", "1"], cwd=built, env={"CONVNET_TRACE": str(built / "own.sonde")})
    assert "conv2d" in run([SONDE, "report", "own.sonde"], cwd=built)


def test_same_result_recorded_or_not(built):
    plain = run(["./convnet", "1"], cwd=built)
    assert plain == run([SONDE, "run", "-o", "same.sonde", "--", "./convnet", "1"], cwd=built)


def test_schedule(built):
    said = run(["./schedule"], cwd=built)
    paths = re.findall(r"^cycle \d+ ended with step \d+: (.+)$", said, re.M)
    assert len(paths) == 2 and len(set(paths)) == 2
    for path in paths:  # two active steps each
        rows = json.loads(run([SONDE, "report", path, "--view", "ops", "--json"], cwd=built))["rows"]
        assert [(row["key"], row["count"]) for row in rows] == [("work", 2)]
    assert "work" in run([SONDE, "report", "schedule-traces"], cwd=built)


def test_longest_reads_what_convnet_recorded(built):
    run([SONDE, "run", "-o", "read.sonde", "--", "./convnet", "2"], cwd=built)
    rows = json.loads(run([SONDE, "report", "read.sonde", "--view", "ops", "--json"], cwd=built))["rows"]
    said = [line.split(None, 3) for line in run(["./longest", "read.sonde", "100"], cwd=built).splitlines()]
    assert said[0][-1].endswith("range")
    assert {name: int(calls) for _, _, calls, name in said[1:]} == {row["key"]: row["count"] for row in rows}
    done = subprocess.run(["./longest", "convnet.c"], cwd=built, capture_output=True, text=True)
    assert done.returncode == 1 and "longest: convnet.c: " in done.stderr
