# SPDX-License-Identifier: Apache-2.0
"""The torch probe is built in one go (unity.cpp), but each of its files is a translation unit: it compiles alone."""
import pathlib
import subprocess

import pytest

pytest.importorskip("torch")
probe = pytest.importorskip("sonde.torch._probe")

UNITS = [name for name in probe._SOURCES if name.endswith(".cpp") and name != probe._UNITY]


@pytest.mark.parametrize("unit", UNITS)
def test_a_file_of_the_probe_compiles_alone(tmp_path, unit):
    build = probe._installed_build()
    command = probe._command(build, probe._find_compiler(), build.standards[0], probe._source_folder(),
                             str(tmp_path / "unit.o"), ["-fsyntax-only"], unit)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_unity_file_includes_every_file():
    text = pathlib.Path(probe._source_folder(), probe._UNITY).read_text()
    assert sorted(line.split('"')[1] for line in text.splitlines() if line.startswith("#include")) == sorted(UNITS)
