# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests of the command line share: where the programs are, how to run them.

SONDE, SONDE_GEN and SONDE_WORKER name the programs; without them, what `make` installed and
built is used.
"""
import glob
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def find(variable, *places):
    for place in [os.environ.get(variable), *places]:
        if place and os.access(place, os.X_OK):
            return str(place)
    return None


SONDE = find("SONDE", ROOT / ".venv/bin/sonde", ROOT / "build/src/cli/sonde")
GEN = find("SONDE_GEN", ROOT / "build/tests/gen/gen")
WORKER = find("SONDE_WORKER", ROOT / "build/tests/e2e/e2e_worker")
# One that is compiled already, where there is one: newer versions of `go` compile it first, which takes a minute.
PPROF = sorted(glob.glob("/usr/lib/go-*/pkg/tool/*/pprof"))[:1] or ["go", "tool", "pprof"]

needs_worker = pytest.mark.skipif(not (SONDE and WORKER), reason="the programs sonde and "
                                  "e2e_worker are not built: run `make`, or set SONDE and "
                                  "SONDE_WORKER")
needs_tools = pytest.mark.skipif(not (SONDE and GEN), reason="the programs sonde and gen are not "
                                 "built: run `make`, or set SONDE and SONDE_GEN")
needs_pprof = pytest.mark.skipif(not shutil.which(PPROF[0]), reason="go is not installed (tools/setup test)")


def sonde(*arguments, **extra):
    """Runs it; the result has stdout and stderr as bytes."""
    return subprocess.run([SONDE, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300, **extra)


def read(*arguments):
    """Its standard output, of a run that must go well."""
    done = sonde(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_json(*arguments):
    return json.loads(read(*arguments))


def generate(case, path, *more):
    subprocess.run([GEN, case, str(path), *more], check=True, timeout=300)
    return path


def load_tool(name):
    """The module of a tool that is written in Python."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
