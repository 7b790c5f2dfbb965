# SPDX-License-Identifier: Apache-2.0
"""Where the torch probe comes from: a wheel's own, the cache, a compiler, or none of them."""
import os
import re
import shutil
import sys
import textwrap

import pytest

pytest.importorskip("torch", reason="torch is not installed: there is no probe")

from sonde.torch import _probe as _torch_probe  # noqa: E402
import warm_torch  # noqa: E402

PROGRAM = """
    import json, sys
    import torch, torch.profiler
    import sonde
    from sonde.torch import _probe as _torch_probe
    if len(sys.argv) > 1:
        _torch_probe._PROBES = sys.argv[1]
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()), torch.randn(4, 8)

    def run():
        with torch.profiler.record_function("mine"):
            model(x).sum().backward()

    def seen(profiled):
        return [(event.name, event.cpu_parent and event.cpu_parent.name, event.scope)
                for event in profiled.events()]

    run()
    CPU = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=CPU) as theirs:
        run()
    with sonde.profile(activities=CPU, record_shapes=True) as ours:
        run()
    print(json.dumps({"probe": _torch_probe.library(), "equal": seen(ours) == seen(theirs),
                      "shapes": any(event.input_shapes for event in ours.events()),
                      "ledger": [item[0] for item in ours.ledger()]}))
"""


def run_without_compiler(tmp_path, *arguments):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CXX": "no-such-compiler"}
    done = warm_torch.run("-c", textwrap.dedent(PROGRAM), *arguments, env=environment)
    assert done.returncode == 0, done.stderr
    import json
    said = [line for line in done.stderr.splitlines() if line.startswith("sonde:")]
    return json.loads(done.stdout.splitlines()[-1]), said


def test_every_source_is_part_of_the_identity():
    """One that is missing in the list could change without the probe being built again."""
    folder = _torch_probe._source_folder()
    for name in _torch_probe._SOURCES:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            included = set(re.findall(r'^#include [<"]((?:sonde|format|hook|probes|pystack)/[^">]*)', file.read(), re.M))
        assert included <= set(_torch_probe._SOURCES), (name, included)


def test_without_a_compiler_names_and_times(tmp_path):
    answer, said = run_without_compiler(tmp_path)
    assert answer == {"probe": _torch_probe._PLAIN, "equal": True, "shapes": False,
                      "ledger": ["names_only"]}
    assert len(said) == 1 and "no-such-compiler" in said[0] and "apt install g++" in said[0]


def test_a_wheels_own_probe_needs_no_compiler(tmp_path):
    import torch
    name = _torch_probe._wheel_name(_torch_probe._installed_build(), _torch_probe._source_folder())
    assert torch.__version__.split("+")[0] in name
    folder = tmp_path / "_probes"
    folder.mkdir()
    shutil.copy(_torch_probe.library(), folder / name)
    answer, said = run_without_compiler(tmp_path, folder)
    assert answer == {"probe": str(folder / name), "equal": True, "shapes": True, "ledger": []}
    assert said == []


def test_a_wheels_probe_that_cannot_be_loaded_is_passed_by(tmp_path):
    folder = tmp_path / "_probes"
    folder.mkdir()
    (folder / _torch_probe._wheel_name(_torch_probe._installed_build(), _torch_probe._source_folder())).write_text("no library")
    answer, _ = run_without_compiler(tmp_path, folder)
    assert answer["probe"] == _torch_probe._PLAIN


def test_building_for_a_wheel(tmp_path, monkeypatch):
    """With a compiler that only makes its output file: what is compiled is tested elsewhere."""
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"\n')
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    (tmp_path / "wheel").mkdir()
    old = tmp_path / "wheel/torch-2.4.0-1-cpython-311-linux-x86_64-0123456789abcdef.so"
    old.touch()
    path = _torch_probe.build_into(str(tmp_path / "wheel"))
    assert not old.exists(), "it is of other sources"
    assert os.path.basename(path) == _torch_probe._wheel_name(_torch_probe._installed_build(), _torch_probe._source_folder())
    with open(path) as file:
        assert file.read() == "built\n"


def test_a_compile_that_takes_a_while_is_said(monkeypatch, capfd):
    """Even if stderr is not a terminal, as here."""
    monkeypatch.setattr(_torch_probe, "_SAID_AFTER_S", 0.01)
    assert _torch_probe._run(["sh", "-c", "sleep 0.3; echo done"], "building it, once") == (0, "done\n")
    assert capfd.readouterr().err == "sonde: building it, once\nsonde: building the probe: done after 0 s\n"
    assert _torch_probe._run(["sh", "-c", "sleep 0.3; exit 3"], "building it, once") == (3, "")
    assert capfd.readouterr().err.endswith("building the probe: failed after 0 s\n")


def test_a_compile_counts_its_seconds_on_a_terminal(monkeypatch):
    """In one line, which its result replaces."""
    ours, theirs = os.openpty()
    monkeypatch.setattr(_torch_probe, "_SAID_AFTER_S", 0.01)
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        _torch_probe._run(["sleep", "1.2"], "building it, once")
        said = ""
        while "\n" not in said:
            said += os.read(ours, 4096).decode()
    os.close(ours)
    assert said.startswith("sonde: building it, once\rsonde: building it, once: 0 s\rsonde: building it, once: 1 s")
    assert said.rstrip().endswith("\r\033[Ksonde: building it, once: done after 1 s") and said.count("\n") == 1
