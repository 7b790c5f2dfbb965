# SPDX-License-Identifier: Apache-2.0
"""The recorder, the reader and the command line, built with musl (the stage `musl` of tools/test)."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILT = os.environ.get("SONDE_MUSL")
pytestmark = pytest.mark.skipif(not BUILT, reason="there is no build with musl: run `make musl`")

PROGRAM = ROOT / "tests/e2e/programs/two_layers.c"


def sonde(*arguments):
    return subprocess.run([f"{BUILT}/src/cli/sonde", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    place = tmp_path_factory.mktemp("musl")
    subprocess.run(["musl-gcc", "-o", place / "layers", PROGRAM, f"-I{ROOT}/include", f"-L{BUILT}/src", "-lsonde_record",
                    "-pthread", f"-Wl,-rpath,{BUILT}/src"], check=True)
    done = sonde("run", "-o", place / "t.sonde", "--", place / "layers")
    assert done.returncode == 0, done.stderr
    return place / "t.sonde"


def test_it_is_musl():
    """A program of glibc would pass the other tests as well."""
    said = subprocess.run(["readelf", "-l", f"{BUILT}/src/cli/sonde"], text=True, stdout=subprocess.PIPE, check=True).stdout
    assert "ld-musl" in said


def test_a_program_is_recorded_and_reported(trace):
    rows = json.loads(sonde("report", trace, "--json").stdout)["rows"]
    assert [(row["key"], row["count"], row["flops"]) for row in rows] == [("layer", 18, 1800)]
    assert sonde("check", trace).returncode == 0


def test_it_is_exported(trace):
    done = sonde("export", trace, "--to", "chrome", "-o", f"{trace}.json")
    assert done.returncode == 0, done.stderr
    with open(f"{trace}.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    assert sum(event["name"] == "layer" for event in events) == 18


def test_errors_have_the_text_of_the_system(tmp_path):
    """The strerror_r of musl is not that of glibc."""
    done = sonde("report", tmp_path / "absent.sonde")
    assert done.returncode == 1 and done.stderr.strip().endswith("No such file or directory")
